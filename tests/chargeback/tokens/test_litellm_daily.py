"""LiteLLM's daily tables: every token of a day in one of its hours, and no table that counts a token twice."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from tests.chargeback.tokens.logs import Row, read, refusal, total, write_lines

if TYPE_CHECKING:
    from pathlib import Path

DAY: Row = {
    "id": "1", "team_id": "t", "date": "2026-08-01", "api_key": "b" * 64, "model": "hosted_vllm/llama",
    "model_group": "llama", "custom_llm_provider": "hosted_vllm", "prompt_tokens": 1001, "completion_tokens": 25,
    "cache_read_input_tokens": 7, "cache_creation_input_tokens": 0, "spend": 0.0, "api_requests": 5,
    "successful_requests": 4, "failed_requests": 1, "created_at": "2026-08-01T00:00:00Z",
}  # fmt: skip


def test_a_day_is_spread_over_its_hours_to_the_token(tmp_path: Path) -> None:
    rows = read(write_lines(tmp_path / "team.jsonl", [DAY]), "litellm")
    assert [row["hour_start"] for row in rows] == [f"2026-08-01T{hour:02}" for hour in range(24)]
    columns = ("input_tokens", "output_tokens", "cached_input_tokens", "requests", "failed_requests")
    assert total(rows, *columns) == [1001, 25, 7, 5, 1]
    assert {row["input_tokens"] for row in rows} == {41, 42}
    assert {(row["tenant"], row["server"], row["model"]) for row in rows} == {("t", "hosted_vllm", "llama")}


def test_an_export_of_the_table_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "team.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, DAY)
        writer.writeheader()
        writer.writerows([DAY, DAY | {"team_id": "", "date": "2026-08-02"}])
    rows = read(path, "litellm", servers={"hosted_vllm/llama": "llm-a"})
    assert total(rows, "input_tokens", "requests") == [2002, 10]
    assert {row["tenant"] for row in rows} == {"t", None}
    assert {row["server"] for row in rows} == {"llm-a"}


@pytest.mark.parametrize(("tenant", "found"), [(None, "t"), ("team", "t"), ("key", "b" * 64)])
def test_the_tenant_is_whoever_the_table_is_by(tmp_path: Path, tenant: str | None, found: str) -> None:
    rows = read(write_lines(tmp_path / "team.jsonl", [DAY]), "litellm", tenant=tenant)
    assert {row["tenant"] for row in rows} == {found}


def test_a_table_that_cannot_tell_the_tenant_is_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "team.jsonl", [DAY])
    assert refusal(path, "litellm", tenant="user") == [
        "team.jsonl: row 1, column user_id: the table does not tell the user"
    ]


def test_the_table_by_tag_is_refused_as_it_counts_a_request_once_a_tag(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "tag.jsonl", [DAY | {"tag": "env:prod"}])
    (line,) = refusal(path, "litellm")
    assert line.startswith("tag.jsonl: row 1, column tag: a request with two tags is in two rows")


def test_an_old_table_without_cached_tokens_leaves_them_unknown(tmp_path: Path) -> None:
    day = {name: value for name, value in DAY.items() if not name.startswith("cache_")}
    rows = read(write_lines(tmp_path / "team.jsonl", [day]), "litellm")
    assert {row["cached_input_tokens"] for row in rows} == {None}


@pytest.mark.parametrize("date", ["2026-02-30", "1 August", None, 20260801])
def test_a_day_that_does_not_exist_is_named(tmp_path: Path, date: object) -> None:
    (line,) = refusal(write_lines(tmp_path / "team.jsonl", [DAY | {"date": date}]), "litellm")
    assert line.startswith("team.jsonl: row 1, column date: ")
