"""Gateways: tokens by tenant, nothing lost, and nothing of keys, addresses and programs of clients let out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.serving.engines import GATEWAYS
from collectors.serving.gateway import GATEWAY_COUNTERS, NEVER_TENANTS, GatewayServer
from fleet.errors import GputallyError
from tests.collectors.serving.engine_pages import counts
from tests.collectors.serving.engines.pages_at_hand import gateway_steps, json_lines, page_of, read, row, rows

if TYPE_CHECKING:
    from collectors.serving.gateway import GatewayReading

ENVOY = page_of("envoy_ai_gateway/1.1.prom")
IN_FLIGHT = "litellm_in_flight_requests 1\n"


def tokens(team: str, value: float, **more: str) -> str:
    """A line of LiteLLM about the input tokens of a team."""
    labels = {"requested_model": "m", "team": team} | more
    inside = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"litellm_input_tokens_metric_total{{{inside}}} {value}\n"


def total(reading: GatewayReading, name: str = "prompt_tokens") -> int:
    return sum(getattr(sample, name) or 0 for sample in reading.samples)


@pytest.mark.parametrize("name", ["02_under_load", "03_after", "04_backend_down"])
def test_keys_addresses_and_programs_of_clients_never_leave(name: str) -> None:
    """The page holds two hashed keys, a key in clear text ("bad"), names of users, an address and two programs."""
    page = page_of(f"litellm/real_{name}.prom.gz")
    secrets = set(re.findall(r'(?:hashed_api_key|client_ip|user_agent|user|api_key_alias)="([^"]+)"', page)) - {"None"}
    assert {"bad", "127.0.0.1", "curl/7.88.1", "u-alice", "alpha-key"} <= secrets
    printed = json_lines(read("litellm", page))
    assert not [secret for secret in secrets if secret in printed]


@pytest.mark.parametrize("label", sorted(NEVER_TENANTS))
def test_a_key_cannot_be_made_the_tenant(label: str) -> None:
    with pytest.raises(GputallyError, match="cannot be the label of a tenant"):
        GatewayServer(GATEWAYS["litellm"], tenant_label=label)


def test_the_operator_names_the_label_of_the_tenant() -> None:
    page = ENVOY.replace("x_tenant_id=", "team_of_header=")
    assert {one.get("tenant") for one in rows("envoy_ai_gateway", page)} == {None}
    server = GatewayServer(GATEWAYS["envoy_ai_gateway"], tenant_label="team_of_header")
    assert {sample.tenant for sample in server.read(page).totals.samples} == {"risk", "support"}


def test_cached_input_is_part_of_input() -> None:
    found = row("envoy_ai_gateway", ENVOY, tenant="risk")
    assert (found["prompt_tokens"], found["prompt_tokens_cached"], found["generation_tokens"]) == (
        1_610_414,
        931_180,
        411_142,
    )


def test_a_tenant_that_is_not_told_is_nobody_not_the_text_none() -> None:
    for missing in ("None", ""):
        (sample,) = read("litellm", tokens(missing, 7) + IN_FLIGHT).samples[:1]
        assert (sample.tenant, sample.prompt_tokens) == (None, 7)


def test_tenants_that_cannot_be_shown_stay_in_the_row_of_nobody() -> None:
    """Two long names that are alike at their start must not become one tenant, and a terminal must not be reached."""
    long = "t" * 300
    hostile = [long + "a", long + "b", "\u202eevil", "\x1b[2J"]
    reading = read("litellm", IN_FLIGHT + "".join(tokens(name, 5) for name in hostile) + tokens("good", 1))
    assert {sample.tenant for sample in reading.samples} == {None, "good"}
    assert total(reading) == 21
    assert counts(reading)["bad_tenant"] == 4


def test_a_gateway_that_was_started_again_counts_from_there() -> None:
    pages = [(0.0, tokens("a", 1000) + tokens("b", 10)), (60.0, tokens("a", 40) + tokens("b", 15))]
    (step,) = gateway_steps("litellm", *((second, text + IN_FLIGHT) for second, text in pages))
    found = {sample.tenant: sample for sample in step.samples if sample.prompt_tokens is not None}
    assert {tenant: sample.prompt_tokens for tenant, sample in found.items()} == {"a": 40, "b": 5}
    assert (found["a"].quality, found["b"].quality) == (("reset",), ())
    assert (step.counter_resets, found["a"].interval_seconds) == (1, 60.0)


def test_resets_are_found_series_by_series_before_any_sum() -> None:
    """One key of a team began again while another grew: the sum grew, and the reset would not show in it."""
    before = tokens("a", 100, hashed_api_key="1") + tokens("a", 100, hashed_api_key="2")
    after = tokens("a", 30, hashed_api_key="1") + tokens("a", 180, hashed_api_key="2")
    (step,) = gateway_steps("litellm", (0.0, before + IN_FLIGHT), (60.0, after + IN_FLIGHT))
    assert total(step) == 30 + 80


def test_a_series_whose_beginning_is_not_known_counts_from_here_on() -> None:
    texts = (IN_FLIGHT, IN_FLIGHT + tokens("a", 500), IN_FLIGHT + tokens("a", 520))
    first, second = gateway_steps("litellm", *((60.0 * place, text) for place, text in enumerate(texts)))
    assert (total(first), first.new_series, total(second)) == (0, 1, 20)
    assert [sample.quality for sample in first.samples if sample.tenant == "a"] == [("partial",)]


@given(
    lines=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "None", "", "t" * 300, "\u202e"]),
            st.integers(min_value=0, max_value=10**9),
            st.text("0123456789abcdef", min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=40,
        unique_by=lambda line: (line[0], line[2]),
    )
)
def test_tokens_on_the_page_are_tokens_in_the_rows(lines: list[tuple[str, int, str]]) -> None:
    text = "".join(tokens(team, value, hashed_api_key=key) for team, value, key in lines)
    assert total(read("litellm", IN_FLIGHT + text)) == sum(value for _, value, _ in lines)


def test_every_counter_of_a_gateway_is_one_of_its_fields() -> None:
    for mapping in GATEWAYS.values():
        names = {signal.name for signal in mapping.engine.signals}
        assert names <= {*GATEWAY_COUNTERS, "requests_running", "requests_waiting"}
