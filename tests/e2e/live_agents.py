"""A real agent in its own process: `gputally-agent run`, its page read over HTTP, its spool and its log at the end."""

from __future__ import annotations

import re
import signal
import subprocess
import sysconfig
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from exporters.ingest_pb2 import Batch
from exporters.spool import Spool
from tests.nvml_shim.machine import Machine, h100
from tests.program import environment
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

PROGRAM = Path(sysconfig.get_path("scripts")) / "gputally-agent"
PROC = Path("/proc")
NOWHERE = "127.0.0.1:9"
"""The address of a hub that is not there: the port of a service that nobody runs any more."""
_READY = re.compile(r'message="agent started" .*page_port=(\d+)')
_SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Series = list[tuple[dict[str, str], float]]


@dataclass
class LiveAgent:
    """A running agent, and where it keeps its spool."""

    process: subprocess.Popen[str]
    spool: Path
    port: int = 0
    log: list[str] = field(default_factory=list)
    reader: Thread | None = None
    slowest_page_seconds: float = 0.0

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of one of its pages."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def page(self) -> dict[str, Series]:
        """The series of its metrics page by name, `gputally_` left out. Keeps how long the slowest page took."""
        began = time.monotonic()
        status, text = self.get("/metrics")
        self.slowest_page_seconds = max(self.slowest_page_seconds, time.monotonic() - began)
        assert status == 200
        found: dict[str, Series] = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                match = _SERIES.match(line)
                assert match, line
                labels = dict(_LABEL.findall(match[2] or ""))
                found.setdefault(match[1].removeprefix("gputally_"), []).append((labels, float(match[3])))
        return found

    def value(self, name: str, **wanted: str) -> float | None:
        """The value of the one series that has these labels; None without one."""
        found = matching(self.page(), name, **wanted)
        assert len(found) < 2, found
        return found[0][1] if found else None

    def wait_for(self, name: str, value: float = 1, *, seconds: float = 30, **wanted: str) -> None:
        """Wait until a series with these labels has a value."""
        wait_until(lambda: self.value(name, **wanted) == value, seconds)

    def stop(self, seconds: float = 30) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=seconds)
        assert self.reader
        self.reader.join(10)
        return status

    def outcome(self, collector: str) -> str | None:
        """How the last visit of a collector ended."""
        found = matching(self.page(), "collector_outcome_info", collector=collector)
        return found[0][0]["outcome"] if found else None

    def holders(self) -> dict[str, str]:
        """The pod that holds each device, on the page."""
        return {labels["uuid"]: labels["pod"] for labels, _ in self.page().get("device_held_ratio", ())}


def matching(page: Mapping[str, Series], name: str, **wanted: str) -> Series:
    """The series of a page with these labels, whatever others they have."""
    return [(labels, value) for labels, value in page.get(name, ()) if wanted.items() <= labels.items()]


def machine_of(gpus: int, scenario: Path, library: Callable[..., Path]) -> tuple[Machine, dict[str, str]]:
    """A machine whose driver only other processes load, and the variables by which they find it."""
    machine = Machine(scenario, library)
    facts: dict[str, object] = {"*.count": gpus, "*.driver": "550.127.08"}
    for index in range(gpus):
        # A meter that stands still while power is drawn would be taken for a broken one.
        facts |= h100(index) | {f"{index}.gpm": 0, f"{index}.power_mw": 0}
    machine.describe(facts)
    return machine, {"LD_LIBRARY_PATH": str(library().parent), "NVML_SHIM_SCENARIO": str(scenario)}


def start(folder: Path, env: Mapping[str, str], **settings: Any) -> LiveAgent:
    """Start `gputally-agent run` and wait until it serves its page. The settings are those of `[agent]`."""
    spool = folder / "spool.sqlite"
    plain = {
        "cluster": "c", "node": "n1", "kernel_log": "", "kubelet_socket": "", "processes": False,
        "spool": str(spool), "page.listen": "127.0.0.1:0",
    }  # fmt: skip
    lines = [f"{name} = {_toml(value)}\n" for name, value in (plain | settings).items()]
    config = folder / "gputally.toml"
    config.write_text(f"[agent]\n{''.join(lines)}")
    process = subprocess.Popen(
        [str(PROGRAM), "run", "--config", str(config)], stderr=subprocess.PIPE, text=True, env=environment(**env)
    )
    agent = LiveAgent(process, spool)
    assert process.stderr
    for line in process.stderr:
        agent.log.append(line)
        if found := _READY.search(line):
            agent.port = int(found[1])
            break
    else:
        raise AssertionError(f"the agent did not start: {''.join(agent.log)}")
    agent.reader = Thread(target=lambda: agent.log.extend(process.stderr or ()), daemon=True)
    agent.reader.start()
    return agent


@contextmanager
def running(folder: Path, env: Mapping[str, str], **settings: Any) -> Iterator[LiveAgent]:
    """An agent that has looked at its devices once; killed at the end if the test did not stop it."""
    agent = start(folder, env, **settings)
    try:
        wait_until(lambda: agent.get("/readyz")[0] == 200)
        yield agent
    finally:
        if agent.process.poll() is None:
            agent.process.kill()
            agent.process.wait(timeout=10)


def spooled(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of all batches in a spool that nobody writes to any more, by table."""
    spool = Spool(path, 1 << 30)
    found = rows_of(one.payload for one in spool.next_batches(0, 100_000))
    spool.close()
    return found


def rows_of(payloads: Iterable[bytes]) -> dict[str, list[dict[str, Any]]]:
    """The rows of encoded batches, by table."""
    found: dict[str, list[dict[str, Any]]] = {}
    for payload in payloads:
        for table in Batch.FromString(payload).tables:
            found.setdefault(table.name, []).extend(pa.ipc.open_stream(table.arrow_stream).read_all().to_pylist())
    return found


def saved_state(path: Path) -> dict[str, Any]:
    """What the agent left for its next start."""
    spool = Spool(path, 1 << 30)
    state: dict[str, Any] = spool.state_get("recorder")
    spool.close()
    return state


def resident_kibibytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_toml(one)}' for name, one in value.items())}}}"
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else f'"{value}"'
