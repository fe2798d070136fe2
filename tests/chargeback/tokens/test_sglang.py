"""SGLang's request log: local hours, prompts that must not come along, aborts that did work."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.chargeback.tokens.logs import REQUEST_LOG, read, refusal, total, write_lines

if TYPE_CHECKING:
    from pathlib import Path

NAMED: dict[str, Any] = {"servers": {"": "llm-s"}}
LOGGED = [json.loads(line) for line in REQUEST_LOG.read_text().splitlines()]


def test_the_sample_log_is_split_by_label_and_adapter_and_keeps_what_aborts_used() -> None:
    rows = read(REQUEST_LOG, "sglang", zone="UTC", **NAMED)
    sums = [sum(record[name] for record in LOGGED) for name in ("prompt_tokens", "completion_tokens", "cached_tokens")]
    assert total(rows, "input_tokens", "output_tokens", "cached_input_tokens", "requests") == [*sums, 20]
    assert total(rows, "failed_requests") == [0]
    assert {row["server"] for row in rows} == {"llm-s"}
    labels = {json.loads(record["request_parameters"])["custom_labels"]["team"] for record in LOGGED}
    assert {row["tenant"] for row in rows} == labels
    assert {row["model"] for row in rows} == {"risk-sql", None}


@pytest.mark.parametrize(
    ("zone", "hour"),
    [("UTC", "2026-08-01T10"), ("Europe/Berlin", "2026-08-01T08"), ("Asia/Kolkata", "2026-08-01T04")],
)
def test_the_hour_of_a_file_is_the_servers_local_one(zone: str, hour: str) -> None:
    assert {row["hour_start"] for row in read(REQUEST_LOG, "sglang", zone=zone, **NAMED)} == {hour}


def test_a_local_hour_without_its_zone_is_refused() -> None:
    (line,) = refusal(REQUEST_LOG, "sglang", **NAMED)
    assert line.endswith("is named by the local time of the server that wrote it: give its zone with --time-zone")


@pytest.mark.parametrize(("hour", "said"), [("20261025_02", "is ambiguous in"), ("20260329_02", "does not exist in")])
def test_an_hour_that_the_clocks_repeat_or_skip_is_refused(tmp_path: Path, hour: str, said: str) -> None:
    path = shutil.copy(REQUEST_LOG, tmp_path / f"sglang-request-metrics-{hour}.log")
    (line,) = refusal(path, "sglang", zone="Europe/Berlin", **NAMED)
    assert said in line
    assert read(path, "sglang", zone="Etc/GMT-2", **NAMED)[0]["hour_start"].endswith("T00")


def test_a_file_that_tells_no_hour_or_no_server_is_refused(tmp_path: Path) -> None:
    path = shutil.copy(REQUEST_LOG, tmp_path / "requests.log")
    assert "does not end in the hour" in refusal(path, "sglang", zone="UTC", **NAMED)[0]
    assert "name it with --server" in refusal(REQUEST_LOG, "sglang", zone="UTC")[0]


def test_prompts_in_the_parameters_go_nowhere(tmp_path: Path) -> None:
    parameters = {"text": "a secret prompt", "input_ids": [1, 2], "custom_labels": {"team": "risk"}, "lora_path": None}
    line = LOGGED[0] | {"request_parameters": json.dumps(parameters)}
    rows = read(write_lines(tmp_path / "m-20260801_10.log", [line]), "sglang", zone="UTC", **NAMED)
    assert "secret" not in repr(rows)
    assert rows[0]["tenant"] == "risk"
    cut = line | {"request_parameters": '{"text": "a secret prompt'}
    problems = refusal(write_lines(tmp_path / "m-20260801_10.log", [cut]), "sglang", zone="UTC", **NAMED)
    assert problems == ["m-20260801_10.log: row 1, column request_parameters: is not well-formed JSON"]


def test_an_abort_is_a_failure_only_when_the_server_says_so(tmp_path: Path) -> None:
    left = LOGGED[0] | {"finish_reason": {"type": "abort"}}
    refused = LOGGED[0] | {"finish_reason": {"type": "abort", "status_code": 400}}
    path = write_lines(tmp_path / "m-20260801_10.log", [left, refused])
    assert total(read(path, "sglang", zone="UTC", **NAMED), "requests", "failed_requests") == [2, 1]


def test_a_line_without_labels_belongs_to_nobody(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "m-20260801_10.log", [LOGGED[0] | {"request_parameters": None}])
    assert read(path, "sglang", zone="UTC", **NAMED)[0]["tenant"] is None
