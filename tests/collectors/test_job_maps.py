"""Job maps: files as a Slurm prolog leaves them for dcgm-exporter."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from collectors.holders.job_maps import jobs_by_device, read_job_maps
from collectors.holders.procs import ProcessOwners
from collectors.samples import DeviceSample

if TYPE_CHECKING:
    from pathlib import Path

UUID = "GPU-00000000-0000-4000-8000-00000000000{}"
BOARDS = [DeviceSample(kind="gpu", uuid=UUID.format(n), slot=str(n)) for n in range(3)]
INSTANCE = DeviceSample(
    kind="mig", uuid="MIG-00000000-0000-4000-8000-000000000007", parent_uuid=UUID.format(2), slot="7"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0").write_text("4711\n\n  \n4712\n4711\n")
    (tmp_path / "1").write_text("\n")
    (tmp_path / UUID.format(1)).write_text("4713 1000\n")
    (tmp_path / "2.7").write_text("4714_3\n4715+1\n")
    return tmp_path


def test_one_job_a_line_and_empty_lines_say_nothing(folder: Path) -> None:
    assert read_job_maps(folder) == {
        "0": ("4711", "4712"),
        "2.7": ("4714_3", "4715+1"),
        UUID.format(1): ("4713",),
    }


def test_slurm_operator_112_a_prolog_may_name_devices_by_number_by_uuid_or_by_instance(folder: Path) -> None:
    """Slurm 25.11 has UUIDs in CUDA_VISIBLE_DEVICES, so a prolog names its files by them."""
    (folder / (INSTANCE.uuid or "")).write_text("4720\n")
    found = jobs_by_device(read_job_maps(folder), [*BOARDS, INSTANCE])
    assert found[INSTANCE.uuid or ""] == ("4714_3", "4715+1", "4720")
    moved = [DeviceSample(kind="gpu", uuid=UUID.format(1), slot="9")]
    assert jobs_by_device(read_job_maps(folder), moved) == {UUID.format(1): ("4713",)}, "a UUID holds wherever it sits"


def test_files_by_number_by_uuid_and_by_instance(folder: Path) -> None:
    assert jobs_by_device(read_job_maps(folder), [*BOARDS, INSTANCE]) == {
        UUID.format(0): ("4711", "4712"),
        UUID.format(1): ("4713",),
        INSTANCE.uuid: ("4714_3", "4715+1"),
    }


def test_through_the_owners_of_processes(folder: Path) -> None:
    assert ProcessOwners(job_maps=folder).jobs(BOARDS[:1]) == {UUID.format(0): ("4711", "4712")}
    assert ProcessOwners().jobs(BOARDS) == {}


def test_a_folder_that_is_not_there_names_no_job(tmp_path: Path) -> None:
    assert read_job_maps(tmp_path / "none") == {}


def test_what_does_not_belong_there_is_left_alone(folder: Path) -> None:
    (folder / "notes.txt").write_text("4716")
    (folder / "5").symlink_to("0")
    (folder / "6").mkdir()
    os.mkfifo(folder / "7")
    (folder / "8").write_text("<script>\n\u202e1\n" + "9" * 65 + "\n")
    (folder / "9").write_text("\n".join(str(n) for n in range(100_000)))
    found = read_job_maps(folder)
    assert set(found) == {"0", "2.7", UUID.format(1), "9"}
    assert len(found["9"]) == 256
