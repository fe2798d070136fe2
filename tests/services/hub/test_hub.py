"""A hub in its own process, real gRPC: what is answered, when, and what is in the lake then."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Any

import grpc
import pyarrow as pa
import pytest

from exporters.ingest_pb2 import Answer, Batch, Table
from fleet.catalogue_pipeline import PIPELINE_METRICS
from tests.program import gputally, refusal
from tests.services.hub.hubs import Hub, rows, running, wait_until, workspace
from tests.services.hub.sender import (
    LATER,
    METHOD,
    REFUSED,
    STORED,
    arrow_table,
    event,
    holding,
    make_batch,
    pushing,
    stream_bytes,
    this_minute,
    window,
    wire_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with running(
        tmp_path_factory.mktemp("hub") / "ws", batch_mebibytes=1, batch_rows=5000, group_milliseconds=20
    ) as started:
        yield started


def window_count(hub: Hub, node: str) -> int:
    query = (
        "SELECT count(*) FROM lake.device_window AS w JOIN lake.device_number AS n ON n.device_no = w.dh // 24 "
        f"WHERE n.node = '{node}'"
    )
    return int(rows(hub.folder, query)[0][0])


def test_stored_is_answered_after_the_commit(hub: Hub) -> None:
    with pushing(hub.address) as stream:
        for sequence in range(3):
            assert stream.push(make_batch("after", sequence)) == [(sequence, STORED, "")]
            assert window_count(hub, "after") == 2 * (sequence + 1)


def test_answers_name_their_batch(hub: Hub) -> None:
    with pushing(hub.address) as stream:
        stream.send(make_batch("named", 7, boot_id="b", spool_id="s"))
        assert stream.answer() == Answer(boot_id="b", spool_id="s", sequence=7, outcome=STORED)


def test_a_batch_that_comes_again_is_acknowledged_and_stored_once(hub: Hub) -> None:
    batches = [make_batch("again", sequence) for sequence in (1, 2, 3)]
    known = hub.metric('gputally_hub_acked_batches_total{outcome="known"}')
    with pushing(hub.address) as stream:
        assert stream.push(*batches, batches[1]) == [(1, STORED, ""), (2, STORED, ""), (2, STORED, ""), (3, STORED, "")]
    with pushing(hub.address) as stream:
        assert stream.push(*batches) == [(sequence, STORED, "") for sequence in (1, 2, 3)]
    assert window_count(hub, "again") == 6
    assert hub.metric('gputally_hub_acked_batches_total{outcome="known"}') == known + 4


def test_sequences_count_within_a_spool(hub: Hub) -> None:
    with pushing(hub.address) as stream:
        assert (
            stream.push(make_batch("spools", 1), make_batch("spools", 1, spool_id="spool-2")) == [(1, STORED, "")] * 2
        )
    assert window_count(hub, "spools") == 4


def test_every_table_arrives_with_its_node(hub: Hub) -> None:
    start = this_minute()
    tables = [
        wire_table("seen_device", [{"device": "GPU-t", "seen_from_second": start, "kind": "gpu", "model": "H100"}]),
        wire_table("device_window", [window("GPU-t", start)]),
        wire_table("held_window", [holding("GPU-t", start + 5, start + 60)]),
        wire_table("device_event", [event("e1", start * 1_000_000 + 1, device="GPU-t")]),
    ]
    with pushing(hub.address) as stream:
        assert stream.push(make_batch("tables", 1, tables)) == [(1, STORED, "")]
    for table in ("seen_device", "held_window", "device_event"):
        assert rows(hub.folder, f"SELECT cluster, count(*) FROM lake.{table} WHERE node = 'tables' GROUP BY 1") == [
            ("c1", 1)
        ]


def test_a_group_is_one_commit(tmp_path: Path) -> None:
    with running(tmp_path, group_milliseconds=1500) as hub, pushing(hub.address) as stream:
        before = rows(tmp_path, "SELECT max(snapshot_id) FROM lake.snapshots()")[0][0]
        assert stream.push(*[make_batch("n", sequence) for sequence in range(20)]) == [
            (n, STORED, "") for n in range(20)
        ]
        assert rows(tmp_path, "SELECT max(snapshot_id) FROM lake.snapshots()") == [(before + 1,)]


def test_a_full_group_does_not_wait(tmp_path: Path) -> None:
    with running(tmp_path, group_milliseconds=60_000, group_rows=8) as hub, pushing(hub.address) as stream:
        assert len(stream.push(*[make_batch("n", sequence) for sequence in range(4)])) == 4


def one_window(**values: Any) -> Table:
    return wire_table("device_window", [window("GPU-x", this_minute(), **values)])


def stream_of(table: Any, row_count: int, **options: Any) -> Table:
    return Table(name="device_window", row_count=row_count, arrow_stream=stream_bytes(table, **options))


def three_windows() -> Any:
    return arrow_table("device_window", [window(f"GPU-{n}", this_minute()) for n in range(3)])


POISON = {
    "unknown table": (lambda: [Table(name="posting", row_count=1)], "table: there is no table 'posting'"),
    "table twice": (lambda: [one_window(), one_window()], "table: a table stands twice"),
    "too many tables": (lambda: [one_window()] * 7, "table: 7 tables in a batch"),
    "not arrow": (lambda: [Table(name="device_window", row_count=1, arrow_stream=b"<html>")], "encoding: "),
    "empty": (lambda: [Table(name="device_window", row_count=1)], "encoding: "),
    "compressed": (lambda: [stream_of(three_windows(), 3, compression="zstd")], "encoding: device_window: the stream"),
    "row count": (lambda: [stream_of(three_windows(), 2)], "size: device_window: more than the 2 rows"),
    "too few rows": (lambda: [stream_of(three_windows(), 4)], "size: device_window: 3 rows where 4 were stated"),
    "rows": (lambda: [Table(name="device_window", row_count=5001)], "size: more than 5000 rows"),
    "bytes": (lambda: [Table(name="x", arrow_stream=b"0" * 1024 * 1024)], "size: "),
    "column": (
        lambda: [stream_of(three_windows().append_column("cost", pa.array([1, 2, 3])), 3)],
        "schema: device_window: column 'cost' is not known here",
    ),
    "type": (
        lambda: [stream_of(pa.table({"device": pa.array([1, 2, 3])}), 3)],
        "schema: device_window: column device is int64, not string",
    ),
    "value": (lambda: [one_window(busy_ms=-1)], "value: device_window row 0, column busy_ms: -1 is below 0"),
    "time": (
        lambda: [wire_table("device_window", [window("GPU-x", 0)])],
        "time: device_window row 0, column window_start_second: more than 45 days ago",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POISON)
def test_a_bad_batch_is_refused_and_holds_up_no_other(hub: Hub, name: str) -> None:
    tables, reason = POISON[name]
    with pushing(hub.address) as stream, pushing(hub.address) as other:
        node = f"poison {name}"
        stream.send(make_batch(node, 1), make_batch(node, 2, tables()), make_batch(node, 3))
        other.send(make_batch(f"{node} other", 1))
        answers = sorted(((a := stream.answer()).sequence, a.outcome, a.reason) for _ in range(3))
        assert [answers[0], answers[2]] == [(1, STORED, ""), (3, STORED, "")]
        assert answers[1][:2] == (2, REFUSED)
        assert answers[1][2].startswith(reason)
        assert other.answer().outcome == STORED
    assert window_count(hub, node) == 4
    assert hub.metric(f'gputally_hub_refused_batches_total{{reason="{reason.partition(":")[0]}"}}') >= 1
    assert hub.page("/healthz") == (200, "ok\n")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"node": ""}, "batch: node: a name must not be empty"),
        ({"node": "n" * 300}, "batch: node: "),
        ({"cluster": "a\nb"}, "batch: cluster: "),
        ({"boot_id": ""}, "batch: boot_id: "),
        ({"spool_id": ""}, "batch: spool_id: "),
        ({"sequence": 2**63}, "batch: sequence: is beyond 63 bits"),
    ],
)
def test_a_batch_without_a_proper_name_is_refused(hub: Hub, fields: dict[str, Any], reason: str) -> None:
    with pushing(hub.address) as stream:
        stream.send(make_batch(**({"node": "nameless", "sequence": 1} | fields)))
        answer = stream.answer()
    assert answer.outcome == REFUSED
    assert answer.reason.startswith(reason)


def test_a_message_that_is_no_batch_ends_its_stream_only(hub: Hub) -> None:
    with grpc.insecure_channel(hub.address) as channel:
        call = channel.stream_stream(METHOD)(iter([b"\xff\xff\xff"]))
        with pytest.raises(grpc.RpcError):
            next(call)
        call = channel.stream_stream(METHOD, request_serializer=Batch.SerializeToString)(
            iter([Batch(tables=[Table(arrow_stream=b"0" * 3_000_000)])])
        )
        with pytest.raises(grpc.RpcError) as caught:
            next(call)
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    with pushing(hub.address) as stream:
        assert stream.push(make_batch("still there", 1)) == [(1, STORED, "")]


def test_two_machines_of_one_name_are_told_apart(hub: Hub) -> None:
    duplicates = hub.metric('gputally_hub_refused_batches_total{reason="duplicate_node"}')
    with pushing(hub.address) as first:
        assert first.push(make_batch("twin", 1)) == [(1, STORED, "")]
        with pushing(hub.address) as second:
            twin = make_batch("twin", 1, boot_id="boot-2", spool_id="spool-2")
            assert second.push(twin) == [(1, LATER, "duplicate_node")]
            assert first.push(make_batch("twin", 2)) == [(2, STORED, "")]
            other = make_batch("twin", 1, cluster="c2", boot_id="boot-2")
            assert second.push(other) == [(1, STORED, "")], "the same name in another cluster"
            first.close()
            assert first.has_ended()
            assert second.push(twin) == [(1, STORED, "")], "the first one has gone"
    assert hub.metric('gputally_hub_refused_batches_total{reason="duplicate_node"}') == duplicates + 1


def test_a_machine_that_boots_again_brings_what_the_earlier_boot_left(hub: Hub) -> None:
    with pushing(hub.address) as stream:
        assert stream.push(make_batch("reboot", 1)) == [(1, STORED, "")]
    with pushing(hub.address) as stream:
        batches = [make_batch("reboot", 2), make_batch("reboot", 3, boot_id="boot-2")]
        assert stream.push(*batches) == [(2, STORED, ""), (3, STORED, "")]
    assert window_count(hub, "reboot") == 6


def test_an_agent_that_lost_its_connection_unnoticed_takes_over(hub: Hub) -> None:
    with pushing(hub.address) as first:
        assert first.push(make_batch("half open", 1)) == [(1, STORED, "")]
        with pushing(hub.address) as second:
            assert second.push(make_batch("half open", 2)) == [(2, STORED, "")]


def test_the_page_has_the_catalogue_s_metrics_and_promtool_finds_no_fault(hub: Hub, promtool_bin: Path) -> None:
    ahead = make_batch("skewed", 1, sent_at_nanoseconds=time.time_ns() + 90 * 10**9)
    with pushing(hub.address) as stream:
        assert stream.push(ahead, make_batch("skewed", 2, [one_window(busy_ms=-1)]))[0] == (1, STORED, "")
        assert hub.metric('gputally_hub_clock_skew_seconds{node="skewed"}') < 5, "that of the last batch"
        stream.push(make_batch("skewed", 3, sent_at_nanoseconds=time.time_ns() + 90 * 10**9))
        assert 85 < hub.metric('gputally_hub_clock_skew_seconds{node="skewed"}') < 95
    status, page = hub.page("/metrics")
    assert status == 200
    shown = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    assert shown == {metric.name for metric in PIPELINE_METRICS if metric.name.startswith("gputally_hub_")}
    checked = subprocess.run(
        [promtool_bin, "check", "metrics"], input=page, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_pages_say_how_it_is(hub: Hub) -> None:
    assert hub.page("/healthz") == (200, "ok\n")
    assert hub.page("/readyz") == (200, "ok\n")
    assert hub.page("/")[0] == 404
    assert wait_until(lambda: hub.metric("gputally_hub_waiting_rows") == 0)


def test_a_second_hub_on_the_same_address_says_so(hub: Hub, tmp_path: Path) -> None:
    folder = workspace(tmp_path, listen=hub.address)
    assert (
        refusal(gputally("-C", folder, "hub"))
        == f"hub.listen: the hub cannot listen on {hub.address}; is another one running?"
    )
