"""The kernel's log: what is news in it, and logs that are long, cut, overwritten, forbidden or gone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from collectors.collector import SourceAbsentError
from collectors.kernel_log import collector
from collectors.kernel_log.collector import KernelLog
from collectors.samples import Rejected
from fleet.errors import GputallyError
from tests.collectors.kernel_records import XID_79, record

if TYPE_CHECKING:
    from collectors.samples import Reading

ROOT = Path(__file__).resolve().parents[2]
WALL_NS = 1_800_000_000_000_000_000
UPTIME_NS = 5_000_000_000_000


def log_at(path: Path, *, since_boot: bool = False) -> KernelLog:
    return KernelLog(path, since_boot=since_boot, boot_id="boot", wall_ns=lambda: WALL_NS, uptime_ns=lambda: UPTIME_NS)


def read_all(tmp_path: Path, text: str) -> Reading:
    (tmp_path / "log").write_text(text)
    return log_at(tmp_path / "log", since_boot=True).collect()


def codes(reading: Reading) -> list[int]:
    return [event.code for event in reading.events]


def test_the_time_of_a_record_is_that_of_the_kernel(tmp_path: Path) -> None:
    (event,) = read_all(tmp_path, record(XID_79, usec=4_999_000_000)).events
    assert event.ts_nanoseconds == WALL_NS - 1_000_000_000
    assert event.event_id == "boot/1.4999000000/00000000:05:00.0/xid79/"


def test_dcgm_exporter_190_the_same_xid_twice_is_two_events(tmp_path: Path) -> None:
    line = "NVRM: Xid (PCI:0000:05:00): 31, pid=7, name=x"
    reading = read_all(tmp_path, record(line, seq=1, usec=100) + record(line, seq=2, usec=200))
    assert codes(reading) == [31, 31]
    assert len({event.event_id for event in reading.events}) == 2


def test_dcgm_235_an_xid_that_another_follows_is_not_masked(tmp_path: Path) -> None:
    lines = record("NVRM: Xid (PCI:0000:05:00): 62, 32c4") + record("NVRM: Xid (PCI:0000:05:00): 45, pid=7", seq=2)
    assert codes(read_all(tmp_path, lines)) == [62, 45]


@pytest.mark.parametrize("first", [0, 1])
def test_one_fall_off_the_bus_is_one_event_though_the_driver_says_it_twice(tmp_path: Path, first: int) -> None:
    forms = [XID_79, "NVRM: GPU 0000:05:00.0: GPU has fallen off the bus."]
    second = record(forms[1 - first], seq=2, usec=4_000_000_000_100)
    assert codes(read_all(tmp_path, record(forms[first]) + second)) == [79]
    hour_later = record(forms[first], seq=3, usec=7_600_000_000_000)
    assert codes(read_all(tmp_path, record(forms[first]) + second + hour_later)) == [79, 79]
    late = record(forms[1 - first], seq=2, usec=7_600_000_000_000)
    assert codes(read_all(tmp_path, record(forms[first]) + late)) == [79, 79], "an hour later it is another fall"
    other = record("NVRM: GPU 0000:06:00.0: GPU has fallen off the bus.", seq=2)
    assert codes(read_all(tmp_path, record(forms[first]) + other)) == [79, 79]


def test_a_hundred_thousand_lines_of_the_same_are_the_distinct_events(tmp_path: Path) -> None:
    three = [record(f"NVRM: Xid (PCI:0000:0{n}:00): 13, x", seq=n, usec=n) for n in (1, 2, 3)]
    (tmp_path / "log").write_text("".join(three) * 33_334)
    log = log_at(tmp_path / "log", since_boot=True)
    events = [event for _ in range(3) for event in log.collect().events]
    assert [event.pci_bus_id for event in events] == [f"00000000:0{n}:00.0" for n in (1, 2, 3)]
    assert len(log._seen) == 3
    log.close()


def test_memory_is_bounded_whatever_is_logged(tmp_path: Path) -> None:
    lines = "".join(record(f"NVRM: Xid (PCI:{n:08x}:01:00): 79, x", seq=n, usec=n) for n in range(10_000))
    (tmp_path / "log").write_text(lines)
    log = log_at(tmp_path / "log", since_boot=True)
    assert len(log.collect().events) == 10_000
    assert (len(log._seen), len(log._off_bus)) == (collector.MOST_REMEMBERED, collector.MOST_REMEMBERED)
    log.close()


def test_reading_starts_at_the_end_and_follows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(record(XID_79))
    log = log_at(path)
    assert log.collect().events == ()
    line = record("NVRM: Xid (PCI:0000:05:00): 48, x", seq=2)
    with path.open("a") as out:
        out.write(line[:30])
        out.flush()
        assert log.collect().events == (), "a line that is not finished waits"
        out.write(line[30:] + " SUBSYSTEM=pci\n DEVICE=+pci:0000:05:00.0\n")
    assert codes(log.collect()) == [48]
    log.close()
    log.close()


def test_a_log_that_is_rotated_or_cut_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(record("usb 1-1: x" * 20))
    log = log_at(path)
    log.collect()
    path.rename(tmp_path / "log.1")
    with (tmp_path / "log.1").open("a") as out:
        out.write(record("NVRM: Xid (PCI:0000:05:00): 13, x", seq=2))
    assert codes(log.collect()) == [13], "the last words in the old file count"
    path.write_text(record("NVRM: Xid (PCI:0000:05:00): 48, x", seq=3))
    assert codes(log.collect()) == [48]
    path.write_text(record("NVRM: Xid (PCI:0000:05:00): 95, x", seq=4)[1:])
    assert codes(log.collect()) == []
    path.write_text("")
    log.collect()
    path.write_text(record("NVRM: Xid (PCI:0000:05:00): 64, x", seq=5))
    assert codes(log.collect()) == [64]
    log.close()


def test_a_pipe_is_read_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    log = log_at(tmp_path / "log")
    assert log.collect().events == ()
    with (tmp_path / "log").open("w") as out:
        out.write(record(XID_79))
        out.flush()
        assert codes(log.collect()) == [79]
        assert log.collect().events == ()
    assert log.collect().events == ()
    log.close()


@pytest.mark.parametrize(
    ("code", "reason"), [(errno.EPIPE, "overrun"), (errno.EINVAL, "line_too_long")], ids=["EPIPE", "EINVAL"]
)
def test_records_that_were_overwritten_or_are_too_long_are_counted_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, reason: str
) -> None:
    """Only the kernel's own ring answers so, and no test may fill it: the answer is put before the real read."""
    (tmp_path / "log").write_text(record(XID_79))
    answers = [OSError(code, "as the ring says")]
    real = os.read

    def read(descriptor: int, size: int) -> bytes:
        if answers:
            raise answers.pop()
        return real(descriptor, size)

    monkeypatch.setattr(collector.os, "read", read)
    log = log_at(tmp_path / "log", since_boot=True)
    reading = log.collect()
    assert (codes(reading), reading.rejected) == ([79], (Rejected(reason, 1),))
    log.close()


def test_a_read_that_fails_is_one_line_and_the_log_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_text("")
    log = log_at(tmp_path / "log")

    def read(descriptor: int, size: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(collector.os, "read", read)
        with pytest.raises(GputallyError, match="Input/output error"):
            log.collect()
    assert log.collect().events == ()
    log.close()


def test_a_line_without_end_fills_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x" * 200_000 + "\n" + record(XID_79) + "y" * 20_000 + "\n")
    log = log_at(path, since_boot=True)
    reading = log.collect()
    assert codes(reading) == [79]
    assert reading.rejected == (Rejected("line_too_long", 2),)
    with path.open("a") as out:
        out.write("z" * 1_000_000)
    assert log.collect().rejected == (Rejected("line_too_long", 1),)
    assert len(log._rest) <= collector.LINE_BYTES
    log.close()


def test_a_log_that_is_not_there_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsentError, match="No such file"):
        log_at(tmp_path / "log").collect()


def test_a_log_that_may_not_be_read_is_absent_with_the_fix(tmp_path: Path) -> None:
    """Root may read everything, so the question is asked by somebody who is nobody."""
    path = tmp_path / "log"
    path.write_text(record(XID_79))
    path.chmod(0)
    code = f"""
import os
from collectors.collector import SourceAbsentError
from collectors.kernel_log.collector import KernelLog
os.chdir({str(tmp_path)!r})  # who stands in a folder need not be able to walk to it
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    KernelLog("log").collect()
except SourceAbsentError as error:
    print(error)
"""
    tmp_path.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "log: may not be read; run as root with CAP_SYSLOG, or name a text log that is readable\n"


def test_hostile_text_becomes_one_printable_line(tmp_path: Path) -> None:
    line = record("NVRM: Xid (PCI:0000:05:00): 13, pid=7, name=\x1b[2J\u202e" + "x" * 500)
    (event,) = read_all(tmp_path, line).events
    assert event.text is not None
    assert event.text.isprintable()
    assert len(event.text) <= 256


def test_the_boot_is_named_by_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(record(XID_79))
    (event,) = KernelLog(tmp_path / "log", since_boot=True).collect().events
    boot = event.event_id.split("/")[0]
    assert boot == "unknown" or len(boot) == 36


def test_the_ring_of_this_machine_is_read_or_said_to_be_closed() -> None:
    log = KernelLog(since_boot=True)
    try:
        is_told = log.collect().rejected == ()
    except SourceAbsentError as error:
        is_told = str(error).startswith("/dev/kmsg: ")
    assert is_told
    log.close()


def test_a_log_of_another_machine_has_no_times_but_its_own(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(record(XID_79) + f"2026-01-12T03:04:05Z gpu-7 kernel: {XID_79}\n")
    log = KernelLog(tmp_path / "log", since_boot=True, boot_id="b", is_live=False)
    assert [event.ts_nanoseconds for event in log.collect().events] == [None, 1_768_187_045_000_000_000]
    log.close()


def test_a_visit_reads_so_much_and_says_that_there_is_more(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 100_000 + record(XID_79))
    log = log_at(tmp_path / "log", since_boot=True)
    assert (log.collect().events, log.is_behind) == ((), True)
    assert (codes(log.collect()), log.is_behind) == ([79], False)
    log.close()
