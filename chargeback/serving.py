"""What the configuration tells the model about shared model servers: which they are, and how their tokens weigh."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleet.config import Ledger
    from store.lake import Connection


def show_servers(con: Connection, ledger: Ledger) -> None:
    """Show the configured servers, in their order, as temporary table `server_rule`."""
    con.execute(
        "CREATE OR REPLACE TEMP TABLE server_rule "
        "(server_order INTEGER, server VARCHAR, match_namespace VARCHAR, match_workload VARCHAR, "
        "max_running_requests BIGINT)"
    )
    for order, server in enumerate(ledger.servers):
        con.execute(
            "INSERT INTO server_rule VALUES (?, ?, ?, ?, ?)",
            [
                order,
                server.name,
                server.match_namespace or None,
                server.match_workload or None,
                server.max_running_requests or None,
            ],
        )


def show_settings(con: Connection, ledger: Ledger) -> None:
    """Show the one-row temporary table `setting`: what model steps need to know of the configuration.

    The central team, token weights and limits of spare replicas (in millionths), what becomes of tax that only an
    invoice states, and the currency of reports.
    """
    weights, spare = ledger.token_weights, ledger.spare_replicas
    con.execute(
        "CREATE OR REPLACE TEMP TABLE setting AS SELECT ? AS central_team, CAST(? AS BIGINT) AS input_weight, "
        "CAST(? AS BIGINT) AS cached_input_weight, CAST(? AS BIGINT) AS output_weight, ? AS weight_basis, "
        "CAST(? AS BIGINT) AS spare_running_millionths, CAST(? AS BIGINT) AS spare_kv_millionths, "
        "CAST(? AS BIGINT) AS spare_observed_days, ? AS invoice_tax, ? AS reporting_currency",
        [
            ledger.central_team,
            *weights.millionths(),
            ledger.weight_basis,
            *spare.millionths(),
            spare.observed_days,
            ledger.invoice_tax,
            ledger.currency,
        ],
    )
