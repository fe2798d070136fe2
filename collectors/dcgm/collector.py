"""Read a page of dcgm-exporter: device truth once, whoever shares the device.

The exporter copies the readings of a board onto every pod that shares it, every MIG instance and every Slurm job.
So a reading is taken per device, from the series that names no owner if there is one, and owners are a list beside
it. Values that mean "none" are taken out before anything is computed; what is out of range is refused, never bent
into it. Both are counted by reason.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from collectors.dcgm.fields import RECOVERY_ACTIONS, XID_IN_WINDOW, Field, blank_reason
from collectors.dcgm.series import Origin, origin_of, text
from collectors.exposition import Page, PageError, Parser, Sample, Series
from collectors.pages import BYTE_LIMIT, fetch
from collectors.samples import DeviceSample, Flag, Owner, Reading, Rejected, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PROFILED = ("engine_ratio_part", "sm_ratio", "occupancy_ratio", "tensor_ratio", "dram_ratio")
_NOT_BELIEVED = ("not_finite", "range")
_XIDS = ("xid_part", "xid_window_part")
_XID_DIGITS = 5
_NEEDS_RESET = ("gpu_reset", "drain_and_reset", "bus_reset")
# Under MIG this one is absent or stuck at 0; the compute engine's ratio stands in for it.
_BLIND_UNDER_MIG = "busy_ratio"


class Dcgm:
    """The metrics of one dcgm-exporter, at a path or an address."""

    def __init__(self, source: str, *, token: str | None = None, byte_limit: int = BYTE_LIMIT) -> None:
        self._source = source
        self._token = token
        self._byte_limit = byte_limit
        self._parser = Parser()
        self._origins: dict[Series, Origin] = {}

    def collect(self) -> Reading:
        """Fetch the page and return its devices. PageError when there is none, or none of its metrics is DCGM's."""
        fetched = fetch(self._source, token=self._token, byte_limit=self._byte_limit)
        return self.read(fetched.text, fetched.source, fetched.read_at_ns)

    def close(self) -> None:
        """Nothing is held between visits."""

    def read(self, body: str, source: str = "page", read_at_ns: int | None = None) -> Reading:
        """Return the devices on a page that is at hand."""
        page = self._parser.parse(body, source, read_at_ns)
        before = self._origins
        self._origins = {s.series: before.get(s.series) or origin_of(s.series) for s in page.samples}
        return read_page(page, self._origins)


@dataclass(slots=True)
class _Place:
    """Where readings gather that belong together: a board, or a MIG instance of it."""

    labels: Mapping[str, str]
    own: dict[str, float] = field(default_factory=dict)
    copied: dict[str, float] = field(default_factory=dict)
    unequal: set[str] = field(default_factory=set)
    xids: set[int] | None = None
    owners: dict[Owner, None] = field(default_factory=dict)
    flags: set[Flag] = field(default_factory=set)
    timestamp_ms: int | None = None

    def keep(self, known: Field, value: float, *, is_copy: bool) -> None:
        """Take a reading. Copies should agree; shares of a pod do not, and the largest is the least there was."""
        into = self.copied if is_copy else self.own
        before = into.get(known.to)
        if before is not None and before != value:
            self.unequal.add(known.to)
            value = max(before, value)
        into[known.to] = value

    def keep_xid(self, known: Field, series: Series, value: float) -> None:
        """Take an Xid: the last one as a gauge, or one of a window, where the value is a count of samples."""
        self.xids = self.xids or set()
        code = series.labels.get("xid", "") if known is XID_IN_WINDOW else str(int(value))
        if value > 0 and code.isascii() and code.isdecimal() and len(code) <= _XID_DIGITS:
            self.xids.add(int(code))


class _Gathering:
    """The devices of one page, while it is read."""

    def __init__(self, page: Page, origins: Mapping[Series, Origin]) -> None:
        self.places: dict[tuple[str, str | None], _Place] = {}
        self.refused = Counter(page.rejected)
        self.origins = origins
        # Where Prometheus renamed the labels of the workload, `pod` is the exporter's own pod.
        self.is_renamed = any(origin.renamed_owner and origin.renamed_owner.pod for origin in origins.values())

    def add(self, sample: Sample) -> None:
        """Take one sample."""
        origin = self.origins[sample.series]
        known = origin.known
        if known is None:
            return
        if origin.board is None or origin.place is None:
            self.refused["no_uuid"] += 1
            return
        board = self._place(origin.board, sample)
        part = board if origin.place == origin.board else self._place(origin.place, sample)
        owner = origin.renamed_owner if self.is_renamed else origin.owner
        if owner and origin.is_unproven:
            self.refused["mig_owner_unproven"] += 1
        elif owner:
            part.owners[owner] = None
        if part is not board and known.to == _BLIND_UNDER_MIG:
            return
        target = part if known.scope == "part" else board
        if reason := _refusal(known, sample.value):
            self.refused[reason] += 1
            if reason in _NOT_BELIEVED:
                target.flags.add("rejected")
        elif known.to in _XIDS:
            target.keep_xid(known, sample.series, sample.value)
        else:
            target.keep(known, known.convert(sample.value), is_copy=owner is not None)

    def _place(self, key: tuple[str, str | None], sample: Sample) -> _Place:
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = _Place(sample.series.labels, timestamp_ms=sample.timestamp_ms)
        return place


def read_page(page: Page, origins: Mapping[Series, Origin] | None = None) -> Reading:
    """Return the devices on a page, in the order in which it names them; `origins` of all its series saves time."""
    if origins is None:
        origins = {sample.series: origin_of(sample.series) for sample in page.samples}
    if not any(origin.is_of_dcgm for origin in origins.values()):
        raise PageError(f"{page.source}: holds metrics, but none of dcgm-exporter")
    gathering = _Gathering(page, origins)
    for sample in page.samples:
        gathering.add(sample)
    return Reading(
        samples=tuple(_sample(*key, place, page.read_at_ns) for key, place in gathering.places.items()),
        rejected=tuple(Rejected(reason, count) for reason, count in sorted(gathering.refused.items())),
        lists_holders_only=any(origin.is_claim for origin in origins.values()),
    )


def _refusal(known: Field, value: float) -> str | None:
    """Why a value is not taken; None if it is."""
    if not math.isfinite(value):
        return "not_finite"
    if reason := blank_reason(known, value):
        return reason
    return None if known.low <= value <= known.high else "range"


def _sample(uuid: str, instance: str | None, place: _Place, read_at_ns: int | None) -> DeviceSample:
    values: dict[str, Any] = place.copied | place.own
    # Where a series without an owner tells the whole, it does not matter that the shares differ.
    flags = place.flags | _derive(values)
    if place.unequal - place.own.keys():
        flags.add("partial")
    labels = place.labels
    is_mig = instance is not None
    return DeviceSample(
        kind="mig" if is_mig else "gpu",
        uuid=text(labels, "dra_mig_device_uuid") if is_mig else uuid,
        parent_uuid=uuid if is_mig else None,
        slot=instance if is_mig else text(labels, "gpu"),
        node=text(labels, "Hostname", "hostname"),
        owner=_merged(place.owners),
        state=_state(values),
        ts_nanoseconds=read_at_ns if place.timestamp_ms is None else place.timestamp_ms * 1_000_000,
        vendor="nvidia",
        model=text(labels, "modelName"),
        profile_hint=text(labels, "GPU_I_PROFILE") if is_mig else None,
        driver=text(labels, "DCGM_FI_DRIVER_VERSION"),
        pci_bus_id=text(labels, "pci_bus_id"),
        xid_codes=None if place.xids is None else tuple(sorted(place.xids)),
        quality=tuple(sorted(flags)),
        **{name: value for name, value in values.items() if not name.endswith("_part")},
    )


def _merged(owners: Iterable[Owner]) -> tuple[Owner, ...]:
    """Each owner once, although only some of its series name the pod's UID."""
    uids: dict[Owner, str | None] = {}
    for owner in owners:
        bare = replace(owner, pod_uid=None)
        uids[bare] = owner.pod_uid or uids.get(bare)
    return tuple(replace(owner, pod_uid=uid) for owner, uid in uids.items())


def _derive(values: dict[str, Any]) -> set[Flag]:
    """Fill in what follows from other values, and take out what they contradict."""
    flags: set[Flag] = set()
    if values.get("busy_ratio") == 1 and _is_stuck(values):
        flags.add("profiling_stuck")
        for name in _PROFILED:
            values.pop(name, None)
    if "busy_ratio" not in values and "engine_ratio_part" in values:
        flags.add("estimated")
        values["busy_ratio"] = values["engine_ratio_part"]
    memory = [values.get(name) for name in ("memory_free_part", "memory_used_bytes", "memory_reserved_bytes")]
    if "memory_total_bytes" not in values and None not in memory:
        values["memory_total_bytes"] = sum(memory)
    retired = [values.get(name) for name in ("retired_corrected_part", "retired_uncorrected_part")]
    if None not in retired:
        values["retired_pages"] = sum(retired)
    if (action := values.get("recovery_action_part")) is not None:
        values["recovery_action"] = RECOVERY_ACTIONS[action]
    return flags


def _is_stuck(values: Mapping[str, Any]) -> bool:
    """Whether the profiling unit reports nothing at all: a kernel that runs leaves a trace in it."""
    profiled = [values[name] for name in _PROFILED if name in values]
    return bool(profiled) and not any(profiled)


def _state(values: Mapping[str, Any]) -> State:
    action = values.get("recovery_action", "none")
    if action in _NEEDS_RESET:
        return "needs_reset"
    return "degraded" if action != "none" or values.get("remap_has_failed") else "ok"
