"""What the agent encodes with nanoarrow is what the hub takes: every table, every column, known and unknown."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from exporters.batch import Batch, stamped
from exporters.ingest_pb2 import Batch as Message
from fleet.telemetry import DeviceEventRow, DeviceRow, DeviceWindowRow, HoldingRow, columns
from tests.services.hub.hubs import rows, running
from tests.services.hub.sender import STORED, pushing, this_minute

if TYPE_CHECKING:
    from pathlib import Path


def test_batches_of_the_agent_s_own_encoder_are_stored(tmp_path: Path) -> None:
    start = this_minute()
    known = {c.name: number for number, c in enumerate(columns("device_window")) if c.kind is int}
    full = known | {
        "window_start_second": start,
        "window_ms": 60_000,
        "observed_ms": 60_000,
        "power_microjoules": 2**40,
    }
    windows = [
        DeviceWindowRow(device="GPU-1", state="ok", remap_is_pending=True, remap_has_failed=False, **full),
        DeviceWindowRow(device="GPU-2/gi7", window_start_second=start, window_ms=60_000, observed_ms=0, state="lost"),
    ]
    held = HoldingRow(
        device="GPU-1", from_second=start, to_second=start + 60, gpu_millionths=333_333, owner_kind="pod",
        source="kubelet", confidence="split", pod="train-0 \u00e9\u4e16",
    )  # fmt: skip
    event = DeviceEventRow(
        event_id="e", event_microsecond=start * 1_000_000, source="nvml", code_space="xid", code=79, severity="fatal"
    )
    batch = Batch(
        cluster="c1", node="n1", boot_id="b", spool_id="s", sequence=7, agent_version="1",
        tables={
            "seen_device": [DeviceRow(device="GPU-1", seen_from_second=start, kind="gpu")],
            "device_window": windows, "held_window": [held], "device_event": [event],
        },
    )  # fmt: skip
    with running(tmp_path) as hub, pushing(hub.address) as stream:
        message = Message.FromString(stamped(batch.encoded(), time.time_ns()))
        assert stream.push(message) == [(7, STORED, "")]
        found = rows(
            tmp_path, "SELECT busy_ms, power_microjoules, remap_is_pending FROM lake.device_window ORDER BY dh"
        )
        assert found == [(known["busy_ms"], 2**40, True), (None, None, None)]
        assert rows(tmp_path, "SELECT gpu_millionths, pod FROM lake.held_window") == [(333_333, "train-0 \u00e9\u4e16")]
        assert rows(tmp_path, "SELECT code, device FROM lake.device_event") == [(79, None)]
