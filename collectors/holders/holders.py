"""Who holds what share of each device now, from everything that a node knows about it.

In this order: what the scheduler gave away (the kubelet's claims), what a Slurm prolog wrote down, whose processes are
on a device, and, where neither claims nor processes are known, whom a metric page names. A device that nobody claims
and nobody uses is in no row. All rows of one board, its instances included, never add up to more than one board.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from collectors.holders.claim_holders import ClaimHolders, Evidence
from collectors.holders.device_ids import DeviceIds
from collectors.holders.pod_folders import KnownPods
from collectors.holders.process_holders import held_by_jobs, held_by_page, held_by_processes, pod_uids
from collectors.holders.shares import Share, device_shares
from collectors.holders.steady import SteadyProcesses
from collectors.samples import Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collectors.holders.procs import ProcessOwner
    from collectors.samples import Claim, DeviceProcess, DeviceSample, Held

# What of a device decides who holds it and how much, beside its processes; its readings do not.
_DECIDES: Final = attrgetter(
    "device", "kind", "slot", "parent_uuid", "serial", "model", "pci_bus_id", "minor_number", "gpu_instance_id",
    "compute_instance_id", "compute_slices", "placement_start", "profile_hint", "memory_total_bytes", "owner",
)  # fmt: skip


def holders(
    samples: Sequence[DeviceSample],
    claims: Iterable[Claim] | None,
    owners: Mapping[int, ProcessOwner] | None,
    *,
    allocatable: Iterable[str] | None = None,
    jobs: Mapping[str, Sequence[str]] | None = None,
    pods: KnownPods | None = None,
    since: Mapping[Claim, int] | None = None,
    listed: Mapping[str, tuple[DeviceProcess, ...] | None] | None = None,
) -> tuple[Held, ...]:
    """Who holds each device, sorted.

    `claims` is None on a node without a kubelet. One that is there and silent is another matter: then nobody can say
    who holds what, so the caller does not ask here and bridges the gap with what held before. `owners` are those of
    the processes in `samples`, None when processes cannot be had at all. `allocatable`, `jobs` (by device name),
    `pods` and `since` (each claim's first second) decide what the claims leave open. `listed` are the processes by
    device name, where others than those in `samples` are to count.
    """
    pods = pods or KnownPods()
    devices = {sample.device: sample for sample in samples if sample.device is not None}
    shares = device_shares(devices.values())
    processes = _processes(devices, listed)
    held: list[Held] = []
    if claims is not None:
        evidence = Evidence(pods, _uids_on(devices, processes, owners or {}), since or {})
        held += ClaimHolders(DeviceIds(devices.values()), shares, allocatable).held(claims, evidence)
    held += _held_by_jobs(_free(devices, held), shares, jobs or {}, owners or {})
    free = _free(devices, held)
    names = pods.names()
    for name in _leaves(free):
        held += held_by_processes(name, _share(shares, name), processes.get(name) or (), owners or {}, names)
    if claims is None:
        for name in _leaves(free):
            if (owners is None or processes.get(name) is None) and free[name].owner:
                held += held_by_page(name, _share(shares, name), free[name].owner)
    return tuple(sorted(held, key=_order))


class Holders:
    """`holders`, worked out again only when something that it depends on has changed: it is asked each second."""

    def __init__(self) -> None:
        """Nothing is remembered but the last question and its answer, and what processes used when it was asked."""
        self._steady = SteadyProcesses()
        self._asked: tuple[object, ...] | None = None
        self._held: tuple[Held, ...] = ()

    def now(
        self,
        second: int,
        samples: Sequence[DeviceSample],
        claims: tuple[Claim, ...] | None,
        owners: Mapping[int, ProcessOwner] | None,
        *,
        allocatable: tuple[str, ...] | None = None,
        jobs: Mapping[str, Sequence[str]] | None = None,
        pods: KnownPods | None = None,
        since: Mapping[Claim, int] | None = None,
    ) -> tuple[Held, ...]:
        """Who holds each device at a second, which steadies what processes use for the rest of its window.

        Mappings that changed must be new ones, not the old ones with other content.
        """
        listed = self._steady.settled(second, samples)
        asked = (tuple(map(_DECIDES, samples)), listed, claims, owners, allocatable, jobs, pods, since)
        if asked != self._asked:
            self._held = holders(
                samples,
                claims,
                owners,
                allocatable=allocatable,
                jobs=jobs,
                pods=pods,
                since=since,
                listed=listed,
            )
            self._asked = asked
        return self._held


def unattributed(samples: Sequence[DeviceSample], claims: Iterable[Claim]) -> tuple[Rejected, ...]:
    """How many claims name no device of the node, by reason: they are billed to nobody and shown."""
    found = DeviceIds(samples).resolve_all(claims)
    reasons = Counter(resolved.reason for _, resolved in found if resolved.reason)
    return tuple(Rejected(reason, count) for reason, count in sorted(reasons.items()))


def _processes(
    devices: Mapping[str, DeviceSample], listed: Mapping[str, tuple[DeviceProcess, ...] | None] | None
) -> dict[str, tuple[DeviceProcess, ...] | None]:
    """The processes on each device; those that a board lists for an instance which lists none itself are its."""
    found = {name: listed[name] if listed else sample.processes for name, sample in devices.items()}
    for name, sample in devices.items():
        of_board = found.get(sample.parent_uuid or "")
        if found[name] is None and of_board is not None and sample.gpu_instance_id is not None:
            found[name] = tuple(
                process
                for process in of_board
                if process.gpu_instance_id == sample.gpu_instance_id
                and process.compute_instance_id in {None, sample.compute_instance_id}
            )
    return found


def _uids_on(
    devices: Mapping[str, DeviceSample],
    processes: Mapping[str, tuple[DeviceProcess, ...] | None],
    owners: Mapping[int, ProcessOwner],
) -> dict[str, frozenset[str]]:
    """The pod uids on each device; a board's include those on its instances."""
    found: dict[str, frozenset[str]] = {}
    for name, sample in devices.items():
        if uids := pod_uids(processes.get(name) or (), owners):
            for place in {name, sample.parent_uuid or name}:
                found[place] = found.get(place, frozenset()) | uids
    return found


def _held_by_jobs(
    free: Mapping[str, DeviceSample],
    shares: Mapping[str, Share],
    jobs: Mapping[str, Sequence[str]],
    owners: Mapping[int, ProcessOwner],
) -> list[Held]:
    users = {owner.job_id: owner.user for owner in owners.values() if owner.job_id and owner.user}
    cut = {sample.parent_uuid for name, sample in free.items() if jobs.get(name) and sample.parent_uuid}
    held: list[Held] = []
    for name in free:
        given = jobs.get(name)
        # What is written down for an instance is nearer than what is written down for its board.
        if given and name not in cut:
            held += held_by_jobs(name, _share(shares, name), given, users)
    return held


def _free(devices: Mapping[str, DeviceSample], held: Iterable[Held]) -> dict[str, DeviceSample]:
    """The devices that no row holds, neither themselves nor their board nor, for a board, an instance of it."""
    taken = {row.device for row in held}
    boards = {parent for name in taken if name in devices and (parent := devices[name].parent_uuid)}
    return {
        name: sample
        for name, sample in devices.items()
        if name not in taken and name not in boards and sample.parent_uuid not in taken
    }


def _leaves(devices: Mapping[str, DeviceSample]) -> list[str]:
    """The devices that are not cut into others."""
    cut = {sample.parent_uuid for sample in devices.values() if sample.parent_uuid}
    return [name for name in devices if name not in cut]


def _share(shares: Mapping[str, Share], name: str) -> Share:
    return shares.get(name, Share(0))


def _order(row: Held) -> tuple[str, ...]:
    owner = (row.namespace, row.pod, row.pod_uid, row.container, row.job_id, row.user_name)
    return (row.device, row.owner_kind, *(text or "" for text in owner))
