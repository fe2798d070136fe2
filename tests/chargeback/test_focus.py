"""The column sets of FOCUS 1.0, 1.2, 1.3 and 1.4, each as a small file of our own making."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.load import LoadOptions, load_files
from chargeback.sources.focus import CHARGES
from fleet.errors import InputError
from store.lake import Lake, memory
from store.snapshots import show_current

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

V10 = {
    "AvailabilityZone": "", "BilledCost": "12.5", "BillingAccountId": "000123", "BillingAccountName": "Research",
    "BillingCurrency": "EUR", "BillingPeriodEnd": "2026-06-01T00:00:00Z", "BillingPeriodStart": "2026-05-01T00:00:00Z",
    "ChargeCategory": "Usage", "ChargeClass": "", "ChargeDescription": "GPU node", "ChargeFrequency": "Usage-Based",
    "ChargePeriodEnd": "2026-05-03T11:00:00Z", "ChargePeriodStart": "2026-05-03T10:00:00Z",
    "CommitmentDiscountCategory": "", "CommitmentDiscountId": "", "CommitmentDiscountName": "",
    "CommitmentDiscountStatus": "", "CommitmentDiscountType": "",
    "ConsumedQuantity": "1", "ConsumedUnit": "Hours", "ContractedCost": "12.5", "ContractedUnitPrice": "12.5",
    "EffectiveCost": "12.5", "InvoiceIssuerName": "Example Cloud", "ListCost": "15", "ListUnitPrice": "15",
    "PricingCategory": "Standard", "PricingQuantity": "1", "PricingUnit": "Hours", "ProviderName": "Example Cloud",
    "PublisherName": "Example Cloud", "RegionId": "north-1", "RegionName": "North", "ResourceId": "node-0042",
    "ResourceName": "gpu-a", "ResourceType": "Virtual Machine", "ServiceCategory": "Compute",
    "ServiceName": "GPU Compute", "SkuId": "0007", "SkuPriceId": "0007.1", "SubAccountId": "0099",
    "SubAccountName": "Team A", "Tags": '{"team":"a"}',
}  # fmt: skip
V12 = V10 | {
    "BillingAccountType": "Billing", "CapacityReservationId": "cr-1", "CapacityReservationStatus": "Used",
    "CommitmentDiscountQuantity": "", "CommitmentDiscountUnit": "", "InvoiceId": "2026-0815", "PricingCurrency": "EUR",
    "PricingCurrencyContractedUnitPrice": "12.5", "PricingCurrencyEffectiveCost": "12.5",
    "PricingCurrencyListUnitPrice": "15", "ServiceSubcategory": "Virtual Machines", "SkuMeter": "GPU hours",
    "SkuPriceDetails": '{"GpuCount":8}', "SubAccountType": "Project",
}  # fmt: skip
V13 = {name: value for name, value in V12.items() if name not in ("ProviderName", "PublisherName")} | {
    "AllocatedMethodDetails": "", "AllocatedMethodId": "", "AllocatedResourceId": "", "AllocatedResourceName": "",
    "AllocatedTags": "", "ContractApplied": "", "HostProviderName": "Example Cloud",
    "ServiceProviderName": "Example Cloud",
}  # fmt: skip
V14 = V13 | {"CommitmentProgramEligibilityDetails": "", "InvoiceDetailId": "d-1"}
VERSIONS = {"1.0": V10, "1.2": V12, "1.3": V13, "1.4": V14}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("focus")
    with Lake.open(folder / "catalog.sqlite", folder / "data") as opened:
        yield opened


def write(path: Path, *rows: Mapping[str, str]) -> Path:
    """A CSV with every cell quoted, as most exports are."""
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    path.write_text("".join(",".join('"' + c.replace('"', '""') + '"' for c in line) + "\n" for line in lines))
    return path


def loaded(lake: Lake, path: Path, options: LoadOptions | None = None) -> list[dict[str, Any]]:
    """Load a file and return its rows as they now count."""
    load_files(lake, "charges", [path], options)
    show_current(lake.connection)
    cursor = lake.connection.execute("SELECT * FROM charge WHERE source_file = ? ORDER BY source_row", [path.name])
    names = [name for name, *_ in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_loads_whole(lake: Lake, tmp_path: Path, version: str) -> None:
    (row,) = loaded(lake, write(tmp_path / f"focus-{version}.csv", VERSIONS[version]))
    expected = {
        "source_row": 2, "provider": "Example Cloud", "invoice_issuer": "Example Cloud", "billing_account_id": "000123",
        "sub_account_id": "0099", "charge_category": "Usage", "charge_class": None, "billed_cost": Decimal("12.5"),
        "effective_cost": Decimal("12.5"), "list_cost": Decimal(15), "billing_currency": "EUR", "sku_id": "0007",
        "resource_id": "node-0042", "tags": '{"team":"a"}', "pricing_quantity": Decimal(1),
        "commitment_discount_id": None,
        "charge_period_start": datetime(2026, 5, 3, 10, tzinfo=UTC),
        "invoice_id": None if version == "1.0" else "2026-0815",
        "capacity_reservation_id": None if version == "1.0" else "cr-1",
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected


def test_the_newer_name_of_the_provider_wins_where_it_is_filled(lake: Lake, tmp_path: Path) -> None:
    both = V13 | {"ProviderName": "Old name", "ServiceProviderName": "New name"}
    rows = loaded(lake, write(tmp_path / "both.csv", both, both | {"ServiceProviderName": ""}))
    assert [row["provider"] for row in rows] == ["New name", "Old name"]
    turned = dict(reversed(both.items()))
    (row,) = loaded(lake, write(tmp_path / "turned.csv", turned))
    assert row["provider"] == "New name"


def test_the_providers_own_columns_are_accepted_and_left(lake: Lake, tmp_path: Path) -> None:
    more = V12 | {"x_Discounts": "{}", "x_": "1", "oci_ReferenceNumber": "7"}
    assert len(loaded(lake, write(tmp_path / "own.csv", more))) == 1
    with pytest.raises(InputError, match=r"column Xtra: unknown column"):
        loaded(lake, write(tmp_path / "odd.csv", V12 | {"Xtra": "1"}))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_are_utc_by_definition_whatever_zone_the_user_gives(lake: Lake, tmp_path: Path, zone: str | None) -> None:
    naive = {name: value.removesuffix("Z") if "Period" in name else value for name, value in V10.items()}
    other = naive | {"ChargePeriodStart": "2026-05-03 10:00:00.000", "ChargePeriodEnd": "2026-05-03T11:00"}
    name = f"naive-{zone is None}.csv"
    rows = loaded(lake, write(tmp_path / name, naive | {"SkuId": name}, other), LoadOptions(time_zone=zone))
    assert [row["charge_period_start"] for row in rows] == [datetime(2026, 5, 3, 10, tzinfo=UTC)] * 2
    assert [row["charge_period_end"] for row in rows] == [datetime(2026, 5, 3, 11, tzinfo=UTC)] * 2


@pytest.mark.parametrize("text", ["NULL", "null", "(null)", ""])
def test_the_words_for_nothing_mean_nothing(lake: Lake, tmp_path: Path, text: str) -> None:
    (row,) = loaded(
        lake, write(tmp_path / f"null-{text}.csv", V12 | {"ListCost": text, "ResourceId": text, "SkuId": "0007"})
    )
    assert (row["list_cost"], row["resource_id"]) == (None, None)
    with pytest.raises(InputError, match="row 2, column BilledCost: must not be empty"):
        loaded(lake, write(tmp_path / "none.csv", V12 | {"BilledCost": text}))


@pytest.mark.parametrize("name", [column.name for column in CHARGES.columns if column.required])
def test_a_file_without_a_column_that_the_books_need_is_refused(lake: Lake, tmp_path: Path, name: str) -> None:
    cut = {key: value for key, value in V14.items() if key != name}
    with pytest.raises(InputError, match=f"row 1, column {name}: required column is missing"):
        loaded(lake, write(tmp_path / "cut.csv", cut))


def test_a_parquet_export_reads_like_the_csv(lake: Lake, tmp_path: Path) -> None:
    """Typed as clouds type it: money as double, times with and without zone, tags as a map, in a partition folder."""
    source = write(tmp_path / "source.csv", V12)
    folder = tmp_path / "BILLING_PERIOD=2026-05"
    folder.mkdir()
    path = folder / "export.parquet"
    memory().execute(
        f"COPY (SELECT * REPLACE (CAST(BilledCost AS DOUBLE) AS BilledCost, CAST('0.1' AS DOUBLE) AS EffectiveCost, "
        f"CAST(ListCost AS DECIMAL(20, 4)) AS ListCost, "
        f"CAST(ChargePeriodStart AS TIMESTAMPTZ) AS ChargePeriodStart, "
        f"CAST(left(ChargePeriodEnd, 19) AS TIMESTAMP) AS ChargePeriodEnd, MAP {{'team': 'a'}} AS Tags) "
        f"FROM read_csv('{source}', all_varchar = true, nullstr = '-')) TO '{path}' (FORMAT parquet)"
    )
    (row,) = loaded(lake, path)
    assert (row["billed_cost"], row["effective_cost"], row["list_cost"]) == (Decimal("12.5"), Decimal("0.1"), 15)
    assert row["charge_period_start"] == datetime(2026, 5, 3, 10, tzinfo=UTC)
    assert row["charge_period_end"] == datetime(2026, 5, 3, 11, tzinfo=UTC)
    assert (row["tags"], row["billing_account_id"], row["source_row"]) == ('{"team":"a"}', "000123", 1)
