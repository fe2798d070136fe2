"""FOCUS Cost and Usage, versions 1.0 to 1.4: the columns we keep, under our names, and the ones we accept and leave.

Source: FinOps Open Cost and Usage Specification. Its times are UTC by definition; exports that leave the zone out are
read so. 1.3 renamed ProviderName to ServiceProviderName; both feed `provider`.
"""

from __future__ import annotations

from store.columns import Column, FileSpec, Kind

_KEPT = (
    Column("ProviderName", "provider", Kind.TEXT),
    Column("ServiceProviderName", "provider", Kind.TEXT),
    Column("InvoiceIssuerName", "invoice_issuer", Kind.NAME, required=True, filled=True),
    Column("BillingAccountId", "billing_account_id", Kind.TEXT, required=True, filled=True),
    Column("SubAccountId", "sub_account_id", Kind.TEXT),
    Column("InvoiceId", "invoice_id", Kind.TEXT),
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
    Column("BillingCurrency", "billing_currency", Kind.CURRENCY, required=True, filled=True),
    Column("PricingCategory", "pricing_category", Kind.TEXT),
    Column("PricingQuantity", "pricing_quantity", Kind.MONEY),
    Column("PricingUnit", "pricing_unit", Kind.TEXT),
    Column("ConsumedQuantity", "consumed_quantity", Kind.MONEY),
    Column("ConsumedUnit", "consumed_unit", Kind.TEXT),
    Column("CommitmentDiscountId", "commitment_discount_id", Kind.TEXT),
    Column("CommitmentDiscountStatus", "commitment_discount_status", Kind.TEXT),
    Column("CapacityReservationId", "capacity_reservation_id", Kind.TEXT),
    Column("CapacityReservationStatus", "capacity_reservation_status", Kind.TEXT),
    Column("ResourceId", "resource_id", Kind.TEXT),
    Column("ResourceName", "resource_name", Kind.TEXT),
    Column("ResourceType", "resource_type", Kind.TEXT),
    Column("RegionId", "region_id", Kind.TEXT),
    Column("ServiceCategory", "service_category", Kind.TEXT),
    Column("ServiceName", "service_name", Kind.TEXT),
    Column("SkuId", "sku_id", Kind.TEXT),
    Column("SkuPriceId", "sku_price_id", Kind.TEXT),
    Column("AllocatedMethodId", "allocated_method_id", Kind.TEXT),
    Column("Tags", "tags", Kind.TEXT),
)
_LEFT = (
    "AllocatedMethodDetails", "AllocatedResourceId", "AllocatedResourceName", "AllocatedTags", "AvailabilityZone",
    "BillingAccountName", "BillingAccountType", "CommitmentDiscountCategory", "CommitmentDiscountName",
    "CommitmentDiscountQuantity", "CommitmentDiscountType", "CommitmentDiscountUnit",
    "CommitmentProgramEligibilityDetails", "ContractApplied", "ContractedUnitPrice", "HostProviderName",
    "InvoiceDetailId", "ListUnitPrice", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost", "PricingCurrencyListUnitPrice", "PublisherName", "RegionName",
    "ServiceSubcategory", "SkuMeter", "SkuPriceDetails", "SubAccountName", "SubAccountType",
)  # fmt: skip

CHARGES = FileSpec(
    kind="charges",
    table="charge",
    columns=_KEPT,
    other_columns=_LEFT,
    custom_prefixes=("x_", "oci_"),
    null_texts=("", "NULL", "null", "(null)"),
    zone="UTC",
)
