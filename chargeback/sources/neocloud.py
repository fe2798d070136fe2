"""Bills of GPU clouds without an export of their own (CoreWeave, Lambda, RunPod, Verda), and any invoice typed by hand.

One line of the invoice is one row. What was paid ahead of use (a balance that is topped up, a reserved contract) and
what was used from it meet in `commitment_ref`; `balance` there is the provider's prepaid balance. RunPod's answers
about billing, saved as JSON, are read too. Verda's API tells the balance that is left and no usage: its bills are such
rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chargeback.sources.export import Dialect, Export, Part
from chargeback.sources.runpod import is_json, write_invoice_rows
from store.columns import Column, FileSpec, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.lake import Connection

INVOICE_LINES: Final = FileSpec(
    kind="charges",
    table="charge",
    columns=(
        Column("provider", "provider", Kind.NAME, required=True, filled=True),
        Column("invoice_id", "invoice_id", Kind.TEXT),
        Column("period", "period", Kind.MONTH, required=True, filled=True),
        Column("charge_start", "charge_start", Kind.TIME),
        Column("charge_end", "charge_end", Kind.TIME),
        Column("sku", "sku", Kind.TEXT),
        Column("description", "description", Kind.TEXT),
        Column("qty", "quantity", Kind.MONEY),
        Column("unit", "unit", Kind.TEXT),
        Column("unit_price", "unit_price", Kind.MONEY),
        Column("amount", "amount", Kind.MONEY, required=True, filled=True),
        Column("currency", "currency", Kind.CURRENCY, required=True, filled=True),
        Column("tax", "tax", Kind.MONEY),
        Column("resource_ref", "resource_ref", Kind.TEXT),
        Column("commitment_ref", "commitment_ref", Kind.TEXT),
        Column("category", "category", Kind.TEXT),
        Column("account", "account", Kind.TEXT),
    ),
)
NEOCLOUD: Final = Dialect("neocloud", INVOICE_LINES, "neocloud")
RUNPOD: Final = Dialect("neocloud", INVOICE_LINES, "neocloud", rewrite=write_invoice_rows)


def exports(_: Connection, paths: Sequence[Path]) -> tuple[Export, ...]:
    """Each file is a delivery of its own: a later file of the same name replaces it."""
    return tuple(Export(path.name, RUNPOD if is_json(path) else NEOCLOUD, (Part(path.name, path),)) for path in paths)
