"""Deliveries of charges: judged before they count, quarantined whole, of one file or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chargeback.load import LoadOptions, QuarantineError, load_charges, load_exports
from chargeback.sources.export import Export, Part
from chargeback.sources.focus import FOCUS
from fleet.errors import InputError
from services.explaining_charges import verdict_lines
from store.lake import Lake
from store.snapshots import show_current
from tests.chargeback.ledger import write_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINE = {
    "ChargePeriodStart": "2026-02-01T00:00:00Z", "ChargePeriodEnd": "2026-02-01T01:00:00Z", "BilledCost": "1.624",
    "EffectiveCost": "1.624", "ResourceId": "i-1",
}  # fmt: skip
ROUNDED = LINE | {"EffectiveCost": "2"}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake.open(tmp_path / "catalog.sqlite", tmp_path / "data") as lake:
        yield lake


def rows(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    show_current(lake.connection)
    return lake.connection.execute(query).fetchall()


def test_a_delivery_that_breaks_an_identity_is_quarantined_and_the_one_before_stays(lake: Lake, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "bill.csv", "charges", [LINE, LINE])
    load_charges(lake, [path])
    write_rows(path, "charges", [LINE, ROUNDED, ROUNDED])
    for _ in range(2):
        with pytest.raises(QuarantineError) as caught:
            load_charges(lake, [path])
    assert str(caught.value) == (
        "bill.csv: quarantined, what it said before still counts: I6 in 2 rows (row 3: '2.000000000000' differs from "
        "BilledCost 1.624000000000 without a commitment)"
    )
    assert rows(lake, "SELECT count(*), sum(effective_cost)::VARCHAR FROM charge") == [(2, "3.248000000000")]
    kept = "SELECT identity, severity, row_count, source_row FROM lake.charge_finding ORDER BY source_row"
    assert rows(lake, kept) == [("I6", "error", 2, 3), ("I6", "error", 2, 4)]
    assert rows(lake, "SELECT status, row_count FROM lake.snapshot ORDER BY loaded_at") == [
        ("accepted", 2),
        ("quarantined", 3),
    ]
    assert list(verdict_lines(caught.value.verdict)) == [
        "bill.csv: quarantined, 3 rows",
        "  USD Usage: 3 rows, billed 4.872000000000, effective 5.624000000000",
        "  rejected I6: 2 rows",
        "    row 3, column EffectiveCost: '2.000000000000' differs from BilledCost 1.624000000000 without a commitment",
        "    row 4, column EffectiveCost: '2.000000000000' differs from BilledCost 1.624000000000 without a commitment",
    ]


def test_who_has_looked_may_accept_what_is_broken(lake: Lake, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "bill.csv", "charges", [ROUNDED])
    (verdict,) = load_charges(lake, [path], LoadOptions(accepted=("I6",)))
    assert (verdict.loaded.outcome, [found.severity for found in verdict.broken]) == ("loaded", ["warn"])
    assert rows(lake, "SELECT count(*) FROM charge") == [(1,)]


def test_one_bad_delivery_of_several_leaves_nothing_of_any(lake: Lake, tmp_path: Path) -> None:
    good = write_rows(tmp_path / "good.csv", "charges", [LINE])
    bad = write_rows(tmp_path / "bad.csv", "charges", [ROUNDED])
    with pytest.raises(QuarantineError, match=r"bad\.csv"):
        load_charges(lake, [good, bad])
    assert rows(lake, "SELECT count(*) FROM charge") == [(0,)]


def test_the_rows_of_several_files_are_told_apart_and_the_order_of_files_changes_nothing(
    lake: Lake, tmp_path: Path
) -> None:
    first = write_rows(tmp_path / "1.csv", "charges", [LINE, LINE | {"ResourceId": "i-2"}])
    second = write_rows(tmp_path / "2.csv", "charges", [LINE | {"ResourceId": "i-3"}])
    parts = (Part("data/1.csv", first), Part("data/2.csv", second))
    load_exports(lake, [Export("cur/2026-02", FOCUS, parts, "cur", "2026-02", "e1")])
    found = rows(lake, "SELECT resource_id, part, part_row, source_row FROM charge ORDER BY source_row")
    assert found == [("i-1", "data/1.csv", 2, 2), ("i-2", "data/1.csv", 3, 3), ("i-3", "data/2.csv", 2, 5)]
    (again,) = load_exports(lake, [Export("cur/2026-02", FOCUS, parts[::-1], "cur", "2026-02", "e2")])
    assert again.loaded.outcome == "unchanged"
    load_exports(lake, [Export("cur/2026-02", FOCUS, parts[1:], "cur", "2026-02", "e3")])
    assert rows(lake, "SELECT resource_id FROM charge") == [("i-3",)]
    assert rows(lake, "SELECT execution_id FROM lake.snapshot ORDER BY loaded_at") == [("e1",), ("e3",)]


def test_a_file_that_cannot_be_read_refuses_its_whole_delivery(lake: Lake, tmp_path: Path) -> None:
    first = write_rows(tmp_path / "1.csv", "charges", [LINE])
    second = write_rows(tmp_path / "2.csv", "charges", [LINE | {"BilledCost": "1,5"}])
    with pytest.raises(InputError, match=r"2\.csv: row 2, column BilledCost"):
        load_exports(lake, [Export("cur", FOCUS, (Part("1.csv", first), Part("2.csv", second)))])
    assert rows(lake, "SELECT count(*) FROM lake.snapshot") == [(0,)]
