"""Tokens in are tokens stored, whatever the lines, their order and how they are dealt out over files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.chargeback.tokens.logs import ACCESS, SPEND, Row, read, total, write_lines

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

COUNTS = st.none() | st.integers(0, 10**12)
COLUMNS = ("input_tokens", "output_tokens", "cached_input_tokens", "requests", "failed_requests")


@st.composite
def access_lines(draw: st.DrawFn) -> Row:
    tokens = draw(COUNTS)
    return ACCESS | {
        "start_time": f"2026-08-01T{draw(st.integers(0, 23)):02}:30:00Z",
        "response_code": draw(st.sampled_from([0, 200, 429, 500])),
        "x-tenant-id": draw(st.none() | st.text(max_size=4)),
        "gen_ai.response.model": draw(st.sampled_from([None, "a", "b"])),
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": draw(COUNTS),
        "gen_ai.usage.cached_input_tokens": None if tokens is None else draw(st.none() | st.integers(0, tokens)),
    }


@st.composite
def spend_logs(draw: st.DrawFn) -> Row:
    prompt = draw(st.integers(1, 10**12))
    cached = draw(st.none() | st.integers(0, prompt))
    return SPEND | {
        "endTime": draw(st.integers(1_785_500_000, 1_785_600_000)),
        "team_id": draw(st.sampled_from([None, "a", "b"])),
        "cache_hit": draw(st.sampled_from(["True", "False", None])),
        "status": draw(st.sampled_from(["success", "failure"])),
        "prompt_tokens": prompt,
        "completion_tokens": draw(st.integers(0, 10**12)),
        "metadata": {"usage_object": {"prompt_tokens": prompt, "prompt_tokens_details": {"cached_tokens": cached}}},
    }


def content(rows: Iterable[Row]) -> list[str]:
    return sorted(repr({**row, "source_row": 0}) for row in rows)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), lines=st.lists(access_lines(), min_size=1, max_size=30))
def test_envoy_lines_in_any_order_are_stored_to_the_token(
    tmp_path: Path, data: st.DataObject, lines: list[Row]
) -> None:
    path = tmp_path / "access.jsonl"
    rows = read(write_lines(path, lines), "envoy")
    usage = [
        [line[f"gen_ai.usage.{name}_tokens"] or 0 for line in lines] for name in ("input", "output", "cached_input")
    ]
    failed = sum(line["response_code"] != 200 for line in lines)
    assert total(rows, *COLUMNS) == [*map(sum, usage), len(lines), failed]
    for name, column in (("input", "input_tokens"), ("output", "output_tokens")):
        unknown = sum(line[f"gen_ai.usage.{name}_tokens"] is None for line in lines)
        assert total([row for row in rows if row[column] is None], "requests") == [unknown]
    assert content(read(write_lines(path, data.draw(st.permutations(lines))), "envoy")) == content(rows)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(spend_logs(), min_size=1, max_size=30), cut=st.integers(0, 30))
def test_litellm_lines_dealt_out_over_files_are_stored_to_the_token(tmp_path: Path, lines: list[Row], cut: int) -> None:
    lines = [line | {"request_id": f"r-{number}"} for number, line in enumerate(lines)]
    parts = [part for part in (lines[:cut], lines[cut:]) if part]
    rows = [
        row
        for number, part in enumerate(parts)
        for row in read(write_lines(tmp_path / f"{number}.jsonl", part), "litellm")
    ]
    worked = [line for line in lines if line["cache_hit"] != "True"]
    hits = [line for line in lines if line["cache_hit"] == "True"]
    assert total(rows, "input_tokens", "output_tokens", "requests", "cache_hit_requests", "failed_requests") == [
        sum(line["prompt_tokens"] for line in worked),
        sum(line["completion_tokens"] for line in worked),
        len(lines),
        len(hits),
        sum(line["status"] == "failure" for line in lines),
    ]
    cached = [line["metadata"]["usage_object"]["prompt_tokens_details"]["cached_tokens"] for line in worked]
    assert total(rows, "cached_input_tokens") == [sum(count or 0 for count in cached)]
