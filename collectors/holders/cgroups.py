"""Whose process it is, as its cgroup says: a pod's, a Slurm job's, a container's or a user's.

A cgroup path is made of what the system wrote (from the left) and of what the owner may have added below it. So only
the outermost owner counts: a user who names a unit of his own `job_5`, or a pod that makes a folder of that name, is
not believed to be that job. Formats: kubelet with the systemd and cgroupfs drivers, Slurm's cgroup plugins v1 and v2,
docker, podman, systemd-logind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

OwnerKind = Literal["pod", "job", "container", "user", "unknown"]

PATH_LIMIT: Final = 4096
_LINES_LIMIT: Final = 64
_HEX_ID: Final = r"(?P<container>[0-9a-f]{64})"
_UID: Final = r"(?P<uid>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})"
# A static pod's uid is a hash without dashes; systemd's names have underscores, as a dash there means a level.
_POD: Final = re.compile(rf"(?:^|[/-])pod{_UID}(?:\.slice)?(?:[/:](?:[a-z-]+[:-])*{_HEX_ID}(?:\.scope)?)?(?=[/:]|$)")
_JOB_V1: Final = re.compile(r"^/slurm(?:_[^/]+)?/uid_(?P<user>\d{1,10})/job_(?P<job>\d{1,10})(?=/|$)")
_JOB_V2: Final = re.compile(r"^(?:/system\.slice)?/(?:[^/]+_)?slurmstepd\.scope/job_(?P<job>\d{1,10})(?=/|$)")
_CONTAINER: Final = re.compile(
    rf"^(?:/(?:system|machine)\.slice)?/(?:docker/|docker-|libpod-|nerdctl-|libpod_parent/libpod-){_HEX_ID}"
    r"(?:\.scope)?(?=/|$)"
)
_USER: Final = re.compile(r"^/user\.slice/user-(?P<user>\d{1,10})\.slice(?=/|$)")
_USERS_CONTAINER: Final = re.compile(rf"/(?:libpod|docker)-{_HEX_ID}\.scope(?=/|$)")
_ABOVE: Final = re.compile(r"^(?:/\.\.)+(?=/|$)")
_BESIDE: Final = re.compile(r"^/(?:(?:burstable|besteffort)/)?pod")
_REMOVED: Final = " (deleted)"
_STRENGTH: Final[dict[OwnerKind, int]] = {"pod": 4, "job": 3, "container": 2, "user": 1, "unknown": 0}


@dataclass(frozen=True, slots=True)
class CgroupOwner:
    """The owner that a cgroup names. `container_id` is the runtime's, `user_id` is set where the path has it."""

    kind: OwnerKind
    path: str = ""
    pod_uid: str | None = None
    container_id: str | None = None
    job_id: str | None = None
    user_id: int | None = None


def owner_of_cgroups(text: str) -> CgroupOwner:
    """The owner that the lines of a `/proc/PID/cgroup` name; the strongest where v1 hierarchies differ.

    Each line is `hierarchy:controllers:path`. Never raises: what cannot be read says nothing.
    """
    best = CgroupOwner("unknown")
    for line in text.splitlines()[:_LINES_LIMIT]:
        path = line.split(":", 2)[-1]
        if not path.startswith("/") or len(path) > PATH_LIMIT:
            continue
        found = owner_of_path(path)
        stronger = _STRENGTH[found.kind] - _STRENGTH[best.kind]
        if stronger > 0 or (stronger == 0 and len(found.path) > len(best.path)):
            best = found
    return best


def owner_of_path(path: str) -> CgroupOwner:
    """The owner that one cgroup path names, kind `unknown` for a system service or the root."""
    # Seen from inside a cgroup namespace, a path begins with the way up, and what is above is not written out.
    above = _ABOVE.match(path)
    inner = (path[above.end() :] if above else path).removesuffix(_REMOVED)
    if found := _USER.match(inner):
        own = _USERS_CONTAINER.search(inner, found.end())
        return CgroupOwner("user", path, container_id=own and own["container"], user_id=int(found["user"]))
    if found := _JOB_V1.match(inner):
        return CgroupOwner("job", path, job_id=found["job"], user_id=int(found["user"]))
    if found := _JOB_V2.match(inner):
        return CgroupOwner("job", path, job_id=found["job"])
    # A node that is itself a container (kind, k3d) has its pods below a container's path.
    pod = _POD.search(inner)
    if pod and ("kubepods" in inner[: pod.end()] or (above and _BESIDE.match(inner))):
        return CgroupOwner("pod", path, pod_uid=pod["uid"].replace("_", "-"), container_id=pod["container"])
    if found := _CONTAINER.match(inner):
        return CgroupOwner("container", path, container_id=found["container"])
    return CgroupOwner("unknown", path)
