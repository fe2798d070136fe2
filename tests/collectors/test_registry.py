"""The registry: a collector is named after its place, and can be made before its source is there."""

from __future__ import annotations

from typing import Any

import pytest

from collectors.registry import AGENT_COLLECTORS, PAGE_COLLECTORS, make_collector

OPTIONS: dict[str, dict[str, Any]] = {
    "nvml": {"host_pids": False},
    "dcgm": {"source": "page"},
    "kernel_log": {"path": "log"},
    "placement": {"socket_path": "kubelet.sock"},
}


def test_every_collector_is_tried_here() -> None:
    assert OPTIONS.keys() == AGENT_COLLECTORS.keys()
    assert PAGE_COLLECTORS.keys() <= AGENT_COLLECTORS.keys()


@pytest.mark.parametrize("name", OPTIONS)
def test_a_collector_is_named_after_its_place_and_closes_unused(name: str) -> None:
    collector = make_collector(name, OPTIONS[name])
    assert type(collector).__module__ == f"collectors.{name}.collector"
    collector.close()
    collector.close()


def test_a_name_or_option_that_is_none_is_a_bug() -> None:
    with pytest.raises(KeyError):
        make_collector("rocm", {})
    with pytest.raises(TypeError):
        make_collector("nvml", {"speed": 1})
