"""What the agent reads beside the devices, and what it writes: kernel log, metrics page, spool; and the clock."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collectors.collector import SourceAbsentError
from collectors.kernel_log.collector import KernelLog
from exporters.page_secrets import read_tokens, server_context
from fleet.address import split_address
from services.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.agent_config import Agent, AgentPage

MEBIBYTE: Final = 1024 * 1024
CONNECT_SECONDS: Final = 2.0
_TIMEX_BYTES: Final = 512
"""More than any kernel's `struct timex`; all zeros, it asks and changes nothing (adjtimex(2))."""
_UNSYNCHRONISED: Final = 5


def kernel_log(config: Agent) -> Iterator[Finding]:
    """Whether Xid and SXid lines can be read."""
    if not config.kernel_log:
        words = "not read (agent.kernel_log is empty): Xids come from the driver's own events, SXids are not seen"
        yield Finding("ok", "kernel log", words)
        return
    log = KernelLog(config.kernel_log)
    try:
        log.collect()
    except SourceAbsentError as error:
        yield Finding(
            "warn",
            "kernel log",
            f"{error}. A container needs privileged mode for /dev/kmsg; without it Xids come from the driver's own "
            "events, and SXids are not seen",
        )
    else:
        yield Finding("ok", "kernel log", f"{config.kernel_log} can be read")
    finally:
        log.close()


def page(config: Agent) -> Iterator[Finding]:
    """Whether the page's files can be used, and who has its address."""
    settings = config.page
    try:
        _check_files(settings)
    except (OSError, ValueError) as error:
        yield Finding("fail", "page", f"its certificate, key, client_ca or token_file cannot be used: {error}")
        return
    guard = "a client certificate" if settings.client_ca else "a token" if settings.token_file else "nothing"
    scheme = "https" if settings.tls_certificate else "http"
    host, port = split_address(settings.listen)
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - every address includes this one
    try:
        socket.create_connection((here, port), CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        words = f"{scheme} on {settings.listen}, asks for {guard}; the port is free, so no agent runs now"
        yield Finding("ok", "page", words)
    except OSError as error:
        yield Finding("fail", "page", f"{settings.listen} is no address of this machine: {error.strerror or error}")
    else:
        words = f"{scheme} on {settings.listen}, asks for {guard}; in use, by an agent that runs or by another program"
        yield Finding("ok", "page", words)


def _check_files(settings: AgentPage) -> None:
    """Read what the page would read. OSError or ValueError (an error of TLS is the former)."""
    if settings.tls_certificate:
        client_ca = Path(settings.client_ca) if settings.client_ca else None
        server_context(Path(settings.tls_certificate), Path(settings.tls_key), client_ca)
    if settings.token_file:
        read_tokens(Path(settings.token_file))


def spool(config: Agent) -> Iterator[Finding]:
    """Whether the spool can be written, without writing it, and whether the disk has room for it."""
    if not config.hub.address:
        return
    path = Path(config.spool)
    folder = next(found for found in (path.parent, *path.parent.parents) if _may(found, os.F_OK))
    is_taken = _may(path, os.F_OK)
    # The folder too where the file is there already: SQLite keeps a log beside it.
    if not folder.is_dir() or not _may(folder, os.W_OK | os.X_OK) or (is_taken and not _may(path, os.R_OK | os.W_OK)):
        words = f"{path} cannot be written by user id {os.geteuid()}: make its folder and give it to the agent's user"
        yield Finding("fail", "spool", words)
        return
    used = path.stat().st_size if is_taken else 0
    free, wanted = shutil.disk_usage(folder).free, config.spool_mebibytes * MEBIBYTE
    words = f"{path}, {used / MEBIBYTE:.1f} of {config.spool_mebibytes} MiB used, {free / MEBIBYTE:,.0f} MiB free"
    if free < wanted - used:
        yield Finding("warn", "spool", f"{words}: less than it may grow to, so rows may be lost while the hub is away")
    else:
        yield Finding("ok", "spool", words)


def _may(path: Path, mode: int) -> bool:
    """Whether this process has that right; False also for what is hidden behind a folder it may not enter."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def clock() -> Iterator[Finding]:
    """Whether the kernel holds its clock for synchronised: hours are booked by it."""
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (AttributeError, OSError):
        state = -1
    if state == _UNSYNCHRONISED:
        words = "not synchronised: run chrony or systemd-timesyncd, or windows are booked to the wrong minutes"
        yield Finding("warn", "clock", words)
    else:
        yield Finding("ok", "clock", "synchronised" if state >= 0 else "this system does not say how good it is")
