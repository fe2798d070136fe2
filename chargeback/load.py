"""Load input files into the lake: all of them or none, each content once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chargeback.kinds import CONTROL_FIELDS, KINDS
from chargeback.sources.focus import CHARGES
from chargeback.sources.intake import ChargeOptions, QuarantinedError, stage_export, take
from chargeback.sources.judging import sentence
from chargeback.sources.providers import PROVIDERS
from chargeback.tokens.staging import stage_log
from fleet.errors import GputallyError, InputError, Problem, quoted
from store.intake import Staged, stage
from store.snapshots import Loaded, is_current, land, show_current
from store.sqlfile import SqlFile, package_files, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from chargeback.sources.export import Export
    from chargeback.sources.intake import Verdict
    from chargeback.tokens.usage import LogOptions
    from store.columns import FileSpec
    from store.lake import Connection, Lake

MAX_PROBLEMS_PER_RULE = 20


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How files are read, beyond their kind."""

    provider: str = "focus"
    """Whose charges they are (see `chargeback.sources.providers`)."""
    time_zone: str | None = None
    """IANA zone of times that carry none."""
    ignored_columns: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    """Identities of charges that may be broken."""
    log: LogOptions | None = None
    """How a token ledger of a foreign format is read; None = the files have the columns of their kind."""

    def as_identity(self, spec: FileSpec) -> Mapping[str, str]:
        """What makes the same bytes of this kind mean something else, for the snapshot id."""
        if self.log is not None:
            return self.log.as_identity()
        return {
            "provider": "focus",  # of every kind, since before there were others
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
    _refuse_doubles([path.name for path in paths])
    if kind == CHARGES.kind:
        return [verdict.loaded for verdict in load_charges(lake, paths, options, progress=progress)]
    spec = KINDS[kind]

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


def load_charges(
    lake: Lake,
    paths: Sequence[Path],
    options: LoadOptions | None = None,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Verdict]:
    """Load files of charges as `options.provider` delivers them: all deliveries or none.

    InputError for what cannot be read; QuarantineError if a delivery breaks an identity: that is recorded, and what
    its source said before stays current.
    """
    options = options or LoadOptions()
    exports = PROVIDERS[options.provider](lake.connection, paths)
    return load_exports(lake, exports, options, progress=progress)


def load_exports(
    lake: Lake,
    exports: Sequence[Export],
    options: LoadOptions | None = None,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Verdict]:
    """Load deliveries of charges in one transaction, as `load_charges` does."""
    options = options or LoadOptions()
    how = ChargeOptions(options.time_zone, options.ignored_columns, options.accepted)
    _refuse_doubles([export.source for export in exports])
    # A single delivery is staged before the transaction: others may write to the lake meanwhile, and DuckDB is faster
    # with tables that are committed. Several would need the memory for all of them at once.
    only = lake.prepare(lambda con: stage_export(con, exports[0], how)) if len(exports) == 1 else None

    def change(con: Connection) -> list[Verdict]:
        verdicts = []
        for export in exports:
            progress(export.source)
            show_current(con)
            staged = only or stage_export(con, export, how)
            verdicts.append(take(con, export, staged, how, lambda staged: _judge_rows(con, CHARGES, staged)))
        return verdicts

    try:
        return lake.write(change)
    except QuarantinedError as error:
        lake.write(error.record)
        raise QuarantineError(error.verdict) from None


class QuarantineError(GputallyError):
    """A delivery of charges breaks an identity, so it does not count; `verdict` says all that was found."""

    def __init__(self, verdict: Verdict) -> None:
        """Say the first broken row of each identity that refuses it."""
        self.verdict = verdict
        said = "; ".join(
            f"{found.identity} in {found.row_count} row{'' if found.row_count == 1 else 's'}"
            f" (row {found.rows[0].source_row}: {sentence(found.rows[0])})"
            for found in verdict.broken
            if found.severity == "error"
        )
        super().__init__(f"{verdict.loaded.source}: quarantined, what it said before still counts: {said}")


def _refuse_doubles(names: Sequence[str]) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise InputError([Problem(name, "is given twice; sources are told apart by file name") for name in doubled])


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
