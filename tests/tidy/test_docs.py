"""The pages that people follow name what is there."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.tidy.files import PACKAGES, ROOT, project_files, read

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
DECISIONS = [path for path in project_files() if path.parts[:2] == ("docs", "decisions")]


def verbs() -> set[str]:
    """Return the verbs that ``make`` lists."""
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {line.split()[1] for line in done.stdout.splitlines() if line.startswith("  make ")}


@pytest.mark.parametrize("what", ["collector", "billing source", "alert", "cost step"])
def test_adding_takes_five_steps(what: str) -> None:
    section = re.search(rf"^## Add an? {what}\n(.*?)(?=^## |\Z)", CONTRIBUTING, re.MULTILINE | re.DOTALL)
    assert section
    assert re.findall(r"^(\d)\. ", section[1], re.MULTILINE) == list("12345")


def test_every_make_verb_is_explained_and_every_named_verb_exists() -> None:
    documented = set(re.findall(r"`make ([a-z]+)", CONTRIBUTING))
    assert documented == verbs() - {"help"}


def test_architecture_presents_every_package() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert [name for name in PACKAGES if f"`{name}`" not in page] == []


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name)
def test_a_decision_is_numbered_dated_and_complete(path) -> None:
    assert re.fullmatch(r"\d{3}-[a-z0-9-]+\.md", path.name)
    page = read(path)
    assert re.search(r"^Date: \d{4}-\d{2}-\d{2}$", page, re.MULTILINE)
    for heading in ("Context", "Decision", "Consequences"):
        assert re.search(rf"^## {heading}\n\n\S", page, re.MULTILINE), f"{path}: the section {heading} is missing"


def test_decision_numbers_are_unique() -> None:
    numbers = [path.name[:3] for path in DECISIONS]
    assert len(numbers) == len(set(numbers)) > 0
