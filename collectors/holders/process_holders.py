"""From processes, job maps and pages to holdings: who holds a device that no scheduler's claim names.

Pods and jobs come first: a device on which several run is divided equally among them, and what else runs there holds
nothing. Without them, containers and users hold it by what they use: by the time that their kernels ran, by memory
where none ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from collectors.holders.shares import Share, cumulative_split
from collectors.samples import Held

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collectors.holders.procs import ProcessOwner
    from collectors.samples import DeviceProcess, Owner

Kind: TypeAlias = Literal["pod", "job", "process", "unknown"]
_MILLION: Final = 1_000_000


class Holder(NamedTuple):
    """Somebody who holds; what is not known is empty. Two that are equal are the same."""

    kind: Kind
    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    container: str = ""
    job_id: str = ""
    user_name: str = ""


def held_by_jobs(device: str, share: Share, jobs: Sequence[str], users: Mapping[str, str]) -> list[Held]:
    """Jobs that were given a device, in equal parts; `users` names whose they are."""
    holders = [Holder("job", job_id=job, user_name=users.get(job, "")) for job in sorted(set(jobs))]
    return _divided(device, share, holders, [1] * len(holders), "job_map", "exact" if len(holders) == 1 else "split")


def held_by_processes(
    device: str,
    share: Share,
    processes: Iterable[DeviceProcess],
    owners: Mapping[int, ProcessOwner],
    names: Mapping[str, tuple[str, str]],
) -> list[Held]:
    """Whose processes are on a device. `names` gives (namespace, pod) by uid. A process that ended holds nothing."""
    found: dict[Holder, list[DeviceProcess]] = {}
    for process in processes:
        if owner := owners.get(process.pid):
            found.setdefault(_holder(owner, names), []).append(process)
    managed = sorted(holder for holder in found if holder.kind in {"pod", "job"})
    if managed:
        confidence: Literal["exact", "split"] = "exact" if len(managed) == 1 else "split"
        return _divided(device, share, managed, [1] * len(managed), "cgroup", confidence)
    holders = sorted(found)
    if [holder.kind for holder in holders] == ["unknown"]:
        return _divided(device, share, holders, [1], "process", "assumed")
    return _divided(device, share, holders, _weights([found[h] for h in holders]), "process", "split")


def held_by_page(device: str, share: Share, owners: Iterable[Owner]) -> list[Held]:
    """Whom a metric page names: a hint, since some exporters name only one of several (dcgm-exporter#307)."""
    holders = sorted(
        {
            Holder(
                "pod" if owner.pod else "job" if owner.hpc_job else "unknown",
                namespace=owner.namespace or "",
                pod=owner.pod or "",
                pod_uid=owner.pod_uid or "",
                job_id=owner.hpc_job or "",
                user_name=owner.user or "",
            )
            for owner in owners
        }
    )
    return _divided(device, share, holders, [1] * len(holders), "page", "assumed")


def pod_uids(processes: Iterable[DeviceProcess], owners: Mapping[int, ProcessOwner]) -> frozenset[str]:
    """The uids of the pods whose processes these are."""
    uids = {owner.pod_uid for process in processes if (owner := owners.get(process.pid)) and owner.pod_uid}
    return frozenset(uids)


def _holder(owner: ProcessOwner, names: Mapping[str, tuple[str, str]]) -> Holder:
    if owner.kind == "pod":
        namespace, pod = names.get(owner.pod_uid or "", ("", ""))
        return Holder("pod", namespace=namespace, pod=pod, pod_uid=owner.pod_uid or "")
    if owner.kind == "job":
        return Holder("job", job_id=owner.job_id or "", user_name=owner.user or "")
    if owner.kind == "unknown":
        return Holder("unknown")
    return Holder("process", container=owner.container_id or "", user_name=owner.user or "")


def _weights(groups: Sequence[Sequence[DeviceProcess]]) -> list[int]:
    """By time of kernels; where none ran by memory; where that is not known of everybody, equal."""
    ran = [sum(round((process.sm_ratio or 0) * _MILLION) for process in group) for group in groups]
    if any(ran):
        return ran
    memory = [process.memory_bytes for group in groups for process in group]
    if None in memory:
        return [1] * len(groups)
    return [sum(process.memory_bytes or 0 for process in group) for group in groups]


def _divided(
    device: str,
    share: Share,
    holders: Sequence[Holder],
    weights: Sequence[int],
    source: str,
    confidence: Literal["exact", "split", "assumed"],
) -> list[Held]:
    parts = cumulative_split(share.millionths, weights)
    return [
        Held(
            device=device,
            gpu_millionths=millionths,
            owner_kind=holder.kind,
            source=source,
            confidence="assumed" if share.is_assumed else confidence,
            **_known(holder),
        )
        for holder, millionths in zip(holders, parts, strict=True)
        if millionths > 0
    ]


def _known(holder: Holder) -> dict[str, Any]:
    return {name: value for name, value in holder._asdict().items() if name != "kind" and value}
