"""Replace a period's published tables by those of a finished build, inside one transaction.

What a table gets is a query over the build's temporary tables, in `publish/<table>.sql`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from store.period_rows import replace_rows
from store.sqlfile import package_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.lake import Connection


def publish(con: Connection, record: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Write one build: replace the period's rows of every published table, add the build record.

    Runs inside the caller's transaction, so readers see the old build or the new one and nothing between.
    """
    for query in package_files("chargeback", "publish"):
        replace_rows(con, query.name, query.text, query.bound(values), period=record["period"])
    con.execute(_BUILD_RECORD, dict(record))


_BUILD_RECORD = """
    INSERT INTO lake.build BY NAME
    SELECT
        $period AS period, $build_id AS build_id, $version AS version, now() AS built_at,
        $program_version AS program_version, $config_sha256 AS config_sha256, $model_sha256 AS model_sha256,
        $inputs AS inputs, $input_lake_snapshot AS input_lake_snapshot
"""
