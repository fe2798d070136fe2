"""The agent's threads: time is kept whatever hangs, refuses or breaks."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from collectors.guard import Guard
from collectors.runners import ThreadRunner
from collectors.samples import DeviceEvent, DeviceSample, Reading
from exporters.spool_file import SpoolError
from fleet.telemetry import DeviceEventRow
from services.agent.recorder import Recorder, RecorderSettings
from services.agent.runtime import Runtime
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


class Board:
    """A source with one device, to which something new happens at each visit: so each second has rows to save."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def collect(self) -> Reading:
        number = next(self._numbers)
        event = DeviceEvent(time.time_ns(), "GPU-1", "xid", 31, source="nvml", event_id=f"boot/{number}")
        return Reading((DeviceSample(kind="gpu", uuid="GPU-1"),), events=(event,))

    def close(self) -> None:
        pass


class Stuck:
    """A source that does not answer until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def collect(self) -> Reading:
        self.released.wait(60)
        return Reading()

    def close(self) -> None:
        pass


class Kept:
    """What was saved, second by second; the first times fail as told."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self.codes: list[int] = []
        self.calls = 0

    def __call__(self, rows: Mapping[str, tuple[Any, ...]]) -> None:
        self.calls += 1
        if self._failures:
            raise self._failures.pop(0)
        self.codes += [row.code for row in rows.get("device_event", ()) if isinstance(row, DeviceEventRow)]


@pytest.fixture
def start() -> Iterator[Callable[..., Runtime]]:
    started: list[Runtime] = []

    def make(save: Kept, *others: tuple[Guard, float, Callable[[Any], None]]) -> Runtime:
        devices = Guard("nvml", ThreadRunner(Board), deadline_seconds=5)
        runtime = Runtime("n1", Recorder(RecorderSettings("n1")), devices, others, period_seconds=1, save=save)
        assert runtime.ready() == (False, "the devices have not been asked yet")
        assert runtime.health()[0], "not stalled, only new"
        runtime.start()
        started.append(runtime)
        return runtime

    yield make
    for runtime in started:
        runtime.stop(1)


def test_a_source_that_hangs_holds_up_neither_time_nor_page(start: Callable[..., Runtime]) -> None:
    stuck, save = Stuck(), Kept()
    guard = Guard("placement", ThreadRunner(lambda: stuck), deadline_seconds=0.2)
    runtime = start(save, (guard, 0.1, lambda visit: None))
    wait_until(lambda: save.calls >= 2, 10)
    assert runtime.ready() == (True, "ok")
    measured = {m.metric.name: m for m in runtime.measurements() if "placement" in m.labels}
    assert measured["gputally_collector_outcome_info"].labels == ("n1", "placement", "overdue")
    began = time.monotonic()
    runtime.stop(1)
    assert time.monotonic() - began < 3
    stuck.released.set()


def test_a_spool_that_refuses_and_a_bug_cost_their_seconds_and_not_the_agent(
    start: Callable[..., Runtime], caplog: pytest.LogCaptureFixture
) -> None:
    save = Kept(SpoolError("the disk is full"), ValueError("a bug"))

    def breaks(_: object) -> None:
        raise KeyError("another")

    with caplog.at_level(logging.ERROR):
        runtime = start(save, (Guard("kernel_log", ThreadRunner(Board), deadline_seconds=5), 0.1, breaks))
        wait_until(lambda: save.codes, 10)
    told = {record.message: record for record in caplog.records}
    assert told["rows are lost: the spool refuses them"].reason == "the disk is full"
    assert told["a second was lost"].exc_info
    assert told["a visit was lost"].collector == "kernel_log"
    assert runtime.health()[0]
    assert set(save.codes) == {31}


@pytest.mark.parametrize(
    ("period_seconds", "age_seconds", "is_well"),
    [(1, 100, True), (1, 130, False), (300, 500, True), (300, 1000, False)],
)
def test_health_fails_when_no_second_comes_and_not_before_one_is_due(
    period_seconds: int, age_seconds: int, is_well: bool
) -> None:
    """Whoever supervises the agent restarts it then, so a slow exporter must not look like a stalled agent."""
    devices = Guard("dcgm", ThreadRunner(Board), deadline_seconds=5)
    runtime = Runtime("n1", Recorder(RecorderSettings("n1")), devices, (), period_seconds=period_seconds, save=Kept())
    runtime._ticked_at -= age_seconds
    assert runtime.health()[0] is is_well
