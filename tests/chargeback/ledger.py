"""What the tests of the cost model share: input tables without a lake, and lakes that are ready at once."""

from __future__ import annotations

import csv
import shutil
from importlib import resources
from typing import TYPE_CHECKING, Any

from chargeback.build import prepare, run_model
from chargeback.load import load_files
from fleet.config import parse_config
from store.lake import Connection, Lake, memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fleet.config import Config

Rows = list[dict[str, str]]

PERIOD = "2026-02"
FILLED = {
    "inventory": {"cluster": "c", "gpu_count": "8", "valid_to": "", "pool": "p", "gpu_model": "H100"},
    "devices": {"cluster": "c", "valid_to": ""},
    "holdings": {},
    "demand": {},
    "charges": {
        "InvoiceIssuerName": "Cloud",
        "BillingAccountId": "1",
        "BillingPeriodStart": "2026-02-01T00:00:00Z",
        "BillingPeriodEnd": "2026-03-01T00:00:00Z",
        "ChargeCategory": "Usage",
        "BillingCurrency": "USD",
    },
    "invoices": {"issuer": "Cloud", "invoice_id": "1", "period": PERIOD, "currency": "USD"},
    "commitments": {"kind": "prepaid_contract", "upfront": "", "recurring_hourly": ""},
    "assets": {"cluster": "c", "salvage": "0", "currency": "USD"},
    "rates": {"period": PERIOD, "reporting_currency": "USD", "source": "ECB"},
    "quotas": {"pool": "p", "valid_to": ""},
    "teams": {"cost_centre": "", "gl_account": ""},
    "tokens": {"tenant": "", "model": ""},
}
"""What a small file need not repeat: columns that are added with these values when it lacks them."""


def read_rows(path: Path) -> Rows:
    """The rows of a small CSV as dictionaries of text."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, strict=True))


def write_rows(path: Path, kind: str, rows: Iterable[Mapping[str, str]]) -> Path:
    """Write rows as an input file of `kind`, with the columns that small files leave out."""
    filled = [FILLED[kind] | dict(row) for row in rows]
    for row in filled:
        if kind == "charges":
            row.setdefault("EffectiveCost", row["BilledCost"])
    columns = list(dict.fromkeys(name for row in filled for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, restval="")
        writer.writeheader()
        writer.writerows(filled)
    return path


def parsed(text: str) -> Rows:
    """Rows written as an indented CSV in a test."""
    return list(csv.DictReader([line.strip() for line in text.strip().splitlines()], strict=True))


def load_rows(lake: Lake, folder: Path, *, name: str = "", **kinds: str | Rows) -> None:
    """Load small tables (CSV text or rows) by kind, in the order given, each as `<kind>.csv` or under `name`."""
    for kind, rows in kinds.items():
        content = parsed(rows) if isinstance(rows, str) else rows
        load_files(lake, kind, [write_rows(folder / (name or f"{kind}.csv"), kind, content)])


def empty_lake(folder: Path) -> Iterator[Callable[[], Lake]]:
    """Yield a function that opens a new, migrated lake below `folder` each time; all are closed at the end.

    Migrating takes longer than a small month, so it is done once and its files are copied.
    """
    with Lake.open(folder / "first" / "catalog.sqlite", folder / "first" / "data"):
        pass
    opened: list[Lake] = []

    def fresh() -> Lake:
        place = folder / f"copy{len(opened)}"
        shutil.copytree(folder / "first", place)
        lake = Lake.open(place / "catalog.sqlite", place / "data", threads=2)
        opened.append(lake)
        return lake

    yield fresh
    for lake in opened:
        lake.close()


def memory_ledger() -> Connection:
    """A DuckDB in memory that holds the empty input tables where a lake would have them."""
    con = memory()
    con.execute("ATTACH ':memory:' AS lake")
    schema = resources.files("store") / "schema"
    con.execute((schema / "001_input.sql").read_text("utf-8"))
    for name in ("005_tokens.sql", "011_charges.sql"):
        inputs = (schema / name).read_text("utf-8")
        # Published tables are not here to be altered.
        con.execute("\n".join(line for line in inputs.splitlines() if not line.startswith("ALTER TABLE lake.bridge")))
    for name in ("003_telemetry.sql", "007_engine.sql", "009_engine_phases.sql"):
        lines = (schema / name).read_text("utf-8").splitlines()
        # Only a lake knows how its files are laid out.
        con.execute("\n".join(line for line in lines if not line.startswith("CALL") and " SET " not in line))
    return con


def put(con: Connection, table: str, rows: Sequence[Mapping[str, Any]], *, kind: str, source: str = "") -> None:
    """Make `rows` the whole content of an input table of `memory_ledger`, as one loaded file."""
    con.execute(f"DELETE FROM lake.{table}")
    con.execute("DELETE FROM lake.snapshot WHERE kind = ?", [kind])
    con.execute(
        "INSERT INTO lake.snapshot BY NAME SELECT ? AS kind, ? AS source, ? AS snapshot_id, ? AS file_sha256, "
        "now() AS loaded_at",
        [kind, source or f"{kind}.csv", kind, kind],
    )
    for number, row in enumerate(rows, start=2):
        values = {"snapshot_id": kind, "source_row": number} | dict(row)
        names, marks = ", ".join(f'"{name}"' for name in values), ", ".join("?" for _ in values)
        con.execute(f"INSERT INTO lake.{table} ({names}) VALUES ({marks})", list(values.values()))


def compute(con: Connection, config: Config | None = None, period: str = PERIOD) -> str:
    """Run the model over the inputs of a connection, into temporary tables; return the build id."""
    build_id = prepare(con, config or parse_config(""), period)
    run_model(con, period, 1)
    return build_id
