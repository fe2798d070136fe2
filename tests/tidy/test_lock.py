"""The lock files meet pyproject.toml, agree with each other, and name no machine and no server."""

from __future__ import annotations

import re
import sys

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.files import PYPROJECT, ROOT

EXTRAS = PYPROJECT["project"]["optional-dependencies"]
LOCKS = {
    "agent": ("agent",),
    "bench": (),
    "runtime": ("agent", "ledger", "hub", "portal"),
    "test": ("agent", "ledger", "hub", "portal", "test"),
}
NOT_LOCKED_YET = {"aws", "gcp", "ray"}
ENTRY = re.compile(
    r"^([A-Za-z0-9][^ \n;]*==[^ \n;]+)(?: ; [^\\\n]+?)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+",
    re.MULTILINE,
)


def text(lock: str) -> str:
    return (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")


def locked(lock: str) -> dict[str, list[str]]:
    """Return the versions of each distribution; several where they differ by Python version."""
    versions: dict[str, list[str]] = {}
    for entry in ENTRY.finditer(text(lock)):
        name, _, version = entry[1].partition("==")
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


def unmet(requirements: list[str], versions: dict[str, list[str]]) -> list[str]:
    """Return the requirements that no locked version meets; gputally's own extras are followed elsewhere."""
    return [
        text
        for text in requirements
        if (wanted := Requirement(text)).name != "gputally"
        and not (
            (have := versions.get(canonicalize_name(wanted.name), []))
            and all(wanted.specifier.contains(version, prereleases=True) for version in have)
        )
    ]


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_meets_every_requirement(lock: str) -> None:
    wanted = [requirement for extra in LOCKS[lock] for requirement in EXTRAS[extra]]
    wanted += PYPROJECT["project"]["dependencies"] + PYPROJECT["dependency-groups"]["build"]
    assert unmet(wanted, locked(lock)) == [], "run `make lock`"


def test_an_unmet_requirement_is_seen() -> None:
    versions = {"duckdb": ["1.5.5"]}
    assert unmet(["duckdb==1.5.5", "gputally[hub]"], versions) == []
    assert unmet(["duckdb==2.0.0", "rich>=13"], versions) == ["duckdb==2.0.0", "rich>=13"]


def test_every_extra_is_locked_or_known_to_wait() -> None:
    assert set(EXTRAS) == {*LOCKS["test"], *NOT_LOCKED_YET}


def test_tests_run_the_versions_that_are_shipped() -> None:
    tested = locked("test")
    assert {name: tested.get(name) for name in locked("runtime")} == locked("runtime")


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_a_pinned_version_or_its_hash(lock: str) -> None:
    """So there is no room for an index, a link, a path or a comment."""
    assert ENTRY.sub("", text(lock)) == ""


def test_demo_stays_light() -> None:
    assert {"mypy", "playwright", "pytest", "ruff"}.isdisjoint(locked("runtime"))


def test_this_environment_is_the_locked_one() -> None:
    """The versions judged here are those of the lock, not of an older .venv."""
    from importlib.metadata import PackageNotFoundError, version

    wrong = {}
    for name, versions in locked("test").items():
        try:
            if (found := version(name)) not in versions:
                wrong[name] = found
        except PackageNotFoundError:
            continue  # for another system or Python
    assert not wrong, f"installed in {sys.prefix} but not locked: {wrong}; run `make clean setup`"
