"""What the labels of one series say."""

from __future__ import annotations

import pytest

from collectors.dcgm.series import origin_of
from collectors.exposition import Series
from collectors.samples import Owner


def labelled(**labels: str) -> Series:
    return Series("DCGM_FI_DEV_GPU_UTIL", {"UUID": "GPU-a", **labels})


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        ({}, None),
        ({"pod": ""}, None),
        ({"pod": "<<<NULL>>>"}, None),
        ({"namespace": "n", "container": "c"}, None),
        ({"pod": "p", "namespace": "n"}, Owner(namespace="n", pod="p")),
        ({"pod_name": "p", "pod_namespace": "n", "container_name": "c"}, Owner("n", "p", "c")),
        ({"pod": "p", "pod_uid": "u", "vgpu": "2"}, Owner(pod="p", pod_uid="u", replica="2")),
        ({"hpc_job": "7"}, Owner(hpc_job="7")),
        ({"hpc_job": ""}, None),
    ],
)
def test_the_owner_is_a_pod_or_a_job(labels: dict[str, str], owner: Owner | None) -> None:
    assert origin_of(labelled(**labels)).owner == owner


def test_renamed_labels_are_kept_apart() -> None:
    origin = origin_of(labelled(pod="exporter", namespace="m", exported_pod="p", exported_namespace="n"))
    assert (origin.owner, origin.renamed_owner) == (Owner("m", "exporter"), Owner("n", "p"))


def test_an_instance_has_a_place_on_its_board() -> None:
    assert origin_of(labelled(GPU_I_ID="3")).place == ("GPU-a", "3")
    assert origin_of(labelled(GPU_I_ID="3")).board == ("GPU-a", None)
    assert origin_of(labelled()).place == ("GPU-a", None)
