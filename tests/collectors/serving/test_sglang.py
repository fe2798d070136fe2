"""SGLang: tokenizer and scheduler series in one row, live tokens where they are shown, at the end where not."""

from __future__ import annotations

from tests.collectors.serving.engine_pages import only, recorded, totals, walk

S = 'model_name="q",engine_type="unified"'


def test_a_recorded_page_of_0_5_3() -> None:
    row = only(recorded("sglang", "0.5.3.prom"))
    assert (row.requests_running, row.requests_waiting, row.requests_swapped_or_paused) == (41, 9, 0)
    assert (row.prompt_tokens, row.prompt_tokens_cached, row.prompt_tokens_computed) == (
        2_811_044,
        1_190_482,
        1_620_562,
    )
    assert (row.generation_tokens, row.generation_counted) == (903_311, "at_finish")
    assert (row.requests_finished, row.requests_aborted, row.model_load_seconds) == (3_902, 57, 38.1)
    assert (row.role, row.kv_used_ratio) == ("unified", 0.81)


def test_engine_seconds_by_phase_and_idle() -> None:
    row = only(
        totals(
            "sglang",
            f"sglang:num_running_reqs{{{S}}} 0",
            f'sglang:forward_execution_seconds_total{{{S},category="decode"}} 300.5',
            f'sglang:forward_execution_seconds_total{{{S},category="extend"}} 20.25',
            f'sglang:forward_execution_seconds_total{{{S},category="target_verify"}} 9.5',
            f'sglang:forward_execution_seconds_total{{{S},category="mixed"}} 1.5',
            f"sglang:scheduler_idle_seconds_total{{{S}}} 80",
        )
    )
    assert row.engine_busy_seconds == {"decode": 310.0, "prefill": 20.25, "mixed": 1.5}
    assert row.engine_idle_seconds == 80.0


def test_engine_seconds_that_stand_at_0_are_not_measured() -> None:
    """Unless it is told to time its devices. A phase that stands at 0 beside one that does not is 0."""

    def page(decode: float, extend: float) -> str:
        old = f"sglang:gpu_execution_seconds_total{{{S}"
        return "\n".join(
            [
                f"sglang:num_running_reqs{{{S}}} 1",
                f'{old},category="forward_decode"}} {decode}',
                f'{old},category="forward_extend"}} {extend}',
            ]
        )

    assert only(totals("sglang", page(0, 0))).engine_busy_seconds is None
    assert only(walk("sglang", page(0, 0), page(0, 0))[0]).engine_busy_seconds is None
    assert only(walk("sglang", page(5, 0), page(7, 0))[0]).engine_busy_seconds == {"decode": 2.0, "prefill": 0}


def test_tokens_of_all_tenants_are_those_of_the_server() -> None:
    tenants = [f'sglang:prompt_tokens_total{{model_name="q",team="{team}"}} {n}' for team, n in (("red", 7), ("", 5))]
    assert only(totals("sglang", f"sglang:num_running_reqs{{{S}}} 0", *tenants)).prompt_tokens == 12


def test_capacity_in_tokens_or_pages() -> None:
    running = f"sglang:num_running_reqs{{{S}}} 0"
    said = totals("sglang", running, f"sglang:max_total_num_tokens{{{S}}} 100000")
    pages = totals("sglang", running, f"sglang:num_pages{{{S}}} 100", f"sglang:page_size{{{S}}} 64")
    info = totals("sglang", running, f'sglang:cache_config_info{{{S},num_pages="10",page_size="16"}} 1')
    assert [only(reading).kv_capacity_tokens for reading in (said, pages, info)] == [100_000, 6_400, 160]


def test_an_idle_rank_beside_a_busy_one_is_idle() -> None:
    """The tokenizer counts tokens for all ranks, so they do not make the gauges of one of them doubtful."""

    def page(tokens: int, first: int) -> str:
        lines = [f'sglang:generation_tokens_total{{model_name="q"}} {tokens}']
        for rank, running in ((0, first), (1, 0)):
            lines.append(f'sglang:num_running_reqs{{{S},dp_rank="{rank}"}} {running}')
            lines.append(f'sglang:token_usage{{{S},dp_rank="{rank}"}} {0.4 if running else 0}')
        return "\n".join(lines)

    (busy,) = walk("sglang", page(100, 3), page(200, 3))
    assert {row.engine_index: row.requests_running for row in busy.samples} == {"0": 3, "1": 0, None: None}
    (blind,) = walk("sglang", page(100, 3), page(200, 0))
    assert {row.engine_index: row.requests_running for row in blind.samples} == {"0": None, "1": None, None: None}


def test_stages_of_a_pipeline_show_the_same_requests() -> None:
    stages = [f'sglang:num_queue_reqs{{{S},pp_rank="{rank}",tp_rank="0"}} 5' for rank in (0, 1)]
    assert only(totals("sglang", f"sglang:num_running_reqs{{{S}}} 0", *stages)).requests_waiting == 5


def test_counters_of_several_processes_are_added_up_unlike_their_gauges() -> None:
    lines = [f'sglang:num_requests_total{{model_name="q",pid="{pid}"}} 5' for pid in (1, 2)]
    lines += [f'sglang:num_paused_reqs{{{S},pid="{pid}"}} 5' for pid in (1, 2)]
    row = only(totals("sglang", f"sglang:num_running_reqs{{{S}}} 0", *lines))
    assert (row.requests_finished, row.requests_swapped_or_paused) == (10, 5)


def test_more_cached_than_prompt_tokens_say_nothing_about_computed_ones() -> None:
    lines = [f'sglang:{name}_tokens_total{{model_name="q"}} {n}' for name, n in (("prompt", 5), ("cached", 9))]
    row = only(totals("sglang", f"sglang:num_running_reqs{{{S}}} 0", *lines))
    assert (row.prompt_tokens, row.prompt_tokens_cached, row.prompt_tokens_computed) == (5, 9, None)
    assert "partial" in row.quality
