"""What a fault code means: how severe it is, what kind of fault, and what to do about it.

    fault("xid", 79).severity        # "critical"
    fault("sxid", 12028, "Non-fatal, ...")

Codes are NVIDIA's: Xid of a GPU, SXid of an NVSwitch, and the event bits of NVML. Some Xids say only in their text how
severe they are. A code that is not listed is a warning of class "unknown", so that nothing is drained on a guess.
The tables are in `xid_table`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from collectors.faults.xid_table import (
    ALWAYS_FATAL_SXIDS,
    BY_TEXT,
    FATAL_SXIDS,
    NONFATAL_SXIDS,
    NVML_EVENTS,
    RECOVERY_ACTION_CHANGED,
    XIDS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.samples import CodeSpace, Severity


@dataclass(frozen=True, slots=True)
class Fault:
    """The judgement of one code. `fault_class` says who has to act.

    application: whoever runs there; reset: drain the GPU and reset it; reboot: the node; hardware: the vendor;
    link: NVLink or its switch; notice: nobody yet; test: nobody; unknown: somebody has to find out.
    """

    severity: Severity
    fault_class: str
    meaning: str
    action: str


UNKNOWN: Final = Fault("warn", "unknown", "not listed", "look the code up; do not drain on it alone")
_FATALITY: Final = re.compile(r"\b(?:(non)-?)?fatal\b", re.IGNORECASE)
_NEXT_ACTION: Final = re.compile(r"\bto 0x[0-9a-f]+ \(([^)]{1,60})\)", re.IGNORECASE)
_SWITCH_FATAL: Final = Fault("critical", "link", "fatal NVSwitch fault", "reset the link's GPUs or restart the guest")
_SWITCH_REBOOT: Final = Fault("critical", "reboot", "NVSwitch fault that no reset mends", "restart the host")
_SWITCH_NONFATAL: Final = Fault("warn", "link", "corrected NVSwitch fault", "watch; the same link again: service")


def fault(code_space: CodeSpace, code: int, text: str | None = None) -> Fault:
    """What a code means; `text` is the line that came with it, where some say how severe it is."""
    if code_space == "xid":
        return _xid(code, text or "")
    if code_space == "sxid":
        return _sxid(code, text or "")
    if code_space == "nvml":
        return _NVML.get(code, UNKNOWN)
    return UNKNOWN


def _listed() -> Mapping[int, Fault]:
    return {code: Fault(severity, *said) for codes, severity, *said in XIDS for code in codes}


_XID: Final = _listed()
_NVML: Final[Mapping[int, Fault]] = {code: Fault(severity, *said) for code, severity, *said in NVML_EVENTS}

_CRITICAL: Final = {code for code, judged in _XID.items() if judged.severity == "critical"}
PAGING_XIDS: Final = tuple(sorted(_CRITICAL | {*BY_TEXT}))
"""Xids that are critical, or may be by their text: their counters start at 0, so that the first one is an increase."""


def _xid(code: int, text: str) -> Fault:
    judged = _XID.get(code, UNKNOWN)
    if code == RECOVERY_ACTION_CHANGED:
        return _recovery(judged, text)
    if code in BY_TEXT and _is_fatal(text):
        return replace(judged, severity="critical", action="drain the GPU and reset it")
    return judged


def _recovery(judged: Fault, text: str) -> Fault:
    """Xid 154 names the action that the driver asks for by now."""
    found = _NEXT_ACTION.search(text)
    action = found[1].lower() if found else ""
    if action == "none":
        return replace(judged, severity="info", fault_class="notice", action="none: the driver asks for nothing more")
    if "reset" in action:
        return replace(judged, severity="critical", fault_class="reset", action="drain the GPU and reset it")
    if "reboot" in action:
        return replace(judged, severity="critical", fault_class="reboot", action="drain the node and reboot it")
    return judged


def _sxid(code: int, text: str) -> Fault:
    """The word in the line comes first: what a firmware calls fatal changes with its version."""
    if code in ALWAYS_FATAL_SXIDS:
        listed = _SWITCH_REBOOT
    elif code in FATAL_SXIDS:
        listed = _SWITCH_FATAL
    else:
        listed = _SWITCH_NONFATAL if code in NONFATAL_SXIDS else UNKNOWN
    fatal = _is_fatal(text)
    if fatal is None or fatal == (listed.severity == "critical"):
        return listed if listed is not UNKNOWN or fatal is None else _SWITCH_NONFATAL
    return _SWITCH_FATAL if fatal else _SWITCH_NONFATAL


def _is_fatal(text: str) -> bool | None:
    """Whether a line says that it is fatal; None if it says neither."""
    found = _FATALITY.search(text)
    return None if found is None else not found[1]
