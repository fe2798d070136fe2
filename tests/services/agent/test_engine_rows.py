"""Rows of model servers on their way into a batch: when they go, and how many the hub would take."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from exporters.batch import Batch
from fleet.telemetry import LIST_TEXT_LIMIT, TEXT_LIMIT, EngineHistogramRow, EngineWindowRow
from services.agent.engine_rows import MOST_BYTES, MOST_ROWS, PendingRows
from services.agent.engines import Engines
from store.telemetry_arrow import BatchLimits
from tests.services.agent.engine_lives import MINUTE, T0, Life

if TYPE_CHECKING:
    from pathlib import Path

WINDOW = EngineWindowRow(
    server="llm-a", engine="vllm", window_start_second=T0, window_ms=60_000, observed_ms=60_000, scrape_count=4,
    generation_tokens=1,
)  # fmt: skip
HISTOGRAM = EngineHistogramRow(
    server="llm-a", engine="vllm", window_start_second=T0, signal="s", bounds="1", counts="1,0", sum_microunits=1,
    count=1,
)  # fmt: skip
LONGEST = {"server": "é" * TEXT_LIMIT, "model": "é" * TEXT_LIMIT, "engine_index": "é" * TEXT_LIMIT}


def batch_bytes(rows: Any) -> int:
    batch = Batch(cluster="c", node="n1", boot_id="b", spool_id="s", sequence=1, agent_version="1", tables=rows)
    return len(batch.encoded())


def test_rows_that_nobody_fetches_are_bounded_and_counted() -> None:
    pending = PendingRows()
    pending.add([HISTOGRAM] * (MOST_ROWS + 5), T0)
    assert (len(pending.take()["engine_histogram"]), pending.refused) == (MOST_ROWS, 5)
    pending.add([WINDOW], T0)
    assert pending.take() == {"engine_window": (WINDOW,)}
    assert pending.take() == {}


def test_a_batch_is_one_that_the_hub_takes_whatever_servers_make_up() -> None:
    """Else the rows of the devices were lost with it. Histograms, however large, take no room of tokens."""
    pending = PendingRows()
    long = "1," * (LIST_TEXT_LIMIT // 2)
    largest = replace(HISTOGRAM, **LONGEST, bounds=long, counts=long)
    pending.add([largest] * MOST_ROWS, T0)
    pending.add([replace(WINDOW, **LONGEST)] * MOST_ROWS, T0)
    rows = pending.take()
    assert 0 < len(rows["engine_histogram"]) < len(rows["engine_window"]) < MOST_ROWS
    size = batch_bytes(rows)
    assert 1.8 * MOST_BYTES < size < 2.1 * MOST_BYTES
    assert size < BatchLimits().bytes * 0.6
    pending.add([largest] * 5, T0)
    assert len(pending.take()["engine_histogram"]) == 5, "there is room again"


def test_rows_wait_for_the_windows_of_the_devices_and_for_a_minute_at_most() -> None:
    pending = PendingRows()
    assert not pending.have_waited(T0)
    pending.add([WINDOW], T0)
    pending.add([WINDOW], T0 + 30)
    assert [pending.have_waited(T0 + second) for second in (0, 59, 60)] == [False, False, True]
    assert pending.have_waited(T0 - 1), "a clock that was set back is no reason to wait on"
    pending.take()
    assert not pending.have_waited(T0 + 100)


def test_rows_go_with_the_windows_of_the_devices(tmp_path: Path) -> None:
    """One batch a minute and not two."""
    life = Life(tmp_path / "spool.sqlite", "a")
    life.visit(T0, 0)
    life.save()
    life.engines._pending.add([WINDOW], int(time.time()))
    life.save()
    assert life._spool
    assert life._spool.status.batch_count == 0
    life.save(MINUTE)
    ((spooled),) = life._spool.next_batches(0, 10)
    assert spooled.row_count == 2
    life.drop()


def test_what_was_refused_is_shown() -> None:
    engines = Engines("n1")
    engines._pending.add([WINDOW] * (MOST_ROWS + 3), T0)
    refused = {m.labels: m.value for m in engines.measurements()}
    assert set(refused) == {("n1", "engines", "too_many_engine_rows")}
