"""Which pods were given which accelerators: the kubelet's word, once a second.

The kubelet tells no pod's uid, keeps some that have finished, and refuses who asks too often (kubernetes#116459). A
refusal leaves the last answer standing for a minute; after that nobody knows who holds what, and the visit fails.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from collectors.collector import SourceAbsentError
from collectors.placement.podresources import KubeletError, KubeletOlderError, PodResources
from collectors.samples import Claim, Owner, Reading, Rejected
from fleet.identity import bounded_name
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from collectors.placement import podresources_pb2 as messages

SOURCE: Final = "kubelet"
ACCELERATORS: Final = ("nvidia.com/", "amd.com/", "aws.amazon.com/neuron", "habana.ai/", "google.com/tpu")
"""How the names of the resources that are claims begin. Network cards, huge pages and the like are none."""
DRA_DRIVERS: Final = ("gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "tpu.google.com", "neuron.aws.com")
"""The DRA drivers whose devices are claims."""
_KEPT_SECONDS: Final = 60
_ALLOCATABLE_SECONDS: Final = 60
_PODS_LIMIT: Final = 4096
_CLAIMS_LIMIT: Final = 16_384


class Placement:
    """A collector of claims (`Reading.claims`) and of what the kubelet could give away (`Reading.allocatable`)."""

    def __init__(
        self,
        socket_path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        resources: Iterable[str] = (),
        timeout_seconds: float = 5,
    ) -> None:
        """`resources` adds beginnings of names (`example.com/npu`, `dra:npu.example.com`); the clock counts seconds."""
        self._kubelet = PodResources(socket_path, timeout_seconds=timeout_seconds)
        self._clock = clock
        self._wanted = (*ACCELERATORS, *(f"dra:{driver}" for driver in DRA_DRIVERS), *resources)
        self._last: Reading | None = None
        self._last_at = 0.0
        self._allocatable: tuple[str, ...] | None = None
        self._allocatable_at: float | None = None

    def collect(self) -> Reading:
        """Ask the kubelet. SourceAbsentError without its socket, KubeletError when it is silent, both for too long."""
        now = self._clock()
        try:
            answer = self._kubelet.pods()
        except (KubeletError, SourceAbsentError):  # a kubelet that starts again makes its socket anew
            if self._last is None or now - self._last_at > _KEPT_SECONDS:
                raise
            return self._last
        claims, refused = read_claims(answer, self._wanted)
        self._ask_allocatable(now)
        self._last = Reading(
            rejected=tuple(Rejected(reason, count) for reason, count in sorted(refused.items())),
            claims=claims,
            allocatable=self._allocatable,
        )
        self._last_at = now
        return self._last

    def close(self) -> None:
        """Close the connection."""
        self._kubelet.close()

    def _ask_allocatable(self, now: float) -> None:
        """Once a minute. What an older kubelet cannot tell stays unknown; what one fails to tell stays as it was."""
        if self._allocatable_at is not None and now - self._allocatable_at < _ALLOCATABLE_SECONDS:
            return
        try:
            answer = self._kubelet.allocatable()
        except KubeletOlderError:
            self._allocatable = None
        except KubeletError:
            return
        else:
            ids = {
                text
                for group in answer.devices
                if group.resource_name.startswith(self._wanted)
                for text in group.device_ids
                if _named(text)
            }
            self._allocatable = tuple(sorted(ids)[:_CLAIMS_LIMIT])
        self._allocatable_at = now


def read_claims(
    answer: messages.ListPodResourcesResponse, wanted: tuple[str, ...]
) -> tuple[tuple[Claim, ...], Counter[str]]:
    """The claims in an answer of the kubelet, sorted, each once; and what was refused, by reason.

    A container may list a resource once for each NUMA node, and the order of pods changes from answer to answer
    (dcgm-exporter#432).
    """
    refused: Counter[str] = Counter()
    found: set[Claim] = set()
    if len(answer.pod_resources) > _PODS_LIMIT:
        refused["too_many_pods"] += len(answer.pod_resources) - _PODS_LIMIT
    for pod in answer.pod_resources[:_PODS_LIMIT]:
        for claim in _claims_of(pod, wanted):
            if not _is_whole(claim):
                refused["bad_text"] += 1
            elif claim not in found and len(found) >= _CLAIMS_LIMIT:
                refused["too_many_claims"] += 1
            else:
                found.add(claim)
    return tuple(sorted(found, key=_order)), refused


def _claims_of(pod: messages.PodResources, wanted: tuple[str, ...]) -> Iterator[Claim]:
    for container in pod.containers:
        owner = Owner(namespace=pod.namespace, pod=pod.name, container=container.name)
        for group in container.devices:
            if group.resource_name.startswith(wanted):
                for text in group.device_ids:
                    yield Claim(text, group.resource_name, owner, SOURCE)
        for given in container.dynamic_resources:
            for part in given.claim_resources:
                resource = f"dra:{part.driver_name}"
                if resource.startswith(wanted):
                    yield _dynamic(resource, given, part, owner)


def _dynamic(resource: str, given: messages.DynamicResource, part: messages.ClaimResource, owner: Owner) -> Claim:
    if part.device_name:
        text = f"{part.pool_name}/{part.device_name}"
    else:  # an older kubelet names only what the container runtime was told
        text = next((device.name for device in part.cdi_devices if device.name), "")
    if part.share_id:
        owner = Owner(owner.namespace, owner.pod, owner.container, replica=part.share_id)
    # Only pods of one namespace can share a claim.
    namespace = given.claim_namespace or owner.namespace
    return Claim(text, resource, owner, SOURCE, f"{namespace}/{given.claim_name}" if given.claim_name else None)


def _is_whole(claim: Claim) -> bool:
    owner = claim.owner
    optional = (owner.replica, claim.resource_claim)
    return all(map(_named, (claim.device_id, claim.resource, owner.namespace, owner.pod, owner.container))) and all(
        text is None or _named(text) for text in optional
    )


def _named(text: str | None) -> bool:
    """Whether a text can serve as a name: not empty, not too long, and nothing hidden in it."""
    if not text or len(text) > TEXT_LIMIT:
        return False
    if text.isascii() and text.isprintable():
        return True
    try:
        bounded_name(text)
    except ValueError:
        return False
    return True


def _order(claim: Claim) -> tuple[str, ...]:
    owner = claim.owner
    texts = (owner.namespace, owner.pod, owner.container, claim.resource_claim, owner.replica)
    return (claim.device_id, claim.resource, *(text or "" for text in texts))
