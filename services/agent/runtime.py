"""Run the agent: one thread keeps time and reads the devices, one each asks the other sources, one sends to the hub.

None waits for another: the page shows what is known, whatever hangs.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from collectors.guard import measured_status
from fleet.catalogue import by_name
from fleet.errors import GputallyError
from fleet.measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from collectors.guard import Guard, Visit
    from collectors.samples import Reading
    from fleet.telemetry import Row
    from services.agent.recorder import Recorder

log = logging.getLogger(__name__)
_STALLED_SECONDS: Final = 120.0


class Runtime:
    """The agent's threads. `start`, then `stop`; `health` and `measurements` may be asked at any time."""

    def __init__(
        self,
        node: str,
        recorder: Recorder,
        devices: Guard[Reading],
        others: Sequence[tuple[Guard[Any], float, Callable[[Visit[Any]], None]]],
        *,
        period_seconds: int,
        save: Callable[[Mapping[str, tuple[Row, ...]]], None],
        ending: Callable[[int], Mapping[str, Sequence[Row]]] | None = None,
    ) -> None:
        """Take the guard of the devices, and of each other source its period and what to do with a visit.

        `ending` gives the rows that are still open elsewhere when the agent stops.
        """
        self._node = node
        self._recorder = recorder
        self._devices = devices
        self._others = tuple(others)
        self._period_seconds = period_seconds
        self._save = save
        self._ending = ending
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._ticked_at = time.monotonic()
        self._has_ticked = False

    def start(self) -> None:
        """Start the threads."""
        self._threads = [threading.Thread(target=self._keep_time, name="devices", daemon=True)]
        for guard, period, use in self._others:
            self._threads.append(
                threading.Thread(target=self._ask, args=(guard, period, use), name=guard.collector, daemon=True)
            )
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """End the threads, record the open windows, and close the collectors. One that hangs is left behind."""
        self._stopping.set()
        deadline = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        try:
            second = int(time.time())
            try:
                if self._ending:
                    self._recorder.keep(self._ending(second), second)
            finally:
                self._record(self._recorder.finish(second))
        except Exception:
            log.exception("the open windows were lost")
        for guard in self._guards():
            guard.close()

    def health(self) -> tuple[bool, str]:
        """Whether time is kept: the devices are asked, whatever they answer."""
        age = time.monotonic() - self._ticked_at
        return (
            (True, "ok")
            if age < max(_STALLED_SECONDS, 3 * self._period_seconds)
            else (False, f"no tick for {age:.0f} seconds")
        )

    def ready(self) -> tuple[bool, str]:
        """Whether the devices have been asked once, so that the page is worth a scrape."""
        return (True, "ok") if self._has_ticked else (False, "the devices have not been asked yet")

    def measurements(self) -> Iterator[Measurement]:
        """All series of the devices and the collectors."""
        yield from self._recorder.measurements()
        for guard in self._guards():
            yield from measured_status(self._node, guard.status())

    def _guards(self) -> tuple[Guard[Any], ...]:
        return (self._devices, *(guard for guard, _, _ in self._others))

    def _keep_time(self) -> None:
        said = ""
        while not self._stopping.wait(_until_next(self._period_seconds, time.time())):
            visit = self._devices.visit()
            if visit.reason and visit.reason != said:
                log.warning("devices cannot be read", extra={"outcome": visit.outcome, "reason": visit.reason})
            said = visit.reason or ""
            try:
                self._tick(visit)
            except Exception:
                # A bug, or the one second that nobody thought of: told, and where it stays, `health` fails.
                log.exception("a second was lost")

    def _tick(self, visit: Visit[Reading]) -> None:
        second = int(time.time())
        self._record(self._recorder.tick(self._devices.collector, second, visit.reading, time.time_ns()))
        self._ticked_at, self._has_ticked = time.monotonic(), True

    def _ask(self, guard: Guard[Any], period_seconds: float, use: Callable[[Visit[Any]], None]) -> None:
        said = ""
        while not self._stopping.is_set():
            visit = guard.visit()
            if visit.reason and visit.reason != said:
                log.warning("collector", extra={"collector": guard.collector, "reason": visit.reason})
            said = visit.reason or ""
            try:
                use(visit)
            except Exception:
                # The thread must live: a source that nobody asks any more would stand as it was, and be believed.
                log.exception("a visit was lost", extra={"collector": guard.collector})
            self._stopping.wait(period_seconds)

    def _record(self, rows: Mapping[str, tuple[Row, ...]]) -> None:
        if not rows:
            return
        try:
            self._save(rows)
        except GputallyError as error:
            # What cannot be written to disk is lost, and the spool has counted it: keeping it would fill the memory.
            log.error("rows are lost: the spool refuses them", extra={"reason": str(error)})  # noqa: TRY400 - no bug


def agent_measurements(node: str, version: str, boot_id: str) -> Iterator[Measurement]:
    """What the agent says of itself."""
    yield Measurement(by_name("gputally_agent_build_info"), (node, version, boot_id), 1)


def _until_next(period_seconds: int, now: float) -> float:
    """Seconds until the next whole multiple of the period; windows are cut where periods meet."""
    return period_seconds - now % period_seconds
