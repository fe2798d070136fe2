"""Take deliveries of charges into the lake: staged, mapped, judged, and either counted whole or quarantined whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from chargeback.sources.judging import Broken, broken_identities, findings_of
from store.deliveries import map_rows, money_of, stage_parts
from store.snapshots import Delivery, Loaded, is_current, land, quarantine
from store.sqlfile import materialise, package_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from chargeback.sources.export import Dialect, Export, Part
    from store.intake import Staged
    from store.lake import Connection


@dataclass(frozen=True, slots=True)
class ChargeOptions:
    """How charges are read, beyond their provider."""

    time_zone: str | None = None
    ignored_columns: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    """Identities that may be broken: who loads has looked, and answers for it."""

    def as_identity(self, export: Export) -> dict[str, str]:
        """What makes the same bytes mean something else, for the snapshot id."""
        dialect = export.dialect
        return {
            "provider": dialect.provider,
            # The first dialect is named by its provider alone, as before there were others.
            **({} if dialect.mapping == dialect.provider else {"dialect": dialect.mapping}),
            "time_zone": dialect.spec.zone or self.time_zone or "",
            "ignored": ",".join(sorted(set(self.ignored_columns))),
            **({"accepted": ",".join(sorted(set(self.accepted)))} if self.accepted else {}),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a delivery: how many rows and how much money, and which identities it breaks."""

    loaded: Loaded
    broken: tuple[Broken, ...] = ()
    sums: tuple[tuple[Any, ...], ...] = ()
    """Currency, category, whether they repeat money of other rows, row count, billed and effective cost."""


class QuarantinedError(Exception):
    """A delivery breaks an identity of severity `error`: the load is rolled back, and this is what to record of it."""

    def __init__(self, verdict: Verdict, record: Callable[[Connection], None]) -> None:
        """Keep the verdict, and what writes it into the lake."""
        super().__init__(verdict.loaded.source)
        self.verdict, self.record = verdict, record


def take(
    con: Connection, export: Export, staged: Staged, options: ChargeOptions, refuse: Callable[[Staged], None]
) -> Verdict:
    """Judge a delivery that `stage_export` has staged, and count it, inside the caller's write transaction.

    `refuse` raises InputError for rows that have no meaning at all. QuarantinedError if it may not count.
    """
    identity = options.as_identity(export)
    delivery = Delivery(export.dialect.provider, export.export_name, export.period, export.execution_id)
    is_known = is_current(con, staged, "charges", identity)
    if not is_known:
        refuse(staged)
    broken = () if is_known else broken_identities(con, options.accepted)
    found = findings_of(broken)
    if any(one.severity == "error" for one in broken):
        verdict = Verdict(Loaded(staged.file, "", staged.row_count, "quarantined"), broken, money_of(con, staged))
        record = partial(quarantine, staged=staged, kind="charges", options=identity, delivery=delivery, findings=found)
        raise QuarantinedError(verdict, record)
    loaded = land(
        con, staged=staged, kind="charges", table="charge", fields=None, options=identity,
        control_field="billed_cost", delivery=delivery, findings=found,
    )  # fmt: skip
    return Verdict(loaded, broken, money_of(con, staged))


def stage_export(con: Connection, export: Export, options: ChargeOptions) -> Staged:
    """Stage all files of a delivery and map them to charges, as temporary table `staged_charge`."""
    dialect = export.dialect
    sql = {file.name: file for file in package_files("chargeback", "sources")}
    with TemporaryDirectory() as folder:
        files = [(part.name, _readable(part, dialect, Path(folder))) for part in export.parts]
        staged = stage_parts(
            con, export.source, files, dialect.spec, zone=options.time_zone, ignored=options.ignored_columns
        )
    for step in dialect.steps:
        materialise(con, sql[step], {})
    return map_rows(con, staged, sql[dialect.mapping], "charge")


def _readable(part: Part, dialect: Dialect, folder: Path) -> Path:
    """The part itself, or in `folder` what the dialect makes of it, under the same name."""
    if dialect.rewrite is None:
        return part.path
    place = folder / part.path.name
    dialect.rewrite(part.path, place)
    return place
