"""Pods by name, uid and life, from folders as the kubelet keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.holders.pod_folders import KnownPods, PodFolders

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW, STATIC = "7b0b0a4e-0000-4000-8000-0000000000aa", "7b0b0a4e-0000-4000-8000-0000000000bb", "0" * 32


@pytest.fixture
def host(tmp_path: Path) -> Path:
    for name in (f"ml_train-0_{OLD}", f"ml_train-0_{NEW}", f"kube-system_etcd-a_{STATIC}", "notes", "a_b_c_d"):
        (tmp_path / "pods" / name).mkdir(parents=True)
    return tmp_path


def look(host: Path) -> KnownPods:
    return PodFolders(host / "pods", host / "cgroup").look()


@pytest.mark.parametrize(
    "cgroups",
    [
        [
            f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{NEW.replace('-', '_')}.slice",
            f"kubepods.slice/kubepods-pod{STATIC}.slice",
        ],
        [f"kubepods/besteffort/pod{NEW}", f"kubepods/pod{STATIC}"],
        [f"systemd/kubepods/burstable/pod{NEW}", f"systemd/kubepods/pod{STATIC}"],
        [
            f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{NEW.replace('-', '_')}.slice",
            f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{STATIC}.slice",
        ],
    ],
)
def test_a_pod_that_has_a_cgroup_lives(host: Path, cgroups: list[str]) -> None:
    for name in cgroups:
        (host / "cgroup" / name).mkdir(parents=True)
    found = look(host)
    assert found.living == {NEW, STATIC}
    assert found.uids_of("ml", "train-0") == (NEW,)
    assert found.lives("ml", "train-0") is True
    assert found.names()[OLD] == ("ml", "train-0")


def test_a_pod_without_a_cgroup_is_over(host: Path) -> None:
    (host / f"cgroup/kubepods/pod{STATIC}").mkdir(parents=True)
    found = look(host)
    assert found.lives("ml", "train-0") is False
    assert found.lives("ml", "not-started-yet") is None
    assert found.uids_of("ml", "train-0") == (OLD, NEW)


def test_cgroups_that_know_none_of_the_pods_tell_nothing(host: Path) -> None:
    """A view from inside a container, or another layout: better unknown than all pods over."""
    (host / "cgroup/kubepods/pod7b0b0a4e-0000-4000-8000-0000000000cc").mkdir(parents=True)
    assert look(host).lives("ml", "train-0") is None


def test_without_folders_nothing_is_known(tmp_path: Path) -> None:
    assert look(tmp_path) == KnownPods()
    assert KnownPods().lives("ml", "train-0") is None
    assert KnownPods().uids_of(None, None) == ()
