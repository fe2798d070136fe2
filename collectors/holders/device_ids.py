"""What device the id of a claim means, among the devices of the node.

Each scheduler extension spells ids its own way: NVIDIA's device plugin by UUID, with `::N` for the N-th share; GKE by
minor number; DRA drivers by minor number and MIG placement; AMD by PCI address; Neuron, Gaudi and TPU by the place on
the node. An id that cannot be resolved stays unattributed, with its reason: never the board's, never by a guess. An
NVIDIA index is no identity, since it changes with the environment and the boot (jobstats#34).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collectors.samples import Claim, DeviceSample

# How a memory slice is counted: an instance's memory is a number of eighths of its board's, less what is reserved.
MEMORY_SLICES: Final = 8
_GIBIBYTE: Final = 2**30
_NUMBER: Final = r"(\d{1,6})"
_LEGACY_MIG: Final = re.compile(rf"mig-(gpu-[0-9a-f-]{{1,64}})/{_NUMBER}/{_NUMBER}", re.ASCII)
_GKE: Final = re.compile(rf"nvidia{_NUMBER}(?:/gi{_NUMBER})?(?:/vgpu(\d{{1,4}}))?", re.ASCII)
_DRA: Final = re.compile(rf"gpu-{_NUMBER}(-mig-.*)?", re.ASCII)
_DRA_PLACED: Final = re.compile(rf"-mig-{_NUMBER}-{_NUMBER}-{_NUMBER}", re.ASCII)
_DRA_PROFILED: Final = re.compile(rf"-mig-(\d{{1,2}})g(\d{{1,4}})gb(?:-[a-z0-9-]*)?-{_NUMBER}-{_NUMBER}", re.ASCII)
_PCI: Final = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])", re.ASCII)
_PLACE: Final = re.compile(r"(?:[a-z_-]{1,32})?(\d{1,4})", re.ASCII)
_BY_PLACE: Final = ("aws.amazon.com/neuron", "google.com/tpu", "habana.ai/")


class Resolved(NamedTuple):
    """The device that a claim means. `device` is its name, None with a `reason`; `replica` the share of it, if any.

    `parent` is the board, also where only that much is known.
    """

    device: str | None
    parent: str | None = None
    replica: int | None = None
    reason: str | None = None


def resolve(claim: Claim, devices: Sequence[DeviceSample]) -> Resolved:
    """What one claim means; `DeviceIds` does the same for many. Never raises, whatever the id holds."""
    return DeviceIds(devices).resolve(claim)


class DeviceIds:
    """The devices of a node by the ways in which claims name them."""

    def __init__(self, devices: Iterable[DeviceSample]) -> None:
        """A device that has no name cannot be meant."""
        self._by_uuid: dict[str, DeviceSample] = {}
        self._by_minor: dict[int, DeviceSample] = {}
        self._by_address: dict[tuple[int, ...], DeviceSample] = {}
        self._by_serial: dict[str, DeviceSample] = {}
        self._by_place: dict[str, DeviceSample | None] = {}
        self._instances: dict[str, list[DeviceSample]] = {}
        for sample in devices:
            if sample.device is None:
                continue
            self._by_uuid[sample.device.lower()] = sample
            if sample.parent_uuid:
                self._instances.setdefault(sample.parent_uuid, []).append(sample)
            elif sample.minor_number is not None:
                self._by_minor[sample.minor_number] = sample
            if not sample.parent_uuid and (address := pci_address(sample.pci_bus_id)):
                self._by_address[address] = sample
            if sample.serial and not sample.parent_uuid:
                self._by_serial[sample.serial.lower()] = sample
            if sample.slot and sample.kind != "mig":
                # Two devices in one place: the place names neither.
                self._by_place[sample.slot] = sample if sample.slot not in self._by_place else None

    def resolve(self, claim: Claim) -> Resolved:
        """What a claim means."""
        text = claim.device_id
        if len(text) > TEXT_LIMIT:
            return Resolved(None, reason="id_too_long")
        plain, mark, number = text.strip().lower().rpartition("::")
        if not mark:
            return self._device(number, claim.resource)
        if not (number.isascii() and number.isdigit() and len(number) <= 4):
            return Resolved(None, reason="bad_replica")
        found = self._device(plain, claim.resource)
        return found._replace(replica=int(number)) if found.device else found

    def resolve_all(self, claims: Iterable[Claim]) -> list[tuple[Claim, Resolved]]:
        """What each claim means. An instance that two places in memory seem to be is neither of them."""
        resolved = [(claim, self.resolve(claim)) for claim in claims]
        places: dict[str, set[str]] = {}
        for claim, found in resolved:
            if found.device and "-mig-" in claim.device_id:
                places.setdefault(found.device, set()).add(claim.device_id)
        return [
            (claim, Resolved(None, found.parent, reason="instance_unproven"))
            if found.device and "-mig-" in claim.device_id and len(places[found.device]) > 1
            else (claim, found)
            for claim, found in resolved
        ]

    def _device(self, text: str, resource: str) -> Resolved:
        if resource.startswith("dra:"):
            # `POOL/DEVICE`, or a CDI name `VENDOR/CLASS=DEVICE`.
            text = text.rpartition("=")[2].rpartition("/")[2]
        if sample := self._by_uuid.get(text):
            return _found(sample)
        if found := _LEGACY_MIG.fullmatch(text):
            return self._instance(found[1], found[2], found[3])
        if found := _GKE.fullmatch(text):
            return self._by_gke(*found.groups())
        if found := _DRA.fullmatch(text):
            return self._by_dra(int(found[1]), found[2])
        if address := pci_address(text):
            return _found(self._by_address.get(address))
        if sample := self._by_serial.get(text):
            return _found(sample)
        if found := _PLACE.fullmatch(text):
            if not resource.startswith(_BY_PLACE):
                return Resolved(None, reason="index_is_no_identity")
            return _found(self._by_place.get(text) or self._by_place.get(found[1]))
        return Resolved(None, reason="unknown_device" if text.startswith(("gpu-", "mig-")) else "unknown_form")

    def _instance(self, board: str, gpu_instance: str, compute_instance: str | None = None) -> Resolved:
        """A MIG instance by its number on a board; the compute instance decides where there are several."""
        sample = self._by_uuid.get(board)
        if sample is None or sample.uuid is None:
            return Resolved(None, reason="unknown_device")
        found = [part for part in self._instances.get(sample.uuid, ()) if _gpu_instance(part) == gpu_instance]
        if compute_instance and len(found) > 1:
            found = [part for part in found if str(part.compute_instance_id) == compute_instance]
        return _only(found, sample.uuid, "unknown_device")

    def _by_gke(self, minor: str, gpu_instance: str | None, share: str | None) -> Resolved:
        board = self._by_minor.get(int(minor))
        if board is None or board.uuid is None:
            return Resolved(None, reason="unknown_device")
        found = self._instance(board.uuid.lower(), str(int(gpu_instance))) if gpu_instance else _found(board)
        return found._replace(replica=int(share)) if share and found.device else found

    def _by_dra(self, minor: int, mig: str | None) -> Resolved:
        """NVIDIA's DRA driver: a board by minor number, an instance by profile and place in memory.

        The driver does not say which instance it made for a claim, and gives no UUID for one made on demand
        (dcgm-exporter#714). So it must be the one of its size that begins there, or the only one
        where places are unknown.
        """
        board = self._by_minor.get(minor)
        if board is None or board.uuid is None:
            return Resolved(None, reason="unknown_device")
        if mig is None:
            return _found(board)
        parts = self._instances.get(board.uuid, [])
        if found := _DRA_PLACED.fullmatch(mig):
            start = int(found[2])
            parts = [part for part in parts if memory_slices(part, board) == int(found[3])]
        elif found := _DRA_PROFILED.fullmatch(mig):
            start = int(found[4])
            slices = _slices(int(found[2]) * _GIBIBYTE, board.memory_total_bytes)
            parts = [
                part
                for part in parts
                if part.compute_slices == int(found[1]) and slices and memory_slices(part, board) == slices
            ]
        else:
            return Resolved(None, board.uuid, reason="instance_unproven")
        return _only(_at(parts, start), board.uuid, "instance_unproven")


def pci_address(text: str | None) -> tuple[int, ...] | None:
    """(domain, bus, device, function) of a PCI address, however many digits its domain is written with."""
    found = _PCI.fullmatch(text.strip().lower()) if text and len(text) <= TEXT_LIMIT else None
    return tuple(int(part or "0", 16) for part in found.groups()) if found else None


def memory_slices(part: DeviceSample, board: DeviceSample) -> int | None:
    """How many eighths of its board's memory an instance has; None where either size is unknown."""
    return _slices(part.memory_total_bytes, board.memory_total_bytes)


def _slices(part_bytes: int | None, board_bytes: int | None) -> int | None:
    if not part_bytes or not board_bytes:
        return None
    return min(MEMORY_SLICES, max(1, round(MEMORY_SLICES * part_bytes / board_bytes)))


def _gpu_instance(part: DeviceSample) -> str | None:
    return str(part.gpu_instance_id) if part.gpu_instance_id is not None else part.slot


def _at(parts: Sequence[DeviceSample], start: int) -> Sequence[DeviceSample]:
    """Those that begin at a memory slice, or all of them while the place of one is unknown."""
    if any(part.placement_start is None for part in parts):
        return parts
    return [part for part in parts if part.placement_start == start]


def _found(sample: DeviceSample | None) -> Resolved:
    return Resolved(sample.device, sample.parent_uuid) if sample else Resolved(None, reason="unknown_device")


def _only(found: Sequence[DeviceSample], board: str, reason: str) -> Resolved:
    return Resolved(found[0].device, board) if len(found) == 1 else Resolved(None, board, reason=reason)
