"""From an item of AWS' answers to rows of input files: commitments, the use of reservations, invoices, list prices.

Sources: API references of Savings Plans, EC2, Invoicing and the Price List. Ids are bare (`cr-...`), the last part of
the ARN that a bill has. What an API does not tell is empty: the fee of a Capacity Block stands on the bill only. What
never came into force (queued and deleted, cancelled at once) has no term and is left out.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from fleet.errors import SourceError, quoted
from fleet.money import parse_decimal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from chargeback.sources.sheet import Cells

PROVIDER: Final = "AWS"
_SECOND = timedelta(seconds=1)


def savings_plan(plan: Mapping[str, Any]) -> Iterator[Cells]:
    """A Savings Plan. Its recurring payment is by the hour; `quantity` is the whole hourly commitment."""
    start, end = _term(_time(plan["start"]), _time(plan["end"]), plan.get("termDurationInSeconds"))
    if end <= start:
        return
    yield {
        "commitment_id": plan["savingsPlanId"],
        "kind": "savings_plan",
        "term_start": start,
        "term_end": end,
        "upfront": _amount(plan.get("upfrontPaymentAmount")),
        "recurring_hourly": _amount(plan.get("recurringPaymentAmount")),
        "quantity": _amount(plan.get("commitment")),
        "unit": f"{plan.get('currency', '')} per hour".strip(),
        "currency": plan.get("currency"),
        "provider": PROVIDER,
        "region": plan.get("region"),
        "status": plan.get("state"),
    }


def reserved_instances(bought: Mapping[str, Any], region: str) -> Iterator[Cells]:
    """A purchase of reserved instances. The API's prices are those of one instance. Its `UsagePrice` is left out: what
    only running instances pay is no commitment."""
    count = Decimal(bought["InstanceCount"])
    recurring = bought.get("RecurringCharges", ())
    other = [charge for charge in recurring if charge.get("Frequency") != "Hourly"]
    if other:
        raise SourceError(
            f"{bought['ReservedInstancesId']}: recurs {quoted(str(other[0].get('Frequency')))}, not hourly"
        )
    start, end = _term(bought["Start"], bought["End"], bought.get("Duration"))
    if end <= start:
        return
    yield {
        "commitment_id": bought["ReservedInstancesId"],
        "kind": "reserved_instance",
        "term_start": start,
        "term_end": end,
        "upfront": count * _of_float(bought["FixedPrice"]) if "FixedPrice" in bought else None,
        "recurring_hourly": count * sum((_of_float(charge["Amount"]) for charge in recurring), Decimal(0)),
        "quantity": count,
        "unit": "instances",
        "currency": bought.get("CurrencyCode"),
        "provider": PROVIDER,
        "region": region,
        "instance_type": bought.get("InstanceType"),
        "status": bought.get("State"),
    }


def capacity_reservation(
    held: Mapping[str, Any], region: str, blocks: Mapping[str, Mapping[str, Any]]
) -> Iterator[Cells]:
    """A capacity reservation, or a Capacity Block, whose own term and state (in `blocks`, by reservation) decide.
    Nothing where no end is fixed: that is no commitment, it can be given back at any time."""
    is_block = held.get("ReservationType") == "capacity-block"
    told = {**held, **blocks.get(held["CapacityReservationId"], {})}
    start, end = told.get("StartDate"), told.get("EndDate")
    if start is None or end is None or end <= start:
        return
    yield {
        "commitment_id": held["CapacityReservationId"],
        "kind": "capacity_block" if is_block else "capacity_reservation",
        "term_start": start,
        "term_end": end,
        "quantity": held["TotalInstanceCount"],
        "unit": "instances",
        "provider": PROVIDER,
        "region": region,
        "instance_type": held.get("InstanceType"),
        "status": told.get("State"),
    }


def reservation_use(instance: Mapping[str, Any], starts: Mapping[str, datetime], seen_at: datetime) -> Iterator[Cells]:
    """In which capacity reservation an instance runs, if in one. It can change that only while it is stopped, or be
    taken in by one that is made later: so it has been there since both it and the reservation (`starts`) were."""
    reservation = instance.get("CapacityReservationId")
    launched: datetime = instance["LaunchTime"]
    if not reservation or launched >= seen_at:
        return
    yield {
        "resource_id": instance["InstanceId"],
        "capacity_reservation_id": reservation,
        "used_from": max(launched, starts.get(reservation, launched)),
        "seen_at": seen_at,
    }


def invoice(summary: Mapping[str, Any], period: str, now: datetime) -> Iterator[Cells]:
    """An invoice or credit memo in the currency of the charges; nothing for receipts of payment and for what the
    account sells (Marketplace). It is open until it is issued; a credit memo is owed to us, whatever its sign."""
    kind = summary.get("InvoiceType")
    if kind not in (None, "INVOICE", "CREDIT_MEMO") or summary.get("ReceiverRole") == "SELLER":
        return
    is_issued = "IssuedDate" in summary and summary["IssuedDate"] <= now
    if not is_issued and not summary.get("InvoiceId"):
        return
    base = summary["BaseCurrencyAmount"]
    taxes = base.get("AmountBreakdown", {}).get("Taxes", {})
    total, tax = _amount(base["TotalAmount"]), _amount(taxes.get("TotalAmount"))
    if kind == "CREDIT_MEMO":
        total, tax = (None if amount is None else -abs(amount) for amount in (total, tax))
    months = summary.get("BillingPeriod")
    yield {
        "issuer": summary["Entity"]["InvoicingEntity"],
        "invoice_id": summary["InvoiceId"],
        "period": f"{months['Year']:04}-{months['Month']:02}" if months else period,
        "currency": base["CurrencyCode"],
        "total": total,
        "tax": tax,
        "status": ("credit_memo" if kind == "CREDIT_MEMO" else "issued") if is_issued else "open",
    }


def list_prices(text: str) -> Iterator[Cells]:
    """On-demand prices of one product of the Price List, whose items are JSON in text."""
    item = json.loads(text, parse_float=Decimal)
    product, about = item["product"], item["product"]["attributes"]
    for term in item["terms"].get("OnDemand", {}).values():
        for tier in term["priceDimensions"].values():
            for currency, price in tier["pricePerUnit"].items():
                yield {
                    "provider": PROVIDER,
                    "sku_id": product["sku"],
                    "unit_price": _amount(price),
                    "currency": currency,
                    "usage_unit": tier["unit"],
                    "tier_start": _amount(tier.get("beginRange")),
                    "description": tier.get("description"),
                    "region": about.get("regionCode"),
                    "instance_type": about.get("instanceType"),
                    "as_of": _time(term["effectiveDate"]),
                }


def _term(start: datetime, end: datetime, seconds: int | None) -> tuple[datetime, datetime]:
    """Half-open: some ends are the term's last second instead of the first one after it."""
    full = start + timedelta(seconds=seconds) if seconds else end
    return start, full if timedelta(0) < full - end <= _SECOND else end


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _amount(text: str | None) -> Decimal | None:
    return None if text in (None, "") else parse_decimal(str(text))


def _of_float(number: float) -> Decimal:
    """The decimal that AWS wrote: boto3 parses these as floats, whose shortest form has the same digits (up to 15)."""
    return parse_decimal(repr(number))
