"""A hub whose lake is blocked, whose disk is full, or that is told to stop: nothing acknowledged is lost."""

from __future__ import annotations

import resource
import signal
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from tests.services.hub.hubs import Hub, rows, running, wait_until
from tests.services.hub.sender import LATER, STORED, Pushing, make_batch, pushing, this_minute, window, wire_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exporters.ingest_pb2 import Batch

ROWS_PER_BATCH = 1000
UNLIMITED = resource.RLIM_INFINITY


@contextmanager
def lake_held(folder: Path) -> Iterator[None]:
    """Another process that writes, as far as the hub can tell: it has the lake's lock."""
    with FileLock(folder / "lake" / "catalog.sqlite.lock"):
        yield


def large_batches(node: str, count: int) -> list[Batch]:
    start = this_minute()
    tables = [wire_table("device_window", [window(f"GPU-{number}", start) for number in range(ROWS_PER_BATCH)])]
    return [make_batch(node, sequence, tables) for sequence in range(count)]


def resident_bytes(hub: Hub) -> int:
    status = Path(f"/proc/{hub.process.pid}/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def send_one(hub: Hub, stream: Pushing, batch: Batch) -> None:
    """Send a batch and wait until the hub has it."""
    before = hub.metric("gputally_hub_received_batches_total")
    stream.send(batch)
    wait_until(lambda: hub.metric("gputally_hub_received_batches_total") > before)


def test_a_full_disk_is_answered_later_and_the_hub_recovers(tmp_path: Path) -> None:
    with running(tmp_path) as hub, pushing(hub.address) as stream:
        assert stream.push(make_batch("n", 1)) == [(1, STORED, "")]
        # A file of the hub's may not grow: every write fails as it would on a full disk.
        resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (0, UNLIMITED))
        assert stream.push(make_batch("n", 2), make_batch("n", 3)) == [
            (2, LATER, "lake_failed"),
            (3, LATER, "lake_failed"),
        ]
        status, problem = hub.page("/healthz")
        assert (status, problem[:23]) == (503, "the last commit failed:")
        assert hub.page("/readyz")[0] == 200, "still serving"
        assert hub.metric('gputally_hub_refused_batches_total{reason="lake_failed"}') == 2
        resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
        assert stream.push(make_batch("n", 2), make_batch("n", 3)) == [(2, STORED, ""), (3, STORED, "")]
        assert hub.page("/healthz") == (200, "ok\n")
        assert rows(tmp_path, "SELECT busy_ms, count(*) FROM lake.device_window GROUP BY 1 ORDER BY 1") == [
            (1, 2), (2, 2), (3, 2),
        ]  # fmt: skip


def test_a_blocked_lake_makes_senders_wait_and_memory_stays_flat(tmp_path: Path) -> None:
    """The queue takes 5 batches; beyond them and one in each stream's hand, nothing is read off the wire."""
    senders, batches = 4, 20
    with running(tmp_path, queue_rows=5 * ROWS_PER_BATCH, batch_rows=ROWS_PER_BATCH) as hub, ExitStack() as stack:
        streams = [stack.enter_context(pushing(hub.address)) for _ in range(senders)]
        made = [large_batches(f"n{number}", batches + 1) for number in range(senders)]
        for stream, (first, *_) in zip(streams, made, strict=True):
            assert stream.push(first) == [(0, STORED, "")]
        before = resident_bytes(hub)
        with lake_held(tmp_path):
            for stream, (_, *others) in zip(streams, made, strict=True):
                stream.send(*others)
            wait_until(lambda: hub.metric("gputally_hub_waiting_rows") == 5 * ROWS_PER_BATCH)
            time.sleep(2)  # time in which more would be read, if anything were
            received = hub.metric("gputally_hub_received_batches_total") - senders
            grown = resident_bytes(hub) - before
            assert hub.metric("gputally_hub_waiting_rows") == 5 * ROWS_PER_BATCH
        assert received <= 5 + senders
        assert grown < 64 * 1024 * 1024, f"grew by {grown} bytes"
        for number, stream in enumerate(streams):
            answers = [stream.answer(seconds=60) for _ in range(batches)]
            assert {answer.outcome for answer in answers} == {STORED}, number
        assert rows(tmp_path, "SELECT count(*) FROM lake.device_window") == [
            (senders * (batches + 1) * ROWS_PER_BATCH,)
        ]


def test_sigterm_commits_and_answers_what_has_arrived(tmp_path: Path) -> None:
    with running(tmp_path, group_milliseconds=60_000) as hub, pushing(hub.address) as stream:
        send_one(hub, stream, make_batch("n", 1))
        hub.process.send_signal(signal.SIGTERM)
        assert (stream.answer().outcome, stream.has_ended()) == (STORED, True)
        assert hub.process.wait(timeout=30) == 0
    assert rows(tmp_path, "SELECT count(*) FROM lake.device_window") == [(2,)]
    assert ["hub stopped" in line for line in hub.log if "stop" in line][-1]


def test_sigterm_of_an_idle_hub_ends_its_streams(tmp_path: Path) -> None:
    with running(tmp_path) as hub, pushing(hub.address) as stream:
        assert stream.push(make_batch("n", 1)) == [(1, STORED, "")]
        began = time.monotonic()
        assert hub.stop() == 0
        assert time.monotonic() - began < 10
        assert stream.has_ended()


def test_a_drain_that_takes_too_long_is_cut_off(tmp_path: Path) -> None:
    with running(tmp_path, drain_seconds=1, group_milliseconds=10) as hub, pushing(hub.address) as stream:
        with lake_held(tmp_path):
            send_one(hub, stream, make_batch("n", 1))
            assert hub.stop(seconds=15) == 1
        assert stream.has_ended()
    assert rows(tmp_path, "SELECT count(*) FROM lake.device_window") == [(0,)]
    assert any("stopped before everything was committed" in line for line in hub.log)


def test_a_second_sigterm_ends_at_once(tmp_path: Path) -> None:
    with running(tmp_path, drain_seconds=600, group_milliseconds=10) as hub, pushing(hub.address) as stream:
        with lake_held(tmp_path):
            send_one(hub, stream, make_batch("n", 1))
            hub.process.send_signal(signal.SIGTERM)
            wait_until(lambda: hub.page("/readyz")[0] == 503)
            assert hub.stop(seconds=10) == 1
        assert stream.has_ended()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_stopped_hub_is_not_ready_and_takes_no_new_stream(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, group_milliseconds=10) as hub, pushing(hub.address) as stream:
        with lake_held(tmp_path):
            send_one(hub, stream, make_batch("n", 1))
            hub.process.send_signal(number)
            wait_until(lambda: hub.page("/readyz")[0] == 503)
            with pushing(hub.address) as late:
                late.send(make_batch("late", 1))
                assert late.has_ended()
        assert stream.answer().outcome == STORED
        assert hub.process.wait(timeout=30) == 0
