"""Keep a sheet of rows that a provider's API told: written to the cache as a file of its kind, and loaded like one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from chargeback.kinds import CONTROL_FIELDS, KINDS
from chargeback.load import LoadOptions, load_files
from chargeback.sources.sheet import csv_bytes, text_of
from store.snapshots import current_rows, land
from store.staging import stage_rows

if TYPE_CHECKING:
    from chargeback.sources.sheet import Cells, Sheet
    from store.lake import Connection, Lake
    from store.snapshots import Loaded


def keep(lake: Lake, sheet: Sheet, folder: Path) -> Loaded:
    """Write the sheet to `folder` and load it: it replaces an earlier one of its name; known content is left alone.

    InputError when a row is none of its kind; then what was known before stays current.
    """
    rows = sheet.rows if sheet.is_listed_for_good else with_earlier(lake.connection, sheet)
    path = folder / sheet.name
    write_whole(path, csv_bytes([column.name for column in KINDS[sheet.kind].columns], rows))
    if not rows:
        return lake.write(lambda con: _land_nothing(con, sheet, path))
    (loaded,) = load_files(lake, sheet.kind, [path])
    return loaded


def _land_nothing(con: Connection, sheet: Sheet, path: Path) -> Loaded:
    """A provider may well say that there is nothing, where a user's file without rows is a mistake."""
    spec = KINDS[sheet.kind]
    return land(
        con,
        staged=stage_rows(con, path, spec, []),
        kind=spec.kind,
        table=spec.table,
        fields=[column.field for column in spec.unique_fields()],
        options=LoadOptions().as_identity(spec),
        control_field=CONTROL_FIELDS.get(spec.kind),
    )


def with_earlier(con: Connection, sheet: Sheet) -> tuple[Cells, ...]:
    """The sheet's rows, and of the sheet that counts now those that it no longer lists: what is over stays known."""
    spec = KINDS[sheet.kind]
    fields = {column.field: column.name for column in spec.columns}
    known = [
        {fields[field]: value for field, value in row.items()}
        for row in current_rows(con, spec.table, sheet.name, list(fields))
    ]
    told = {_key(sheet, row) for row in sheet.rows}
    return (*sheet.rows, *(row for row in known if _key(sheet, row) not in told))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, whoever else writes it at the time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(content)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _key(sheet: Sheet, row: Cells) -> tuple[str, ...]:
    return tuple(text_of(row.get(column)) for column in sheet.key)
