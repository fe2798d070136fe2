"""The portal's only door to the lake: named, scoped questions whose answers are immutable Arrow tables.

Answers are cached by scope, build, question and parameters: never by the content of a table, of which a hash may see
only a sample. A build that was replaced while a page was being drawn is noticed, so that no page mixes two builds.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from app.access import NotAllowedError, Scope
from chargeback.api_prices import PriceList, read_api_prices
from chargeback.reports import report, report_scope, run_report
from fleet.config import load_config
from fleet.errors import GputallyError, quoted
from fleet.money import minor_unit_digits
from store.lake import Lake, memory

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa

CACHED_ANSWERS = 512
Stamp: TypeAlias = tuple[object, ...]


class ReplacedBuildError(GputallyError):
    """A newer build was published after the page had begun to read; reading again shows it."""


@dataclass(frozen=True, slots=True)
class Build:
    """The published build that a page shows."""

    period: str
    build_id: str
    version: int
    built_at: datetime
    program_version: str


class Reports:
    """One workspace's reports, shared by all sessions of the process; every question opens its own cursor."""

    def __init__(self, workspace: Path) -> None:
        """Open the lake of a workspace for reading; GputallyError when there is none."""
        self.config = load_config(workspace)
        lake = self.config.lake
        self._catalog = workspace / lake.catalog
        self._lake = Lake.open(self._catalog, workspace / lake.data, read_only=True)
        self._opened = self._stamp()[0]
        self._answer = functools.lru_cache(maxsize=CACHED_ANSWERS)(self._run)
        self._builds: tuple[Stamp, tuple[Build, ...]] = (("never",), ())
        self._workspace = workspace
        self._prices: tuple[Stamp, PriceList] = (("never",), {})

    def builds(self) -> tuple[Build, ...]:
        """The newest build of every published period, the newest period first; read again when the lake changed."""
        stamp, builds = self._stamp(), self._builds[1]
        if stamp != self._builds[0]:
            rows = self._read("published_period", {}).to_pylist()
            builds = tuple(Build(**row) for row in rows)
            self._builds = (stamp, builds)
        return builds

    def sources(self) -> list[dict[str, Any]]:
        """What has been loaded, by kind of file."""
        rows: list[dict[str, Any]] = self._read("loaded_source", {}).to_pylist()
        return rows

    def ask(self, scope: Scope, build: Build, name: str, **parameters: object) -> pa.Table:
        """The answer to a named question about a build, as `scope` may see it.

        NotAllowedError when the scope may not ask; ReplacedBuildError when the build is no longer the published one.
        """
        if report_scope(report(name)) == "finance" and not scope.sees_all:
            raise NotAllowedError("only the finance and platform roles may see this")
        return self._answer(scope, build, name, tuple(sorted(parameters.items())))

    def ask_of_team(self, scope: Scope, build: Build, team: str, name: str, **parameters: object) -> pa.Table:
        """The answer about one team alone; no rows for a team that the scope does not see."""
        only = Scope("team", (team,) if scope.may_see(team) else ())
        return self.ask(only, build, name, **parameters)

    def team_hours(self, scope: Scope, build: Build, currency: str, team: str) -> pa.Table:
        """One team's statement lines by hour."""
        pico = 10 ** (12 - minor_unit_digits(currency))
        return self.ask_of_team(scope, build, team, "team_hour", currency=currency, minor_unit_pico=pico)

    def api_prices(self) -> PriceList | None:
        """The price list of an API that the configuration names; None where it names none.

        GputallyError when it cannot be read. It is read again when the file changes.
        """
        name = self.config.portal.api_prices
        if not name:
            return None
        path = self._workspace / name
        stamp = _stamp_of(path)
        if stamp is None:
            raise GputallyError(f"there is no file {quoted(name)}")
        if stamp != self._prices[0]:
            with memory() as con:
                self._prices = (stamp, read_api_prices(con, path))
        return self._prices[1]

    def is_gone(self) -> bool:
        """Whether the catalog that was opened has been deleted or replaced by another one."""
        return self._stamp()[0] != self._opened

    def _stamp(self) -> Stamp:
        """What changes with every commit: size and time of the catalog and of its write-ahead log."""
        files = (self._catalog, self._catalog.with_name(f"{self._catalog.name}-wal"))
        return tuple(part for path in files for part in _stamp_of(path) or (None,))

    def _run(self, scope: Scope, build: Build, name: str, parameters: tuple[tuple[str, object], ...]) -> pa.Table:
        values = {
            "period": build.period,
            "zone": self.config.ledger.time_zone,
            "all_teams": scope.sees_all,
            "teams": list(scope.teams or ()),
            **dict(parameters),
        }
        return self._read(name, values, build)

    def _read(self, name: str, values: dict[str, Any], build: Build | None = None) -> pa.Table:
        """Read in one transaction, which sees one state of the lake, and make sure that it holds the build meant."""
        cursor = self._lake.cursor()
        try:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            if build:
                found = run_report(cursor, "published_build", values).to_pylist()
                if not found or found[0]["build_id"] != build.build_id:
                    self._builds = (("never",), ())
                    raise ReplacedBuildError(f"a new build of {build.period} was published; reload the page")
            return run_report(cursor, name, values)
        finally:
            cursor.close()


def _stamp_of(path: Path) -> Stamp | None:
    """What changes with every change of a file; None without one."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns
