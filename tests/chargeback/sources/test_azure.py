"""Azure's cost details: actual and amortized cost are one delivery, each charge once, and neither total moves."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.load import LoadOptions, QuarantineError, load_charges
from chargeback.sources.azure import exports
from fleet.errors import InputError
from store.snapshots import show_current
from store.sqlfile import materialise, package_files
from tests.chargeback.sources.azure_rows import (
    AZURE_FILES,
    BOUGHT,
    COVERED,
    RESERVED,
    UNUSED,
    VM,
    charges,
    found,
    staged,
    totals,
    write_details,
    write_pair,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from store.lake import Connection, Lake

REAL = (AZURE_FILES / "EA_ActualCost_Small.csv", AZURE_FILES / "EA_AmortizedCost_Small.csv")
AZURE = LoadOptions("azure")
SHOWN = (
    "part, part_row, charge_category, charge_class, charge_frequency, billed_cost, effective_cost, list_cost, "
    "contracted_cost, list_unit_price, contracted_unit_price, pricing_category, pricing_quantity, pricing_unit, "
    "consumed_quantity, consumed_unit, commitment_discount_id, commitment_discount_status, commitment_discount_type, "
    "commitment_discount_quantity, capacity_reservation_id, capacity_reservation_status, resource_id, resource_name, "
    "resource_type, region_id, service_name, x_instance_type, x_cost_center, x_line_type, x_stated_resource_id, "
    "x_stated_commitment_id, charge_period_start, charge_period_end, billing_period_start, billing_period_end, tags"
)


def cost_of(path: Path) -> Decimal:
    """A dataset's total, kept like the lake keeps it: to 12 decimals a row."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return sum((round(Decimal(row["Cost"]), 12) for row in csv.DictReader(stream)), Decimal())


def rows(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    show_current(lake.connection)
    return lake.connection.execute(query).fetchall()


def test_real_rows_bill_the_actual_total_and_cost_the_amortized_total(
    con: Connection, golden: Callable[[str, str | bytes], None]
) -> None:
    broken = staged(con, REAL)
    assert totals(con) == (cost_of(REAL[0]), cost_of(REAL[1]))
    assert totals(con) == (Decimal("8.545007786742"), Decimal("16.296932136637"))
    # 16 rows of the samples have no counterpart, and one of them costs nothing.
    assert found(broken) == {"I6": 15, "M1": 16, "M4": 1}
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(SHOWN.split(", "))
    writer.writerows(charges(con, SHOWN))
    golden("load/azure-cost-details.csv", out.getvalue())


def test_o18_a_reserved_day_costs_8_times_its_hourly_price(con: Connection) -> None:
    staged(con, REAL)
    day = "billed_cost, effective_cost, consumed_quantity, consumed_unit, commitment_discount_quantity"
    (used,) = con.sql("FROM staged_charge").filter("commitment_discount_quantity > 0").select(day).fetchall()
    assert used == (0, Decimal("0.493152"), 8, "Hours", 16)


def test_e28_usage_under_a_reservation_counts_once_with_its_amortized_cost(con: Connection, tmp_path: Path) -> None:
    actual = [{}, BOUGHT, COVERED]
    amortized = [{}, COVERED | {"Cost": "30"}, UNUSED | {"Cost": "10"}]
    broken = staged(con, write_pair(tmp_path, actual, amortized))
    assert found(broken) == {}
    costs = "billed_cost, effective_cost"
    assert charges(con, f"charge_category, commitment_discount_status, {costs}, consumed_quantity") == [
        ("Usage", None, Decimal("2359.68"), Decimal("2359.68"), 24),
        ("Purchase", None, 45, 0, None),
        ("Usage", "Used", 0, 30, 18),
        ("Usage", "Unused", 0, 10, None),
    ]
    assert totals(con) == (Decimal("2404.68"), Decimal("2399.68"))


def test_e32_purchase_usage_and_unused_part_name_one_commitment_in_one_letter_case(
    con: Connection, tmp_path: Path
) -> None:
    shouted = UNUSED | {"benefitId": UNUSED["benefitId"].upper(), "Cost": "10"}
    staged(con, write_pair(tmp_path, [BOUGHT], [COVERED | {"Cost": "30"}, shouted]))
    order = "/providers/microsoft.capacity/reservationorders/0-0-0"
    assert charges(con, "commitment_discount_id, resource_id") == [
        (order, f"{order}/reservations/"), (order, VM.lower()), (order, order)
    ]  # fmt: skip


def test_e42_an_hourly_price_with_6_decimals_drifts_and_the_drift_is_kept(con: Connection, tmp_path: Path) -> None:
    day = RESERVED | {"Quantity": "24", "Cost": "1.479456"}  # 24 * 0.061644, where 540 / 8760 = 0.0616438...
    year = [day | {"AdditionalInfo": f'{{"day": {number}}}'} for number in range(365)]
    bought = BOUGHT | {"Cost": "540", "UnitPrice": "540", "Frequency": "OneTime"}
    assert found(staged(con, write_pair(tmp_path, [bought], year))) == {}
    assert totals(con) == (540, Decimal("540.001440"))


TYPES = ("usage", "purchase", "refund", "unusedreservation", "unusedsavingsplan", "credit", "tax")
LINES = st.lists(
    st.tuples(st.booleans(), st.integers(-3, 3), st.sampled_from(TYPES), st.booleans()), min_size=1, max_size=9
)


@given(lines=LINES, named=st.lists(st.sampled_from(["a", "b", None]), min_size=9, max_size=9))
def test_no_total_moves_whatever_the_rows(
    con: Connection, lines: list[tuple[bool, int, str, bool]], named: list[str | None]
) -> None:
    con.execute(
        "CREATE OR REPLACE TEMP TABLE azure_line (source_row BIGINT, is_amortized BOOLEAN, cost DECIMAL(38, 12), "
        "type VARCHAR, is_committed BOOLEAN, pair_key STRUCT(resource VARCHAR, type VARCHAR, cost DECIMAL(38, 12)))"
    )
    for number, ((is_amortized, cost, kind, is_committed), name) in enumerate(zip(lines, named, strict=False), start=2):
        key = {"resource": name, "type": kind, "cost": cost}
        values = [number, is_amortized, cost, kind, is_committed, key]
        con.execute("INSERT INTO azure_line VALUES (?, ?, ?, ?, ?, ?)", values)
    (step,) = (file for file in package_files("chargeback", "sources") if file.name == "azure_pair")
    materialise(con, step, {})
    pairs = con.sql("FROM azure_pair").select("billed_cost, effective_cost").fetchall()
    sums = (sum(billed for billed, _ in pairs), sum(effective for _, effective in pairs))
    actual = sum(cost for is_amortized, cost, *_ in lines if not is_amortized)
    amortized = sum(cost for is_amortized, cost, *_ in lines if is_amortized)
    plain = sum(cost for is_amortized, cost, _, is_committed in lines if not is_amortized and not is_committed)
    assert sums == (actual, amortized if any(line[0] for line in lines) else plain)
    left_out = con.sql("FROM azure_line ANTI JOIN azure_pair USING (source_row) WHERE NOT is_amortized AND cost <> 0")
    assert left_out.fetchall() == []


def test_alike_rows_are_paired_one_by_one(con: Connection, tmp_path: Path) -> None:
    alike = [{"Cost": "2"}, {"Cost": "1"}, {"Cost": "1"}]
    assert found(staged(con, write_pair(tmp_path, alike, alike[::-1]))) == {}
    assert charges(con, "part, billed_cost, effective_cost") == [("ActualCost.csv", c, c) for c in (2, 1, 1)]
    broken = staged(con, write_pair(tmp_path, alike, alike[:2]))
    assert found(broken) == {"I6": 1, "M1": 1}
    assert totals(con) == (4, 3)


def test_files_of_different_times_are_quarantined_by_the_rows_that_differ(
    fresh: Callable[[], Lake], tmp_path: Path
) -> None:
    late = {"Date": "02/05/2026", "Cost": "3"}
    with pytest.raises(QuarantineError, match=r"M1 in 1 row \(row 3: '3\.000000000000' stands in actual cost only"):
        load_charges(fresh(), write_pair(tmp_path, [{}, late], [{}]), AZURE)


def test_actual_cost_alone_counts_only_where_nothing_is_committed(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    path = write_details(tmp_path / "ActualCost.csv", [{}, BOUGHT, COVERED])
    with pytest.raises(QuarantineError, match=r"M2 in 2 rows .*load actual and amortized cost together"):
        load_charges(lake, [path], AZURE)
    write_details(path, [{}])
    load_charges(lake, [path], AZURE)
    assert rows(lake, "SELECT billed_cost, effective_cost FROM charge") == [(Decimal("2359.68"), Decimal("2359.68"))]
    # Both datasets, later, replace it: they are of the same source.
    load_charges(lake, write_pair(tmp_path, [{}, BOUGHT], [{}, COVERED | {"Cost": "30"}]), AZURE)
    assert rows(lake, "SELECT count(*), sum(billed_cost), sum(effective_cost) FROM charge") == [
        (3, Decimal("2404.68"), Decimal("2389.68"))
    ]


def test_amortized_cost_alone_is_refused(con: Connection, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"AmortizedCost\.csv: is amortized cost, which bills nothing"):
        exports(con, [write_details(tmp_path / "AmortizedCost.csv", [{}])])


def test_swapped_names_are_found(con: Connection, tmp_path: Path) -> None:
    actual, amortized = [{}, BOUGHT, COVERED], [{}, COVERED | {"Cost": "30"}]
    assert found(staged(con, write_pair(tmp_path, amortized, actual))) == {"I2": 1, "I3": 1}


def test_the_order_of_the_files_and_a_second_load_change_nothing(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    pair = write_pair(tmp_path, [{}, BOUGHT], [{}, COVERED | {"Cost": "30"}])
    outcomes = [load_charges(lake, paths, AZURE)[0].loaded.outcome for paths in (pair, pair[::-1], pair)]
    assert outcomes == ["loaded", "unchanged", "unchanged"]
    assert rows(lake, "SELECT DISTINCT source, provider FROM lake.snapshot") == [("ActualCost.csv", "azure")]


@pytest.mark.parametrize("names", [("a.csv", "b.csv"), ("actual-amortized.csv", "b.csv"), ("actual.csv", "b.csv")])
def test_files_that_may_be_either_dataset_are_never_added(
    con: Connection, tmp_path: Path, names: Sequence[str]
) -> None:
    with pytest.raises(InputError, match="may be actual or amortized cost, which are never added"):
        exports(con, [write_details(tmp_path / "costs" / name, [{}]) for name in names])


def test_folders_of_an_export_name_dataset_period_and_run(con: Connection, tmp_path: Path) -> None:
    run, other = "11111111-2222-3333-4444-555555555555", "66666666-2222-3333-4444-555555555555"

    def part(export: str, days: str, run: str, number: int = 0) -> Path:
        return write_details(tmp_path / export / days / run / f"part_{number}_0001.csv", [{}])

    february = [part("ml-actual", "20260201-20260228", run, number) for number in (0, 1)]
    amortized = part("ml-amortized", "20260201-20260228", other)
    (export,) = exports(con, [*february, amortized])
    assert (export.source, export.export_name, export.period, export.execution_id) == (
        "azure/ml-actual/2026-02", "ml-actual", "2026-02", run
    )  # fmt: skip
    assert [part.name for part in export.parts] == [
        "ml-actual/part_0_0001.csv", "ml-actual/part_1_0001.csv", "ml-amortized/part_0_0001.csv"
    ]  # fmt: skip
    (march,) = exports(con, [part("ml-actual", "20260301-20260331", run)])
    assert march.source == "azure/ml-actual/2026-03"
    with pytest.raises(InputError, match="is of another run of export ml-actual over 2026-02"):
        exports(con, [*february, part("ml-actual", "20260201-20260228", other)])


def test_files_of_two_periods_are_flagged(con: Connection, tmp_path: Path) -> None:
    march = {"BillingPeriodStartDate": "03/01/2026", "BillingPeriodEndDate": "03/31/2026", "Date": "03/02/2026"}
    assert found(staged(con, write_pair(tmp_path, [{}, march], [{}, march]))) == {"M5": 1}
