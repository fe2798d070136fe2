"""Build a period: run the cost model, hold it to its checks, and publish everything in one lake commit.

A period's tables are a pure function of its inputs, the configuration and the model. The build id is a hash of exactly
these, so building again without a change publishes nothing, and two machines agree on the id.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

from chargeback.checks import failed_checks
from chargeback.publishing import publish
from chargeback.reporting import convert_statement
from chargeback.serving import show_servers, show_settings
from chargeback.statement import book_statement
from fleet.config import config_fingerprint
from fleet.errors import CheckError
from fleet.money import minor_unit_digits
from fleet.period import month
from store.snapshots import show_current
from store.sqlfile import SqlFile, materialise, package_files
from store.telemetry_views import show_telemetry, stored_counts

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.config import Config
    from store.lake import Connection, Lake

SMALL_INPUTS = ("node", "device", "team_rule", "quota", "invoice", "asset")
"""Inputs that several steps read and that fit in memory: read from the lake once per build."""
STATEMENT_STEP = "statement_exact"
"""After this step the statement is rounded and booked; later steps read it."""


@dataclass(frozen=True, slots=True)
class Build:
    """One published build of a period."""

    period: str
    build_id: str
    version: int
    is_new: bool
    """False when the same build was already published and nothing was written."""


def build_period(lake: Lake, config: Config, period: str, *, progress: Callable[[str], None] = lambda _: None) -> Build:
    """Build and publish `period` ("YYYY-MM").

    Raises CheckError when an invariant does not hold: then nothing is published and the last build stays.
    """
    con = lake.connection
    input_snapshot = lake.snapshot()
    build_id = prepare(con, config, period)
    known = con.execute(
        "SELECT build_id, version FROM lake.build WHERE period = ? ORDER BY version DESC", [period]
    ).fetchall()
    if known and known[0][0] == build_id:
        return Build(period, build_id, int(known[0][1]), is_new=False)
    version = int(known[0][1]) + 1 if known else 1
    run_model(con, period, version, progress=progress)
    failures = failed_checks(con, parameters(period), strict=False)
    if failures:
        raise CheckError(failures)
    progress("publish")
    record = {
        "period": period,
        "build_id": build_id,
        "version": version,
        "program_version": metadata.version("gputally"),
        "config_sha256": config_fingerprint(config),
        "model_sha256": model_fingerprint(),
        "inputs": json.dumps(_inputs(con), sort_keys=True),
        "input_lake_snapshot": input_snapshot,
    }
    lake.write(lambda writing: publish(writing, record, parameters(period)))
    return Build(period, build_id, version, is_new=True)


def prepare(con: Connection, config: Config, period: str) -> str:
    """Show the current inputs and settings as temporary tables; return the id of the build they lead to."""
    show_current(con, copied=SMALL_INPUTS)
    show_telemetry(con)
    for statement in _macros():
        con.execute(statement)
    con.execute("CREATE OR REPLACE TEMP TABLE policy (kind VARCHAR, policy VARCHAR)")
    con.executemany("INSERT INTO policy VALUES (?, ?)", [[kind, pool.policy] for kind, pool in config.pools.items()])
    show_settings(con, config.ledger)
    show_servers(con, config.ledger)
    _show_minor_units(con)
    _show_quota_sources(con, config.ledger.quota_source)
    parts = [period, metadata.version("gputally"), config_fingerprint(config), model_fingerprint(), _inputs(con)]
    parts += [_deciding_quota_file(con), _telemetry(con, period)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def run_model(con: Connection, period: str, version: int, *, progress: Callable[[str], None] = lambda _: None) -> None:
    """Run every model step into temporary tables named like the steps; `prepare` must have run."""
    values = parameters(period)
    for step in model_steps():
        progress(step.name)
        materialise(con, step, values)
        if step.name == STATEMENT_STEP:
            book_statement(con, period, version)
            convert_statement(con, period)


def parameters(period: str) -> dict[str, Any]:
    """Values of the parameters that model and check files may use."""
    span = month(period)
    return {"period": period, "period_start": span.start, "period_end": span.end}


def model_steps() -> list[SqlFile]:
    """The model's SQL files in order, without the macros."""
    return [step for step in package_files("chargeback", "model") if step.name != "macros"]


def model_fingerprint() -> str:
    """SHA-256 over every SQL file that decides amounts."""
    digest = hashlib.sha256()
    for step in package_files("chargeback", "model"):
        digest.update(step.name.encode() + b"\0" + step.text.encode() + b"\0")
    return digest.hexdigest()


def step_count() -> int:
    """How many times `progress` is called in a build, for a progress bar."""
    return len(model_steps()) + 1


def _macros() -> list[str]:
    text = next(step.text for step in package_files("chargeback", "model") if step.name == "macros")
    return [statement for statement in text.split(";") if "CREATE" in statement]


def _inputs(con: Connection) -> list[list[str]]:
    rows = con.execute("SELECT kind, source, snapshot_id, file_sha256 FROM current_snapshot ORDER BY 1, 2").fetchall()
    return [[str(value) for value in row] for row in rows]


def _deciding_quota_file(con: Connection) -> list[str]:
    """Part of a build's identity: where the configuration names none, it hangs on the order of loading."""
    return [str(source) for (source,) in con.execute("SELECT source FROM quota_source WHERE decides").fetchall()]


def _telemetry(con: Connection, period: str) -> list[list[str]]:
    """Part of a build's identity: how many rows agents have brought for each day of the period, by table."""
    span = month(period)
    first_day, end_day = (int(moment.timestamp()) // 86400 for moment in (span.start, span.end))
    return [[str(value) for value in row] for row in stored_counts(con, first_day, end_day - 1)]


def _show_minor_units(con: Connection) -> None:
    con.execute("CREATE OR REPLACE TEMP TABLE minor_unit (currency VARCHAR, minor_unit DECIMAL(18, 6))")
    found = con.execute(
        "SELECT billing_currency FROM charge UNION SELECT currency FROM invoice "
        "UNION SELECT coalesce(currency, reporting_currency) FROM asset CROSS JOIN setting"
    ).fetchall()
    for (currency,) in found:
        con.execute(
            "INSERT INTO minor_unit VALUES (?, CAST(? AS DECIMAL(18, 6)))",
            [currency, f"1e-{minor_unit_digits(currency)}"],
        )


def _show_quota_sources(con: Connection, decider: str) -> None:
    """The configured quota file decides, else the one that was loaded first of all."""
    con.execute(
        """
        CREATE OR REPLACE TEMP TABLE quota_source AS
        SELECT source, row_number() OVER (ORDER BY source <> $decider, min(loaded_at), source) = 1 AS decides
        FROM lake.snapshot WHERE kind = 'quotas' GROUP BY source
        """,
        {"decider": decider},
    )
