"""Lines of the kernel's log: every form in which a fault is told, and what only looks like one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.kernel_log.lines import read_line
from tests.collectors.kernel_records import XID_79, record

if TYPE_CHECKING:
    from collectors.samples import DeviceEvent

WALL_NS = 1_800_000_000_000_000_000


def said(line: str) -> DeviceEvent | None:
    found = read_line(line.rstrip("\n"), "boot", lambda _: WALL_NS)
    return found.event if found else None


@pytest.mark.parametrize(
    ("message", "code", "pci", "pid", "severity"),
    [
        (XID_79, 79, "00000000:05:00.0", None, "critical"),
        ("NVRM: Xid (0000:a1:00): 13, Graphics Exception", 13, "00000000:A1:00.0", None, "info"),
        ("NVRM: Xid (PCI:0000:3b:00): 31, pid=1234, name=python3, Ch 00000008, MMU Fault", 31, "00000000:3B:00.0",
         1234, "info"),
        ("NVRM: Xid (PCI:0000:3b:00): 43, pid='99', name=x", 43, "00000000:3B:00.0", 99, "info"),
        ("NVRM: Xid (PCI:0001:3b:00.0): 48, An uncorrectable error", 48, "00000001:3B:00.0", None, "critical"),
        ("NVRM: Xid (PCI:00000009:06:00): 119, pid=7, name=x, Timeout", 119, "00000009:06:00.0", 7, "critical"),
        ("NVRM: Xid (PCI:0000:05:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x00000001 0x0)", 149,
         "00000000:05:00.0", None, "critical"),
        ("NVRM: Xid (PCI:0000:05:00): 149, NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x00000001 0x0)", 149,
         "00000000:05:00.0", None, "warn"),
        ("NVRM: Xid (PCI:0000:05:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
         154, "00000000:05:00.0", None, "critical"),
        ("NVRM: GPU 0000:a1:00.0: GPU has fallen off the bus.", 79, "00000000:A1:00.0", None, "critical"),
        ("NVRM: Xid (PCI:0000:05:00): 999", 999, "00000000:05:00.0", None, "warn"),
    ],
)  # fmt: skip
def test_forms_of_an_xid(message: str, code: int, pci: str, pid: int | None, severity: str) -> None:
    event = said(record(message))
    assert event is not None
    assert (event.code_space, event.code, event.pci_bus_id, event.pid) == ("xid", code, pci, pid)
    assert (event.severity, event.source, event.uuid) == (severity, "kernel_log", None)


def test_a_process_is_named_in_the_first_field_only() -> None:
    """What comes later may be a process' own name."""
    event = said(record("NVRM: Xid (PCI:0000:01:00): 13, pid='<unknown>', name=pid=7, Graphics Exception"))
    assert event is not None
    assert event.pid is None


def test_a_mig_instance_is_named_in_the_address() -> None:
    event = said(record("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 13, pid=5, name=x, Graphics Exception"))
    assert event is not None
    assert (event.gpu_instance_id, event.pid) == (5, 5)


@pytest.mark.parametrize(
    ("text", "severity"), [("Fatal, Link 30 LTSSM Fault Up", "critical"), ("Non-fatal, Link 30 error", "warn")]
)
def test_forms_of_an_sxid(text: str, severity: str) -> None:
    event = said(record(f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, {text}"))
    assert event is not None
    assert (event.code_space, event.code, event.pci_bus_id) == ("sxid", 20034, "00000000:C1:00.0")
    assert (event.severity, event.text) == (severity, text)


@pytest.mark.parametrize(
    "line",
    [
        record("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Severity 1 Engine instance 32 Sub-engine 00"),
        record("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Data {0x00140004, 0x00100000}"),
        record("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.08"),
        record("NVRM: GPU at PCI:0000:05:00: GPU-fb5e0ca5-0000-4000-8000-000000000000"),
        record("usb 1-1: new device"),
        record("Out of memory: Killed process 12 (NVRM: Xid (PCI:0000:05:00): 79)"),
        "Jan 12 03:04:05 host trainer[12]: NVRM: Xid (PCI:0000:05:00): 79, a program says so",
        "Jan 12 03:04:05 host x kernel: NVRM: Xid (PCI:0000:05:00): 79, a program says so",
        "",
    ],
)
def test_lines_that_are_no_fault(line: str) -> None:
    assert said(line) is None


def test_a_program_cannot_write_a_fault_into_the_ring() -> None:
    """What is written to /dev/kmsg from outside the kernel has another facility, whatever it says."""
    assert said(record(XID_79, priority=12)) is None
    assert said(record(XID_79, priority=3)) is not None


@pytest.mark.parametrize(
    ("prefix", "milliseconds"),
    [
        ("", None),
        ("[12345.678901] ", None),
        ("[    5.678901] ", None),
        ("<4>[12345.678901] ", None),
        ("[Mon Jan 12 03:04:05 2026] ", None),
        ("Jan 12 03:04:05 gpu-7 kernel: ", None),
        ("Jan  2 03:04:05 gpu-7 kernel: [12345.678901] ", None),
        ("2026-01-12T03:04:05.250000+00:00 gpu-7 kernel: ", 1_768_187_045_250),
        ("2026-01-12T03:04:05Z gpu-7 kernel: [1.5] ", 1_768_187_045_000),
        ("2026-01-12T03:04:05 gpu-7 kernel: ", None),
    ],
)
def test_forms_of_a_text_log(prefix: str, milliseconds: int | None) -> None:
    event = said(prefix + XID_79)
    assert event is not None
    assert event.ts_nanoseconds == (WALL_NS if milliseconds is None else milliseconds * 1_000_000)


@given(st.text(max_size=200))
def test_any_text_after_an_xid_yields_one_event_or_none(text: str) -> None:
    event = said(record(f"NVRM: Xid (PCI:0000:05:00): 13, {text}").replace("\n", " "))
    assert event is None or (event.code, (event.text or "").isprintable()) == (13, True)


@given(st.text(max_size=300))
def test_any_line_is_read_without_an_accident(line: str) -> None:
    said(line)
    said(f"NVRM: {line}")
    said(f"nvidia-nvswitch{line}")
