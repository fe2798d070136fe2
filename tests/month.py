"""One month of one node: the smallest inputs that lead to a statement, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargeback.load import load_files
from services.workspace import Workspace, create

if TYPE_CHECKING:
    from pathlib import Path

INVENTORY = "cluster,node,gpu_count,valid_from,valid_to,pool,resource_id"
NODE = "c,n1,8,2026-05-01T00:00:00Z,2026-06-01T00:00:00Z,train,i-1"
HOLDINGS = "start,end,gpus,node,team"
HELD = "2026-05-01T00:00:00Z,2026-05-16T00:00:00Z,8,n1,ann"
CHARGES = (
    "InvoiceIssuerName,BillingAccountId,BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,"
    "ChargeCategory,BilledCost,EffectiveCost,BillingCurrency,ResourceId,InvoiceId"
)
INVOICES = "issuer,invoice_id,period,currency,total"
MONTH = "2026-05-01T00:00:00Z,2026-06-01T00:00:00Z"


def charge(cost: str = "7440", *, category: str = "Usage", span: str = MONTH, resource: str = "i-1") -> str:
    return f"Cloud,acct,{MONTH},{span},{category},{cost},{cost},USD,{resource},inv-1"


def write_lines(path: Path, *lines: str) -> Path:
    """A text file of these lines."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def load_month(folder: Path) -> Path:
    """Make `folder` a workspace with one node, its month's charge, a holding of half the month, and the invoice."""
    create(folder)
    files = {
        "inventory": [INVENTORY, NODE],
        "holdings": [HOLDINGS, HELD],
        "charges": [CHARGES, charge()],
        "invoices": [INVOICES, "Cloud,inv-1,2026-05,USD,7440"],
    }
    with Workspace.at(folder).open_lake() as lake:
        for kind, lines in files.items():
            load_files(lake, kind, [write_lines(folder / f"{kind}.csv", *lines)])
    return folder
