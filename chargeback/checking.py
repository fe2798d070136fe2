"""Check a published period: its ledger against today's inputs, every invariant again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chargeback.build import parameters, prepare, run_model
from chargeback.checks import failed_checks
from chargeback.published import published_build
from store.period_rows import differing_rows, show_rows
from store.sqlfile import package_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.config import Config
    from store.lake import Connection

COMPARED = ("posting", "statement_line", "bridge", "gap", "prepaid", "invoice_total")
"""Published tables that take the place of the recomputed ones before the checks run."""


def check_period(
    con: Connection,
    config: Config,
    period: str,
    *,
    strict: bool,
    progress: Callable[[str], None] = lambda _: None,
) -> list[tuple[str, int, str]]:
    """Failed invariants of the published build of `period`: (check, number of rows, first rows); empty when well.

    The model runs again over the current inputs. Where these are the inputs of the build, every published table must
    equal what comes out; then the published ledger, statement, bridge and gaps replace the results, and every check
    compares the two. `strict` adds the checks that a close asks for, and whether the inputs or
    the configuration have changed since the build. Raises NotBuiltError when the period is not built.
    """
    build = published_build(con, period)
    current_id = prepare(con, config, period)
    run_model(con, period, build["version"], progress=progress)
    values = parameters(period)
    failures = _differences(con, values) if current_id == build["build_id"] else []
    for table in COMPARED:
        show_rows(con, table, period=period)
    progress("checks")
    failures += failed_checks(con, values, strict=strict)
    if strict and current_id != build["build_id"]:
        stale = f"build {build['build_id']} is not of these inputs, configuration and model ({current_id}): build again"
        failures.append(("build_is_current", 1, stale))
    return failures


def _differences(con: Connection, values: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Published tables that are not what the model makes of the same inputs now: somebody wrote to the lake."""
    found = []
    for query in package_files("chargeback", "publish"):
        count = differing_rows(con, query.name, query.text, query.bound(values), period=values["period"])
        if count:
            found.append(("published_equals_rebuild", count, f"table {query.name} differs from a rebuild"))
    return found
