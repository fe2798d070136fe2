"""Worked examples (O...) and edge cases (E...) of bills, as far as lines of an AWS report express them."""

from __future__ import annotations

import gzip
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from chargeback.sources.judging import broken_identities
from tests.chargeback.sources.cur import (
    EVERY,
    FIXTURES,
    PLAN,
    RESERVATION,
    charges,
    covered,
    found_identities,
    hours,
    line,
    plan_fee,
    staged,
    total,
)

if TYPE_CHECKING:
    from pathlib import Path

    from store.lake import Connection


def test_o20_the_generated_report_of_three_gpu_instances(con: Connection, tmp_path: Path) -> None:
    path = tmp_path / "nise_gpu_2026-10.csv"
    path.write_bytes(gzip.decompress((FIXTURES / "nise_gpu_2026-10.csv.gz").read_bytes()))
    rows = staged(con, path)
    types = ("p5.48xlarge", "p4d.24xlarge", "g5.4xlarge")
    of_type = [[row for row in rows if row["x_instance_type"] == name] for name in types]
    assert [total(of, "billed_cost") for of in of_type] == ["2641.92", "1053.966816", "77.952"]
    assert [total(of, "consumed_quantity") for of in of_type] == ["48", "48", "48"]
    assert total(of_type[1], "effective_cost") == "677.76"  # 48 x 14.12
    # It has no Negation lines, no ARN of the plan and no invoice: all three are said, none refuses it.
    assert found_identities(con) == {"A2": "warn", "A3": "info", "A4": "warn"}


def test_o3_savings_plan_all_upfront_used_three_quarters(con: Connection, tmp_path: Path) -> None:
    # 52.40 an hour; 18 of 24 hours used; 10.15 on demand. The purchase is 52.40 x 8,760 = 459,024.00; the text's
    # 459,000.00 is wrong.
    rows = charges(
        con,
        tmp_path,
        line("SavingsPlanUpfrontFee", "459024", **{PLAN: "sp-1"}),
        *hours(0, 18, covered("78.60", "52.40")),
        *hours(0, 18, line("SavingsPlanNegation", "-78.60", **{PLAN: "sp-1"})),
        *hours(0, 18, plan_fee("0", "52.40", "52.40")),
        *hours(18, 6, plan_fee("0", "52.40", "0")),
        line("Usage", "10.15"),
    )
    used = [row for row in rows if row["commitment_discount_status"] == "Used"]
    unused = [row for row in rows if row["commitment_discount_status"] == "Unused"]
    assert (total(used, "effective_cost"), total(unused, "effective_cost")) == ("943.2", "314.4")
    assert (total(rows, "billed_cost"), total(rows, "effective_cost")) == ("459034.15", "1267.75")
    assert total(used, "consumed_quantity") == "18"
    # The bridge of the day: what is billed is what is consumed and what is paid ahead.
    assert Decimal("459034.15") - Decimal("1267.75") == Decimal("457766.40")


@pytest.mark.parametrize(("hour_count", "wanted"), [(8760, "353028"), (8784, "353995.2")])
def test_o4_savings_plan_all_upfront_unused(con: Connection, tmp_path: Path, hour_count: int, wanted: str) -> None:
    # 40.30 an hour for a year or a leap year; a day of it, of which nothing is used.
    upfront = Decimal("40.30") * hour_count
    rows = charges(
        con,
        tmp_path,
        line("SavingsPlanUpfrontFee", str(upfront), **{PLAN: "sp-1"}),
        *hours(0, 24, plan_fee("0", "40.30", "0")),
    )
    assert (total(rows, "billed_cost"), total(rows, "effective_cost")) == (wanted, "967.2")
    assert {row["commitment_discount_status"] for row in rows if row["effective_cost"]} == {"Unused"}


def test_o6_reserved_instance_partly_upfront(con: Connection, tmp_path: Path) -> None:
    # 220,000.00 upfront and 12 x 18,333.33 is 439,999.96: four cents less than 440,000.00, which nothing here adds.
    rows = charges(
        con,
        tmp_path,
        line("Fee", "220000.00", **{RESERVATION: "ri-1"}),
        *[line("RIFee", "18333.33", reservation_unused_recurring_fee="0", **{RESERVATION: "ri-1"}) for _ in range(12)],
        # A day: 440,000 / 8,760 an hour has no end, AWS writes ten decimals.
        *hours(
            0, 24, line("DiscountedUsage", "0", reservation_effective_cost="50.2283105023", **{RESERVATION: "ri-1"})
        ),
    )
    assert total(rows, "billed_cost") == "439999.96"
    assert (
        total(rows, "effective_cost") == "1205.4794520552"
    )  # the specification's 1,205.52 is 24 times a rounded price
    assert len(rows) == 37  # nothing was left unused, so no fee is two charges


def test_o15_reserved_instance_without_flexibility(con: Connection, tmp_path: Path) -> None:
    # 365.00 upfront a year and 0.05 an hour, February: 672 hours, 600 used. Used 55.00, unused 6.60; upfront part of
    # both is 28.00.
    unused = {
        "reservation_unused_amortized_upfront_fee_for_billing_period": "3", "reservation_unused_recurring_fee": "3.6",
    }  # fmt: skip
    rows = charges(
        con,
        tmp_path,
        line("RIFee", "33.6", **unused, **{RESERVATION: "ri-1"}),
        *hours(
            0, 600, line("DiscountedUsage", "0", reservation_effective_cost="0.0916666667", **{RESERVATION: "ri-1"})
        ),
    )
    used = [row for row in rows if row["commitment_discount_status"] == "Used"]
    assert (round(Decimal(total(used, "effective_cost")), 6), rows[-1]["effective_cost"]) == (55, Decimal("6.6"))
    assert round(Decimal(total(rows, "effective_cost")), 6) == Decimal("61.6")
    assert found_identities(con) == {}


def test_o17_unused_hours_of_a_savings_plan_cost_their_commitment(con: Connection, tmp_path: Path) -> None:
    rows = charges(con, tmp_path, *hours(0, 100, plan_fee("0.1", "0.1", "0")))
    assert (total(rows, "billed_cost"), total(rows, "effective_cost")) == ("10", "10")  # the guide's example printed 1


def test_o16_the_accelerated_split_of_aws_repeats_the_instance(con: Connection, tmp_path: Path) -> None:
    # p3.16xlarge at $10 an hour: 8 GPUs, 64 vCPUs, 488 GB weigh 9, 0.9 and 0.1. (The page prints $0.00506 for a GB,
    # a digit too few, and its text copy $110 an hour.)
    unit = Decimal(10) / (8 * 9 + 64 * Decimal("0.9") + 488 * Decimal("0.1"))
    prices = [round(unit * weight, 10) for weight in (Decimal(9), Decimal("0.9"), Decimal("0.1"))]
    assert prices == [Decimal("0.5044843049"), Decimal("0.0504484305"), Decimal("0.0056053812")]
    parent = {"split_line_item_parent_resource_id": "i-1"}
    parts = [
        line("Usage", "0", **parent, split_line_item_split_cost=str(price * amount), split_line_item_unused_cost="0")
        for price, amount in zip(prices, (8, 64, 488), strict=True)
    ]
    rows = charges(con, tmp_path, line("Usage", "10", line_item_resource_id="i-1"), *parts)
    split = [row for row in rows if row["x_is_split_row"]]
    assert abs(sum(row["effective_cost"] for row in split) - 10) < Decimal("0.0000001")
    assert total(rows, "billed_cost") == "10"
    assert {(row["resource_id"], row["allocated_method_id"]) for row in split} == {("i-1", "AWS split cost allocation")}
    assert found_identities(con) == {}


def test_e8_negation_has_no_hours(con: Connection, tmp_path: Path) -> None:
    rows = charges(con, tmp_path, covered("2.00", "1.20"), line("SavingsPlanNegation", "-2.00", **{PLAN: "sp-1"}))
    assert (total(rows, "consumed_quantity"), total(rows, "pricing_quantity")) == ("1", "1")
    assert (total(rows, "billed_cost"), total(rows, "effective_cost")) == ("0", "1.2")


def test_e9_fees_of_a_plan_are_not_counted_beside_its_usage(con: Connection, tmp_path: Path) -> None:
    rows = charges(
        con,
        tmp_path,
        line("SavingsPlanUpfrontFee", "876", **{PLAN: "sp-1"}),
        covered("2.00", "1.20"),
        line("SavingsPlanNegation", "-2.00", **{PLAN: "sp-1"}),
        plan_fee("1.10", "1.20", "1.20"),
    )
    assert (total(rows, "billed_cost"), total(rows, "effective_cost")) == ("877.1", "1.2")


def test_e10_the_rest_of_an_hour_that_outruns_the_plan_is_a_line_of_its_own(con: Connection, tmp_path: Path) -> None:
    rows = charges(
        con,
        tmp_path,
        covered("1.50", "0.90", line_item_resource_id="i-1", line_item_usage_amount="0.75"),
        line("SavingsPlanNegation", "-1.50", **{PLAN: "sp-1"}),
        line("Usage", "0.50", line_item_resource_id="i-1", line_item_usage_amount="0.25"),
    )
    of_instance = [row for row in rows if row["resource_id"] == "i-1"]
    assert (total(of_instance, "effective_cost"), total(of_instance, "consumed_quantity")) == ("1.4", "1")
    assert total(rows, "billed_cost") == "0.5"


def test_e18_blended_cost_is_not_read(con: Connection, tmp_path: Path) -> None:
    rows = charges(con, tmp_path, line("Usage", "1.5", line_item_blended_cost="9", line_item_net_blended_cost="8"))
    assert (rows[0]["billed_cost"], rows[0]["effective_cost"]) == (Decimal("1.5"), Decimal("1.5"))


def test_e17_an_invoice_that_is_not_issued_is_said(con: Connection, tmp_path: Path) -> None:
    rows = charges(
        con, tmp_path, line("Usage", "1", bill_invoice_id="Estimated"), line("Usage", "1", bill_invoice_id="")
    )
    assert [row["invoice_id"] for row in rows] == [None, None]
    (found,) = broken_identities(con)
    assert (found.identity, found.severity, found.rows[0].message) == (
        "A3", "info", "is empty in 2 lines of 2026-02: their invoice is not issued, the amounts are estimates",
    )  # fmt: skip


def test_e29_capacity_block_and_its_refund_are_one_prepaid_account(con: Connection, tmp_path: Path) -> None:
    start = {"line_item_usage_start_date": "2026-02-12T11:30:00Z", "line_item_usage_end_date": "2026-02-12T11:30:00Z"}
    usage = {"line_item_usage_type": "USE2-CapacityBlockFee:p5.48xlarge", "product_region_code": "us-east-2"}
    rows = charges(
        con,
        tmp_path,
        line("Fee", "42287.62", **start, **usage),
        line("Fee", "-42287.62", **start, **usage),
        # us-east-1 leaves the prefix out; without a region column the zone says it.
        line(
            "Usage", "354", **start, line_item_usage_type="CapacityBlockFee:p4d.24xlarge", product_region_code="",
            line_item_availability_zone="us-east-1f",
        ),
        line("Tax", "1", **start, **usage),
    )  # fmt: skip
    key = "capacity-block:us-east-2/p5.48xlarge/2026-02-12"
    assert [(row["commitment_discount_id"], row["x_origin"], row["charge_category"]) for row in rows] == [
        (key, "capacity_block", "Purchase"),
        (key, "capacity_block", "Purchase"),
        ("capacity-block:us-east-1/p4d.24xlarge/2026-02-12", "capacity_block", "Purchase"),
        (None, "export", "Tax"),
    ]
    assert [row["effective_cost"] for row in rows] == [0, 0, 0, 1]
    assert (total(rows[:2], "billed_cost"), rows[0]["x_instance_type"]) == ("0", "p5.48xlarge")
    assert found_identities(con) == {}


def test_e31_a_capacity_reservation_is_used_unused_or_not_said(con: Connection) -> None:
    rows = [row for row in staged(con, EVERY) if row["capacity_reservation_id"] is not None]
    assert [(row["resource_id"].rpartition(":")[2], row["capacity_reservation_status"]) for row in rows] == [
        ("capacity-reservation/cr-1", "Unused"),
        ("i-cr", "Used"),
        ("capacity-reservation/cr-1", None),  # marks the reservation of 2, whose hours the other lines have
    ]
    assert [row["consumed_quantity"] for row in rows] == [1, 1, None]


def test_e31_idle_reserved_hours_are_seen_without_the_columns_of_reservations(con: Connection, tmp_path: Path) -> None:
    arn = "arn:aws:ec2:us-east-1:111111111111:capacity-reservation/cr-2"
    idle = line("Usage", "3", line_item_usage_type="EUC1-UnusedBox:p4d.24xlarge", line_item_resource_id=arn)
    other = line("Usage", "3", line_item_usage_type="EUC1-BoxUsage:p4d.24xlarge", line_item_resource_id="i-1")
    rows = charges(con, tmp_path, idle, other)
    found = [(row["capacity_reservation_id"], row["capacity_reservation_status"]) for row in rows]
    assert found == [(arn, "Unused"), (None, None)]
