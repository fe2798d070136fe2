"""What all tests share: real parts, golden files, and examples that are bounded and repeatable."""

from __future__ import annotations

import difflib
import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from chargeback.build import build_period
from services.demo import PERIOD, prepare_demo
from tests.nvml_shim.machine import Machine, build_library
from tests.parts import PARTS, advice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xdist.workermanage import WorkerController

GOLDEN = Path(__file__).parent / "golden"
ABSENT = pytest.StashKey[set[str]]()

settings.register_profile(
    "desk", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# The same examples each time: a red run can be repeated, and a green one means the same for everybody.
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") or os.environ.get("REQUIRE_ALL") == "1" else "desk")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from the present output")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ABSENT] = set()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if absent := sorted(config.stash[ABSENT]):
        terminalreporter.section("real parts that are missing here")
        for name in absent:
            terminalreporter.line(advice(name))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker process of pytest-xdist tells the summary what it missed."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["absent"] = sorted(session.config.stash[ABSENT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object) -> None:
    node.config.stash[ABSENT].update(getattr(node, "workeroutput", {}).get("absent", ()))


def require(config: pytest.Config, name: str) -> Path:
    """Return the program of a real part; without it skip, or fail when REQUIRE_ALL=1."""
    if found := PARTS[name].find():
        return found
    config.stash[ABSENT].add(name)
    if os.environ.get("REQUIRE_ALL") == "1":
        pytest.fail(f"{advice(name)} (REQUIRE_ALL=1: may not be skipped)", pytrace=False)
    pytest.skip(advice(name))


@pytest.fixture(scope="session")
def prometheus_bin(pytestconfig: pytest.Config) -> Path:
    """The Prometheus server."""
    return require(pytestconfig, "prometheus")


@pytest.fixture(scope="session")
def promtool_bin(pytestconfig: pytest.Config) -> Path:
    """Prometheus' own checker of rules and metric pages."""
    return require(pytestconfig, "promtool")


@pytest.fixture(scope="session")
def alertmanager_bin(pytestconfig: pytest.Config) -> Path:
    """The Alertmanager server."""
    return require(pytestconfig, "alertmanager")


@pytest.fixture(scope="session")
def amtool_bin(pytestconfig: pytest.Config) -> Path:
    """Alertmanager's own checker of routes."""
    return require(pytestconfig, "amtool")


@pytest.fixture(scope="session")
def chromium_bin(pytestconfig: pytest.Config) -> Path:
    """A Chromium or Chrome for Playwright's ``executable_path``."""
    return require(pytestconfig, "chromium")


@pytest.fixture(scope="session")
def postgres_bin(pytestconfig: pytest.Config) -> Path:
    """The folder with PostgreSQL's ``initdb``, ``postgres`` and ``pg_ctl``."""
    return require(pytestconfig, "postgres").resolve().parent


@pytest.fixture(scope="session")
def gcc_bin(pytestconfig: pytest.Config) -> Path:
    """A C compiler."""
    return require(pytestconfig, "gcc")


@pytest.fixture(scope="session")
def nvml_library(gcc_bin: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Build the stand-in for the NVIDIA driver's library; `nvml_library("GPM")` is a driver that lacks GPM."""
    if sys.platform != "linux":
        pytest.skip("NVML is looked for by a Linux soname")
    return functools.cache(functools.partial(build_library, gcc_bin, tmp_path_factory))


@pytest.fixture
def machine(nvml_library: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine with GPUs as its driver shows it, loaded into this process; it has one H100 at first."""
    made = Machine(tmp_path / "scenario.txt", nvml_library)
    monkeypatch.setenv("NVML_SHIM_SCENARIO", str(made.scenario))
    made.load()
    yield made
    made.library.shim_reset()


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Callable[[str, str | bytes], None]:
    """Compare an output with tests/golden/NAME, byte for byte; ``--update-golden`` rewrites the file."""

    def compare(name: str, actual: str | bytes) -> None:
        path = GOLDEN / name
        content = actual.encode() if isinstance(actual, str) else actual
        if pytestconfig.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            return
        expected = path.read_bytes() if path.exists() else b""
        if content == expected:
            return
        lines = difflib.unified_diff(
            expected.decode(errors="backslashreplace").splitlines(keepends=True),
            content.decode(errors="backslashreplace").splitlines(keepends=True),
            f"tests/golden/{name}",
            "now",
        )
        hint = "If the new output is right, run `make golden` and read the diff before you commit."
        pytest.fail(f"{''.join(lines)}\n{hint}", pytrace=False)

    return compare


@pytest.fixture(scope="session")
def demo_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the real demo month loaded and built; built once, for reading only."""
    workspace = prepare_demo(tmp_path_factory.mktemp("demo") / "workspace")
    with workspace.open_lake() as lake:
        build_period(lake, workspace.config, PERIOD)
    return workspace.folder
