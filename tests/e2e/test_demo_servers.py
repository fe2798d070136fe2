"""The demo's two model servers: real tokens on real GPUs of another trace, composed, and what it may not change."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.api_prices import read_api_prices, with_api_amounts
from chargeback.explain import explain
from chargeback.published import read, statement_rows
from chargeback.token_price import token_prices
from fleet.config import parse_config
from services.demo import NOTICE, PERIOD, make_workspace
from services.workspace import Workspace
from store.lake import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.lake import Lake

GPU_HOUR = Decimal("3.06")
HOURS = 14 * 24
COST = {"llm-large": 64 * HOURS * GPU_HOUR, "llm-small": 32 * HOURS * GPU_HOUR}
OWNERS = {"llm-large": "vc6YE", "llm-small": "vcpDC"}
HELD = Decimal("1299804.207")
"""What all GPUs that teams of the cluster held cost: the trace's held minutes at 0.051."""
APPS = ("apps-a", "apps-b", "apps-c")


@pytest.fixture(scope="module")
def lake(demo_workspace: Path) -> Iterator[Lake]:
    with Workspace.at(demo_workspace).open_lake(read_only=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def trace() -> dict[str, dict[str, Any]]:
    """Per model of the bundled trace: tokens, requests, and how many clients tell no tokens."""
    with resources.as_file(resources.files("services.demo") / "data" / "servegen_tenant_hourly.parquet") as path:
        con = memory()
        cursor = con.execute(
            "SELECT replace(model, 'm-', 'llm-'), sum(prompt_tokens), sum(output_tokens), "
            "sum(requests) FILTER (WHERE prompt_tokens IS NOT NULL), "
            "sum(requests) FILTER (WHERE prompt_tokens IS NULL), "
            "count(DISTINCT client) FILTER (WHERE prompt_tokens IS NOT NULL), "
            "count(DISTINCT client) FILTER (WHERE prompt_tokens IS NULL), count(DISTINCT hour_s) "
            f"FROM read_parquet('{path}') GROUP BY ALL"
        )
        names = ("input", "output", "requests", "silent_requests", "clients", "silent", "hours")
        return {row[0]: dict(zip(names, map(int, row[1:]), strict=True)) for row in cursor.fetchall()}


def exact(lake: Lake, **wanted: str) -> Decimal:
    """Exact amount of the statement lines with these values."""
    rows = statement_rows(lake.connection, PERIOD)
    return sum((row["exact_amount"] for row in rows if wanted.items() <= row.items()), Decimal(0))


def servers(lake: Lake) -> dict[str, dict[str, Any]]:
    return {row["server"]: row for row in read(lake.connection, "server_total", PERIOD)}


def test_a_server_costs_the_gpus_that_it_held(lake: Lake) -> None:
    found = servers(lake)
    assert {name: row["amount"] for name, row in found.items()} == COST
    for row in found.values():
        assert row["serving_amount"] + row["idle_amount"] + row["unattributed_amount"] == row["amount"]


def test_the_servers_cost_is_what_the_cluster_held_before_and_not_more(lake: Lake) -> None:
    parts = {name: exact(lake, category=name) for name in ("held", "held_idle", "serving", "unattributed")}
    assert sum(parts.values()) == HELD
    assert parts["held"] == HELD - sum(COST.values())
    assert {row["server"]: row["team"] for row in read(lake.connection, "server_owner", PERIOD)} == OWNERS


def test_other_teams_hold_what_they_held_and_share_idle_by_it(lake: Lake) -> None:
    """Held cost is untouched; the idle share grows by the part of all held cost that nobody answers for."""
    minutes = dict(
        lake.connection.execute(
            "SELECT team, sum(held_gpu_microseconds) // 60000000 FROM lake.held_hour WHERE server IS NULL GROUP BY team"
        ).fetchall()
    )
    direct_of_all = Fraction(HELD - exact(lake, category="unattributed"))
    idle = Fraction(exact(lake, category="idle"))
    others = minutes.keys() - OWNERS.values()
    assert len(others) == 14
    for team in others:
        held = Fraction(int(minutes[team])) * Fraction("0.051")
        assert exact(lake, team=team, category="held") == Decimal(held.numerator) / held.denominator
        # A share is placed in whole 10^-12 hour by hour.
        assert abs(Fraction(exact(lake, team=team, category="idle")) - held * idle / direct_of_all) < Fraction(1, 10**8)


def test_the_only_idle_hour_is_the_traces_own(lake: Lake, trace: dict[str, dict[str, Any]]) -> None:
    assert {name: HOURS - row["hours"] for name, row in trace.items()} == {"llm-large": 0, "llm-small": 1}
    assert {name: row["idle_amount"] for name, row in servers(lake).items()} == {
        "llm-large": 0, "llm-small": 32 * GPU_HOUR,
    }  # fmt: skip
    assert exact(lake, category="held_idle") == exact(lake, category="held_idle", team="vcpDC") == 32 * GPU_HOUR


def test_every_token_of_the_trace_is_priced_once(lake: Lake, trace: dict[str, dict[str, Any]]) -> None:
    for name, row in servers(lake).items():
        wanted = trace[name]
        assert (row["uncached_input_tokens"], row["output_tokens"]) == (wanted["input"], wanted["output"])
        assert (row["requests"], row["unreported_requests"]) == (wanted["requests"], wanted["silent_requests"])
        assert row["tenant_count"] == wanted["clients"]
        spent = row["input_price_per_million"] * wanted["input"] + row["output_price_per_million"] * wanted["output"]
        assert spent / 1_000_000 == pytest.approx(row["serving_amount"], abs=Decimal("0.000001"))


def test_clients_that_tell_no_tokens_are_named_and_nobody_elses_cost(
    lake: Lake, trace: dict[str, dict[str, Any]]
) -> None:
    gaps = read(lake.connection, "gap_reason", PERIOD)
    (silent,) = (row for row in gaps if row["kind"] == "tokens_unreported")
    assert {row["kind"] for row in gaps} == {"tokens_unreported", "quota_conflict"}
    assert silent["gap_count"] == sum(row["silent"] for row in trace.values()) == 20
    assert silent["amount"] == exact(lake, category="unattributed", team="platform") > 0


def test_a_tenants_team_is_that_of_its_number(lake: Lake) -> None:
    rows = [row for row in token_prices(lake.connection, PERIOD) if row["kind"] == "tenant"]
    assert len(rows) == 185
    for row in rows:
        digits = len(row["tenant"].rpartition("client-")[2])
        assert row["team"] == APPS[digits - 1]
        assert row["tenant"].startswith(f"{row['model']}/")
    for team in APPS:
        served = sum(row["amount"] for row in rows if row["team"] == team)
        assert served == exact(lake, category="serving", team=team)


def test_what_serving_cost_leads_back_to_the_invoice(lake: Lake) -> None:
    (found,) = explain(lake.connection, PERIOD, "apps-a", "serving").by_invoice
    assert found["invoice_id"] == "DEMO-2020-05"
    assert found["part"] == pytest.approx(exact(lake, category="serving", team="apps-a"), abs=Decimal("0.0001"))


def test_the_price_list_is_read_and_marked_as_made_up(demo_workspace: Path, lake: Lake) -> None:
    config = Workspace.at(demo_workspace).config
    prices = read_api_prices(memory(), demo_workspace / config.portal.api_prices)
    rows = with_api_amounts(token_prices(lake.connection, PERIOD), prices)
    assert all(row["api_amount"] is not None for row in rows if row["kind"] == "tenant")
    assert config.portal.notice == NOTICE
    assert "made up" in NOTICE


def test_the_readme_has_the_figures_of_the_build(lake: Lake) -> None:
    said = " ".join((Path(__file__).parents[2] / "README.md").read_text("utf-8").split())
    rows = servers(lake)
    total = {name: sum(row[f"{name}_amount"] for row in rows.values()) for name in ("serving", "idle", "unattributed")}
    large = [rows["llm-large"][f"{kind}_price_per_million"] for kind in ("input", "output")]
    teams = len({row["team"] for row in statement_rows(lake.connection, PERIOD)})
    for words in (
        f"servers cost {sum(row['amount'] for row in rows.values()):,.2f} of what was held",
        f"{sum(row['tenant_count'] for row in rows.values())} clients pay {total['serving']:,.2f} of it",
        f"{large[0]:.4f} USD for a million input tokens of the large model, {large[1]:.4f} for a million output",
        f"costs its owner {total['idle']:,.2f}.",
        f"{total['unattributed']:,.2f} stay unattributed",
        f"the {teams} statements",
        f"Held: {HELD:,.2f} USD. Idle: {exact(lake, category='idle'):,.2f}.",
    ):
        assert words in said


def test_the_demos_configuration_is_the_template_but_for_its_settings(tmp_path: Path) -> None:
    make_workspace(tmp_path / "ws", idle_policy="even")
    config = Workspace.at(tmp_path / "ws").config
    plain = parse_config("")
    assert {server.name for server in config.ledger.servers} == set(OWNERS)
    assert config.policy("idle") == "even"
    assert (config.lake, config.hub, config.agent) == (plain.lake, plain.hub, plain.agent)
    make_workspace(tmp_path / "ws", idle_policy="quota")
    assert Workspace.at(tmp_path / "ws").config == config
