"""Owners of processes: of real ones here, and of recorded ones as they look on nodes of each kind."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.holders.procs import ProcessOwner, ProcessOwners, sees_host_processes, start_ticks
from collectors.samples import DeviceProcess, DeviceSample

if TYPE_CHECKING:
    from collections.abc import Iterator

UID = "7b0b0a4e-0000-4000-8000-0000000000aa"
HEX = "c0ffee" + 58 * "0"
POD = f"0::/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{HEX}.scope\n"
JOB = "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n"
PASSWD = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home:/bin/sh\nbroken\nbad\u202e:x:1001:1:::\n"


class Proc:
    """A folder that looks like the host's `/proc`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.passwd = folder / "passwd"
        self.passwd.write_text(PASSWD, encoding="utf-8")
        self.add(2, 1, "0::/\n", comm="kthreadd", parent=0)

    def add(self, pid: int, started: int, cgroup: str, *, user: int = 0, comm: str = "python", parent: int = 1) -> None:
        folder = self.folder / str(pid)
        folder.mkdir(exist_ok=True)
        fields = ["S", str(parent), *("0" for _ in range(17)), str(started), "0", "0"]
        (folder / "stat").write_text(f"{pid} ({comm}) {' '.join(fields)}\n")
        (folder / "cgroup").write_text(cgroup)
        (folder / "status").write_text(f"Name:\t{comm}\nUid:\t{user}\t0\t0\t0\n")

    def remove(self, pid: int) -> None:
        for path in (self.folder / str(pid)).iterdir():
            path.unlink()
        (self.folder / str(pid)).rmdir()

    def owners(self) -> ProcessOwners:
        return ProcessOwners(self.folder, passwd=self.passwd)


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as made:
        yield made
        made.kill()


def test_a_pod_a_job_and_a_user(proc: Proc) -> None:
    proc.add(10, 500, POD, user=1000)
    proc.add(11, 501, JOB, user=1000)
    proc.add(12, 502, "0::/user.slice/user-1000.slice/session-1.scope\n", user=0)
    proc.add(13, 503, "0::/system.slice/jupyter.service\n", user=4242)
    found = proc.owners().owners([13, 12, 11, 10])
    assert [(o.pid, o.start_ticks, o.kind, o.user) for o in found.values()] == [
        (10, 500, "pod", None),  # a number inside a pod is its image's own
        (11, 501, "job", "ada"),
        (12, 502, "user", "ada"),  # logind's word, whatever he became since
        (13, 503, "user", "4242"),
    ]
    assert (found[10].pod_uid, found[10].container_id, found[11].job_id) == (UID, HEX, "4711")


def test_the_processes_of_devices(proc: Proc) -> None:
    proc.add(10, 500, POD)
    board = DeviceSample(kind="gpu", uuid="GPU-0", processes=(DeviceProcess(10), DeviceProcess(11)))
    silent = DeviceSample(kind="gpu", uuid="GPU-1")
    assert set(proc.owners().of_devices([board, silent]) or ()) == {10}
    assert proc.owners().of_devices([silent]) is None


def test_nvitop_106_a_process_that_ended_is_left_out(proc: Proc) -> None:
    proc.add(10, 500, POD)
    owners = proc.owners()
    assert set(owners.owners([10, 11])) == {10}
    proc.remove(10)
    assert owners.owners([10, 11]) == {}


def test_nvtop_110_pids_of_zombies_that_went_have_no_owner(proc: Proc) -> None:
    """The driver lists a hundred processes that ended: none of them becomes a holder."""
    proc.add(10, 500, POD)
    assert set(proc.owners().owners(range(3, 103))) == {10}


def test_a_number_that_is_used_again_is_another_process(proc: Proc) -> None:
    owners = proc.owners()
    proc.add(10, 500, POD)
    assert owners.owners([10])[10].kind == "pod"
    proc.add(10, 900, JOB, user=1000)
    found = owners.owners([10])[10]
    assert (found.kind, found.start_ticks, found.job_id, found.pod_uid) == ("job", 900, "4711", None)


def test_what_is_known_of_a_process_is_not_read_again(proc: Proc) -> None:
    owners = proc.owners()
    proc.add(10, 500, POD)
    first = owners.owners([10])
    (proc.folder / "10/cgroup").unlink()
    assert owners.owners([10]) == first
    owners.owners([])
    assert owners.owners([10]) == {}  # forgotten, and now it cannot be read: gone


def test_names_with_blanks_and_parentheses(proc: Proc) -> None:
    proc.add(10, 500, POD, comm="a) S 1 (b 7 7) ")
    assert proc.owners().owners([10])[10].start_ticks == 500


def test_nvidia_docker_1483_without_the_hosts_processes_the_owner_is_unknown(proc: Proc) -> None:
    """The driver's numbers are the host's; the same number here may be somebody else."""
    proc.add(10, 500, POD)
    proc.remove(2)
    unknown = {10: ProcessOwner(10, None, "unknown"), 99: ProcessOwner(99, None, "unknown")}
    assert proc.owners().owners([10, 99]) == unknown
    proc.add(2, 1, "0::/\n", comm="kthreadd", parent=1)  # a process that calls itself so
    assert proc.owners().owners([10, 99]) == unknown


def test_a_new_user_is_known_by_name(proc: Proc) -> None:
    owners = proc.owners()
    proc.add(10, 500, JOB, user=77)
    assert owners.owners([10])[10].user == "77"
    with proc.passwd.open("a") as passwd:
        passwd.write("eve:x:77:77:::\n")
    proc.add(11, 600, JOB, user=77)
    assert owners.owners([10, 11])[11].user == "eve"
    proc.passwd.unlink()
    proc.add(12, 700, JOB, user=77)
    assert owners.owners([12])[12].user == "77"


def test_a_file_that_cannot_be_read_is_unknown_not_gone(proc: Proc) -> None:
    proc.add(10, 500, POD)
    (proc.folder / "10/stat").unlink()
    (proc.folder / "10/stat").mkdir()
    assert proc.owners().owners([10])[10].kind == "unknown"
    proc.add(11, 500, POD)
    (proc.folder / "11/stat").write_text("nonsense")
    assert proc.owners().owners([11])[11].kind == "unknown"


def test_a_file_that_never_ends_is_read_to_its_limit(proc: Proc) -> None:
    proc.add(10, 500, "1:x:/" + "a" * 200_000 + "\n" + POD)
    assert proc.owners().owners([10])[10].kind == "user"
    proc.add(11, 500, POD)
    (proc.folder / "11/cgroup").unlink()
    os.mkfifo(proc.folder / "11/cgroup")
    assert proc.owners().owners([11])[11].pid == 11


def test_a_real_process(child: subprocess.Popen[bytes]) -> None:
    if not sees_host_processes(Path("/proc")):
        assert ProcessOwners().owners([child.pid])[child.pid].kind == "unknown"
        return
    owners = ProcessOwners()
    found = owners.owners([child.pid])[child.pid]
    assert found.user in {pwd.getpwuid(os.getuid()).pw_name, None}
    boot_seconds = float(Path("/proc/uptime").read_text().split()[0])
    age = boot_seconds - (found.start_ticks or 0) / os.sysconf("SC_CLK_TCK")
    assert 0 <= age < 300
    child.kill()
    child.wait()
    deadline = time.monotonic() + 10
    while owners.owners([child.pid]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert owners.owners([child.pid]) == {}


@given(st.text())
def test_any_stat_is_read(text: str) -> None:
    assert start_ticks(text) is None or start_ticks(text) >= 0
