"""Saved windows that are damaged, or of another version: they cost what they would have bridged, and nothing else."""

from __future__ import annotations

import json

from collectors.serving.collector import EngineServer
from collectors.serving.engines import ENGINES
from collectors.serving.windows import EngineWindows
from fleet.telemetry import QUALITY_BITS, EngineWindowRow
from tests.collectors.serving.engine_pages import SECOND
from tests.collectors.serving.two_lives import ADDRESS, T0, Disk, Life, page, restored


def test_a_state_that_is_damaged_costs_its_server_and_not_the_agent() -> None:
    windows = EngineWindows()
    server = EngineServer(ENGINES["vllm"], ADDRESS, server="llm-a")
    for second in (0, 15):
        for name in ("llm-a", "llm-b"):
            windows.advance(T0 + second, name, server.read(page(second), read_at_ns=(T0 + second) * SECOND))
    good = restored(windows)
    for path, value in (
        (("clock",), 5),
        (("clock", "newest"), "soon"),
        (("engines", 0, 0), ["only"]),
        (("engines", 0, 1, "windows", 0, "sums"), {"generation_tokens": -4}),
        (("engines", 0, 1, "windows", 0, "histograms"), [["s", [1.0], [1], 1.0, 1, 1]]),
        (("engines", 0, 1, "carried"), {"busy_ms": "a"}),
        (("engines", 0, 1, "windows", 0, "start_second"), True),
    ):
        state = json.loads(json.dumps(good))
        place = state["servers"]["llm-a"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        resumed = EngineWindows(state=state)
        assert resumed.counted("llm-a") is None, path
        (row,) = resumed.close(T0 + 15)
        assert isinstance(row, EngineWindowRow), "llm-b is whole"
    for state in ({}, {"version": 2, "servers": good["servers"]}, {"version": 1, "servers": 7}):
        assert EngineWindows(state=state).close(T0 + 15) == ()


def test_a_state_of_another_version_keeps_what_is_known_here() -> None:
    state = json.loads(json.dumps(_one_window()))
    window = state["servers"]["llm-a"]["engines"][0][1]["windows"][0]
    window["sums"]["tokens_of_tomorrow"] = 9
    window["newest"] |= {"engine_version": 5, "generation_is_at_finish": True, "mood": "good"}
    window["flags"] = ["stale", "shiny"]
    (row, _) = EngineWindows(state=state).close(T0 + 15)
    assert isinstance(row, EngineWindowRow)
    assert (row.generation_tokens, row.engine_version, row.generation_is_at_finish) == (15, None, True)
    assert row.quality_bits == QUALITY_BITS["stale"]


def _one_window() -> dict[str, object]:
    life = Life(Disk())
    life.visit(T0, page(0, served=0))
    life.visit(T0 + 15, page(15, served=2))
    return restored(life.windows)
