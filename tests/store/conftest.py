"""What the tests of file intake share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from store.lake import memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = memory()
    yield connection
    connection.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.csv"
