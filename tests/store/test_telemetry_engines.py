"""What node agents saw of model servers, as readers of the lake find it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from store.migrations import schema_files
from store.telemetry import append
from store.telemetry_views import show_telemetry
from tests.store.telemetry_rows import NOW, batch, engine_histogram, engine_window
from tests.store.worker import open_lake

if TYPE_CHECKING:
    from pathlib import Path


def test_windows_of_model_servers_have_their_times(tmp_path: Path) -> None:
    tables = {
        "engine_window": [engine_window("llm-a", window_ms=15_000, observed_ms=0, generation_tokens=2**40)],
        "engine_histogram": [engine_histogram("llm-a")],
    }
    with open_lake(tmp_path) as lake:
        show_telemetry(lake.connection)
        assert append(lake, [batch("n", 1, tables)]).row_counts == {"engine_window": 1, "engine_histogram": 1}
        start, end = (datetime.fromtimestamp(second, UTC) for second in (NOW, NOW + 15))
        query = (
            "SELECT cluster, node, server, window_start, window_end, generation_tokens, kv_used_ms FROM engine_window"
        )
        assert lake.connection.execute(query).fetchall() == [("c", "n", "llm-a", start, end, 2**40, None)]
        query = "SELECT server, window_start, bounds, counts, sum_microunits, count FROM engine_histogram"
        assert lake.connection.execute(query).fetchall() == [("llm-a", start, "0.5,1", "1,2,0", 1_500_000, 3)]


LATER = {
    "received_requests": 2**40, "speculation_draft_events": 7, "prefill_busy_ms": 90_000, "decode_busy_ms": 200_000,
    "estimated_gigaflops": 2**50,
}  # fmt: skip
"""What agents tell of model servers since schema 9; devices of several ranks compute longer than the window."""


def test_windows_of_before_the_phases_of_engines_stay_and_new_ones_have_them(tmp_path: Path) -> None:
    names = ", ".join(LATER)
    with open_lake(tmp_path) as lake:
        for name in LATER:
            lake.write(lambda con, name=name: con.execute(f"ALTER TABLE lake.engine_window DROP COLUMN {name}"))
        lake.write(lambda con: con.execute("INSERT INTO lake.engine_window (day, server) VALUES (1, 'old')"))
        (change,) = [text for number, _, text in schema_files() if number == 9]
        lake.write(lambda con: con.execute(change))
        show_telemetry(lake.connection)
        append(lake, [batch("n", 1, {"engine_window": [engine_window("new", **LATER)]})])
        found = lake.connection.execute(f"SELECT server, {names} FROM engine_window ORDER BY server").fetchall()
        assert found == [("new", *LATER.values()), ("old", *[None] * len(LATER))]
