"""Load input files into the lake: all of them or none, each content once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chargeback.kinds import CONTROL_FIELDS, KINDS
from chargeback.tokens.staging import stage_log
from fleet.errors import InputError, Problem, quoted
from store.intake import Staged, stage
from store.snapshots import Loaded, is_current, land, show_current
from store.sqlfile import SqlFile, package_files, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from chargeback.tokens.usage import LogOptions
    from store.columns import FileSpec
    from store.lake import Connection, Lake

MAX_PROBLEMS_PER_RULE = 20


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How files are read, beyond their kind."""

    provider: str = "focus"
    """Dialect of a charges file. Only `focus` so far."""
    time_zone: str | None = None
    """IANA zone of times that carry none."""
    ignored_columns: tuple[str, ...] = ()
    log: LogOptions | None = None
    """How a token ledger of a foreign format is read; None = the files have the columns of their kind."""

    def as_identity(self, spec: FileSpec) -> Mapping[str, str]:
        """What makes the same bytes of this kind mean something else, for the snapshot id."""
        if self.log is not None:
            return self.log.as_identity()
        return {
            "provider": self.provider,
            "time_zone": spec.zone or self.time_zone or "",
            "ignored": ",".join(sorted(set(self.ignored_columns))),
        }


def load_files(
    lake: Lake,
    kind: str,
    paths: Sequence[Path],
    options: LoadOptions | None = None,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Loaded]:
    """Load `paths` as `kind` in one transaction; a problem in any file leaves nothing behind.

    A file replaces what an earlier file of the same name said; content that is already current is left alone.
    Raises InputError with the problems of the first bad file.
    """
    options = options or LoadOptions()
    spec = KINDS[kind]
    names = [path.name for path in paths]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError([Problem(name, "is given twice; sources are told apart by file name") for name in doubled])

    def change(con: Connection) -> list[Loaded]:
        loaded = []
        for path in paths:
            progress(path.name)
            staged = _stage(con, path, spec, options)
            show_current(con)
            if not is_current(con, staged, spec.kind, options.as_identity(spec)):
                _judge_rows(con, spec, staged)
            loaded.append(_land(con, spec, staged, options))
        return loaded

    return lake.write(change)


def _stage(con: Connection, path: Path, spec: FileSpec, options: LoadOptions) -> Staged:
    if options.log is not None:
        return stage_log(con, path, spec, options.log)
    return stage(con, path, spec, zone=options.time_zone, ignored=options.ignored_columns)


def _judge_rows(con: Connection, spec: FileSpec, staged: Staged) -> None:
    """Run the rules of this kind of file: `inputs/<kind>_<rule>.sql`, each naming the rows that break it."""
    problems: list[Problem] = []
    for rule in package_files("chargeback", "inputs"):
        if rule.header["Kind"] == spec.kind:
            problems += _problems_of(con, rule, staged.file)
    if problems:
        raise InputError(sorted(problems, key=lambda problem: (problem.row or 0, problem.column or "")))


def _problems_of(con: Connection, rule: SqlFile, file: str) -> list[Problem]:
    """Each row of a rule is (source_row, column, value, message); the value is the user's text and is quoted."""
    _, rows = rows_of(con, rule, {"file": file, "max_problems": MAX_PROBLEMS_PER_RULE})
    return [
        Problem(file, message if value is None else f"{quoted(str(value))} {message}", row, column)
        for row, column, value, message in rows
    ]


def _land(con: Connection, spec: FileSpec, staged: Staged, options: LoadOptions) -> Loaded:
    return land(
        con,
        staged=staged,
        kind=spec.kind,
        table=spec.table,
        fields=[column.field for column in spec.unique_fields()],
        options=options.as_identity(spec),
        control_field=CONTROL_FIELDS.get(spec.kind),
    )
