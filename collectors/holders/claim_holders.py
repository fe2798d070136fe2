"""From claims to holdings: who gets a device when a scheduler's answer names one, several or too many.

A device goes to one pod, or its shares to one pod each. Where more claim it (a finished pod that is still listed,
kubernetes#119423, #132020; a plugin that was set up anew) one wins and the holding names all: the pod whose processes
are on the device, else the one that lives, else the newer claim. So no board is ever held more than once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from collectors.holders.pod_folders import KnownPods
from collectors.holders.shares import Share, cumulative_split, replica_shares
from collectors.samples import Claim, Held, Owner
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collectors.holders.device_ids import DeviceIds

Confidence: TypeAlias = Literal["exact", "split", "assumed"]
_DOUBT: Final[dict[Confidence, int]] = {"exact": 0, "split": 1, "assumed": 2}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known beside the claims: pods, the pod uids whose processes are on each device, claims' first seconds."""

    pods: KnownPods = field(default_factory=KnownPods)
    uids_on: Mapping[str, frozenset[str]] = field(default_factory=dict)
    since: Mapping[Claim, int] = field(default_factory=dict)

    def rank(self, claim: Claim, device: str) -> int:
        """How sure it is that a claim holds: 3 seen on the device, 2 lives, 1 unknown, 0 is over."""
        owner = claim.owner
        uids = (owner.pod_uid,) if owner.pod_uid else self.pods.uids_of(owner.namespace, owner.pod)
        if any(uid in self.uids_on.get(device, ()) for uid in uids):
            return 3
        lives = self.pods.lives(owner.namespace, owner.pod)
        return 1 if lives is None else 2 * lives


class ClaimAges:
    """Since when each claim has been listed, as the kubelet does not say; bounded by what is listed now."""

    def __init__(self) -> None:
        self._claims: tuple[Claim, ...] = ()
        self._since: dict[Claim, int] = {}

    def seen(self, second: int, claims: tuple[Claim, ...]) -> Mapping[Claim, int]:
        """Take the claims as listed at a second; the first second of each, as a new mapping if they changed."""
        if claims != self._claims:
            self._claims = claims
            self._since = {claim: self._since.get(claim, second) for claim in claims}
        return self._since


class _Wish(NamedTuple):
    """A claim on a device: how sure it is and since when."""

    device: str
    replica: int | None
    claim: Claim
    strength: tuple[int, int]

    @property
    def pod(self) -> tuple[str, str]:
        owner = self.claim.owner
        return owner.namespace or "", owner.pod or ""


@dataclass(slots=True)
class _Part:
    """What one pod gets of one device, while it is added up."""

    millionths: int = 0
    confidence: Confidence = "exact"
    wishes: list[_Wish] = field(default_factory=list)
    rivals: set[tuple[str, str]] = field(default_factory=set)


class ClaimHolders:
    """Deals out the devices of a node among the claims on it."""

    def __init__(self, ids: DeviceIds, shares: Mapping[str, Share], allocatable: Iterable[str] | None) -> None:
        """`allocatable` tells how many shares a device has; without it the highest number in use does."""
        self._ids = ids
        self._shares = shares
        self._numbers: dict[str, set[int]] = {}
        for text in allocatable or ():
            device, _, replica, _ = ids.resolve(Claim(text, "", Owner(), ""))
            if device and replica is not None:
                self._numbers.setdefault(device, set()).add(replica)
        self._parts: dict[tuple[str, tuple[str, str]], _Part] = {}

    def held(self, claims: Iterable[Claim], evidence: Evidence) -> list[Held]:
        """Who holds what, in no order; a claim of a pod that is over, or on no known device, holds nothing."""
        boards: dict[str, list[_Wish]] = {}
        for claim, found in self._ids.resolve_all(claims):
            if found.device is None or not (rank := evidence.rank(claim, found.device)):
                continue
            strength = rank, evidence.since.get(claim, 0)
            boards.setdefault(found.parent or found.device, []).append(
                _Wish(found.device, found.replica, claim, strength)
            )
        self._parts = {}
        for board, wishes in boards.items():
            self._deal_board(board, wishes)
        return [_held(device, part, evidence.pods) for (device, _), part in self._parts.items() if part.millionths > 0]

    def _deal_board(self, board: str, wishes: list[_Wish]) -> None:
        """A board goes whole, in shares, or in instances: these exclude one another."""
        own = [wish for wish in wishes if wish.device == board]
        ways = [
            [wish for wish in own if wish.replica is None],
            [wish for wish in own if wish.replica is not None],
            [wish for wish in wishes if wish.device != board],
        ]
        way, rivals, is_tie = _strongest(ways)
        if way == 2:
            for device in {wish.device for wish in ways[2]}:
                of_device = [wish for wish in ways[2] if wish.device == device]
                inner = [[w for w in of_device if w.replica is None], [w for w in of_device if w.replica is not None]]
                chosen, more, is_inner_tie = _strongest(inner)
                self._deal_device(device, inner[chosen], rivals | more, is_tie=is_tie or is_inner_tie)
        else:
            self._deal_device(board, ways[way], rivals, is_tie=is_tie)

    def _deal_device(self, device: str, wishes: list[_Wish], rivals: set[tuple[str, str]], *, is_tie: bool) -> None:
        share = self._shares.get(device, Share(0))
        doubt: Confidence = "assumed" if share.is_assumed or is_tie else "exact"
        if wishes[0].replica is None:
            self._deal(share.millionths, wishes, rivals, doubt)
            return
        held = {wish.replica for wish in wishes if wish.replica is not None}
        known = self._numbers.get(device)
        if not known or not held <= known:
            doubt = "assumed"
        numbers = known | held if known else set(range(max(held) + 1))
        for number, millionths in replica_shares(share.millionths, numbers).items():
            if number in held:
                of_number = [wish for wish in wishes if wish.replica == number]
                self._deal(millionths, of_number, rivals, _worse(doubt, "split" if len(numbers) > 1 else "exact"))

    def _deal(self, millionths: int, wishes: list[_Wish], rivals: set[tuple[str, str]], confidence: Confidence) -> None:
        """Give a part to the strongest party; pods of one party, which share it by right, get equal parts."""
        parties: dict[tuple[str, str], list[_Wish]] = {}
        for wish in wishes:
            claim = wish.claim
            party = ("", claim.resource_claim) if claim.resource_claim else wish.pod
            parties.setdefault(party, []).append(wish)
        if all(wish.claim.owner.replica for wish in wishes):
            chosen = wishes  # shares of a device that DRA itself divides
        else:
            ordered = [parties[party] for party in sorted(parties)]
            best, lost, is_tie = _strongest(ordered)
            chosen, rivals = ordered[best], rivals | lost
            confidence = _worse(confidence, "assumed" if is_tie else "exact")
        pods = sorted({wish.pod for wish in chosen})
        for pod, part_millionths in zip(pods, cumulative_split(millionths, [1] * len(pods)), strict=True):
            of_pod = [wish for wish in chosen if wish.pod == pod]
            part = self._parts.setdefault((of_pod[0].device, pod), _Part())
            part.millionths += part_millionths
            part.confidence = _worse(_worse(part.confidence, confidence), "split" if len(pods) > 1 else "exact")
            part.wishes += of_pod
            part.rivals |= rivals


def _strongest(groups: Sequence[list[_Wish]]) -> tuple[int, set[tuple[str, str]], bool]:
    """The place of the group that wins, the pods that lose, and whether nothing told them apart."""
    strengths = [max((wish.strength for wish in group), default=(-1, -1)) for group in groups]
    best = max(strengths)
    place = strengths.index(best)
    losers = {wish.pod for group in groups for wish in group} - {wish.pod for wish in groups[place]}
    return place, losers, strengths.count(best) > 1


def _worse(one: Confidence, other: Confidence) -> Confidence:
    return one if _DOUBT[one] >= _DOUBT[other] else other


def _held(device: str, part: _Part, pods: KnownPods) -> Held:
    owners = [wish.claim.owner for wish in part.wishes]
    namespace, pod = owners[0].namespace, owners[0].pod
    uids = {owner.pod_uid for owner in owners if owner.pod_uid} or set(pods.uids_of(namespace, pod))
    containers = {owner.container for owner in owners}
    claimants = sorted({part.wishes[0].pod} | part.rivals)
    text = f"claimed by {', '.join('/'.join(claimant) for claimant in claimants)}"
    return Held(
        device=device,
        gpu_millionths=part.millionths,
        owner_kind="pod",
        source=min(wish.claim.source for wish in part.wishes),
        confidence=part.confidence,
        namespace=namespace,
        pod=pod,
        pod_uid=uids.pop() if len(uids) == 1 else None,
        container=containers.pop() if len(containers) == 1 else None,
        conflict=text[:TEXT_LIMIT] if part.rivals else None,
    )
