"""Model servers on a node: visits become rows and series, and no server can harm the agent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from collectors import guard
from collectors.guard import Guard
from collectors.runners import ThreadRunner
from collectors.samples import DeviceSample, Reading
from collectors.serving.collector import EngineServer
from collectors.serving.engines import ENGINES
from fleet.agent_config import Agent, AgentEngine, AgentHub
from fleet.errors import ConfigError
from fleet.telemetry import EngineWindowRow, Row
from services.agent.assembly import NodeAgent
from services.agent.engines import EngineReading, Engines, EngineTarget
from services.agent.recorder import MOST_ENGINE_ROWS, Recorder, RecorderSettings
from services.agent.runtime import Runtime
from tests.collectors.serving.live_engine import PAGE, LiveEngine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

START = 1_800_000_000
TARGET = AgentEngine("vllm", "http://127.0.0.1:9/metrics", "llm-a")


class Kept:
    """Whoever takes the rows."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}

    def __call__(self, rows: Mapping[str, Sequence[Row]], second: int) -> None:
        for table, more in rows.items():
            self.rows.setdefault(table, []).extend(more)


class Told:
    """A vLLM server whose tokens are told."""

    def __init__(self) -> None:
        self._server = EngineServer(ENGINES["vllm"], server="llm-a")

    def visit(self, tokens: int, *more: str) -> guard.Visit[EngineReading]:
        text = "\n".join((f'vllm:generation_tokens_total{{model_name="m",engine="0"}} {tokens}', *more, ""))
        return guard.Visit("ok", 0.1, EngineReading(self._server.read(text)))


FAILED: guard.Visit[EngineReading] = guard.Visit("failed", 0.1, reason="HTTP 503")


def row(tokens: int = 1, second: int = START) -> EngineWindowRow:
    return EngineWindowRow(
        server="llm-a", engine="vllm", window_start_second=second, window_ms=60_000, observed_ms=60_000,
        scrape_count=4, generation_tokens=tokens,
    )  # fmt: skip


def names(engines: Engines) -> set[str]:
    return {m.metric.name.removeprefix("gputally_serving_") for m in engines.measurements()}


def test_visits_become_rows_and_series_and_a_server_that_is_away_shows_none() -> None:
    kept, server = Kept(), Told()
    engines = Engines("n1", [TARGET], kept)
    engines.take("llm-a", server.visit(100), START)
    engines.take("llm-a", server.visit(160), START + 15)
    assert (names(engines), kept.rows) == ({"engine_info", "generation_tokens_total"}, {})
    engines.take("llm-a", FAILED, START + 70)
    assert (names(engines), kept.rows) == (set(), {})
    engines.take("llm-a", server.visit(10), START + 75)
    found: Any = kept.rows["engine_window"] + list(engines.close(START + 75)["engine_window"])
    assert sum(one.generation_tokens for one in found) == 60 + 10
    assert [one.window_start_second for one in found] == [START, START + 60]


def test_each_server_keeps_its_own_time() -> None:
    kept, servers = Kept(), (Told(), Told())
    engines = Engines("n1", [TARGET, AgentEngine("vllm", "http://127.0.0.1:9/b", "llm-b")], kept)
    for second in (0, 30):
        engines.take("llm-a", servers[0].visit(second), START + second)
        engines.take("llm-b", servers[1].visit(5 * second), START + second)
    found: Any = engines.close(START + 30)["engine_window"]
    assert [one.generation_tokens for one in found] == [30, 150]


@pytest.mark.parametrize("kind", ["rocm", "litellm"])
def test_a_kind_that_is_none_is_refused_with_its_path(kind: str, tmp_path: Path) -> None:
    config = Agent(engines=(TARGET, AgentEngine(kind, "http://x/y")), spool=str(tmp_path / "s"), kubelet_socket="")
    with pytest.raises(ConfigError, match=rf"agent\.engines\[1\]\.kind must be one of .*vllm.*, not '{kind}'"):
        NodeAgent(config, "n1", "boot", "1")


def test_a_token_that_is_missing_is_a_failed_visit_until_it_is_there(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with LiveEngine(token="sesame") as engine:
        target = AgentEngine("vllm", engine.url, token_file=str(file))
        guarded = Guard("serving:x", ThreadRunner(lambda: EngineTarget(target)), deadline_seconds=10)
        assert guarded.visit().outcome == "failed"
        file.write_text("wrong")
        assert "401" in (guarded.visit().reason or "")
        file.write_text("sesame")
        found = guarded.visit().reading
        assert found
        assert {sample.server for sample in found.visit.totals.samples} == {target.name}
        assert found.visit.step is None
        guarded.close()


def test_what_such_an_engine_always_has_and_this_one_lacks_is_counted() -> None:
    found = EngineReading(EngineServer(ENGINES["vllm"]).read('vllm:num_requests_running{model_name="m"} 1\n'))
    assert "required_missing" in {rejected.reason for rejected in found.rejected}
    assert EngineReading(EngineServer(ENGINES["vllm"]).read(PAGE)).rejected == ()


def test_rows_go_with_the_windows_of_the_devices() -> None:
    recorder = Recorder(RecorderSettings("n1"))
    device = Reading((DeviceSample(kind="gpu", uuid="GPU-1", busy_ratio=0.5),))
    for second in range(60):
        assert recorder.tick("nvml", START + second, device, 0) == {}
        if second == 5:
            recorder.keep({"engine_window": [row()]}, START + 5)
    batch = recorder.tick("nvml", START + 60, device, 0)
    assert (len(batch["device_window"]), batch["engine_window"]) == (1, (row(),))


def test_rows_of_a_node_without_devices_wait_for_a_minute_at_most() -> None:
    recorder = Recorder(RecorderSettings("n1"))
    recorder.keep({"engine_window": [row()]}, START)
    assert recorder.tick("nvml", START + 59, None, 0) == {}
    assert recorder.tick("nvml", START + 60, None, 0) == {"engine_window": (row(),)}
    assert recorder.tick("nvml", START + 200, None, 0) == {}


def test_rows_that_nobody_fetches_are_bounded_and_counted() -> None:
    recorder = Recorder(RecorderSettings("n1"))
    recorder.keep({"engine_window": [row()] * (MOST_ENGINE_ROWS + 5)}, START)
    assert len(recorder.finish(START)["engine_window"]) == MOST_ENGINE_ROWS
    refused = {m.labels[2]: m.value for m in recorder.measurements() if "rejected" in m.metric.name}
    assert refused == {"too_many_engine_rows": 5}


def test_a_bug_at_the_end_of_servers_does_not_cost_the_devices() -> None:
    saved: dict[str, Any] = {}

    def breaks(_: int) -> dict[str, Any]:
        raise KeyError("a bug")

    class Board:
        def collect(self) -> Reading:
            return Reading((DeviceSample(kind="gpu", uuid="GPU-1"),))

        def close(self) -> None:
            pass

    devices = Guard("nvml", ThreadRunner(Board), deadline_seconds=5)
    recorder = Recorder(RecorderSettings("n1"))
    runtime = Runtime("n1", recorder, devices, (), period_seconds=1, save=saved.update, ending=breaks)
    now = int(time.time())
    for second in (now - 1, now):
        recorder.tick("nvml", second, devices.visit().reading, 0)
    runtime.stop(1)
    assert saved["device_window"]


def test_an_agent_visits_its_servers_and_sends_what_is_open(tmp_path: Path) -> None:
    with LiveEngine() as engine:
        config = Agent(
            devices="dcgm", dcgm_url="http://127.0.0.1:9/metrics", dcgm_period_seconds=1, kubelet_socket="",
            kernel_log="", processes=False, spool=str(tmp_path / "spool"), hub=AgentHub("127.0.0.1:9"),
            engines=(AgentEngine("vllm", engine.url, "llm-a", period_seconds=1),),
        )  # fmt: skip
        agent = NodeAgent(config, "n1", "boot", "1")
        shown = {m.labels[1] for m in agent.measurements() if "replaced" in m.metric.name}
        assert shown == {"dcgm", "serving:llm-a"}
        agent._runtime.start()
        deadline = time.monotonic() + 20
        while len(engine.values) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "gputally_serving_generation_tokens_total" in {m.metric.name for m in agent.measurements()}
        agent._runtime.stop()
        assert agent._spool
        assert agent._spool.status.newest_sequence >= 1
        agent._spool.close()
