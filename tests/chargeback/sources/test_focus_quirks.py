"""What real FOCUS files do beside the specification: columns, spellings, words for nothing, numbers as text."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from chargeback.sources.focus import CHARGES
from fleet.errors import InputError
from tests.chargeback.sources.focus_files import FOCUS_FILES, column, staged, staged_rows

if TYPE_CHECKING:
    from pathlib import Path

    from store.lake import Connection

COLUMNS = json.loads((FOCUS_FILES / "columns.json").read_text("utf-8"))


@pytest.mark.parametrize("version", COLUMNS)
def test_every_column_of_every_version_is_known(version: str) -> None:
    known = {column.name for column in CHARGES.columns} | set(CHARGES.other_columns)
    unknown = [name for name in COLUMNS[version] if name not in known and not name.startswith(CHARGES.custom_prefixes)]
    assert unknown == []


@pytest.mark.parametrize("text", ["", "null", "(null)", "NULL", "NaN"])
def test_e4_words_for_nothing(con: Connection, tmp_path: Path, text: str) -> None:
    row = {"PricingCategory": text, "ListCost": text, "ChargeClass": text, "CommitmentDiscountId": text, "SkuId": "1"}
    assert staged_rows(con, tmp_path / "b.csv", [row]) == ()
    names = ("pricing_category", "list_cost", "charge_class", "commitment_discount_id")
    assert [column(con, name) for name in names] == [[None]] * 4


def test_e4_enumerated_words_are_case_folded(con: Connection, tmp_path: Path) -> None:
    row = {
        "ChargeCategory": "USAGE", "ChargeFrequency": "Usage-based", "PricingCategory": "committed", "ResourceId": "sp",
        "CommitmentDiscountId": "sp", "CommitmentDiscountStatus": "unused", "CommitmentDiscountCategory": "SPEND",
        "BilledCost": "0", "ChargeClass": "", "CapacityReservationId": "cr", "CapacityReservationStatus": "UNUSED",
    }  # fmt: skip
    correction = row | {"ChargeClass": "correction", "ChargeFrequency": "one-TIME"}
    assert staged_rows(con, tmp_path / "b.csv", [row, correction, row | {"ChargeFrequency": "Weekly"}]) == ()
    assert column(con, "charge_category") == ["Usage"] * 3
    assert column(con, "charge_class") == [None, "Correction", None]
    assert column(con, "charge_frequency") == ["Usage-Based", "One-Time", "Weekly"]
    assert column(con, "pricing_category")[0] == "Committed"
    assert column(con, "commitment_discount_status")[0] == column(con, "capacity_reservation_status")[0] == "Unused"
    assert column(con, "commitment_discount_category")[0] == "Spend"


def test_e4_times_without_a_zone_are_utc_and_said(con: Connection, tmp_path: Path) -> None:
    naive = {"ChargePeriodStart": "2026-02-01 00:00:00", "ChargePeriodEnd": "2026-02-01 01:00:00"}
    (found,) = staged_rows(con, tmp_path / "b.csv", [naive, {}])
    assert (found.identity, found.severity, [row.source_row for row in found.rows]) == ("I13", "warn", [2])
    assert column(con, "charge_period_start") == [datetime(2026, 2, 1, tzinfo=UTC)] * 2
    assert column(con, "x_zone_assumed") == [True, None]


def test_e4_tag_keys_lose_their_blanks_and_the_text_as_stated_is_kept(con: Connection, tmp_path: Path) -> None:
    stated = [
        '{"env": "prod", " org": "trey"}',
        '{" org": "wrong", "org": "right", "n": null, "b": true}',
        '{"org ": 1, " org": 2}',
        '{"org": " as it is "}',
        '{"$.x": 1, "/y ": {"z": [1]}}',
        '"env": "prod"," org": "as some of Azure write it"',
        '{" a": 1, " a": 2}',
    ]
    staged_rows(con, tmp_path / "b.csv", [{"Tags": text} for text in stated])
    assert column(con, "tags") == [
        '{"env":"prod","org":"trey"}',
        '{"org":"right","n":null,"b":true}',
        '{"org":1}',
        '{"org": " as it is "}',
        '{"$.x":1,"/y":{"z":[1]}}',
        stated[5],
        stated[6],  # a key twice: nobody can say which counts
    ]
    assert column(con, "x_stated_tags") == [*stated[:3], None, stated[4], None, None]


def test_e2_ids_are_text_and_lost_zeros_are_named(con: Connection, tmp_path: Path) -> None:
    rows = [{"ProviderName": "AWS", "BillingAccountId": "000000000042", "SubAccountId": "11353890204", "SkuId": "0007"}]
    (found,) = staged_rows(con, tmp_path / "b.csv", rows)
    assert (found.identity, found.severity, found.rows[0].value) == ("I14", "warn", "11353890204")
    ids = ("billing_account_id", "sub_account_id", "sku_id")
    assert [column(con, name) for name in ids] == [["000000000042"], ["11353890204"], ["0007"]]


def test_e3_odd_instance_ids_are_ids(con: Connection, tmp_path: Path) -> None:
    assert staged_rows(con, tmp_path / "b.csv", [{"ResourceId": "i-006flle71l19b488a"}]) == ()
    assert column(con, "resource_id") == ["i-006flle71l19b488a"]


def test_e5_negative_usage_needs_no_correction(con: Connection, tmp_path: Path) -> None:
    assert staged_rows(con, tmp_path / "b.csv", [{"BilledCost": "-0.01288992"}]) == ()
    assert column(con, "billed_cost") == [Decimal("-0.01288992")]


def test_e6_an_adjustment_without_effective_cost_costs_what_it_bills(con: Connection, tmp_path: Path) -> None:
    oracle = {"ChargeCategory": "Adjustment", "EffectiveCost": "0", "ListCost": "0", "ListUnitPrice": "0"}
    rows = [oracle | {"BilledCost": "0.192"}, oracle | {"BilledCost": "0.08"}]
    (found,) = staged_rows(con, tmp_path / "b.csv", [*rows, {"ChargeCategory": "Adjustment"}])
    assert (found.identity, found.severity, found.row_count) == ("I5", "warn", 2)
    assert column(con, "effective_cost") == [Decimal("0.192"), Decimal("0.08"), 1]
    assert column(con, "x_stated_effective_cost") == [0, 0, None]


def test_e26_a_price_of_nothing_for_something_is_unknown(con: Connection, tmp_path: Path) -> None:
    zero = {"ListCost": "0", "ListUnitPrice": "0", "ContractedCost": "0", "ContractedUnitPrice": "0"}
    covered = {"BilledCost": "0", "CommitmentDiscountId": "r", "CommitmentDiscountStatus": "Used"}
    rows = [zero | covered | {"EffectiveCost": "0.493152"}, zero | {"BilledCost": "7"}, zero | {"BilledCost": "0"}]
    assert staged_rows(con, tmp_path / "b.csv", rows) == ()
    for name in ("list_cost", "list_unit_price", "contracted_cost", "contracted_unit_price"):
        assert column(con, name) == [None, None, 0]  # what is free costs 0 at list price too


def test_e32_a_commitment_is_its_own_resource_in_any_case(con: Connection, tmp_path: Path) -> None:
    unused = {"BilledCost": "0", "EffectiveCost": "1", "CommitmentDiscountStatus": "Unused"}
    ids = {
        "CommitmentDiscountId": "/providers/Microsoft.Capacity/R-1",
        "ResourceId": "/providers/microsoft.capacity/r-1",
    }
    assert staged_rows(con, tmp_path / "b.csv", [unused | ids]) == ()
    (found,) = staged_rows(
        con, tmp_path / "b.csv", [unused | ids | {"ResourceId": "/providers/microsoft.capacity/r-2"}]
    )
    assert found.identity == "I7"


def test_e33_a_provider_and_its_issuer_may_have_two_names(con: Connection, tmp_path: Path) -> None:
    """A company's name is no marketplace: what AWS bills as Amazon Web Services, Inc. is billed."""
    row = {"ProviderName": "AWS", "InvoiceIssuerName": "Amazon Web Services, Inc.", "BillingAccountId": "1" * 12}
    assert staged_rows(con, tmp_path / "b.csv", [row | {"BilledCost": "1.624"}]) == ()
    assert column(con, "billed_cost") == [Decimal("1.624")]


def test_e39_sku_prices_and_services_are_no_keys(con: Connection, tmp_path: Path) -> None:
    row = {"SkuPriceId": "p", "SkuId": "a", "ServiceName": "s", "ServiceCategory": "Compute"}
    rows = [row, row | {"SkuId": "b", "ServiceCategory": "Storage"}, row]
    assert staged_rows(con, tmp_path / "b.csv", rows) == ()
    assert column(con, "sku_id") == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ('{"InstanceType": "p5.48xlarge", "GpuCount": 8}', ("p5.48xlarge", 8, None)),
        (
            '{"x_instance_type": "a3-highgpu-8g", "x_gpu_count": "8", "x_GpuModel": "H100"}',
            ("a3-highgpu-8g", 8, "H100"),
        ),
        ('{"ServiceType": "Standard_ND96isr_H100_v5"}', ("Standard_ND96isr_H100_v5", None, None)),
        ('{"instanceType": "g5.4xlarge", "gpu": "1", "gpuMemory": "24 GB"}', ("g5.4xlarge", 1, None)),
        ('{"GPUCOUNT": 8.0, "GpuCount": 4, "InstanceType": null}', (None, 8, None)),
        ('{"GpuCount": 8, "GpuCount": 4}', (None, None, None)),
        ('"GpuCount": 8', (None, None, None)),
        ("{'GpuCount': 8}", (None, None, None)),
        ('{"GpuCount": "NA"}', (None, None, None)),
        ('{"GpuCount": -1}', (None, None, None)),
        ('{"GpuCount": 1.5}', (None, None, None)),
        ('{"GpuCount": 12345678901234567890}', (None, None, None)),
        ('["p5.48xlarge"]', (None, None, None)),
        ("8x H100, InstanceType p5.48xlarge", (None, None, None)),
        ("", (None, None, None)),
    ],
)
def test_gpus_come_from_the_fields_of_the_sku(
    con: Connection, tmp_path: Path, details: str, expected: tuple[str | None, int | None, str | None]
) -> None:
    row = {"SkuPriceDetails": details, "SkuMeter": "8x H100", "ChargeDescription": "$1.624 per g5.4xlarge hour"}
    staged_rows(con, tmp_path / "b.csv", [row])
    found = tuple(column(con, name)[0] for name in ("x_instance_type", "x_gpu_count", "x_gpu_model"))
    assert found == expected


def test_azure_describes_the_sku_in_a_column_of_its_own(con: Connection, tmp_path: Path) -> None:
    azure = {"x_SkuDetails": '{"ServiceType": "Standard_NC24ads_A100_v4"}'}
    rows = [azure, azure | {"SkuPriceDetails": '{"InstanceType": "Standard_ND96isr_H100_v5"}'}]
    staged_rows(con, tmp_path / "b.csv", rows)
    assert column(con, "x_instance_type") == ["Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5"]


def test_azure_texts_for_no_value(con: Connection, tmp_path: Path) -> None:
    staged_rows(con, tmp_path / "b.csv", [{"SkuPriceId": "-2", "SubAccountName": "Unassigned"}])
    assert (column(con, "sku_price_id"), column(con, "sub_account_name")) == ([None], [None])


@pytest.mark.parametrize(
    ("text", "cost"),
    [("35.2E-7", "0.00000352"), ("1E2", "100"), ("-0.5e1", "-5"), ("-12", "-12"), ("0.480884264", "0.480884264")],
)
def test_i11_numbers_as_focus_writes_them(con: Connection, tmp_path: Path, text: str, cost: str) -> None:
    assert staged_rows(con, tmp_path / "b.csv", [{"BilledCost": text}]) == ()
    assert column(con, "billed_cost") == [Decimal(cost)]


@pytest.mark.parametrize(
    "text", ["+1", "1,234.50", "1 234.50", "$5", "5 USD", "€5", "1.2.3", ".5", "5.", "0x10", "1E+2", "inf"]
)
def test_i11_e40_what_is_no_plain_number_is_refused_by_row(con: Connection, tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        staged_rows(con, tmp_path / "b.csv", [{"EffectiveCost": "1"}, {"EffectiveCost": "1", "BilledCost": text}])
    assert str(caught.value) == f"b.csv: row 3, column BilledCost: {text!r} is not a plain decimal number"


def test_a_parquet_file_has_the_same_quirks(con: Connection, tmp_path: Path) -> None:
    """Typed columns: times with and without a zone, tags and SKU details as maps."""
    staged_rows(con, tmp_path / "b.csv", [{}])
    path = tmp_path / "b.parquet"
    con.sql(f"FROM read_csv('{tmp_path / 'b.csv'}', all_varchar = true)").select(
        "* REPLACE (CAST(left(ChargePeriodStart, 19) AS TIMESTAMP) AS ChargePeriodStart, "
        "CAST(BillingPeriodStart AS TIMESTAMPTZ) AS BillingPeriodStart), "
        "MAP {' team': 'a'} AS Tags, {'InstanceType': 'p5.48xlarge', 'GpuCount': 8} AS SkuPriceDetails"
    ).write_parquet(str(path))
    (found,) = staged(con, path)
    assert (found.identity, found.row_count) == ("I13", 1)
    assert column(con, "tags") == ['{"team":"a"}']
    assert (column(con, "x_instance_type"), column(con, "x_gpu_count")) == (["p5.48xlarge"], [8])
