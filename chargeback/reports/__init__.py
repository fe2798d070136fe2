"""Named questions about a published period: the only way in which portal and command line read the lake.

Each is a SQL file of this folder. Its header says for whom it may run (`Scope`): `team` reports filter by the teams of
whoever asks, `fleet` reports hold nothing that belongs to a single team, `finance` reports are for those who see all
teams. Rows come as Arrow, so that money stays decimal all the way.
"""

from __future__ import annotations

import functools
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fleet.errors import GputallyError, quoted
from store.sqlfile import SqlFile, package_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from store.lake import Connection

ReportScope: TypeAlias = Literal["team", "fleet", "finance"]
SCOPES: tuple[ReportScope, ...] = ("team", "fleet", "finance")
TEAM_FILTER = "list_contains($teams, "
"""What every report of scope `team` contains."""


@functools.cache
def reports() -> Mapping[str, SqlFile]:
    """All reports by name."""
    return MappingProxyType({file.name: file for file in package_files("chargeback", "reports")})


def report(name: str) -> SqlFile:
    """The report of that name; GputallyError if there is none."""
    try:
        return reports()[name]
    except KeyError:
        raise GputallyError(f"there is no report {quoted(name)}") from None


def report_scope(file: SqlFile) -> ReportScope:
    """For whom a report may run; GputallyError if its header does not say."""
    scope = file.header.get("Scope", "")
    if scope not in SCOPES:
        raise GputallyError(f"report {file.name}: its header needs `Scope: team`, `fleet` or `finance`")
    return scope


def run_report(cursor: Connection, name: str, values: Mapping[str, Any]) -> pa.Table:
    """Run a report and return its rows; amounts are decimal128, never floats.

    `values` gives every `$parameter` that the report uses (KeyError otherwise) and may hold more. Who may see what is
    the caller's to decide: `all_teams` and `teams` are parameters like the others.
    """
    file = report(name)
    return cursor.execute(file.text, file.bound(values)).to_arrow_table()
