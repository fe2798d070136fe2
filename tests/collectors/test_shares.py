"""How much of a board each part of it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.holders.shares import Share, cumulative_split, device_shares, replica_shares
from collectors.samples import DeviceSample
from tests.collectors.boards import GIB, PROFILES, gpu, mig

if TYPE_CHECKING:
    import random

WHOLE = 1_000_000


def sizes(*profiles: str) -> list[int]:
    board = gpu(0)
    parts = [mig(board, number, profile) for number, profile in enumerate(profiles)]
    shares = device_shares([board, *parts])
    return [shares[part.device or ""].millionths for part in parts]


def test_a_whole_device_is_a_million() -> None:
    assert device_shares([gpu(0)]) == {gpu(0).uuid: Share(WHOLE)}


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        (["7g"], [WHOLE]),
        (["3g"], [500_000]),
        (["3g", "3g"], [500_000, 500_000]),
        (["1g"], [142_857]),
        (["1g.20gb"], [250_000]),
        (["1g"] * 7, [142_857, 142_857, 142_857, 142_857, 142_857, 142_857, 142_858]),
        (["4g", "3g"], [533_333, 466_667]),  # 4/7 and 4/8 are more than a board, so 32 and 28 of 60
        (["2g", "2g", "3g"], [266_666, 266_667, 466_667]),  # 16, 16 and 28 of 60
    ],
)
def test_an_instance_is_what_it_denies_to_others(profiles: list[str], expected: list[int]) -> None:
    assert sizes(*profiles) == expected


def test_boards_that_are_cut_into_four() -> None:
    a30 = gpu(0, model="NVIDIA A30", memory_total_bytes=24 * GIB)
    parts = [mig(a30, 3, compute_slices=1, memory_total_bytes=None)]
    parts += [mig(a30, 2, compute_slices=2, memory_total_bytes=12 * GIB)]
    assert [device_shares([a30, *parts])[p.device or ""] for p in parts] == [Share(250_000), Share(500_000)]
    other = gpu(0, model="NVIDIA A300X")
    assert (
        device_shares([other, mig(other, 3, memory_total_bytes=None)])[mig(other, 3).device or ""].millionths < 143_000
    )


def test_compute_instances_divide_their_gpu_instance() -> None:
    board = gpu(0)
    parts = [mig(board, 2, "3g", uuid=f"MIG-{n}", compute_instance_id=n, compute_slices=n + 1) for n in range(2)]
    shares = device_shares([board, *parts])
    assert [shares["MIG-0"].millionths, shares["MIG-1"].millionths] == [166_666, 333_334]
    blind = [replace(part, memory_total_bytes=None) for part in parts]
    shares = device_shares([board, *blind])
    assert [shares["MIG-0"].millionths, shares["MIG-1"].millionths] == [142_857, 285_714]  # 3 of 7 together


def test_a_compute_instance_alone_denies_its_gpu_instance_to_others() -> None:
    board = gpu(0)
    for inner, outer, expected in ((1, "2g", 285_714), (2, "4g", 571_428), (1, "3g", 500_000)):
        part = mig(board, 1, outer, compute_slices=inner, profile_hint=f"{inner}c.{outer}.20gb")
        assert device_shares([board, part])[part.device or ""] == Share(expected)


def test_dcgm_exporter_544_a_profiles_name_is_only_a_hint() -> None:
    board = gpu(0)
    blind = mig(board, 1, compute_slices=None, memory_total_bytes=None, profile_hint="2g.20gb")
    assert device_shares([board, blind])[blind.device or ""] == Share(285_714, is_assumed=True)
    told = mig(board, 1, profile_hint="7g.80gb")
    assert device_shares([board, told])[told.device or ""] == Share(142_857)


def test_an_instance_of_unknown_size_is_taken_for_the_smallest() -> None:
    board = gpu(0)
    blind = mig(board, 1, compute_slices=None, memory_total_bytes=None)
    assert device_shares([board, blind])[blind.device or ""] == Share(142_857, is_assumed=True)
    assert device_shares([blind])[blind.device or ""] == Share(142_857, is_assumed=True)


def test_partitions_and_cores_are_equal_parts() -> None:
    parts = [DeviceSample(kind="partition", uuid=f"xcp-{n}", parent_uuid="amd-0", slot=str(n)) for n in range(8)]
    assert {share.millionths for share in device_shares(parts).values()} == {125_000}


def test_replicas_are_equal_parts_and_add_up() -> None:
    assert replica_shares(WHOLE, [0, 1, 2]) == {0: 333_333, 1: 333_333, 2: 333_334}
    assert replica_shares(142_857, [5, 9]) == {5: 71_428, 9: 71_429}
    assert cumulative_split(10, []) == ()
    assert cumulative_split(10, [0, 0]) == (5, 5)


@given(st.integers(0, WHOLE), st.lists(st.integers(0, 10**9), min_size=1, max_size=30))
def test_a_cut_conserves(total: int, weights: list[int]) -> None:
    parts = cumulative_split(total, weights)
    assert sum(parts) == total
    assert min(parts) >= 0
    whole = sum(weights)
    if whole:
        assert all(abs(part - total * weight / whole) < 1 for part, weight in zip(parts, weights, strict=True))


@given(st.lists(st.sampled_from(sorted(PROFILES)), max_size=9), st.randoms(use_true_random=False))
def test_instances_never_add_up_to_more_than_their_board(profiles: list[str], chance: random.Random) -> None:
    board = gpu(0)
    parts = [mig(board, number, profile) for number, profile in enumerate(profiles)]
    shares = device_shares([board, *parts])
    total = sum(shares[part.device or ""].millionths for part in parts)
    pieces = sum(max(compute * 8, memory * 7) for compute, memory in (PROFILES[p] for p in profiles))
    assert total == (WHOLE if pieces >= 56 else WHOLE * pieces // 56)
    shuffled = [board, *parts]
    chance.shuffle(shuffled)
    assert device_shares(shuffled) == shares
