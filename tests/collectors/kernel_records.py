"""Records of the kernel's log, as `/dev/kmsg` gives them."""

from __future__ import annotations

XID_79 = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def record(message: str, *, seq: int = 1, usec: int = 4_000_000_000_000, priority: int = 4) -> str:
    return f"{priority},{seq},{usec},-;{message}\n"
