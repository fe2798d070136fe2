"""The registry: a collector is named after its file and can be made from an address alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import collectors
from collectors.registry import PAGE_COLLECTORS


@pytest.mark.parametrize("name", PAGE_COLLECTORS)
def test_a_collector_is_named_after_its_file(name: str) -> None:
    collector = PAGE_COLLECTORS[name]
    assert collector.__module__ == f"collectors.{name}"
    assert (Path(collectors.__path__[0]) / f"{name}.py").is_file()
    assert callable(collector("page").collect)
