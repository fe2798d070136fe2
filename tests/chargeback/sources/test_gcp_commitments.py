"""Committed-use discounts of Google Cloud, in both of its accountings: a fee is paid once and lies with who used it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chargeback.sources.gcp_rows import charges, credit, ledger, row, staged, write_json

if TYPE_CHECKING:
    from store.lake import Connection

EXAMPLE = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "billing" / "gcp" / "cud-data-model.json").read_text("utf-8")
)
SUMS = "sum(billed_cost), sum(effective_cost)"
LINES = "sku_id, charge_category, commitment_discount_status, billed_cost, effective_cost"
FEE = "Commitment v1: Nvidia H100 80GB GPU in Iowa for 3 Years"
SPEND_FEE = "Commitment - dollar based v1: GCE for 1 year"


@pytest.fixture(scope="module")
def con() -> Connection:
    return ledger()


def example_rows(scenario: str, accounting: str) -> list[dict[str, Any]]:
    """An hour of Google's worked example as rows of the export."""
    rows = []
    for line in EXAMPLE[scenario][accounting]:
        origin = line.get("orig")
        labels = [{"key": "goog-originating-sku-id", "value": origin}] if origin else []
        credits = [credit(amount, kind) for kind, amount in line.get("credits", [])]
        model = line.get("model", "Default")
        is_committed = line["sku"] == "Fee SKU" or model != "Default"
        subscription = {"instance_id": "subscriptions/e52"} if is_committed else {}
        made = row(
            sku={"id": line["sku"], "description": line["sku"]},
            cost=float(line["cost"]),
            labels=labels,
            credits=credits,
        )
        rows.append(made | {"subscription": subscription, "consumption_model": {"description": model}})
    return rows


@pytest.mark.parametrize("scenario", ["overutilized", "underutilized"])
@pytest.mark.parametrize("accounting", ["before", "after"])
def test_o9_both_accountings_add_up_to_googles_own_net(
    con: Connection, tmp_path: Path, scenario: str, accounting: str
) -> None:
    staged(con, write_json(tmp_path / "a.json", example_rows(scenario, accounting)))
    net = EXAMPLE[scenario][f"net_{accounting}"].rstrip("0")
    assert charges(con, SUMS) == [(net, net)]


def test_o9_before_2025_the_fee_lies_with_the_usage_that_it_covers(con: Connection, tmp_path: Path) -> None:
    staged(con, write_json(tmp_path / "a.json", example_rows("overutilized", "before")))
    assert charges(con, LINES) == [
        ("Fee SKU", "Purchase", None, "0.046868", "0"),
        ("Fee SKU", "Purchase", None, "0.025132", "0"),
        ("RAM SKU", "Usage", None, "0.109401", "0.109401"),  # 0.174496 - 0.065095, beyond the commitment
        ("Core SKU", "Usage", None, "0.058663", "0.058663"),
        ("RAM SKU", "Usage", "Used", "0", "0.046868"),
        ("Core SKU", "Usage", "Used", "0", "0.025132"),
    ]
    staged(con, write_json(tmp_path / "a.json", example_rows("underutilized", "before")))
    assert charges(con, LINES) == [
        ("Fee SKU", "Purchase", None, "0.022994", "0"),
        ("Fee SKU", "Purchase", None, "0.125637", "0"),
        ("Fee SKU", "Purchase", None, "0.067369", "0"),
        ("Fee SKU", "Usage", "Unused", "0", "0.022994"),
        ("RAM SKU", "Usage", "Used", "0", "0.125637"),
        ("Core SKU", "Usage", "Used", "0", "0.067369"),
    ]


def test_o9_since_2025_what_the_offset_leaves_of_the_fee_is_unused(con: Connection, tmp_path: Path) -> None:
    staged(con, write_json(tmp_path / "a.json", example_rows("underutilized", "after")))
    assert charges(con, f"{LINES}, pricing_category") == [
        ("Fee SKU", "Purchase", None, "0.022994", "0", "Committed"),
        ("Fee SKU", "Purchase", None, "0.0000022", "0", "Committed"),  # 0.125637 - 0.1256348: the offset is not the fee
        ("Fee SKU", "Purchase", None, "0.0000109", "0", "Committed"),
        ("RAM SKU", "Usage", None, "0.125637", "0.125637", "Committed"),
        ("Core SKU", "Usage", None, "0.067369", "0.067369", "Committed"),
        ("Fee SKU", "Usage", "Unused", "0", "0.022994", "Committed"),
        ("Fee SKU", "Usage", "Unused", "0", "0.0000022", "Committed"),
        ("Fee SKU", "Usage", "Unused", "0", "0.0000109", "Committed"),
    ]


@pytest.mark.parametrize(
    ("hourly", "sku", "sums"),
    [
        (29.45, "Commitment v1: A2 Cpu in Americas for 1 Year", {24: "706.8", 672: "19790.4", 8760: "257982"}),
        (63.13, "Commitment - dollar based v1: GCE for 1 year", {24: "1515.12", 672: "42423.36", 8760: "553018.8"}),
    ],
)
def test_o5_hourly_fees_without_usage_are_unused_and_sum_exactly(
    con: Connection, tmp_path: Path, hourly: float, sku: str, sums: dict[int, str]
) -> None:
    for hours, total in sums.items():
        starts = [datetime(2026, 2, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(hours)]
        fees = [
            row(
                sku={"id": "FEE", "description": sku}, cost=hourly, labels=[], invoice={"month": f"{start:%Y%m}"},
                usage_start_time=start.isoformat(), usage_end_time=(start + timedelta(hours=1)).isoformat(),
            )
            for start in starts
        ]  # fmt: skip
        staged(con, write_json(tmp_path / "a.json", fees))
        by_status = f"charge_category, commitment_discount_status, {SUMS}"
        assert charges(con, by_status, "GROUP BY ALL") == [
            ("Purchase", None, total, "0"),
            ("Usage", "Unused", "0", total),
        ]


def fee(cost: float, units: float, name: str = FEE, **changes: Any) -> dict[str, Any]:
    changed = {"sku": {"id": "FEE", "description": name}, "cost": cost, "usage": {"amount_in_pricing_units": units}}
    return row(**{"labels": [], "subscription": {"instance_id": "c-1"}, "resource": None, **changed, **changes})


def gpu_hours(cost: float, covered: float, units: float, **changes: Any) -> dict[str, Any]:
    credits = [credit(-covered, "COMMITTED_USAGE_DISCOUNT")] if covered else []
    return row(**{"cost": cost, "credits": credits, "usage": {"amount_in_pricing_units": units}, **changes})


def test_a_resource_commitment_is_shared_by_units_and_the_rest_of_it_is_unused(con: Connection, tmp_path: Path) -> None:
    # 16 GPUs committed for 64.00; 8 covered whole (88 at 11 each), 2 of 4 covered (22 of 44): 10 used, 6 unused.
    rows = [fee(64.0, 16), gpu_hours(88.0, 88.0, 8), gpu_hours(44.0, 22.0, 4)]
    staged(con, write_json(tmp_path / "a.json", rows))
    assert charges(con, f"{LINES}, part_row, commitment_discount_id, resource_type") == [
        ("FEE", "Purchase", None, "64", "0", 1, "c-1", None),
        ("GPU-SKU", "Usage", None, "22", "22", 3, None, "instances"),
        ("FEE", "Usage", "Unused", "0", "24", 1, "c-1", None),
        ("GPU-SKU", "Usage", "Used", "0", "32", 2, "c-1", "instances"),
        ("GPU-SKU", "Usage", "Used", "0", "8", 3, "c-1", "instances"),
    ]


def test_a_row_that_two_kinds_of_commitment_cover_has_a_part_of_each(con: Connection, tmp_path: Path) -> None:
    origin = [{"key": "goog-originating-sku-id", "value": "GPU-SKU"}]
    both = [credit(-33.0, "COMMITTED_USAGE_DISCOUNT"), credit(-8.0, "COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE")]
    rows = [
        fee(12.0, 3),
        fee(7.92, 11, SPEND_FEE, labels=origin, subscription={"instance_id": "flex"}),
        row(cost=44.0, credits=[*both, credit(-1.0, "PROMOTION")], usage={"amount_in_pricing_units": 4.0}),
    ]
    staged(con, write_json(tmp_path / "a.json", rows))
    used = "source_row, charge_category, commitment_discount_id, commitment_discount_type, effective_cost"
    assert charges(con, used, "WHERE part_row = 3") == [
        (3, "Usage", None, None, "3"),
        (6, "Usage", "flex", "spend-based CUD", "7.92"),
        (9, "Usage", "c-1", "resource-based CUD", "12"),
        (12, "Credit", None, None, "-1"),
    ]


def test_each_hour_shares_its_own_fee(con: Connection, tmp_path: Path) -> None:
    later = {"usage_start_time": "2026-08-10 01:00:00 UTC", "usage_end_time": "2026-08-10 02:00:00 UTC"}
    hours = [fee(64.0, 16), fee(32.0, 16, **later), gpu_hours(88.0, 88.0, 8), gpu_hours(88.0, 88.0, 8, **later)]
    staged(con, write_json(tmp_path / "a.json", hours))
    used = "commitment_discount_status, part_row, effective_cost"
    assert charges(con, used, "WHERE commitment_discount_status IS NOT NULL") == [
        ("Unused", 1, "32"),
        ("Unused", 2, "16"),
        ("Used", 3, "32"),
        ("Used", 4, "16"),
    ]


def test_a_fee_is_known_by_its_label_or_offset_where_nothing_else_tells_it(con: Connection, tmp_path: Path) -> None:
    for accounting in ("before", "after"):
        rows = [one | {"subscription": None} for one in example_rows("overutilized", accounting)]
        staged(con, write_json(tmp_path / "a.json", rows))
        assert charges(con, "count(*)", "WHERE charge_category = 'Purchase'") == [(2,)]


@pytest.mark.parametrize(
    "other",
    [
        {"location": {"region": "europe-west4"}},
        {"usage_start_time": "2026-08-10 05:00:00 UTC"},
        {"sku": {"id": "L4", "description": "Nvidia L4 GPU running in Iowa"}},
        {"billing_account_id": "other"},
        {"currency": "EUR"},
    ],
)
def test_a_fee_goes_only_to_usage_of_its_kind_place_hour_account_and_currency(
    con: Connection, tmp_path: Path, other: dict[str, Any]
) -> None:
    staged(con, write_json(tmp_path / "a.json", [fee(64.0, 16), gpu_hours(88.0, 88.0, 8, **other)]))
    assert charges(con, "count(*)", "WHERE commitment_discount_status = 'Used'") == [(0,)]
    assert charges(con, "sum(effective_cost)") == [("64",)]


def test_a_fee_is_not_called_unused_while_its_hour_has_covered_usage_that_nothing_explains(
    con: Connection, tmp_path: Path
) -> None:
    unknown = {"sku": {"id": "N1", "description": "Custom Instance Core running in Iowa"}}
    rows = [fee(64.0, 16), gpu_hours(88.0, 88.0, 8, **unknown)]
    staged(con, write_json(tmp_path / "a.json", rows))
    lines = f"{LINES}, commitment_discount_id"
    assert charges(con, lines) == [
        ("FEE", "Purchase", None, "64", "64", None),
        ("N1", "Usage", None, "0", "0", None),
    ]


def test_commitments_that_cover_the_same_are_one_pot(con: Connection, tmp_path: Path) -> None:
    rows = [fee(32.0, 8), fee(40.0, 8, subscription={"instance_id": "c-2"}), gpu_hours(132.0, 132.0, 12)]
    staged(con, write_json(tmp_path / "a.json", rows))
    sums = f"commitment_discount_id, commitment_discount_status, {SUMS}"
    pot = "gcp:us-central1|Nvidia H100 80GB GPU in Iowa|hour"
    assert charges(con, sums, "GROUP BY ALL") == [
        (pot, "Unused", "0", "18"),
        (pot, "Used", "0", "54"),
        (pot, None, "72", "0"),
    ]


AMOUNTS = st.decimals(min_value="0.000001", max_value=9999, places=6).map(str)
KINDS = st.sampled_from(
    ["COMMITTED_USAGE_DISCOUNT", "COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE", "SUSTAINED_USAGE_DISCOUNT", "PROMOTION"]
)


@st.composite
def exported(draw: st.DrawFn) -> dict[str, Any]:
    """A row of a month with fees of both plans, usage covered by either, both or none, and reversals of it."""
    hour = draw(st.integers(0, 1))
    sign = draw(st.sampled_from([1, 1, 1, -1]))
    common = {"usage_start_time": f"2026-08-10 0{hour}:00:00 UTC", "usage_end_time": f"2026-08-10 0{hour}:30:00 UTC"}
    cost, units = Decimal(draw(AMOUNTS)) * sign, draw(AMOUNTS)
    what = draw(st.sampled_from(["resource fee", "spend fee", "usage", "usage", "usage"]))
    usage = {"usage": {"amount_in_pricing_units": units}}
    if what == "resource fee":
        return row(sku={"id": "F1", "description": FEE}, cost=str(cost), labels=[], **usage, **common)
    if what == "spend fee":
        labels = draw(st.sampled_from([[], [{"key": "goog-originating-sku-id", "value": "GPU-SKU"}]]))
        offset = [credit(str(-cost), "FEE_UTILIZATION_OFFSET")] if draw(st.booleans()) else []
        return row(
            sku={"id": "F2", "description": SPEND_FEE}, cost=str(cost), labels=labels, credits=offset, **usage, **common
        )
    credits = [credit(str(Decimal(draw(AMOUNTS)) * -sign), kind) for kind in draw(st.lists(KINDS, max_size=3))]
    return row(cost=str(cost), credits=credits, **usage, **common)


@given(st.lists(exported(), min_size=1, max_size=8))
@settings(max_examples=15, deadline=None)
def test_whatever_a_month_holds_it_is_billed_and_costs_what_its_rows_and_credits_add_up_to(
    tmp_path_factory: pytest.TempPathFactory, con: Connection, rows: list[dict[str, Any]]
) -> None:
    path = write_json(tmp_path_factory.getbasetemp() / "month.json", rows)
    staged(con, path)
    amounts = [Decimal(one["cost"]) + sum(Decimal(entry["amount"]) for entry in one["credits"]) for one in rows]
    ((billed, effective),) = con.execute(f"SELECT {SUMS} FROM staged_charge").fetchall()
    assert billed == effective == sum(amounts)
    # I4: each commitment is consumed, used or unused, for exactly what it was bought for.
    left = con.execute(
        "SELECT commitment_discount_id, sum(billed_cost) - sum(effective_cost) AS rest FROM staged_charge "
        "WHERE commitment_discount_id IS NOT NULL GROUP BY 1 HAVING rest <> 0"
    ).fetchall()
    assert left == []
    assert con.execute("SELECT count(*) - count(DISTINCT source_row) FROM staged_charge").fetchall() == [(0,)]
