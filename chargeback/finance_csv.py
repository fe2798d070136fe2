"""The two files that finance books a month with: the chargeback CSV and the control file that proves it.

The CSV is RFC 4180 with CRLF line ends. Numbers are written raw with the currency's decimals and are never quoted or
prefixed; text that a spreadsheet would take for a formula gets a leading apostrophe, because team names come from
labels that anybody can set. Totals are kept out of the data and stand in the control file.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from chargeback.published import Row, published_build, read, statement_rows
from fleet.money import format_plain, minor_unit_digits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from store.lake import Connection

COLUMNS: Final = (
    "period", "statement", "team", "cost_centre", "gl_account", "category", "pool", "gpu_model", "gpu_hours", "amount",
    "currency", "policy",
)  # fmt: skip
GPU_HOUR_DIGITS = 6
MICROSECONDS_PER_HOUR = 3_600_000_000
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_bytes(con: Connection, period: str, team: str | None = None) -> bytes:
    """The finance CSV of a published period, byte for byte what `gputally export` writes; one team's lines if given.

    Raises NotBuiltError when there is nothing to write.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows(_cells(row) for row in statement_rows(con, period, team))
    return stream.getvalue().encode("utf-8")


def control(con: Connection, period: str) -> dict[str, Any]:
    """Row count, sums, hashes and bridge terms that let a controller verify the CSV without opening it."""
    build = published_build(con, period)
    rows = statement_rows(con, period)
    return {
        "period": period,
        "statement": f"{period}/v{build['version']}",
        "build_id": build["build_id"],
        "program_version": build["program_version"],
        "rows": len(rows),
        "sum_by_currency": _sums(rows),
        "csv_sha256": hashlib.sha256(csv_bytes(con, period)).hexdigest(),
        "bridge": [_bridge_terms(row) for row in read(con, "bridge", period)],
        "config_sha256": build["config_sha256"],
        "model_sha256": build["model_sha256"],
        "inputs": [
            {"kind": kind, "source": source, "snapshot_id": snapshot, "file_sha256": digest}
            for kind, source, snapshot, digest in json.loads(build["inputs"])
        ],
    }


def export_period(con: Connection, period: str, out: Path) -> tuple[Path, Path]:
    """Write `chargeback-<period>.csv` and `control-<period>.json` into `out`; each appears whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    data = out / f"chargeback-{period}.csv"
    proof = out / f"control-{period}.json"
    _replace(data, csv_bytes(con, period))
    _replace(proof, (json.dumps(control(con, period), indent=2) + "\n").encode())
    return data, proof


def guarded(text: str | None) -> str:
    """Text for a cell: an apostrophe in front of anything a spreadsheet would run."""
    if text is None:
        return ""
    return f"'{text}" if text.lstrip(" '\"").startswith(_FORMULA_STARTS) else text


def gpu_hours(gpu_microseconds: int) -> str:
    """GPU time as GPU-hours with fixed decimals."""
    return format_plain(Decimal(gpu_microseconds) / MICROSECONDS_PER_HOUR, GPU_HOUR_DIGITS)


def _cells(row: Row) -> list[str]:
    numbers = {
        "gpu_hours": gpu_hours(row["gpu_microseconds"]),
        "amount": format_plain(row["amount"], minor_unit_digits(row["currency"])),
    }
    return [numbers[name] if name in numbers else guarded(row[name]) for name in COLUMNS]


def _sums(rows: Iterable[Row]) -> dict[str, str]:
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        totals[row["currency"]] += row["amount"]
    return {currency: format_plain(total, minor_unit_digits(currency)) for currency, total in sorted(totals.items())}


def _bridge_terms(row: Row) -> dict[str, Any]:
    """Amounts as text at full precision, trailing zeros cut: the bridge closes to the last unit, not to the cent."""
    return {name: _exact_text(value) if isinstance(value, Decimal) else value for name, value in row.items()}


def _exact_text(amount: Decimal) -> str:
    whole, _, fraction = f"{amount:f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(content)
    temporary.replace(path)
