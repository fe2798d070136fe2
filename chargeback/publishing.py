"""Replace a period's published tables by those of a finished build, inside one transaction."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.lake import Connection

_IN_PERIOD = "hour_number >= seconds_of($period_start) // 3600 AND hour_number < seconds_of($period_end) // 3600"

PUBLISHED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "node_hour": f"SELECT $period AS period, hour_at(hour_number) AS hour_start, * FROM node_hour WHERE {_IN_PERIOD}",
        "held_hour": "SELECT $period AS period, hour_at(hour_number) AS hour_start, * FROM held_hour",
        "queue_hour": "SELECT $period AS period, hour_at(hour_number) AS hour_start, * FROM queue_hour",
        "pending_hour": "SELECT $period AS period, hour_at(hour_number) AS hour_start, * FROM pending_hour",
        "quota_hour": f"SELECT $period AS period, hour_at(hour_number) AS hour_start, * FROM quota_hour WHERE {_IN_PERIOD}",
        "pool_stop": (
            "SELECT $period AS period, to_timestamp(from_s) AS stopped_from, to_timestamp(to_s) AS stopped_to, "
            "CAST(held_before * 0.000001 AS DECIMAL(18, 6)) AS gpus_held_before, * FROM pool_stop"
        ),
        "quota_conflict": (
            "SELECT $period AS period, to_timestamp(conflict_from_s) AS conflict_from, to_timestamp(conflict_to_s) AS conflict_to, "
            "* REPLACE (CAST(gpus * 0.000001 AS DECIMAL(18, 6)) AS gpus, CAST(other_gpus * 0.000001 AS DECIMAL(18, 6)) AS other_gpus) "
            "FROM quota_conflict"
        ),
        "gap": "FROM gap",
        "posting": "FROM posting",
        "pool_weight": (
            "SELECT $period AS period, *, sum(weight) OVER (PARTITION BY currency, pool, kind) AS total_weight FROM pool_weight"
        ),
        "statement_line": "FROM statement_line",
        "bridge": "FROM bridge",
    }
)
"""Lake table -> the query over the build's temporary tables that fills it, column by name."""


def publish(con: Connection, record: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Write one build: delete the period's old rows, insert the new ones, add the build record.

    Runs inside the caller's transaction, so readers see the old build or the new one and nothing between; running it
    again with the same record writes nothing twice.
    """
    for table, query in PUBLISHED.items():
        _replace(con, table, query, values)
    names = ", ".join(record)
    marks = ", ".join(f"${name}" for name in record)
    con.execute(f"INSERT INTO lake.build ({names}, built_at) SELECT {marks}, now()", dict(record))


def _replace(con: Connection, table: str, query: str, values: Mapping[str, Any]) -> None:
    con.execute(f"DELETE FROM lake.{table} WHERE period = ?", [values["period"]])
    columns = [row[0] for row in con.execute(f"DESCRIBE lake.{table}").fetchall()]
    used = {name: value for name, value in values.items() if f"${name}" in query}
    order = next((name for name in ("hour_start", "team", "pool") if name in columns), columns[0])
    con.execute(f"INSERT INTO lake.{table} BY NAME SELECT {', '.join(columns)} FROM ({query}) ORDER BY {order}", used)
