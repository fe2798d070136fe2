"""A driver, a kubelet and a user without rights, for the doctor of a node to look at."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.collectors.kubelet import Kubelet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.nvml_shim.machine import Machine


@pytest.fixture
def driver(machine: Machine, nvml_library: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A driver that the collector's own process finds."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_library().parent))
    return machine


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    made = Kubelet(tmp_path / "kubelet.sock").start()
    yield made
    made.stop()


@pytest.fixture
def stranger() -> Callable[[], AbstractContextManager[None]]:
    """Be a user without rights for a while, where the tests run as root."""

    @contextmanager
    def other() -> Iterator[None]:
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    return other
