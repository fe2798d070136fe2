"""Traps of serving engines' metrics that concern engines other than vLLM and SGLang, each in tests by its number."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from collectors.exposition import PageError
from collectors.serving.servers import server_of
from tests.collectors.serving.engine_pages import FIXTURES, walk
from tests.collectors.serving.engines.pages_at_hand import page_of, row, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

LLAMACPP = page_of("llamacpp/2026.prom")
LITELLM = page_of("litellm/1.110.2.prom")
ROWS = page_of("trtllm/serve-metrics.json")


class Peer(BaseHTTPRequestHandler):
    """Servers as they answer: each path is one of them."""

    taken: list[str]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        authorised = self.headers.get("Authorization") == "Bearer s3cret"
        pages = {
            "/litellm/metrics/": LITELLM,
            "/elsewhere": page_of("bad/vllm-only-python-series.prom"),
            "/html": page_of("bad/html-login.txt"),
        }
        if parts.path == "/litellm/metrics":
            self.answer(307, "", Location="/litellm/metrics/")
        elif parts.path == "/volume":
            self.answer(500, "OSError: [Errno 5] Input/output error")
        elif parts.path == "/guarded":
            self.answer(200 if authorised else 401, page_of("inference_extension/epp-1.5.0.prom") if authorised else "")
        elif parts.path == "/router":
            asked = parse_qs(parts.query).get("model") == ["qwen3-8b"]
            self.answer(200 if asked else 400, LLAMACPP if asked else "model name is missing from the request")
        elif parts.path == "/large":
            self.answer(200, LITELLM + "# filler\n" * 5_000_000)
        elif parts.path == "/iterations":
            self.answer(200, self.taken.pop() if self.taken else "[]")
        else:
            self.answer(200 if parts.path in pages else 404, pages.get(parts.path, ""))

    def answer(self, code: int, text: str, **headers: str) -> None:
        body = text.encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            # A reader that has enough leaves.
            return

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def peer() -> Iterator[str]:
    Peer.taken = [ROWS]
    with ThreadingHTTPServer(("127.0.0.1", 0), Peer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_trap_03_a_gauge_of_each_process_is_the_largest_of_them() -> None:
    """TensorRT-LLM's gauges have no mode for many processes; those that do nothing show 0, or what they last did."""
    page = page_of("trtllm/serve-1.3.prom")
    busy = [line for line in page.splitlines() if 'pid="101"' in line]
    idle = [line.rpartition(" ")[0].replace('pid="101"', 'pid="99"') + " 0.0" for line in busy]
    assert rows("trtllm", "\n".join([*idle, page])) == rows("trtllm", page)


def test_trap_16_a_histogram_named_like_a_counter_is_a_histogram() -> None:
    """Also with declared types that are wrong or absent: the mapping tells, not the page."""
    found = row(
        "vllm",
        'vllm:num_requests_running{engine="0",model_name="m"} 1\n'
        "# TYPE vllm:iteration_tokens_total counter\n"
        'vllm:iteration_tokens_total_bucket{engine="0",model_name="m",le="8"} 3\n'
        'vllm:iteration_tokens_total_bucket{engine="0",model_name="m",le="+Inf"} 5\n'
        'vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 40\n'
        'vllm:iteration_tokens_total_count{engine="0",model_name="m"} 5\n',
    )
    assert found["histograms"]["step_tokens"] == {"bounds": (8.0,), "counts": (3, 2), "sum": 40.0, "count": 5}


def test_trap_17_counters_that_are_called_or_declared_something_else() -> None:
    """Without `_total` (Triton, TGI); declared gauges (LMDeploy); declared counters that are none (llama.cpp)."""
    before, after = page_of("lmdeploy/0.18.0.prom"), page_of("lmdeploy/0.18.0.prom").replace("failed{", "failed{ ")
    assert "# TYPE lmdeploy:num_requests_failed gauge" in before
    after = after.replace(" 3.0\n", " 5.0\n")
    (step,) = walk("lmdeploy", (100.0, before), (160.0, after))
    assert [sample.requests_failed for sample in step.samples] == [2]

    tgi = page_of("tgi/3.3.7.prom")
    (step,) = walk("tgi", (100.0, tgi), (160.0, tgi.replace("tgi_request_success 3921", "tgi_request_success 3930")))
    assert [sample.requests_finished for sample in step.samples] == [9]

    triton = page_of("triton/core-2.71.0.prom")
    moved = triton.replace('version="3",gpu_uuid="GPU-8f1c2b34-0000-1111-2222-333344445555"} 9102', 'version="3"} 9102')
    assert row("triton", moved, model="ocr_det")["requests_finished"] == 9102

    assert "# TYPE llamacpp:n_tokens_max counter" in LLAMACPP
    assert not {8120, 1.94} & {value for value in row("llamacpp", LLAMACPP).values() if isinstance(value, int | float)}


def test_trap_17_failures_of_old_triton_servers_have_no_reason() -> None:
    page = (
        'nv_inference_request_success{model="m",version="1"} 5\nnv_inference_request_failure{model="m",version="1"} 2\n'
    )
    assert row("triton", page)["requests_failed"] == 2


def test_trap_20_reading_the_json_page_takes_its_rows_away(peer: str) -> None:
    """The first visit gets them, the second gets `[]`: no reading, never an idle engine."""
    server = server_of("trtllm_json", f"{peer}/iterations")
    visit = server.collect()
    (sample,) = visit.totals.samples
    assert (sample.counters, sample.requests_finished, sample.requests_running) == ("delta", 1, 38)
    assert visit.step == visit.totals
    with pytest.raises(PageError, match="holds no iteration; another reader may have taken them"):
        server.collect()


def test_trap_21_a_redirect_on_the_same_host_is_followed(peer: str) -> None:
    visit = server_of("litellm", f"{peer}/litellm/metrics").collect()
    assert len(visit.totals.samples) == 3


def test_trap_21_an_answer_of_200_without_any_known_series_is_a_failed_scrape(peer: str) -> None:
    for kind in ("trtllm", "triton", "tgi", "litellm", "ray_serve", "dynamo", "nim"):
        with pytest.raises(PageError, match=f"none that every {kind} server has"):
            server_of(kind, f"{peer}/elsewhere").collect()
    with pytest.raises(PageError, match="is a web page"):
        server_of("tgi", f"{peer}/html").collect()


def test_trap_21_a_redirect_saved_instead_of_the_page_is_none() -> None:
    with pytest.raises(PageError, match="holds no metric sample"):
        server_of("litellm", str(FIXTURES / "bad" / "litellm-307.txt")).collect()


def test_trap_23_an_answer_of_500_is_one_clear_line(peer: str) -> None:
    """vLLM with its folder for many processes on a network volume; its own text is not repeated."""
    with pytest.raises(PageError) as caught:
        server_of("vllm", f"{peer}/volume").collect()
    assert str(caught.value) == f"{peer}/volume: HTTP 500 Internal Server Error"


def test_trap_24_a_server_that_wants_a_token_gets_its_own(peer: str) -> None:
    (first, *_) = server_of("inference_extension", f"{peer}/guarded", token="s3cret").collect().totals.samples
    assert first.model == "llama-70b"
    for token in (None, "wr0ng"):
        with pytest.raises(PageError) as caught:
            server_of("inference_extension", f"{peer}/guarded", token=token).collect()
        assert str(caught.value) == f"{peer}/guarded: HTTP 401 Unauthorized"


@pytest.mark.parametrize("name", ["lmdeploy/0.18.0.prom", "llamacpp/2026.prom"])
def test_trap_26_a_colon_and_an_underscore_are_one(name: str) -> None:
    kind = name.partition("/")[0]
    page = page_of(name)
    assert rows(kind, page.replace(f"{kind}:", f"{kind}_")) == rows(kind, page)
    assert rows(kind, page.replace(f"{kind}:", f"ray_{kind}_")) == rows(kind, page)


def test_trap_26_ray_serve_with_and_without_its_prefix() -> None:
    page = page_of("ray_serve/2.60.0-serve-llm.prom")
    assert rows("ray_serve", page.replace("ray_serve_", "serve_")) == rows("ray_serve", page)
    assert rows("vllm", page.replace("ray_vllm_", "ray_vllm:")) == rows("vllm", page)


def test_trap_33_a_page_that_is_too_large_is_refused_and_not_read(peer: str) -> None:
    with pytest.raises(PageError, match="is larger than 33554432 bytes"):
        server_of("litellm", f"{peer}/large").collect()


def test_trap_34_llamacpp_in_router_mode_wants_the_model_in_its_address(peer: str) -> None:
    with pytest.raises(PageError) as caught:
        server_of("llamacpp", f"{peer}/router").collect()
    assert str(caught.value) == (
        f"{peer}/router: HTTP 400 Bad Request: llama.cpp in router mode wants to be asked for one model "
        "(`?model=NAME` in the address)"
    )
    # Nobody else is told so.
    with pytest.raises(PageError, match=r"HTTP 400 Bad Request$"):
        server_of("vllm", f"{peer}/router").collect()
    visit = server_of("llamacpp", f"{peer}/router?model=qwen3-8b", model="qwen3-8b").collect()
    (sample,) = visit.totals.samples
    assert (sample.model, sample.requests_running) == ("qwen3-8b", 2)
