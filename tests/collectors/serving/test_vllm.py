"""vLLM as it really ran: totals of recorded runs against what its clients counted."""

from __future__ import annotations

import pytest

from tests.collectors.serving.engine_pages import only, recorded, run, summed, totals, walk

# generated, finished, prompt, finished prompt, computed, cached, finished requests, failed, preemptions
TRUTH = {
    "a": (44_302, 44_232, 8_788, 8_578, 6_516, 2_272, 193, 0, 397),
    "d": (17_183, 17_173, 3_572, 3_523, 2_868, 704, 76, 0, 9),
}
NAMES = (
    "generation_tokens", "finished_generation_tokens", "prompt_tokens", "finished_prompt_tokens",
    "prompt_tokens_computed", "prompt_tokens_cached", "requests_finished", "requests_failed", "preemptions",
)  # fmt: skip


@pytest.mark.parametrize("name", TRUTH)
def test_a_run_adds_up_to_what_the_engine_did_and_what_clients_got(name: str) -> None:
    steps = walk("vllm", *run(name))
    assert tuple(summed(steps, counter) for counter in NAMES) == TRUTH[name]


def test_run_a_work_finished_and_given_up_are_three_ledgers() -> None:
    """The clients got 44,232 tokens; 70 more went to seven streams that they left, and abort is not counted."""
    steps = walk("vllm", *run("a"))
    assert summed(steps, "generation_tokens") - summed(steps, "finished_generation_tokens") == 70
    assert all(row.requests_aborted is None for step in steps for row in step.samples)
    started = sum(row.histograms["time_to_first_token_seconds"].count for step in steps for row in step.samples)
    assert started - summed(steps, "requests_finished") == 7


def test_run_b_adds_up_over_a_stop_and_a_start() -> None:
    """Clients: 3,399 + 10 tokens before, 11,329 + 20 after; 285 requests were turned away, 14 of them with a 200."""
    pages = run("b")
    steps = walk("vllm", *pages)
    assert summed(steps, "generation_tokens") == 3_399 + 10 + 11_329 + 20
    assert summed(steps, "finished_generation_tokens") == 3_399 + 11_329
    assert summed(steps, "requests_failed") == 285
    assert [bool(step.counter_resets) for step in steps].count(True) == 1


def test_run_c_adds_up_over_a_kill() -> None:
    """9,453 tokens before kill -9 and 23,526 after: exactly, where an extrapolation says 33,213.4."""
    steps = walk("vllm", *run("c"))
    assert summed(steps, "generation_tokens") == 9_453 + 23_526 == 32_979
    restarts = [step for step in steps if step.counter_resets]
    assert len(restarts) == 1
    assert [(row.quality, row.generation_tokens) for row in restarts[0].samples] == [(("reset",), 0)]
    assert restarts[0].samples[0].interval_seconds == pytest.approx(37, abs=2)


def test_run_c_adds_up_without_start_times_and_without_times_of_pages() -> None:
    """Several API servers show no start time, and files have no time: a value that fell is enough."""
    bare = [
        "\n".join(line for line in text.splitlines() if "_created" not in line and "process_" not in line)
        for _, text in run("c")
    ]
    assert summed(walk("vllm", *bare), "generation_tokens") == 32_979


@pytest.mark.parametrize(("name", "doubtful", "working"), [("a", 1, 49), ("c", 1, 55), ("d", 16, 21)])
def test_a_gauge_at_0_while_tokens_grow_is_unknown(name: str, doubtful: int, working: int) -> None:
    rows = [row for step in walk("vllm", *run(name)) for row in step.samples if row.generation_tokens]
    unknown = [row for row in rows if row.requests_running is None]
    assert (len(unknown), len(rows)) == (doubtful, working)
    assert all("partial" in row.quality and row.requests_waiting is None for row in unknown)
    assert all(row.requests_running != 0 and row.kv_used_ratio != 0 for row in rows)


def test_operations_that_are_not_estimated_are_unknown_and_those_that_are_count() -> None:
    off = [row for step in walk("vllm", *run("a")) for row in step.samples]
    assert {row.estimated_flops for row in off} == {None}
    on = only(recorded("vllm", "real_b_lora_03_before_restart.prom.gz"))
    assert on.estimated_flops == 5_279_787_008
    # In a step without work an engine that does estimate says 0.
    page = 'vllm:num_requests_running{model_name="m"} 0\nvllm:estimated_flops_per_gpu_total{model_name="m"} 5'
    assert only(walk("vllm", page, page)[0]).estimated_flops == 0


def test_operations_of_a_device_pass_the_largest_number_of_all_others_in_hours() -> None:
    """At a petaflop a second 2**63 is reached within three hours; it goes on, and its steps stay right."""
    page = 'vllm:num_requests_running{{model_name="m"}} 1\nvllm:estimated_flops_per_gpu_total{{model_name="m"}} {}'
    (step,) = walk("vllm", page.format("9.5e18"), page.format("9.6e18"))
    assert only(step).estimated_flops == 10**17
    assert step.rejected == ()
    (beyond,) = walk("vllm", page.format("9.5e18"), page.format("2e27"))
    assert (only(beyond).estimated_flops, only(beyond).quality) == (None, ("partial", "rejected"))


def test_prefix_hits_are_tokens_or_blocks_by_version() -> None:
    """Peers multiply by the block size although the unit changed with 0.9: 50,000 hits are one or the other."""
    page = (
        'vllm:num_requests_running{engine="0",model_name="m"} 1',
        'vllm:gpu_prefix_cache_hits_total{engine="0",model_name="m"} 50000',
        'vllm:cache_config_info{block_size="16",engine="0"} 1',
    )
    found = {version: only(totals("vllm", *page, version=version)).prefix_hit_tokens for version in ("0.8.5", "0.9.1")}
    assert found == {"0.8.5": 800_000, "0.9.1": 50_000}
    assert only(totals("vllm", *page)).prefix_hit_tokens is None
    newer = (*page, 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.1')
    assert only(totals("vllm", *newer)).prefix_hit_tokens == 50_000


def test_opencost_1_a_restart_is_seen_before_series_are_summed() -> None:
    """A 900k to 1,000k; B 2,000k to 2,100k, started again, 50k: 250k tokens, where summing first says 0."""

    def page(a: int, b: int) -> str:
        series = 'vllm:generation_tokens_total{{engine="{}",model_name="m"}} {}'
        return "\n".join(series.format(engine, value) for engine, value in (("a", a), ("b", b)))

    steps = walk("vllm", page(900_000, 2_000_000), page(950_000, 2_100_000), page(1_000_000, 50_000))
    assert summed(steps, "generation_tokens") == 250_000


def test_opencost_2_decode_time_is_decode_time_not_a_sum_of_means() -> None:
    """Prefill 2,853.42 s and decode 37,519.71 s: decode is 92.93 % of it; the sum of means, 30.848 s, makes 1.07 %."""
    page = ['vllm:num_requests_running{model_name="m"} 1']
    for name, seconds in (
        ("request_prefill_time", 2_853.42),
        ("request_decode_time", 37_519.71),
        ("request_time_per_output_token", 30.848),
    ):
        page.append(f'vllm:{name}_seconds_sum{{model_name="m"}} {seconds}')
        page.append(f'vllm:{name}_seconds_count{{model_name="m"}} 1578')
    assert round(100 * (only(totals("vllm", *page)).decode_share or 0), 2) == 92.93


def test_opencost_3_cached_tokens_are_tokens() -> None:
    """12 M prompt tokens of which 800 k were cached: 11.2 M computed, not 12 M less 12.8 M."""
    row = only(
        totals(
            "vllm",
            'vllm:prompt_tokens_total{engine="0",model_name="m"} 12e6',
            'vllm:prefix_cache_hits_total{engine="0",model_name="m"} 8e5',
            'vllm:cache_config_info{engine="0",block_size="16",num_gpu_blocks="9"} 1',
        )
    )
    assert row.prompt_tokens_computed == 11_200_000
    assert "estimated" in row.quality


def test_shed_streams_that_answer_200_are_failures() -> None:
    row = only(recorded("vllm", "real_b_lora_03_before_restart.prom.gz"))
    assert row.requests_failed == 285
