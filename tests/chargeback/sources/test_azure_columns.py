"""Rows of Azure's cost details as charges: what each column becomes, and what Azure leaves out."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from chargeback.load import LoadOptions, load_charges
from chargeback.sources.azure import exports
from fleet.errors import InputError
from tests.chargeback.ledger import empty_lake
from tests.chargeback.sources.azure_rows import (
    BOUGHT,
    COVERED,
    PLAN,
    ROW,
    charges,
    found,
    staged,
    write_details,
    write_pair,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from store.lake import Connection, Lake


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake for what is refused."""
    for fresh in empty_lake(tmp_path_factory.mktemp("azure")):
        yield fresh()


def test_dates_are_months_first_and_the_end_of_a_period_is_its_last_day(con: Connection, tmp_path: Path) -> None:
    staged(con, [write_details(tmp_path / "a.csv", [{}])])
    times = "charge_period_start, charge_period_end, billing_period_start, billing_period_end"
    ((*moments,),) = charges(con, times)
    assert [f"{moment:%Y-%m-%dT%H:%M%z}" for moment in moments] == [
        "2026-02-04T00:00+0000", "2026-02-05T00:00+0000", "2026-02-01T00:00+0000", "2026-03-01T00:00+0000"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"Date": "13/02/2026"}, "row 2, column ChargePeriodStart: is empty, or what it is made from cannot be read"),
        ({"BillingPeriodEndDate": "2026"}, "column BillingPeriodStart"),
        ({"Cost": "1,5"}, "row 2, column Cost: '1,5' is not a plain decimal number"),
        ({"ChargeType": "Gift"}, "row 2, column ChargeCategory: 'Gift' is not Usage"),
        ({"ChargeType": ""}, "row 2, column ChargeType: must not be empty"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_row(
    empty: Lake, tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_charges(empty, [write_details(tmp_path / "a.csv", [changed])], LoadOptions("azure"))
    assert said in str(caught.value)


def test_a_file_without_what_a_charge_needs_is_refused(con: Connection, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ChargeType,Date,BillingAccountId,Cost\nUsage,02/01/2026,1,5\n")
    with pytest.raises(InputError, match="column BillingPeriodStartDate: required column is missing"):
        exports(con, [path])
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="is no Azure cost export"):
        exports(con, [path])


def test_a_customer_agreement_s_columns_in_parquet(con: Connection, tmp_path: Path) -> None:
    row = {name[0].lower() + name[1:]: text for name, text in ROW.items() if name not in {"Cost", "Product"}} | {
        "costInBillingCurrency": "2170.9056", "billingCurrency": "EUR", "pricingCurrency": "USD",
        "exchangeRatePricingToBilling": "0.92", "productName": "ND H100 v5", "billingProfileId": "AAAA-BG7",
        "invoiceId": "G012345",
    }  # fmt: skip
    path = tmp_path / "costs.parquet"
    columns = ", ".join(f'CAST(? AS VARCHAR) AS "{name}"' for name in row)
    dates = (
        "DATE '2026-02-04' AS date, TIMESTAMP '2026-02-01' AS billingPeriodStartDate, "
        "DATE '2026-02-28' AS billingPeriodEndDate"
    )
    made = f"CREATE OR REPLACE TEMP TABLE mca AS SELECT * REPLACE ({dates}) FROM (SELECT {columns})"
    con.execute(made, list(row.values()))
    con.execute(f"COPY mca TO '{path}'")
    assert found(staged(con, [path])) == {}
    names = "billing_account_id, invoice_id, billing_currency, pricing_currency, charge_description"
    assert charges(con, names) == [("AAAA-BG7", "G012345", "EUR", "USD", "ND H100 v5")]
    cost = Decimal("2170.9056")
    assert charges(
        con, "x_fx_rate, billed_cost, contracted_cost, list_unit_price, charge_period_start::DATE::VARCHAR"
    ) == [(Decimal("0.92"), cost, cost, Decimal("90.4544"), "2026-02-04")]


def test_e5_negative_usage_and_what_else_azure_calls_a_charge(con: Connection, tmp_path: Path) -> None:
    plain = [
        {"Cost": "-0.01288992", "Quantity": "-1"},
        {"ChargeType": "Purchase", "Frequency": "OneTime", "PublisherType": "Marketplace", "Cost": "12"},
        {"PricingModel": "Spot", "Cost": "3"},
    ]
    refund = BOUGHT | {"ChargeType": "Refund", "Cost": "-45"}
    actual = [*plain, refund, {"ChargeType": "RoundingAdjustment", "Cost": "-0.004"}]
    plan = {"PricingModel": "SavingsPlan", "benefitId": PLAN, "Cost": "7"}
    amortized = [*plain, plan, plan | {"ChargeType": "UnusedSavingsPlan", "Cost": "2"}]
    assert found(staged(con, write_pair(tmp_path, actual, amortized))) == {}
    wanted = "charge_category, charge_class, pricing_category, billed_cost, effective_cost, commitment_discount_type"
    assert charges(con, wanted) == [
        ("Usage", None, "Standard", Decimal("-0.01288992"), Decimal("-0.01288992"), None),
        ("Purchase", None, "Standard", 12, 12, None),
        ("Usage", None, "Dynamic", 3, 3, None),
        ("Purchase", "Correction", "Committed", -45, 0, "Reservation"),
        ("Adjustment", None, "Standard", Decimal("-0.004"), Decimal("-0.004"), None),
        ("Usage", None, "Committed", 0, 7, "Savings Plan"),
        ("Usage", None, "Committed", 0, 2, "Savings Plan"),
    ]


def test_e26_a_retail_price_of_0_is_unknown_where_something_costs_more(con: Connection, tmp_path: Path) -> None:
    free = {"Cost": "0", "PayGPrice": "0", "UnitPrice": "0"}
    staged(con, write_pair(tmp_path, [free, COVERED], [free, COVERED | {"Cost": "30"}]))
    assert charges(con, "list_cost, list_unit_price, contracted_cost") == [(0, 0, 0), (None, None, Decimal("1769.76"))]


def test_e27_the_missing_tax_is_noted(con: Connection, tmp_path: Path) -> None:
    (noted,) = staged(con, [write_details(tmp_path / "a.csv", [{}, {}])])
    assert (noted.identity, noted.severity, noted.row_count) == ("M3", "info", 1)
    assert noted.rows[0].message == "the export has no tax: load the invoice with its tax"
    assert staged(con, [write_details(tmp_path / "a.csv", [{}, {"ChargeType": "Tax", "ResourceId": ""}])]) == ()


def test_cost_centers_that_differ_in_letter_case_are_flagged_and_kept(con: Connection, tmp_path: Path) -> None:
    centers = [{"CostCenter": name} for name in ("ACM9000", "acm9000", "ACM9000", "other")]
    broken = staged(con, [write_details(tmp_path / "a.csv", centers)])
    assert found(broken) == {"M4": 1}
    (row,) = next(one.rows for one in broken if one.identity == "M4")
    assert (row.source_row, row.value, row.message) == (3, "acm9000", "is also written ACM9000")
    assert charges(con, "x_cost_center") == [(center["CostCenter"],) for center in centers]


def test_an_instance_of_a_scale_set_is_named_as_kubernetes_names_it(con: Connection, tmp_path: Path) -> None:
    scale_set = "/subscriptions/S/resourceGroups/MC_RG/providers/Microsoft.Compute/virtualMachineScaleSets/aks-gpu-vmss"
    info = '{"VMName": "aks-gpu-vmss_12", "ServiceType": "Standard_ND96isr_H100_v5", "VMCapacityReservationId": "F8-1"}'
    staged(con, [write_details(tmp_path / "a.csv", [{"ResourceId": scale_set, "AdditionalInfo": info}])])
    wanted = "resource_id, x_stated_resource_id, x_instance_type, capacity_reservation_id, capacity_reservation_status"
    assert charges(con, wanted) == [
        (f"{scale_set.lower()}/virtualmachines/12", scale_set, "Standard_ND96isr_H100_v5", "f8-1", "Used")
    ]


def test_tags_without_braces_are_json_and_hostile_text_stays_text(con: Connection, tmp_path: Path) -> None:
    tags = ['"team": "a","org": "b"', '{"team": "a"}', '"team": "a"}, {"x"', "'; DROP TABLE x; --", ""]
    staged(con, [write_details(tmp_path / "a.csv", [{"Tags": text, "AdditionalInfo": text} for text in tags])])
    assert charges(con, "tags") == [
        ('{"team": "a","org": "b"}',), ('{"team": "a"}',), ('"team": "a"}, {"x"',), ("'; DROP TABLE x; --",), (None,)
    ]  # fmt: skip


def test_units_of_measure_say_how_many_of_what(con: Connection, tmp_path: Path) -> None:
    units = ["10K", "100 Hours", "1/Month", " 1 hour ", "1 Fortnight"]
    staged(con, [write_details(tmp_path / "a.csv", [{"UnitOfMeasure": unit, "Quantity": "0.5"} for unit in units])])
    half = Decimal("0.5")
    assert charges(con, "pricing_quantity, pricing_unit, consumed_quantity, consumed_unit") == [
        (half, "10K", 5000, "Units"), (half, "100 Hours", 50, "Hours"), (half, "1/Month", half, "Units/Month"),
        (half, "1 hour", half, "Hours"), (half, "1 Fortnight", None, None),
    ]  # fmt: skip
