"""Pages that went wrong, each with its outcome: a line costs that line, and what is no page is one clear error."""

from __future__ import annotations

import re

import pytest

from collectors.exposition import PageError
from collectors.serving.servers import server_of
from tests.collectors.serving.engine_pages import FIXTURES, counts, only, summed, totals, walk
from tests.collectors.serving.engines.pages_at_hand import page_of

NO_PAGES = [
    ("html-login.txt", "vllm", "is a web page (HTML), not metrics; a sign-in form or a wrong path?"),
    ("litellm-307.txt", "litellm", "holds no metric sample (3 lines refused); is this the address of a metrics page?"),
    ("trtllm-serve-metrics-empty.json", "trtllm", "is JSON, not metrics in the Prometheus text format"),
    ("vllm-only-python-series.prom", "vllm", "holds metrics, but none that every vllm server has"),
]


@pytest.mark.parametrize(("name", "kind", "message"), NO_PAGES, ids=[name for name, _, _ in NO_PAGES])
def test_a_page_that_is_none(name: str, kind: str, message: str) -> None:
    with pytest.raises(PageError, match=re.escape(message)):
        server_of(kind, str(FIXTURES / "bad" / name)).collect()


def test_an_empty_list_of_iterations_is_no_idle_engine() -> None:
    with pytest.raises(PageError, match="this says nothing about load"):
        server_of("trtllm_json", str(FIXTURES / "bad" / "trtllm-serve-metrics-empty.json")).collect()


def test_of_a_series_said_twice_the_first_is_kept_and_the_other_counted() -> None:
    reading = totals("vllm", page_of("bad/duplicate-series.prom"))
    assert only(reading).requests_running == 3
    assert counts(reading) == {"duplicate_series": 1}


def test_values_that_are_none_are_refused_and_the_row_says_so() -> None:
    reading = totals("vllm", page_of("bad/nan-inf.prom"), 'vllm:num_requests_running{engine="0",model_name="m"} 2')
    sample = only(reading)
    assert (sample.kv_used_ratio, sample.prompt_tokens, sample.requests_running) == (None, None, 2)
    assert counts(reading) == {"not_finite": 1, "range": 1}
    assert "rejected" in sample.quality


def test_openmetrics_is_read_without_its_extras() -> None:
    assert only(totals("vllm", page_of("bad/openmetrics.om"))).prompt_tokens == 12


def test_a_page_that_was_cut_off_loses_its_last_line() -> None:
    reading = totals("vllm", page_of("bad/truncated.prom"))
    assert (only(reading).requests_running, only(reading).prompt_tokens) == (3, None)
    assert counts(reading) == {"bad_labels": 1}


def test_a_restart_between_two_pages_counts_what_came_after_it() -> None:
    """9.9 million before, 1204 after: 1204 were added, not a negative number and not all of it."""
    steps = walk("vllm", page_of("bad/restart-before.prom"), page_of("bad/restart-after.prom"))
    assert summed(steps, "generation_tokens") == 1204
    assert "reset" in only(steps[0]).quality
