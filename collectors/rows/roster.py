"""The devices a node has shown so far: one that is no longer named is lost, not fewer.

A board stays in the fleet until an operator takes it out (`forget`). A part of a board (a MIG instance) is there as
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
        present = {sample.key: sample for sample in samples}
        boards = [sample for sample in present.values() if sample.parent_uuid is None]
        self._seen = sum(1 for sample in boards if sample.state not in _UNSEEN and sample.uuid)
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
