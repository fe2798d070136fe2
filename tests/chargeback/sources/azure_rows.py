"""Rows of Azure's cost details for tests, as an Enterprise Agreement has them, and what becomes of files of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargeback.sources.azure import exports
from chargeback.sources.intake import ChargeOptions, stage_export
from chargeback.sources.judging import broken_identities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from decimal import Decimal

    from chargeback.sources.judging import Broken
    from store.lake import Connection

AZURE_FILES = Path(__file__).parents[2] / "fixtures" / "billing" / "azure"
VM = "/subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/GPU-1"
ORDER = "/providers/Microsoft.Capacity/reservationOrders/0-0-0"
RESERVATION = f"{ORDER}/reservations/R-1"
PLAN = "/providers/Microsoft.BillingBenefits/savingsPlanOrders/1-1-1/savingsPlans/P-1"
ROW = {
    "BillingAccountId": "8611537", "BillingPeriodStartDate": "02/01/2026", "BillingPeriodEndDate": "02/28/2026",
    "SubscriptionId": "S", "SubscriptionName": "ML", "Date": "02/04/2026", "Product": "ND H100 v5",
    "PartNumber": "AAA-1", "MeterId": "M-1", "MeterCategory": "Virtual Machines", "MeterName": "ND96isr H100 v5",
    "Quantity": "24", "UnitPrice": "98.32", "Cost": "2359.68", "BillingCurrency": "USD", "ResourceLocation": "East US",
    "ResourceId": VM, "ResourceName": "GPU-1", "AdditionalInfo": "", "Tags": "", "CostCenter": "ML",
    "UnitOfMeasure": "1 Hour", "ReservationId": "", "ProductOrderId": "", "ChargeType": "Usage",
    "Frequency": "UsageBased", "PublisherType": "Azure", "PayGPrice": "98.32", "PricingModel": "OnDemand",
    "benefitId": "", "benefitName": "",
}  # fmt: skip
RESERVED = {"PricingModel": "Reservation", "benefitId": RESERVATION, "ReservationId": "R-1", "PayGPrice": "0"}
BOUGHT = RESERVED | {
    "ChargeType": "Purchase", "Frequency": "Recurring", "benefitId": f"{ORDER}/reservations/", "ReservationId": "0-0-0",
    "ResourceId": f"{ORDER}/reservations/", "Quantity": "1", "UnitPrice": "45", "Cost": "45",
}  # fmt: skip
COVERED = RESERVED | {"Cost": "0", "Quantity": "18"}
UNUSED = RESERVED | {"ChargeType": "UnusedReservation", "ResourceId": RESERVATION, "Quantity": "6"}


def write_details(path: Path, rows: Iterable[Mapping[str, str]]) -> Path:
    """A file as Azure writes it: with a byte order mark, the columns of `ROW` and any others that a row has."""
    filled = [ROW | dict(row) for row in rows]
    columns = list(dict.fromkeys(name for row in filled for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, columns, restval="")
        writer.writeheader()
        writer.writerows(filled)
    return path


def write_pair(
    folder: Path, actual: Iterable[Mapping[str, str]], amortized: Iterable[Mapping[str, str]]
) -> tuple[Path, Path]:
    """Both datasets of a month."""
    return write_details(folder / "ActualCost.csv", actual), write_details(folder / "AmortizedCost.csv", amortized)


def staged(con: Connection, paths: Sequence[Path]) -> tuple[Broken, ...]:
    """Stage one delivery as `staged_charge` and return the identities that it breaks."""
    (export,) = exports(con, paths)
    stage_export(con, export, ChargeOptions())
    return broken_identities(con)


def charges(con: Connection, columns: str) -> list[tuple[Any, ...]]:
    """Columns of what was staged, in the order of the files."""
    return con.sql("FROM staged_charge").order("source_row").select(columns).fetchall()


def totals(con: Connection) -> tuple[Decimal, Decimal]:
    """What was staged bills and costs in all."""
    ((billed, effective),) = con.sql("SELECT sum(billed_cost), sum(effective_cost) FROM staged_charge").fetchall()
    return billed, effective


def found(broken: Iterable[Broken]) -> dict[str, int]:
    """Identities with their row counts, those that only tell something left out."""
    return {one.identity: one.row_count for one in broken if one.severity != "info"}
