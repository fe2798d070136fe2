"""`gputally read`: rows as JSON lines, refusals counted on one line, and an unreadable page as one clear line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.collectors.dcgm_pages import FIXTURES
from tests.program import environment, gputally, refusal, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_rows_of_a_node(golden: Callable[[str, str | bytes], None]) -> None:
    golden("read/dcgm-h100x8.jsonl", said(gputally("read", "dcgm", FIXTURES / "h100x8-k8s.prom")))


def test_rows_of_a_step(golden: Callable[[str, str | bytes], None]) -> None:
    pages = [FIXTURES / "h100x8-k8s.prom", FIXTURES / "h100x8-k8s-t30.prom"]
    golden("read/dcgm-h100x8-step.jsonl", said(gputally("read", "dcgm", *pages)))


def test_each_step_has_a_row_for_each_device() -> None:
    pages = [FIXTURES / f"{name}.prom" for name in ("h100x8-k8s", "gpu3-missing", "h100x8-k8s-t30")]
    found = rows(said(gputally("read", "dcgm", *pages)))
    assert [row["state"] for row in found].count("lost") == 1
    assert len(found) == 16


def test_a_new_xid_stands_in_its_devices_row(tmp_path: Path) -> None:
    for name, code in (("before", 0), ("after", 79)):
        (tmp_path / name).write_text(f'DCGM_FI_DEV_XID_ERRORS{{UUID="GPU-a"}} {code}\n')
    (row,) = rows(said(gputally("read", "dcgm", tmp_path / "before", tmp_path / "after")))
    assert (row["events"], row["xid_codes"]) == ([{"code_space": "xid", "code": 79}], [79])


def test_what_was_refused_is_one_line_beside_the_rows() -> None:
    done = gputally("read", "dcgm", FIXTURES / "malformed.prom")
    assert (done.returncode, done.stderr) == (0, "gputally: refused 2 values: bad_labels 1, bad_value 1\n")
    (row,) = rows(done.stdout)
    assert (row["power_watts"], row["busy_ratio"], row["owner"]) == (71.5, None, None)


def test_refusals_of_all_pages_are_counted() -> None:
    done = gputally("read", "dcgm", FIXTURES / "malformed.prom", FIXTURES / "sentinels.prom")
    assert done.stderr == "gputally: refused 11 values: bad_labels 1, bad_value 1, blank 6, not_supported 1, range 2\n"


def test_text_of_strangers_cannot_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "page").write_text('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",pod="\x1b[2J\u202e"} 1\n')
    text = said(gputally("read", "dcgm", tmp_path / "page"))
    assert text.isascii()
    assert text.rstrip("\n").isprintable()
    assert rows(text)[0]["owner"] == [{"pod": "\x1b[2J\u202e"}]


BAD_PAGES = [
    ("", "is empty"),
    ("<!doctype html><title>Sign in</title>", "is a web page (HTML), not metrics; a sign-in form or a wrong path?"),
    ("[]", "is JSON, not metrics in the Prometheus text format"),
    ("# HELP x y\n", "holds no metric sample; is this the address of a metrics page?"),
    ("vllm:num_requests_running 3\n", "holds metrics, but none of dcgm-exporter"),
]


@pytest.mark.parametrize(("text", "message"), BAD_PAGES, ids=[message for _, message in BAD_PAGES])
def test_a_page_that_is_none_is_one_line_and_no_rows(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad").write_text(text)
    line = refusal(gputally("read", "dcgm", FIXTURES / "h100x8-k8s.prom", "bad", cwd=tmp_path))
    assert line == f"bad: {message}"


def test_a_page_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    assert refusal(gputally("read", "dcgm", "gone.prom", cwd=tmp_path)) == "gone.prom: No such file or directory"
    assert refusal(gputally("read", "dcgm", ".", cwd=tmp_path)) == ".: is not a file"
    assert refusal(gputally("read", "dcgm", "http://127.0.0.1:1/metrics")).endswith(": Connection refused")


def test_a_token_is_read_from_a_file_named_by_option_or_environment(tmp_path: Path) -> None:
    line = f"{tmp_path}/token: No such file or directory"
    assert refusal(gputally("read", "dcgm", "x", "--token-file", tmp_path / "token")) == line
    named = environment(GPUTALLY_TOKEN_FILE=str(tmp_path / "token"))
    assert refusal(gputally("read", "dcgm", "x", env=named)) == line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("read", "vax", "p"), "'vax' is not"), (("read", "dcgm"), "Missing argument 'PAGE...'")],
)
def test_wrong_use_is_exit_code_2_with_a_reason(arguments: tuple[str, ...], message: str) -> None:
    done = gputally(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_no_workspace_is_needed_and_none_is_made(tmp_path: Path) -> None:
    said(gputally("read", "dcgm", FIXTURES / "a100-mig.prom", cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []
