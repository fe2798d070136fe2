"""Google Cloud's BigQuery billing export, standard or detailed, as files: Parquet or JSON lines with nested records, or
a CSV whose columns are the records' paths (`sku.id`); lists of records stand in a CSV's cells as JSON.

Source: "Structure of detailed data export", Cloud Billing documentation. Its times are UTC. JSON and CSV exports write
them as `2026-10-29 00:00:00 UTC`, so they are text here and read by the mapping, as what lies inside records is: what
cannot be read there is empty in the charge, and a charge that lacks what it needs is refused by its row.
A bill is grouped by `invoice.month`, never by usage time: an invoice holds hours of its neighbour months.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from chargeback.sources.export import Dialect, Export, Part
from fleet.errors import InputError, Problem
from store.columns import Column, FileSpec, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.lake import Connection

_SHARD = re.compile(r"(?P<head>.*)(?P<number>\d{12})(?P<tail>\..+)", re.ASCII | re.DOTALL)
"""How BigQuery numbers the files of one extract, in place of the `*` of its address."""
_PLAIN = (
    Column("billing_account_id", "billing_account_id", Kind.TEXT, required=True, filled=True),
    Column("usage_start_time", "usage_start_text", Kind.TEXT, required=True, filled=True),
    Column("usage_end_time", "usage_end_text", Kind.TEXT, required=True, filled=True),
    Column("cost", "cost", Kind.MONEY, required=True, filled=True),
    Column("currency", "currency", Kind.CURRENCY, required=True, filled=True),
    Column("cost_type", "cost_type", Kind.TEXT),
    Column("cost_at_list", "cost_at_list", Kind.MONEY),
    Column("cost_at_effective_price_default", "cost_at_effective_price_default", Kind.MONEY),
    Column("currency_conversion_rate", "currency_conversion_rate", Kind.MONEY),
    Column("labels", "labels", Kind.TEXT),
    Column("system_labels", "system_labels", Kind.TEXT),
    Column("tags", "tags", Kind.TEXT),
    Column("credits", "credits", Kind.TEXT),
)
_RECORDS: Final = (
    ("invoice", ("month",)),
    ("service", ("id", "description")),
    ("sku", ("id", "description")),
    ("project", ("id", "name", "labels")),
    ("location", ("location", "region", "zone")),
    ("usage", ("amount", "unit", "amount_in_pricing_units", "pricing_unit")),
    ("adjustment_info", ("id", "description", "mode", "type")),
    ("resource", ("name", "global_name")),
    ("subscription", ("instance_id",)),
    ("consumption_model", ("id", "description")),
)
"""Records and the parts of them that are read: nested as one column, flattened as a column each."""
_LEFT = (
    "export_time", "partition_date", "cost_at_list_consumption_model", "transaction_type", "seller_name", "price",
    "price.effective_price", "price.effective_price_default", "price.list_price", "price.list_price_consumption_model",
    "price.pricing_unit_quantity", "price.tier_start_amount", "price.unit", "invoice.publisher_type", "project.number",
    "project.ancestors", "project.ancestry_numbers", "location.country",
)  # fmt: skip
# A record lands under its own name with `_record`, its flattened parts as `sku_id`.
_NESTED = tuple(Column(record, f"{record}_record", Kind.TEXT) for record, _ in _RECORDS)
_FLAT = tuple(Column(f"{record}.{part}", f"{record}_{part}", Kind.TEXT) for record, parts in _RECORDS for part in parts)

EXPORT: Final = FileSpec(
    kind="charges", table="charge", columns=_PLAIN + _NESTED + _FLAT, other_columns=_LEFT, zone="UTC"
)
GCP: Final = Dialect("gcp", EXPORT, "gcp", ("gcp_row", "gcp_labels", "gcp_line", "gcp_fee", "gcp_coverage"))
TABLE_COLUMNS: Final = tuple(column.name for column in _PLAIN + _NESTED)
"""The columns of the BigQuery table that are read; a table may be older than some of them."""


def exports(_: Connection, paths: Sequence[Path]) -> tuple[Export, ...]:
    """Each file is a delivery of its own; the numbered files of one extract (`bill-000000000000.json`, ...) are one,
    called `bill-*.json`: an hour's fees and usage may lie in different ones. A later delivery of its name replaces it.

    InputError when a number is missing between others.
    """
    deliveries: dict[str, list[Path]] = {}
    for path in paths:
        shard = _SHARD.fullmatch(path.name)
        source = f"{shard['head']}*{shard['tail']}" if shard else path.name
        deliveries.setdefault(source, []).append(path)
    for source, files in deliveries.items():
        _refuse_gaps(source, files)
    return tuple(
        Export(source, GCP, tuple(Part(path.name, path) for path in files)) for source, files in deliveries.items()
    )


def _refuse_gaps(source: str, paths: Sequence[Path]) -> None:
    numbers = sorted(int(shard["number"]) for path in paths if (shard := _SHARD.fullmatch(path.name)))
    for expected, number in enumerate(numbers):
        if number != expected:
            message = f"lacks the file numbered {expected:012}" if number > expected else f"has {number:012} twice"
            raise InputError([Problem(source, message)])
