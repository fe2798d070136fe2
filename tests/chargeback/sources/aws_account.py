"""An account at the small AWS of `aws_stub`: its commitments, instances, invoices and prices, as on the wire."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from chargeback.sheets import keep
from chargeback.sources.aws_api import fetch
from fleet.sources_config import AwsApi
from store.snapshots import show_current

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.lake import Lake
    from tests.chargeback.sources.aws_stub import Stub

REGION = "us-east-2"
NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
MONTHS = ("2026-09", "2026-10", "2026-11")


def plan(**changes: Any) -> dict[str, Any]:
    """A Savings Plan of O3: 52.40 an hour for a year, all upfront."""
    return {
        "savingsPlanId": "7f1c", "savingsPlanArn": "arn:aws:savingsplans::012345678901:savingsplan/7f1c",
        "start": "2026-02-01T00:00:00.000Z", "end": "2027-01-31T23:59:59.000Z", "state": "active",
        "savingsPlanType": "Compute", "paymentOption": "All Upfront", "currency": "USD", "commitment": "52.40",
        "upfrontPaymentAmount": "459024.00", "recurringPaymentAmount": "0.0", "termDurationInSeconds": 31536000,
    } | changes  # fmt: skip


def reserved(**changes: Any) -> dict[str, Any]:
    """Two reserved instances, partial upfront; prices are those of one of them."""
    return {
        "reservedInstancesId": "ri-1", "instanceType": "p4d.24xlarge", "start": "2026-02-01T00:00:00.000Z",
        "end": "2027-01-31T23:59:59.000Z", "duration": 31536000, "usagePrice": "0.0", "fixedPrice": "110000.0",
        "instanceCount": 2, "state": "active", "currencyCode": "USD", "offeringType": "Partial Upfront",
        "recurringCharges": [{"frequency": "Hourly", "amount": "12.557077"}],
    } | changes  # fmt: skip


def block(**changes: Any) -> dict[str, Any]:
    """The Capacity Block of O13, as EC2 shows its reservation."""
    return {
        "capacityReservationId": "cr-b", "instanceType": "p5.48xlarge", "totalInstanceCount": 4,
        "reservationType": "capacity-block", "state": "active", "startDate": "2026-10-25T11:30:00.000Z",
        "endDate": "2026-11-08T11:30:00.000Z", "endDateType": "limited",
    } | changes  # fmt: skip


def on_demand(**changes: Any) -> dict[str, Any]:
    """A capacity reservation that can be given back at any time."""
    return {
        "capacityReservationId": "cr-o", "instanceType": "p4d.24xlarge", "totalInstanceCount": 2,
        "reservationType": "default", "state": "active", "startDate": "2026-10-10T06:00:00.000Z",
        "endDateType": "unlimited",
    } | changes  # fmt: skip


def instance(name: str, reservation: str | None, launched: str = "2026-10-10T08:00:00.000Z") -> dict[str, Any]:
    """A running instance, perhaps in a capacity reservation."""
    found = {"instanceId": name, "instanceType": "p4d.24xlarge", "launchTime": launched}
    return found | ({"capacityReservationId": reservation} if reservation else {})


def instances(*found: dict[str, Any]) -> dict[str, Any]:
    """A page of running instances."""
    return {"reservationSet": [{"reservationId": "r-1", "instancesSet": list(found)}]}


def bill(name: str, total: str, tax: str | None = None, month: str = "2026-10", **changes: Any) -> dict[str, Any]:
    """A summary of an invoice. Times are seconds since 1970."""
    year, number = map(int, month.split("-"))
    taxes = {"AmountBreakdown": {"SubTotalAmount": total, "Taxes": {"TotalAmount": tax}}} if tax else {}
    return {
        "AccountId": "012345678901", "InvoiceId": name, "IssuedDate": 1793664000, "InvoiceType": "INVOICE",
        "Entity": {"InvoicingEntity": "Amazon Web Services, Inc."}, "BillingPeriod": {"Month": number, "Year": year},
        "BaseCurrencyAmount": {"TotalAmount": total, "CurrencyCode": "USD", **taxes},
        "PaymentCurrencyAmount": {"TotalAmount": "1", "CurrencyCode": "EUR"},
    } | changes  # fmt: skip


def product(instance_type: str, price: str, region: str = REGION) -> str:
    """An item of the Price List: JSON in text."""
    tier = {
        "unit": "Hrs", "beginRange": "0", "endRange": "Inf", "description": f"${price} per On Demand",
        "pricePerUnit": {"USD": price},
    }  # fmt: skip
    term = {"effectiveDate": "2026-10-01T00:00:00Z", "priceDimensions": {"S.T.R": tier}}
    about = {"instanceType": instance_type, "regionCode": region}
    return json.dumps({
        "product": {"sku": f"SKU-{instance_type}", "attributes": about},
        "terms": {"OnDemand": {"S.T": term}, "Reserved": {"S.R": {"priceDimensions": {}}}},
    })  # fmt: skip


def asking(aws: Stub, *services: Any, **changes: Any) -> AwsApi:
    """A source that asks the small AWS for these lists."""
    return AwsApi("aws", (REGION,), services, endpoint_url=aws.address, **changes)


def synced(
    lake: Lake, folder: Path, settings: AwsApi, now: datetime = NOW, months: Sequence[str] = ("2026-10",)
) -> list[str]:
    """Fetch and keep what the source asks for; what became of each sheet."""
    sheets = fetch(settings, months, now, lambda _: None)
    return [keep(lake, sheet, folder).outcome for sheet in sheets]


def rows(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    """Rows of what counts now."""
    show_current(lake.connection)
    return lake.connection.execute(query).fetchall()
