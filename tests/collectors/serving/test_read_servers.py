"""`gputally read` of model servers: files and a real HTTP server, one page or several, and what goes wrong."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from collectors.serving.collector import EngineServer
from collectors.serving.engines import ENGINES
from tests.collectors.serving.engine_pages import FIXTURES, only, run
from tests.program import gputally, refusal, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VLLM = FIXTURES / "vllm"


class Engine(BaseHTTPRequestHandler):
    """A server with a page and a version, which it tells to who has the token."""

    page = ""
    version = b""
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.headers.get("Authorization") != "Bearer s3cret":
            return self.answer(401, b"")
        if self.path.startswith("/metrics"):
            return self.answer(200, self.page.encode())
        return self.answer(200, self.version) if self.path == "/version" else self.answer(404, b"")

    def answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def engine() -> Iterator[tuple[str, type[Engine]]]:
    handler = type("Served", (Engine,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    thread.join()
    server.server_close()


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_one_page_is_totals(golden: Callable[[str, str | bytes], None]) -> None:
    golden("read/vllm-0.16.0.jsonl", said(gputally("read", "vllm", VLLM / "0.16.0.prom")))


def test_pages_in_time_order_are_steps_and_a_restart_loses_nothing(tmp_path: Path) -> None:
    pages = run("c")
    # Start, the last page before the kill, two of the new process, and the end.
    names = [f"{number}.prom" for number in (0, 19, 21, 40, 68)]
    for name in names:
        (tmp_path / name).write_text(pages[int(name.removesuffix(".prom"))][1])
    found = rows(said(gputally("read", "vllm", *names, cwd=tmp_path)))
    assert {(row["counters"], row["server"]) for row in found} == {("delta", "0.prom")}
    assert [row["generation_tokens"] for row in found] == [9_453, 456, 12_058 - 456, 23_526 - 12_058]
    assert [row["quality"] for row in found].count(["reset"]) == 1


def test_sglang_is_a_kind() -> None:
    (row,) = rows(said(gputally("read", "sglang", FIXTURES / "sglang" / "0.5.3.prom")))
    assert (row["engine"], row["generation_counted"]) == ("sglang", "at_finish")


def test_what_was_refused_is_counted_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("vllm:num_requests_running 3\nvllm:kv_cache_usage_perc 3\nvllm:num_requests_waiting{\n")
    done = gputally("read", "vllm", "p", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "gputally: refused 2 values: bad_labels 1, range 1\n")


def test_a_page_of_another_engine_is_one_line_and_no_rows(tmp_path: Path) -> None:
    line = refusal(gputally("read", "sglang", VLLM / "0.16.0.prom"))
    assert line.endswith("holds metrics, but none that every sglang server has")
    (tmp_path / "p").write_text("<!doctype html><title>Sign in</title>")
    assert "is a web page (HTML)" in refusal(gputally("read", "vllm", VLLM / "0.16.0.prom", "p", cwd=tmp_path))


def test_an_address_is_read_with_its_token_and_version(engine: tuple[str, type[Engine]], tmp_path: Path) -> None:
    address, handler = engine
    handler.page = (VLLM / "0.16.0.prom").read_text()
    handler.version = b'{"version": "0.16.0"}'
    (tmp_path / "token").write_text("s3cret\n")
    arguments = ("read", "vllm", f"{address}/metrics?secret=1", "--token-file", tmp_path / "token")
    (row,) = rows(said(gputally(*arguments)))
    assert (row["engine_version"], row["server"]) == ("0.16.0", address.removeprefix("http://"))
    assert row["ts_nanoseconds"] > 0
    assert sorted(handler.asked) == ["/metrics?secret=1", "/version"]
    assert refusal(gputally("read", "vllm", f"{address}/metrics")).endswith("HTTP 401 Unauthorized")


@pytest.mark.parametrize(
    "answer", [b"", b"[]", b"{}", b'{"version": 1}', b'{"version": "\\u001b[2J"}', b"[" * 100_000, b"<html>"]
)
def test_a_version_that_is_none_costs_nothing(engine: tuple[str, type[Engine]], answer: bytes) -> None:
    address, handler = engine
    handler.page = 'vllm:num_requests_running{model_name="m"} 3'
    handler.version = answer
    server = EngineServer(ENGINES["vllm"], f"{address}/metrics", token="s3cret")
    row = only(server.collect().totals)
    assert (row.engine_version, row.requests_running) == (None, 3)
    server.collect()
    assert handler.asked.count("/version") == 1


def test_the_version_is_asked_again_after_a_restart(engine: tuple[str, type[Engine]]) -> None:
    address, handler = engine
    server = EngineServer(ENGINES["vllm"], f"{address}/metrics", token="s3cret")
    handler.page, handler.version = 'vllm:generation_tokens_total{model_name="m"} 9', b'{"version": "0.16.0"}'
    server.collect()
    handler.page, handler.version = 'vllm:generation_tokens_total{model_name="m"} 5', b'{"version": "0.33.0"}'
    restarted = server.collect().step
    assert restarted is not None
    assert only(restarted).generation_tokens == 5
    assert only(server.collect().totals).engine_version == "0.33.0"


def test_a_name_a_model_and_a_role_of_the_target_stand_in_rows_that_do_not_say() -> None:
    server = EngineServer(ENGINES["vllm"], server="llm-a", model="llama", role="prefill", version="0.9")
    row = only(server.read("vllm:num_requests_running 3\n").totals)
    assert (row.server, row.model, row.role, row.engine_version) == ("llm-a", "llama", "prefill", "0.9")
    assert only(server.read('vllm:num_requests_running{model_name="m"} 3\n').totals).model == "m"
