"""Time as the ledger sees it: half-open UTC periods, months, local days, and strict parsing.

Every stored time is UTC and every interval is half-open, `[start, end)`, so that neighbours
meet without a gap or a second counted twice. Time zones enter only when people read a report
by day, and when a source writes local times.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Self
from zoneinfo import ZoneInfo

from fleet.errors import quoted

_SECOND = timedelta(seconds=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)
_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:\.(?P<fraction>[0-9]{1,9}))?(?P<offset>[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """The time from `start` up to, but not including, `end`; both UTC, in whole seconds.

    ValueError when a bound has no zone, is not UTC, has a fraction of a second (the ledger
    counts whole seconds), or when the end is not after the start.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Refuse what is not a period; see the class."""
        for bound in (self.start, self.end):
            if bound.utcoffset() != timedelta(0):
                raise ValueError(f"a period needs UTC times, not {bound.isoformat()}")
            if bound.microsecond:
                raise ValueError(f"a period needs whole seconds, not {bound.isoformat()}")
        if self.start >= self.end:
            raise ValueError(f"a period must end after it starts, not at {self.end.isoformat()}")

    @property
    def seconds(self) -> int:
        """Its length in seconds."""
        return (self.end - self.start) // _SECOND

    def contains(self, moment: datetime) -> bool:
        """Whether the moment lies in it; the end does not."""
        return self.start <= moment < self.end

    def overlap(self, other: Self) -> Self | None:
        """The time both share, None if there is none; periods that only touch share none."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return type(self)(start, end) if start < end else None

    def hours(self) -> Iterator[datetime]:
        """The starts of the whole UTC hours that together cover it, in order."""
        hour = self.start.replace(minute=0, second=0)
        while hour < self.end:
            yield hour
            hour += _HOUR


@dataclass(frozen=True, slots=True, order=True)
class LocalDay:
    """The part of a period that falls on one local date; `start` and `end` are UTC."""

    day: date
    start: datetime
    end: datetime

    @property
    def seconds(self) -> int:
        """Its length: 86,400 for a whole day, an hour less or more when the clocks change."""
        return (self.end - self.start) // _SECOND


def month(text: str) -> Period:
    """The UTC month written `YYYY-MM`, 1970 to 9998; anything else is a ValueError."""
    match = _MONTH.fullmatch(text)
    if match is None or not 1970 <= int(match[1]) <= 9998:
        raise ValueError(f"{quoted(text)} is not a month (YYYY-MM)")
    start = datetime(int(match[1]), int(match[2]), 1, tzinfo=UTC)
    return Period(start, _next_month(start))


def period_name(period: Period) -> str:
    """`YYYY-MM` of a whole UTC month; ValueError for any other period."""
    start = period.start
    if start.year > 9998 or start != start.replace(day=1, hour=0, minute=0, second=0):
        raise ValueError(f"{_shown(period)} is not a whole UTC month")
    if period.end != _next_month(start):
        raise ValueError(f"{_shown(period)} is not a whole UTC month")
    return f"{start:%Y-%m}"


def zone_named(name: str) -> ZoneInfo:
    """The IANA time zone of that name, ValueError if there is none.

    `localtime`, which some systems keep beside the zones, is refused: a report must not
    depend on the machine that prints it.
    """
    try:
        if name != "localtime":
            return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        pass  # Missing names, folders and malformed names fail in different ways; one answer serves.
    raise ValueError(f"{quoted(name)} is not a time zone (such as UTC or Europe/Berlin)")


def local_days(period: Period, zone: str) -> list[LocalDay]:
    """The local days of `zone` that cover the period exactly, the first and last one clipped.

    A day starts at its first local midnight, or where the clocks jump over midnight at that
    jump, and ends where the next one starts; so days of 23 or 25 hours, offsets of half and
    quarter hours, and dates that a zone skipped all come out right, and the seconds of the
    days always sum to the seconds of the period. Unknown zone: ValueError.
    """
    info = zone_named(zone)
    # A day of margin on both sides: an offset change may put the first instant of the period
    # on a date whose midnight comes later.
    day = period.start.astimezone(info).date() - _DAY
    last = period.end.astimezone(info).date() + _DAY
    days: list[LocalDay] = []
    while day <= last:
        start = max(_midnight(day, info), period.start)
        end = min(_midnight(day + _DAY, info), period.end)
        if start < end:
            days.append(LocalDay(day, start, end))
        day += _DAY
    return days


def local_day_of(hour_start: datetime, zone: str) -> date:
    """The local date an hourly row is shown under: the one on which its UTC hour starts.

    The ledger's grain is the UTC hour. Where midnight falls inside an hour (India, Nepal, Lord
    Howe), the hour goes whole to the day it starts in: never split, never counted twice, so a
    report by local day still sums to the period's total.
    """
    if hour_start.utcoffset() is None:
        raise ValueError(f"{hour_start.isoformat()} has no time zone")
    return hour_start.astimezone(zone_named(zone)).date()


def parse_time(text: str, *, zone: str | None = None) -> datetime:
    """The UTC time of an RFC 3339 text, such as `2026-10-01T00:00:00Z`.

    A text without an offset is a ValueError unless `zone` names the zone it was written in;
    then a time that the clocks skipped, or showed twice, is a ValueError too, for only the
    writer knows what was meant. Digits beyond a microsecond are cut off. A leap second (:60)
    is refused: UTC as computers keep it has none.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{quoted(text)} is not a time (such as 2026-10-01T00:00:00Z)")
    fraction = (match["fraction"] or "")[:6].ljust(6, "0")
    offset = (match["offset"] or "").upper()
    if not offset and zone is None:
        raise ValueError(f"{quoted(text)} has no time zone")
    info = None if offset or zone is None else zone_named(zone)
    try:
        written = datetime.fromisoformat(f"{match['date']}T{match['clock']}.{fraction}{offset}")
        return (_localised(written, info, text) if info else written).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{quoted(text)} is out of range") from None
    except ValueError as error:
        if isinstance(error, _ClockChangeError):
            raise
        raise ValueError(f"{quoted(text)} does not exist: {error}") from None


class _ClockChangeError(ValueError):
    """A local time that a change of the clocks skipped or repeated."""


def _localised(written: datetime, info: ZoneInfo, text: str) -> datetime:
    """The naive local time with its zone; `_ClockChangeError` if it names no or two moments."""
    first, second = (written.replace(tzinfo=info, fold=fold) for fold in (0, 1))
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None
    assert after is not None
    if before < after:
        raise _ClockChangeError(f"{quoted(text)} does not exist in {info.key}: the clocks skipped it")
    if before > after:
        raise _ClockChangeError(f"{quoted(text)} is ambiguous in {info.key}: the clocks showed it twice")
    return first


def _midnight(day: date, info: ZoneInfo) -> datetime:
    # fold=0 is the first of two midnights; for a skipped one it counts on in the old offset,
    # which is the very instant of the jump when the jump starts at midnight.
    return datetime(day.year, day.month, day.day, tzinfo=info).astimezone(UTC)


def _next_month(start: datetime) -> datetime:
    return (start + 31 * _DAY).replace(day=1)


def _shown(period: Period) -> str:
    return f"{period.start.isoformat()} to {period.end.isoformat()}"
