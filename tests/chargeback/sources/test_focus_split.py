"""Costs that a provider has split by workload (FOCUS 1.3): origin and parts count once, whoever keeps the money."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.chargeback.sources.focus_files import column, staged_rows

if TYPE_CHECKING:
    from pathlib import Path

    from store.lake import Connection

ORIGIN = {"ResourceId": "i-1", "SkuId": "s", "BilledCost": "100"}


def part(cost: str, ratio: str, **more: str) -> dict[str, str]:
    details = f'{{"Elements":[{{"AllocatedRatio":{ratio},"UsageUnit":"vCPU-Hours","UsageQuantity":1}}]}}'
    named = {"AllocatedMethodId": "m", "AllocatedMethodDetails": details, "AllocatedResourceId": f"w-{cost}"}
    return ORIGIN | {"BilledCost": cost} | named | more


PARTS = [part("40", "0.4"), part("35", "0.35"), part("25", "0.25")]


def counted(con: Connection) -> Decimal:
    counted_rows = con.sql("FROM staged_charge").filter("NOT x_is_split_row")
    return sum((billed for (billed,) in counted_rows.select("billed_cost").fetchall()), Decimal(0))


def test_e25_parts_beside_an_origin_that_keeps_its_cost_are_in_no_sum(con: Connection, tmp_path: Path) -> None:
    assert staged_rows(con, tmp_path / "b.csv", [ORIGIN, *PARTS]) == ()
    assert column(con, "x_is_split_row") == [False, True, True, True]
    assert counted(con) == 100


def test_e25_parts_of_a_zeroed_origin_are_the_money(con: Connection, tmp_path: Path) -> None:
    assert staged_rows(con, tmp_path / "b.csv", [ORIGIN | {"BilledCost": "0"}, *PARTS]) == ()
    assert column(con, "x_is_split_row") == [False] * 4
    assert counted(con) == 100


def test_e25_parts_without_an_origin_row_are_the_money(con: Connection, tmp_path: Path) -> None:
    assert staged_rows(con, tmp_path / "b.csv", PARTS) == ()
    assert counted(con) == 100


def test_e25_each_charge_of_a_resource_has_its_own_origin(con: Connection, tmp_path: Path) -> None:
    """One hour keeps its origin, the next is zeroed; data transfer of the same instance is no origin of its compute."""
    later = {"ChargePeriodStart": "2026-02-01T01:00:00Z", "ChargePeriodEnd": "2026-02-01T02:00:00Z"}
    transfer = later | {"SkuId": "transfer", "BilledCost": "9", "ResourceId": "i-1"}
    rows = [ORIGIN, *PARTS, ORIGIN | later | {"BilledCost": "0"}, transfer, *(row | later for row in PARTS)]
    assert staged_rows(con, tmp_path / "b.csv", rows) == ()
    assert column(con, "x_is_split_row") == [False, True, True, True, False, False, False, False, False]
    assert counted(con) == 209


def test_e25_two_charges_of_one_hour_are_split_apart(con: Connection, tmp_path: Path) -> None:
    """The instance keeps its cost beside its parts, its disk is zeroed."""
    disk = {"SkuId": "disk", "AllocatedMethodDetails": ""}
    disk_parts = [part("6", "0.6") | disk, part("4", "0.4") | disk]
    rows = [ORIGIN, *PARTS, ORIGIN | disk | {"BilledCost": "0"}, *disk_parts]
    assert staged_rows(con, tmp_path / "b.csv", rows) == ()
    assert column(con, "x_is_split_row") == [False, True, True, True, False, False, False]
    assert counted(con) == 110


def test_e25_a_covered_origin_keeps_its_effective_cost(con: Connection, tmp_path: Path) -> None:
    covered = {"CommitmentDiscountId": "sp", "CommitmentDiscountStatus": "Used", "BilledCost": "0"}
    rows = [ORIGIN | covered | {"EffectiveCost": "100"}]
    rows += [row | covered | {"EffectiveCost": row["BilledCost"]} for row in PARTS]
    assert staged_rows(con, tmp_path / "b.csv", rows) == ()
    assert column(con, "x_is_split_row") == [False, True, True, True]


def test_i9_parts_that_are_not_their_origin_refuse_the_bill(con: Connection, tmp_path: Path) -> None:
    (found,) = staged_rows(con, tmp_path / "b.csv", [ORIGIN | {"BilledCost": "100.01"}, *PARTS])
    assert (found.identity, found.severity) == ("I9", "error")
    assert {row.column for row in found.rows} == {"BilledCost", "EffectiveCost"}


def test_e24_the_ratio_of_a_day_weighs_its_hours_by_cost(con: Connection, tmp_path: Path) -> None:
    """Hours of 100 and 10, of which w had 0.9 and 0.5: 95 of 110 is 0.863636, the mean of the two ratios is 0.7."""
    origin = ORIGIN | {"BilledCost": "110", "ChargePeriodEnd": "2026-02-02T00:00:00Z"}
    day = {"ChargePeriodEnd": "2026-02-02T00:00:00Z"}
    right = [part("95", "0.863636", **day), part("15", "0.136364", **day)]
    wrong = [part("95", "0.7", **day), part("15", "0.3", **day)]
    assert staged_rows(con, tmp_path / "b.csv", [origin, *right]) == ()
    (found,) = staged_rows(con, tmp_path / "b.csv", [origin, *wrong])
    assert [(found.identity, row.source_row, row.column) for row in found.rows] == [
        ("I9", 3, "AllocatedMethodDetails"),
        ("I9", 4, "AllocatedMethodDetails"),
    ]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    costs=st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=5).filter(lambda costs: sum(costs) != 0),
    keeps_cost=st.booleans(),
    place=st.integers(0, 5),
)
def test_any_split_counts_its_cost_once(
    con: Connection, tmp_path: Path, costs: list[int], keeps_cost: bool, place: int
) -> None:
    """Whatever the parts, wherever the origin stands and whether it keeps its cost: the sum is the origin's cost."""
    exact = [Decimal(cost).scaleb(-6) for cost in costs]
    parts = [ORIGIN | {"BilledCost": f"{cost:f}", "AllocatedMethodId": "m"} for cost in exact]
    origin = ORIGIN | {"BilledCost": f"{sum(exact):f}" if keeps_cost else "0"}
    place = min(place, len(parts))
    assert staged_rows(con, tmp_path / "b.csv", [*parts[:place], origin, *parts[place:]]) == ()
    assert counted(con) == sum(exact)
