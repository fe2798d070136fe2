"""A workspace is a folder with a configuration; nothing of a user's is overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fleet.config import CONFIG_FILE, Config, load_config
from fleet.errors import ConfigError
from services.workspace import Workspace, create

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_workspace_is_valid_and_says_the_defaults(tmp_path: Path) -> None:
    path = create(tmp_path / "a" / "b")
    assert path == tmp_path / "a" / "b" / CONFIG_FILE
    assert load_config(path.parent) == Config()
    assert (path.parent / ".gitignore").read_text().splitlines()[-1] == "lake/"


def test_a_configuration_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / CONFIG_FILE).write_text("# mine\n")
    with pytest.raises(ConfigError, match="exists already; it was left as it is"):
        create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [CONFIG_FILE]
    assert (tmp_path / CONFIG_FILE).read_text() == "# mine\n"


def test_an_existing_gitignore_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    create(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "mine\n"


def test_places_are_relative_to_the_workspace_not_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path / "ws")
    monkeypatch.chdir(tmp_path)
    workspace = Workspace.at((tmp_path / "ws").relative_to(tmp_path))
    monkeypatch.chdir("/")
    elsewhere = Workspace.at(tmp_path / "ws")
    assert elsewhere.catalog == tmp_path / "ws" / "lake" / "catalog.sqlite"
    assert elsewhere.data == tmp_path / "ws" / "lake" / "data"
    assert workspace.folder.name == "ws"


def test_absolute_places_and_detours_are_resolved(tmp_path: Path) -> None:
    create(tmp_path / "ws")
    text = f'[lake]\ncatalog = "{tmp_path}/c.sqlite"\ndata = "../common//data/"\n'
    (tmp_path / "ws" / CONFIG_FILE).write_text(text)
    workspace = Workspace.at(tmp_path / "ws")
    assert (workspace.catalog, workspace.data) == (tmp_path / "c.sqlite", tmp_path / "common" / "data")
    workspace.open_lake().close()
    assert (tmp_path / "c.sqlite").is_file()
    assert (tmp_path / "common" / "data").is_dir()


def test_a_folder_without_configuration_names_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="run `gputally init"):
        Workspace.at(tmp_path)
