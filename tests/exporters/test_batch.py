"""A batch carries its name and its rows, and gets the time of sending when it is sent."""

from __future__ import annotations

import pyarrow as pa

from exporters import ingest_pb2
from exporters.batch import Batch, stamped
from fleet.telemetry import HoldingRow

HOLDING = HoldingRow(
    device="GPU-1",
    from_second=0,
    to_second=60,
    gpu_millionths=1_000_000,
    owner_kind="pod",
    source="podresources",
    confidence="exact",
)


def test_a_batch_says_who_it_is_and_carries_its_tables() -> None:
    batch = Batch(
        cluster="c1",
        node="n1",
        boot_id="b1",
        spool_id="s1",
        sequence=2**40,
        agent_version="1.2.3",
        tables={"held_window": (HOLDING,) * 3, "device_event": ()},
    )
    encoded = batch.encoded()
    assert ingest_pb2.Batch.FromString(encoded).sent_at_nanoseconds == 0
    message = ingest_pb2.Batch.FromString(stamped(encoded, 1_800_000_000_000_000_001))
    assert (message.cluster, message.node, message.boot_id, message.spool_id) == ("c1", "n1", "b1", "s1")
    assert (message.sequence, message.agent_version) == (2**40, "1.2.3")
    assert message.sent_at_nanoseconds == 1_800_000_000_000_000_001
    (table,) = message.tables
    assert (table.name, table.row_count) == ("held_window", 3)
    assert pa.ipc.open_stream(table.arrow_stream).read_all().column("gpu_millionths").to_pylist() == [1_000_000] * 3


def test_a_batch_sent_again_carries_the_new_time_only() -> None:
    once = stamped(b"", 1)
    assert ingest_pb2.Batch.FromString(stamped(once, 2)).sent_at_nanoseconds == 2
