"""How much of a physical device a part of it is, in millionths that never add up to more than the whole.

A whole device is 1,000,000. A MIG instance takes what it denies to others: the larger of its compute slices and its
memory slices (3g.40gb has 3 of 7 and 4 of 8, so it is a half); where the instances of a board add up to more than
it, they are scaled to it. Shares of a device (time slices, MPS) are equal parts of it. Everything is cut from a
running total rounded down, so parts in their order add up to exactly what was cut.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from collectors.holders.device_ids import MEMORY_SLICES, memory_slices
from fleet.telemetry import WHOLE_DEVICE_MILLIONTHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collectors.samples import DeviceSample

_COMPUTE_SLICES: Final = 7
# Boards that are cut into fewer (NVIDIA's MIG user guide, "Supported GPUs"), the first that fits.
_FEWER_SLICES: Final = (
    (re.compile(r"\bA30\b"), 4),
    (re.compile(r"\bRTX PRO 6000\b"), 4),
    (re.compile(r"\bRTX PRO [45]\d00\b"), 2),
)
_PROFILE: Final = re.compile(r"(?:\d{1,2}c\.)?(\d{1,2})g\.\d{1,4}gb.*", re.ASCII)

_INNER_PROFILE: Final = re.compile(r"(\d{1,2})c\.(\d{1,2})g\.\d{1,4}gb.*", re.ASCII)


class Share(NamedTuple):
    """A part of a physical device. `is_assumed`: its size was not said and is taken to be the smallest there is."""

    millionths: int
    is_assumed: bool = False


def cumulative_split(total: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Cut a total by weights, in their order; the parts add up to it. No weight at all: equal parts."""
    if not weights:
        return ()
    whole = sum(weights)
    used = weights if whole > 0 else [1] * len(weights)
    whole = whole if whole > 0 else len(weights)
    parts, before, reached = [], 0, 0
    for weight in used:
        reached += weight
        here = total * reached // whole
        parts.append(here - before)
        before = here
    return tuple(parts)


def replica_shares(total: int, numbers: Iterable[int]) -> dict[int, int]:
    """What each of the shares of a device is, by its number; all of them add up to the total."""
    ordered = sorted(set(numbers))
    return dict(zip(ordered, cumulative_split(total, [1] * len(ordered)), strict=True))


def device_shares(samples: Iterable[DeviceSample]) -> dict[str, Share]:
    """What each device is of its board, by name; a board is whole, and its instances never add up to more."""
    boards: dict[str, DeviceSample] = {}
    parts: dict[str, dict[str, DeviceSample]] = {}
    for sample in samples:
        name = sample.device
        if name is None:
            continue
        if sample.parent_uuid is None:
            boards[name] = sample
        else:
            parts.setdefault(sample.parent_uuid, {})[name] = sample
    shares = dict.fromkeys(boards, Share(WHOLE_DEVICE_MILLIONTHS))
    for parent, found in parts.items():
        shares.update(_part_shares(boards.get(parent), list(found.values())))
    return shares


def _part_shares(board: DeviceSample | None, parts: list[DeviceSample]) -> dict[str, Share]:
    """The instances of one board. Compute instances of one GPU instance divide what that one is."""
    places: dict[tuple[int, str], list[DeviceSample]] = {}
    for part in parts:
        places.setdefault(_place(part), []).append(part)
    ordered = [sorted(places[place], key=_order) for place in sorted(places)]
    total = _total_slices(board, parts)
    if all(part.kind == "mig" for part in parts):
        sizes = [_size(board, group, total) for group in ordered]
    else:
        # Partitions and cores are equal, as many as the board is cut into.
        sizes = [(total * MEMORY_SLICES, False) for _ in ordered]
    whole = total * MEMORY_SLICES
    over = max(whole, sum(size for size, _ in sizes))
    cut = cumulative_split(WHOLE_DEVICE_MILLIONTHS, [*(size for size, _ in sizes), over - sum(s for s, _ in sizes)])
    shares: dict[str, Share] = {}
    for group, (_, is_assumed), millionths in zip(ordered, sizes, cut, strict=False):
        inner = cumulative_split(millionths, [part.compute_slices or 0 for part in group])
        shares.update({part.device or "": Share(m, is_assumed) for part, m in zip(group, inner, strict=True)})
    return shares


def _size(board: DeviceSample | None, group: list[DeviceSample], total: int) -> tuple[int, bool]:
    """How many of the `total` x 8 pieces of a board a GPU instance takes, and whether that is only assumed."""
    known = [part.compute_slices for part in group if part.compute_slices]
    compute = max([sum(known), *map(_outer_slices, group)]) if known else max(map(_hinted_slices, group))
    memory = max((memory_slices(part, board) or 0 for part in group), default=0) if board else 0
    pieces = max(min(compute, total) * MEMORY_SLICES, memory * total)
    return (pieces, False) if known or memory else (pieces or MEMORY_SLICES, True)


def _outer_slices(part: DeviceSample) -> int:
    """The slices of the GPU instance around a compute instance that is smaller, where its profile tells both."""
    found = _INNER_PROFILE.fullmatch(part.profile_hint or "")
    return int(found[2]) if found and int(found[1]) == part.compute_slices else 0


def _hinted_slices(part: DeviceSample) -> int:
    """The slices that a profile's name tells; only a hint, since pages mix names up (dcgm-exporter#544)."""
    found = _PROFILE.fullmatch(part.profile_hint or "")
    return int(found[1]) if found else 0


def _total_slices(board: DeviceSample | None, parts: list[DeviceSample]) -> int:
    models = [sample.model for sample in ([board] if board else []) + parts if sample.model]
    for model in models:
        for pattern, slices in _FEWER_SLICES:
            if pattern.search(model):
                return slices
    return _COMPUTE_SLICES


def _place(part: DeviceSample) -> tuple[int, str]:
    """A GPU instance, or a part that has no number by its own name."""
    if part.kind == "mig" and part.slot:
        return _number(part.slot), part.slot
    return _number(part.slot or ""), part.device or ""


def _order(part: DeviceSample) -> tuple[int, str]:
    return (-1 if part.compute_instance_id is None else part.compute_instance_id), part.device or ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else -1
