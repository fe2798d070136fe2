"""The wheel holds the packages with all their files, and nothing else."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import zipfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from tests.tidy.files import PACKAGES, ROOT, in_package, project_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy, so that no build folder is left in the tree."""
    copy = tmp_path_factory.mktemp("tree")
    for path in project_files():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy / path)
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[PurePosixPath]:
    with zipfile.ZipFile(wheel) as archive:
        return [PurePosixPath(name) for name in archive.namelist()]


def test_top_level_names_are_the_packages(names: list[PurePosixPath]) -> None:
    top = {path.parts[0] for path in names if not path.parts[0].endswith(".dist-info")}
    assert top == set(PACKAGES)


def test_every_file_of_the_packages_is_in_the_wheel(names: list[PurePosixPath]) -> None:
    """Code and data alike: a SQL file that stays behind would be missed at the customer only."""
    shipped = {path for path in names if not path.parts[0].endswith(".dist-info")}
    assert shipped == {path for path in project_files() if in_package(path)}


def test_licences_and_programs_come_along(wheel: Path, names: list[PurePosixPath]) -> None:
    info = {path.name for path in names if path.parts[0].endswith(".dist-info")}
    assert {"LICENSE", "NOTICE", "entry_points.txt"} <= info
    with zipfile.ZipFile(wheel) as archive:
        (points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        programs = archive.read(points).decode()
    assert "gputally = services.cli:main" in programs
    assert "gputally-agent = services.agent:main" in programs


def test_no_other_installed_distribution_owns_our_names() -> None:
    """Our names are plain and top-level (docs/decisions/001): a clash must be seen here, not by a user."""
    owners = importlib.metadata.packages_distributions()
    assert {name: owners[name] for name in PACKAGES if set(owners.get(name, ())) - {"gputally"}} == {}
