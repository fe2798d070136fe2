"""A lake's tables are brought up to date once, in order, and never by an older program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fleet.errors import LakeError
from store.migrations import migrate, schema_files
from tests.store.worker import open_lake

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb


def write_schema(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(f"CREATE TABLE lake.made_by_{name.removesuffix('.sql')} (n INTEGER);")
    return folder


def versions(con: duckdb.DuckDBPyConnection) -> list[int]:
    return [number for (number,) in con.execute("SELECT version FROM lake.schema_version ORDER BY 1").fetchall()]


def test_the_shipped_schema_is_numbered_without_gaps() -> None:
    files = schema_files()
    assert [number for number, _, _ in files] == list(range(1, len(files) + 1))
    assert all(name.startswith(f"{number:03}_") for number, name, _ in files)


@pytest.mark.parametrize(
    "names", [("002_b.sql",), ("001_a.sql", "003_c.sql"), ("001_a.sql", "001_b.sql")], ids=["start", "gap", "double"]
)
def test_wrong_numbers_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(LakeError, match="must be numbered 1, 2, 3"):
        schema_files(write_schema(tmp_path / "schema", *names))


def test_a_second_opening_applies_nothing_and_commits_nothing(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        first, applied = lake.snapshot(), versions(lake.connection)
    with open_lake(tmp_path) as lake:
        assert lake.write(migrate) == []
        assert (lake.snapshot(), versions(lake.connection)) == (first, applied)


def test_only_what_is_new_is_applied(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        done = len(schema_files())
        names = [name for _, name, _ in schema_files()]
        folder = write_schema(tmp_path / "schema", *names, f"{done + 1:03}_new.sql")
        assert lake.write(lambda con: migrate(con, folder)) == [f"{done + 1:03}_new.sql"]
        assert lake.connection.execute(f"SELECT count(*) FROM lake.made_by_{done + 1:03}_new").fetchall() == [(0,)]
        assert versions(lake.connection) == list(range(1, done + 2))


def test_a_file_that_fails_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        done, before = len(schema_files()), lake.snapshot()
        folder = write_schema(tmp_path / "schema", *(name for _, name, _ in schema_files()))
        (folder / f"{done + 1:03}_bad.sql").write_text("CREATE TABLE lake.half (n INTEGER); SELECT * FROM nowhere;")
        with pytest.raises(LakeError, match="nowhere"):
            lake.write(lambda con: migrate(con, folder))
        assert (lake.snapshot(), versions(lake.connection)) == (before, list(range(1, done + 1)))


def test_a_lake_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    newer = len(schema_files()) + 1
    with open_lake(tmp_path) as lake:
        lake.write(lambda con: con.execute("INSERT INTO lake.schema_version VALUES (?, 'x', now())", [newer]))
        before = lake.snapshot()
    with pytest.raises(LakeError, match=rf"schema {newer}, .*upgrade gputally"):
        open_lake(tmp_path)
    with open_lake(tmp_path, read_only=True) as lake:
        assert lake.snapshot() == before


def test_a_lake_of_an_older_program_is_not_read_before_it_is_brought_up_to_date(tmp_path: Path) -> None:
    """A query over tables that are not there would say so in DuckDB's words."""
    newest = len(schema_files())
    with open_lake(tmp_path) as lake:
        lake.write(lambda con: con.execute("DELETE FROM lake.schema_version WHERE version = ?", [newest]))
    with pytest.raises(LakeError, match=rf"schema {newest - 1}, .*brings it up to date"):
        open_lake(tmp_path, read_only=True)
