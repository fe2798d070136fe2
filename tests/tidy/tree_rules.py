"""The project's own rules for the tree as a whole: which files there are.

Each message says what to do instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.tidy.files import PACKAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import PurePosixPath

OUTSIDE_THE_LAYERS = {"tests", "docs", "bench", "deploy", "examples", "scripts"}
MODEL = re.compile(r"(?P<number>\d{3})_(?P<name>[a-z0-9_]+)\.sql")
READS = re.compile(r"^-- Reads:(.*(?:\n--  .*)*)", re.MULTILINE)
MACROS = {"macros.sql"}  # defines functions and no table; the runner reads it first
COMPARED = ("golden", "fixtures")


def case_without_why(tree: Mapping[PurePosixPath, str]) -> list[str]:
    """A case of a SQL model says in words why its output is right."""
    cases = sorted({path.parents[-5] for path in tree if _in(path, "tests", "sql") and len(path.parts) > 4})
    return [
        f"{case}: add why.md: in a few lines, the situation and why out.csv is right, with the arithmetic"
        for case in cases
        if case / "why.md" not in tree
    ]


def model_order(tree: Mapping[PurePosixPath, str]) -> list[str]:
    """Models run in the order of their numbers, and each reads only what ran before."""
    models = [path for path in tree if _in(path, "chargeback", "model") and path.suffix == ".sql"]
    models = [path for path in models if path.name not in MACROS]
    messages, numbers = [], {}
    for path in models:
        if not (name := MODEL.fullmatch(path.name)):
            messages.append(f"{path}: name it NNN_what_it_makes.sql; the number is its place in the build")
        elif (number := name["number"]) in numbers:
            messages.append(f"{path}: shares the number {number} with {numbers[number]}; give it a free one")
        else:
            numbers[number] = path.name
    numbered = {hit["name"]: hit["number"] for path in models if (hit := MODEL.fullmatch(path.name))}
    for path in models:
        own = path.name[:3]
        read = READS.search(tree[path])
        messages += [
            f"{path}: reads {name}, which is built later; give it a higher number"
            for name in (re.findall(r"\w+", read[1].replace("--", "")) if read else ())
            if numbered.get(name, "") > own
        ]
    return messages


def unknown_package(tree: Mapping[PurePosixPath, str]) -> list[str]:
    """A new top-level package has a layer."""
    folders = {path.parts[0] for path in tree if path.suffix == ".py" and len(path.parts) > 1}
    return [
        f"{folder}/: holds Python but has no layer; move it into a package, or add it to root_packages, "
        "layers, mypy files and packages.find in pyproject.toml"
        for folder in sorted(folders - OUTSIDE_THE_LAYERS - set(PACKAGES))
        if not folder.startswith(".")
    ]


def orphan_sample(tree: Mapping[PurePosixPath, str]) -> list[str]:
    """A golden or fixture file is named, itself or by its folder, in a test."""
    code = [text for path, text in tree.items() if path.parts[0] == "tests" and path.suffix == ".py"]
    words = set(re.findall(r"[\w.-]+", "\n".join(code)))
    return [
        f"{path}: no test names it or its folder; use it in a test or delete it"
        for path in tree
        if path.suffix not in {".py", ".md"}
        and (below := _below_samples(path.parts))
        and words.isdisjoint({*below, path.stem})
    ]


def _below_samples(parts: Sequence[str]) -> tuple[str, ...]:
    """Return a path's parts below the first golden or fixtures folder of tests; empty if there is none."""
    if parts[0] != "tests":
        return ()
    for place, part in enumerate(parts):
        if part in COMPARED:
            return tuple(parts[place + 1 :])
    return ()


def _in(path: PurePosixPath, *folders: str) -> bool:
    return path.parts[: len(folders)] == folders


RULES = (case_without_why, model_order, unknown_package, orphan_sample)
