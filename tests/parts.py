"""Real programs that tests drive: where each is found, and how to get it.

A test asks for one by fixture (``promtool_bin``, ``chromium_bin``, ...). Absent, the test is skipped and the
part is named in the summary; with ``REQUIRE_ALL=1`` the test fails. As a script, ``apt`` prints the Debian
packages to install and ``missing`` one line for each absent part.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Part:
    """One program: the names it goes by, the folders beside PATH it may lie in, and its packages."""

    programs: tuple[str, ...]
    apt: str
    brew: str
    folders: tuple[str, ...] = ()

    def find(self) -> Path | None:
        """Return the program's path: the first of its names on PATH, else in the newest of its folders."""
        for program in self.programs:
            if on_path := shutil.which(program):
                return Path(on_path)
        for folder in self.folders:
            root, pattern = Path(folder).anchor, folder.lstrip("/")
            for found in sorted(Path(root).glob(pattern), key=_natural, reverse=True):
                for program in self.programs:
                    if os.access(found / program, os.X_OK):
                        return found / program
        return None


def _natural(path: Path) -> list[tuple[int, str]]:
    """Order .../9/bin before .../15/bin."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in path.parts]


MAC_APPS = ("/Applications/Chromium.app/Contents/MacOS", "/Applications/Google Chrome.app/Contents/MacOS")
POSTGRES_FOLDERS = (
    "/usr/lib/postgresql/*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)

PARTS = {
    "prometheus": Part(("prometheus",), "prometheus", "prometheus"),
    "promtool": Part(("promtool",), "prometheus", "prometheus"),
    "alertmanager": Part(("prometheus-alertmanager", "alertmanager"), "prometheus-alertmanager", "alertmanager"),
    "amtool": Part(("amtool",), "prometheus-alertmanager", "alertmanager"),
    "chromium": Part(
        (
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
            "Chromium",
            "Google Chrome",
        ),
        "chromium",
        "--cask google-chrome",
        MAC_APPS,
    ),
    "postgres": Part(("postgres",), "postgresql", "postgresql", POSTGRES_FOLDERS),
    "gcc": Part(("gcc",), "gcc libc6-dev", "gcc"),
}


def advice(name: str) -> str:
    """Return the one line that says what is missing and how to get it."""
    part = PARTS[name]
    return f"needs {name}: apt-get install {part.apt} (macOS: brew install {part.brew})"


def missing() -> list[str]:
    """Return the names of the parts that are not on this machine."""
    return [name for name, part in PARTS.items() if part.find() is None]


if __name__ == "__main__":
    absent = missing()
    if sys.argv[1:] == ["apt"]:
        print(" ".join(dict.fromkeys(PARTS[name].apt for name in absent)))
    elif sys.argv[1:] == ["missing"]:
        print("".join(f"{advice(name)}\n" for name in absent), end="")
    else:
        sys.exit("usage: parts.py apt | missing")
