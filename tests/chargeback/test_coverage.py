"""Coverage of a model server's tokens by its gateways: exact sums, no scaling, and what is unknown says why."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.build import build_period
from chargeback.token_coverage import _covered, token_coverage
from fleet.config import parse_config
from fleet.errors import NotBuiltError
from tests.chargeback.ledger import PERIOD, empty_lake, load_rows
from tests.chargeback.test_token_split import at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from store.lake import Lake

Row = dict[str, Any]
SERVERS = parse_config(
    "[ledger]\n"
    'servers = [{ name = "llm-a", match_workload = "llm-a-*" }, { name = "llm-b", match_workload = "llm-b-*" }]'
)
MONTH = {
    "inventory": "node,gpu_count,valid_from,valid_to,resource_id\nn,8,2026-02-01T00:00:00Z,2026-02-03T00:00:00Z,i",
    "charges": "ChargePeriodStart,ChargePeriodEnd,BilledCost,ResourceId\n"
    "2026-02-01T00:00:00Z,2026-02-03T00:00:00Z,48,i",
    "holdings": """
        start,end,gpus,node,team,workload
        2026-02-01T00:00:00Z,2026-02-03T00:00:00Z,4,n,ml,llm-a-0
        2026-02-01T00:00:00Z,2026-02-03T00:00:00Z,4,n,ml,llm-b-0
        """,
    # Hour 0 is explained but for 5 %, hour 1 not at all, hour 2 more than the engine counted, hour 3 without tokens.
    "tokens": """
        server,tenant,model,hour_start,input_tokens,output_tokens,requests
        llm-a,ml,m,2026-02-01T00:00:00Z,950,95,4
        llm-a,ml,m,2026-02-01T02:00:00Z,1001,100,4
        llm-a,ml,m,2026-02-01T03:00:00Z,,,9
        """,
}


@pytest.fixture(scope="module")
def new_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Lake]]:
    yield from empty_lake(tmp_path_factory.mktemp("lakes"))


@pytest.fixture(scope="module")
def lake(new_lake: Callable[[], Lake], tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = new_lake()
    load_rows(lake, tmp_path_factory.mktemp("month"), **MONTH)
    for server in ("llm-a", "llm-b"):
        for hour in range(4):
            second = int(at(hour).timestamp())
            lake.connection.execute(
                "INSERT INTO lake.engine_window (day, second, cluster, node, server, window_ms, prompt_tokens, "
                "generation_tokens) VALUES (?, ?, 'c', 'n', ?, 3600000, 1000, 100)",
                [second // 86400, second % 86400, server],
            )
    build_period(lake, SERVERS, PERIOD)
    return lake


def covered(lake: Lake, **asked: Any) -> list[Row]:
    return token_coverage(lake.connection, PERIOD, **({"zone": "UTC"} | asked))


def test_each_hour_says_what_is_covered_or_why_not(lake: Lake) -> None:
    rows = covered(lake, span="hour", server="llm-a")
    assert [(row["input_ratio"], row["output_ratio"], row["flag"], row["reason"]) for row in rows[:5]] == [
        ("0.950000", "0.950000", None, None),
        ("0.000000", "0.000000", "tokens_outside_gateway", None),
        ("1.001000", "1.000000", "gateway_over_engine", None),
        (None, None, None, "gateways report requests without their tokens"),
        (None, None, None, "the engine's own count is not known"),
    ]
    assert [row["unreported_requests"] for row in rows[:4]] == [None, None, None, 9]


def test_a_server_that_no_gateway_names_is_not_covered_by_nothing(lake: Lake) -> None:
    """Unknown is no 0 %: nobody loaded its gateway's ledger."""
    (row,) = covered(lake, span="period", server="llm-b")
    assert (row["input_ratio"], row["flag"], row["reason"]) == (None, None, "no gateway reports this server")


def test_days_sum_the_hours_that_are_known(lake: Lake) -> None:
    first, second = covered(lake, span="day", server="llm-a")
    assert (first["start"], first["hours"], first["input_hours"]) == ("2026-02-01", 24, 3)
    assert (first["gateway_input_tokens"], first["engine_input_tokens"]) == (1951, 3000)
    assert first["input_ratio"] == "0.650333", "rounded down"
    assert first["flag"] == "tokens_outside_gateway"
    assert (second["start"], second["input_ratio"]) == ("2026-02-02", None)


def test_days_are_those_of_the_time_zone(lake: Lake) -> None:
    rows = covered(lake, span="day", server="llm-a", zone="America/New_York")
    assert [(row["start"], row["hours"]) for row in rows] == [("2026-01-31", 5), ("2026-02-01", 24), ("2026-02-02", 19)]


def test_a_server_that_is_not_there_is_refused(lake: Lake) -> None:
    with pytest.raises(NotBuiltError, match="no shared model server 'x' cost anything"):
        covered(lake, server="x")


def test_all_servers_of_a_month_without_any(new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    lake = new_lake()
    load_rows(lake, tmp_path, **MONTH)
    build_period(lake, parse_config(""), PERIOD)
    with pytest.raises(NotBuiltError, match="no shared model server cost anything"):
        covered(lake)


counts = st.none() | st.integers(0, 10**15)
hours = st.fixed_dictionaries(
    {f"{side}_{kind}_tokens": counts for side in ("gateway", "engine") for kind in ("input", "output")}
    | {"unreported_requests": st.none() | st.integers(0, 9), "is_told": st.booleans()}
)


@given(st.lists(hours, min_size=1, max_size=5))
def test_a_ratio_is_exact_and_a_missing_one_has_a_reason(seen: list[Row]) -> None:
    row = _covered("s", "2026-02", seen)
    gaps = []
    for kind in ("input", "output"):
        pairs = [(hour[f"gateway_{kind}_tokens"], hour[f"engine_{kind}_tokens"]) for hour in seen]
        known = [(gateway, engine) for gateway, engine in pairs if gateway is not None and engine is not None]
        gateway, engine = (sum(side) for side in zip(*known, strict=True)) if known else (0, 0)
        if not engine:
            assert row[f"{kind}_ratio"] is None
        else:
            assert 0 <= Fraction(gateway, engine) - Fraction(row[f"{kind}_ratio"]) < Fraction(1, 10**6)
        gaps.append((engine - gateway, Fraction(engine, 20)))
    assert (row["reason"] is None) == (row["input_ratio"] is not None and row["output_ratio"] is not None)
    over, outside = any(gap < 0 for gap, _ in gaps), any(gap > limit for gap, limit in gaps)
    assert row["flag"] == ("gateway_over_engine" if over else "tokens_outside_gateway" if outside else None)
