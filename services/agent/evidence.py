"""What the host says of processes, jobs and pods, looked up every few seconds: more often would tell little more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collectors.holders.pod_folders import KnownPods, PodFolders
    from collectors.holders.procs import ProcessOwner, ProcessOwners
    from collectors.samples import Claim, DeviceSample

EVERY_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class Evidence:
    """Whose the processes are, which jobs were given a device, which pods there are; None is not known."""

    owners: Mapping[int, ProcessOwner] | None = None
    jobs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pods: KnownPods | None = None


class Surroundings:
    """Looks around, and remembers what was seen last."""

    def __init__(self, processes: ProcessOwners | None, pods: PodFolders | None) -> None:
        """Nothing is looked at yet; None for what is not to be looked at."""
        self._processes, self._pods = processes, pods
        self._evidence, self._looked_at = Evidence(), 0
        self._claims: tuple[Claim, ...] | None = None

    def look(self, second: int, samples: tuple[DeviceSample, ...], claims: tuple[Claim, ...] | None) -> Evidence:
        """What is known at a second, looked up anew when it is old or the claims changed.

        Of a pod that claims since a moment ago, an older look knows at most a namesake that is over.
        """
        is_new_claim, self._claims = claims != self._claims, claims
        if 0 <= second - self._looked_at < EVERY_SECONDS and not is_new_claim:
            return self._evidence
        self._looked_at = second
        self._evidence = Evidence(
            self._processes.of_devices(samples) if self._processes else None,
            self._processes.jobs(samples) if self._processes else {},
            self._pods.look() if self._pods and claims is not None else None,
        )
        return self._evidence
