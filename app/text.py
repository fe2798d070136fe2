"""How the portal writes values for people: thousands separators, a unit, and the same rounding everywhere."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from fleet.money import format_money, minor_unit_digits, round_minor
from fleet.period import month

if TYPE_CHECKING:
    from datetime import date, datetime

NOT_KNOWN = "n/a"
"""What is not known is said, never shown as 0."""
MICROSECONDS_PER_HOUR = 3_600_000_000
LABEL_LIMIT = 80


def money(amount: Decimal | None, currency: str) -> str:
    """`1,948,803.84 USD`."""
    return NOT_KNOWN if amount is None else format_money(amount, currency)


def amount(value: Decimal | None, currency: str) -> str:
    """`1,948,803.84`, for a column whose header names the currency."""
    return NOT_KNOWN if value is None else f"{round_minor(value, minor_unit_digits(currency)):,f}"


def exact(value: Decimal | None, digits: int = 6) -> str:
    """An amount beyond the minor unit, for arithmetic that people may follow: `241.318190`."""
    return NOT_KNOWN if value is None else f"{round_minor(value, digits):,f}"


def gpu_hours(gpu_microseconds: int | None, digits: int = 1) -> str:
    """`424,772.6`: GPU time in GPU-hours, without the unit."""
    if gpu_microseconds is None:
        return NOT_KNOWN
    return f"{round_minor(Decimal(gpu_microseconds) / MICROSECONDS_PER_HOUR, digits):,f}"


def gpus(value: Decimal | None) -> str:
    """A number of GPUs: `840`, `0.5`."""
    if value is None:
        return NOT_KNOWN
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def millions(tokens: int | None) -> str:
    """`135,851.0`: a count of tokens in millions; less than one with as many decimals as it needs."""
    if tokens is None:
        return NOT_KNOWN
    if abs(tokens) >= 1_000_000 or tokens == 0:
        return f"{round_minor(Decimal(tokens) / 1_000_000, 1):,f}"
    return f"{Decimal(tokens).scaleb(-6):f}".rstrip("0")


def price(value: Decimal | None, currency: str, *, digits: int = 2) -> str:
    """A price of something small: with `digits` more than the currency has, for a column whose header names it."""
    return exact(value, minor_unit_digits(currency) + digits)


def count(value: int, one: str, many: str) -> str:
    """`1 team`, `17 teams`."""
    return f"{value:,} {one if value == 1 else many}"


def percent(part: Decimal | int | None, whole: Decimal | int | None) -> str:
    """`66.7 %`; not known when there is no whole."""
    if part is None or not whole:
        return NOT_KNOWN
    return f"{round_minor(Decimal(part) * 100 / Decimal(whole), 1):,f} %"


def month_name(period: str) -> str:
    """`May 2020`."""
    return f"{month(period).start:%B %Y}"


def day(value: date) -> str:
    """`9 May 2020`."""
    return f"{value.day} {value:%B %Y}"


def moment(value: datetime) -> str:
    """`9 May 2020 23:56`, in whatever zone the value is in."""
    return f"{day(value.date())} {value:%H:%M}"


def bounded(name: str, limit: int = LABEL_LIMIT) -> str:
    """A stranger's name as one line of printable characters, cut when long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def plain(name: str, limit: int = LABEL_LIMIT) -> str:
    """A stranger's name made inert for Markdown: a code span. Backslashes would not stop autolinks and arrows."""
    line = bounded(name, limit)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}" if line else "` `"
