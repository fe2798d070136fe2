"""What the counters of a model server stood at, small enough to be kept on disk while no agent runs.

    counted = visit.counted                   # after a visit
    EngineServer(..., saved=counted)          # its next page makes a step with the one that was seen last

Only counters that a mapping knows are in it. Beyond the limits below the rest is left out: such a series counts as new
for the next reader, so what was added meanwhile is not known, and marked. Buckets of histograms go first: without them
the sum and the count are still exact.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from collectors.serving.plain import amount, histogram, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.serving.labels import Key
    from collectors.serving.samples import Histogram

_VERSION: Final = 1
MOST_VALUES: Final = 8_192
MOST_HISTOGRAMS: Final = 1_024
MOST_BUCKETS: Final = 32_768
MOST_LABEL_CHARACTERS: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters of one server as a page showed them; nothing in it ever changes.

    `of` says whose they are: those of another server are of no use. Times as in `Observed`.
    """

    of: str
    ts_nanoseconds: int | None = None
    started: float | None = None
    values: Mapping[Key, float] = field(default_factory=dict)
    histograms: Mapping[Key, Histogram] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        """As plain values for JSON, within the limits; `left_out` counts the series that are not in it."""
        table = _Table()
        values = [[*at, value] for key, value in self.values.items() if (at := table.at(key, MOST_VALUES, "value"))]
        kept = [(at, h) for key, h in self.histograms.items() if (at := table.at(key, MOST_HISTOGRAMS, "histogram"))]
        has_buckets = sum(len(histogram.counts) for _, histogram in kept) <= MOST_BUCKETS
        return {
            "version": _VERSION,
            "of": self.of,
            "ts_nanoseconds": self.ts_nanoseconds,
            "started": self.started,
            "names": list(table.names),
            "labels": [sorted(labels) for labels in table.labels],
            "values": values,
            "histograms": [
                [*at, h.sum, h.count, list(h.bounds) if has_buckets else [], list(h.counts) if has_buckets else []]
                for at, h in kept
            ],
            "left_out": table.left_out,
        }

    @classmethod
    def restored(cls, state: object) -> Counted | None:
        """Those that a state holds; None if it is none, or left by another version."""
        if not isinstance(state, dict) or state.get("version") != _VERSION:
            return None
        try:
            names = [text(name) for name in state["names"]]
            labels = [frozenset((text(name), text(value)) for name, value in pairs) for pairs in state["labels"]]
            return cls(
                text(state["of"]),
                None if state["ts_nanoseconds"] is None else whole(state["ts_nanoseconds"]),
                None if state["started"] is None else amount(state["started"]),
                {(names[name], labels[place]): amount(value) for name, place, value in state["values"]},
                {
                    (names[name], labels[place]): histogram(total, count, bounds, counts)
                    for name, place, total, count, bounds, counts in state["histograms"]
                },
            )
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return None


def place_of(kind: str, source: str) -> str:
    """What tells servers apart on disk, where no address should stand: it may hold what is nobody's business."""
    return hashlib.sha256(f"{kind} {source}".encode(errors="replace")).hexdigest()[:32]


class _Table:
    """Names and label sets by number, each once: most series of a page share theirs."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.labels: dict[frozenset[tuple[str, str]], int] = {}
        self.left_out = 0
        self._characters = 0
        self._taken = {"value": 0, "histogram": 0}

    def at(self, key: Key, limit: int, kind: str) -> tuple[int, int] | None:
        """The numbers of a series; None beyond what is kept."""
        name, labels = key
        size = 0 if labels in self.labels else sum(len(label) + len(value) for label, value in labels)
        if self._taken[kind] >= limit or self._characters + size > MOST_LABEL_CHARACTERS:
            self.left_out += 1
            return None
        self._taken[kind] += 1
        self._characters += size
        return self.names.setdefault(name, len(self.names)), self.labels.setdefault(labels, len(self.labels))
