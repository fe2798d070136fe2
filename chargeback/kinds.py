"""The kinds of file that `gputally load` takes: their columns, in the order a user sees them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from chargeback.sources.focus import CHARGES
from store.columns import Column, FileSpec, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

INVENTORY = FileSpec(
    kind="inventory",
    table="node",
    columns=(
        Column("cluster", "cluster", Kind.NAME, required=True, filled=True),
        Column("node", "node", Kind.NAME, required=True, filled=True),
        Column("gpu_count", "gpu_count", Kind.COUNT, required=True, filled=True, minimum=0),
        Column("valid_from", "valid_from", Kind.TIME, required=True, filled=True),
        Column("valid_to", "valid_to", Kind.TIME, required=True),
        Column("pool", "pool", Kind.NAME),
        Column("provider", "provider", Kind.NAME),
        Column("resource_id", "resource_id", Kind.TEXT),
        Column("instance_type", "instance_type", Kind.NAME),
        Column("gpu_model", "gpu_model", Kind.NAME),
        Column("vcpus", "vcpus", Kind.COUNT, minimum=0),
        Column("memory_gib", "memory_gib", Kind.GPUS, minimum=0),
    ),
)
DEVICES = FileSpec(
    kind="devices",
    table="device",
    columns=(
        Column("device", "device", Kind.NAME, required=True, filled=True),
        Column("cluster", "cluster", Kind.NAME, required=True, filled=True),
        Column("node", "node", Kind.NAME, required=True, filled=True),
        Column("valid_from", "valid_from", Kind.TIME, required=True, filled=True),
        Column("valid_to", "valid_to", Kind.TIME, required=True),
        Column("slot", "slot", Kind.COUNT, minimum=0),
        Column("parent", "parent", Kind.NAME),
        Column("gpu_model", "gpu_model", Kind.NAME),
    ),
)
HOLDINGS = FileSpec(
    kind="holdings",
    table="holding",
    columns=(
        Column("start", "held_from", Kind.TIME, required=True, filled=True),
        Column("end", "held_to", Kind.TIME, required=True, filled=True),
        Column("gpus", "gpus", Kind.GPUS, required=True, filled=True, minimum=0),
        Column("device", "device", Kind.NAME),
        Column("node", "node", Kind.NAME),
        Column("pool", "pool", Kind.NAME),
        Column("cluster", "cluster", Kind.NAME),
        Column("team", "team", Kind.NAME),
        Column("namespace", "namespace", Kind.NAME),
        Column("workload", "workload", Kind.NAME),
        Column("owner_kind", "owner_kind", Kind.NAME),
        Column("job_id", "job_id", Kind.NAME),
        Column("user", "user_name", Kind.NAME),
        Column("source", "source", Kind.NAME),
    ),
    one_of=("device", "node", "pool"),
)
DEMAND = FileSpec(
    kind="demand",
    table="demand",
    columns=(
        Column("start", "waited_from", Kind.TIME, required=True, filled=True),
        Column("end", "waited_to", Kind.TIME, required=True, filled=True),
        Column("gpus", "gpus", Kind.GPUS, required=True, filled=True, minimum=0),
        Column("pool", "pool", Kind.NAME, required=True, filled=True),
        Column("team", "team", Kind.NAME),
        Column("namespace", "namespace", Kind.NAME),
        Column("workload", "workload", Kind.NAME),
        Column("job_id", "job_id", Kind.NAME),
        Column("user", "user_name", Kind.NAME),
        Column("source", "source", Kind.NAME),
    ),
)
INVOICES = FileSpec(
    kind="invoices",
    table="invoice",
    columns=(
        Column("issuer", "issuer", Kind.NAME, required=True, filled=True),
        Column("invoice_id", "invoice_id", Kind.NAME, required=True, filled=True),
        Column("period", "period", Kind.MONTH, required=True, filled=True),
        Column("currency", "currency", Kind.CURRENCY, required=True, filled=True),
        Column("total", "total_amount", Kind.MONEY, required=True, filled=True),
        Column("tax", "tax_amount", Kind.MONEY),
        Column("status", "status", Kind.NAME),
    ),
)
QUOTAS = FileSpec(
    kind="quotas",
    table="quota",
    columns=(
        Column("pool", "pool", Kind.NAME, required=True, filled=True),
        Column("team", "team", Kind.NAME, required=True, filled=True),
        Column("gpus", "gpus", Kind.GPUS, required=True, filled=True, minimum=0),
        Column("valid_from", "valid_from", Kind.TIME, required=True, filled=True),
        Column("valid_to", "valid_to", Kind.TIME, required=True),
    ),
)
TEAMS = FileSpec(
    kind="teams",
    table="team_rule",
    columns=(
        Column("team", "team", Kind.NAME, required=True, filled=True),
        Column("cost_centre", "cost_centre", Kind.NAME, required=True),
        Column("gl_account", "gl_account", Kind.NAME, required=True),
        Column("match_namespace", "match_namespace", Kind.NAME),
        Column("match_workload", "match_workload", Kind.NAME),
        Column("match_user", "match_user", Kind.NAME),
        Column("match_account", "match_account", Kind.NAME),
        Column("match_label", "match_label", Kind.NAME),
        Column("valid_from", "valid_from", Kind.TIME),
        Column("valid_to", "valid_to", Kind.TIME),
    ),
)
TOKENS = FileSpec(
    kind="tokens",
    table="token_usage",
    columns=(
        Column("server", "server", Kind.NAME, required=True, filled=True),
        Column("tenant", "tenant", Kind.NAME, required=True),
        Column("model", "model", Kind.NAME, required=True),
        Column("hour_start", "hour_start", Kind.TIME, required=True, filled=True),
        Column("input_tokens", "input_tokens", Kind.LARGE_COUNT, required=True, minimum=0),
        Column("output_tokens", "output_tokens", Kind.LARGE_COUNT, required=True, minimum=0),
        Column("cached_input_tokens", "cached_input_tokens", Kind.LARGE_COUNT, minimum=0),
        Column("requests", "requests", Kind.LARGE_COUNT, minimum=0),
        Column("failed_requests", "failed_requests", Kind.LARGE_COUNT, minimum=0),
        Column("cache_hit_requests", "cache_hit_requests", Kind.LARGE_COUNT, minimum=0),
    ),
)
COMMITMENTS = FileSpec(
    kind="commitments",
    table="commitment",
    columns=(
        Column("commitment_id", "commitment_id", Kind.NAME, required=True, filled=True),
        Column("kind", "kind", Kind.NAME, required=True, filled=True),
        Column("term_start", "term_start", Kind.TIME, required=True, filled=True),
        Column("term_end", "term_end", Kind.TIME, required=True, filled=True),
        Column("upfront", "upfront_amount", Kind.MONEY, required=True),
        Column("recurring_hourly", "recurring_hourly_amount", Kind.MONEY, required=True),
        Column("quantity", "quantity", Kind.GPUS, minimum=0),
        Column("unit", "unit", Kind.NAME),
        Column("pool", "pool", Kind.NAME),
        Column("currency", "currency", Kind.CURRENCY),
        Column("issuer", "issuer", Kind.NAME),
        Column("provider", "provider", Kind.NAME),
        Column("region", "region", Kind.NAME),
        Column("instance_type", "instance_type", Kind.NAME),
        Column("status", "status", Kind.NAME),
    ),
)
ASSETS = FileSpec(
    kind="assets",
    table="asset",
    columns=(
        Column("node", "node", Kind.NAME, required=True, filled=True),
        Column("capex", "capex_amount", Kind.MONEY, required=True, filled=True, minimum=0),
        Column("salvage", "salvage_amount", Kind.MONEY, required=True, filled=True, minimum=0),
        Column("months", "months", Kind.COUNT, required=True, filled=True, minimum=1),
        Column("in_service_from", "in_service_from", Kind.TIME, required=True, filled=True),
        Column("in_service_to", "in_service_to", Kind.TIME),
        Column("cluster", "cluster", Kind.NAME),
        Column("power_price_kwh", "power_price_kwh", Kind.MONEY, minimum=0),
        Column("pue", "pue", Kind.GPUS, minimum=1),
        Column("rated_kw", "rated_kw", Kind.GPUS, minimum=0),
        Column("base_kw", "base_kw", Kind.GPUS, minimum=0),
        Column("colo_monthly", "colo_monthly_amount", Kind.MONEY, minimum=0),
        Column("support_monthly", "support_monthly_amount", Kind.MONEY, minimum=0),
        Column("staff_monthly", "staff_monthly_amount", Kind.MONEY, minimum=0),
        Column("currency", "currency", Kind.CURRENCY),
    ),
)
RATES = FileSpec(
    kind="rates",
    table="exchange_rate",
    columns=(
        Column("period", "period", Kind.MONTH, required=True, filled=True),
        Column("currency", "currency", Kind.CURRENCY, required=True, filled=True),
        Column("reporting_currency", "reporting_currency", Kind.CURRENCY, required=True, filled=True),
        Column("rate", "rate", Kind.MONEY, required=True, filled=True, minimum=0),
        Column("source", "rate_source", Kind.NAME, required=True, filled=True),
        Column("as_of", "as_of", Kind.TIME),
    ),
)
PRICES = FileSpec(
    kind="prices",
    table="list_price",
    columns=(
        Column("provider", "provider", Kind.NAME, required=True, filled=True),
        Column("sku_id", "sku_id", Kind.NAME, required=True, filled=True),
        Column("unit_price", "unit_price", Kind.MONEY, required=True, filled=True),
        Column("currency", "currency", Kind.CURRENCY, required=True, filled=True),
        Column("usage_unit", "usage_unit", Kind.NAME, required=True, filled=True),
        Column("tier_start", "tier_start", Kind.MONEY, minimum=0),
        Column("description", "description", Kind.TEXT),
        Column("region", "region", Kind.NAME),
        Column("instance_type", "instance_type", Kind.NAME),
        Column("usage_type", "usage_type", Kind.TEXT),
        Column("base_unit", "base_unit", Kind.TEXT),
        Column("base_unit_factor", "base_unit_factor", Kind.MONEY),
        Column("display_quantity", "display_quantity", Kind.MONEY),
        Column("as_of", "as_of", Kind.TIME),
    ),
)
RESERVATIONS = FileSpec(
    kind="reservations",
    table="reservation_use",
    columns=(
        Column("resource_id", "resource_id", Kind.NAME, required=True, filled=True),
        Column("capacity_reservation_id", "capacity_reservation_id", Kind.NAME, required=True, filled=True),
        Column("used_from", "used_from", Kind.TIME, required=True, filled=True),
        Column("seen_at", "seen_at", Kind.TIME, required=True, filled=True),
    ),
)
_SPECS = (
    INVENTORY, DEVICES, HOLDINGS, DEMAND, CHARGES, INVOICES, COMMITMENTS, RESERVATIONS, ASSETS, PRICES, RATES, QUOTAS,
    TEAMS, TOKENS,
)  # fmt: skip
KINDS: Final[Mapping[str, FileSpec]] = MappingProxyType({spec.kind: spec for spec in _SPECS})
CONTROL_FIELDS: Final[Mapping[str, str]] = MappingProxyType({"charges": "billed_cost", "invoices": "total_amount"})
"""Kinds whose load records a sum of money, for the trail from file to invoice."""
