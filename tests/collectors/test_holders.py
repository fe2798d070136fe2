"""Who holds what, from claims, job maps, processes and pages together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from collectors.holders.holders import Holders, holders
from collectors.holders.pod_folders import KnownPods
from collectors.holders.procs import ProcessOwner
from collectors.samples import Held, Owner
from tests.collectors.boards import (
    BOARD,
    MIGS,
    NAME,
    PODS,
    UID_A,
    UID_B,
    WHOLE,
    brief,
    by_job,
    by_pod,
    by_user,
    claim,
    gpu,
    held,
    on,
    only,
    owned,
    process,
)

if TYPE_CHECKING:
    import random

    from collectors.samples import Claim


def test_a_job_by_its_cgroup() -> None:
    row = only(held([on(BOARD, 10, 11)], [], owners=owned(p10=by_job("4711"), p11=by_job("4711"))))
    assert row == Held(
        device=NAME,
        gpu_millionths=WHOLE,
        owner_kind="job",
        source="cgroup",
        confidence="exact",
        job_id="4711",
        user_name="ada",
    )
    again = held([on(BOARD, 10)], None, owners=owned(p10=by_job("4711")))
    assert again == [row]


def test_jobs_on_one_device_divide_it_and_strays_get_nothing() -> None:
    owners = owned(p10=by_job("3"), p11=by_job("1"), p12=by_job("2"), p13=by_user("root"))
    assert brief(held([on(BOARD, 10, 11, 12, 13)], [], owners=owners)) == [
        ("1", 333_333, "split"),
        ("2", 333_333, "split"),
        ("3", 333_334, "split"),
    ]


def test_a_job_map_shows_a_job_that_runs_nothing() -> None:
    rows = held([BOARD, gpu(1)], [], jobs={NAME: ("4712", "4711")}, owners=owned(p10=by_job("4711")))
    assert brief(rows) == [("4711", 500_000, "split"), ("4712", 500_000, "split")]
    assert [(row.source, row.user_name) for row in rows] == [("job_map", "ada"), ("job_map", None)]


def test_a_job_map_of_an_instance_goes_before_its_boards() -> None:
    rows = held([BOARD, *MIGS], [], jobs={NAME: ("1",), MIGS[0].uuid or "": ("2",)})
    assert brief(rows) == [("2", 142_857, "exact")]
    assert brief(held([BOARD, *MIGS], [], jobs={NAME: ("1",)})) == [("1", WHOLE, "exact")]
    rows = held([BOARD, *MIGS], [claim(MIGS[0].uuid or "")], jobs={NAME: ("1",), MIGS[1].uuid or "": ("2",)})
    assert brief(rows) == [("a", 142_857, "exact"), ("2", 142_857, "exact")]
    rows = held([BOARD, *MIGS], [claim(MIGS[0].uuid or "")], jobs={NAME: ("1",)})
    assert brief(rows) == [("a", 142_857, "exact")]


def test_a_claim_goes_before_job_maps_and_processes() -> None:
    samples = [on(BOARD, 10)]
    rows = held(samples, [claim(NAME)], jobs={NAME: ("1",)}, owners=owned(p10=by_job("1")))
    assert brief(rows) == [("a", WHOLE, "exact")]


def test_dcgm_exporter_718_a_pod_without_a_claim_by_its_processes() -> None:
    owners = owned(p10=by_pod(UID_A))
    row = only(held([on(BOARD, 10)], [], owners=owners, pods=KnownPods(PODS)))
    assert (row.owner_kind, row.namespace, row.pod, row.pod_uid) == ("pod", "ml", "a", UID_A)
    row = only(held([on(BOARD, 10)], [], owners=owners))
    assert (row.owner_kind, row.pod, row.pod_uid, row.container) == ("pod", None, UID_A, None)


def test_users_divide_a_device_by_the_time_of_their_kernels() -> None:
    board = replace(BOARD, processes=(process(1, sm_ratio=0.3), process(2, sm_ratio=0.1), process(3)))
    owners = owned(p1=by_user("ada"), p2=by_user("bob"), p3=by_user("idle"))
    assert brief(held([board], [], owners=owners)) == [("ada", 750_000, "split"), ("bob", 250_000, "split")]


def test_where_no_kernel_ran_users_divide_it_by_memory() -> None:
    board = replace(BOARD, processes=(process(1, sm_ratio=0.0, memory_bytes=300), process(2, memory_bytes=100)))
    owners = owned(p1=by_user("ada"), p2=by_user("bob"))
    assert brief(held([board], [], owners=owners)) == [("ada", 750_000, "split"), ("bob", 250_000, "split")]


def test_where_memory_is_unknown_users_divide_it_equally() -> None:
    board = replace(BOARD, processes=(process(1, memory_bytes=300), process(2)))
    owners = owned(p1=by_user("ada"), p2=by_user("bob"))
    assert brief(held([board], [], owners=owners)) == [("ada", 500_000, "split"), ("bob", 500_000, "split")]


def test_a_container_is_told_from_its_user() -> None:
    board = on(BOARD, 1)
    owner = ProcessOwner(1, 1, "container", container_id="c0ffee")
    row = only(held([board], [], owners={1: owner}))
    assert (row.owner_kind, row.container, row.user_name) == ("process", "c0ffee", None)


def test_nvidia_docker_1483_processes_that_cannot_be_seen_hold_it_for_somebody() -> None:
    row = only(held([on(BOARD, 10)], [], owners={10: ProcessOwner(10, None, "unknown")}))
    assert (row.owner_kind, row.gpu_millionths, row.confidence) == ("unknown", WHOLE, "assumed")


def test_nvitop_106_processes_that_ended_hold_nothing() -> None:
    assert held([on(BOARD, 10)], [], owners={}) == []


def test_a_boards_processes_are_those_of_its_instances() -> None:
    board = replace(BOARD, processes=(process(1, gpu_instance_id=7, compute_instance_id=0), process(2)))
    row = only(held([board, *MIGS], [], owners=owned(p1=by_job("1"), p2=by_job("2"))))
    assert (row.device, row.job_id, row.gpu_millionths) == (MIGS[0].uuid, "1", 142_857)


# Pages


def test_a_page_is_asked_only_where_nothing_else_is_known() -> None:
    board = replace(BOARD, owner=(Owner(hpc_job="1"), Owner(namespace="ml", pod="a")))
    assert brief(held([board], None)) == [("1", 500_000, "assumed"), ("a", 500_000, "assumed")]
    assert held([board], []) == []
    assert held([replace(board, processes=())], None, owners={}) == []
    parts = [replace(part, owner=(Owner(pod=f"p{part.slot}"),)) for part in MIGS]
    assert sum(row.gpu_millionths for row in held([board, *parts], None)) == WHOLE


# Asked each second


def test_who_holds_is_worked_out_again_only_when_it_may_differ() -> None:
    asked = Holders()
    claims, owners = (claim(NAME),), owned(p10=by_user("ada"))
    first = asked.now(0, [BOARD], claims, owners)
    assert asked.now(0, [replace(BOARD, power_watts=300.0, state="degraded")], (claim(NAME),), dict(owners)) is first
    assert brief(asked.now(0, [BOARD], (claim(NAME, "b"),), owners)) == [("b", WHOLE, "exact")]
    assert asked.now(0, [on(BOARD, 10)], (), owners) == holders([on(BOARD, 10)], (), owners)
    assert asked.now(0, [on(BOARD, 11)], (), owners) == ()
    assert asked.now(0, [BOARD], (), owners, jobs={NAME: ("1",)}) == holders([BOARD], (), owners, jobs={NAME: ("1",)})
    assert asked.now(0, [BOARD], (), owners, jobs={}) == ()


def test_what_users_hold_is_settled_for_the_rest_of_a_window() -> None:
    """What each process uses is another figure with each look; who uses the device is not."""
    asked, owners = Holders(), owned(p10=by_user("ada"), p11=by_user("bob"))

    def users(second: int, *ratios: float) -> list[tuple[str | None, int, str]]:
        listed = tuple(process(10 + n, sm_ratio=ratio) for n, ratio in enumerate(ratios))
        return brief(asked.now(second, [replace(BOARD, processes=listed)], None, owners))

    first = users(60, 0.3, 0.1)
    assert first == [("ada", 750_000, "split"), ("bob", 250_000, "split")]
    assert users(61, 0.1, 0.1) == users(119, 0.0, 0.4) == first
    assert users(120, 0.1, 0.1) == [("ada", 500_000, "split"), ("bob", 500_000, "split")]
    assert users(121, 0.1) == [("ada", WHOLE, "split")], "who ended holds nothing from that second on"
    assert users(122, 0.3, 0.1) == first, "nor does one who came wait for the window's end"


# What always holds

IDS = [
    NAME,
    f"{NAME}::0",
    f"{NAME}::1",
    f"{NAME}::5",
    "nvidia7",
    "n/gpu-7",
    *(f"{part.uuid}" for part in MIGS[:3]),
    f"{MIGS[0].uuid}::1",
    "?",
]
CLAIMS = st.builds(
    claim,
    st.sampled_from(IDS),
    st.sampled_from(["a", "b", "c"]),
    resource_claim=st.sampled_from([None, None, "ml/x", "ml/y"]),
    replica=st.sampled_from([None, None, "s1", "s2"]),
)
OWNERS = st.dictionaries(
    st.integers(1, 6),
    st.sampled_from(
        [by_pod(UID_A), by_pod(UID_B), by_job("1"), by_job("2"), by_user("ada"), ProcessOwner(0, None, "unknown")]
    ),
)
PROCESSES = st.lists(
    st.builds(
        process,
        st.integers(1, 6),
        memory_bytes=st.sampled_from([None, 5, 7]),
        sm_ratio=st.sampled_from([None, 0.0, 0.5]),
    ),
    max_size=4,
)
LIVING = st.sampled_from([None, frozenset({UID_A}), frozenset({UID_A, UID_B})])


@given(
    st.one_of(st.none(), st.lists(CLAIMS, max_size=8)),
    OWNERS,
    st.lists(PROCESSES, min_size=8, max_size=8),
    st.integers(0, 7),
    LIVING,
    st.lists(st.sampled_from(IDS), max_size=8),
    st.dictionaries(st.sampled_from([NAME, *(part.uuid or "" for part in MIGS)]), st.just(("1", "2")), max_size=3),
    st.randoms(use_true_random=False),
)
def test_a_board_is_never_held_more_than_once(
    claims: list[Claim] | None,
    owners: dict[int, ProcessOwner],
    processes: list[Any],
    instances: int,
    living: frozenset[str] | None,
    offered: list[str],
    jobs: dict[str, tuple[str, ...]],
    chance: random.Random,
) -> None:
    samples = [replace(s, processes=tuple(p)) for s, p in zip([BOARD, *MIGS[:instances]], processes, strict=False)]
    more: dict[str, Any] = {"allocatable": offered, "jobs": jobs, "pods": KnownPods(PODS, living)}
    rows = held(samples, claims, owners=owners, **more)
    by_owner = [replace(row, gpu_millionths=1, confidence="exact", conflict=None) for row in rows]
    assert len(set(by_owner)) == len(rows)
    assert all(row.gpu_millionths > 0 for row in rows)
    assert sum(row.gpu_millionths for row in rows) <= WHOLE
    per_device = defaultdict(int)
    for row in rows:
        per_device[row.device] += row.gpu_millionths
    assert not (NAME in per_device and len(per_device) > 1)
    for values in (samples, claims or [], offered):
        chance.shuffle(values)
    assert held(samples, claims, owners=owners, **more) == rows
