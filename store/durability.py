"""Which files a transaction made, found without looking at every file of the lake, and flushed to disk.

DuckDB syncs the catalog and not its Parquet files. DuckLake never writes a file twice and names each one anew, so what
a transaction made is what a folder holds now and did not hold before; and a folder that got a file has a new
modification time. So a commit looks at folders, of which there are few, and reads only those that changed.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

CLOCK_STEP_NANOSECONDS = 1_000_000_000
"""File systems keep times coarsely: a folder that changed as recently as this may change again unnoticed."""


class NewFiles:
    """The files below a folder, and which of them appeared since the last look."""

    def __init__(self, root: Path) -> None:
        """Look at nothing yet."""
        self._root = str(root)
        self._folders: dict[str, _Folder] = {}

    def look(self) -> None:
        """Take what is there now as known: nothing of it belongs to the next transaction."""
        self._changed()

    def sync(self) -> list[str]:
        """Flush every file that appeared since the last look, and the folders that name them; return the files.

        Raises OSError when the disk does not take them: then they must not be counted on.
        """
        files, folders = self._changed()
        for path in (*files, *folders):
            _sync(path)
        return files

    def _changed(self) -> tuple[list[str], list[str]]:
        """New files, and the folders in which a file or a folder is new."""
        files: list[str] = []
        folders: list[str] = []
        pending = [self._root]
        while pending:
            path = pending.pop()
            folder = self._folders.setdefault(path, _Folder())
            try:
                new_files, has_grown = folder.read(path)
            except FileNotFoundError:
                del self._folders[path]
                continue
            files += new_files
            folders += [path] if has_grown else []
            pending += folder.subfolders
        return files, folders


class _Folder:
    """What one folder held at the last look."""

    __slots__ = ("files", "modified_ns", "subfolders")

    def __init__(self) -> None:
        self.modified_ns = -1
        self.files: frozenset[str] = frozenset()
        self.subfolders: tuple[str, ...] = ()

    def read(self, path: str) -> tuple[list[str], bool]:
        """Return the files that were not there at the last look, and whether anything was added at all."""
        # Before the listing: what is added while it runs is seen at the next look at the latest.
        modified_ns = os.stat(path).st_mtime_ns  # noqa: PTH116 - text, once per folder per commit
        if modified_ns == self.modified_ns:
            return [], False
        is_settled = time.time_ns() - modified_ns > CLOCK_STEP_NANOSECONDS
        names: list[str] = []
        subfolders: list[str] = []
        for name in os.listdir(path):  # noqa: PTH208 - names are enough, and there may be thousands
            is_folder = not name.endswith(".parquet") and os.path.isdir(f"{path}/{name}")  # noqa: PTH112 - as above
            (subfolders if is_folder else names).append(name)
        new_files = [f"{path}/{name}" for name in names if name not in self.files]
        below = tuple(f"{path}/{name}" for name in subfolders)
        has_grown = bool(new_files) or not set(below) <= set(self.subfolders)
        self.files, self.subfolders = frozenset(names), below
        self.modified_ns = modified_ns if is_settled else -1
        return new_files, has_grown


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
