"""The collector of the kernel's log: the record of Xids and SXids.

    log = KernelLog()
    reading = log.collect()      # what was logged since the last visit

It reads `/dev/kmsg` (Linux, Documentation/ABI/testing/dev-kmsg), a record with each read, or a text log that somebody
else writes. A visit never waits. Reading starts at the end, or with `since_boot` at the oldest record that is still
there; a record that is seen again has the same event id.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import Counter, OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collectors.collector import SourceAbsentError
from collectors.kernel_log.lines import OFF_THE_BUS, read_line
from collectors.samples import Reading, Rejected
from fleet.errors import GputallyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collectors.kernel_log.lines import Found
    from collectors.samples import DeviceEvent

KMSG: Final = "/dev/kmsg"
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
CHUNK_BYTES: Final = 65_536
"""More than the largest record; one that does not fit is refused by the kernel."""
LINE_BYTES: Final = 16_384
VISIT_BYTES: Final = 8 * 2**20
"""Read in one visit; the rest waits for the next."""
MOST_REMEMBERED: Final = 4096
PAIR_US: Final = 60_000_000


class KernelLog:
    """The faults in one log."""

    def __init__(
        self,
        path: str | Path = KMSG,
        *,
        since_boot: bool = False,
        boot_id: str | None = None,
        is_live: bool = True,
        wall_ns: Callable[[], int] = time.time_ns,
        uptime_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Nothing is opened before the first visit.

        `boot_id` names the boot; by default the kernel is asked. A log that is not live is of another time or machine:
        its events have a time only where the line says it in full.
        """
        self.is_behind = False
        """The last visit ended before the log did, because it had read enough."""
        self._path = Path(path)
        self._since_boot = since_boot
        self._boot_id = boot_id
        self._is_live = is_live
        self._wall_ns, self._uptime_ns = wall_ns, uptime_ns
        self._descriptor: int | None = None
        self._is_file = False
        self._rest = b""
        self._skips_line = False
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._off_bus: OrderedDict[str, tuple[bool, int | None]] = OrderedDict()

    def collect(self) -> Reading:
        """What was logged since the last visit; SourceAbsentError when the log cannot be opened."""
        if self._descriptor is None:
            self._open()
        refused: Counter[str] = Counter()
        events = []
        for line in self._lines(refused):
            found = read_line(line, self._boot_id or "", self._at_ns)
            if found and self._is_news(found):
                events.append(found.event)
        return Reading(
            events=tuple(events),
            rejected=tuple(Rejected(reason, count) for reason, count in sorted(refused.items())),
        )

    def close(self) -> None:
        """Close the log; the next visit would begin at its end."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _open(self, *, from_start: bool = False) -> None:
        if self._boot_id is None:
            self._boot_id = _boot_id()
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            raise SourceAbsentError(
                f"{self._path}: may not be read; run as root with CAP_SYSLOG, or name a text log that is readable"
            ) from None
        except OSError as error:
            raise SourceAbsentError(f"{self._path}: {error.strerror}; mount it, or name a text log") from None
        self._descriptor = descriptor
        mode = os.fstat(descriptor).st_mode
        self._is_file = stat.S_ISREG(mode)
        if stat.S_ISFIFO(mode) or from_start or self._since_boot:
            return  # a record device is at its oldest record when it is opened
        try:
            os.lseek(descriptor, 0, os.SEEK_END)
        except OSError as error:
            self.close()
            raise GputallyError(f"{self._path}: cannot be read as a log: {error.strerror}") from None

    def _lines(self, refused: Counter[str]) -> Iterator[str]:
        """Yield whole lines; one that is not finished waits for its end."""
        for chunk in self._chunks(refused):
            *lines, rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                if self._skips_line:
                    self._skips_line = False
                elif len(line) > LINE_BYTES:
                    refused["line_too_long"] += 1
                elif line and line[:1] != b" ":  # a record's keys follow it, each after a blank
                    yield line.decode(errors="replace")
            if len(rest) > LINE_BYTES:
                refused["line_too_long"] += not self._skips_line
                rest, self._skips_line = b"", True
            self._rest = rest

    def _chunks(self, refused: Counter[str]) -> Iterator[bytes]:
        left = VISIT_BYTES
        self.is_behind = False
        while left > 0 and self._descriptor is not None:
            try:
                chunk = os.read(self._descriptor, CHUNK_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.EPIPE:  # the oldest records were overwritten before they were read
                    refused["overrun"] += 1
                elif error.errno == errno.EINVAL:
                    refused["line_too_long"] += 1
                else:
                    self.close()
                    raise GputallyError(f"{self._path}: {error.strerror}") from None
                left -= CHUNK_BYTES
                continue
            if not chunk:
                if not self._is_replaced():
                    return
                continue
            left -= len(chunk)
            yield chunk
        self.is_behind = True

    def _is_replaced(self) -> bool:
        """Whether a text log was rotated or cut short; then reading goes on at the start of the new one."""
        if not self._is_file or self._descriptor is None:
            return False
        held, position = os.fstat(self._descriptor), os.lseek(self._descriptor, 0, os.SEEK_CUR)
        try:
            now = self._path.stat()
        except OSError:
            return False  # between two names: it will be back
        if (now.st_dev, now.st_ino) == (held.st_dev, held.st_ino) and now.st_size >= position:
            return False
        self.close()
        self._rest = b""
        self._open(from_start=True)
        return True

    def _at_ns(self, since_boot_us: int | None) -> int | None:
        """The time of a moment since boot; without one, now, for a log that is followed while it is written."""
        if not self._is_live:
            return None
        now = self._wall_ns()
        return now if since_boot_us is None else now - self._uptime_ns() + since_boot_us * 1000

    def _is_news(self, found: Found) -> bool:
        event = found.event
        if event.event_id in self._seen:
            return False
        self._seen[event.event_id] = None
        if len(self._seen) > MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return event.code != OFF_THE_BUS or event.code_space != "xid" or not self._completes_a_pair(event, found)

    def _completes_a_pair(self, event: DeviceEvent, found: Found) -> bool:
        """Whether a line is the second about one fall: the driver says it as an Xid, in plain words, or both."""
        pci = event.pci_bus_id or ""
        before = self._off_bus.pop(pci, None)
        if before is not None and before[0] != found.is_without_xid and _is_near(before[1], found.since_boot_us):
            return True
        self._off_bus[pci] = (found.is_without_xid, found.since_boot_us)
        if len(self._off_bus) > MOST_REMEMBERED:
            self._off_bus.popitem(last=False)
        return False


def _is_near(one_us: int | None, other_us: int | None) -> bool:
    return one_us is None or other_us is None or abs(one_us - other_us) <= PAIR_US


def _boot_id() -> str:
    try:
        return Path(BOOT_ID).read_text(encoding="utf-8").strip()[:36]
    except (OSError, UnicodeDecodeError):
        return "unknown"
