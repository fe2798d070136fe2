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
from services.agent.asking import Asking

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
        ending: Callable[[int], None] | None = None,
    ) -> None:
        """Take the guard of the devices, and of each other source its period and what to do with a visit.

        `save` is called at each tick with the rows of windows that are over, mostly none; `ending` before its last
        call, when the agent stops.
        """
        self._node = node
        self._recorder = recorder
        self._devices = devices
        self._asked = [Asking(*other) for other in others]
        self._leaving: list[Asking] = []
        self._lock = threading.Lock()
        self._period_seconds = period_seconds
        self._save = save
        self._ending = ending
        self._stopping = threading.Event()
        self._timekeeper = threading.Thread(target=self._keep_time, name="devices", daemon=True)
        self._has_started = False
        self._ticked_at = time.monotonic()
        self._has_ticked = False

    def start(self) -> None:
        """Start the threads."""
        self._timekeeper.start()
        with self._lock:
            self._has_started = True
            for asking in self._asked:
                asking.start()

    def watch(self, asking: Asking) -> None:
        """Ask one more source from now on; not when the agent stops already."""
        with self._lock:
            if self._stopping.is_set():
                return
            if self._has_started:
                asking.start()
            self._asked.append(asking)

    def leave(self, asking: Asking) -> None:
        """Ask a source no more. It is not waited for: it may hang until its deadline."""
        with self._lock:
            if asking in self._asked:
                self._asked.remove(asking)
            self._leaving = [*(one for one in self._leaving if not one.join(0)), asking]
        asking.end()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """End the threads, record the open windows, and close the collectors. One that hangs is left behind."""
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            self._stopping.set()
            asked = (*self._asked, *self._leaving)
        for asking in asked:
            asking.stop()
        if self._has_started:
            self._timekeeper.join(max(0.0, deadline - time.monotonic()))
        for asking in asked:
            asking.join(max(0.0, deadline - time.monotonic()))
        try:
            second = int(time.time())
            try:
                if self._ending:
                    self._ending(second)
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
        with self._lock:
            return (self._devices, *(asking.guard for asking in self._asked))

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

    def _record(self, rows: Mapping[str, tuple[Row, ...]]) -> None:
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
