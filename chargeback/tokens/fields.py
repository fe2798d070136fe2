"""Read one field of a ledger's record: text from outside, bounded, judged, and quoted only where harmless."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from fleet.errors import one_line, quoted
from fleet.period import parse_time
from store.columns import MAX_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_COUNT = 10**12
"""No request, and no day of one tenant and model, has more tokens; sums of a file then fit 64 bits."""
WHOLE = re.compile(r"\d{1,15}(\.0+)?", re.ASCII)
SHORT_OFFSET = re.compile(r":\d\d(?:\.\d+)?[+-]\d\d$", re.ASCII)
"""PostgreSQL prints `09:00:00+00`."""
KEY_HASH = re.compile(r"[0-9a-f]{64}")
SECRET = re.compile(r"(?i:sk-(?=[\w-]*\d)[\w-]{16,}|bearer\s|eyJ[\w-]{16,}\.)")
"""How API keys and tokens start. None belongs into a report, whatever field it was sent in."""
UNKNOWN_NAMES = frozenset({"", "-", "None", "null"})
"""How ledgers write that they do not know; LiteLLM prints Python's None, Envoy a dash."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FieldError(ValueError):
    """A record cannot be understood: `column` names the field (None: the whole line)."""

    def __init__(self, column: str | None, message: str) -> None:
        """Keep the place beside the message, which completes "row 3, column endTime: ..."."""
        super().__init__(message)
        self.column = column


def count_in(record: Mapping[str, object], name: str) -> int | None:
    """A whole number of tokens or requests; None when absent, null or empty."""
    value = record.get(name)
    if value is None or value in ("", "-"):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FieldError(name, "is not a whole number")
    text = str(value)
    if not WHOLE.fullmatch(text) or int(float(text)) > MAX_COUNT:
        raise FieldError(name, f"{quoted(text)} is not a whole number from 0 to {MAX_COUNT:,}")
    return int(text.split(".")[0])


def name_in(record: Mapping[str, object], name: str) -> str | None:
    """A name that somebody chose, possibly a client; None when unknown.

    A log must not become unreadable because of what a client calls itself: odd characters are escaped and a long name
    is cut, so that its tokens stay under a name of their own. What looks like a secret is not a name.
    """
    value = record.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    text = one_line(value[: 2 * MAX_NAME].strip())
    return None if text in UNKNOWN_NAMES or SECRET.match(text) else text[:MAX_NAME].strip()


def key_hash_in(record: Mapping[str, object], name: str) -> str | None:
    """The SHA-256 under which a gateway keeps an API key; None for anything else: it may be the key itself."""
    value = record.get(name)
    return value if isinstance(value, str) and KEY_HASH.fullmatch(value) else None


def object_in(record: Mapping[str, object], name: str) -> Mapping[str, object]:
    """A JSON object, also one that a table file holds as text; empty when absent or null."""
    value = record.get(name)
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        value = parsed(value, name)
    if value is not None and not isinstance(value, dict):
        raise FieldError(name, "is not a JSON object")
    return value or {}


def parsed(text: str | bytes, name: str | None) -> object:
    """The value of a JSON text; FieldError instead of any of the ways in which text can fail to be JSON."""
    try:
        return json.loads(text, parse_constant=_refused)
    except UnicodeDecodeError as error:
        raise FieldError(name, "is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise FieldError(name, "is not well-formed JSON") from error


def _refused(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def time_in(record: Mapping[str, object], name: str) -> datetime:
    """A moment: seconds since 1970, or an RFC 3339 text, UTC when it names no zone (as databases print it)."""
    value = record.get(name)
    if isinstance(value, str) and not re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII):
        try:
            return parse_time(f"{value}:00" if SHORT_OFFSET.search(value) else value, zone="UTC")
        except ValueError as error:
            raise FieldError(name, str(error)) from error
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise FieldError(name, "is not a time")
    try:
        return EPOCH + timedelta(seconds=float(value))
    except (OverflowError, ValueError) as error:
        raise FieldError(name, "is not a time") from error


def flag_in(record: Mapping[str, object], name: str) -> bool:
    """Yes or no, also as the text that gateways write; no when unknown."""
    value = str(record.get(name) or "").lower()
    if value in ("true", "t"):
        return True
    if value in ("", "false", "f", "none"):
        return False
    raise FieldError(name, f"{quoted(value)} is neither True nor False")


def hour_of(moment: datetime) -> datetime:
    """The UTC hour in which a moment lies."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
