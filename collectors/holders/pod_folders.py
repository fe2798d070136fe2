"""Which pods the node has, by name, uid and whether they live: what the kubelet's API leaves out.

PodResources names pods without their uid and lists some that have finished (kubernetes#119423, #132020). The kubelet
keeps a folder for each pod's logs, `NAMESPACE_NAME_UID`, and a cgroup for as long as a pod lives. Both are only
listed, nothing in them is read.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collectors.holders.cgroups import owner_of_path

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENTRIES_LIMIT: Final = 8192
# Kubernetes' own rules of names: neither holds an underscore.
_LOG_FOLDER: Final = re.compile(r"([a-z0-9-]{1,63})_([a-z0-9.-]{1,253})_([0-9a-f-]{32,36})")
_ROOTS: Final = ("kubepods.slice", "kubepods", "kubelet.slice/kubelet-kubepods.slice", "kubelet/kubepods")
_HIERARCHIES: Final = ("", "systemd", "pids", "memory", "cpu")
_CLASSES: Final = ("burstable", "besteffort")


@dataclass(frozen=True, slots=True)
class KnownPods:
    """The pods of a node. `uids` has one or more for (namespace, name): a pod may have had a namesake before it.

    `living` is None where nobody can tell.
    """

    uids: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    living: frozenset[str] | None = None

    def uids_of(self, namespace: str | None, pod: str | None) -> tuple[str, ...]:
        """The uids that a pod of this name may have: those that live, if any does; empty if none is known."""
        uids = self.uids.get((namespace or "", pod or ""), ())
        alive = tuple(uid for uid in uids if self.living is not None and uid in self.living)
        return alive or uids

    def lives(self, namespace: str | None, pod: str | None) -> bool | None:
        """Whether a pod of this name lives; None where that cannot be told."""
        uids = self.uids.get((namespace or "", pod or ""))
        return None if self.living is None or not uids else any(uid in self.living for uid in uids)

    def names(self) -> dict[str, tuple[str, str]]:
        """(namespace, name) by uid."""
        return {uid: name for name, uids in self.uids.items() for uid in uids}


class PodFolders:
    """The folders that the kubelet keeps for pods."""

    def __init__(self, logs: Path = Path("/var/log/pods"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        """In a pod, both are the host's, mounted read-only."""
        self._logs = logs
        self._cgroups = cgroups

    def look(self) -> KnownPods:
        """The pods as they stand. A folder that is not there or may not be listed tells nothing."""
        uids: dict[tuple[str, str], list[str]] = {}
        for name in sorted(_listed(self._logs) or ()):
            if found := _LOG_FOLDER.fullmatch(name):
                uids.setdefault((found[1], found[2]), []).append(found[3])
        living = self._living()
        # Where the cgroups know none of the pods, they are another machine's view: the agent itself is a pod.
        if living is not None and not any(uid in living for known in uids.values() for uid in known):
            living = None
        return KnownPods({name: tuple(known) for name, known in uids.items()}, living)

    def _living(self) -> frozenset[str] | None:
        for hierarchy in _HIERARCHIES:
            for root in _ROOTS:
                folder = self._cgroups / hierarchy / root
                names = _listed(folder)
                if names is not None:
                    return frozenset(_pods_below(folder, names))
        return None


def _pods_below(folder: Path, names: list[str]) -> set[str]:
    found = set()
    for name in names:
        if owner := owner_of_path(f"/kubepods/{name}").pod_uid:
            found.add(owner)
        elif any(word in name for word in _CLASSES):
            below = (owner_of_path(f"/kubepods/{inner}").pod_uid for inner in _listed(folder / name) or ())
            found.update(uid for uid in below if uid)
    return found


def _listed(folder: Path) -> list[str] | None:
    """The names in a folder; None where it cannot be listed whole, as half a list would call living pods dead."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_ENTRIES_LIMIT), strict=False)]
    except OSError:
        return None
    return names if len(names) < _ENTRIES_LIMIT else None
