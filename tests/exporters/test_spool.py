"""The spool keeps what the hub has not acknowledged, in order, bounded, and counted."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from exporters.spool import Spool
from exporters.spool_file import SpoolError
from tests.exporters.spooling import ack, append, payload, sequences

if TYPE_CHECKING:
    from pathlib import Path


def test_batches_come_back_in_order_and_leave_when_acked(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 1_000_000)
    assert [append(spool) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert [b.sequence for b in spool.next_batches(2, 2)] == [3, 4]
    assert ack(spool, 3)
    assert not ack(spool, 3)
    assert not spool.ack("another boot", spool.status.spool_id, 4)
    assert not spool.ack("boot", "another spool", 4)
    assert sequences(spool) == [1, 2, 4, 5]
    (first, *_) = spool.next_batches(0, 1)
    assert first.payload == payload(1, spool.status.spool_id)
    assert (first.boot_id, first.row_count, first.window_end_second) == ("boot", 64, 60)
    assert (spool.status.batch_count, spool.status.acked_batches) == (4, 1)
    spool.close()


def test_a_sequence_is_never_given_twice_even_when_all_is_acked(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 1_000_000)
    for sequence in (append(spool), append(spool)):
        ack(spool, sequence)
    spool_id = spool.status.spool_id
    spool.close()
    again = Spool(tmp_path / "spool", 1_000_000)
    assert again.status.spool_id == spool_id
    assert append(again) == 3
    again.close()


def test_when_the_spool_is_full_the_oldest_go_and_are_counted(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 10_000)
    for _ in range(25):
        append(spool, size=1_000)
    assert sequences(spool) == list(range(16, 26))
    assert spool.status.dropped_batches == {"spool_full": 15}
    assert spool.status.payload_bytes == 10_000
    spool.close()
    again = Spool(tmp_path / "spool", 10_000)
    assert again.status.dropped_batches == {"spool_full": 15}
    assert again.status.payload_bytes == 10_000
    again.close()


def test_a_batch_larger_than_the_spool_is_counted_and_nothing_else_lost(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 10_000)
    append(spool, state={"energy": 1})
    with pytest.raises(SpoolError, match="larger than the spool"):
        append(spool, size=10_001, state={"energy": 2})
    assert (sequences(spool), spool.state_get("energy")) == ([1], 1)
    assert spool.status.dropped_batches == {"spool_failed": 1}
    append(spool)
    spool.close()
    assert Spool(tmp_path / "spool", 10_000).status.dropped_batches == {"spool_failed": 1}


def test_the_file_does_not_outgrow_its_limit_and_gives_space_back(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 5_000_000)
    for _ in range(300):
        append(spool, size=40_000)
    full = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert full < 5_000_000 * 1.1 + 2 * 1_048_576  # pages, and the log with its own limit
    for sequence in sequences(spool):
        assert ack(spool, sequence)
    spool.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1_200_000


def test_a_batch_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 10_000)

    def fail(sequence: int, spool_id: str) -> bytes:
        raise ValueError(f"no batch {sequence} of {spool_id}")

    with pytest.raises(ValueError, match="no batch 1"):
        spool.append("boot", fail, row_count=1, window_end_second=60, state={"energy": 7})
    with pytest.raises(TypeError):
        append(spool, size=5_000, state={"energy": 7, "no JSON": object()})
    assert (sequences(spool), spool.state_get("energy"), spool.status.batch_count) == ([], None, 0)
    assert append(spool, size=10) == 1
    assert spool.status.payload_bytes == len(spool.next_batches(0, 1)[0].payload) < 1_000
    spool.close()


def test_state_is_any_json_and_survives(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 10_000)
    spool.state_put("known", {"GPU-1": [1, None, "ü\udcff"]})
    append(spool, state={"energy": {"GPU-1": 2**63}})
    spool.close()
    again = Spool(tmp_path / "spool", 10_000)
    assert again.state_get("known") == {"GPU-1": [1, None, "ü\udcff"]}
    assert again.state_get("energy") == {"GPU-1": 2**63}
    assert again.state_get("absent") is None
    again.close()


def test_one_agent_only_may_use_a_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 10_000)
    with pytest.raises(SpoolError, match="in use by another process"):
        Spool(tmp_path / "spool", 10_000)
    assert append(spool) == 1
    spool.close()
    assert [path.name for path in tmp_path.iterdir()] == ["spool"]


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "sub" / "spool", 10_000)
    append(spool)
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "sub", *(tmp_path / "sub").iterdir())} == {0}
    spool.close()


def test_a_spool_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot be used"):
        Spool(tmp_path / "file" / "spool", 10_000)


def test_threads_share_a_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 10_000_000)
    threads = [threading.Thread(target=lambda: [append(spool) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for spooled in spool.next_batches(0, 10):
            ack(spool, spooled.sequence)
    for thread in threads:
        thread.join()
    left = len(sequences(spool))
    assert left + spool.status.acked_batches == 200
    assert spool.status.newest_sequence == 200
    assert spool.status.batch_count == left
    spool.close()


def test_the_file_says_what_it_promises(tmp_path: Path) -> None:
    """The settings that durability and the bound on the file depend on have taken hold."""
    Spool(tmp_path / "spool", 10_000).close()
    with sqlite3.connect(tmp_path / "spool") as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_any_sequence_of_calls_does_what_a_plain_model_does(tmp_path: Path) -> None:
    count = iter(range(1_000_000))

    class Model(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.path = tmp_path / str(next(count))
            self.spool = Spool(self.path, 1_000)
            self.held: dict[int, int] = {}
            self.newest = self.acked = self.full = 0

        @rule(size=st.integers(50, 600))
        def append(self, size: int) -> None:
            self.newest += 1
            assert append(self.spool, size=size, state={"newest": self.newest}) == self.newest
            while sum(self.held.values()) + size > 1_000:
                del self.held[min(self.held)]
                self.full += 1
            self.held[self.newest] = size

        @rule(sequence=st.integers(1, 12))
        def ack(self, sequence: int) -> None:
            assert ack(self.spool, sequence) is (sequence in self.held)
            self.acked += self.held.pop(sequence, None) is not None

        @rule()
        def reopen(self) -> None:
            self.spool.close()
            self.spool = Spool(self.path, 1_000)

        @invariant()
        def agrees(self) -> None:
            status = self.spool.status
            assert sequences(self.spool) == sorted(self.held)
            assert (status.newest_sequence, status.batch_count) == (self.newest, len(self.held))
            assert status.payload_bytes == sum(self.held.values())
            assert (status.acked_batches, status.dropped_batches.get("spool_full", 0)) == (self.acked, self.full)
            assert self.spool.state_get("newest") == (self.newest or None)

        def teardown(self) -> None:
            self.spool.close()

    run_state_machine_as_test(Model, settings=settings(max_examples=15, stateful_step_count=20, deadline=None))
