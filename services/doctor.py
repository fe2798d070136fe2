"""Examine an installation and a workspace, without changing either."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from chargeback.kinds import KINDS
from fleet.errors import GputallyError
from services.finding import Finding
from services.workspace import Workspace
from store.extensions import EMBEDDED, extension_path
from store.snapshots import show_current

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from services.finding import Level
    from store.lake import Connection

LOW_DISK_BYTES = 2 * 1024**3
NEEDED_TO_BUILD = ("inventory", "charges")


def examine(folder: Path) -> list[Finding]:
    """Look at Python, DuckDB and its extensions, the configuration, the disk and the lake, in that order."""
    findings = [Finding("ok", "python", f"{platform.python_version()} on {sys.platform}"), *_extensions()]
    try:
        workspace = Workspace.at(folder)
    except GputallyError as error:
        return [*findings, Finding("fail", "workspace", str(error))]
    findings.append(
        Finding("ok", "workspace", f"{workspace.folder.resolve()}, currency {workspace.config.ledger.currency}")
    )
    findings += _disk(workspace)
    return [*findings, *_lake(workspace)]


def _extensions() -> Iterator[Finding]:
    yield Finding("ok", "duckdb", metadata.version("duckdb"))
    for name in EMBEDDED:
        try:
            extension_path(name)
        except GputallyError as error:
            yield Finding("fail", f"extension {name}", str(error))
        else:
            yield Finding("ok", f"extension {name}", "found, no download needed")


def _disk(workspace: Workspace) -> Iterator[Finding]:
    place = next(path for path in (workspace.data, *workspace.data.parents) if path.exists())
    free = shutil.disk_usage(place).free
    level: Level = "warn" if free < LOW_DISK_BYTES else "ok"
    yield Finding(level, "disk", f"{free / 1024**3:.1f} GiB free for the lake")


def _lake(workspace: Workspace) -> Iterator[Finding]:
    if not workspace.catalog.is_file():
        yield Finding("warn", "lake", "empty: nothing has been loaded yet")
        return
    try:
        with workspace.open_lake(read_only=True) as lake:
            show_current(lake.connection)
            yield Finding("ok", "lake", f"snapshot {lake.snapshot()}")
            yield from _loaded(lake.connection)
            yield from _watched(lake.connection)
            yield from _periods(lake.connection)
    except GputallyError as error:
        yield Finding("fail", "lake", str(error))


def _loaded(con: Connection) -> Iterator[Finding]:
    rows = con.execute(
        "SELECT kind, count(*), sum(row_count), sum(rounded_row_count) FROM current_snapshot GROUP BY kind"
    ).fetchall()
    found = {kind: (files, count, rounded) for kind, files, count, rounded in rows}
    for kind in KINDS:
        if kind in found:
            files, count, rounded = found[kind]
            note = f", {rounded:,} rows with money finer than 12 decimals, rounded there" if rounded else ""
            yield Finding("ok", f"loaded {kind}", f"{count:,} rows in {files} file(s){note}")
        elif kind in NEEDED_TO_BUILD:
            yield Finding("warn", f"loaded {kind}", "none: nothing can be priced without it")


def _watched(con: Connection) -> Iterator[Finding]:
    """What agents have sent; nothing is said where there are none."""
    row = con.execute(
        """
        SELECT
            count(DISTINCT (n.cluster, n.node)), count(DISTINCT n.device_no),
            make_timestamptz(max(w.day * 86400::BIGINT + w.second) * 1000000)
        FROM lake.device_window AS w JOIN lake.device_number AS n ON n.device_no = w.dh // 24
        WHERE w.day >= (SELECT max(day) - 1 FROM lake.device_window)
        """
    ).fetchone()
    if row and row[0]:
        nodes, devices, newest = row
        yield Finding(
            "ok", "agents", f"{devices:,} devices on {nodes:,} nodes, newest window {newest:%Y-%m-%d %H:%M} UTC"
        )


def _periods(con: Connection) -> Iterator[Finding]:
    rows = con.execute(
        """
        SELECT b.period, max(b.version), (SELECT count(*) FROM lake.gap AS g WHERE g.period = b.period)
        FROM lake.build AS b GROUP BY b.period ORDER BY b.period
        """
    ).fetchall()
    for period, version, gaps in rows:
        level: Level = "warn" if gaps else "ok"
        yield Finding(
            level,
            f"period {period}",
            f"published, v{version}, {gaps} gap(s): see `gputally check {period} --strict`"
            if gaps
            else f"published, v{version}, no gaps",
        )
