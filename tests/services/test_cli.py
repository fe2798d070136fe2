"""The command line: what help says, and how a refusal looks."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from chargeback.build import build_period
from chargeback.kinds import KINDS
from services.commands import gputally as program
from services.workspace import Workspace
from tests.month import load_month
from tests.program import gputally, new_workspace, refusal, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMANDS = list(program.commands)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with May 2026 published."""
    folder = load_month(tmp_path_factory.mktemp("built") / "ws")
    workspace = Workspace.at(folder)
    with workspace.open_lake() as lake:
        build_period(lake, workspace.config, "2026-05")
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A workspace with nothing loaded."""
    return new_workspace(tmp_path / "ws")


def test_help_of_the_program(golden: Callable[[str, str | bytes], None]) -> None:
    golden("help/gputally.txt", said(gputally("--help")))
    assert said(gputally("-h")) == said(gputally("--help"))


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(golden: Callable[[str, str | bytes], None], command: str) -> None:
    golden(f"help/{command}.txt", said(gputally(command, "--help")))


def test_the_help_of_load_names_every_kind() -> None:
    text = said(gputally("load", "--help"))
    assert [kind for kind in KINDS if not re.search(rf"\b{kind}\b", text)] == []


def test_version() -> None:
    assert said(gputally("--version")) == f"gputally {metadata.version('gputally')}\n"


WRONG_USE = [
    ((), "Usage: gputally"),
    (("frobnicate",), "No such command 'frobnicate'"),
    (("--frob",), "No such option"),
    (("build",), "Missing argument 'PERIOD'"),
    *[
        ((command, period), f"'{period}' is not a month (YYYY-MM)")
        for command in ("build", "check")
        for period in ("2026-13", "2026-5", "05-2026", "1969-12", "2026-05-01", "may")
    ],
    (("statement", "2026"), "'2026' is not a month (YYYY-MM)"),
    (("explain", "x", "--team", "t"), "'x' is not a month (YYYY-MM)"),
    (("export", "x", "--out", "o"), "'x' is not a month (YYYY-MM)"),
    (("explain", "2026-05"), "Missing option '--team'"),
    (("load", "nodes", "x.csv"), "'nodes' is not one of 'inventory'"),
    (("load", "inventory"), "Missing argument 'FILE...'"),
    (("load", "inventory", "gone.csv"), "File 'gone.csv' does not exist"),
    (("load", "inventory", "."), "File '.' is a directory"),
    (("statement", "2026-05", "--format", "xml"), "'xml' is not one of"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_USE, ids=[" ".join(a) or "nothing" for a, _ in WRONG_USE])
def test_wrong_use_is_exit_code_2_with_a_reason(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = gputally(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


PERIOD_COMMANDS = [
    ("check", "2026-05"),
    ("statement", "2026-05"),
    ("explain", "2026-05", "--team", "ann"),
    ("export", "2026-05", "--out", "finance"),
]


@pytest.mark.parametrize(
    "arguments", [("build", "2026-05"), ("portal",), *PERIOD_COMMANDS], ids=lambda arguments: arguments[0]
)
def test_outside_a_workspace_the_next_command_is_named(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    line = refusal(gputally(*arguments, cwd=tmp_path))
    assert line == "no gputally.toml in .; run `gputally init .`"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", PERIOD_COMMANDS, ids=lambda arguments: arguments[0])
def test_with_nothing_loaded_the_next_step_is_named(empty: Path, arguments: tuple[str, ...]) -> None:
    line = refusal(gputally(*arguments, cwd=empty))
    assert re.fullmatch(r"no lake at .*catalog\.sqlite: load something first", line)
    assert sorted(path.name for path in empty.iterdir()) == [".gitignore", "gputally.toml"]


@pytest.mark.parametrize("arguments", PERIOD_COMMANDS, ids=lambda arguments: arguments[0])
def test_a_period_that_is_not_built_names_the_next_command(built: Path, arguments: tuple[str, ...]) -> None:
    other = tuple("2026-04" if argument == "2026-05" else argument for argument in arguments)
    assert refusal(gputally(*other, cwd=built)) == "2026-04 has not been built: run `gputally build 2026-04`"
    assert not (built / "finance").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("statement", "2026-05", "--team", "bob"), "team 'bob' has no line in 2026-05"),
        (("explain", "2026-05", "--team", "bob\n"), r"team 'bob\n' has no line in 2026-05"),
        (("explain", "2026-05", "--team", "ann", "--category", "tax"), "team 'ann' has no tax line in 2026-05"),
    ],
)
def test_a_team_without_lines_is_named(built: Path, arguments: tuple[str, ...], line: str) -> None:
    assert refusal(gputally("-C", built, *arguments)) == line


CONFIGS = [
    ("[ledger]\ncurrancy = 'EUR'\n", "gputally.toml: unknown key ledger.currancy"),
    ("[pools]\nidle.polcy = 'even'\n", "gputally.toml: unknown key pools.idle.polcy"),
    ("[hubb]\nx = 1\n", "gputally.toml: unknown key hubb"),
    ("[ledger]\ncurrency = 'EURO'\n", "gputally.toml: ledger.currency"),
    ("[portal]\nport = '8501'\n", "gputally.toml: portal.port"),
    ("[ledger\n", "gputally.toml: "),
]


@pytest.mark.parametrize(("text", "start"), CONFIGS, ids=[start for _, start in CONFIGS])
def test_a_wrong_configuration_is_named_by_its_path(empty: Path, text: str, start: str) -> None:
    (empty / "gputally.toml").write_text(text)
    assert refusal(gputally("-C", empty, "statement", "2026-05")).startswith(start)


def test_init_makes_a_workspace_once(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "ws"
    assert said(gputally("init", folder)).startswith(f"{folder}/gputally.toml: edit it, then load files")
    assert refusal(gputally("init", folder)) == f"{folder}/gputally.toml exists already; it was left as it is"


@pytest.mark.parametrize("command", ["init", "export"])
def test_a_folder_that_cannot_be_made_is_one_line(built: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "below"
    arguments = ("init", folder) if command == "init" else ("-C", built, "export", "2026-05", "--out", folder)
    assert refusal(gputally(*arguments)) == f"{folder}: Not a directory"


def test_a_missing_extra_is_named_instead_of_a_stack_trace(tmp_path: Path) -> None:
    """The base install is the agent: `gputally` is there and its libraries are not."""
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'click':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from services.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert refusal(done) == "click is not installed; install gputally[ledger] or gputally[portal]"
