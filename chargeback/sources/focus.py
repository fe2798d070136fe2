"""FOCUS Cost and Usage, versions 1.0 to 1.4: the columns we keep, under our names, and the ones we accept and leave.

Source: FinOps Open Cost and Usage Specification. Its times are UTC by definition; exports that leave the zone out are
read so, and that is said (identity I13). 1.3 renamed ProviderName to ServiceProviderName; both feed `provider`.
Oracle's own columns begin with `oci_`; the sample of the FinOps Foundation numbers its rows in a column `Id`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from chargeback.sources.export import Dialect, Export, Part
from store.columns import Column, FileSpec, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.lake import Connection

_KEPT = (
    Column("ProviderName", "provider", Kind.TEXT),
    Column("ServiceProviderName", "provider", Kind.TEXT),
    Column("InvoiceIssuerName", "invoice_issuer", Kind.NAME, required=True, filled=True),
    Column("HostProviderName", "host_provider", Kind.TEXT),
    Column("BillingAccountId", "billing_account_id", Kind.TEXT, required=True, filled=True),
    Column("SubAccountId", "sub_account_id", Kind.TEXT),
    Column("SubAccountName", "sub_account_name", Kind.TEXT),
    Column("InvoiceId", "invoice_id", Kind.TEXT),
    Column("InvoiceDetailId", "invoice_detail_id", Kind.TEXT),
    Column("BillingPeriodStart", "billing_period_start", Kind.TIME, required=True, filled=True),
    Column("BillingPeriodEnd", "billing_period_end", Kind.TIME, required=True, filled=True),
    Column("ChargePeriodStart", "charge_period_start", Kind.TIME, required=True, filled=True),
    Column("ChargePeriodEnd", "charge_period_end", Kind.TIME, required=True, filled=True),
    Column("ChargeCategory", "charge_category", Kind.TEXT, required=True, filled=True),
    Column("ChargeClass", "charge_class", Kind.TEXT),
    Column("ChargeFrequency", "charge_frequency", Kind.TEXT),
    Column("ChargeDescription", "charge_description", Kind.TEXT),
    Column("BilledCost", "billed_cost", Kind.MONEY, required=True, filled=True),
    Column("EffectiveCost", "effective_cost", Kind.MONEY, required=True, filled=True),
    Column("ListCost", "list_cost", Kind.MONEY),
    Column("ContractedCost", "contracted_cost", Kind.MONEY),
    Column("ListUnitPrice", "list_unit_price", Kind.MONEY),
    Column("ContractedUnitPrice", "contracted_unit_price", Kind.MONEY),
    Column("BillingCurrency", "billing_currency", Kind.CURRENCY, required=True, filled=True),
    Column("PricingCurrency", "pricing_currency", Kind.TEXT),
    Column("PricingCategory", "pricing_category", Kind.TEXT),
    Column("PricingQuantity", "pricing_quantity", Kind.MONEY),
    Column("PricingUnit", "pricing_unit", Kind.TEXT),
    Column("ConsumedQuantity", "consumed_quantity", Kind.MONEY),
    Column("ConsumedUnit", "consumed_unit", Kind.TEXT),
    Column("CommitmentDiscountId", "commitment_discount_id", Kind.TEXT),
    Column("CommitmentDiscountStatus", "commitment_discount_status", Kind.TEXT),
    Column("CommitmentDiscountType", "commitment_discount_type", Kind.TEXT),
    Column("CommitmentDiscountCategory", "commitment_discount_category", Kind.TEXT),
    Column("CommitmentDiscountQuantity", "commitment_discount_quantity", Kind.MONEY),
    Column("CommitmentDiscountUnit", "commitment_discount_unit", Kind.TEXT),
    Column("CapacityReservationId", "capacity_reservation_id", Kind.TEXT),
    Column("CapacityReservationStatus", "capacity_reservation_status", Kind.TEXT),
    Column("ResourceId", "resource_id", Kind.TEXT),
    Column("ResourceName", "resource_name", Kind.TEXT),
    Column("ResourceType", "resource_type", Kind.TEXT),
    Column("RegionId", "region_id", Kind.TEXT),
    Column("AvailabilityZone", "availability_zone", Kind.TEXT),
    Column("ServiceCategory", "service_category", Kind.TEXT),
    Column("ServiceName", "service_name", Kind.TEXT),
    Column("SkuId", "sku_id", Kind.TEXT),
    Column("SkuPriceId", "sku_price_id", Kind.TEXT),
    Column("SkuMeter", "sku_meter", Kind.TEXT),
    Column("SkuPriceDetails", "sku_price_details", Kind.TEXT),
    Column("AllocatedMethodId", "allocated_method_id", Kind.TEXT),
    Column("AllocatedMethodDetails", "allocated_method_details", Kind.TEXT),
    Column("AllocatedResourceId", "allocated_resource_id", Kind.TEXT),
    Column("AllocatedResourceName", "allocated_resource_name", Kind.TEXT),
    Column("AllocatedTags", "allocated_tags", Kind.TEXT),
    Column("Tags", "tags", Kind.TEXT),
)
_LEFT = (
    "BillingAccountName", "BillingAccountType", "CommitmentDiscountName", "CommitmentProgramEligibilityDetails",
    "ContractApplied", "Id", "PricingCurrencyContractedUnitPrice", "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice", "PublisherName", "RegionName", "ServiceSubcategory", "SubAccountType",
)  # fmt: skip

CHARGES = FileSpec(
    kind="charges",
    table="charge",
    columns=_KEPT,
    other_columns=_LEFT,
    custom_prefixes=("x_", "oci_"),
    null_texts=("", "NULL", "null", "(null)", "NaN"),
    zone="UTC",
)
_AS_WRITTEN = (
    Column("ChargePeriodStart", "charge_period_start_text", Kind.TEXT),
    Column("BillingPeriodStart", "billing_period_start_text", Kind.TEXT),
)
"""Read a second time as text, to see whether the file's times carry a zone."""
_AZURE_SKU = Column("x_SkuDetails", "sku_price_details", Kind.TEXT)
"""Where Azure describes the SKU; a filled SkuPriceDetails, which comes later, wins."""

FOCUS: Final = Dialect("focus", replace(CHARGES, columns=(_AZURE_SKU, *_KEPT, *_AS_WRITTEN)), "focus")


def exports(_: Connection, paths: Sequence[Path]) -> tuple[Export, ...]:
    """Each file is a delivery of its own: a later file of the same name replaces it."""
    return tuple(Export(path.name, FOCUS, (Part(path.name, path),)) for path in paths)
