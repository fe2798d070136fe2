"""Small Cost and Usage Reports for tests: lines by their type, in files of every form that AWS delivers."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargeback.sources import aws
from chargeback.sources.intake import ChargeOptions, stage_export
from chargeback.sources.judging import broken_identities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.lake import Connection

FIXTURES = Path(__file__).parents[2] / "fixtures" / "billing" / "aws"
EVERY = FIXTURES / "every_line_type.csv"
MAPS = ("product", "resource_tags", "cost_category", "tags")
SPACE = {
    "bill_payer_account_id": "000012345678", "bill_invoicing_entity": "Amazon Web Services, Inc.",
    "bill_invoice_id": "2026021", "bill_billing_period_start_date": "2026-02-01T00:00:00.000Z",
    "bill_billing_period_end_date": "2026-03-01T00:00:00.000Z", "line_item_usage_account_id": "111111111111",
    "line_item_currency_code": "USD", "line_item_product_code": "AmazonEC2", "line_item_usage_amount": "1",
    "line_item_usage_start_date": "2026-02-10T00:00:00.000Z", "line_item_usage_end_date": "2026-02-10T01:00:00.000Z",
    "product_region_code": "us-east-1", "pricing_unit": "Hrs", "pricing_term": "OnDemand",
}  # fmt: skip
PLAN = "savings_plan_savings_plan_a_r_n"
RESERVATION = "reservation_reservation_a_r_n"

Line = dict[str, str]


def line(line_type: str, cost: str, **cells: str) -> Line:
    """A line of an hour of 10 February 2026, with the cells given."""
    return SPACE | {"line_item_line_item_type": line_type, "line_item_unblended_cost": cost} | cells


def covered(cost: str, effective: str, plan: str = "sp-1", **cells: str) -> Line:
    """Usage under a Savings Plan."""
    paid = {PLAN: plan, "savings_plan_savings_plan_effective_cost": effective}
    return line("SavingsPlanCoveredUsage", cost, **paid, **cells)


def plan_fee(fee: str, commitment: str, used: str, plan: str = "sp-1", **cells: str) -> Line:
    """An hour's recurring fee of a Savings Plan."""
    hour = {"savings_plan_total_commitment_to_date": commitment, "savings_plan_used_commitment": used}
    return line("SavingsPlanRecurringFee", fee, **hour, **{PLAN: plan}, **cells)


def hours(first: int, count: int, template: Line) -> list[Line]:
    """The same line in `count` hours of February 2026, from hour `first` of the month."""
    return [
        template
        | {
            "line_item_usage_start_date": f"2026-02-{1 + hour // 24:02}T{hour % 24:02}:00:00Z",
            "line_item_usage_end_date": f"2026-02-{1 + (hour + 1) // 24:02}T{(hour + 1) % 24:02}:00:00Z",
        }
        for hour in range(first, first + count)
    ]


def write_csv(path: Path, lines: Iterable[Mapping[str, str]]) -> Path:
    """Write lines as CUR 2.0 writes CSV, compressed if the name ends so; maps are JSON."""
    rows = list(lines)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_parquet(con: Connection, path: Path, source: Path) -> Path:
    """Write a CSV of a report as CUR 2.0 writes Parquet: costs as floats, times without a zone, maps as maps."""
    with source.open(newline="") as stream:
        names = next(csv.reader(stream))
    chosen = ", ".join(f"{_as_typed(name)} AS {name}" for name in names)
    con.execute(f"COPY (SELECT {chosen} FROM read_csv('{source}', all_varchar = true)) TO '{path}' (FORMAT parquet)")
    return path


def _as_typed(name: str) -> str:
    if name in MAPS:
        return f"from_json({name}, '\"MAP(VARCHAR, VARCHAR)\"')"
    if name.endswith(("_start_date", "_end_date")):
        return f"CAST(timezone('UTC', CAST({name} AS TIMESTAMPTZ)) AS TIMESTAMP_MS)"
    is_number = name.endswith(("_cost", "_amount", "_fee", "_period", "_commitment", "_to_date", "_usage"))
    return f"CAST({name} AS DOUBLE)" if is_number else name


def staged(con: Connection, *paths: Path) -> list[dict[str, Any]]:
    """The charges that one delivery of AWS becomes: the first export of these paths, in the order of its lines."""
    export = aws.exports(con, paths)[0]
    stage_export(con, export, ChargeOptions())
    cursor = con.execute("FROM staged_charge ORDER BY source_row")
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def charges(con: Connection, folder: Path, *lines: Line) -> list[dict[str, Any]]:
    """The charges that these lines become."""
    return staged(con, write_csv(folder / "report.csv", lines))


def total(rows: Iterable[Mapping[str, Any]], column: str) -> str:
    """An exact sum, as text, without needless zeros; rows that repeat others' money are in no sum."""
    found = sum((row[column] for row in rows if not row["x_is_split_row"]), start=type(next(iter(rows))[column])(0))
    return f"{found.normalize():f}"


def found_identities(con: Connection) -> dict[str, str]:
    """What refuses the charges that are staged, and what is found of AWS's own."""
    found = {one.identity: one.severity for one in broken_identities(con)}
    return {name: severity for name, severity in found.items() if severity == "error" or name.startswith("A")}
