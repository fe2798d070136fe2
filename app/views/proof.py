"""The proof behind the month: from the invoice to the statements, what stayed unexplained, and the file to book."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import text
from app.export_link import export_address
from app.frame import rows_of
from app.tables import Column, show_table

if TYPE_CHECKING:
    from app.frame import Page


def show_bridge(page: Page) -> None:
    """Draw the invoice term by term, and by which policy each pool is shared."""
    st.subheader("From the invoice to the statements", anchor=False)
    for row in rows_of(page.ask("bridge")):
        currency = row["currency"]
        terms = [
            ("Sum of statement lines", row["statement_total"]),
            *([("of them tax that only the invoice states", row["invoice_tax"])] if row["invoice_tax"] else []),
            ("Change in prepaid: paid and not yet consumed", row["prepaid_change"]),
            ("On the invoice, absent from the export (tax)", row["absent_from_export"]),
            ("Rounding below the minor unit", row["rounding"]),
            ("Not explained", row["difference"]),
        ]
        show_table(
            [Column("Term"), Column("Amount", currency, number=True)],
            [[name, text.amount(value, currency)] for name, value in terms],
            caption=f"Issuer {row['issuer']}: {text.count(row['charge_count'], 'charge', 'charges')} "
            f"worth {text.money(row['billed_total'], currency)}",
            footer=["Invoice total", text.amount(row["invoice_total"], currency)],
        )
    policies = rows_of(page.ask("pool_policy"))
    if policies:
        show_table(
            [Column("Pool"), Column("Kind of cost"), Column("Policy"), Column("Shared by", "teams", number=True)],
            [[row["pool"], row["kind"].replace("_", " "), row["policy"], f"{row['team_count']:,}"] for row in policies],
            caption="Who pays for what nobody held",
        )


def show_gaps(page: Page) -> None:
    """Draw what the build could not explain, by kind and reason."""
    st.subheader("What could not be priced, matched or mapped", anchor=False)
    gaps = rows_of(page.ask("gap_reason"))
    if not gaps:
        st.markdown("Nothing: every charge, owner and quota of the month was explained.")
        return
    show_table(
        [
            Column("Kind"),
            Column("Reason"),
            Column("First subject"),
            Column("Count", number=True),
            Column("GPU time", "GPU-hours", number=True),
            Column("Amount", number=True),
        ],
        [
            [
                gap["kind"].replace("_", " "),
                gap["reason"],
                gap["first_subject"],
                f"{gap['gap_count']:,}",
                text.gpu_hours(gap["gpu_microseconds"]),
                text.money(gap["amount"], gap["currency"]) if gap["currency"] else text.NOT_KNOWN,
            ]
            for gap in gaps
        ],
        caption="Counted and named, never silently zero; n/a: this kind has no such measure",
    )


def show_export(page: Page) -> None:
    """Draw the link to the file that finance books."""
    address = export_address(page.scope, page.build)
    if address:
        st.link_button(f"Download the finance CSV of {page.month}", address, icon=":material/download:")
        st.caption(f"The same bytes as `gputally export {page.build.period}`. The link works for 15 minutes.")
