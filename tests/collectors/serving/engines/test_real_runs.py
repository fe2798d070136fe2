"""Servers that really ran under load, with clients that counted: what the pages say must agree with them.

The runs: Ray Serve 2.60.0 (one deployment, 1 to 2 replicas, queue of 40), LiteLLM 1.106.12 (two teams in front of
vLLM), KServe 0.21, MLServer 1.7.1 and TorchServe 0.12.0 (a small scorer each).
"""

from __future__ import annotations

import re

import pytest

from tests.collectors.serving.engine_pages import walk
from tests.collectors.serving.engines.pages_at_hand import gateway_steps, page_of, read, row, rows

RAY = [f"ray_serve/real_{name}.prom.gz" for name in ("01_idle", "02_under_load", "03_just_after_load", "04_after")]
LITELLM = [f"litellm/real_{name}.prom.gz" for name in ("01_idle", "02_under_load", "03_after", "04_backend_down")]


def test_ray_serve_counts_are_those_of_its_clients() -> None:
    """Clients saw 524 answers (and one to warm up), 2277 times 503 and 13 errors; a 503 never reached a replica."""
    found = row("ray_serve", page_of(RAY[-1]))
    assert found["requests_finished_by_reason"] == {"200": 525, "503": 2277, "500": 13}
    assert (found["requests_finished"], found["requests_failed"]) == (525, 13)
    assert found["requests_received"] - found["requests_finished"] - found["requests_failed"] == 2277
    # The removed replica stays on the page, and so does what it did.
    assert found["histograms"]["request_latency_seconds"]["count"] == 525 + 13


def test_ray_serve_steps_add_up_to_the_run() -> None:
    """The second replica showed 92 requests when it was first seen; when it began is not on the page."""
    steps = walk("ray_serve", *((1_796_064_150 + 20.0 * place, page_of(name)) for place, name in enumerate(RAY)))
    assert sum(sample.requests_finished or 0 for step in steps for sample in step.samples) == 524 - 92
    assert [sample.quality for sample in steps[0].samples] == [("partial",)]
    assert [sample.quality for sample in steps[2].samples] == [()]


def test_ray_serve_full_queue_and_nobody_running_is_stale_not_idle() -> None:
    """After the load had ended the queue still read 40: values are pushed every 10 s."""
    found = row("ray_serve", page_of(RAY[2]))
    assert (found["requests_waiting"], found["requests_running"]) == (40, 0)


def test_ray_serve_random_labels_do_not_make_rows() -> None:
    """1.7 thousand series with ids of workers, handles and replicas are one row."""
    page = page_of(RAY[-1])
    assert page.count("\n") > 1700
    ids = set(re.findall(r'(?:WorkerId|SessionName|NodeAddress|replica|handle|actor_id)="([^"]+)"', page))
    assert len(ids) > 8
    (found,) = read("ray_serve", page).samples
    assert not [word for word in ids if word in repr(found)]


def test_torchserve_attempts_are_not_the_work_done() -> None:
    """1786 attempts: 411 served and one to warm up, 1374 turned away with 503."""
    found = row("torchserve", page_of("torchserve/real_03_after.prom"))
    assert (found["requests_received"], found["requests_failed"]) == (1786, 1374)
    assert found["requests_received"] - found["requests_failed"] == 411 + 1
    assert "requests_finished" not in found


def test_torchserve_scrapes_and_last_values_are_no_traffic() -> None:
    """`Requests2XX` grew with each scrape, `QueueTime` stayed at 664 ms when all was over: neither is taken."""
    page = page_of("torchserve/real_03_after.prom")
    assert 'Requests2XX{Level="Host",Hostname="vm",} 441.0' in page
    found = rows("torchserve", page)
    assert not re.search(r"\b(441|664|0\.664)\b", repr(found))


def test_torchserve_before_its_first_request() -> None:
    assert rows("torchserve", page_of("torchserve/real_01_idle.prom")) == [
        {"engine": "torchserve", "server": "server:8000", "counters": "total", "model_load_seconds": 2.329}
    ]


@pytest.mark.parametrize(("model", "asked", "answered"), [("scorer-a", 829, 809), ("scorer-b", 833, 812)])
def test_kserve_errors_are_predictions_without_postprocessing(model: str, asked: int, answered: int) -> None:
    """Clients saw 20 and 21 times 500; no series counts them."""
    found = row("kserve", page_of("kserve/real_03_after.prom"), model=model)
    assert (found["requests_received"], found["requests_finished"]) == (asked, answered)
    assert found["requests_failed"] == asked - answered


def test_kserve_errors_of_a_step() -> None:
    pages = [
        (10.0 * place, page_of(f"kserve/real_{name}.prom")) for place, name in enumerate(("02_under_load", "03_after"))
    ]
    (step,) = walk("kserve", *pages)
    assert {sample.model: sample.requests_failed for sample in step.samples} == {
        "scorer-b": 21 - 12,
        "scorer-a": 20 - 11,
    }


def test_mlserver_names_that_clients_made_up_have_failures_only() -> None:
    found = {one.get("model"): one for one in rows("mlserver", page_of("kserve/real_mlserver_03_after.prom"))}
    assert found["scorer-a"]["requests_finished"] == found["scorer-b"]["requests_finished"] == 1333
    assert found["nope"]["requests_failed"] == 1333
    assert "requests_finished" not in found["nope"]
    # Its counters say failures of 1, and its web server says the same of 500s.
    assert found["scorer-b"]["requests_failed"] == 1


TRUTH = {"team-alpha-id": (2148 + 2, 5960 + 8), "team-beta-id": (2109 + 15, 5411 + 8)}


@pytest.mark.parametrize(("team", "tokens"), TRUTH.items())
def test_litellm_tokens_of_a_team_are_those_of_its_clients(team: str, tokens: tuple[int, int]) -> None:
    """What the clients of each team counted, and one request each to warm up."""
    found = row("litellm", page_of(LITELLM[2]), tenant=team)
    assert (found["prompt_tokens"], found["generation_tokens"]) == tokens
    assert (found["model"], found["served_model"]) == ("tiny", "tiny-llama")


def test_litellm_steps_add_up_to_the_totals() -> None:
    """Each series says when it began, so the first step counts whole."""
    pages = [page_of(name) for name in LITELLM]
    began = [[float(value) for value in re.findall(r"^litellm_\w+_created\{.*\} (\S+)", page, re.M)] for page in pages]
    seconds = [min(began[1]) - 1, *(max(times) + place for place, times in enumerate(began[1:]))]
    assert seconds == sorted(set(seconds))
    steps = gateway_steps("litellm", *zip(seconds, pages, strict=True))
    for team, (prompt, generated) in TRUTH.items():
        mine = [sample for step in steps for sample in step.samples if sample.tenant == team]
        assert sum(sample.prompt_tokens or 0 for sample in mine) == prompt
        assert sum(sample.generation_tokens or 0 for sample in mine) == generated
        assert {sample.quality for sample in mine} == {()}


def test_litellm_with_its_backend_down_counts_failures_and_no_tokens() -> None:
    """Six requests of two teams failed; state of the deployment stayed at 1, whatever its description says."""
    (step,) = gateway_steps("litellm", (0.0, page_of(LITELLM[2])), (60.0, page_of(LITELLM[3])))
    for team in TRUTH:
        (mine,) = [sample for sample in step.samples if sample.tenant == team]
        assert (mine.requests_failed, mine.requests_finished, mine.generation_tokens) == (3, 0, 0)


def test_litellm_wrong_key_is_a_failure_of_nobody() -> None:
    found = row("litellm", page_of(LITELLM[2]), model="tiny", requests_received=1)
    assert "tenant" not in found
    assert found["requests_failed"] == 1


def test_litellm_counts_less_than_the_engine_behind_it() -> None:
    """vLLM generated 11599 tokens in that time: the rest is of streams that were given up, and stays unattributed."""
    found = rows("litellm", page_of(LITELLM[2]))
    assert 11_599 - sum(one.get("generation_tokens", 0) for one in found) == 212
    assert 4_565 - sum(one.get("prompt_tokens", 0) for one in found) == 291
