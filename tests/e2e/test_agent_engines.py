"""A real agent beside a model server: its page shows the server, its spool holds what the server did, to the token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.telemetry import QUALITY_BITS
from tests.collectors.serving.live_engine import LiveEngine
from tests.e2e import live_agents
from tests.e2e.live_agents import NOWHERE
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from pathlib import Path

TOKENS = "serving_generation_tokens_total"


def test_tokens_are_exact_over_a_kill_a_stop_and_a_restart_and_an_outage_of_the_server(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("a-secret-of-the-engine\n")
    spool = tmp_path / "spool.sqlite"
    with LiveEngine(token="a-secret-of-the-engine") as engine, LiveEngine() as slow:
        target = {
            "kind": "vllm", "url": engine.url, "server": "llm-a", "period_seconds": 1, "token_file": str(token_file),
        }  # fmt: skip
        targets = [target, {"kind": "vllm", "url": slow.url, "server": "llm-b", "period_seconds": 300}]
        settings = {"engines": targets, "hub.address": NOWHERE}
        with live_agents.running(tmp_path, {}, **settings) as killed:
            wait_until(lambda: all(f"server:{name}" in written(spool) for name in ("llm-a", "llm-b")), 20)
            killed.process.kill()
            killed.process.wait(10)
        slow.work(1_000)
        with live_agents.running(tmp_path, {}, **settings) as agent:
            place = {"server": "llm-a", "engine": "vllm", "engine_index": "0"}
            seen = len(engine.values)
            wait_until(lambda: agent.value(TOKENS, **place) in engine.values[seen:], 20)
            assert agent.value("serving_engine_info", **place, engine_version="0.33.0") == 1
            assert agent.value("serving_time_to_first_token_seconds_count", **place) == 4210
            assert agent.value("serving_waiting_requests", **place, reason="capacity") == 5
            engine.restart()
            wait_until(lambda: (agent.value(TOKENS, **place) or 10_000) < 1_000, 20)
            engine.is_away = True
            wait_until(lambda: agent.outcome("serving:llm-a") == "failed", 20)
            assert agent.value(TOKENS, **place) is None, "what is not known is not shown"
            engine.is_away = False
            wait_until(lambda: agent.outcome("serving:llm-a") == "ok" and agent.value(TOKENS, **place) is not None, 20)
            wait_until(lambda: len(slow.values) == 2, 20)
            slow.work(500)
            assert agent.stop() == 0
            assert "a-secret-of-the-engine" not in "".join(agent.log)
        rows = live_agents.spooled(agent.spool)["engine_window"]
        counted = [row for row in rows if row["engine_index"] == "0" and row["server"] == "llm-a"]
        of_slow = [row["generation_tokens"] for row in rows if (row["engine_index"], row["server"]) == ("0", "llm-b")]
        assert len(slow.values) == 3, "before the kill, after it, and when the agent is told to stop"
        assert sum(of_slow) == slow.generated == 1_000 + 500 + 2 * 7
        assert sum(row["generation_tokens"] for row in counted) == engine.generated
        assert sum(row["counter_resets"] for row in counted) == 1
        assert any(row["quality_bits"] & QUALITY_BITS["reset"] for row in counted)
        assert sum(row["scrape_count"] for row in counted) <= len(engine.values) - 1
        assert {(row["server"], row["engine_version"]) for row in rows} == {("llm-a", "0.33.0"), ("llm-b", "0.33.0")}
        assert all(row["window_start_second"] % 60 == 0 for row in rows)
        assert max(row["running_max_requests"] for row in counted) == 37


def written(spool: Path) -> str:
    """What an agent has on disk so far; nobody else can open the file."""
    return "".join(file.read_bytes().decode(errors="replace") for file in spool.parent.glob(f"{spool.name}*"))
