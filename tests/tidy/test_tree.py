"""The tree keeps the project's own rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tidy import files, python_rules, sql_rules, text_rules, tree_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import PurePosixPath

BY_SUFFIX = [
    *((rule, (".py",)) for rule in python_rules.RULES),
    *((rule, (".sql",)) for rule in sql_rules.RULES),
    *((rule, ()) for rule in text_rules.RULES),
]


@pytest.mark.parametrize(("rule", "suffixes"), BY_SUFFIX, ids=lambda value: getattr(value, "__name__", ""))
def test_every_file_keeps(rule: Callable[[PurePosixPath, str], list[str]], suffixes: tuple[str, ...]) -> None:
    messages = []
    for path in files.text_files(*suffixes):
        if path.match("*_pb2.py*"):
            continue  # a compiler wrote it; a test compares it with what the compiler writes
        text = files.read(path)
        messages += text_rules.without_opt_outs(rule.__name__, rule(path, text), text)
    assert not messages, "\n".join(["", *messages])


@pytest.mark.parametrize("rule", tree_rules.RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps(rule: Callable[[Mapping[PurePosixPath, str]], list[str]]) -> None:
    tree = {path: "" if path.suffix in files.BINARY else files.read(path) for path in files.project_files()}
    messages = rule(tree)
    assert not messages, "\n".join(["", *messages])


def test_the_rules_see_the_project() -> None:
    """A rule that is handed no file would pass whatever the files say."""
    assert {path.parts[0] for path in files.text_files(".py")} >= {*files.PACKAGES, "tests"}
    assert any(path.suffix == ".sql" for path in files.text_files(".sql"))


def test_a_tree_without_git_is_seen_too() -> None:
    walked = set(files._walk())
    assert {"pyproject.toml", "services/cli.py"} <= walked
    assert not any(name.startswith((".venv/", ".git/")) for name in walked)
