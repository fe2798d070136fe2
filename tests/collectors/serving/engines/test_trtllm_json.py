"""Trap 20: TensorRT-LLM's JSON page, whose rows go to whoever reads them first."""

from __future__ import annotations

import pytest

from collectors.exposition import PageError
from collectors.serving.engines import ENGINES
from collectors.serving.servers import server_of
from tests.collectors.serving.engines.pages_at_hand import page_of, rows

ROWS = page_of("trtllm/serve-metrics.json")


def test_trap_20_the_json_page_is_not_taken_for_metrics() -> None:
    """Whoever names the wrong path gets an error, and the text parser never sees the rows."""
    with pytest.raises(PageError, match="is JSON, not metrics in the Prometheus text format"):
        rows("trtllm", ROWS)
    assert "trtllm_json" not in ENGINES


def test_trap_20_iterations_that_another_reader_took_are_noticed() -> None:
    server = server_of("trtllm_json", "page")
    assert [sample.quality for sample in server.read(ROWS).totals.samples] == [()]
    later = ROWS.replace('"iter": 154', '"iter": 160').replace('"iter": 155', '"iter": 161')
    assert [sample.quality for sample in server.read(later).totals.samples] == [("partial",)]
    assert [sample.quality for sample in server.read(ROWS).totals.samples] == [("reset",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "holds no iteration"),
        ("{}", "is JSON, but no list of iterations"),
        ("[1, null, [], {}]", "holds no iteration"),
        ("[" * 100_000, "is not JSON"),
        ("m 1\n", "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_trap_20_a_json_page_that_is_none(text: str, message: str) -> None:
    with pytest.raises(PageError, match=message):
        server_of("trtllm_json", "page").read(text)


def test_trap_20_numbers_of_a_json_page_are_not_believed_blindly() -> None:
    (sample,) = (
        server_of("trtllm_json", "page")
        .read(
            '[{"iter": 1, "numActiveRequests": -3, "numQueuedRequests": true, "numCompletedRequests": 1e99,'
            ' "kvCacheStats": {"maxNumBlocks": 10, "usedNumBlocks": 11, "tokensPerBlock": "32"},'
            ' "inflightBatchingStats": []}, 7]'
        )
        .totals.samples
    )
    assert (sample.requests_running, sample.requests_waiting, sample.requests_finished) == (None, None, None)
    assert (sample.kv_used_ratio, sample.kv_capacity_tokens) == (None, None)
