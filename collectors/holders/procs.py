"""Whose a process on a device is, from `/proc` of the host.

A process is a number and its start: numbers are used again. NVML gives numbers of the host, so all this needs the
host's `/proc` (a pod: `hostPID: true`); where only a container's processes can be seen, every owner is unknown, since
the same number may be another process there. Read are `stat`, `cgroup` and `status`, which everybody may read (unless
`/proc` is mounted with `hidepid`); not `environ`, which needs root and may hold secrets.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collectors.holders.cgroups import CgroupOwner, OwnerKind, owner_of_cgroups
from collectors.holders.job_maps import jobs_by_device, read_job_maps
from fleet.identity import bounded_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collectors.samples import DeviceSample

_FILE_LIMIT: Final = 16_384
_PASSWD_LIMIT: Final = 1_048_576
_KTHREADD: Final = 2
_START_TICKS: Final = 22
_PROCESSES_LIMIT: Final = 8192


@dataclass(frozen=True, slots=True)
class ProcessOwner:
    """Whose a process is. `start_ticks` (since boot, field 22 of `stat`) with `pid` names the process over time.

    `user` is the account's name, or its number where no name is known. `kind` is `unknown` where the process cannot
    be seen, and then all else is None.
    """

    pid: int
    start_ticks: int | None
    kind: OwnerKind
    pod_uid: str | None = None
    container_id: str | None = None
    job_id: str | None = None
    user: str | None = None
    cgroup: str | None = None


class ProcessOwners:
    """The owners of processes; what was found out about a process is kept as long as it is asked for."""

    def __init__(
        self, proc: Path = Path("/proc"), job_maps: Path | None = None, passwd: Path = Path("/etc/passwd")
    ) -> None:
        """`job_maps` is the folder that a Slurm prolog writes; `passwd` names users: in a container, the host's."""
        self._proc = proc
        self._job_maps = job_maps
        self._passwd = passwd
        self._known: dict[int, ProcessOwner] = {}
        self._names: Mapping[int, str] = {}
        self._names_changed: tuple[int, int] | None = None

    def owners(self, pids: Iterable[int]) -> dict[int, ProcessOwner]:
        """The owner of each process that exists; one that ended is left out."""
        wanted = sorted(set(pids))[:_PROCESSES_LIMIT]
        if not wanted:
            self._known = {}
            return {}
        if not sees_host_processes(self._proc):
            self._known = {}
            return {pid: ProcessOwner(pid, None, "unknown") for pid in wanted}
        self._names = self._user_names()
        self._known = {pid: owner for pid in wanted if (owner := self._owner(pid))}
        return dict(self._known)

    def of_devices(self, samples: Iterable[DeviceSample]) -> dict[int, ProcessOwner] | None:
        """The owner of each process on the devices; None where no device tells its processes."""
        lists = [sample.processes for sample in samples if sample.processes is not None]
        return self.owners(process.pid for processes in lists for process in processes) if lists else None

    def jobs(self, samples: Iterable[DeviceSample]) -> dict[str, tuple[str, ...]]:
        """The jobs that were given each device, by the device's name, as the folder of job maps says."""
        return jobs_by_device(read_job_maps(self._job_maps), samples) if self._job_maps else {}

    def _owner(self, pid: int) -> ProcessOwner | None:
        folder = self._proc / str(pid)
        try:
            started = start_ticks(_text(folder / "stat"))
            if started is None:
                return ProcessOwner(pid, None, "unknown")
            known = self._known.get(pid)
            if known and known.start_ticks == started:
                return known
            cgroup = owner_of_cgroups(_text(folder / "cgroup"))
            owner = self._described(pid, started, cgroup, _text(folder / "status"))
            # The number may have passed to another process between these reads.
            return owner if start_ticks(_text(folder / "stat")) == started else None
        except (FileNotFoundError, ProcessLookupError):
            return None if self._proc.is_dir() else ProcessOwner(pid, None, "unknown")
        except OSError:
            return ProcessOwner(pid, None, "unknown")

    def _described(self, pid: int, started: int, cgroup: CgroupOwner, status: str) -> ProcessOwner:
        user_id = cgroup.user_id if cgroup.user_id is not None else _real_user_id(status)
        kind: OwnerKind = "user" if cgroup.kind == "unknown" and user_id is not None else cgroup.kind
        return ProcessOwner(
            pid,
            started,
            kind,
            pod_uid=cgroup.pod_uid,
            container_id=cgroup.container_id,
            job_id=cgroup.job_id,
            # A number inside a pod or container is that image's own, whatever name the host has for it.
            user=None if kind in {"pod", "container"} or user_id is None else self._names.get(user_id, str(user_id)),
            cgroup=cgroup.path or None,
        )

    def _user_names(self) -> Mapping[int, str]:
        try:
            found = self._passwd.stat()
            changed = (found.st_mtime_ns, found.st_size)
            if changed != self._names_changed:
                self._names_changed = changed
                return _names(_text(self._passwd, _PASSWD_LIMIT))
        except OSError:
            return {}
        return self._names


def sees_host_processes(proc: Path) -> bool:
    """Whether `proc` lists the host's processes: number 2 is the kernel's own thread there and nowhere else."""
    try:
        name, fields = _fields(_text(proc / str(_KTHREADD) / "stat"))
    except OSError:
        return False
    return name == "kthreadd" and fields[1:2] == ["0"]


def start_ticks(stat: str) -> int | None:
    """When a process started, in clock ticks since boot, from its `stat`; None for a text that is none."""
    _, fields = _fields(stat)
    return _number(fields[_START_TICKS - 3 : _START_TICKS - 2])


def _fields(stat: str) -> tuple[str, list[str]]:
    """The name and the fields after it; a name may hold blanks and parentheses, so its end is the last one."""
    head, _, rest = stat.rpartition(")")
    return head.partition("(")[2], rest.split()


def _number(words: list[str]) -> int | None:
    """The first word, if it is a plain number of at most 20 digits."""
    word = words[0] if words else ""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 20 else None


def _real_user_id(status: str) -> int | None:
    for line in status.splitlines():
        if line.startswith("Uid:"):
            return _number(line.split()[1:])
    return None


def _names(passwd: str) -> dict[int, str]:
    names: dict[int, str] = {}
    for line in passwd.splitlines():
        name, _, rest = line.partition(":")
        number = _number(rest.split(":")[1:])
        if number is None:
            continue
        try:
            names.setdefault(number, bounded_name(name))
        except ValueError:
            continue
    return names


def _text(path: Path, limit: int = _FILE_LIMIT) -> str:
    """At most `limit` bytes of a file. What waits for a writer (a FIFO) is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, limit).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
