"""Prints how often a check is silenced on a line: no limit, but everybody sees the number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.tidy import files, text_rules

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = text_rules.count_opt_outs((path, files.read(path)) for path in files.text_files(".py", ".sql"))
    told = ", ".join(f"{kind} {count}" for kind, count in counts.items())
    terminalreporter.line(f"opt-outs, each with its reason on the line: {told}")
