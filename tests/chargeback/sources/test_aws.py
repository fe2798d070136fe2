"""Cost and Usage Reports of AWS: what each line bills and costs, in every form that AWS delivers."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.load import LoadOptions, QuarantineError, load_charges
from chargeback.sources.judging import broken_identities
from fleet.errors import InputError
from store.lake import Lake
from tests.chargeback.sources.cur import (
    EVERY,
    FIXTURES,
    PLAN,
    RESERVATION,
    charges,
    covered,
    found_identities,
    line,
    plan_fee,
    staged,
    total,
    write_csv,
    write_parquet,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from store.lake import Connection

AWS = LoadOptions(provider="aws")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("lake")
    with Lake.open(folder / "catalog.sqlite", folder / "data") as lake:
        yield lake


def by_type(rows: list[dict[str, Any]], column: str) -> dict[str, str]:
    """Exact sums by the provider's own line type, without rows that repeat others'."""
    types = dict.fromkeys(row["x_line_type"] for row in rows)
    return {name: total([row for row in rows if row["x_line_type"] == name], column) for name in types}


def test_every_line_type_bills_and_costs_what_the_table_says(con: Connection) -> None:
    rows = staged(con, EVERY)
    assert by_type(rows, "billed_cost") == {
        "Usage": "98.955284", "SavingsPlanCoveredUsage": "21.957642", "SavingsPlanNegation": "-21.957642",
        "SavingsPlanRecurringFee": "20", "SavingsPlanUpfrontFee": "1000", "DiscountedUsage": "0", "RIFee": "37.2",
        "Fee": "42687.62", "Tax": "8.25", "Credit": "-5", "Refund": "-2.5", "EdpDiscount": "-3",
        "BundledDiscount": "-1", "PrivateRateDiscount": "-0.5",
    }  # fmt: skip
    assert by_type(rows, "effective_cost") == {
        "Usage": "98.955284", "SavingsPlanCoveredUsage": "14.12", "SavingsPlanNegation": "0",
        "SavingsPlanRecurringFee": "5.88", "SavingsPlanUpfrontFee": "0", "DiscountedUsage": "0.9", "RIFee": "3.75",
        "Fee": "100", "Tax": "8.25", "Credit": "-5", "Refund": "-2.5", "EdpDiscount": "-3",
        "BundledDiscount": "-1", "PrivateRateDiscount": "-0.5",
    }  # fmt: skip
    assert (total(rows, "billed_cost"), total(rows, "effective_cost")) == ("43840.025284", "219.855284")
    assert found_identities(con) == {}


def test_every_line_type_has_its_category_and_commitment(con: Connection) -> None:
    rows = staged(con, EVERY)
    assert [
        (row["x_line_type"], row["charge_category"], row["commitment_discount_status"], row["charge_frequency"])
        for row in rows
        if row["commitment_discount_id"] is not None
    ] == [
        ("SavingsPlanCoveredUsage", "Usage", "Used", "Usage-Based"),
        ("SavingsPlanNegation", "Usage", "Used", "Usage-Based"),
        ("SavingsPlanRecurringFee", "Purchase", None, "Recurring"),
        ("SavingsPlanUpfrontFee", "Purchase", None, "One-Time"),
        ("DiscountedUsage", "Usage", "Used", "Usage-Based"),
        ("RIFee", "Purchase", None, "Recurring"),
        ("Fee", "Purchase", None, "One-Time"),
        ("Fee", "Purchase", None, "One-Time"),  # the Capacity Block
        ("SavingsPlanRecurringFee", "Usage", "Unused", "Usage-Based"),
        ("RIFee", "Usage", "Unused", "Usage-Based"),
    ]
    plan = "arn:aws:savingsplans::000012345678:savingsplan/sp-1"
    unused = rows[-2]
    assert (unused["commitment_discount_id"], unused["resource_id"], unused["commitment_discount_type"]) == (
        plan, plan, "Savings Plan",
    )  # fmt: skip
    assert (unused["consumed_quantity"], unused["billed_cost"], unused["effective_cost"]) == (None, 0, Decimal("5.88"))
    # The unused part is numbered after the last line, and still names the line that it was made of.
    assert (unused["source_row"], unused["part_row"], rows[3]["source_row"]) == (27, 5, 5)
    assert len({row["source_row"] for row in rows}) == len(rows) == 23
    categories = {row["x_line_type"]: row["charge_category"] for row in rows}
    assert {name: categories[name] for name in ("Tax", "Credit", "Refund", "EdpDiscount", "PrivateRateDiscount")} == {
        "Tax": "Tax", "Credit": "Credit", "Refund": "Adjustment", "EdpDiscount": "Credit",
        "PrivateRateDiscount": "Credit",
    }  # fmt: skip


def test_a_line_keeps_its_ids_as_text_and_its_facts(con: Connection) -> None:
    row = staged(con, EVERY)[0]
    assert (row["billing_account_id"], row["sub_account_id"], row["invoice_id"]) == (
        "000012345678", "111111111111", "2026021",
    )  # fmt: skip
    assert (row["x_instance_type"], row["x_gpu_count"], row["region_id"], row["sku_id"], row["sku_meter"]) == (
        "p5.48xlarge", 8, "us-east-1", "SKUP5", "BoxUsage:p5.48xlarge",
    )  # fmt: skip
    assert (row["service_name"], row["availability_zone"], row["pricing_category"], row["x_origin"]) == (
        "Amazon Elastic Compute Cloud", "us-east-1a", "Standard", "export",
    )  # fmt: skip
    assert (row["list_cost"], row["contracted_cost"], row["consumed_quantity"], row["consumed_unit"]) == (
        Decimal("98.32"), Decimal("55.04"), 1, "Hrs",
    )  # fmt: skip
    assert json.loads(row["tags"]) == {
        "user:team": "llm", "aws:created_by": 'x,"user_y', "costCategory/dept": "research",
    }  # fmt: skip
    assert f"{row['billing_period_start']:%Y-%m-%dT%H:%M%z} {row['charge_period_end']:%Y-%m-%dT%H:%M%z}" == (
        "2026-02-01T00:00+0000 2026-02-10T01:00+0000"
    )


def shown(con: Connection, path: Path) -> list[dict[str, Any]]:
    """The charges of a file, their tags without the order of keys."""
    tags = ("tags", "allocated_tags")
    return [row | {name: json.loads(row[name]) if row[name] else None for name in tags} for row in staged(con, path)]


def test_legacy_report_says_what_cur_2_says(con: Connection) -> None:
    assert shown(con, FIXTURES / "every_line_type_legacy.csv") == shown(con, EVERY)


def test_parquet_says_what_csv_says(con: Connection, tmp_path: Path) -> None:
    def after_header(row: dict[str, Any]) -> dict[str, Any]:
        """Parquet has no header row; the unused parts are numbered after its last line."""
        part_row = row["part_row"]
        moved = 2 if part_row else 1
        return row | {"source_row": row["source_row"] + moved, "part_row": part_row + 1 if part_row else None}

    rows = shown(con, write_parquet(con, tmp_path / "every.parquet", EVERY))
    assert [after_header(row) for row in rows] == shown(con, EVERY)


def test_gzip_says_what_csv_says(con: Connection, tmp_path: Path) -> None:
    packed = tmp_path / "every.csv.gz"
    packed.write_bytes(gzip.compress(EVERY.read_bytes()))
    assert shown(con, packed) == shown(con, EVERY)


def test_e25_split_rows_name_their_pod_and_are_in_no_sum(con: Connection) -> None:
    first, second = [row for row in staged(con, EVERY) if row["x_is_split_row"]]
    assert (first["billed_cost"], second["billed_cost"], first["consumed_quantity"]) == (35, Decimal("20.04"), 6)
    assert (first["resource_id"], first["allocated_resource_id"]) == (
        "i-p5", "arn:aws:eks:us-east-1:111111111111:pod/gpu/ml/train-0/u1",
    )  # fmt: skip
    assert (first["tags"], json.loads(first["allocated_tags"])) == (None, {"aws:eks_namespace": "ml"})


def test_a1_an_unknown_line_type_refuses_the_delivery_by_name(lake: Lake, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", [line("Usage", "1"), line("CarbonOffset", "3")])
    with pytest.raises(
        QuarantineError, match=r"A1 in 1 row \(row 3: 'CarbonOffset' is a line type that we do not know"
    ):
        load_charges(lake, [path], AWS)
    load_charges(lake, [path], LoadOptions(provider="aws", accepted=("A1",)))
    kept = lake.connection.execute("SELECT charge_category, effective_cost FROM lake.charge ORDER BY source_row")
    assert kept.fetchall() == [("Usage", 1), ("Adjustment", 3)]


def test_net_costs_hold_the_discounts_which_are_not_taken_again(con: Connection, tmp_path: Path) -> None:
    fees = {
        "savings_plan_recurring_commitment_for_billing_period": "14400",
        "savings_plan_net_recurring_commitment_for_billing_period": "12960",
    }
    rows = charges(
        con,
        tmp_path,
        line("Usage", "100", line_item_net_unblended_cost="90"),
        line("EdpDiscount", "-10", line_item_net_unblended_cost="-10"),
        line("PrivateRateDiscount", "-1"),
        covered(
            "30", "14.12", line_item_net_unblended_cost="27", savings_plan_net_savings_plan_effective_cost="12.708"
        ),
        line("SavingsPlanNegation", "-30", line_item_net_unblended_cost="-27", **{PLAN: "sp-1"}),
        plan_fee("20", "20", "14.12", line_item_net_unblended_cost="18", **fees),
        line("DiscountedUsage", "0", reservation_effective_cost="1", reservation_net_effective_cost="0.9",
             **{RESERVATION: "ri-1"}),
        line("RIFee", "10", line_item_net_unblended_cost="9", reservation_unused_recurring_fee="2",
             reservation_net_unused_recurring_fee="1.8", **{RESERVATION: "ri-1"}),
        line("Tax", "8"),
    )  # fmt: skip
    assert by_type(rows, "billed_cost") == {
        "Usage": "90", "EdpDiscount": "0", "PrivateRateDiscount": "0", "SavingsPlanCoveredUsage": "27",
        "SavingsPlanNegation": "-27", "SavingsPlanRecurringFee": "18", "DiscountedUsage": "0", "RIFee": "9", "Tax": "8",
    }  # fmt: skip
    effective = by_type(rows, "effective_cost")
    # The plan's discount is that of its fees: 5.88 x 12,960 / 14,400, so that used and unused are the fee again.
    assert (effective["SavingsPlanCoveredUsage"], effective["SavingsPlanRecurringFee"]) == ("12.708", "5.292")
    assert Decimal("12.708") + Decimal("5.292") == 18
    assert (effective["DiscountedUsage"], effective["RIFee"], effective["EdpDiscount"]) == ("0.9", "1.8", "0")


def test_reserved_dedicated_hosts_cost_what_is_billed(con: Connection, tmp_path: Path) -> None:
    host = {"line_item_usage_type": "USE2-HostUsage:p4d", RESERVATION: "ri-host"}
    rows = charges(con, tmp_path, line("DiscountedUsage", "0", **host), line("RIFee", "700", **host))
    assert [(row["commitment_discount_id"], row["effective_cost"]) for row in rows] == [(None, 0), (None, 700)]
    assert found_identities(con) == {}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([line("SavingsPlanCoveredUsage", "2", **{PLAN: "sp-1"})], "row 2, column EffectiveCost"),
        ([line("Usage", "1"), line("SavingsPlanRecurringFee", "2", **{PLAN: "sp-1"})], "row 3, column EffectiveCost"),
        ([line("DiscountedUsage", "0", **{RESERVATION: "ri-1"})], "row 2, column EffectiveCost"),
        ([line("RIFee", "5", **{RESERVATION: "ri-1"})], "row 2, column EffectiveCost"),
        ([line("Usage", "")], "row 2, column line_item_unblended_cost: must not be empty"),
        ([line("Usage", "1,000.00")], "row 2, column line_item_unblended_cost: '1,000.00' is not a plain decimal"),
    ],
)
def test_a_cost_that_cannot_be_told_refuses_the_report(
    lake: Lake, tmp_path: Path, lines: list[dict[str, str]], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_charges(lake, [write_csv(tmp_path / "report.csv", lines)], AWS)
    assert said in str(caught.value)
    kept = lake.connection.execute("SELECT count(*) FROM lake.snapshot WHERE source = 'report.csv'")
    assert kept.fetchall() == [(0,)]


def test_a2_covered_usage_that_is_not_taken_back_is_said_plan_by_plan(con: Connection, tmp_path: Path) -> None:
    charges(
        con, tmp_path, covered("2", "1"), line("SavingsPlanNegation", "-2", **{PLAN: "sp-1"}), covered("3", "1", "sp-2")
    )
    found = [one for one in broken_identities(con) if one.identity == "A2"]
    assert [(row.source_row, row.value, row.message) for row in found[0].rows] == [
        (4, "3.000000000000", "is left of the covered usage of sp-2 after its Negation lines")
    ]


def test_columns_that_vary_by_month_are_accepted_and_not_kept(con: Connection, tmp_path: Path) -> None:
    rows = charges(con, tmp_path, line("Usage", "1", product_a_thing_of_tomorrow="x", discount_other="2"))
    assert len(rows) == 1


def test_tags_have_one_spelling_whatever_form_they_come_in(con: Connection, tmp_path: Path) -> None:
    unified = '{"resourceTags/team":"a","resourceTags/aws:createdBy":"b","costCategory/dept":"c","accountTag/team":"d"}'
    rows = charges(
        con, tmp_path,
        line("Usage", "1", tags=unified),
        line("Usage", "1", resource_tags_user_team="a", cost_category_dept="c"),
        line("Usage", "1", resource_tags="{}", cost_category='{"dept":"c"}'),
        line("Usage", "1", resource_tags='{"user_team":"user_x"}'),
        line("Usage", "1"),
        line("Usage", "1", resource_tags="not json"),
    )  # fmt: skip
    assert [json.loads(row["tags"]) if row["tags"] and row["tags"][0] == "{" else row["tags"] for row in rows] == [
        {"user:team": "a", "aws:createdBy": "b", "costCategory/dept": "c", "accountTag/team": "d"},
        {"user:team": "a", "costCategory/dept": "c"},
        {"costCategory/dept": "c"},
        {"user:team": "user_x"},
        None,
        "not json",
    ]


def test_a_file_of_another_kind_is_refused_by_name(con: Connection, tmp_path: Path) -> None:
    for name, content, said in (
        ("focus.csv", b"BilledCost\n1\n", "is no AWS Cost and Usage Report"),
        ("cut.csv.gz", gzip.compress(b"lineItem/LineItemType\n" * 5000)[:40], "is not a complete gzip file"),
        ("whole.zip", b"PK\x03\x04rest", "is a ZIP archive"),
        ("cut.parquet", b"PAR1 and no more", "is not a complete Parquet file"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=said):
            staged(con, tmp_path / name)
