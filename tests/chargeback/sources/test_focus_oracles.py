"""Worked answers that others published, as charges: O1 to O8, O19 and O20 of the billing literature, errors and all.

The specification's examples carry only the columns that they are about; `write_rows` adds account, issuer and currency.
Where a published figure is wrong, the right one is asserted and a comment names the wrong one. What these charges
become in the ledger is shown with the cost model.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.reports import report
from fleet.errors import InputError
from tests.chargeback.ledger import read_rows
from tests.chargeback.sources.focus_files import FOCUS_FILES, column, staged, staged_rows, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from store.lake import Connection

SPEC = FOCUS_FILES / "spec"
Row = dict[str, str]


def spec_rows(name: str) -> list[Row]:
    return read_rows(SPEC / f"{name}.csv")


def sums(con: Connection, by: str = "1") -> dict[Any, Any]:
    """Billed and effective cost of what was staged, by a column."""
    found = con.sql("FROM staged_charge").aggregate(f"{by}, sum(billed_cost), sum(effective_cost)", by).fetchall()
    return {key: (billed, effective) for key, billed, effective in found}


def months(year: int, count: int) -> Iterator[Row]:
    """Consecutive months from January, each as the billing and charge period of a row."""
    bounds = [datetime(year + n // 12, n % 12 + 1, 1, tzinfo=UTC) for n in range(count + 1)]
    for start, end in pairwise(bounds):
        texts = {"Start": start.isoformat(), "End": end.isoformat()}
        yield {f"{kind}Period{side}": text for kind in ("Charge", "Billing") for side, text in texts.items()}


def hours(start: datetime, count: int, each: int = 1) -> Iterator[Row]:
    """Consecutive charge periods of some hours each, `count` hours in all."""
    for n in range(0, count, each):
        at = start + timedelta(hours=n)
        yield {"ChargePeriodStart": at.isoformat(), "ChargePeriodEnd": (at + timedelta(hours=each)).isoformat()}


def purchase(commitment: str, cost: str, frequency: str = "Recurring") -> Row:
    named = {"CommitmentDiscountId": commitment, "ResourceId": commitment}
    return named | {
        "ChargeCategory": "Purchase",
        "ChargeFrequency": frequency,
        "BilledCost": cost,
        "EffectiveCost": "0",
    }


def consumed(commitment: str, cost: str, status: str) -> Row:
    resource = commitment if status == "Unused" else "i-1"
    named = {"CommitmentDiscountId": commitment, "CommitmentDiscountStatus": status, "ResourceId": resource}
    return named | {"BilledCost": "0", "EffectiveCost": cost}


@pytest.mark.parametrize("number", [2, 3])
def test_o1_the_specification_has_times_that_do_not_exist(con: Connection, tmp_path: Path, number: int) -> None:
    rows = spec_rows(f"commitment_discount_purchase_scenario_{number}")
    with pytest.raises(InputError) as caught:
        staged_rows(con, tmp_path / "b.csv", rows)
    # 2023-02-01T30:00:00Z, in the last row of each file
    (problem,) = caught.value.problems
    assert (problem.row, problem.column) == (len(rows) + 1, "ChargePeriodEnd")
    assert "'2023-02-01T30:00:00Z' is not a" in problem.message


def test_o1_the_specification_ends_hours_a_month_late(con: Connection, tmp_path: Path) -> None:
    """Its hourly purchases of 1 January end on 1 February: purchases may, so nothing is refused; the sums are right."""
    rows = spec_rows("commitment_discount_purchase_scenario_3")[:-1]
    staged_rows(con, tmp_path / "b.csv", rows)
    assert sums(con) == {1: (Decimal("4381.00"), 0)}


def test_o1_a_commitment_of_a_dollar_an_hour_costs_8760_however_it_is_paid(con: Connection, tmp_path: Path) -> None:
    (upfront,) = spec_rows("commitment_discount_purchase_scenario_1")
    start = datetime(2023, 1, 1, tzinfo=UTC)
    january = {"BillingPeriodStart": "2023-01-01T00:00:00Z", "BillingPeriodEnd": "2023-02-01T00:00:00Z"}
    rows = [
        upfront | {"CommitmentDiscountId": "all upfront"},
        *(hour | january | purchase("no upfront", "1.00") for hour in hours(start, 8760)),
        upfront | {"CommitmentDiscountId": "partial", "BilledCost": "4380.00"},
        *(day | january | purchase("partial", "12.00") for day in hours(start, 8760, each=24)),  # 24 x 0.50
        # 8,760 x 1.00 x 0.5 / 12; the specification's text says 182.50, and 8,670 for the whole
        upfront | {"CommitmentDiscountId": "partial, monthly", "BilledCost": "4380.00"},
        *(month | purchase("partial, monthly", "365.00") for month in months(2023, 12)),
    ]
    staged_rows(con, tmp_path / "b.csv", rows)
    assert sums(con, "commitment_discount_id") == {
        name: (Decimal(8760), Decimal(0)) for name in ("all upfront", "no upfront", "partial", "partial, monthly")
    }


@pytest.mark.parametrize(
    ("number", "used", "unused", "on_demand"),
    [(1, "1.00", "0", "0"), (2, "0", "1.00", "0"), (3, "0.75", "0.25", "0"), (4, "1.00", "0", "0.50")],
)
def test_o2_used_unused_and_beyond(
    con: Connection, tmp_path: Path, number: int, used: str, unused: str, on_demand: str
) -> None:
    rows = spec_rows(f"commitment_discount_usage_scenario_{number}")
    assert staged_rows(con, tmp_path / "b.csv", rows) == ()
    found = sums(con, "commitment_discount_status")
    nothing = (Decimal(0), Decimal(0))
    effective = [found.get(status, nothing)[1] for status in ("Used", "Unused", None)]
    assert effective == [Decimal(used), Decimal(unused), Decimal(on_demand)]
    assert sum(billed for billed, _ in found.values()) == Decimal(on_demand)


def test_o3_a_savings_plan_used_for_18_of_24_hours(con: Connection, tmp_path: Path) -> None:
    """All upfront, 52.40 an hour. 8,760 hours are 459,024.00; the appendix's text says 459,000.00."""
    day = list(hours(datetime(2026, 2, 1, tzinfo=UTC), 24))
    rows = [
        purchase("sp", "459024.00", "One-Time") | {"ChargePeriodEnd": "2027-02-01T00:00:00Z"},
        *(hour | consumed("sp", "52.40", "Used") for hour in day[:18]),
        *(hour | consumed("sp", "52.40", "Unused") for hour in day[18:]),
        {"BilledCost": "10.15"},
    ]
    assert staged_rows(con, tmp_path / "b.csv", rows) == ()
    by_status = sums(con, "coalesce(commitment_discount_status, charge_category)")
    assert by_status["Used"][1] == Decimal("943.20")
    assert by_status["Unused"][1] == Decimal("314.40")
    ((billed, effective),) = sums(con).values()
    assert (billed, effective) == (Decimal("459034.15"), Decimal("1267.75"))
    # The bridge: what is billed is what is consumed and what stays prepaid.
    assert billed - effective == Decimal("457766.40") == Decimal("459024.00") - Decimal("1257.60")
    assert 672 * Decimal("52.40") == Decimal("35212.80")


@pytest.mark.parametrize(
    ("year", "count", "rate", "total"),
    [
        (2025, 8760, "40.30", "353028.00"),  # O4
        (2024, 8784, "40.30", "353995.20"),  # O4 in a leap year
        (2026, 672, "29.45", "19790.40"),  # O5: February
        (2025, 8760, "29.45", "257982.00"),
        (2026, 24, "29.45", "706.80"),
        (2026, 672, "63.13", "42423.36"),  # O5, flexible commitment
        (2025, 8760, "63.13", "553018.80"),
        (2026, 24, "63.13", "1515.12"),
    ],
)
def test_o4_o5_the_fees_of_each_day_add_up(
    con: Connection, tmp_path: Path, year: int, count: int, rate: str, total: str
) -> None:
    start = datetime(year, 2 if count == 672 else 1, 1, tzinfo=UTC)
    rows = [day | purchase("c", f"{24 * Decimal(rate)}") for day in hours(start, count, each=24)]
    staged_rows(con, tmp_path / "b.csv", rows)
    assert sums(con) == {1: (Decimal(total), Decimal(0))}


def test_o6_twelve_rounded_fees_are_four_cents_short(con: Connection, tmp_path: Path) -> None:
    """220,000.00 and 12 x 18,333.33: a contract of 440,000.00 needs 18,333.37 in its last month.

    Its hour is 440,000 / 8,760 = 50.228311; the appendix prints 50.23 x 24 = 1,205.52 where 24 hours are 1,205.479452.
    """
    fees = [month | purchase("ri", "18333.33") for month in months(2026, 12)]
    rows = [purchase("ri", "220000.00", "One-Time"), *fees]
    staged_rows(con, tmp_path / "b.csv", rows)
    assert sums(con) == {1: (Decimal("439999.96"), Decimal(0))}
    rows[-1]["BilledCost"] = "18333.37"
    staged_rows(con, tmp_path / "b.csv", rows)
    assert sums(con) == {1: (Decimal(440000), Decimal(0))}
    assert (Decimal(440000) * 24 / 8760).quantize(Decimal("0.000001")) == Decimal("1205.479452")


def test_o7_i10_savings_count_covered_usage_and_not_its_purchase(con: Connection, tmp_path: Path) -> None:
    """An RI of 365.00 a year at list 2.00 and contracted 1.80 a day: saved are 365.00, of which 73.00 were negotiated.

    Adding the purchase's own list (365.00) to the usage's, as a plain sum does, gives 1,095.00 and 1,022.00.
    """
    year = {"ChargePeriodStart": "2026-01-01T00:00:00Z", "ChargePeriodEnd": "2027-01-01T00:00:00Z"}
    bought = year | purchase("ri", "365.00", "One-Time") | {"ListCost": "365.00", "ContractedCost": "365.00"}
    days = [
        {"ChargePeriodStart": day.isoformat(), "ChargePeriodEnd": (day + timedelta(days=1)).isoformat()}
        | consumed("ri", "1.00", "Used")
        | {"ListCost": "2.00", "ContractedCost": "1.80"}
        for day in (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(365))
    ]
    staged_rows(con, tmp_path / "b.csv", [bought, *days])
    assert sums(con) == {1: (Decimal(365), Decimal(365))}
    assert (sum(column(con, "list_cost")), sum(column(con, "contracted_cost"))) == (1095, 1022)
    con.execute("CREATE OR REPLACE TABLE lake.posting AS SELECT '2026-02' AS period, 'x' AS charge_snapshot_id")
    con.execute("DELETE FROM lake.charge")
    con.execute("INSERT INTO lake.charge BY NAME SELECT 'x' AS snapshot_id, * FROM staged_charge")
    savings = report("savings")
    found = con.execute(savings.text, savings.bound({"period": "2026-02"}))
    names = [name for name, *_ in found.description or ()]
    (row,) = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    assert (row["list_cost"], row["contracted_cost"], row["effective_cost"]) == (730, 657, 365)
    assert (row["saved"], row["negotiated"], row["committed"]) == (365, 73, 292)


def test_o8_a_correction_posts_in_the_open_month_and_leaves_the_closed_one(con: Connection, tmp_path: Path) -> None:
    """May billed 1,500 for R-111; right were 1,200 there and 300 on R-222. As a ledger and as a delta it sums to 0."""
    expected = {"R-111": Decimal(-300), "R-222": Decimal(300)}
    for style, quantities in (("ledger", [-1000, 800, 200]), ("delta", [-200, 200])):
        rows = spec_rows(f"scenario_1_{style}")
        assert staged_rows(con, tmp_path / "b.csv", rows) == ()
        assert {resource: billed for resource, (billed, _) in sums(con, "resource_id").items()} == expected
        assert column(con, "pricing_quantity") == quantities
        assert set(column(con, "charge_class")) == {"Correction"}
        assert set(column(con, "billing_period_start")) == {datetime(2025, 6, 1, tzinfo=UTC)}
        assert set(column(con, "charge_period_start")) == {datetime(2025, 5, 1, tzinfo=UTC)}
    assert staged_rows(con, tmp_path / "b.csv", spec_rows("scenario_1_original")) == ()
    assert sums(con, "charge_class") == {None: (Decimal(1500), Decimal(1500))}


def test_e34_corrections_of_a_tenth_of_a_cent_are_kept(con: Connection, tmp_path: Path) -> None:
    assert staged_rows(con, tmp_path / "b.csv", spec_rows("scenario_3_itemized_cost_only")) == ()
    assert sums(con, "charge_category") == {"Adjustment": (Decimal("0.002"), Decimal("0.002"))}
    assert column(con, "sku_price_id") == ["USG-123-01", "USG-456-01"]
    assert column(con, "pricing_quantity") == [None, None]


def test_o19_a_spend_agreement_bills_its_shortfall_in_the_last_month(con: Connection, tmp_path: Path) -> None:
    rows = spec_rows("saas_spend_agreements_a1")
    with pytest.raises(InputError) as caught:  # as published: 4/1/25
        staged_rows(con, tmp_path / "b.csv", rows)
    first = caught.value.problems[0]
    assert (first.row, first.column, first.message) == (2, "BillingPeriodEnd", "'5/1/25' is not an RFC 3339 time")
    for row in rows:
        for name in [name for name in row if "Period" in name]:
            month, _, year = row[name].split("/")
            row[name] = f"20{year}-{int(month):02}-01T00:00:00Z"
    assert staged_rows(con, tmp_path / "b.csv", rows) == ()
    assert column(con, "billed_cost") == [48, 120, 60, 972]
    assert sums(con) == {1: (Decimal(1200), Decimal(1200))}


@pytest.mark.parametrize(
    ("provider", "total"),
    [("aws", "21680.581928138869135"), ("azure", "37603.158611616752"), ("gcp", "20775.948943532903")],
)
def test_o20_a_months_billed_and_effective_cost_agree(
    con: Connection, tmp_path: Path, provider: str, total: str
) -> None:
    """To the last of the 12 decimals that are kept: AWS's file has 23 rows with more, each rounded once."""
    staged(con, unpacked(tmp_path, f"focus-1.3-{provider}"))
    ((billed, effective),) = sums(con).values()
    assert billed == effective
    assert abs(billed - Decimal(total)) <= 23 * Decimal("0.0000000000005")
    rounded = Decimal("21680.581928138870") if provider == "aws" else Decimal(total)
    assert billed == rounded
    # I4 holds for each commitment to the last digit: what its purchases bill, its used and unused parts cost.
    bought = "sum(billed_cost) FILTER (WHERE charge_category = 'Purchase')"
    used = "sum(effective_cost) FILTER (WHERE charge_category = 'Usage')"
    found = con.sql("FROM staged_charge").filter("commitment_discount_id IS NOT NULL")
    by_id = found.aggregate(f"commitment_discount_id, {bought}, {used}", "commitment_discount_id").fetchall()
    assert by_id
    assert [row for row in by_id if row[1] != row[2]] == []
