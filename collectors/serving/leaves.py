"""Models that only pass requests on: an ensemble counts a request that its steps count again.

A page does not say which those are. It does say which models compute: their series name a device, or are those of an
engine inside. Beside such models all others only pass on, or compute on no device: their requests are left out, and a
step has no row of them, so that a sum over the models of a server counts each request once. Where a page shows no model
that computes, nothing is left out, every row is marked, and 0 requests are no proof that there were none: some backends
never count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collectors.serving.labels import Point
    from collectors.serving.mapping import EngineMapping
    from collectors.serving.places import Place, Places

PASSED_ON: Final = (
    "requests_running", "requests_waiting", "requests_waiting_by_reason", "requests_received", "requests_finished",
    "requests_finished_by_reason", "requests_failed", "requests_aborted",
)  # fmt: skip


def leaves_of(mapping: EngineMapping, places: Places, points: Iterable[Point]) -> frozenset[Place] | None:
    """The models of a page that compute; None for an engine all of whose models do."""
    if not mapping.leaf_labels and not mapping.leaf_names:
        return None
    return frozenset(
        places.of(point)
        for point in points
        if point.key[0].startswith(mapping.leaf_names) or any(point.labels.get(name) for name in mapping.leaf_labels)
    )


def take_out_passed_on(values: dict[str, Any]) -> bool:
    """Take the requests out of the values of a model that passes them on; whether there were any."""
    known = [name for name in PASSED_ON if values.get(name) is not None]
    values.update(dict.fromkeys(known))
    return bool(known)
