"""What a provider delivered: the files of one delivery, and how they are read.

A provider's module offers `exports(con, paths)`, which groups files into deliveries and says which dialect each has. A
dialect is the columns as the provider writes them, and a SQL file beside the module that turns them into charges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from store.columns import FileSpec


class Part(NamedTuple):
    """One data file of a delivery: its name in the lineage (a file name or an object's key), and where it lies."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way in which a provider writes charges."""

    provider: str
    spec: FileSpec
    """Its columns; their fields are the names that the mapping reads from `export_row`."""
    mapping: str
    """The SQL file in `chargeback/sources` that selects charges from `export_row`, without its ending."""
    steps: tuple[str, ...] = ()
    """SQL files that run before it, in this order, each into a table of its name that later ones read."""
    rewrite: Callable[[Path, Path], None] | None = None
    """For files that are no tables: writes the first as one that can be read to the place of the second. InputError."""


@dataclass(frozen=True, slots=True)
class Export:
    """One delivery of charges. A later one of the same `source` replaces it whole."""

    source: str
    """What is replaced: the file's name, or provider, export and period of a manifest."""
    dialect: Dialect
    parts: tuple[Part, ...]
    export_name: str | None = None
    period: str | None = None
    execution_id: str | None = None
