"""Turn who holds devices now, told second by second, into rows with times for the lake.

    rows = HoldingRows(bridge_seconds=300)
    finished = rows.advance(second, held)     # held from the second before to this one; None is unknown

The same holding second after second is one row, cut where windows meet. Time in which nobody can say who holds has no
rows; if the same owner holds before and after a short one, it is filled in and marked `assumed`.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, Final

from collectors.rows.seconds import Clock, pieces
from collectors.samples import Held
from fleet.telemetry import TEXT_LIMIT, WINDOW_SECONDS, HoldingRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAMES: Final = tuple(field.name for field in fields(Held))
_TEXTS: Final = tuple(name for name in _NAMES if name not in {"device", "gpu_millionths"})
_OWNER: Final = (
    "device", "owner_kind", "namespace", "workload", "pod", "pod_uid", "container", "job_id", "user_name",
)  # fmt: skip
_STATE_VERSION: Final = 1


class HoldingRows:
    """The holdings that are going on. `state` lets a later process of the same boot go on from here."""

    def __init__(
        self,
        window_seconds: int = WINDOW_SECONDS,
        bridge_seconds: int = 0,
        longest_gap_seconds: int = 5,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin anew, or from a state; one that cannot be read is as none.

        Two calls farther apart than `longest_gap_seconds` leave unknown time between them; up to `bridge_seconds` of
        such time are filled in where the same owner holds before and after.
        """
        self._window_seconds = window_seconds
        self._bridge_seconds = bridge_seconds
        self._gap_seconds = longest_gap_seconds
        self._clock = Clock()
        self._open: dict[Held, int] = {}
        """What is held, and the second since which, or up to which there are rows."""
        self._told: tuple[Held, ...] | None = None
        self._before: tuple[Held, ...] = ()
        self._unknown_since: int | None = None
        self._done: list[HoldingRow] = []
        self._was_away = False
        if state:
            self._resume(state)

    def advance(self, second: int, held: tuple[Held, ...] | None) -> tuple[HoldingRow, ...]:
        """Take what is held up to a second; return the rows of windows that are over.

        Time that is covered already is not covered again when the clock goes back.
        """
        last = self._clock.newest
        if self._clock.has_returned(second):
            self._lose(second if last is None else last)
            self._before, self._unknown_since = (), None
            last = second
        elif last is not None and second <= last:
            return ()
        if last is None:
            last = second
        if held is None:
            self._lose(last)
        else:
            if self._was_away or second - last > self._gap_seconds:
                self._lose(last)
                last = second
            self._hold(last, held)
        self._was_away = False
        return self._over(second)

    def close(self, second: int) -> tuple[HoldingRow, ...]:
        """Return all rows up to the newest second: the agent stops. The state is to be taken after."""
        newest = self._clock.newest
        if newest is None:
            return ()
        for held, since in self._open.items():
            self._finish(held, since, min(second, newest))
            self._open[held] = max(since, min(second, newest))
        return self._taken()

    def state(self) -> dict[str, Any]:
        """All that is going on, as plain values for JSON; to be kept with the rows returned so far."""
        return {
            "version": _STATE_VERSION,
            "clock": asdict(self._clock),
            "open": [[asdict(held), since] for held, since in self._open.items()],
            "before": [asdict(held) for held in self._before],
            "unknown_since": self._unknown_since,
            "done": [asdict(row) for row in self._done],
        }

    def _resume(self, state: Mapping[str, Any]) -> None:
        if state.get("version") != _STATE_VERSION:
            return
        try:
            clock = Clock(**state["clock"])
            going_on = {Held(**held): int(since) for held, since in state["open"]}
            before = tuple(Held(**held) for held in state["before"])
            done = [HoldingRow(**row) for row in state["done"]]
            unknown_since = state["unknown_since"]
        except (AttributeError, KeyError, TypeError, ValueError):
            # Left by another version: nothing is bridged, as after a boot.
            return
        self._clock, self._open, self._before, self._done = clock, going_on, before, done
        self._unknown_since = unknown_since
        # Nobody looked while the agent was away, however short that was.
        self._was_away = clock.newest is not None
        if clock.newest is not None:
            self._lose(clock.newest)

    def _lose(self, second: int) -> None:
        """From this second on nobody knows who holds."""
        if self._unknown_since is None:
            self._before, self._unknown_since = tuple(self._open), second
            for held, since in self._open.items():
                self._finish(held, since, second)
            self._open = {}
            self._told = None

    def _bridge(self, second: int, held: tuple[Held, ...]) -> None:
        """Fill in unknown time that ends at this second, as far as the same owners hold on both sides."""
        since = self._unknown_since
        if since is None:
            return
        if 0 < second - since <= self._bridge_seconds:
            before: dict[tuple[Any, ...], int] = {}
            for known in self._before:
                before[_owner(known)] = before.get(_owner(known), 0) + known.gpu_millionths
            for known in held:
                left = before.get(_owner(known), 0)
                share = min(left, known.gpu_millionths)
                if share:
                    before[_owner(known)] = left - share
                    assumed = replace(known, gpu_millionths=share, confidence="assumed", conflict=None)
                    self._finish(assumed, since, second)
        self._before, self._unknown_since = (), None

    def _hold(self, second: int, told: tuple[Held, ...]) -> None:
        """Hold these from a second on, which is when the others ended."""
        if told == self._told:
            return
        held = _once_each(told)
        self._bridge(second, held)
        now = set(held)
        for known in [known for known in self._open if known not in now]:
            self._finish(known, self._open.pop(known), second)
        for known in held:
            self._open.setdefault(known, second)
        self._told = told

    def _over(self, second: int) -> tuple[HoldingRow, ...]:
        edge = second - second % self._window_seconds
        for held, since in self._open.items():
            if since < edge:
                self._finish(held, since, edge)
                self._open[held] = edge
        return self._taken() if any(row.to_second <= edge for row in self._done) else ()

    def _taken(self) -> tuple[HoldingRow, ...]:
        done, self._done = self._done, []
        return tuple(sorted(done, key=lambda row: (row.device, row.from_second, _sortable(row))))

    def _finish(self, held: Held, since: int, until: int) -> None:
        # The hub takes no longer name, and a name cut short would be another's.
        if len(held.device) > TEXT_LIMIT:
            return
        texts = {name: getattr(held, name) for name in _TEXTS}
        cut: dict[str, Any] = {name: text and text[:TEXT_LIMIT] for name, text in texts.items()}
        for _, begin, end in pieces(since, until, self._window_seconds):
            self._done.append(
                HoldingRow(
                    device=held.device, from_second=begin, to_second=end, gpu_millionths=held.gpu_millionths, **cut
                )
            )


def _owner(held: Held) -> tuple[Any, ...]:
    return tuple(getattr(held, name) for name in _OWNER)


def _sortable(row: HoldingRow) -> tuple[str, ...]:
    return tuple(getattr(row, name) or "" for name in _TEXTS)


def _once_each(held: Iterable[Held]) -> tuple[Held, ...]:
    """Each holding once: one that is told in two parts is their sum."""
    shares: dict[Held, int] = {}
    for known in held:
        bare = replace(known, gpu_millionths=0)
        shares[bare] = shares.get(bare, 0) + known.gpu_millionths
    return tuple(replace(bare, gpu_millionths=share) for bare, share in shares.items())
