"""RunPod's answers about billing, as the rows of an invoice: what was used from the prepaid balance, in time buckets.

Source: RunPod REST API v2, `/v2/billing/pods`, `/serverless`, `/endpoints`, `/network-volumes`, `/clusters`: `records`
of half-open buckets with a total in USD and its components. `/v2/billing` adds up those five and names no resource, so
it is refused: loaded beside them it would count everything twice. The first version's answers do not say how long a
bucket is. An answer reaches to the end of the bucket that was in progress when it was asked; that one is left out, by
the time at which the file was written. Top-ups are in no answer: they are rows of an invoice file.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from chargeback.sources.sheet import csv_bytes
from fleet.errors import InputError, Problem, quoted
from fleet.money import parse_decimal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chargeback.sources.sheet import Cells

MAX_BYTES: Final = 256 * 1024 * 1024
COLUMNS: Final = (
    "provider", "period", "charge_start", "charge_end", "sku", "description", "amount", "currency", "resource_ref",
    "commitment_ref", "category",
)  # fmt: skip
_IDS: Final = {
    "podId": "pod",
    "serverlessId": "serverless",
    "networkVolumeId": "network volume",
    "clusterId": "cluster",
}
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_TOTAL = "totalAmount"
_ENDING = "Amount"


class _Bucket(NamedTuple):
    start: datetime
    end: datetime


def is_json(path: Path) -> bool:
    """Whether a file begins like JSON; False when it cannot be read, which is said when it is loaded."""
    try:
        with path.open("rb") as stream:
            return stream.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    except OSError:
        return False


def write_invoice_rows(path: Path, place: Path) -> None:
    """Write an answer's components, each a row of an invoice, as CSV. InputError names a record that makes no sense."""
    answer = _answer(path)
    records = answer.get("records") if isinstance(answer, dict) else None
    if not isinstance(records, list):
        said = "is no answer of RunPod's billing API, version 2: it has no `records`"
        raise InputError([Problem(path.name, said)])
    written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    rows: list[Cells] = []
    for number, record in enumerate(records, start=1):
        try:
            rows.extend(_rows(record, written_at))
        except (KeyError, TypeError, ValueError) as error:
            said = f"has no {error}" if isinstance(error, KeyError) else str(error)
            raise InputError([Problem(path.name, f"record {number}: {said}")]) from error
    if not rows:
        raise InputError([Problem(path.name, "has no bucket with an amount that was over when the file was written")])
    place.write_bytes(csv_bytes(COLUMNS, rows))


def _answer(path: Path) -> Any:
    with path.open("rb") as stream:
        text = stream.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise InputError([Problem(path.name, "is too large for an answer of an API")])
    try:
        return json.loads(text, parse_float=parse_decimal, parse_int=parse_decimal, parse_constant=parse_decimal)
    except RecursionError as error:
        raise InputError([Problem(path.name, "is nested too deeply")]) from error
    except ValueError as error:
        raise InputError([Problem(path.name, f"is not JSON: {error}")]) from error


def _rows(record: Any, written_at: datetime) -> Iterator[Cells]:
    """A bucket's components that are not 0, and what of its total they leave out."""
    if not isinstance(record, dict):
        raise TypeError("is not an object")
    if "podGpuAmount" in record:
        raise ValueError(
            "adds up /v2/billing/pods, /serverless, /endpoints, /network-volumes and /clusters: load those"
        )
    bucket = _Bucket(_time(record["startTime"]), _time(record["endTime"]))
    if bucket.end > written_at:
        return
    total, name = _amount(record[_TOTAL], _TOTAL), next((key for key in _IDS if key in record), None)
    family = _IDS[name] if name else "endpoint"
    parts = {
        key.removesuffix(_ENDING): _amount(value, key)
        for key, value in sorted(record.items())
        if key.endswith(_ENDING) and key != _TOTAL
    }
    parts["other" if parts else "usage"] = total - sum(parts.values(), Decimal(0))
    for part, amount in parts.items():
        if amount:
            yield {
                "provider": "RunPod",
                "period": _month_of(bucket),
                "charge_start": bucket.start,
                "charge_end": bucket.end,
                "sku": f"{family} {part}",
                "description": f"RunPod {family} {part}",
                "amount": amount,
                "currency": "USD",
                "resource_ref": _id(record[name]) if name else None,
                "commitment_ref": "balance",
                "category": "Usage",
            }


def _month_of(bucket: _Bucket) -> str:
    next_month = datetime(bucket.start.year + bucket.start.month // 12, bucket.start.month % 12 + 1, 1, tzinfo=UTC)
    if not bucket.start < bucket.end <= next_month:
        raise ValueError("is no bucket within a month (UTC): ask for buckets of an hour or a day")
    return f"{bucket.start:%Y-%m}"


def _time(value: Any) -> datetime:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise ValueError(f"{quoted(str(value))} is not an RFC 3339 time")
    return datetime.fromisoformat(value).astimezone(UTC)


def _amount(value: Any, name: str) -> Decimal:
    if not isinstance(value, Decimal):
        raise TypeError(f"{quoted(name)} is not a number")
    return value


def _id(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("its id is not a text")
    return value
