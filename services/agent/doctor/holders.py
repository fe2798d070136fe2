"""Who holds the devices: the kubelet, the pods' folders, the host's processes, Slurm's job maps."""

from __future__ import annotations

import os
import socket
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collectors.collector import SourceAbsentError
from collectors.holders.device_ids import DeviceIds
from collectors.holders.job_maps import read_job_maps
from collectors.holders.pod_folders import PodFolders
from collectors.holders.procs import sees_host_processes
from collectors.placement.collector import Placement
from fleet.errors import GputallyError
from services.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collectors.samples import Claim, DeviceSample, Reading
    from fleet.agent_config import Agent

PROC: Final = Path("/proc")
CONNECT_SECONDS: Final = 3.0
_IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"


def processes(config: Agent, proc: Path = PROC) -> Iterator[Finding]:
    """Whether a process on a device can be told to its owner."""
    if not config.processes:
        yield Finding("ok", "processes", "not asked for (agent.processes = false)")
    elif sees_host_processes(proc):
        yield Finding("ok", "processes", f"{proc} is the host's: owners of processes can be told")
    else:
        yield Finding(
            "warn",
            "processes",
            f"{proc} shows a container's processes, or is mounted with hidepid: their owners stay unknown. "
            "In a pod set hostPID: true, in a container --pid=host",
        )


def kubelet(config: Agent, samples: Sequence[DeviceSample] | None) -> Iterator[Finding]:
    """Whether the kubelet answers, what it gave away, and whether those devices are here."""
    path = Path(config.kubelet_socket)
    if not config.kubelet_socket:
        yield Finding("ok", "kubelet", "not asked for (agent.kubelet_socket is empty)")
        return
    if trouble := _trouble(path):
        yield trouble
        return
    placement = Placement(path)
    try:
        reading = placement.collect()
    except (GputallyError, SourceAbsentError) as error:
        yield Finding("fail", "kubelet", f"{error}; is {path} the kubelet's pod-resources socket?")
        return
    finally:
        placement.close()
    yield from _claims(reading, samples)


def _trouble(path: Path) -> Finding | None:
    """Why there is no talking to a socket; None where somebody listens."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(CONNECT_SECONDS)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, NotADirectoryError):
            if os.environ.get(_IN_A_POD):
                fix = f"mount the host's folder {path.parent} at the same place, read-only is enough"
                return Finding("fail", "kubelet", f"no socket {path} in this pod: {fix}")
            words = f'no socket {path}: right on a node without Kubernetes (agent.kubelet_socket = "" says so)'
            return Finding("warn", "kubelet", words)
        except PermissionError:
            return Finding("fail", "kubelet", f"{path} belongs to root: run as user 0, which needs no capability")
        except ConnectionRefusedError:
            words = f"nobody listens on {path}: the kubelet is down, or the socket is mounted instead of its folder"
            return Finding("fail", "kubelet", words)
        except OSError as error:
            return Finding("fail", "kubelet", f"{path}: {error.strerror or error}")
    return None


def _claims(reading: Reading, samples: Sequence[DeviceSample] | None) -> Iterator[Finding]:
    claims = reading.claims or ()
    pods = {(claim.owner.namespace, claim.owner.pod) for claim in claims}
    could = "" if reading.allocatable is None else f"; it could give {len(reading.allocatable)}"
    yield Finding("ok", "kubelet", f"{len(pods)} pods hold {len(claims)} device ids{could}")
    if reading.rejected:
        words = ", ".join(f"{rejected.count} {rejected.reason}" for rejected in reading.rejected)
        yield Finding("warn", "kubelet", f"parts of its answer were refused: {words}")
    if samples is None:
        return
    lost: dict[str, list[Claim]] = {}
    for claim, found in DeviceIds(samples).resolve_all(claims):
        if found.device is None:
            lost.setdefault(found.reason or "unknown", []).append(claim)
    for reason, unnamed in sorted(lost.items()):
        example = f"{unnamed[0].resource} {unnamed[0].device_id}"
        yield Finding(
            "warn",
            "claims",
            f"{len(unnamed)} device ids name no device of this node ({reason}), such as {example}: they are nobody's",
        )


def pods(config: Agent) -> Iterator[Finding]:
    """Whether pods' uids are known, and which of them live."""
    if not config.kubelet_socket or not Path(config.kubelet_socket).exists():
        return
    logs, cgroups = Path(config.pod_logs), Path(config.cgroups)
    known = PodFolders(logs, cgroups).look()
    version = _cgroup_version(cgroups)
    count = sum(map(len, known.uids.values()))
    if not count:
        words = f"{logs} lists no pod: holdings have no pod uid. Mount the host's /var/log/pods there, read-only"
        yield Finding("warn", "pods", words)
    elif known.living is None:
        words = (
            f"{count} uids in {logs}, but {cgroups} ({version}) knows none of them: a finished pod that the kubelet "
            "still lists cannot be told from a live one. Mount the host's /sys/fs/cgroup read-only at a path of its "
            "own, and set agent.cgroups to it"
        )
        yield Finding("warn", "pods", words)
    else:
        yield Finding("ok", "pods", f"{count} uids in {logs}, {len(known.living)} of them live ({cgroups}, {version})")


def _cgroup_version(cgroups: Path) -> str:
    if (cgroups / "cgroup.controllers").is_file():
        return "cgroup v2"
    names = Counter(name for name in ("memory", "pids", "systemd") if (cgroups / name).is_dir())
    return "cgroup v1" if names else "no cgroup hierarchy"


def job_maps(config: Agent) -> Iterator[Finding]:
    """Whether Slurm's prolog writes which job has which GPU."""
    if not config.job_maps:
        return
    folder = Path(config.job_maps)
    try:
        os.scandir(folder).close()
    except OSError as error:
        words = f"{folder}: {error.strerror}; the prolog has to make it, or agent.job_maps names another folder"
        yield Finding("fail", "job maps", words)
        return
    yield Finding("ok", "job maps", f"{len(read_job_maps(folder))} devices have jobs in {folder}")
