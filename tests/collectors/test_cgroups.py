"""Owners from cgroup paths as kubelets, Slurm and container runtimes write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.holders.cgroups import owner_of_cgroups, owner_of_path

FIXTURES = Path(__file__).parents[1] / "fixtures/procs"
UID = "7b0b0a4e-0000-4000-8000-0000000000aa"
UNDERSCORED = UID.replace("-", "_")
STATIC = "0123456789abcdef0123456789abcdef"
HEX = "c0ffee" + 58 * "0"
SYSTEMD = f"kubepods-burstable-pod{UNDERSCORED}.slice"
USER = "/user.slice/user-1000.slice/user@1000.service"


@pytest.mark.parametrize(
    "path",
    [
        f"/kubepods.slice/kubepods-burstable.slice/{SYSTEMD}/cri-containerd-{HEX}.scope",
        f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/crio-{HEX}.scope",
        f"/kubepods.slice/kubepods-pod{UNDERSCORED}.slice/docker-{HEX}.scope",
        f"/kubepods.slice/kubepods-besteffort.slice/{SYSTEMD}/cri-containerd-{HEX}.scope (deleted)",
        f"/kubepods/burstable/pod{UID}/{HEX}",
        f"/kubepods/pod{UID}/{HEX}/nested/by/the/pod",
        f"/docker/{HEX[::-1]}/kubelet.slice/kubelet-kubepods.slice/kubelet-{SYSTEMD}/cri-containerd-{HEX}.scope",
        f"/system.slice/containerd.service/{SYSTEMD}:cri-containerd:{HEX}",
        f"/../../{SYSTEMD}/cri-containerd-{HEX}.scope",
        f"/../../../burstable/pod{UID}/{HEX}",
        f"/../pod{UID}/{HEX}",
    ],
)
def test_a_container_of_a_pod(path: str) -> None:
    found = owner_of_path(path)
    assert (found.kind, found.pod_uid, found.container_id) == ("pod", UID, HEX)


def test_a_static_pod_has_a_uid_without_dashes() -> None:
    for path in (f"/kubepods/burstable/pod{STATIC}/{HEX}", f"/kubepods.slice/kubepods-pod{STATIC}.slice"):
        assert owner_of_path(path).pod_uid == STATIC


@pytest.mark.parametrize(
    ("path", "job", "user"),
    [
        ("/slurm/uid_1000/job_4711/step_0/task_3", "4711", 1000),
        ("/slurm_node-a/uid_0/job_4711/step_batch", "4711", 0),
        ("/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", "4711", None),
        ("/system.slice/node-a_slurmstepd.scope/job_4711/step_extern/user", "4711", None),
        ("/../../slurmstepd.scope/job_4711", "4711", None),
    ],
)
def test_a_slurm_job(path: str, job: str, user: int | None) -> None:
    found = owner_of_path(path)
    assert (found.kind, found.job_id, found.user_id) == ("job", job, user)


@pytest.mark.parametrize(
    "path",
    [f"/docker/{HEX}", f"/system.slice/docker-{HEX}.scope", f"/machine.slice/libpod-{HEX}.scope/container"],
)
def test_a_container_without_a_pod(path: str) -> None:
    assert owner_of_path(path).kind == "container"
    assert owner_of_path(path).container_id == HEX


def test_a_user_and_a_container_of_his_own() -> None:
    found = owner_of_path("/user.slice/user-1000.slice/session-3.scope")
    assert (found.kind, found.user_id, found.container_id) == ("user", 1000, None)
    found = owner_of_path(f"{USER}/user.slice/libpod-{HEX}.scope/container")
    assert (found.kind, found.user_id, found.container_id) == ("user", 1000, HEX)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f"{USER}/system.slice/slurmstepd.scope/job_1", "user"),
        (f"{USER}/kubepods.slice/kubepods-pod{UNDERSCORED}.slice", "user"),
        (f"/kubepods/pod{UID}/{HEX}/system.slice/slurmstepd.scope/job_1", "pod"),
        (f"/kubepods/pod{UID}/{HEX}/pod{STATIC}", "pod"),
        (f"/docker/{HEX}/slurm/uid_0/job_1", "container"),
        (f"/system.slice/my-pod{UID}", "unknown"),
        ("/system.slice/slurmd.service/job_1", "unknown"),
    ],
)
def test_nobody_becomes_another_by_naming_his_cgroup(path: str, kind: str) -> None:
    assert owner_of_path(path).kind == kind
    assert owner_of_path(path).pod_uid in {None, UID}


def test_the_twelve_lines_of_cgroup_v1_name_one_owner() -> None:
    found = owner_of_cgroups((FIXTURES / "pod_v1.txt").read_text())
    assert (found.kind, found.pod_uid) == ("pod", UID)
    found = owner_of_cgroups((FIXTURES / "slurm_v1.txt").read_text())
    assert (found.kind, found.job_id, found.user_id) == ("job", "4711", 1000)


def test_a_system_service_is_nobody_that_is_known() -> None:
    for text in ("0::/system.slice/ssh.service\n", "0::/\n", "", "nonsense", "0::relative"):
        assert owner_of_cgroups(text).kind == "unknown"


@given(
    st.lists(
        st.sampled_from(
            ["/", "kubepods", "pod", UID, UNDERSCORED, HEX, "job_", "1", "..", ":", "\n", ".slice", "slurm/uid_9"]
        )
    )
)
def test_any_path_is_read(pieces: list[str]) -> None:
    found = owner_of_cgroups("0::/" + "".join(pieces))
    assert (found.kind == "pod") == (found.pod_uid is not None)
    assert (found.kind == "job") == (found.job_id is not None)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert owner_of_cgroups(text).kind in {"pod", "job", "container", "user", "unknown"}
