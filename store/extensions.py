"""Load the DuckDB extensions from their Python packages: signed binaries on disk, no download, nothing installed."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import duckdb

from fleet.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

EMBEDDED = ("sqlite_scanner", "ducklake")
"""What the embedded mode needs, in load order: the catalog's own database first."""


def extension_path(name: str) -> Path:
    """Return the file of one extension, as its package `duckdb_extension_<name>` carries it.

    Raises MissingDependencyError when the package is absent or was built for another DuckDB version.
    """
    package = f"duckdb_extension_{name}"
    try:
        root = resources.files(package)
    except ModuleNotFoundError:
        raise MissingDependencyError(f"Python package {package.replace('_', '-')} is not installed") from None
    found = root / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    with resources.as_file(found) as path:
        if not path.is_file():
            raise MissingDependencyError(f"{package} carries no binary for DuckDB {duckdb.__version__}")
        return path


def load_extensions(con: duckdb.DuckDBPyConnection, names: Sequence[str] = EMBEDDED) -> None:
    """Load extensions by path. `LOAD` of a file verifies its signature and writes nothing to the home folder."""
    for name in names:
        con.load_extension(str(extension_path(name)))
