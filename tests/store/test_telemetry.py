"""Batches in the lake: every value comes back, each batch counts once, all of a group or nothing."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.telemetry import TABLES, columns
from store.sqlfile import package_files, tables_read
from store.telemetry import Appended, Appender, RowsRefusedError, append
from store.telemetry_layout import layouts, sql_type
from store.telemetry_views import show_telemetry
from tests.store.telemetry_rows import NOW, any_window, batch, event, holding, window
from tests.store.worker import open_lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from store.lake import Lake

DAY = 86_400
EXAMPLES = itertools.count()
"""Each example of hypothesis has a node of its own in the shared lake."""
BECOMES_KEYS = {
    "seen_device": set(),
    "device_window": {"device", "window_start_second"},
    "held_window": {"device", "from_second", "to_second"},
    "device_event": set(),
    "engine_window": {"window_start_second"},
    "engine_histogram": {"window_start_second"},
}
OF_ENGINES = [("day", "INTEGER"), ("second", "INTEGER"), ("cluster", "VARCHAR"), ("node", "VARCHAR")]
KEYS = {
    "seen_device": [("cluster", "VARCHAR"), ("node", "VARCHAR")],
    "device_window": [("day", "INTEGER"), ("dh", "INTEGER"), ("second", "INTEGER")],
    "held_window": [
        ("day", "INTEGER"), ("dh", "INTEGER"), ("second", "INTEGER"), ("seconds", "INTEGER"), ("cluster", "VARCHAR"),
        ("node", "VARCHAR"),
    ],
    "device_event": [("day", "INTEGER"), ("cluster", "VARCHAR"), ("node", "VARCHAR")],
    "engine_window": OF_ENGINES,
    "engine_histogram": OF_ENGINES,
}  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("telemetry")) as opened:
        show_telemetry(opened.connection)
        yield opened


@pytest.fixture
def new_lake(tmp_path: Path) -> Iterator[Lake]:
    with open_lake(tmp_path) as opened:
        show_telemetry(opened.connection)
        yield opened


def ask(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    return lake.connection.execute(query).fetchall()


def known(*places: int, **counts: int) -> Appended:
    return Appended(frozenset(places), counts)


@pytest.mark.parametrize("table", TABLES)
def test_the_schema_keeps_every_column_of_the_wire(lake: Lake, table: str) -> None:
    found = [(name, kind) for name, kind, *_ in ask(lake, f"DESCRIBE lake.{table}")]
    kept = [(c.name, sql_type(c)) for c in columns(table) if c.name not in BECOMES_KEYS[table]]
    assert found == KEYS[table] + kept
    assert found == [(column.name, column.sql_type) for column in layouts()[table].columns]


@pytest.mark.parametrize("table", TABLES)
def test_readers_see_every_column_of_the_wire_or_its_time(lake: Lake, table: str) -> None:
    shown = {name for name, *_ in ask(lake, f"DESCRIBE {table}")}
    times = {
        "seen_device": {"seen_from_second": "valid_from"},
        "device_window": {"window_start_second": "window_start"},
        "held_window": {"from_second": "held_from", "to_second": "held_to"},
        "device_event": {"event_microsecond": "happened_at"},
        "engine_window": {"window_start_second": "window_start"},
        "engine_histogram": {"window_start_second": "window_start"},
    }[table]
    assert {times.get(c.name, c.name) for c in columns(table)} <= shown
    assert {"cluster", "node"} <= shown


def test_views_read_what_their_headers_say(lake: Lake) -> None:
    views = package_files("store", "views")
    assert {view.name for view in views} == set(TABLES)
    for view in views:
        assert tables_read(lake.connection, view.text) == set(view.reads), view.name


def test_files_are_sorted_compressed_and_of_one_day(new_lake: Lake, tmp_path: Path) -> None:
    windows = [window(f"GPU-{n % 5}", NOW - 60 * n) for n in range(2000)]
    append(new_lake, [batch("n", 1, {"device_window": windows})])
    files = sorted((tmp_path / "data" / "main" / "device_window").rglob("*.parquet"))
    assert [file.parent.name for file in files] == ["day=20600", "day=20601"]
    for file in files:
        found = ask(new_lake, f"SELECT dh, second FROM read_parquet('{file}')")
        assert found == sorted(found)
    described = ask(new_lake, f"SELECT DISTINCT compression FROM parquet_metadata('{files[0]}')")
    assert described == [("ZSTD",)]


@settings(max_examples=15)
@given(st.lists(any_window(), min_size=1, max_size=20))
def test_every_value_of_a_window_comes_back(lake: Lake, windows: list[dict[str, Any]]) -> None:
    node = f"values-{next(EXAMPLES)}"
    assert append(lake, [batch(node, 1, {"device_window": windows})]) == known(device_window=len(windows))
    names = [c.name for c in columns("device_window") if c.name not in BECOMES_KEYS["device_window"]]
    found = ask(
        lake, f"SELECT device, epoch(window_start)::BIGINT, {', '.join(names)} FROM device_window WHERE node = '{node}'"
    )
    given_rows = [(w["device"], w["window_start_second"], *(w[name] for name in names)) for w in windows]
    assert sorted(found, key=repr) == sorted(given_rows, key=repr)


def test_holdings_keep_their_seconds_and_their_owner(new_lake: Lake) -> None:
    held = holding("GPU-1", NOW + 7, NOW + 31, gpu_millionths=142_857, namespace="ml", pod="p'; DROP TABLE x --")
    append(new_lake, [batch("n", 1, {"held_window": [held]})])
    columns_ = "cluster, node, device, held_from, held_to, gpu_millionths, namespace, pod, job_id"
    start, end = (datetime.fromtimestamp(second, UTC) for second in (NOW + 7, NOW + 31))
    assert ask(new_lake, f"SELECT {columns_} FROM held_window") == [
        ("c", "n", "GPU-1", start, end, 142_857, "ml", "p'; DROP TABLE x --", None)
    ]


def test_what_a_device_was_holds_until_it_is_something_else(new_lake: Lake) -> None:
    seen = [
        {"device": "GPU-1", "seen_from_second": NOW + 60 * n, "kind": "gpu", "driver": driver}
        for n, driver in ((0, "570"), (1, "580"), (1, "580"))
    ]
    append(new_lake, [batch("n", 1, {"seen_device": seen}), batch("n", 2, {"seen_device": seen[1:2]})])
    found = ask(new_lake, "SELECT driver, epoch(valid_from)::BIGINT, valid_to IS NULL FROM seen_device ORDER BY 2")
    assert found == [("570", NOW, False), ("580", NOW + 60, True)]


def test_a_batch_is_stored_once(new_lake: Lake) -> None:
    one, two, three = (batch("n", number, {"device_window": [window("GPU-1")]}) for number in (1, 2, 3))
    assert append(new_lake, [one, two, one]) == known(2, device_window=2)
    before = new_lake.snapshot()
    assert append(new_lake, [two, one]) == known(0, 1)
    assert new_lake.snapshot() == before, "nothing to commit"
    assert append(new_lake, [two, three]) == known(0, device_window=1)
    assert ask(new_lake, "SELECT count(*) FROM device_window") == [(3,)]


def test_two_hubs_know_each_other_s_batches_and_devices(new_lake: Lake, tmp_path: Path) -> None:
    rows = {"device_window": [window("GPU-1")]}
    with open_lake(tmp_path) as other_lake:
        one, other = Appender(new_lake), Appender(other_lake)
        for number in range(4):
            assert one.append([batch("n", 2 * number, rows)]) == known(device_window=1)
            assert other.append([batch("n", 2 * number, rows), batch("n", 2 * number + 1, rows)]) == known(
                0, device_window=1
            )
            assert one.append([batch("n", 2 * number + 1, rows)]) == known(0)
        other.append([batch("m", 0, {"device_window": [window("GPU-2")]})])
        one.append([batch("m", 1, {"device_window": [window("GPU-2"), window("GPU-3")]})])
    numbers = ask(new_lake, "SELECT device_no, node, device FROM lake.device_number ORDER BY 1")
    assert numbers == [(1, "n", "GPU-1"), (2, "m", "GPU-2"), (3, "m", "GPU-3")]


def test_an_appender_forgets_what_was_rolled_back(new_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its temporary tables are as the lake is, after a lost race (the change runs twice) and after a failure."""
    appender = Appender(new_lake)
    rows = {"device_window": [window("GPU-1")]}
    yesterday = {"device_window": [window("GPU-1", NOW - DAY)]}
    assert appender.append([batch("n", 0, rows)]) == known(device_window=1)
    really = new_lake._transaction
    losses = iter([True, False])

    def transaction(change: Any) -> Any:
        def lost(con: Any) -> None:
            change(con)
            raise duckdb.TransactionException("Transaction conflict")

        return really(lost if next(losses, False) else change)

    monkeypatch.setattr(new_lake, "_transaction", transaction)
    assert appender.append([batch("n", 1, yesterday), batch("m", 1, rows)]) == known(device_window=2)
    with pytest.raises(RowsRefusedError):
        appender.append([batch("k", 1, {"device_window": [window("GPU-1", retired_pages=2**40)]})])
    assert appender.append([batch("k", 1, rows)]) == known(device_window=1)
    again = [batch("n", 0, rows), batch("n", 1, yesterday), batch("m", 1, rows), batch("k", 1, rows)]
    assert appender.append(again) == known(0, 1, 2, 3)
    assert ask(new_lake, "SELECT count(*) FROM device_window") == [(4,)]


def test_each_part_of_the_name_makes_another_batch(new_lake: Lake) -> None:
    rows = {"device_window": [window("GPU-1")]}
    batches = [
        batch("n", 1, rows),
        batch("m", 1, rows),
        batch("n", 2, rows),
        batch("n", 1, rows, cluster="d"),
        batch("n", 1, rows, boot_id="b"),
        batch("n", 1, rows, spool_id="s"),
    ]
    for one in batches:
        assert append(new_lake, [one]) == known(device_window=1)
    assert append(new_lake, batches) == known(*range(6))


@settings(max_examples=15)
@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=12), min_size=1, max_size=4))
def test_whatever_the_order_each_sequence_counts_once(lake: Lake, groups: list[list[int]]) -> None:
    node = f"order-{next(EXAMPLES)}"
    stored: set[int] = set()
    for group in groups:
        batches = [batch(node, n, {"device_window": [window("GPU", busy_ms=n)]}) for n in group]
        done = append(lake, batches)
        new = [place for place, n in enumerate(group) if n not in stored and n not in group[:place]]
        assert done.known == set(range(len(group))) - set(new)
        stored |= set(group)
    found = ask(lake, f"SELECT busy_ms, count(*) FROM device_window WHERE node = '{node}' GROUP BY 1")
    assert dict(found) == dict.fromkeys(stored, 1)
    query = f"SELECT count(*), sum(last_sequence - first_sequence + 1) FROM lake.ingest_batch WHERE node = '{node}'"
    assert ask(lake, query)[0][1] == len(stored)


def test_a_batch_without_rows_is_remembered(new_lake: Lake) -> None:
    empty = batch("n", 1, {"device_window": []})
    assert append(new_lake, [empty]) == known()
    assert append(new_lake, [empty]) == known(0)


def test_a_device_has_one_number_on_each_node(new_lake: Lake) -> None:
    """A card that moved is another device of another node; its windows do not change their node after the fact."""
    append(new_lake, [batch("n", 1, {"device_window": [window("GPU-1"), window("GPU-2")]})])
    append(new_lake, [batch("n", 2, {"device_window": [window("GPU-2")], "held_window": [holding("GPU-3")]})])
    append(new_lake, [batch("m", 1, {"device_window": [window("GPU-1")]})])
    numbers = ask(new_lake, "SELECT node, device, device_no FROM lake.device_number ORDER BY device_no")
    assert numbers == [("n", "GPU-1", 1), ("n", "GPU-2", 2), ("n", "GPU-3", 3), ("m", "GPU-1", 4)]
    assert ask(new_lake, "SELECT node, device, count(*) FROM device_window GROUP BY ALL ORDER BY ALL") == [
        ("m", "GPU-1", 1), ("n", "GPU-1", 1), ("n", "GPU-2", 2),
    ]  # fmt: skip


def test_an_event_that_is_read_again_is_stored_once(new_lake: Lake) -> None:
    first = batch("n", 1, {"device_event": [event("e1"), event("e2"), event("e1")]})
    assert append(new_lake, [first]) == known(device_event=2)
    again = batch("n", 2, {"device_event": [event("e2"), event("e3")]})
    other_node = batch("m", 1, {"device_event": [event("e1")]})
    assert append(new_lake, [again, other_node]) == known(device_event=2)
    assert ask(new_lake, "SELECT node, event_id FROM device_event ORDER BY ALL") == [
        ("m", "e1"), ("n", "e1"), ("n", "e2"), ("n", "e3"),
    ]  # fmt: skip


def test_rows_that_cannot_be_stored_leave_nothing_of_the_group(new_lake: Lake) -> None:
    good = batch("n", 1, {"device_window": [window("GPU-1")]})
    bad = batch("m", 1, {"device_window": [window("GPU-2", retired_pages=2**40)]})
    with pytest.raises(RowsRefusedError, match="Conversion Error"):
        append(new_lake, [good, bad])
    assert ask(new_lake, "SELECT count(*) FROM lake.device_number") == [(0,)]
    assert append(new_lake, [good]) == known(device_window=1)


def test_an_append_that_is_tried_again_stores_once(new_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `Lake.write` does when another writer won: the whole change runs a second time, in a new transaction."""
    really = new_lake.write

    def write_after_a_lost_race(change: Any) -> Any:
        def lost(con: Any) -> None:
            change(con)
            raise KeyError("lost the race")

        with pytest.raises(KeyError):
            really(lost)
        return really(change)

    monkeypatch.setattr(new_lake, "write", write_after_a_lost_race)
    rows = {"device_window": [window("GPU-1")], "device_event": [event("e")]}
    assert append(new_lake, [batch("n", 1, rows)]) == known(device_window=1, device_event=1)
    assert ask(new_lake, "SELECT count(*) FROM device_window") == [(1,)]


def test_sums_do_not_hang_on_the_number_of_threads(new_lake: Lake) -> None:
    windows = [
        window(f"GPU-{n % 8}", NOW - 60 * n, power_microjoules=n * 7919, busy_ms=n % 60_001) for n in range(3000)
    ]
    append(new_lake, [batch("n", 1, {"device_window": windows})])
    sums = set()
    for threads in (1, 4):
        new_lake.connection.execute(f"SET threads = {threads}")
        sums.add(ask(new_lake, "SELECT sum(power_microjoules), sum(busy_ms) FROM lake.device_window")[0])
    assert sums == {(sum(n * 7919 for n in range(3000)), sum(n % 60_001 for n in range(3000)))}
