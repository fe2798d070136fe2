"""A real hub in its own process: `gputally hub` on a workspace, its addresses read from its log."""

from __future__ import annotations

import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from services.workspace import Workspace, create
from tests.program import PROGRAM, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

READY = re.compile(r'message="hub ready" listen=(\S+) metrics=(\S+) mode="?([^"\n]*)')


def workspace(folder: Path, **hub: Any) -> Path:
    """A new workspace whose hub takes free ports, and those settings."""
    if not (folder / "gputally.toml").exists():
        create(folder)
    settings = {"listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0"} | hub
    lines = [f"{name} = {_toml(value)}\n" for name, value in settings.items()]
    (folder / "gputally.toml").write_text(f"[hub]\n{''.join(lines)}")
    return folder


def _toml(value: Any) -> str:
    return (
        str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str | Path) else str(value)
    )


@dataclass
class Hub:
    """A running hub."""

    folder: Path
    process: subprocess.Popen[str]
    log: list[str] = field(default_factory=list)
    address: str = ""
    pages: str = ""
    mode: str = ""

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of one of its pages."""
        try:
            with urllib.request.urlopen(f"http://{self.pages}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, series: str) -> float:
        """The value of one series; 0 when it is not there."""
        _, text = self.page("/metrics")
        return next(
            (float(line.rpartition(" ")[2]) for line in text.splitlines() if line.rpartition(" ")[0] == series), 0.0
        )

    def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        self.process.wait(timeout=30)

    def stop(self, seconds: float = 60) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)


def start(folder: Path) -> Hub:
    """Start `gputally hub` and wait until it is ready."""
    process = subprocess.Popen(
        [str(PROGRAM), "-C", str(folder), "hub"], stderr=subprocess.PIPE, text=True, env=environment()
    )
    hub = Hub(folder, process)
    assert process.stderr
    for line in process.stderr:
        hub.log.append(line)
        if found := READY.search(line):
            hub.address, hub.pages, hub.mode = found.groups()
            break
    else:
        raise AssertionError(f"the hub did not start: {''.join(hub.log)}")
    Thread(target=lambda: hub.log.extend(process.stderr or ()), daemon=True).start()
    return hub


@contextmanager
def running(folder: Path, **settings: Any) -> Iterator[Hub]:
    """A hub on a new or given workspace; told to stop at the end."""
    hub = start(workspace(folder, **settings))
    try:
        yield hub
    finally:
        if hub.process.poll() is None:
            hub.stop()


def wait_until(condition: Any, seconds: float = 30.0) -> Any:
    """Ask until the answer is true, and return it; AssertionError when the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come true in time")


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """What the lake of a workspace says, read beside the hub."""
    with Workspace.at(folder).open_lake(read_only=True) as lake:
        return lake.connection.execute(query).fetchall()
