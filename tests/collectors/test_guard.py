"""Each visit has a deadline, an outcome and an age; a collector that hangs or breaks harms no other."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from collectors.collector import SourceAbsentError
from collectors.guard import Guard, measured_status
from collectors.runners import ThreadRunner
from collectors.samples import DeviceSample, Reading, Rejected
from fleet.errors import GputallyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READING = Reading((DeviceSample("gpu", "GPU-1"),), rejected=(Rejected("range", 2),))


class Scripted:
    """A collector that does what each visit's step says."""

    def __init__(self, *steps: Callable[[], Reading]) -> None:
        self.steps = list(steps)
        self.visits = 0
        self.closed = threading.Event()

    def collect(self) -> Reading:
        self.visits += 1
        return self.steps.pop(0)() if len(self.steps) > 1 else self.steps[0]()

    def close(self) -> None:
        self.closed.set()


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def raising(error: Exception) -> Callable[[], Reading]:
    def step() -> Reading:
        raise error

    return step


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a hung visit waits for; set at the end so that no thread outlives its test."""
    event = threading.Event()
    yield event
    event.set()


def guard(collector: Scripted, clock: Clock | None = None, deadline_seconds: float = 5.0) -> Guard:
    runner = ThreadRunner(lambda: collector)
    return Guard("scripted", runner, deadline_seconds=deadline_seconds, clock=clock or time.monotonic)


def series(guarded: Guard) -> dict[tuple[str, ...], float]:
    found = [((m.metric.name, *m.labels[1:]), m.value) for m in measured_status("node-1", guarded.status())]
    assert len(dict(found)) == len(found)
    return dict(found)


def test_a_good_visit_has_reading_duration_and_age() -> None:
    clock = Clock()
    guarded = guard(Scripted(lambda: READING), clock)
    assert guarded.status().outcome is None
    assert guarded.status().staleness_seconds is None
    visit = guarded.visit()
    assert (visit.outcome, visit.reading, visit.reason) == ("ok", READING, None)
    clock.now += 7
    found = series(guarded)
    assert found["gputally_collector_outcome_info", "scripted", "ok"] == 1
    assert found["gputally_collector_staleness_seconds", "scripted"] == 7
    assert found["gputally_collector_rejected_events_total", "scripted", "range"] == 2
    assert found["gputally_collector_failed_events_total", "scripted", "failed"] == 0


def test_what_a_collector_refuses_is_told_and_the_next_visit_is_made() -> None:
    clock = Clock()
    guarded = guard(Scripted(raising(GputallyError("bad\nline " + "x" * 500)), lambda: READING), clock)
    visit = guarded.visit()
    assert visit.outcome == "failed"
    assert visit.reading is None
    assert visit.reason is not None
    assert "\n" not in visit.reason
    assert len(visit.reason) <= 300
    assert guarded.visit().outcome == "ok"
    assert guarded.status().failures == {"failed": 1}


def test_a_bug_in_a_collector_is_told_and_stops_nothing() -> None:
    guarded = guard(Scripted(raising(ZeroDivisionError("division by zero")), lambda: READING))
    assert guarded.visit().reason == "ZeroDivisionError: division by zero"
    assert guarded.visit().outcome == "ok"


def test_an_absent_source_is_looked_for_once_a_minute() -> None:
    clock = Clock()
    collector = Scripted(raising(SourceAbsentError("no kubelet here")), lambda: READING)
    guarded = guard(collector, clock)
    assert guarded.visit().outcome == "absent"
    clock.now += 59
    assert guarded.visit().reason == "no kubelet here"
    assert collector.visits == 1
    clock.now += 2
    assert guarded.visit().outcome == "ok"


def test_a_visit_that_hangs_is_overdue_and_not_started_twice(release: threading.Event) -> None:
    def hang() -> Reading:
        release.wait(30)
        return READING

    collector = Scripted(hang, lambda: Reading())
    guarded = guard(collector, deadline_seconds=0.05)
    before = threading.active_count()
    for _ in range(5):
        began = time.monotonic()
        assert guarded.visit().outcome == "overdue"
        assert time.monotonic() - began < 5
    assert collector.visits == 1
    assert threading.active_count() <= before + 1
    assert guarded.status().outcome == "overdue"
    assert guarded.status().failures == {"overdue": 5}
    release.set()
    deadline = time.monotonic() + 10
    while (visit := guarded.visit()).outcome != "ok":
        assert time.monotonic() < deadline
    assert visit.reading == READING
    assert guarded.visit().reading == Reading()


def test_a_visit_under_way_shows_as_overdue_before_it_returns(release: threading.Event) -> None:
    """dcgm-exporter#84: the page tells of a hang while it lasts."""
    entered = threading.Event()
    clock = Clock()

    def hang() -> Reading:
        entered.set()
        release.wait(30)
        return READING

    guarded = guard(Scripted(hang), clock, deadline_seconds=20)
    thread = threading.Thread(target=guarded.visit)
    thread.start()
    try:
        assert entered.wait(10)
        clock.now += 3
        assert guarded.status().outcome is None
        assert guarded.status().duration_seconds == 3
        clock.now += 18
        assert guarded.status().outcome == "overdue"
    finally:
        release.set()
        thread.join(10)


def test_closing_closes_the_collector() -> None:
    collector = Scripted(lambda: READING)
    guarded = guard(collector)
    guarded.visit()
    guarded.close()
    assert collector.closed.wait(10)
