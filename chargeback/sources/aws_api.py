"""What AWS says beside the bill, through its APIs: commitments, who used reservations, invoices, list prices.

All that a source asks for is fetched before any of it is kept: a page that fails leaves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from chargeback.sources import aws_terms
from chargeback.sources.aws_calls import Calls
from chargeback.sources.sheet import Sheet
from fleet.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from chargeback.sources.sheet import Cells
    from fleet.sources_config import AwsApi

Item: TypeAlias = Any
"""One item of an answer: what boto3 makes of it, a dictionary or a text."""
GLOBAL_REGION: Final = "us-east-1"
"""Where AWS answers for the whole account: Savings Plans, invoices and prices."""
CHINA_REGION: Final = "cn-northwest-1"
PAGE_ITEMS: Final = 100
MOST_ITEMS: Final = 1000
"""Of a page of instances."""


def fetch(settings: AwsApi, months: Sequence[str], now: datetime, progress: Callable[[str], None]) -> tuple[Sheet, ...]:
    """Everything that the source asks for. `months` (YYYY-MM) are those of invoices. SourceError when a call fails."""
    whole = Calls(
        CHINA_REGION if settings.regions[0].startswith("cn-") else GLOBAL_REGION, settings.endpoint_url, progress
    )
    regions = [Calls(region, settings.endpoint_url, progress) for region in settings.regions]
    return tuple(_sheets(settings, whole, regions, months, now.replace(microsecond=0)))


def _sheets(
    settings: AwsApi, whole: Calls, regions: Sequence[Calls], months: Sequence[str], now: datetime
) -> Iterator[Sheet]:
    name, wanted = settings.name, settings.services
    reserved = {
        calls.region: calls.all("ec2", "describe_capacity_reservations", "CapacityReservations")
        for calls in regions
        if {"commitments", "reservations"} & set(wanted)
    }
    if "commitments" in wanted:
        rows = tuple(_commitments(whole, regions, reserved))
        yield Sheet("commitments", f"{name}-commitments.csv", rows, ("commitment_id",), is_listed_for_good=False)
    if "reservations" in wanted:
        rows = tuple(_uses(regions, reserved, now))
        key = ("resource_id", "capacity_reservation_id", "used_from")
        yield Sheet("reservations", f"{name}-reservations.csv", rows, key, is_listed_for_good=False)
    if "invoices" in wanted:
        account = whole.one("sts", "get_caller_identity")["Account"]
        for month in months:
            # A file a month: a bill that has not come yet must not take another month's away, nor stand in for it.
            rows = tuple(_invoices(whole, account, month, now))
            yield Sheet("invoices", f"{name}-invoices-{month}.csv", rows, ("invoice_id", "currency"))
    if "prices" in wanted:
        rows = tuple(_prices(whole, settings))
        yield Sheet("prices", f"{name}-prices.csv", rows, ("sku_id", "currency", "tier_start", "as_of"))


def _commitments(whole: Calls, regions: Sequence[Calls], reserved: Mapping[str, Sequence[Item]]) -> Iterator[Cells]:
    plans = whole.all("savingsplans", "describe_savings_plans", "savingsPlans")
    yield from _rows("Savings Plan", plans, aws_terms.savings_plan)
    for calls in regions:
        bought = calls.all("ec2", "describe_reserved_instances", "ReservedInstances")
        yield from _rows("reserved instances", bought, aws_terms.reserved_instances, calls.region)
        blocks = {
            reservation: block
            for block in calls.all("ec2", "describe_capacity_blocks", "CapacityBlocks")
            for reservation in block.get("CapacityReservationIds", ())
        }
        held = reserved[calls.region]
        yield from _rows("capacity reservation", held, aws_terms.capacity_reservation, calls.region, blocks)


def _uses(regions: Sequence[Calls], reserved: Mapping[str, Sequence[Item]], now: datetime) -> Iterator[Cells]:
    running = [{"Name": "instance-state-name", "Values": ["running"]}]
    for calls in regions:
        starts = {
            held.get("CapacityReservationId"): held["StartDate"]
            for held in reserved[calls.region]
            if "StartDate" in held
        }
        groups = calls.all("ec2", "describe_instances", "Reservations", Filters=running, MaxResults=MOST_ITEMS)
        instances = [instance for group in groups for instance in group.get("Instances", ())]
        yield from _rows("instance", instances, aws_terms.reservation_use, starts, now)


def _invoices(whole: Calls, account: str, month: str, now: datetime) -> Iterator[Cells]:
    year, number = map(int, month.split("-"))
    summaries = whole.all(
        "invoicing", "list_invoice_summaries", "InvoiceSummaries",
        Selector={"ResourceType": "ACCOUNT_ID", "Value": account},
        Filter={"BillingPeriod": {"Year": year, "Month": number}}, MaxResults=PAGE_ITEMS,
    )  # fmt: skip
    yield from _rows("invoice", summaries, aws_terms.invoice, month, now)


def _prices(whole: Calls, settings: AwsApi) -> Iterator[Cells]:
    """Linux on shared machines, nothing installed, used: the price that a bill's on-demand line has."""
    plain = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
    for region in settings.regions:
        for instance_type in settings.instance_types:
            wanted = plain | {"regionCode": region, "instanceType": instance_type}
            filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
            products = whole.all(
                "pricing", "get_products", "PriceList",
                ServiceCode="AmazonEC2", Filters=filters, MaxResults=PAGE_ITEMS,
            )  # fmt: skip
            yield from _rows("list price", products, aws_terms.list_prices)


def _rows(what: str, items: Sequence[Item], read: Callable[..., Iterator[Cells]], *known: Any) -> Iterator[Cells]:
    """The rows of what an API listed. SourceError for an item that lacks what its reference promises."""
    for number, item in enumerate(items, start=1):
        try:
            yield from tuple(read(item, *known))
        except KeyError as error:
            raise SourceError(f"{what} {number} of the answer has no {error.args[0]}") from error
        except (AttributeError, TypeError, ValueError) as error:
            # The value is not shown: it may be anything.
            raise SourceError(f"{what} {number} of the answer cannot be understood") from error
