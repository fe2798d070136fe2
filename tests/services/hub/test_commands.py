"""`gputally hub` and `gputally maintain` as a user runs them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from services.demo import PERIOD
from services.workspace import Workspace
from store.maintenance import maintain
from tests.program import PROGRAM, environment, gputally, new_workspace, refusal, said
from tests.services.hub.hubs import rows, running, wait_until
from tests.services.hub.sender import STORED, make_batch, pushing

if TYPE_CHECKING:
    from pathlib import Path


def test_maintain_once_beside_a_hub_under_load(tmp_path: Path) -> None:
    with running(tmp_path, group_milliseconds=10) as hub, pushing(hub.address) as stream:
        for sequence in range(4):
            stream.push(make_batch("n", sequence))
        maintaining = subprocess.Popen(
            [str(PROGRAM), "-C", str(tmp_path), "maintain", "--once"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        sequence = 4
        while maintaining.poll() is None:
            assert stream.push(make_batch("n", sequence)) == [(sequence, STORED, "")]
            sequence += 1
        out, err = maintaining.communicate()
        assert (maintaining.returncode, err) == (0, "")
        assert "merged files" in out
        assert stream.push(make_batch("n", 0)) == [(0, STORED, "")], "still known after its name was compacted"
        found = rows(tmp_path, "SELECT busy_ms, count(*) FROM lake.device_window GROUP BY 1 ORDER BY 1")
        assert found == [(number, 2) for number in range(sequence)]
        assert hub.page("/healthz") == (200, "ok\n")


def test_maintain_on_a_lake_without_telemetry_has_nothing_to_do(tmp_path: Path) -> None:
    ws = new_workspace(tmp_path / "ws")
    assert said(gputally("-C", ws, "maintain", "--once")).count("\n") == 1
    assert said(gputally("maintain", "--once", "-C", ws)) == "nothing to do\n"


def test_maintain_goes_on_until_it_is_told_to_stop(tmp_path: Path) -> None:
    ws = new_workspace(tmp_path / "ws")
    log = tmp_path / "log"
    with log.open("w") as stream:
        process = subprocess.Popen([str(PROGRAM), "-C", str(ws), "maintain"], stderr=stream, env=environment())
    wait_until(lambda: "round done" in log.read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) == 0


def test_maintain_leaves_alone_what_published_months_need(demo_workspace: Path, tmp_path: Path) -> None:
    """A copy of the real month: built, then kept for a year as far as maintenance can tell."""
    folder = tmp_path / "ws"
    shutil.copytree(demo_workspace, folder)
    workspace = Workspace.at(folder)
    statement = said(gputally("-C", folder, "statement", PERIOD, "--format", "csv"))
    with workspace.open_lake() as lake:
        ((pinned,),) = lake.connection.execute("SELECT input_lake_snapshot FROM lake.build").fetchall()
        query = f"SELECT sum(hash(c)) FROM (FROM lake.charge AT (VERSION => {pinned})) AS c"
        before = lake.connection.execute(query).fetchall()
        for _ in range(2):
            done = maintain(
                lake, retention_days=1, snapshot_hours=0, file_seconds=0, now_second=time.time() + 365 * 86_400
            )
        assert done.deleted_rows == 0
    with workspace.open_lake(read_only=True) as lake:
        assert lake.connection.execute(query).fetchall() == before
    assert said(gputally("-C", folder, "statement", PERIOD, "--format", "csv")) == statement
    assert said(gputally("-C", folder, "check", PERIOD)) == ""


def test_a_hub_without_its_libraries_names_the_extra(tmp_path: Path) -> None:
    ws = new_workspace(tmp_path / "ws")
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'grpc':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from services.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "-C", str(ws), "hub"], capture_output=True, text=True, check=False, timeout=60
    )
    assert refusal(done) == "the hub needs grpc: install gputally[hub]"


def test_other_commands_load_no_server() -> None:
    code = "import sys, services.commands; print(sorted({'grpc', 'prometheus_client', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
