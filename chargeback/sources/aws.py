"""AWS Cost and Usage Reports from disk: CUR 2.0 and the legacy report, as single files or by a delivery's manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargeback.sources.aws_columns import dialect_of
from chargeback.sources.aws_manifest import parts_on_disk, read_manifest
from chargeback.sources.export import Export, Part

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.lake import Connection


def exports(_: Connection, paths: Sequence[Path]) -> tuple[Export, ...]:
    """Each data file is a delivery of its own; of a manifest (`*.json`) exactly the files that it names are one.

    A manifest's delivery replaces what the same export said of the same period. InputError when a file is no report, or
    one that a manifest names is not there.
    """
    return tuple(_of_manifest(path) if path.suffix == ".json" else _of_file(path) for path in paths)


def _of_file(path: Path) -> Export:
    part = Part(path.name, path)
    return Export(path.name, dialect_of([part]), (part,))


def _of_manifest(path: Path) -> Export:
    manifest = read_manifest(path)
    parts = parts_on_disk(manifest, path)
    return manifest.export(dialect_of(parts), parts)
