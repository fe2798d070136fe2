"""The project's own rules for every text file, and the count of opt-outs.

Each message says what to do instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.tidy.files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import PurePosixPath

# Rule files and their samples hold the very words that they look for.
SAMPLES = "tests/tidy/"

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])(/home/\w|/root/|/Users/\w|/work/(main|shared)\b)|\.\./shared\b")
REGISTRY = re.compile(
    r"\b(py(pi|thonhosted)|npmjs|deb\.debian|security\.debian|archive\.ubuntu|proxy\.golang)\.[a-z]{2,}\b"
    r"|--(extra-)?index-url|--find-links",
    re.IGNORECASE,
)
OPT_OUTS = {
    # what it silences: (how it starts, how it must look)
    "noqa": (re.compile(r"#\s*noqa\b", re.IGNORECASE), re.compile(r"# noqa: [A-Z]+\d+(, ?[A-Z]+\d+)* - \S")),
    "type: ignore": (
        re.compile(r"#\s*type:\s*ignore"),
        re.compile(r"# type: ignore\[[\w, -]+\]  # \S"),
    ),
    "no cover": (re.compile(r"#\s*pragma:\s*no cover"), re.compile(r"# pragma: no cover - \S")),
    "tidy": (re.compile(r"(#|--) tidy:"), re.compile(r"(#|--) tidy: \w+ - \S")),
    "skip": (
        re.compile(r"pytest\.(mark\.)?(skip|skipif|xfail|importorskip)\b"),
        re.compile(r"pytest\.skip\(.*\S.*\)|reason=|# \S"),
    ),
}
CODE = {".py", ".sql"}
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)")


def unfinished(path: PurePosixPath, text: str) -> list[str]:
    """What is left to do is an issue, not a mark in a file."""
    return [
        f"{path}:{number}: holds {hit[0]}; do it, or file it as an issue and remove the mark"
        for number, line in _lines(path, text)
        if (hit := UNFINISHED.search(line))
    ]


def machine_path(path: PurePosixPath, text: str) -> list[str]:
    """The tree works wherever it is cloned."""
    return [
        f"{path}:{number}: names one machine's path ({hit[0]}); use one relative to the file or a temp folder"
        for number, line in _lines(path, text)
        if (hit := MACHINE_PATH.search(line))
    ]


def registry_host(path: PurePosixPath, text: str) -> list[str]:
    """Where packages come from is each user's setting."""
    return [
        f"{path}:{number}: names a registry ({hit[0]}); name the package only, pip and apt know where it is"
        for number, line in _lines(path, text)
        if (hit := REGISTRY.search(line))
    ]


def opt_out_without_reason(path: PurePosixPath, text: str) -> list[str]:
    """A check may be silenced on a line, never without saying why."""
    if path.suffix not in CODE:
        return []
    return [
        f"{path}:{number}: {kind} without a reason; write '# noqa: X - why', '# type: ignore[x]  # why', "
        "'# pragma: no cover - why', '# tidy: rule - why' or reason='why'"
        for number, line in _lines(path, text)
        for kind, (starts, well) in OPT_OUTS.items()
        if starts.search(line) and not well.search(line)
    ]


def dead_link(path: PurePosixPath, text: str) -> list[str]:
    """A link in a page leads somewhere."""
    if path.suffix != ".md":
        return []
    return [
        f"{path}:{number}: links to {hit[1]}, which is not there; correct the path or remove the link"
        for number, line in _lines(path, text)
        for hit in LINK.finditer(line)
        if not (ROOT / path.parent / hit[1]).exists()
    ]


def without_opt_outs(rule: str, messages: list[str], text: str) -> list[str]:
    """Return the messages without those whose line says ``# tidy: RULE - why`` (in SQL ``-- tidy: ...``)."""
    lines = text.splitlines()
    excused = {n for n, line in enumerate(lines, start=1) if re.search(rf"(#|--) tidy: {rule} - \S", line)}
    return [
        message
        for message in messages
        if not ((place := re.match(r"[^:]+:(\d+):", message)) and int(place[1]) in excused)
    ]


def count_opt_outs(files: Iterable[tuple[PurePosixPath, str]]) -> dict[str, int]:
    """Count the lines that silence a check, by kind."""
    counts = dict.fromkeys(OPT_OUTS, 0)
    for path, text in files:
        if path.suffix in CODE:
            for _, line in _lines(path, text):
                for kind, (starts, _) in OPT_OUTS.items():
                    counts[kind] += bool(starts.search(line))
    return counts


def _lines(path: PurePosixPath, text: str) -> Iterable[tuple[int, str]]:
    return () if path.as_posix().startswith(SAMPLES) else enumerate(text.splitlines(), start=1)


RULES = (unfinished, machine_path, registry_host, opt_out_without_reason, dead_link)
