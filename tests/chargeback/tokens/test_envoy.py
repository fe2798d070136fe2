"""Envoy AI Gateway's access log: tenants by header, clients that leave, gateways that fail."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.chargeback.tokens.logs import ACCESS, ACCESS_LOG, Row, read, refusal, total, write_lines

if TYPE_CHECKING:
    from pathlib import Path


def one(tmp_path: Path, **changes: object) -> Row:
    """The single row that one access log line, changed, is read as."""
    (row,) = read(write_lines(tmp_path / "access.jsonl", [ACCESS | changes]), "envoy")
    return row


def test_the_sample_log_keeps_unknown_tenants_and_clients_that_left() -> None:
    rows = read(ACCESS_LOG, "envoy")
    logged = [json.loads(line) for line in ACCESS_LOG.read_text().splitlines()]
    for column, name in (("input", "input"), ("output", "output"), ("cached_input", "cached_input")):
        wanted = sum(record[f"gen_ai.usage.{name}_tokens"] or 0 for record in logged)
        assert total(rows, f"{column}_tokens") == [wanted]
    assert total(rows, "requests", "failed_requests") == [30, 0]
    left = [row for row in rows if row["input_tokens"] is None]
    assert total(left, "requests") == [3]
    assert total([row for row in rows if row["tenant"] is None], "requests") == [16]
    assert {row["server"] for row in rows} == {"default/vllm"}


def test_a_request_counts_in_the_hour_in_which_it_ends(tmp_path: Path) -> None:
    assert one(tmp_path)["hour_start"] == "2026-08-01T10"
    assert one(tmp_path, duration=999)["hour_start"] == "2026-08-01T09"
    assert one(tmp_path, duration=None)["hour_start"] == "2026-08-01T09"


def test_a_streamed_answer_without_usage_has_unknown_tokens_and_not_zero(tmp_path: Path) -> None:
    row = one(tmp_path, **{name: None for name in ACCESS if name.startswith("gen_ai.usage")})
    assert (row["input_tokens"], row["output_tokens"], row["cached_input_tokens"]) == (None, None, None)
    assert (row["requests"], row["failed_requests"]) == (1, 0)


@pytest.mark.parametrize(
    ("code", "flags", "failed"),
    [(200, "-", 0), (200, "DC", 0), (0, "DC", 0), (0, "UF,URX", 1), (0, None, 1), (429, "RL", 1), (503, "UO", 1)],
)
def test_a_client_that_left_is_no_failure(tmp_path: Path, code: int, flags: str | None, failed: int) -> None:
    assert one(tmp_path, response_code=code, response_flags=flags)["failed_requests"] == failed


def test_the_tenant_field_can_be_chosen_and_a_dash_is_nobody(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "access.jsonl", [ACCESS | {"x-team": "blue"}])
    assert read(path, "envoy", tenant="x-team")[0]["tenant"] == "blue"
    assert one(tmp_path, **{"x-tenant-id": "-"})["tenant"] is None
    assert one(tmp_path, **{"x-tenant-id": {"a": 1}})["tenant"] is None


def test_a_backend_can_be_given_the_name_that_the_ledger_knows(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "access.jsonl", [ACCESS])
    assert read(path, "envoy")[0]["server"] == "ns/llm"
    assert read(path, "envoy", servers={"ns/llm": "llm-a"})[0]["server"] == "llm-a"


def test_a_log_whose_format_leaves_the_tokens_out_is_refused(tmp_path: Path) -> None:
    bare = {name: value for name, value in ACCESS.items() if not name.startswith("gen_ai.usage")}
    (line,) = refusal(write_lines(tmp_path / "access.jsonl", [bare, bare]), "envoy")
    assert line.startswith("access.jsonl: no line has gen_ai.usage.input_tokens")
    # One line that has them shows that the format writes them, and leaves out empty ones.
    rows = read(write_lines(tmp_path / "access.jsonl", [bare, ACCESS]), "envoy")
    assert [(row["input_tokens"], row["requests"]) for row in rows] == [(None, 1), (100, 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start_time": "now"}, "column start_time: 'now' is not a time"),
        ({"start_time": "9999-12-31T23:59:59Z", "duration": 10**12}, "column duration: ends after the last time"),
        ({"response_code": None}, "column response_code: is missing"),
        ({"gen_ai.usage.input_tokens": "many"}, "column gen_ai.usage.input_tokens: 'many' is not a whole number"),
        ({"gen_ai.usage.cached_input_tokens": 101}, "column gen_ai.usage.cached_input_tokens: 101 cached input tokens"),
    ],
)
def test_a_bad_field_is_named_by_row_and_column(tmp_path: Path, change: Row, message: str) -> None:
    (line,) = refusal(write_lines(tmp_path / "access.jsonl", [ACCESS, ACCESS | change]), "envoy")
    assert line.startswith(f"access.jsonl: row 2, {message}")
