"""The fault codes as data; `xid` gives them their meaning. Sources: NVIDIA's Xid catalogue and SXid lists.

A row is codes, severity, class, meaning, action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collectors.samples import Severity

RECOVERY_ACTION_CHANGED: Final = 154
NVLINK5_UNITS: Final = range(144, 151)
BY_TEXT: Final = (*NVLINK5_UNITS, RECOVERY_ACTION_CHANGED)
"""Xids whose severity stands in their text."""

_RESTART: Final = "restart the application; if it comes back, check the hardware"
_RESET: Final = "drain the GPU and reset it"
_RESET_THEN_SERVICE: Final = "drain the GPU and reset it; if it comes back, have the hardware checked"
_OWNER: Final = "tell the owner of the job; the same GPU under several applications: run diagnostics"

XIDS: Final[tuple[tuple[tuple[int, ...], Severity, str, str, str], ...]] = (
    ((8,), "warn", "application", "channel stopped making progress", _RESTART),
    ((11, 25, 32, 69), "info", "application", "bad stream of commands from an application", _OWNER),
    ((80,), "info", "application", "bad stream of commands from an application",
     "tell the owner of the job; if it repeats, check PCIe and the hardware"),
    ((13,), "info", "application", "a kernel did something illegal (bounds, instruction)", _OWNER),
    ((31,), "info", "application", "a kernel touched an illegal address", _OWNER),
    ((37, 38, 44, 66, 67, 141), "info", "notice", "notice of firmware or driver", "watch"),
    ((39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)), "warn", "application", "copy engine fault", _RESTART),
    ((43,), "info", "application", "an application's channel was stopped", "none, unless it repeats by itself"),
    ((45,), "info", "notice", "clean-up after another fault or a kill",
     "find the Xid beside it; alone on an NVSwitch machine: restart the fabric manager"),
    ((46,), "critical", "reset", "the GPU stopped processing", _RESET_THEN_SERVICE),
    ((48,), "critical", "reset", "uncorrectable memory error",
     "drain the GPU and reset it; without 63 or 64 beside it, run field diagnostics"),
    ((171, 172), "critical", "reset", "uncorrectable memory error, in detail", _RESET),
    ((54,), "critical", "hardware", "auxiliary power is missing", "check cables and power supply"),
    ((60, 68, 82, 83, 84, 86, 88, 89, *range(96, 106), 139, 142), "warn", "application",
     "video, JPEG or optical flow engine fault", _RESTART),
    ((61, 62), "critical", "reset", "the power management unit halted", _RESET_THEN_SERVICE),
    ((63,), "warn", "notice", "a row remapping or page retirement was recorded",
     "if a remapping is pending, reset the GPU at its next idle moment"),
    ((64,), "critical", "reset", "a row remapping or page retirement failed",
     "reset the GPU; if the failure stays, replace it"),
    ((74,), "critical", "link", "NVLink error", "check peer and switch; the same link again: replace"),
    ((78,), "warn", "notice", "a virtual GPU did not start", "bring host and guest driver to versions that match"),
    ((79,), "critical", "reboot", "the GPU fell off the bus",
     "drain the node and power-cycle it; if it comes back, reseat or replace the GPU"),
    ((92,), "warn", "hardware", "many corrected memory errors", "plan maintenance"),
    ((93,), "info", "notice", "the InfoROM wears out", "none"),
    ((94,), "warn", "application", "memory error, contained in one application",
     "restart that application; reset the GPU when convenient"),
    ((95,), "critical", "reset", "memory error that was not contained: all applications on the GPU are lost", _RESET),
    ((106, 107), "info", "test", "test message", "none"),
    ((109,), "warn", "reset", "context switch timed out", "watch; if it repeats, drain the GPU and reset it"),
    ((110,), "critical", "reset", "security fault", _RESET_THEN_SERVICE),
    ((119, 120), "critical", "reset", "the GPU's system processor does not answer or failed",
     "reset the GPU; if that fails, reboot the node; keep driver and firmware current"),
    ((121,), "warn", "notice", "corrected error of the chip-to-chip link", "watch the trend"),
    ((136,), "critical", "link", "NVLink did not train", _RESET_THEN_SERVICE),
    ((137,), "warn", "link", "NVLink refused an access", _RESET_THEN_SERVICE),
    ((140,), "critical", "reset", "memory error that was not recovered", "reset the GPU, then run diagnostics"),
    ((143,), "critical", "reset", "the GPU did not initialise", "reset; then reboot; then the vendor"),
    ((158,), "critical", "reset", "fatal timeout in the GPU", "reset; then reboot; then the vendor"),
    ((167,), "critical", "reboot", "fatal timeout on PCIe", "reboot the node; then the vendor"),
    ((*NVLINK5_UNITS,), "warn", "link", "fault in a unit of NVLink 5", "read link and status words in the text"),
    ((151,), "critical", "reboot", "key rotation failed (confidential computing)", "restart the virtual machine"),
    ((RECOVERY_ACTION_CHANGED,), "warn", "notice", "the driver asks for another recovery action",
     "do what the text or the recovery action of the device says"),
    ((155,), "critical", "link", "NVLink fault that software defines", _RESET),
    ((156,), "warn", "reset", "a resource was retired", "reset the GPU at its next drain, which activates it"),
    ((157,), "critical", "hardware", "a resource could not be retired", "have the vendor replace it"),
    ((160,), "warn", "notice", "a memory channel was retired", "none"),
    ((161,), "warn", "hardware", "a memory channel could not be retired", "plan to replace the GPU"),
    ((162, 163, 164), "warn", "notice", "power smoothing circuit wears out", "watch"),
    ((165,), "warn", "hardware", "power smoothing circuit is worn out", "plan to replace the GPU"),
    ((166, 170), "critical", "link", "encryption of NVLink failed (confidential computing)", "ask the vendor"),
    ((168,), "warn", "hardware", "the GPU has less memory than it should", "expect less capacity; plan to replace it"),
    ((169,), "critical", "reset", "the security processor halted", _RESET),
)  # fmt: skip

NVML_EVENTS: Final[tuple[tuple[int, Severity, str, str, str], ...]] = (
    (0x2, "critical", "reset", "uncorrectable memory error", "see Xid 48 beside it"),
    (0x400, "warn", "notice", "memory was retired", "see Xid 63 beside it"),
    (0x800, "critical", "reset", "memory could not be retired", "see Xid 64 beside it"),
    (0x2000, "critical", "reset", "poisoned data was consumed", _RESET),
    (0x4000, "critical", "reboot", "the GPU is not available", "drain the node; see its recovery action"),
    (0x8000, "warn", "notice", "the recovery action changed", "do what the recovery action of the device says"),
)
"""Events of NVML by their bit."""

NONFATAL_SXIDS: Final = frozenset({
    11004, 11012, 11021, 11022, 11023, 12021, 12023, 12028, 15008, 15011, 19049, 19055, 19057, 19059, 19062, 19065,
    19068, 19071, 19084, 20001, 20012, 22013, 24001, 24002, 24003,
})  # fmt: skip
FATAL_SXIDS: Final = frozenset({
    11001, 11009, 11013, 11018, 11019, 11020, 12001, 12002, 12022, 12024, 12025, 12026, 12027, 12030, 12031, 12032,
    14017, 15001, 15006, 15009, 15010, 15012, 15013, 19047, 19048, 19054, 19056, 19058, 19060, 19061, 19063, 19064,
    19066, 19067, 19069, 19070, 20034, 22012, 24004, 24005, 24006, 24007,
})  # fmt: skip
ALWAYS_FATAL_SXIDS: Final = frozenset({*range(10001, 10006), 12020, 20009, 22003, 22011, *range(23001, 23018)})
