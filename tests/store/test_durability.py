"""New files are found by looking at folders that changed, whatever else lies in the lake; none is missed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from store.durability import NewFiles
from tests.store.worker import insert, make_table, open_lake

if TYPE_CHECKING:
    import pytest

LONG_AGO_NS = 1_700_000_000 * 10**9


def settle(root: Path) -> None:
    """Make every folder look as if it had not changed for years."""
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
        os.utime(folder, ns=(LONG_AGO_NS, LONG_AGO_NS))


def write(root: Path, *names: str) -> set[str]:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return {str(root / name) for name in names}


@given(
    st.lists(
        st.lists(st.sampled_from([f"{a}/day={b}/{c}.parquet" for a in "tu" for b in "12" for c in "abcd"]), max_size=6),
        max_size=6,
    ),
    st.booleans(),
)
def test_each_file_is_found_once_at_the_first_look_after_it_appeared(steps: list[list[str]], has_settled: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        new_files = NewFiles(root)
        new_files.look()
        known: set[str] = set()
        for names in steps:
            made = write(root, *names)
            assert set(new_files.sync()) == made - known
            known |= made
            if has_settled:
                settle(root)
                new_files.look()
            assert new_files.sync() == []


def test_a_file_made_in_the_same_clock_step_as_the_last_look_is_found(tmp_path: Path) -> None:
    """File systems keep a folder's time by the tick of a clock: two changes within one leave the same time."""
    write(tmp_path, "day=1/a.parquet")
    new_files = NewFiles(tmp_path)
    new_files.look()
    now = (tmp_path / "day=1").stat().st_mtime_ns
    made = write(tmp_path, "day=1/b.parquet")
    os.utime(tmp_path / "day=1", ns=(now, now))
    assert set(new_files.sync()) == made


def test_a_file_that_went_and_a_folder_that_went_do_no_harm(tmp_path: Path) -> None:
    write(tmp_path, "t/day=1/a.parquet", "t/day=2/b.parquet")
    new_files = NewFiles(tmp_path)
    new_files.look()
    (tmp_path / "t/day=1/a.parquet").unlink()
    (tmp_path / "t/day=1").rmdir()
    made = write(tmp_path, "t/day=2/c.parquet")
    assert set(new_files.sync()) == made
    assert NewFiles(tmp_path / "nowhere").sync() == []


def test_a_new_folder_is_synced_in_the_one_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_files = NewFiles(tmp_path)
    new_files.look()
    write(tmp_path, "t/day=1/a.parquet")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    new_files.sync()
    wanted = [tmp_path / "t/day=1/a.parquet", tmp_path / "t/day=1", tmp_path / "t", tmp_path]
    assert set(synced) == {path.stat().st_ino for path in wanted}


def test_a_commit_looks_at_no_file_of_a_folder_that_did_not_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_lake(tmp_path) as lake:
        lake.write(make_table)
        for day in range(20):
            write(tmp_path / "data", *(f"main/old/day={day}/{number}.parquet" for number in range(100)))
        settle(tmp_path / "data")
        lake.write(lambda con: insert(con, "a"))
        listed: list[str] = []
        really = os.listdir

        def listdir(path: str) -> list[str]:
            listed.append(path)
            return really(path)

        monkeypatch.setattr(os, "listdir", listdir)
        lake.write(lambda con: insert(con, "b"))
    assert str(tmp_path / "data/main/batch") in listed
    assert not [path for path in listed if "/old" in path]
