"""The agent's threads: time is kept whatever hangs, refuses or breaks."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from collectors.exposition import PageError
from collectors.guard import Guard
from collectors.runners import ThreadRunner
from collectors.samples import DeviceEvent, DeviceSample, Reading
from exporters.spool_file import SpoolError
from fleet.telemetry import DeviceEventRow
from services.agent.asking import Asking
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


class Answers:
    """A source that answers some times and then no more."""

    def __init__(self, times: int) -> None:
        self.asked, self._times = 0, times

    def collect(self) -> Reading:
        self.asked += 1
        if self.asked > self._times:
            raise PageError("gone")
        return Reading()

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("times", "is_visited_at_stop", "is_left", "visits"),
    [(9, True, False, 2), (9, False, False, 1), (0, True, False, 1), (9, True, True, 1)],
    ids=["once more", "a source that need not", "one that did not answer", "one that is gone"],
)
def test_at_a_stop_a_source_that_is_still_there_is_visited_once_more(
    start: Callable[..., Runtime], times: int, is_visited_at_stop: bool, is_left: bool, visits: int
) -> None:
    """Of one that is gone another may have the address by then; one that hangs would hold up the stop."""
    source, told = Answers(times), list[str]()
    guard = Guard("serving:a", ThreadRunner(lambda: source), deadline_seconds=5)
    asking = Asking(
        guard, 300, lambda visit: told.append(visit.outcome), lambda: told.append("end"),
        is_visited_at_stop=is_visited_at_stop,
    )  # fmt: skip
    runtime = start(Kept())
    runtime.watch(asking)
    wait_until(lambda: told, 10)
    if is_left:
        runtime.leave(asking)
    runtime.stop(5)
    assert (source.asked, told) == (visits, ["ok" if times else "failed"] * visits + ["end"])


def test_a_stop_waits_no_longer_than_it_may_for_a_last_visit(start: Callable[..., Runtime]) -> None:
    stuck, told = Stuck(), list[str]()
    stuck.released.set()
    guard = Guard("serving:a", ThreadRunner(lambda: stuck), deadline_seconds=30)
    asking = Asking(guard, 300, lambda visit: told.append(visit.outcome), is_visited_at_stop=True)
    runtime = start(Kept())
    runtime.watch(asking)
    wait_until(lambda: told, 10)
    stuck.released.clear()
    began = time.monotonic()
    runtime.stop(0.5)
    assert time.monotonic() - began < 3
    assert told == ["ok"]
    stuck.released.set()


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
