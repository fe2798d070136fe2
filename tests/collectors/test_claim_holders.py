"""Who holds what by the kubelet's claims: whole devices, instances, shares, and claims that contradict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collectors.holders.claim_holders import ClaimAges
from collectors.holders.holders import unattributed
from collectors.holders.pod_folders import KnownPods
from collectors.samples import Held, Owner, Rejected
from tests.collectors.boards import (
    BOARD,
    MIGS,
    NAME,
    PODS,
    UID_A,
    UID_B,
    WHOLE,
    brief,
    by_pod,
    claim,
    gpu,
    held,
    mig,
    on,
    only,
    owned,
)


def test_a_pod_on_a_whole_device() -> None:
    row = only(held([BOARD, gpu(1)], [claim(NAME)], pods=KnownPods(PODS)))
    assert row == Held(
        device=NAME,
        gpu_millionths=WHOLE,
        owner_kind="pod",
        source="kubelet",
        confidence="exact",
        namespace="ml",
        pod="a",
        pod_uid=UID_A,
        container="main",
    )


def test_dcgm_exporter_569_a_device_that_nobody_claims_is_in_no_row() -> None:
    """The device itself stays in the fleet: it comes from the inventory, not from who holds it."""
    assert held([BOARD, gpu(1)], []) == []


def test_dcgm_exporter_307_three_pods_share_a_device() -> None:
    claims = [claim(f"{NAME}::{number}", pod) for number, pod in enumerate("abc")]
    offered = [f"{NAME}::{number}" for number in range(3)]
    assert brief(held([BOARD], claims, allocatable=offered)) == [
        ("a", 333_333, "split"),
        ("b", 333_333, "split"),
        ("c", 333_334, "split"),
    ]


def test_dcgm_exporter_582_587_a_share_is_a_part_of_the_device_once() -> None:
    """Of four shares one is held: a quarter of its energy and time is that pod's, not all of it."""
    offered = [f"{NAME}::{number}" for number in range(4)]
    assert brief(held([BOARD], [claim(f"{NAME}::2")], allocatable=offered)) == [("a", 250_000, "split")]


def test_without_a_list_of_shares_the_highest_number_in_use_counts() -> None:
    assert brief(held([BOARD], [claim(f"{NAME}::3"), claim(f"{NAME}::0", "b")])) == [
        ("a", 250_000, "assumed"),
        ("b", 250_000, "assumed"),
    ]
    assert only(held([BOARD], [claim(f"{NAME}::5")], allocatable=[f"{NAME}::0"])).confidence == "assumed"


def test_a_pod_that_holds_two_shares_is_one_row() -> None:
    offered = [f"{NAME}::{number}" for number in range(3)]
    claims = [claim(f"{NAME}::0"), claim(f"{NAME}::2"), claim(f"{NAME}::1", "b")]
    assert brief(held([BOARD], claims, allocatable=offered)) == [("a", 666_667, "split"), ("b", 333_333, "split")]


def test_shares_of_gke_by_minor_number() -> None:
    offered = ["nvidia7/vgpu0", "nvidia7/vgpu1"]
    assert brief(held([BOARD], [claim("nvidia7/vgpu1")], allocatable=offered)) == [("a", 500_000, "split")]


def test_dcgm_exporter_216_instances_are_parts_of_their_board() -> None:
    claims = [claim(part.uuid or "", f"p{number}") for number, part in enumerate(MIGS)]
    rows = held([BOARD, *MIGS], claims)
    assert sum(row.gpu_millionths for row in rows) == WHOLE
    assert {row.device for row in rows} == {part.uuid for part in MIGS}
    assert {row.confidence for row in rows} == {"exact"}


def test_shares_of_an_instance() -> None:
    offered = [f"{MIGS[0].uuid}::{number}" for number in range(2)]
    claims = [claim(offered[0]), claim(offered[1], "b")]
    assert brief(held([BOARD, *MIGS], claims, allocatable=offered)) == [("a", 71_428, "split"), ("b", 71_429, "split")]


def test_two_containers_of_a_pod_are_one_holder() -> None:
    second = replace(claim(NAME), owner=Owner("ml", "a", "sidecar"))
    row = only(held([BOARD], [claim(NAME), second]))
    assert (row.container, row.gpu_millionths, row.confidence, row.conflict) == (None, WHOLE, "exact", None)


def test_pods_that_share_a_resource_claim_hold_it_together() -> None:
    claims = [claim("n/gpu-7", pod, "dra:gpu.nvidia.com", resource_claim="ml/shared") for pod in "ab"]
    rows = held([BOARD], claims)
    assert brief(rows) == [("a", 500_000, "split"), ("b", 500_000, "split")]
    assert {row.conflict for row in rows} == {None}


def test_shares_that_dra_itself_cuts_are_no_conflict() -> None:
    claims = [claim("n/gpu-7", p, "dra:gpu.nvidia.com", resource_claim=f"ml/{p}", replica=f"s-{p}") for p in "abc"]
    rows = held([BOARD], claims)
    assert brief(rows) == [("a", 333_333, "split"), ("b", 333_333, "split"), ("c", 333_334, "split")]
    assert {row.conflict for row in rows} == {None}


def test_dcgm_exporter_714_an_instance_that_is_not_known_is_nobodys() -> None:
    claims = [claim("n/gpu-7-mig-19-6-1", "a", "dra:gpu.nvidia.com"), claim("GPU-gone", "b"), claim("0", "c")]
    assert held([BOARD, *MIGS], claims) == []
    assert unattributed([BOARD, *MIGS], claims) == (
        Rejected("index_is_no_identity", 1),
        Rejected("instance_unproven", 1),
        Rejected("unknown_device", 1),
    )


def test_dcgm_exporter_348_a_lost_device_is_still_held() -> None:
    assert only(held([replace(BOARD, state="lost")], [claim(NAME)])).gpu_millionths == WHOLE


def test_gpu_operator_2482_new_instances_replace_the_old_ones() -> None:
    old, new = MIGS[0], mig(BOARD, 2, "3g")
    claims = [claim(old.uuid or "", "a"), claim(new.uuid or "", "b")]
    assert brief(held([BOARD, old], claims)) == [("a", 142_857, "exact")]
    assert brief(held([BOARD, new], claims)) == [("b", 500_000, "exact")]


# Conflicts

TWO = (claim(NAME, "a"), claim(NAME, "b"))


def test_kubernetes_119423_a_finished_pod_that_is_still_listed_loses() -> None:
    known = KnownPods(PODS, living=frozenset({UID_B, "agent"}))
    row = only(held([BOARD], TWO, pods=known))
    assert (row.pod, row.gpu_millionths, row.confidence, row.conflict) == ("b", WHOLE, "exact", None)


def test_kubernetes_132020_a_finished_pod_alone_holds_nothing() -> None:
    """Its device was given back when it finished, however long the pod is listed."""
    known = KnownPods(PODS, living=frozenset({"agent"}))
    assert held([BOARD], [claim(NAME)], pods=known) == []
    assert len(held([BOARD], [claim(NAME, "starts-now")], pods=known)) == 1


def test_the_pod_whose_processes_are_on_the_device_wins() -> None:
    known = KnownPods(PODS, living=frozenset({UID_A, UID_B}))
    for uid, winner in ((UID_A, "a"), (UID_B, "b")):
        row = only(held([on(BOARD, 10)], TWO, owners=owned(p10=by_pod(uid)), pods=known))
        assert (row.pod, row.gpu_millionths, row.confidence) == (winner, WHOLE, "exact")
        assert row.conflict == "claimed by ml/a, ml/b"


def test_processes_on_an_instance_count_for_its_board() -> None:
    samples = [BOARD, on(MIGS[0], 10), *MIGS[1:]]
    claims = [claim(NAME, "a"), claim(MIGS[0].uuid or "", "b")]
    for uid, pod, device, newer in ((UID_A, "a", NAME, 1), (UID_B, "b", MIGS[0].uuid, 0)):
        found = held(samples, claims, owners=owned(p10=by_pod(uid)), pods=KnownPods(PODS), since={claims[newer]: 9})
        row = only(found)
        assert (row.pod, row.device, row.conflict) == (pod, device, "claimed by ml/a, ml/b")


def test_the_pod_that_lives_wins_over_one_of_which_nothing_is_known() -> None:
    known = KnownPods({("ml", "b"): (UID_B,)}, living=frozenset({UID_B}))
    row = only(held([BOARD], TWO, pods=known, since={TWO[0]: 9, TWO[1]: 1}))
    assert (row.pod, row.confidence, row.conflict) == ("b", "exact", "claimed by ml/a, ml/b")


def test_else_the_newer_claim_wins() -> None:
    ages = ClaimAges()
    ages.seen(100, TWO[1:])
    since = ages.seen(160, TWO)
    assert since == {TWO[0]: 160, TWO[1]: 100}
    assert ages.seen(165, TWO) is since
    row = only(held([BOARD], TWO, since=since))
    assert (row.pod, row.gpu_millionths, row.conflict) == ("a", WHOLE, "claimed by ml/a, ml/b")
    assert ages.seen(170, ()) == {}


def test_where_nothing_tells_them_apart_one_of_them_has_it() -> None:
    row = only(held([BOARD], TWO))
    assert (row.gpu_millionths, row.confidence, row.conflict) == (WHOLE, "assumed", "claimed by ml/a, ml/b")


def test_a_share_that_two_pods_claim() -> None:
    offered = [f"{NAME}::0", f"{NAME}::1"]
    claims = [claim(offered[0], "a"), claim(offered[0], "b"), claim(offered[1], "c")]
    rows = held([BOARD], claims, allocatable=offered, since={claims[1]: 5})
    assert brief(rows) == [("b", 500_000, "split"), ("c", 500_000, "split")]
    assert [row.conflict for row in rows] == ["claimed by ml/a, ml/b", None]


def test_whole_and_shared_at_once_is_a_conflict() -> None:
    """A plugin that was set up anew lists shares, while an older pod still has the whole."""
    claims = [claim(NAME, "a"), claim(f"{NAME}::0", "b"), claim(f"{NAME}::1", "c")]
    row = only(held([BOARD], claims, since={claims[0]: 7}))
    assert (row.pod, row.gpu_millionths, row.conflict) == ("a", WHOLE, "claimed by ml/a, ml/b, ml/c")
    rows = held([BOARD], claims, since={claims[2]: 7}, allocatable=[f"{NAME}::0", f"{NAME}::1"])
    assert brief(rows) == [("b", 500_000, "split"), ("c", 500_000, "split")]
    assert {row.conflict for row in rows} == {"claimed by ml/a, ml/b", "claimed by ml/a, ml/c"}


def test_a_conflict_of_many_is_cut_to_what_a_row_takes() -> None:
    row = only(held([BOARD], [claim(NAME, f"pod-{number:040}") for number in range(50)]))
    assert len(row.conflict or "") == 256


def test_a_pods_uid_is_not_guessed_between_namesakes() -> None:
    known = KnownPods({("ml", "a"): (UID_A, UID_B)})
    assert only(held([BOARD], [claim(NAME)], pods=known)).pod_uid is None
    alive = KnownPods({("ml", "a"): (UID_A, UID_B)}, living=frozenset({UID_B}))
    assert only(held([BOARD], [claim(NAME)], pods=alive)).pod_uid == UID_B


@pytest.mark.parametrize("number", [1, 2, 3, 7, 48])
def test_a_device_that_is_shared_out_is_held_exactly_once(number: int) -> None:
    offered = [f"{NAME}::{place}" for place in range(number)]
    rows = held([BOARD], [claim(text, f"p{place}") for place, text in enumerate(offered)], allocatable=offered)
    assert sum(row.gpu_millionths for row in rows) == WHOLE
    parts = [mig(BOARD, place) for place in range(7)]
    offered = [f"{part.uuid}::{place}" for part in parts for place in range(number)]
    rows = held([BOARD, *parts], [claim(text, f"p{n}") for n, text in enumerate(offered)], allocatable=offered)
    assert sum(row.gpu_millionths for row in rows) == WHOLE
