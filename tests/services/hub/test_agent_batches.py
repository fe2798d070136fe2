"""What the agent encodes with nanoarrow is what the hub takes: every table, every column, known and unknown."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from exporters.batch import Batch, stamped
from exporters.ingest_pb2 import Batch as Message
from fleet.telemetry import (
    DeviceEventRow,
    DeviceRow,
    DeviceWindowRow,
    EngineHistogramRow,
    EngineWindowRow,
    HoldingRow,
    columns,
)
from tests.services.hub.hubs import rows, running
from tests.services.hub.sender import REFUSED, STORED, pushing, this_minute

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


def test_rows_of_model_servers_are_stored_and_shown(tmp_path: Path) -> None:
    """Lists of numbers may be longer than a name may be; a wrong row costs its batch."""
    start = this_minute()
    layout = ",".join(f"{n / 1000:g}" for n in range(1, 101))
    assert len(layout) > 256
    place = {"server": "llm-a", "engine": "vllm", "model": "m", "window_start_second": start}
    window = EngineWindowRow(
        **place, window_ms=60_000, observed_ms=45_000, scrape_count=4, generation_tokens=2**40,
        generation_is_at_finish=False, received_requests=9, speculation_draft_events=3, prefill_busy_ms=100,
        decode_busy_ms=70_000, estimated_gigaflops=2**40,
    )  # fmt: skip
    seen = EngineHistogramRow(
        **place, signal="decode_time_seconds", bounds=layout, counts=",".join(["7"] * 101), sum_microunits=5, count=707
    )

    def batch(sequence: int, row: EngineWindowRow) -> Message:
        made = Batch(
            cluster="c1", node="n1", boot_id="b", spool_id="s", sequence=sequence, agent_version="1",
            tables={"engine_window": [row], "engine_histogram": [seen]},
        )  # fmt: skip
        return Message.FromString(stamped(made.encoded(), time.time_ns()))

    with running(tmp_path) as hub, pushing(hub.address) as stream:
        assert stream.push(batch(1, window)) == [(1, STORED, "")]
        ((sequence, answer, why),) = stream.push(batch(2, replace(window, kv_used_ms=60_001)))
        assert (sequence, answer) == (2, REFUSED)
        assert "engine_window row 0, column kv_used_ms: is longer than the window" in why
        found = rows(tmp_path, "SELECT node, server, day * 86400 + second, generation_tokens, kv_used_ms, "
                               "generation_is_at_finish FROM lake.engine_window")  # fmt: skip
        assert found == [("n1", "llm-a", start, 2**40, None, False)]
        later = "received_requests, speculation_draft_events, prefill_busy_ms, decode_busy_ms, estimated_gigaflops"
        assert rows(tmp_path, f"SELECT {later} FROM lake.engine_window") == [(9, 3, 100, 70_000, 2**40)]
        assert rows(tmp_path, "SELECT bounds, count, model FROM lake.engine_histogram") == [(layout, 707, "m")]
