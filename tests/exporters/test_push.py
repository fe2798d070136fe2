"""Pushing to a real gRPC server on loopback: nothing is lost, nothing waits, whatever the hub does."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from exporters.push_channel import PushSettings
from fleet.errors import ConfigError
from tests.exporters.agent import Agent
from tests.exporters.hub import SILENT, Answer, Hub, stored, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from pathlib import Path

    from exporters import ingest_pb2


def test_batches_arrive_in_order_and_leave_the_spool(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    hub = new_hub()
    agent.append(50)
    before = time.time_ns()
    agent.start(hub.port)
    until(lambda: agent.counts()["acked_batches_total"] == 50)
    agent.append(3)
    until(lambda: agent.counts()["acked_batches_total"] == 53)
    assert hub.sequences() == list(range(1, 54))
    assert before < hub.received[0].sent_at_nanoseconds <= hub.received[-1].sent_at_nanoseconds <= time.time_ns()
    assert agent.counts() == {"acked_batches_total": 53, "spooled_batches": 0, "spooled_bytes": 0}
    assert len(hub.metadata) == 1  # one stream for all


def test_a_bounded_number_is_unanswered_at_any_time(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    answering = threading.Event()
    hub = new_hub(judge=lambda batch: (SILENT, "") if not answering.is_set() else stored(batch))
    agent.append(30)
    agent.start(hub.port, batches_in_flight=5, answer_seconds=1.0)
    until(lambda: len(hub.received) == 5)
    # It sends no sixth one, but gives the hub up and begins again with the first.
    until(lambda: len(hub.received) >= 10)
    assert hub.sequences()[:10] == [1, 2, 3, 4, 5] * 2
    assert agent.counts()["failed_events_total:timeout"] >= 1
    answering.set()
    until(lambda: agent.counts()["acked_batches_total"] == 30)
    assert sorted(key[2] for key in hub.stored) == list(range(1, 31))


def test_a_hub_that_does_not_even_read_is_given_up(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    """More than the flow control window: the sender is stuck in the transport, not waiting for an answer."""
    hub = new_hub()
    hub.is_reading.clear()
    for _ in range(8):
        agent.spool.append("boot", lambda *_: b"\x0a\x80\x80\x40" + b"x" * 2**20, row_count=0, window_end_second=0)
    agent.start(hub.port, answer_seconds=0.5)
    until(lambda: agent.counts().get("failed_events_total:timeout", 0) >= 2)
    assert agent.spool.status.batch_count == 8
    hub.is_reading.set()


def test_after_a_hub_restart_it_goes_on_where_the_answers_ended(
    agent: Agent, new_hub: Callable[..., Hub], ended: ExitStack
) -> None:
    first = new_hub(judge=lambda batch: stored(batch) if batch.sequence <= 4 else (SILENT, ""))
    agent.append(10)
    agent.start(first.port)
    until(lambda: agent.counts()["acked_batches_total"] == 4 and len(first.received) == 10)
    first.stop()
    until(lambda: agent.counts().get("failed_events_total:unavailable", 0) >= 2)
    agent.append(5)
    second = Hub(port=first.port).start()
    ended.callback(second.stop)
    until(lambda: agent.counts()["spooled_batches"] == 0)
    assert second.sequences() == list(range(5, 16))
    assert agent.counts()["acked_batches_total"] == 15


def test_answers_in_any_order_and_said_twice_count_once(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    hub = new_hub(times_said=3)
    agent.append(20)
    agent.start(hub.port)
    until(lambda: agent.counts()["spooled_batches"] == 0)
    agent.append(1)
    until(lambda: agent.counts()["spooled_batches"] == 0)
    assert agent.counts()["acked_batches_total"] == 21
    assert len(hub.metadata) == 1


def test_an_answer_about_what_was_not_sent_deletes_nothing(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    hub = new_hub()
    sent = threading.Event()

    def judge(batch: ingest_pb2.Batch) -> tuple[int, str]:
        batch.sequence += 8  # beyond what is in flight
        sent.set()
        return Answer.STORED, ""

    hub.judge = judge
    agent.append(20)
    agent.start(hub.port, batches_in_flight=2, answer_seconds=0.2)
    until(lambda: agent.counts().get("failed_events_total:timeout", 0) >= 2)
    assert agent.counts()["spooled_batches"] == 20


def test_later_keeps_the_batch_and_its_successors_are_not_lost(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    busy = [3, 3, 5]

    def judge(batch: ingest_pb2.Batch) -> tuple[int, str]:
        if batch.sequence in busy:
            busy.remove(batch.sequence)
            return Answer.LATER, "queue"
        return stored(batch)

    hub = new_hub(judge=judge)
    agent.append(10)
    agent.start(hub.port)
    until(lambda: agent.counts()["acked_batches_total"] == 10)
    assert sorted(key[2] for key in hub.stored) == list(range(1, 11))
    assert agent.counts()["failed_events_total:later"] >= 2
    assert not any(name.startswith("dropped") for name in agent.counts())


@pytest.mark.parametrize("reason", ["identity", "duplicate_node"])
def test_why_the_hub_says_later_is_a_metric(agent: Agent, new_hub: Callable[..., Hub], reason: str) -> None:
    hub = new_hub(judge=lambda _: (Answer.LATER, reason))
    agent.append()
    agent.start(hub.port)
    until(lambda: agent.counts().get(f"failed_events_total:{reason}", 0) >= 2)
    assert agent.counts()["spooled_batches"] == 1


def test_a_hostile_reason_makes_no_label_and_no_line(agent: Agent, new_hub: Callable[..., Hub], caplog) -> None:
    hub = new_hub(judge=lambda batch: (Answer.LATER, "no\nlevel=error forged " + "x" * 10_000 + str(batch.sequence)))
    agent.append()
    agent.start(hub.port)
    said = "the hub does not take batches"
    until(lambda: [record for record in caplog.records if record.message == said])
    assert {name for name in agent.counts() if name.startswith("failed")} == {"failed_events_total:later"}
    (line,) = [record.detail for record in caplog.records if record.message == said]
    assert "\n" not in line
    assert len(line) < 300


def test_refused_is_dropped_counted_and_the_rest_goes_on(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    hub = new_hub(judge=lambda batch: (Answer.REFUSED, "schema") if batch.sequence % 2 else stored(batch))
    agent.append(9)
    agent.start(hub.port)
    until(lambda: agent.counts()["spooled_batches"] == 0)
    assert sorted(key[2] for key in hub.stored) == [2, 4, 6, 8]
    assert agent.counts()["dropped_batches_total:refused"] == 5
    assert agent.counts()["acked_batches_total"] == 4


def test_an_outcome_of_a_newer_hub_is_taken_for_later(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    hub = new_hub(judge=lambda _: (17, ""))
    agent.append()
    agent.start(hub.port)
    until(lambda: agent.counts().get("failed_events_total:later", 0) >= 1)
    assert agent.counts()["spooled_batches"] == 1


def test_a_hub_that_is_away_costs_pauses_that_grow_to_their_limit(agent: Agent) -> None:
    drawn: list[float] = []

    def draw() -> float:
        drawn.append(time.monotonic())
        return 1.0

    agent.append()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    push = agent.start(port, first_pause_seconds=0.01, longest_pause_seconds=0.16)
    push._draw = draw
    until(lambda: len(drawn) >= 8)
    gaps = [later - earlier for earlier, later in itertools.pairwise(drawn)]
    assert min(gaps) >= 0.01
    assert min(gaps[4:]) >= 0.16
    assert agent.counts()["failed_events_total:unavailable"] >= 7
    assert agent.counts()["oldest_batch_seconds"] == pytest.approx(time.time() - 1_700_000_000, abs=10)


def test_stop_drains_what_was_just_spooled(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    hub = new_hub()
    agent.append()
    agent.start(hub.port)
    until(lambda: hub.stored)
    agent.append(40)
    agent.stop(drain_seconds=20)
    assert len(hub.stored) == 41


def test_an_agent_that_stops_while_its_hub_is_away_tries_once_more_and_no_storm_of_times(agent: Agent) -> None:
    """A fleet that is restarted while the hub is down must not attack it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = taken.getsockname()[1]
    agent.append()
    agent.start(nobody, first_pause_seconds=20, longest_pause_seconds=20)
    until(lambda: agent.counts().get("failed_events_total:unavailable", 0) >= 1)
    before = agent.counts()["failed_events_total:unavailable"]
    assert agent.push is not None
    agent.push.stop(2)
    assert agent.counts()["failed_events_total:unavailable"] - before <= 2


def test_stop_does_not_wait_for_a_silent_or_absent_hub(agent: Agent, new_hub: Callable[..., Hub]) -> None:
    hub = new_hub(judge=lambda _: (SILENT, ""))
    agent.append()
    agent.start(hub.port)
    until(lambda: hub.received)
    begun = time.monotonic()
    agent.stop(drain_seconds=0.3)
    assert time.monotonic() - begun < 5
    assert agent.spool.status.batch_count == 1


def test_a_spool_that_begins_anew_is_pushed_from_its_first_batch(
    agent: Agent, new_hub: Callable[..., Hub], tmp_path: Path
) -> None:
    hub = new_hub()
    agent.append(5)
    agent.start(hub.port)
    until(lambda: agent.counts()["spooled_batches"] == 0)
    agent.spool.close()
    (tmp_path / "spool").write_bytes(b"no database " * 1_000)
    agent.append(2)
    until(lambda: len(hub.stored) == 7)
    assert len({key[1] for key in hub.stored}) == 2
    assert agent.counts()["failed_events_total:spool_corrupt"] == 1


def test_a_full_spool_drops_the_oldest_while_the_hub_is_away(
    tmp_path: Path, new_hub: Callable[..., Hub], ended: ExitStack
) -> None:
    hub = new_hub(judge=lambda batch: (SILENT, ""))
    agent = Agent(tmp_path / "small", limit_bytes=1_000)
    ended.callback(agent.stop)
    agent.append(3)
    agent.start(hub.port, answer_seconds=0.2)
    agent.append(200)
    hub.judge = stored
    until(lambda: agent.counts()["spooled_batches"] == 0)
    counts = agent.counts()
    assert counts["acked_batches_total"] + counts["dropped_batches_total:spool_full"] == 203
    assert max(key[2] for key in hub.stored) == 203


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"address": "hub.example"}, "not host:port"),
        ({"address": "hub.example:0"}, "not host:port"),
        ({"address": ":4317"}, "not host:port"),
        ({"address": "hub:1", "certificate": "c"}, "go together"),
        ({"address": "hub:1", "ca": "c", "insecure": True}, "no use without TLS"),
        ({"address": "localhost:1", "certificate": "c", "key": "k"}, "no use without TLS"),
    ],
)
def test_settings_that_are_not_safe_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        PushSettings(**settings)


@pytest.mark.parametrize("address", ["localhost:1", "127.0.0.2:1", "[::1]:1"])
def test_loopback_may_go_without_tls(address: str) -> None:
    assert PushSettings(address=address).is_plaintext
    assert not PushSettings(address=address, ca="c").is_plaintext


@pytest.mark.parametrize("address", ["hub.example:1", "10.0.0.1:1", "localhost.example:1", "[fe80::1]:1", "0.0.0.0:1"])
def test_telemetry_and_token_leave_the_machine_under_tls_only(address: str) -> None:
    assert not PushSettings(address=address, token_file="t").is_plaintext
    assert PushSettings(address=address, insecure=True).is_plaintext
