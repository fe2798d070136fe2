"""`gputally load tokens`: whole or not at all, each content once, as the tables that a month is built from see it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from chargeback.load import LoadOptions, load_files
from chargeback.tokens.usage import LogOptions
from fleet.errors import ConfigError, InputError
from store.snapshots import show_current
from tests.chargeback.ledger import empty_lake
from tests.chargeback.tokens.logs import ACCESS_LOG, PAYLOAD, REQUEST_LOG, SPEND, SPEND_LOGS, write_lines
from tests.program import gputally, new_workspace, refusal, refused, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from store.lake import Lake

HEADER = "server,tenant,model,hour_start,input_tokens,output_tokens,cached_input_tokens,requests"
ROW = "llm-a,risk,llama,2026-08-01T09:00:00Z,9000000000000,10,40,3"
LITELLM = LoadOptions(log=LogOptions("litellm"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Lake]]:
    yield from empty_lake(tmp_path_factory.mktemp("lakes"))


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_workspace(tmp_path_factory.mktemp("tokens") / "ws")


def table(path: Path, *rows: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows, ""]))
    return path


def stored(lake: Lake) -> list[tuple[object, ...]]:
    show_current(lake.connection)
    return lake.connection.execute(
        "SELECT tenant, sum(input_tokens)::BIGINT, sum(output_tokens)::BIGINT, sum(requests)::BIGINT, "
        "sum(failed_requests)::BIGINT FROM token_usage GROUP BY ALL ORDER BY tenant"
    ).fetchall()


def test_the_real_log_lies_in_the_lake_to_the_token_and_once(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    load_files(lake, "tokens", [PAYLOAD], LITELLM)
    truth = [("team-alpha-id", 2150, 5968, 53, 3), ("team-beta-id", 2124, 5419, 51, 3), (None, 0, 0, 1, 1)]
    assert stored(lake) == truth
    copy = shutil.copy(PAYLOAD, tmp_path / "copy.jsonl.gz")
    assert [load_files(lake, "tokens", [path], LITELLM)[0].outcome for path in (PAYLOAD, copy)] == ["unchanged"] * 2
    assert stored(lake) == truth


def test_read_in_another_way_the_same_log_replaces_what_it_said(fresh: Callable[[], Lake]) -> None:
    lake = fresh()
    load_files(lake, "tokens", [PAYLOAD], LITELLM)
    alias = LoadOptions(log=LogOptions("litellm", tenant="team_alias", servers=(("", "llm-a"),)))
    assert [loaded.outcome for loaded in load_files(lake, "tokens", [PAYLOAD], alias)] == ["replaced"]
    assert [tenant for tenant, *_ in stored(lake)] == ["team-alpha", "team-beta", None]
    assert lake.connection.execute("SELECT DISTINCT server FROM token_usage").fetchall() == [("llm-a",)]


def test_a_bad_line_in_one_file_leaves_nothing_of_any(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    before = lake.snapshot()
    bad = write_lines(tmp_path / "bad.jsonl", [SPEND, SPEND | {"request_id": "r-2", "endTime": "soon"}])
    with pytest.raises(InputError, match=r"^bad\.jsonl: row 2, column endTime: 'soon' is not a time"):
        load_files(lake, "tokens", [SPEND_LOGS, bad], LITELLM)
    assert lake.snapshot() == before
    assert stored(lake) == []


def test_a_zone_that_a_log_does_not_need_makes_no_second_content(fresh: Callable[[], Lake]) -> None:
    lake = fresh()
    load_files(lake, "tokens", [PAYLOAD], LITELLM)
    zoned = LoadOptions(time_zone="Asia/Tokyo", log=LogOptions("litellm", zone="Asia/Tokyo"))
    assert load_files(lake, "tokens", [PAYLOAD], zoned)[0].outcome == "unchanged"


def test_a_tenant_that_litellm_does_not_know_is_refused(fresh: Callable[[], Lake]) -> None:
    with pytest.raises(ConfigError, match="a tenant of LiteLLM is one of team, team_alias"):
        load_files(fresh(), "tokens", [PAYLOAD], LoadOptions(log=LogOptions("litellm", tenant="x")))


def test_the_generic_file_keeps_unknown_counts_unknown(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    load_files(lake, "tokens", [table(tmp_path / "t.csv", ROW, "llm-a,,,2026-08-01T10:00:00+01:00,,,,")])
    show_current(lake.connection)
    rows = lake.connection.execute(
        "SELECT tenant, epoch(hour_start)::BIGINT, input_tokens, output_tokens, cached_input_tokens, requests, "
        "failed_requests FROM token_usage ORDER BY source_row"
    ).fetchall()
    nine = 1_785_574_800
    assert rows == [("risk", nine, 9_000_000_000_000, 10, 40, 3, None), (None, nine, None, None, None, None, None)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            ROW.replace("09:00:00", "09:30:00"),
            "column hour_start: '2026-08-01T09:30:00Z' is not the start of a UTC hour",
        ),
        (ROW.replace("9000000000000", "39"), "column cached_input_tokens: '40' is more than input_tokens"),
        (ROW.replace("9000000000000", "-1"), "column input_tokens: '-1' is below 0"),
        (ROW.replace("9000000000000", "1.5"), "column input_tokens: '1.5' is not a whole number"),
        (ROW.replace("9000000000000", "9" * 19), f"column input_tokens: '{'9' * 19}' is not a whole number"),
        (ROW.replace("llm-a", ""), "column server: must not be empty"),
        (ROW.replace("2026-08-01T09:00:00Z", ""), "column hour_start: must not be empty"),
    ],
)
def test_a_bad_cell_is_named(fresh: Callable[[], Lake], tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(InputError) as refused_load:
        load_files(fresh(), "tokens", [table(tmp_path / "t.csv", ROW, row)])
    assert str(refused_load.value).startswith(f"t.csv: row 3, {message}")


def test_failed_requests_are_part_of_the_requests(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", f"{ROW},4,0", f"{ROW},3,4", header=f"{HEADER},failed_requests,cache_hit_requests")
    with pytest.raises(InputError) as refused_load:
        load_files(fresh(), "tokens", [path])
    assert [(problem.row, problem.column) for problem in refused_load.value.problems] == [
        (2, "failed_requests"),
        (3, "cache_hit_requests"),
    ]


def test_the_command_loads_a_log_and_says_how_many_rows_it_became(ws: Path) -> None:
    options = ["--format", "sglang", "--server", "llm-s", "--time-zone", "Europe/Berlin"]
    out = said(gputally("-C", ws, "load", "tokens", REQUEST_LOG, *options))
    assert out == f"{REQUEST_LOG.name}: 4 rows, loaded\n"


def test_the_command_refuses_a_bad_line_with_its_place(ws: Path, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "bad.jsonl", [SPEND, "{"])
    assert refused(ws, "tokens", path, "--format", "litellm") == "bad.jsonl: row 2: is not well-formed JSON"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tokens", "--tenant", "team"], "--server and --tenant are for logs (--format litellm, envoy or sglang)"),
        (["teams", "--format", "envoy"], "--format envoy is for tokens, not for teams"),
        (
            ["tokens", "--format", "envoy", "--server", "a="],
            "--server takes NAME once, and FOUND=NAME once for each FOUND",
        ),
        (["tokens", "--format", "envoy", "--server", "a", "--server", "b"], "--server takes NAME once"),
    ],
)
def test_options_that_do_not_go_together_are_refused(ws: Path, arguments: list[str], message: str) -> None:
    assert refusal(gputally("-C", ws, "load", *arguments, ACCESS_LOG)).startswith(message)
