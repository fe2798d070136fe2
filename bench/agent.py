"""The agent at 1 Hz on 8 GPUs x 7 MIG x 64 pods, beside nvitop-exporter on the same stand-in for the driver."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.machine import kubelet, scenario
from bench.processes import Usage, usage
from tests.nvml_shim.machine import SONAME, SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WARM_UP_SECONDS: Final = 20.0
SCRAPE_EVERY_SECONDS: Final = 15.0
SCRAPES: Final = 100
OTHER: Final = Path(__file__).resolve().parents[1] / ".venv" / "bench" / "bin" / "nvitop-exporter"


@dataclass(frozen=True, slots=True)
class Result:
    """One exporter: what it used while it was scraped as Prometheus does, and how fast its page came."""

    name: str
    cpu_share: float
    rss_mebibytes: float
    pss_mebibytes: float
    scrape_p50_ms: float
    scrape_p99_ms: float
    series: int


def run(seconds: float) -> str:
    """Measure both, one after the other, and return the table."""
    with tempfile.TemporaryDirectory() as folder, _machine(Path(folder)) as environment:
        ours = _measure("gputally-agent", _agent_command(Path(folder)), environment, seconds)
        theirs = _measure("nvitop-exporter", _other_command(), environment, seconds) if OTHER.exists() else None
    rows = [ours, *([theirs] if theirs else [])]
    lines = [f"{'agent, 8 GPUs x 7 MIG x 64 pods, 1 Hz':<40}" + "".join(f"{row.name:>18}" for row in rows)]
    for label, attribute, form in (
        ("CPU, % of a core", "cpu_share", "{:.2%}"),
        ("resident memory, MiB", "rss_mebibytes", "{:.1f}"),
        ("proportional memory, MiB", "pss_mebibytes", "{:.1f}"),
        ("page p50, ms", "scrape_p50_ms", "{:.1f}"),
        ("page p99, ms", "scrape_p99_ms", "{:.1f}"),
        ("series on the page", "series", "{}"),
    ):
        values = [getattr(row, attribute) for row in rows]
        ratio = f"   ratio {values[0] / values[1]:.2f}" if len(values) == 2 and values[1] else ""
        lines.append(f"  {label:<38}" + "".join(f"{form.format(value):>18}" for value in values) + ratio)
    if theirs is None:
        lines.append("  nvitop-exporter is not installed: run `make bench`")
    return "\n".join(lines)


@contextmanager
def _machine(folder: Path) -> Iterator[dict[str, str]]:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise SystemExit("the bench builds a stand-in for the driver and needs gcc")
    library = folder / SONAME
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", f"-Wl,-soname,{SONAME}", str(SOURCE), "-o", str(library), "-lpthread"],
        check=True,
    )
    server = kubelet(folder / "kubelet.sock")
    try:
        yield {
            **os.environ,
            "LD_LIBRARY_PATH": str(folder),
            "NVML_SHIM_SCENARIO": str(scenario(folder / "scenario.txt")),
            # What the stand-in itself costs is no part of either; it need not look whether its file has changed.
            "NVML_SHIM_FROZEN": "1",
            "MALLOC_ARENA_MAX": "2",  # as in deploy/
        }
    finally:
        server.stop(0)


def _agent_command(folder: Path) -> tuple[Sequence[str], int]:
    port, hub = _free_port(), _free_port()
    config = folder / "gputally.toml"
    config.write_text(
        f"""
        [agent]
        node = "bench"
        kernel_log = ""
        kubelet_socket = "{folder / "kubelet.sock"}"
        spool = "{folder / "spool.sqlite"}"
        page.listen = "127.0.0.1:{port}"
        hub.address = "127.0.0.1:{hub}"
        """,
        encoding="utf-8",
    )
    return [sys.executable, "-m", "services.agent", "run", "--config", str(config)], port


def _other_command() -> tuple[Sequence[str], int]:
    port = _free_port()
    return [str(OTHER), "--bind-address", "127.0.0.1", "--port", str(port), "--interval", "1"], port


def _measure(name: str, started: tuple[Sequence[str], int], environment: dict[str, str], seconds: float) -> Result:
    command, port = started
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, process)
        time.sleep(WARM_UP_SECONDS)
        before, began = usage(process.pid), time.monotonic()
        while (left := began + seconds - time.monotonic()) > 0:
            _scrape(port)
            time.sleep(min(left, SCRAPE_EVERY_SECONDS))
        after, took = usage(process.pid), time.monotonic() - began
        times, series = _pages(port)
    finally:
        process.terminate()
        process.wait(30)
    return _result(name, before, after, took, times, series)


def _result(name: str, before: Usage, after: Usage, took: float, times: list[float], series: int) -> Result:
    share = (after.cpu_seconds - before.cpu_seconds) / took
    middle, last = times[len(times) // 2], times[int(len(times) * 0.99)]
    return Result(name, share, after.rss_mebibytes, after.pss_mebibytes, middle * 1000, last * 1000, series)


def _pages(port: int) -> tuple[list[float], int]:
    times, page = [], b""
    for _ in range(SCRAPES):
        began = time.perf_counter()
        page = _scrape(port)
        times.append(time.perf_counter() - began)
        time.sleep(0.05)
    return sorted(times), sum(1 for line in page.splitlines() if line and not line.startswith(b"#"))


def _scrape(port: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        body: bytes = answer.read()
    return body


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            _scrape(port)
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"{process.args!r} serves no page (status {process.poll()})")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port
