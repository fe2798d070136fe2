"""The columns of AWS Cost and Usage Reports that we keep, in each spelling: CUR 2.0 and the legacy report.

A legacy CSV writes `lineItem/UsageStartDate` where CUR 2.0 and legacy Parquet write `line_item_usage_start_date`.
Hundreds of other columns (product attributes, rates, blended cost), which vary by month, are accepted and not kept.
Blended cost is nobody's: it averages accounts. Source: AWS Data Exports table dictionary, AWS CUR column reference.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from chargeback.sources.export import Dialect
from fleet.errors import InputError, Problem
from store.columns import Column, FileSpec, Kind
from store.headers import column_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from chargeback.sources.export import Part

_REQUIRED: Final = (
    ("bill/BillingPeriodStartDate", Kind.TIME),
    ("bill/BillingPeriodEndDate", Kind.TIME),
    ("bill/PayerAccountId", Kind.TEXT),
    ("lineItem/LineItemType", Kind.TEXT),
    ("lineItem/UsageStartDate", Kind.TIME),
    ("lineItem/UsageEndDate", Kind.TIME),
    ("lineItem/CurrencyCode", Kind.CURRENCY),
    ("lineItem/UnblendedCost", Kind.MONEY),
)
_NAMES: Final = ("bill/InvoicingEntity", "lineItem/LegalEntity")
_TEXTS: Final = (
    "bill/InvoiceId", "capacityReservation/CapacityReservationArn", "capacityReservation/CapacityReservationStatus",
    "lineItem/AvailabilityZone", "lineItem/LineItemDescription", "lineItem/ProductCode", "lineItem/ResourceId",
    "lineItem/UsageAccountId", "lineItem/UsageAccountName", "lineItem/UsageType", "pricing/RateCode", "pricing/term",
    "pricing/unit", "product/ProductName", "product/gpu", "product/instanceType", "product/productFamily",
    "product/region", "product/regionCode", "product/sku", "reservation/ReservationARN", "savingsPlan/SavingsPlanARN",
    "splitLineItem/ParentResourceId",
)  # fmt: skip
_NUMBERS: Final = (
    "lineItem/NetUnblendedCost", "lineItem/UsageAmount", "pricing/publicOnDemandCost", "reservation/EffectiveCost",
    "reservation/NetEffectiveCost", "reservation/NetUnusedAmortizedUpfrontFeeForBillingPeriod",
    "reservation/NetUnusedRecurringFee", "reservation/UnusedAmortizedUpfrontFeeForBillingPeriod",
    "reservation/UnusedRecurringFee", "savingsPlan/AmortizedUpfrontCommitmentForBillingPeriod",
    "savingsPlan/NetAmortizedUpfrontCommitmentForBillingPeriod",
    "savingsPlan/NetRecurringCommitmentForBillingPeriod", "savingsPlan/NetSavingsPlanEffectiveCost",
    "savingsPlan/RecurringCommitmentForBillingPeriod", "savingsPlan/SavingsPlanEffectiveCost",
    "savingsPlan/TotalCommitmentToDate", "savingsPlan/UsedCommitment", "splitLineItem/NetSplitCost",
    "splitLineItem/NetUnusedCost", "splitLineItem/SplitCost", "splitLineItem/SplitUsage", "splitLineItem/UnusedCost",
)  # fmt: skip
_MAPS: Final = ("cost_category", "product", "resource_tags", "tags")
"""Maps of CUR 2.0: Parquet has them as maps, CSV as JSON."""
_FIRST = "lineItem/LineItemType"
_NO_TAG = Column("resourceTags/", ":", Kind.TEXT)
"""No file has it: with it there is always a tag field, so that the mapping may ask for all of them."""


def dialect_of(parts: Iterable[Part]) -> Dialect:
    """How AWS wrote these files: their columns, each with its spelling, and the tags that they happen to have.

    InputError when a file is no Cost and Usage Report.
    """
    names: set[str] = set()
    for part in parts:
        headers = column_names(part.path)
        if not {_FIRST, _snake(_FIRST)} & set(headers):
            wanted = f"is no AWS Cost and Usage Report: it has no column {_FIRST} or {_snake(_FIRST)}"
            raise InputError([Problem(part.path.name, wanted, 1)])
        names.update(headers)
    is_legacy = _FIRST in names
    spec = FileSpec(
        kind="charges",
        table="charge",
        columns=(*_fixed(is_legacy=is_legacy), *_tags(sorted(names)), _NO_TAG),
        custom_prefixes=("",),
        zone="UTC",
    )
    return Dialect("aws", spec, "aws")


def _snake(name: str) -> str:
    """The name that CUR 2.0 gives a column of the legacy report."""
    return re.sub(r"/_?", "_", re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name))


def _fixed(*, is_legacy: bool) -> Iterator[Column]:
    def column(name: str, kind: Kind, *, is_required: bool = False) -> Column:
        return Column(name if is_legacy else _snake(name), _snake(name), kind, is_required, is_required)

    yield from (column(name, kind, is_required=True) for name, kind in _REQUIRED)
    yield from (column(name, Kind.NAME) for name in _NAMES)
    yield from (column(name, Kind.TEXT) for name in _TEXTS)
    yield from (column(name, Kind.MONEY) for name in _NUMBERS)
    yield from (Column(name, name, Kind.TEXT) for name in _MAPS)


def _tags(headers: Sequence[str]) -> Iterator[Column]:
    """Tags and cost categories that have columns of their own, as fields named like `user:team`, `costCategory/team`.

    Those are the only fields with a colon or a slash in their names.
    """
    for name in headers:
        if re.match(r"resourceTags/(user|aws):.", name):
            yield Column(name, name.removeprefix("resourceTags/"), Kind.TEXT)
        elif found := re.match(r"resource_tags_(user|aws)_(.+)", name):
            yield Column(name, f"{found[1]}:{found[2]}", Kind.TEXT)
        elif re.match(r"costCategory/.", name):
            yield Column(name, name, Kind.TEXT)
        elif found := re.match(r"cost_category_(.+)", name):
            yield Column(name, f"costCategory/{found[1]}", Kind.TEXT)
