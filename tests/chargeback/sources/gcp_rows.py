"""Rows of Google Cloud's billing export for tests, and files of them in each shape in which BigQuery gives them."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from chargeback.load import LoadOptions, load_charges
from chargeback.sources.export import Export, Part
from chargeback.sources.gcp import GCP
from chargeback.sources.intake import ChargeOptions, stage_export
from chargeback.sources.judging import broken_identities
from store.lake import memory
from tests.chargeback.ledger import memory_ledger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from chargeback.sources.intake import Verdict
    from store.lake import Connection, Lake

Row = dict[str, Any]

ROW: Row = {
    "billing_account_id": "010101-F0FFF0-10X10X",
    "invoice": {"month": "202608"},
    "cost_type": "regular",
    "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
    "sku": {"id": "GPU-SKU", "description": "Nvidia H100 80GB GPU running in Iowa"},
    "usage_start_time": "2026-08-10 00:00:00 UTC",
    "usage_end_time": "2026-08-10 01:00:00 UTC",
    "project": {"id": "gpu-prod", "name": "GPU prod", "labels": [{"key": "team", "value": "infra"}]},
    "labels": [{"key": "goog-k8s-cluster-name", "value": "prod"}, {"key": "k8s-namespace", "value": "train"}],
    "system_labels": [{"key": "compute.googleapis.com/machine_spec", "value": "a3-highgpu-8g"}],
    "location": {"region": "us-central1", "zone": "us-central1-a"},
    "resource": {
        "name": "gke-prod-h100-1",
        "global_name": "//compute.googleapis.com/projects/1/zones/us-central1-a/instances/4567890123456789012",
    },
    "cost": 10.5,
    "currency": "USD",
    "currency_conversion_rate": 1.0,
    "usage": {"amount": 3600.0, "unit": "seconds", "amount_in_pricing_units": 1.0, "pricing_unit": "hour"},
    "credits": [],
    "cost_at_list": 12.0,
    "tags": [],
}
_LABELS = "STRUCT(key VARCHAR, value VARCHAR)[]"
TYPES = {
    "billing_account_id": "VARCHAR",
    "invoice": "STRUCT(month VARCHAR)",
    "cost_type": "VARCHAR",
    "service": "STRUCT(id VARCHAR, description VARCHAR)",
    "sku": "STRUCT(id VARCHAR, description VARCHAR)",
    "usage_start_time": "TIMESTAMPTZ",
    "usage_end_time": "TIMESTAMPTZ",
    "project": f"STRUCT(id VARCHAR, name VARCHAR, labels {_LABELS})",
    "labels": _LABELS,
    "system_labels": _LABELS,
    "location": "STRUCT(region VARCHAR, zone VARCHAR)",
    "resource": "STRUCT(name VARCHAR, global_name VARCHAR)",
    "cost": "DOUBLE",
    "currency": "VARCHAR",
    "currency_conversion_rate": "DOUBLE",
    "usage": "STRUCT(amount DOUBLE, unit VARCHAR, amount_in_pricing_units DOUBLE, pricing_unit VARCHAR)",
    "credits": "STRUCT(name VARCHAR, amount DOUBLE, full_name VARCHAR, id VARCHAR, type VARCHAR)[]",
    "cost_at_list": "DOUBLE",
    "tags": "STRUCT(key VARCHAR, value VARCHAR, inherited BOOLEAN, namespace VARCHAR)[]",
}
"""As the export's table has them."""


def row(**changes: Any) -> Row:
    """A row that differs in some columns; a dictionary changes only the parts that it names."""
    made = dict(ROW)
    for name, value in changes.items():
        made[name] = {**(made.get(name) or {}), **value} if isinstance(value, dict) else value
    return made


def credit(amount: Any, kind: str) -> Row:
    """One entry of `credits`."""
    return {"name": kind.lower(), "amount": amount, "full_name": "", "id": kind, "type": kind}


def credited(**changes: Any) -> Row:
    """A row that is billed 2.00 less by its discounts, and of which a promotion pays 0.25."""
    kinds = {"SUSTAINED_USAGE_DISCOUNT": -1.5, "PROMOTION": -0.25, "DISCOUNT": -0.5}
    return row(credits=[credit(amount, kind) for kind, amount in kinds.items()], **changes)


def ledger() -> Connection:
    """The input tables, empty, in memory, and times in UTC as a lake has them."""
    con = memory_ledger()
    con.execute("SET TimeZone = 'UTC'")
    return con


def write_json(path: Path, rows: Sequence[Row]) -> Path:
    """As BigQuery extracts a table to JSON: one object a line."""
    path.write_text("".join(f"{json.dumps(one)}\n" for one in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, rows: Sequence[Row]) -> Path:
    """As BigQuery extracts a table to Parquet: records and lists nested, money as DOUBLE."""
    lines = write_json(path.with_suffix(".jsonl"), rows)
    con = memory()
    con.execute("SET TimeZone = 'UTC'")
    typed = f"read_json('{lines}', format = 'newline_delimited', columns = {TYPES})"
    con.execute(f"COPY (FROM {typed}) TO '{path}' (FORMAT parquet)")
    lines.unlink()
    return path


def write_csv(path: Path, rows: Sequence[Row]) -> Path:
    """With its records flattened to columns by their paths, and lists as JSON."""
    flat = [_flat(one) for one in rows]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(name for one in flat for name in one)), restval="")
        writer.writeheader()
        writer.writerows(flat)
    return path


def _flat(one: Mapping[str, Any]) -> Row:
    made: Row = {}
    for name, value in one.items():
        parts = {f"{name}.{part}": inner for part, inner in value.items()} if isinstance(value, dict) else {name: value}
        made |= {key: json.dumps(inner) if isinstance(inner, list) else inner for key, inner in parts.items()}
    return made


def load(lake: Lake, *paths: Path) -> list[Verdict]:
    """Load files as Google Cloud's."""
    return load_charges(lake, paths, LoadOptions("gcp"))


def staged(con: Connection, *paths: Path, flagged: Sequence[str] = ()) -> None:
    """Map a delivery of these files to `staged_charge`; it breaks these identities, and maybe that of times' zones."""
    parts = tuple(Part(path.name, path) for path in paths)
    stage_export(con, Export("delivery", GCP, parts), ChargeOptions())
    assert [found.identity for found in broken_identities(con) if found.identity != "I13"] == list(flagged)


def charges(con: Connection, columns: str, rest: str = "", table: str = "staged_charge") -> list[tuple[Any, ...]]:
    """Rows of charges in the order of their numbers; money as text, without the zeros behind its last digit."""
    order = "ALL" if "sum(" in columns or "count(" in columns else "source_row"
    found = con.execute(f"SELECT {columns} FROM {table} {rest} ORDER BY {order}").fetchall()
    return [tuple(_plain(value) if isinstance(value, Decimal) else value for value in one) for one in found]


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
