"""`gputally read`: rows as JSON lines, refusals counted on one line, and an unreadable page as one clear line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.collectors.dcgm_pages import FIXTURES
from tests.collectors.nvml_machines import activity, seven
from tests.nvml_shim.machine import h100
from tests.program import environment, gputally, refusal, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.nvml_shim.machine import Machine


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


def driver(machine: Machine) -> dict[str, str]:
    """The environment in which the stand-in for the driver's library is found by its soname."""
    folder = machine.library_file().parent
    return environment(LD_LIBRARY_PATH=str(folder), NVML_SHIM_SCENARIO=str(machine.scenario))


def test_rows_of_the_driver(machine: Machine, golden: Callable[[str, str | bytes], None]) -> None:
    facts = {"*.count": 2, **h100(1), **activity("0"), **seven(1), "1.mig0.mem_used": 5 * 2**30}
    machine.change({**facts, "0.procs": "4242:1000", **{f"1.mig{slot}.uuid": None for slot in range(2, 7)}})
    found = rows(said(gputally("read", "nvml", env=driver(machine))))
    assert all(row.pop("ts_nanoseconds") > 0 for row in found)
    golden("read/nvml-h100-mig.jsonl", "".join(f"{json.dumps(row)}\n" for row in found))


def test_visits_are_rows_each_and_refusals_one_line(machine: Machine) -> None:
    machine.change({"0.util_gpu": 1980, **activity("0")})
    done = gputally("read", "nvml", "--visits", "2", env=driver(machine))
    assert done.stderr == "gputally: refused 2 values: range 2\n"
    first, second = rows(done.stdout)
    assert (first["busy_ratio"], first["sm_ratio"], first["quality"]) == (None, 0.415, ["rejected"])
    assert second["ts_nanoseconds"] - first["ts_nanoseconds"] >= 1_000_000_000


def test_a_machine_without_a_driver_is_one_line(machine: Machine) -> None:
    machine.change({"*.init": "!9"})
    line = refusal(gputally("read", "nvml", env=driver(machine)))
    assert line == "no NVIDIA driver answers here (NVML code 9)"


def test_faults_of_kernel_logs(tmp_path: Path) -> None:
    (tmp_path / "kern.log").write_text(
        "2026-01-12T03:04:05Z gpu-7 kernel: NVRM: Xid (PCI:0000:05:00): 31, pid=7, name=x, MMU Fault\n"
        "2026-01-12T03:04:06Z gpu-7 kernel: usb 1-1: new device\n"
    )
    (tmp_path / "dmesg").write_text(
        "[   12.5] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
    )
    found = rows(said(gputally("read", "kernel-log", "kern.log", "dmesg", cwd=tmp_path)))
    assert [(row["code_space"], row["code"], row["severity"], row["fault_class"]) for row in found] == [
        ("xid", 31, "info", "application"),
        ("sxid", 20034, "critical", "link"),
    ]
    assert [row["ts_nanoseconds"] for row in found] == [1_768_187_045_000_000_000, None]
    assert refusal(gputally("read", "kernel-log", "gone", cwd=tmp_path)).startswith("gone: No such file or directory")


def test_a_long_kernel_log_is_read_to_its_end(tmp_path: Path) -> None:
    noise = "[    1.0] usb 1-1: new device, and more of it to fill the line with something or other\n" * 150_000
    (tmp_path / "log").write_text(noise + "[2.0] NVRM: Xid (PCI:0000:05:00): 48, x\n")
    assert [row["code"] for row in rows(said(gputally("read", "kernel-log", tmp_path / "log")))] == [48]


def iterations(folder: Path, name: str, *numbers: int) -> None:
    """A JSON page of TensorRT-LLM: each of these iterations finished as many requests as its number says."""
    (folder / name).write_text(json.dumps([{"iter": number, "numCompletedRequests": number} for number in numbers]))


def test_a_page_that_reading_empties_is_a_step_from_the_first_on(tmp_path: Path) -> None:
    iterations(tmp_path, "one", 1, 2, 3)
    iterations(tmp_path, "two", 4, 5)
    (tmp_path / "bad-row").write_text('[{"iter": 6, "numCompletedRequests": 6}, 7]')
    found = rows(said(gputally("read", "trtllm_json", "one", "two", cwd=tmp_path)))
    assert [(row["requests_finished"], row["counters"]) for row in found] == [(6, "delta"), (9, "delta")]
    (row,) = rows(said(gputally("read", "trtllm_json", "two", cwd=tmp_path)))
    assert row["requests_finished"] == 9
    done = gputally("read", "trtllm_json", "bad-row", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "gputally: refused 1 value: bad_row 1\n")


def test_what_reading_took_away_is_shown_although_the_next_page_is_none(tmp_path: Path) -> None:
    iterations(tmp_path, "one", 1, 2, 3)
    (tmp_path / "two").write_text("[]")
    done = gputally("read", "trtllm_json", "one", "two", cwd=tmp_path)
    assert [row["requests_finished"] for row in rows(done.stdout)] == [6]
    assert done.returncode == 1
    assert "two: holds no iteration" in done.stderr


def test_pages_of_a_gateway_are_steps_by_tenant(tmp_path: Path) -> None:
    for name, count in (("one", 3), ("two", 8)):
        (tmp_path / name).write_text(
            "litellm_in_flight_requests 1\n"
            f'litellm_proxy_total_requests_metric_total{{team="a",requested_model="m"}} {count}\n'
        )
    found = rows(said(gputally("read", "litellm", "one", "two", cwd=tmp_path)))
    assert {(row["gateway"], row["counters"]) for row in found} == {("litellm", "delta")}
    assert [row["requests_received"] for row in found if row["tenant"] == "a"] == [5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("read", "vax", "p"), "'vax' is not"),
        (("read", "dcgm"), "Missing argument 'PAGE...'"),
        (("read", "kernel-log"), "Missing argument 'PAGE...'"),
        (("read", "nvml", "page"), "takes no PAGE"),
        (("read", "nvml", "--visits", "0"), "'--visits'"),
    ],
)
def test_wrong_use_is_exit_code_2_with_a_reason(arguments: tuple[str, ...], message: str) -> None:
    done = gputally(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_no_workspace_is_needed_and_none_is_made(tmp_path: Path) -> None:
    said(gputally("read", "dcgm", FIXTURES / "a100-mig.prom", cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []
