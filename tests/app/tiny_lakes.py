"""Small months in a lake: two nodes of two GPUs for one day, at 4 USD a node-hour, and whoever holds them."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from chargeback.build import build_period
from chargeback.load import load_files
from fleet.config import TEMPLATE, load_config
from store.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PERIOD = "2026-02"
DAY = "2026-02-03"
NODES = ("node-1", "node-2")
TOTAL = Decimal(4 * 24 * len(NODES))


def tiny_workspace(
    folder: Path,
    holdings: Sequence[Mapping[str, str]],
    *,
    settings: Mapping[str, str] | None = None,
    teams: Sequence[Mapping[str, str]] = (),
    tokens: Sequence[Mapping[str, str]] = (),
    build: bool = True,
) -> Path:
    """Make a workspace and load a day of it; holdings without times cover the day, without node the pool."""
    text = TEMPLATE
    for old, new in (settings or {}).items():
        assert old in text
        text = text.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gputally.toml").write_text(text, encoding="utf-8")
    config = load_config(folder)
    files = {"inventory": _inventory(), "charges": _charges(), "invoices": _invoices()}
    if holdings:
        files["holdings"] = [
            {"start": f"{DAY}T00:00:00Z", "end": "2026-02-04T00:00:00Z", "pool": "p", "gpus": "1"} | dict(row)
            for row in holdings
        ]
    if teams:
        files["teams"] = [{"team": "", "cost_centre": "", "gl_account": ""} | dict(row) for row in teams]
    if tokens:
        files["tokens"] = [
            {"model": "m", "hour_start": f"{DAY}T00:00:00Z", "requests": "1", "input_tokens": "", "output_tokens": ""}
            | dict(row)
            for row in tokens
        ]
    with Lake.open(folder / config.lake.catalog, folder / config.lake.data) as lake:
        for kind, rows in files.items():
            load_files(lake, kind, [_written(folder / f"{kind}.csv", rows)])
        if build:
            build_period(lake, config, PERIOD)
    return folder


def empty_workspace(folder: Path) -> Path:
    """A workspace with a lake in which nothing is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gputally.toml").write_text(TEMPLATE, encoding="utf-8")
    config = load_config(folder)
    with Lake.open(folder / config.lake.catalog, folder / config.lake.data):
        return folder


def _written(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def _inventory() -> list[dict[str, str]]:
    return [
        {
            "cluster": "c", "node": node, "gpu_count": "2", "valid_from": f"{DAY}T00:00:00Z",
            "valid_to": "2026-02-04T00:00:00Z", "pool": "p", "resource_id": node, "gpu_model": "T4",
        }
        for node in NODES
    ]  # fmt: skip


def _charges() -> list[dict[str, str]]:
    return [
        {
            "InvoiceIssuerName": "ACME", "BillingAccountId": "1", "InvoiceId": "i-1",
            "BillingPeriodStart": "2026-02-01T00:00:00Z", "BillingPeriodEnd": "2026-03-01T00:00:00Z",
            "ChargePeriodStart": f"{DAY}T00:00:00Z", "ChargePeriodEnd": "2026-02-04T00:00:00Z",
            "ChargeCategory": "Usage", "BilledCost": "96.00", "EffectiveCost": "96.00", "BillingCurrency": "USD",
            "ResourceId": node, "ServiceName": "Compute",
        }
        for node in NODES
    ]  # fmt: skip


def _invoices() -> list[dict[str, str]]:
    return [{"issuer": "ACME", "invoice_id": "i-1", "period": PERIOD, "currency": "USD", "total": f"{TOTAL}.00"}]
