"""LiteLLM's ledgers of requests: the tokens of a real run to the token, and every habit that would bend them."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.chargeback.tokens.logs import PAYLOAD, SPEND, SPEND_LOGS, Row, connection, read, refusal, total, write_lines

if TYPE_CHECKING:
    from pathlib import Path

CLIENT_TRUTH = {
    # What the load test's client was told, and the warm-up call of each team.
    "team-alpha-id": [2148 + 2, 5960 + 8],
    "team-beta-id": [2109 + 15, 5411 + 8],
}


def one(tmp_path: Path, options: dict[str, Any] | None = None, **changes: object) -> Row:
    """The single row that one spend log, changed, is read as."""
    (row,) = read(write_lines(tmp_path / "log.jsonl", [SPEND | changes]), "litellm", **(options or {}))
    return row


def test_the_real_log_matches_what_the_clients_were_told_to_the_token() -> None:
    rows = read(PAYLOAD, "litellm")
    for team, tokens in CLIENT_TRUTH.items():
        assert total([row for row in rows if row["tenant"] == team], "input_tokens", "output_tokens") == tokens
    assert {row["tenant"] for row in rows} == {*CLIENT_TRUTH, None}
    assert total(rows, "requests", "failed_requests") == [105, 7]
    assert {row["server"] for row in rows} == {"127.0.0.1:18000", None}
    (unknown,) = [row for row in rows if row["tenant"] is None]
    assert (unknown["requests"], unknown["failed_requests"], unknown["server"]) == (1, 1, None)


def test_a_wrong_key_that_stands_where_its_hash_belongs_is_not_stored() -> None:
    rows = read(PAYLOAD, "litellm", tenant="key")
    assert b'"user_api_key_hash": "bad"' in gzip.decompress(PAYLOAD.read_bytes())
    tenants = {row["tenant"] for row in rows}
    assert None in tenants
    assert sorted(map(len, tenants - {None})) == [64, 64]


@pytest.mark.parametrize("sent", ["sk-1234567890abcdefghij12", "Bearer abc", "eyJhbGciOiJIUzI1NiJ9.e30.x"])
def test_a_secret_in_any_field_is_no_name(tmp_path: Path, sent: str) -> None:
    row = one(tmp_path, {"tenant": "end_user"}, end_user=sent, model_group=sent, model_id=sent, api_key=sent)
    assert sent not in row.values()
    assert row["tenant"] is None
    assert one(tmp_path, {"tenant": "key"}, api_key=sent)["tenant"] is None
    base = f"http://user:{sent}@llm:8000/{sent}/v1?key={sent}".replace(" ", "%20")
    assert one(tmp_path, api_base=base)["server"] == "llm:8000"


def test_spend_logs_keep_null_teams_failures_and_cache_hits_apart() -> None:
    rows = read(SPEND_LOGS, "litellm")
    logged = [json.loads(line) for line in SPEND_LOGS.read_text().splitlines()]
    worked = [record for record in logged if record["cache_hit"] == "False"]
    assert total(rows, "input_tokens", "output_tokens") == [
        sum(record["prompt_tokens"] for record in worked),
        sum(record["completion_tokens"] for record in worked),
    ]
    assert total(rows, "requests", "failed_requests", "cache_hit_requests") == [60, 4, 3]
    nobody = [row for row in rows if row["tenant"] is None]
    assert total(nobody, "requests") == [sum(record["team_id"] is None for record in logged)]
    assert {row["tenant"] for row in rows} == {"t-risk", "t-sup", None}


def test_a_request_counts_in_the_hour_in_which_it_ends(tmp_path: Path) -> None:
    assert one(tmp_path)["hour_start"] == "2026-08-01T09"
    assert one(tmp_path, endTime="2026-08-01T09:00:00Z")["hour_start"] == "2026-08-01T09"
    assert one(tmp_path, endTime="2026-08-01T08:59:59.999999Z")["hour_start"] == "2026-08-01T08"
    assert one(tmp_path, endTime="2026-08-01 11:00:01+02")["hour_start"] == "2026-08-01T09"
    assert one(tmp_path, endTime=1785574801.25)["hour_start"] == "2026-08-01T09"


def test_cached_tokens_stand_beside_the_input_that_includes_them(tmp_path: Path) -> None:
    row = one(tmp_path)
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (100, 40, 10)
    row = one(tmp_path, metadata={"usage_object": {"prompt_tokens": 100, "prompt_tokens_details": None}})
    assert (row["input_tokens"], row["cached_input_tokens"]) == (100, None)


def test_anthropic_style_input_without_the_cached_is_made_whole(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 400,
        "cache_creation_input_tokens": 30,
        "output_tokens": 10,
    }
    row = one(tmp_path, metadata={"usage_object": usage})
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (530, 400, 10)
    # The gateway had added them already.
    row = one(tmp_path, prompt_tokens=530, metadata={"usage_object": usage})
    assert (row["input_tokens"], row["cached_input_tokens"]) == (530, 400)


def test_a_cache_hit_is_a_request_without_work(tmp_path: Path) -> None:
    row = one(tmp_path, cache_hit="True")
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (0, 0, 0)
    assert (row["requests"], row["cache_hit_requests"], row["failed_requests"]) == (1, 1, 0)


def test_a_success_without_usage_has_unknown_tokens_and_not_zero(tmp_path: Path) -> None:
    row = one(tmp_path, prompt_tokens=0, completion_tokens=0, metadata={})
    assert (row["input_tokens"], row["cached_input_tokens"], row["output_tokens"]) == (None, None, None)
    assert row["requests"] == 1
    embedding = one(tmp_path, completion_tokens=0)
    assert (embedding["input_tokens"], embedding["output_tokens"]) == (100, 0)


def test_a_failure_is_counted_with_the_tokens_it_says(tmp_path: Path) -> None:
    row = one(tmp_path, prompt_tokens=0, completion_tokens=0, status="failure", metadata={})
    assert (row["input_tokens"], row["output_tokens"], row["failed_requests"], row["requests"]) == (0, 0, 1, 1)


def test_reported_and_unreported_requests_are_not_added_up(tmp_path: Path) -> None:
    log = [SPEND, SPEND | {"request_id": "r-2", "prompt_tokens": 0, "completion_tokens": 0, "metadata": {}}]
    rows = read(write_lines(tmp_path / "log.jsonl", log), "litellm")
    assert [(row["input_tokens"], row["requests"]) for row in rows] == [(100, 1), (None, 1)]


def test_retries_are_calls_of_their_own(tmp_path: Path) -> None:
    log = [SPEND | {"request_id": "r-2", "status": "failure", "prompt_tokens": 0, "completion_tokens": 0}, SPEND]
    rows = read(write_lines(tmp_path / "log.jsonl", [log[0] | {"metadata": {}}, log[1]]), "litellm")
    assert total(rows, "requests", "failed_requests", "input_tokens") == [2, 1, 100]


def test_overlapping_exports_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [SPEND, SPEND | {"request_id": "r-2"}, SPEND])
    assert refusal(path, "litellm") == ["log.jsonl: row 3, column request_id: stands in row 1 already: exports overlap"]


@pytest.mark.parametrize(
    ("api_base", "server"),
    [
        ("http://llm:8000/v1", "llm:8000"),
        ("http://llm:8000/v1/chat/completions", "llm:8000"),
        ("https://LLM.example/teams/a/v1/", "llm.example/teams/a"),
        ("http://u:p@[::1]:8000/v1?key=x", "[::1]:8000"),
        ("http://llm:port/v1", None),
        ("", None),
        ("None", None),
        (None, None),
        (7, None),
    ],
)
def test_a_server_is_its_address_without_what_is_secret(tmp_path: Path, api_base: object, server: str | None) -> None:
    assert one(tmp_path, api_base=api_base)["server"] == server


def test_a_server_can_be_given_the_name_that_the_ledger_knows(tmp_path: Path) -> None:
    assert one(tmp_path, {"servers": {"llm:8000": "llm-a"}})["server"] == "llm-a"
    assert one(tmp_path, {"servers": {"d-1": "llm-d", "llm:8000": "llm-a"}})["server"] == "llm-d"
    assert one(tmp_path, {"servers": {"other": "x"}})["server"] == "llm:8000"
    assert one(tmp_path, {"servers": {"other": "x", "": "all"}}, api_base="")["server"] == "all"


def test_trap_28_missing_is_the_word_none(tmp_path: Path) -> None:
    row = one(tmp_path, team_id="None", model_group="", model="None", cache_hit="None")
    assert (row["tenant"], row["model"]) == (None, None)


def test_a_client_cannot_make_a_log_unreadable_by_its_name(tmp_path: Path) -> None:
    hostile = "\ud800\x00=cmd|' /C calc'!A0\n\u202e" + "x" * 5000
    row = one(tmp_path, {"tenant": "end_user"}, end_user=hostile)
    assert row["tenant"].startswith("\\ud800\\x00=cmd|")
    assert len(row["tenant"]) <= 256
    assert row["tenant"].isprintable()


@pytest.mark.parametrize("table", ["csv", "parquet"])
def test_a_table_export_says_the_same_as_the_lines(tmp_path: Path, table: str) -> None:
    logged = [json.loads(line) for line in SPEND_LOGS.read_text().splitlines()]
    path = tmp_path / "spend.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*logged[0], "messages"])
        for record in logged:
            texts = [json.dumps(value) if isinstance(value, dict | list) else value for value in record.values()]
            writer.writerow([*texts, '{"role": "user",\n"content": "' + "secret " * 30_000 + '"}'])
    if table == "parquet":
        path = _as_parquet(path)
    without_row = [{**row, "source_row": 0} for row in read(SPEND_LOGS, "litellm")]
    assert [{**row, "source_row": 0} for row in read(path, "litellm")] == without_row


def _as_parquet(path: Path) -> Path:
    target = path.with_suffix(".parquet")
    connection().execute(f"COPY (FROM read_csv('{path}', all_varchar = true, max_line_size = 9000000)) TO '{target}'")
    return target


BAD = [
    ({"endTime": None}, "row 2, column endTime: is not a time"),
    ({"endTime": "yesterday"}, "row 2, column endTime: 'yesterday' is not a time"),
    ({"endTime": 1e300}, "row 2, column endTime: is not a time"),
    ({"prompt_tokens": -1}, "row 2, column prompt_tokens: '-1' is not a whole number"),
    ({"prompt_tokens": 1.5}, "row 2, column prompt_tokens: '1.5' is not a whole number"),
    ({"completion_tokens": True}, "row 2, column completion_tokens: is not a whole number"),
    ({"completion_tokens": 10**13}, "row 2, column completion_tokens: '10000000000000' is not a whole number"),
    ({"completion_tokens": [1]}, "row 2, column completion_tokens: is not a whole number"),
    ({"status": "maybe"}, "row 2, column status: is neither success nor failure"),
    ({"cache_hit": "perhaps"}, "row 2, column cache_hit: 'perhaps' is neither True nor False"),
    ({"metadata": "{"}, "row 2, column metadata: is not well-formed JSON"),
    ({"metadata": [1]}, "row 2, column metadata: is not a JSON object"),
    ({"prompt_tokens": 39}, "row 2, column metadata: 40 cached input tokens are more than all 39"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_a_bad_field_is_named_by_row_and_column(tmp_path: Path, change: Row, message: str) -> None:
    path = write_lines(tmp_path / "log.jsonl", [SPEND, SPEND | {"request_id": "r-2"} | change])
    (line,) = refusal(path, "litellm")
    assert line.startswith(f"log.jsonl: {message}")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"endTime": NaN}', "row 2: is not well-formed JSON"),
        ('{"endTime": ', "row 2: is not well-formed JSON"),
        ("[" * 100_000, "row 2: is not well-formed JSON"),
        ('{"prompt_tokens": ' + "9" * 5000 + "}", "row 2: is not well-formed JSON"),
        ("[1]", "row 2: is not a JSON object: one a line is expected"),
        ("{}", "row 2, column prompt_tokens: is missing"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write_lines(tmp_path / "log.jsonl", [SPEND, line])
    assert refusal(path, "litellm") == [f"log.jsonl: {message}"]


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(PAYLOAD.read_bytes()[:5000])
    assert refusal(cut, "litellm") == ["cut.jsonl.gz: is not a complete gzip file (cut off or damaged)"]
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{"team_id": "caf\xe9"}\n')
    assert refusal(latin, "litellm") == ["latin.jsonl: row 1: is not UTF-8"]
    blank = write_lines(tmp_path / "blank.jsonl", ["{}".replace("{}", ""), "  "])
    assert refusal(blank, "litellm")
    assert len(refusal(write_lines(tmp_path / "many.jsonl", ["{}"] * 100), "litellm")) == 20


def test_line_numbers_count_the_empty_lines_and_a_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("\ufeff" + json.dumps(SPEND) + "\r\n\r\n{\r\n", "utf-8")
    assert refusal(path, "litellm") == ["log.jsonl: row 3: is not well-formed JSON"]
