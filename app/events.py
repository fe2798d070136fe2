"""What happened to the fleet in a month, as far as it is known: stops and quota files that disagree.

They are shown as what they are. Nothing of them changes who pays.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app import figures, text
from app.frame import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.frame import Page


@dataclass(frozen=True, slots=True)
class Event:
    """A stretch of time with its meaning; times are wall clock of the reporting zone."""

    mark: str
    kind: str
    pool: str
    start: datetime
    end: datetime
    words: str


def events_of(page: Page) -> list[Event]:
    """The month's events in order, numbered."""
    found: list[tuple[datetime, datetime, str, str, str]] = [
        (stop["local_from"], stop["local_to"], figures.STOP, stop["pool"], _stop_words(stop))
        for stop in rows_of(page.ask("fleet_stop"))
    ]
    found += [
        (row["local_from"], row["local_to"], figures.CONFLICT, row["pool"], _conflict_words(row))
        for row in rows_of(page.ask("fleet_quota_conflict"))
    ]
    return [
        Event(str(number), kind, pool, start, end, words)
        for number, (start, end, kind, pool, words) in enumerate(sorted(found), start=1)
    ]


def bands_of(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The events as shaded bands of a chart."""
    return [
        {
            "from": wall_ms(event.start),
            "to": wall_ms(event.end),
            "middle": (wall_ms(event.start) + wall_ms(event.end)) / 2,
            "kind": event.kind,
            "mark": event.mark,
            "words": f"{event.mark}. {event.kind}, {text.bounded(event.pool, 40)}",
        }
        for event in events
    ]


def legend_of(events: Sequence[Event]) -> str:
    """The events as one line below a chart, for those who cannot tell shades apart."""
    spans = [f"{text.moment(event.start)} to {text.moment(event.end)}" for event in events]
    kinds = [event.kind[:1].lower() + event.kind[1:] for event in events]
    return "; ".join(f"{event.mark}: {kind}, {span}" for event, kind, span in zip(events, kinds, spans, strict=True))


def wall_ms(moment: datetime) -> float:
    """A wall-clock time as milliseconds on a scale without zones."""
    return moment.replace(tzinfo=UTC).timestamp() * 1000


def lasted(start: datetime, end: datetime) -> str:
    """`48 h 5 min`."""
    minutes = int((end - start).total_seconds()) // 60
    hours, rest = divmod(minutes, 60)
    return f"{hours:,} h {rest} min" if hours and rest else f"{hours:,} h" if hours else f"{rest} min"


def _stop_words(stop: dict[str, Any]) -> str:
    return (
        f"From {text.gpus(stop['gpus_held_before'])} held GPUs to none; "
        f"{text.gpu_hours(stop['idle_gpu_microseconds'])} GPU-hours stood idle. An outage or a maintenance window "
        "looks like this; holdings do not say which. Its cost is idle cost, shared by the same policy as the rest."
    )


def _conflict_words(row: dict[str, Any]) -> str:
    others = text.count(row["other_team_count"], "team", "teams")
    return (
        f"{row['source']} says {text.gpus(row['gpus'])} GPUs in all and decides; {row['other_source']} says "
        f"{text.gpus(row['other_gpus'])} GPUs, for {others} only. "
        f"{text.count(row['team_count'], 'team', 'teams')} differ. "
        "Holdings are unaffected, and so is what each team pays for them."
    )
