"""Model servers on a node: visits become rows and series, and no server can harm the agent."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from collectors import guard
from collectors.guard import Guard
from collectors.runners import ThreadRunner
from collectors.samples import DeviceSample, Reading
from collectors.serving.collector import EngineServer
from collectors.serving.engines import ENGINES
from fleet.agent_config import Agent, AgentHub
from fleet.agent_engine_config import AgentEngine
from services.agent.assembly import NodeAgent
from services.agent.engines import Engines
from services.agent.recorder import Recorder, RecorderSettings
from services.agent.runtime import Runtime
from services.agent.targets import EngineReading, EngineTarget, configured
from tests.collectors.serving.live_engine import PAGE, LiveEngine

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.telemetry import Row

START = 1_800_000_000
TARGET = AgentEngine("vllm", "http://127.0.0.1:9/metrics", "llm-a")


class Kept:
    """Whoever takes the rows."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._rows: dict[str, list[Row]] = {}

    @property
    def rows(self) -> dict[str, list[Row]]:
        """All rows by now."""
        for table, more in self._engines.taken()[0].items():
            self._rows.setdefault(table, []).extend(more)
        return self._rows


class Told:
    """A vLLM server whose tokens are told."""

    def __init__(self) -> None:
        self._server = EngineServer(ENGINES["vllm"], server="llm-a")

    def visit(self, tokens: int, *more: str) -> guard.Visit[EngineReading]:
        text = "\n".join((f'vllm:generation_tokens_total{{model_name="m",engine="0"}} {tokens}', *more, ""))
        return guard.Visit("ok", 0.1, EngineReading(self._server.read(text)))


FAILED: guard.Visit[EngineReading] = guard.Visit("failed", 0.1, reason="HTTP 503")


def names(engines: Engines) -> set[str]:
    return {m.metric.name.removeprefix("gputally_serving_") for m in engines.measurements()}


def test_visits_become_rows_and_series_and_a_server_that_is_away_shows_none() -> None:
    server, engines = Told(), Engines("n1")
    kept = Kept(engines)
    watched = engines.watch(configured(TARGET))
    engines.take(watched, server.visit(100), START)
    engines.take(watched, server.visit(160), START + 15)
    assert (names(engines), kept.rows) == ({"engine_info", "generation_tokens_total"}, {})
    engines.take(watched, FAILED, START + 70)
    assert (names(engines), kept.rows) == (set(), {})
    engines.take(watched, server.visit(10), START + 75)
    assert len(kept.rows["engine_window"]) == 1
    engines.close(START + 75)
    found: Any = kept.rows["engine_window"]
    assert sum(one.generation_tokens for one in found) == 60 + 10
    assert [one.window_start_second for one in found] == [START, START + 60]


def test_each_server_keeps_its_own_time() -> None:
    servers, engines = (Told(), Told()), Engines("n1")
    targets = (TARGET, AgentEngine("vllm", "http://127.0.0.1:9/b", "llm-b"))
    first, other = (engines.watch(configured(target)) for target in targets)
    for second in (0, 30):
        engines.take(first, servers[0].visit(second), START + second)
        engines.take(other, servers[1].visit(5 * second), START + second)
    engines.close(START + 30)
    found: Any = Kept(engines).rows["engine_window"]
    assert [one.generation_tokens for one in found] == [30, 150]


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


def test_counters_are_compared_over_a_token_that_was_replaced(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("sesame")
    with LiveEngine(token="sesame") as engine:
        target = EngineTarget(AgentEngine("vllm", engine.url, token_file=str(file)))
        assert target.collect().visit.step is None
        engine.change_token("the-next")
        file.write_text("the-next")
        step: Any = target.collect().visit.step
        target.close()
        assert sum(sample.generation_tokens or 0 for sample in step.samples) == engine.generated == 7


def test_what_such_an_engine_always_has_and_this_one_lacks_is_counted() -> None:
    found = EngineReading(EngineServer(ENGINES["vllm"]).read('vllm:num_requests_running{model_name="m"} 1\n'))
    assert "required_missing" in {rejected.reason for rejected in found.rejected}
    assert EngineReading(EngineServer(ENGINES["vllm"]).read(PAGE)).rejected == ()


def test_a_bug_at_the_end_of_servers_does_not_cost_the_devices() -> None:
    saved: dict[str, Any] = {}

    def breaks(_: int) -> None:
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
