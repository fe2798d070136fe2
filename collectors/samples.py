"""What collectors yield about devices: one row per physical device or partition, its events, and what was refused.

A field is None when its source does not offer it or said nothing that can be believed; never 0. Names end in their
unit; ratios go from 0 to 1. Identity is the UUID; `slot` tells where a device sits and is never a key, except for a
MIG instance, which its parent's UUID and its slot (the GPU instance id) name. Values that belong to a whole board,
such as power and energy, stand in the row of the board only, so a plain sum over rows is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "degraded", "lost", "needs_reset", "unobserved"]
Kind = Literal["gpu", "mig", "partition", "core", "chip"]
CodeSpace = Literal["xid", "sxid", "afid", "hlml", "neuron", "nvml"]
Severity = Literal["info", "warn", "critical"]
Flag = Literal["estimated", "partial", "profiling_stuck", "rejected", "reset", "stale"]
"""Doubt about a row: derived from another value, not all of it was seen, the profiling unit hangs, a value could not
be believed, a counter began again, the source repeats an old reading."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a device, as far as a source says; None = not said. `replica` is a share of a shared device."""

    namespace: str | None = None
    pod: str | None = None
    container: str | None = None
    pod_uid: str | None = None
    hpc_job: str | None = None
    replica: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A device id that a scheduler gave to an owner, as the scheduler spells it.

    `resource` is the name under which it was asked for (`nvidia.com/gpu`, or `dra:gpu.nvidia.com`). What device the
    id means is found out later, beside the devices of the node. `resource_claim` is the object (`NAMESPACE/NAME`)
    that the device was given to, where there is one: pods that name the same share what it was given.
    """

    device_id: str
    resource: str
    owner: Owner
    source: str
    resource_claim: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceProcess:
    """A process on a device, by its number on the host. Instance ids are None outside MIG; unknown is None."""

    pid: int
    memory_bytes: int | None = None
    sm_ratio: float | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Who holds how much of a device now: a `fleet.telemetry.HoldingRow` before it has times.

    `device` is the device's name (`DeviceSample.device`): a board, or the instance that is held.
    """

    device: str
    gpu_millionths: int
    owner_kind: Literal["pod", "job", "process", "unknown"]
    source: str
    confidence: Literal["exact", "split", "assumed"]
    namespace: str | None = None
    workload: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    container: str | None = None
    job_id: str | None = None
    user_name: str | None = None
    conflict: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """Something that happened to a device. A metric page only hints at it; the kernel log is the record.

    `uuid` is None where only the address is known. `event_id` is made from what the source says, so that the same
    line read twice is one event; a source that cannot tell leaves it empty.
    """

    ts_nanoseconds: int | None
    uuid: str | None
    code_space: CodeSpace
    code: int
    source: str = "page"
    severity: Severity = "warn"
    fault_class: str | None = None
    text: str | None = None
    pci_bus_id: str | None = None
    pid: int | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    event_id: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """How many values or lines were refused for one reason."""

    reason: str
    count: int


@dataclass(slots=True)
class DeviceSample:
    """One device at one moment, or over one step. Nobody changes one: `replace` makes another.

    It is not frozen, because that makes building it sixteen times slower, and an agent builds a hundred each second.

    `counters` says what the counters mean: their total as it stands (since driver load), or what was added since
    the sample before; `interval_seconds` is the length of that step. The counters are the fields of COUNTERS.
    `placement_start` is the memory slice of its board at which a MIG instance begins.
    """

    kind: Kind
    uuid: str | None
    parent_uuid: str | None = None
    slot: str | None = None
    node: str | None = None
    owner: tuple[Owner, ...] = ()
    state: State = "ok"
    counters: Literal["total", "delta"] = "total"
    ts_nanoseconds: int | None = None
    interval_seconds: float | None = None
    driver_epoch: int | None = None
    vendor: str | None = None
    model: str | None = None
    profile_hint: str | None = None
    driver: str | None = None
    pci_bus_id: str | None = None
    architecture: str | None = None
    serial: str | None = None
    minor_number: int | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    compute_slices: int | None = None
    placement_start: int | None = None
    processes: tuple[DeviceProcess, ...] | None = None
    busy_ratio: float | None = None
    sm_ratio: float | None = None
    occupancy_ratio: float | None = None
    tensor_ratio: float | None = None
    dram_ratio: float | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    power_watts: float | None = None
    power_instant_watts: float | None = None
    power_limit_watts: float | None = None
    energy_millijoules: int | None = None
    sm_megahertz: int | None = None
    memory_megahertz: int | None = None
    performance_state: int | None = None
    temperature_celsius: int | None = None
    memory_temperature_celsius: int | None = None
    temperature_margin_celsius: int | None = None
    throttle_bits: int | None = None
    throttle_power_nanoseconds: int | None = None
    throttle_thermal_nanoseconds: int | None = None
    throttle_software_thermal_nanoseconds: int | None = None
    throttle_hardware_thermal_nanoseconds: int | None = None
    throttle_power_brake_nanoseconds: int | None = None
    ecc_corrected_volatile_errors: int | None = None
    ecc_uncorrected_volatile_errors: int | None = None
    ecc_corrected_aggregate_errors: int | None = None
    ecc_uncorrected_aggregate_errors: int | None = None
    remapped_corrected_rows: int | None = None
    remapped_uncorrected_rows: int | None = None
    remap_is_pending: bool | None = None
    remap_has_failed: bool | None = None
    retired_pages: int | None = None
    pcie_tx_bytes: int | None = None
    pcie_rx_bytes: int | None = None
    nvlink_tx_bytes: int | None = None
    nvlink_rx_bytes: int | None = None
    pcie_replay_events: int | None = None
    recovery_action: str | None = None
    xid_codes: tuple[int, ...] | None = None
    quality: tuple[Flag, ...] = ()

    @property
    def device(self) -> str | None:
        """The device's name in the lake and in metrics: its UUID, else its parent's with its slot; None without."""
        if self.uuid:
            return self.uuid
        return f"{self.parent_uuid}/gi{self.slot}" if self.parent_uuid and self.slot else None

    @property
    def key(self) -> tuple[str, str | None]:
        """What makes the device itself over time: its UUID, or for a MIG instance its parent and slot.

        A UUID does not name an instance here, since a page tells it only while a claim is on it. Compute instances
        that share a GPU instance have a number of their own; a page does not know them.
        """
        if self.kind == "mig":
            inner = self.compute_instance_id
            return self.parent_uuid or "", f"{self.slot}/{inner}" if inner else self.slot
        return self.uuid or "", None


COUNTERS = (
    "energy_millijoules",
    "throttle_power_nanoseconds",
    "throttle_thermal_nanoseconds",
    "throttle_software_thermal_nanoseconds",
    "throttle_hardware_thermal_nanoseconds",
    "throttle_power_brake_nanoseconds",
    "ecc_corrected_volatile_errors",
    "ecc_uncorrected_volatile_errors",
    "ecc_corrected_aggregate_errors",
    "ecc_uncorrected_aggregate_errors",
    "pcie_tx_bytes",
    "pcie_rx_bytes",
    "nvlink_tx_bytes",
    "nvlink_rx_bytes",
    "pcie_replay_events",
)
"""The fields that only grow, until a reset."""

IDENTITY = (
    "kind", "uuid", "parent_uuid", "slot", "node", "vendor", "model", "profile_hint", "driver", "pci_bus_id",
    "architecture", "serial", "minor_number", "gpu_instance_id", "compute_instance_id", "compute_slices",
    "placement_start",
)  # fmt: skip
"""The fields that say which device it is; all else is a reading."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one visit to a source yielded: devices, what happened, who claims what, and what was refused.

    `claims` is None for a source that does not know who holds devices; empty means that nobody does. `allocatable`
    are the device ids that the scheduler could hand out.
    """

    samples: tuple[DeviceSample, ...] = ()
    events: tuple[DeviceEvent, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    claims: tuple[Claim, ...] | None = None
    allocatable: tuple[str, ...] | None = None
    lists_holders_only: bool = False
    """The source leaves out devices that nobody holds, so an absent one is unobserved, not lost."""
