"""Lines of the kernel's log that tell of a GPU or NVSwitch: what each says, as an event.

A line counts only where the kernel wrote it. Of a record of `/dev/kmsg` its facility tells; in a text log (dmesg,
journalctl, syslog) the form of what stands before the message. So nobody can log a fault by a program's name.
Sources of the forms: NVIDIA's Xid documentation, public logs of drivers 384 to 580.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from collectors.faults.xid import fault
from collectors.samples import DeviceEvent
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from collectors.samples import CodeSpace

OFF_THE_BUS: Final = 79
_KERNEL_FACILITY: Final = 0
_RECORD: Final = re.compile(r"(\d{1,10}),(\d{1,20}),(\d{1,20}),[^;]{0,200};(.*)")
_PREFIX: Final = re.compile(
    r"(?:<\d{1,3}>)?"
    r"(?:(?:(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,16})|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S{1,255} kernel: )?"
    r"(?:\[[^\]]{1,40}\] )?"
)
_ADDRESS: Final = r"(?:PCI:)?(?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?"
_XID: Final = re.compile(
    rf"NVRM: Xid \({_ADDRESS}(?: GPU-I:(?P<instance>\d{{1,3}}))?\): (?P<code>\d{{1,5}})(?:, ?|$)(?P<text>.*)"
)
_FALLEN: Final = re.compile(rf"NVRM: GPU (?:at )?{_ADDRESS}: (?P<text>GPU has fallen off the bus.*)")
_SXID: Final = re.compile(rf"nvidia-nvswitch\d{{1,3}}: SXid \({_ADDRESS}\): (?P<code>\d{{1,5}})(?:, ?|$)(?P<text>.*)")
_MORE_OF_AN_SXID: Final = re.compile(r"Severity \d|Data \{")
"""Lines that follow an SXid with the same code and its details: no event of their own."""
_PID: Final = re.compile(r"pid='?(\d{1,10})'?")
_HINTS: Final = ("NVRM: ", "nvidia-nvswitch")


@dataclass(frozen=True, slots=True)
class Found:
    """An event in the log. `since_boot_us` orders it against others, None where the line does not tell."""

    event: DeviceEvent
    is_without_xid: bool
    since_boot_us: int | None


def read_line(line: str, boot: str, at_ns: Callable[[int | None], int | None]) -> Found | None:
    """What a line says; None for one that is not about a fault.

    `boot` names the boot that the line is of; `at_ns` gives the time of a moment in microseconds since boot, or what
    is to stand for the time of a line that does not tell.
    """
    if not any(hint in line for hint in _HINTS):
        return None
    record = _RECORD.fullmatch(line)
    if record:
        if int(record[1]) >> 3 != _KERNEL_FACILITY:
            return None  # a program wrote it
        since_boot_us = int(record[3])
        return _message(record[4], f"{boot}/{record[2]}.{record[3]}", at_ns(since_boot_us), since_boot_us)
    prefix = _PREFIX.match(line)
    if prefix is None:  # the pattern matches nothing too
        return None
    mark = hashlib.sha256(prefix[0].encode(errors="replace")).hexdigest()[:16]
    return _message(line[prefix.end() :], f"{boot}/{mark}", _iso_ns(prefix["iso"]) or at_ns(None), None)


def _message(message: str, mark: str, ts_nanoseconds: int | None, since_boot_us: int | None) -> Found | None:
    space: CodeSpace = "xid"
    found = _XID.match(message)
    is_fallen = False
    if found is None and (found := _FALLEN.match(message)):
        is_fallen = True
    if found is None and (found := _SXID.match(message)):
        space = "sxid"
        if _MORE_OF_AN_SXID.match(found["text"]):
            return None
    if found is None:
        return None
    code = OFF_THE_BUS if is_fallen else int(found["code"])
    pci, text = bus_id(found["pci"]), plain(found["text"])
    judged = fault(space, code, text)
    # Only the first field may say it: what follows holds the process' own name.
    process = _PID.match(text)
    pid = int(process[1]) if process else None
    instance = found["instance"] if space == "xid" and not is_fallen else None
    event = DeviceEvent(
        ts_nanoseconds,
        None,
        space,
        code,
        source="kernel_log",
        severity=judged.severity,
        fault_class=judged.fault_class,
        text=text,
        pci_bus_id=pci,
        pid=pid,
        gpu_instance_id=None if instance is None else int(instance),
        event_id=f"{mark}/{pci}/{space}{code}/{pid or ''}",
    )
    return Found(event, is_fallen, since_boot_us)


def bus_id(text: str) -> str:
    """A PCI address as NVML writes it: an eight-digit domain, upper case, function 0."""
    domain, bus, device = text.split(":")
    return f"{int(domain, 16):08X}:{bus.upper()}:{device.upper()}.0"


def plain(text: str) -> str:
    """A text of the log on one line, printable and cut to what is stored."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:TEXT_LIMIT]).strip()


def _iso_ns(text: str | None) -> int | None:
    """The time in a line, if it has a zone; without one nobody knows which moment it means."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    if moment is None or moment.tzinfo is None:
        return None
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
