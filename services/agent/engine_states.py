"""The open windows and counters of model servers on disk, for the next process of the agent to go on from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from collectors.serving.windows import EngineWindows

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_CHARACTERS: Final = 4 * 1024 * 1024
"""Of all states together: they are written once a minute. One server may have an eighth."""
_MOST_AHEAD_SECONDS: Final = 3600
"""The hub takes no window that is farther ahead, so one that was open in such a state is of no use."""


def restored(found: object, boot_id: str, second: int) -> dict[str, EngineWindows]:
    """What an earlier process left, by whom it was kept for.

    Nothing of what is damaged, or was saved while the clock ran far ahead. After a reboot the windows are still worth
    sending, and the counters began again.
    """
    servers = found.get("servers") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(servers, dict):
        return {}
    saved_at = found.get("saved_at_second")
    if not isinstance(saved_at, int) or saved_at > second + _MOST_AHEAD_SECONDS:
        return {}
    has_rebooted = found.get("boot_id") != boot_id
    return {
        key: EngineWindows(state=state, has_rebooted=has_rebooted)
        for key, state in servers.items()
        if isinstance(state, dict)
    }


def states_of(kept: Iterable[tuple[str, EngineWindows]]) -> tuple[dict[str, Any], int]:
    """The states of windows, and how many are left out as there is no room: such a server is seen anew after a restart.

    The first have room before those that come later.
    """
    states: dict[str, Any] = {}
    room, left_out = MOST_CHARACTERS, 0
    for key, windows in kept:
        state = windows.state()
        if not state["servers"]:
            continue
        size = len(json.dumps(state))
        if size > min(room, MOST_CHARACTERS // 8):
            left_out += 1
            continue
        room -= size
        states[key] = state
    return states, left_out
