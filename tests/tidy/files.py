"""Which files the project's own rules look at: tracked ones and new ones that git does not ignore."""

from __future__ import annotations

import functools
import os
import subprocess
import tomllib
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = tuple(PYPROJECT["tool"]["importlinter"]["root_packages"])
BINARY = {".parquet", ".png", ".jpg", ".ico", ".woff2", ".gz", ".zip", ".arrow"}
MADE = {".git", ".venv", "build", "dist", "demo-workspace", "__pycache__", ".hypothesis"}


@functools.cache
def project_files() -> tuple[PurePosixPath, ...]:
    """Return every file of the project, relative to its root, in name order."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    else:  # an unpacked archive
        names = list(_walk())
    return tuple(sorted({PurePosixPath(name) for name in names}))


def _walk() -> list[str]:
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in MADE and not name.endswith(("_cache", ".egg-info"))]
        found += [Path(folder, name).relative_to(ROOT).as_posix() for name in files]
    return found


def text_files(*suffixes: str) -> list[PurePosixPath]:
    """Return the project's text files, all of them or those with one of the suffixes."""
    return [path for path in project_files() if path.suffix not in BINARY and (not suffixes or path.suffix in suffixes)]


@functools.cache
def read(path: PurePosixPath) -> str:
    """Return the text of a project file."""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def in_package(path: PurePosixPath, *packages: str) -> bool:
    """Tell whether a file belongs to one of the named packages, or to any of the project's."""
    return path.parts[0] in (packages or PACKAGES) and len(path.parts) > 1
