"""What a token costs: the published prices of shared model servers, and the same tokens at an API."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from chargeback.api_prices import read_api_prices, with_api_amounts
from chargeback.build import build_period
from chargeback.published import read
from chargeback.token_price import token_prices
from fleet.config import parse_config
from fleet.errors import InputError, NotBuiltError
from tests.chargeback.ledger import PERIOD, empty_lake, load_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from store.lake import Lake

MONTH = {
    "inventory": """
        node,gpu_count,valid_from,valid_to,resource_id
        n,4,2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,i-1
        """,
    "charges": """
        ChargePeriodStart,ChargePeriodEnd,ResourceId,BilledCost
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,i-1,40
        """,
    "holdings": """
        start,end,gpus,node,team,namespace,workload
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,4,n,ml,serving,llm-a-0
        """,
    "tokens": """
        server,tenant,model,hour_start,input_tokens,cached_input_tokens,output_tokens,requests
        llm-a,ml,m,2026-02-01T00:00:00Z,1000,200,45,4
        llm-a,=2+3,m,2026-02-01T00:00:00Z,1000,0,0,
        """,
}
SERVED = parse_config('[ledger]\nservers = [{ name = "llm-a", match_workload = "llm-a-*" }]')


@pytest.fixture(scope="module")
def new_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Lake]]:
    yield from empty_lake(tmp_path_factory.mktemp("lakes"))


@pytest.fixture(scope="module")
def published(new_lake: Callable[[], Lake], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = new_lake()
    load_rows(lake, tmp_path_factory.mktemp("month"), **MONTH)
    build_period(lake, SERVED, PERIOD)
    return lake


def test_prices_are_costs_over_tokens(published: Lake) -> None:
    """Hour 0 costs 20: ml weighs 800 + 20 + 180 = 1000, the other tenant 1000, 10 each. Hour 1 is idle."""
    rows = {(row["kind"], row["tenant"]): row for row in token_prices(published.connection, PERIOD)}
    ml = rows["tenant", "ml"]
    assert (ml["amount"], ml["team"], ml["requests"]) == (10, "ml", 4)
    assert ml["input_amount"] + ml["cached_input_amount"] + ml["output_amount"] == 10
    # 10 over a weight of 1000: a million of weight 1 costs 10,000; cached a tenth, output four times that.
    for kind, price in (("input", 10_000), ("cached_input", 1_000), ("output", 40_000)):
        assert ml[f"{kind}_price_per_million"] == price
    assert ml["price_per_request"] == Decimal("2.5")
    other = rows["tenant", "=2+3"]
    assert (other["team"], other["price_per_request"], other["output_price_per_million"]) == (None, None, None)
    idle = rows["idle", None]
    assert (idle["amount"], idle["team"], idle["output_tokens"], idle["price_per_request"]) == (20, "ml", None, None)
    assert sum(row["amount"] for row in rows.values()) == 40


def test_a_team_sees_its_own_lines_only(published: Lake) -> None:
    assert {row["team"] for row in token_prices(published.connection, PERIOD, "ml")} == {"ml"}
    with pytest.raises(NotBuiltError, match="'nobody' has no token line"):
        token_prices(published.connection, PERIOD, "nobody")


def test_a_month_without_servers_says_what_to_do(new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    lake = new_lake()
    load_rows(lake, tmp_path, **MONTH)
    build_period(lake, parse_config(""), PERIOD)
    with pytest.raises(NotBuiltError, match="name them under `servers`"):
        token_prices(lake.connection, PERIOD)
    gaps = lake.connection.execute("SELECT subject FROM lake.gap WHERE kind = 'tokens_without_server'").fetchall()
    assert gaps == [("llm-a",)]


def test_coverage_is_unknown_without_the_engine(published: Lake) -> None:
    rows = read(published.connection, "token_coverage", PERIOD, zone="UTC")
    assert [(row["basis"], row["gateway_input_tokens"], row["covered_ratio"]) for row in rows] == [
        ("gateway", 2000, None),
        ("idle", 0, None),
    ]


def test_the_same_tokens_at_an_api(published: Lake, tmp_path: Path) -> None:
    """800 uncached at 2, 200 cached at 0.5 and 45 output tokens at 8 a million: 0.0016 + 0.0001 + 0.00036."""
    path = tmp_path / "api.csv"
    path.write_text(
        "model,input_per_million,cached_per_million,output_per_million,currency\nm,2,0.5,8,USD\nm,1,,1,EUR\n", "utf-8"
    )
    prices = read_api_prices(published.connection, path)
    rows = {row["tenant"]: row for row in with_api_amounts(token_prices(published.connection, PERIOD), prices)}
    assert rows["ml"]["api_amount"] == Decimal("0.00206")
    assert rows[None]["api_amount"] is None
    # Without a price for cached input it costs what input costs; without the currency nothing is said.
    dear = {("m", "USD"): replace(prices["m", "USD"], cached=None)}
    rows = {row["tenant"]: row for row in with_api_amounts(token_prices(published.connection, PERIOD), dear)}
    assert rows["ml"]["api_amount"] == Decimal("0.00236")
    euros = {("m", "EUR"): prices["m", "EUR"]}
    assert {row["api_amount"] for row in with_api_amounts(token_prices(published.connection, PERIOD), euros)} == {None}


def test_a_price_list_with_two_prices_is_refused(published: Lake, tmp_path: Path) -> None:
    path = tmp_path / "api.csv"
    path.write_text(
        "model,input_per_million,cached_per_million,output_per_million,currency\nm,2,1,8,USD\nm,1,1,1,USD\n", "utf-8"
    )
    with pytest.raises(InputError, match="'m' has two prices in USD"):
        read_api_prices(published.connection, path)
