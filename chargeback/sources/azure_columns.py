"""Columns of Azure's cost details: those that are read, in whatever letter case an agreement's schema has them.

Sources: Azure's schemas of cost and usage details, for Enterprise Agreements (2024-08-01) and Microsoft Customer
Agreements (2023-12-01-preview), and the versions before them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from store.columns import Column, FileSpec, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_DATES: Final = {
    "date": "charge_date",
    "billingperiodstartdate": "period_start_date",
    "billingperiodenddate": "period_end_date",
}
"""MM/DD/YYYY in files, a day or the midnight before it in Parquet: read by the mapping."""
_COST: Final = {"cost": "cost", "costinbillingcurrency": "cost"}
_CURRENCY: Final = {"billingcurrency": "billing_currency", "billingcurrencycode": "billing_currency"}
_NUMBERS: Final = {
    "quantity": "quantity",
    "unitprice": "unit_price",
    "paygprice": "payg_price",
    "exchangeratepricingtobilling": "exchange_rate",
}
_TEXTS: Final = {
    "chargetype": "charge_type",
    "billingaccountid": "billing_account_id",
    "billingprofileid": "billing_profile_id",
    "subscriptionid": "subscription_id",
    "subscriptionname": "subscription_name",
    "invoiceid": "invoice_id",
    "pricingmodel": "pricing_model",
    "pricingcurrency": "pricing_currency",
    "frequency": "frequency",
    "product": "product",
    "productname": "product",
    "productid": "product_id",
    "partnumber": "part_number",
    "meterid": "meter_id",
    "metername": "meter_name",
    "metercategory": "meter_category",
    "consumedservice": "consumed_service",
    "unitofmeasure": "unit_of_measure",
    "resourceid": "resource_id",
    "instanceid": "resource_id",
    "resourcename": "resource_name",
    "resourcelocation": "resource_location",
    "reservationid": "reservation_id",
    "reservationname": "reservation_name",
    "benefitid": "benefit_id",
    "benefitname": "benefit_name",
    "productorderid": "product_order_id",
    "publishertype": "publisher_type",
    "costcenter": "cost_center",
    "invoicesectionid": "invoice_section_id",
    "additionalinfo": "additional_info",
    "tags": "tags",
}
_FILLED: Final = {"billingaccountid", "chargetype"} | set(_DATES)


def cost_details_spec(headers: Sequence[Sequence[str]]) -> FileSpec:
    """The columns that are read of these files, in the letter case in which they have them; the others are left."""
    return FileSpec(
        kind="charges",
        table="charge",
        columns=tuple(_columns({name for names in headers for name in names})),
        custom_prefixes=("",),
        zone="UTC",
    )


def _columns(present: set[str]) -> list[Column]:
    kinds: tuple[tuple[Mapping[str, str], Kind, bool], ...] = (
        (_DATES, Kind.TEXT, True),
        (_COST, Kind.MONEY, True),
        (_CURRENCY, Kind.CURRENCY, True),
        (_NUMBERS, Kind.MONEY, False),
        (_TEXTS, Kind.TEXT, False),
    )
    columns = []
    for fields, kind, is_filled in kinds:
        spelt = {lowered: sorted(name for name in present if name.lower() == lowered) for lowered in fields}
        for lowered, field in fields.items():
            # A field that no file has is empty, under its own name.
            names = spelt[lowered] or [field]
            columns += [Column(name, field, kind, filled=is_filled or lowered in _FILLED) for name in names]
    return columns


def missing_columns(headers: Sequence[str]) -> list[str]:
    """What a file of cost details lacks, by the names of the newest schema."""
    lowered = {name.lower() for name in headers}
    names = {
        "Date": {"date"},
        "BillingPeriodStartDate": {"billingperiodstartdate"},
        "BillingPeriodEndDate": {"billingperiodenddate"},
        "BillingAccountId": {"billingaccountid"},
        "CostInBillingCurrency": set(_COST),
        "BillingCurrency": set(_CURRENCY),
    }
    return [name for name, spellings in names.items() if not spellings & lowered]
