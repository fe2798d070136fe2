"""Devices and claims for tests of who holds what."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collectors.holders.holders import holders
from collectors.holders.procs import ProcessOwner
from collectors.samples import Claim, DeviceProcess, DeviceSample, Held, Owner

if TYPE_CHECKING:
    from collections.abc import Sequence

GIB = 2**30
H100 = "NVIDIA H100 80GB HBM3"
PROFILES = {"1g": (1, 1), "1g.20gb": (1, 2), "2g": (2, 2), "3g": (3, 4), "4g": (4, 4), "7g": (7, 8)}
"""Compute slices of 7 and memory slices of 8."""


def gpu(number: int, **more: Any) -> DeviceSample:
    """A board; its minor number is not its place on purpose."""
    made = {
        "uuid": f"GPU-{number:08d}-0000-4000-8000-000000000000",
        "slot": str(number),
        "minor_number": 7 - number,
        "model": H100,
        "pci_bus_id": f"00000000:{0xC0 + number:02X}:00.0",
        "memory_total_bytes": 80 * GIB,
    }
    return DeviceSample(kind="gpu", **{**made, **more})


def mig(board: DeviceSample, instance: int, profile: str = "1g", **more: Any) -> DeviceSample:
    """An instance of a board; its memory is a little less than its slices, as drivers report it."""
    compute, memory = PROFILES[profile]
    made = {
        "uuid": f"MIG-{(board.uuid or '')[4:12]}-0000-4000-8000-{instance:012d}",
        "parent_uuid": board.uuid,
        "slot": str(instance),
        "gpu_instance_id": instance,
        "compute_instance_id": 0,
        "compute_slices": compute,
        "memory_total_bytes": memory * 10 * GIB * 96 // 100,
    }
    return DeviceSample(kind="mig", **{**made, **more})


def claim(device: str, pod: str = "a", resource: str = "nvidia.com/gpu", **more: Any) -> Claim:
    return Claim(device, resource, Owner("ml", pod, "main", replica=more.pop("replica", None)), "kubelet", **more)


def process(pid: int, **more: Any) -> DeviceProcess:
    return DeviceProcess(pid, **more)


def owned(**owners: ProcessOwner) -> dict[int, ProcessOwner]:
    """Owners by pid: `owned(p10=job("7"))`."""
    return {int(name[1:]): owner for name, owner in owners.items()}


def by_job(job: str, user: str = "ada") -> ProcessOwner:
    return ProcessOwner(0, 1, "job", job_id=job, user=user)


def by_pod(uid: str) -> ProcessOwner:
    return ProcessOwner(0, 1, "pod", pod_uid=uid, container_id="c0ffee")


def by_user(name: str) -> ProcessOwner:
    return ProcessOwner(0, 1, "user", user=name)


WHOLE = 1_000_000
BOARD = gpu(0)
NAME = BOARD.uuid or ""
MIGS = [mig(BOARD, number) for number in range(7, 14)]
UID_A, UID_B = "7b0b0a4e-0000-4000-8000-0000000000aa", "7b0b0a4e-0000-4000-8000-0000000000bb"
PODS = {("ml", "a"): (UID_A,), ("ml", "b"): (UID_B,)}


def held(samples: Sequence[DeviceSample], claims: Sequence[Claim] | None, **more: Any) -> list[Held]:
    return list(holders(samples, claims, more.pop("owners", None), **more))


def only(rows: Sequence[Held]) -> Held:
    (row,) = rows
    return row


def brief(rows: Sequence[Held]) -> list[tuple[str | None, int, str]]:
    return [(row.pod or row.job_id or row.user_name, row.gpu_millionths, row.confidence) for row in rows]


def on(board: DeviceSample, *pids: int) -> DeviceSample:
    return replace(board, processes=tuple(process(pid) for pid in pids))
