"""Show stored telemetry to readers under the names of its tables, with times and device names spelt out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from store.sqlfile import package_files
from store.sqltext import identifier

if TYPE_CHECKING:
    from store.lake import Connection

COUNTS: Final = """
    SELECT 'device_window' AS name, day, count(*)
    FROM lake.device_window WHERE day BETWEEN $first AND $last GROUP BY day
    UNION ALL
    SELECT 'held_window' AS name, day, count(*)
    FROM lake.held_window WHERE day BETWEEN $first AND $last GROUP BY day
    UNION ALL
    SELECT 'engine_window' AS name, day, count(*)
    FROM lake.engine_window WHERE day BETWEEN $first AND $last GROUP BY day
    UNION ALL
    SELECT 'engine_histogram' AS name, day, count(*)
    FROM lake.engine_histogram WHERE day BETWEEN $first AND $last GROUP BY day
    ORDER BY name, day
"""


def show_telemetry(con: Connection) -> None:
    """Make temporary views of all tables that agents send, under the names of those.

    Windows and holdings carry `day` (whole days since 1970, UTC): a condition on it reads the files of those days only.
    A batch brings its own rows, so a window that an agent's restart cut in two is two rows: add them up.
    """
    for view in package_files("store", "views"):
        con.execute(f"CREATE OR REPLACE TEMP VIEW {identifier(view.name)} AS {view.text}")


def stored_counts(con: Connection, first_day: int, last_day: int) -> list[tuple[str, int, int]]:
    """(table, day, rows) of the windows and holdings of some days, both ends included; days count from 1970.

    Rows are only ever added, and those of a published month are never deleted: where these counts are the same, so are
    the rows. The names of batches say less: maintenance joins and forgets them.
    """
    found = con.execute(COUNTS, {"first": first_day, "last": last_day}).fetchall()
    return [(str(table), int(day), int(count)) for table, day, count in found]
