"""The devices a node has shown so far: one that is no longer named is lost, not fewer.

A board stays in the fleet until an operator takes it out (`forget`), or another that was never seen before sits at its
PCI address: then it was replaced. A part of a board (a MIG instance) is there as
long as its board names it: when the board is present without it, the board was cut anew and the part is no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collectors.samples import IDENTITY, DeviceSample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collectors.samples import State

_Key = tuple[str, str | None]
_UNSEEN: Final = ("lost", "unobserved")
# No node has so many devices; a source that makes up names must not fill the memory.
_DEVICE_LIMIT: Final = 1024


class Roster:
    """Remembers the devices of a node. `state` lets a later process expect them too."""

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        """Begin with no device, or with those of a state; what is no device in it is left out."""
        self._known: dict[_Key, DeviceSample] = {sample.key: sample for sample in _read(state)}
        self._seen = 0
        self._replaced: set[str] = set()

    @property
    def known(self) -> tuple[DeviceSample, ...]:
        """The devices as they were named last; after a restart, without readings."""
        return tuple(self._known.values())

    @property
    def expected(self) -> int:
        """Physical devices that were shown and not taken out."""
        return sum(1 for sample in self._known.values() if sample.parent_uuid is None)

    @property
    def seen(self) -> int:
        """Physical devices that could be read at the last visit."""
        return self._seen

    def complete(
        self, samples: Sequence[DeviceSample], *, lists_holders_only: bool = False
    ) -> tuple[DeviceSample, ...]:
        """Return the samples and after them those that are missing, without readings and with their last owner.

        A missing device is lost; it is unobserved where the source leaves out what nobody holds, or could not be asked.
        """
        samples = self._without_replaced(samples)
        present = {sample.key: sample for sample in samples}
        boards = [sample for sample in present.values() if sample.parent_uuid is None]
        self._seen = sum(map(_is_here, boards))
        missing = tuple(self._missing(present, "unobserved" if lists_holders_only else "lost"))
        for key, sample in present.items():
            # One without any name cannot be missed.
            if sample.device and (key in self._known or len(self._known) < _DEVICE_LIMIT):
                self._known[key] = sample
        return (*samples, *missing)

    def forget(self, uuid: str) -> None:
        """Take out a board and its parts: an operator has removed it. Named again, it is there again."""
        for key, sample in list(self._known.items()):
            if uuid in {sample.uuid, sample.parent_uuid}:
                del self._known[key]

    def _without_replaced(self, samples: Sequence[DeviceSample]) -> Sequence[DeviceSample]:
        """The samples but those of boards that are away and whose place a new one has taken."""
        fresh = {
            sample.pci_bus_id.lower()
            for sample in samples
            if _is_here(sample) and sample.pci_bus_id and sample.key not in self._known
        }
        if fresh:
            here = {sample.uuid for sample in samples if _is_here(sample)}
            for before in list(self._known.values()):
                if before.parent_uuid is not None or not before.uuid or before.uuid in here:
                    continue
                if (before.pci_bus_id or "").lower() in fresh:
                    self.forget(before.uuid)
                    self._replaced.add(before.uuid)
        if not self._replaced:
            return samples
        # A source that remembers by itself still names it; if it is read again, it is back.
        self._replaced -= {sample.uuid for sample in samples if _is_here(sample)}
        return [sample for sample in samples if not self._replaced & {sample.uuid, sample.parent_uuid}]

    def state(self) -> dict[str, Any]:
        """The devices by what they are, as plain values for JSON."""
        return {"devices": [_identity(sample) for sample in self._known.values()]}

    def _missing(self, present: Mapping[_Key, DeviceSample], state: State) -> Iterator[DeviceSample]:
        for key, before in list(self._known.items()):
            if key in present:
                continue
            told = state
            if before.parent_uuid is not None and (board := present.get((before.parent_uuid, None))):
                if board.state not in _UNSEEN:
                    del self._known[key]
                    continue
                told = board.state
            yield DeviceSample(
                **_identity(before), owner=before.owner, state=told, quality=("stale",) if before.owner else ()
            )


def _is_here(sample: DeviceSample) -> bool:
    """Whether it is a board that can be read."""
    return sample.parent_uuid is None and bool(sample.uuid) and sample.state not in _UNSEEN


def _identity(sample: DeviceSample) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in IDENTITY}


def _read(state: Mapping[str, Any] | None) -> Iterator[DeviceSample]:
    devices = state.get("devices") if state else None
    for told in devices[:_DEVICE_LIMIT] if isinstance(devices, list) else ():
        if not isinstance(told, dict):
            continue
        known: dict[str, Any] = {name: told.get(name) for name in IDENTITY}
        if isinstance(known["kind"], str) and isinstance(known["uuid"] or known["parent_uuid"], str):
            yield DeviceSample(**known)
