"""A workspace on disk: its configuration and its lake."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fleet.config import CONFIG_FILE, TEMPLATE, Config, load_config
from fleet.errors import ConfigError
from store.lake import Lake

GITIGNORE = "# The lake is rebuilt from its inputs, the cache is fetched again.\ncache/\nlake/\n"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder with a `gputally.toml`, and where its lake lies."""

    folder: Path
    config: Config

    @classmethod
    def at(cls, folder: Path) -> Workspace:
        """Read the workspace's configuration. Raises ConfigError when there is none or it is wrong."""
        return cls(folder, load_config(folder))

    @property
    def catalog(self) -> Path:
        """The lake's catalog file."""
        return self._place(self.config.lake.catalog)

    @property
    def data(self) -> Path:
        """The folder of the lake's Parquet files."""
        return self._place(self.config.lake.data)

    def open_lake(self, *, read_only: bool = False) -> Lake:
        """Open the lake, creating it unless `read_only`."""
        scratch = None if read_only else self.data.parent / "scratch"
        return Lake.open(self.catalog, self.data, read_only=read_only, scratch=scratch)

    def _place(self, text: str) -> Path:
        path = Path(text)
        return (path if path.is_absolute() else self.folder / path).resolve()


def create(folder: Path) -> Path:
    """Make a new workspace: a commented configuration file. Returns its path.

    Raises ConfigError when the folder has one already: a configuration is never overwritten.
    """
    path = folder / CONFIG_FILE
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(TEMPLATE)
    except FileExistsError:
        raise ConfigError(f"{path} exists already; it was left as it is") from None
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text(GITIGNORE, encoding="utf-8")
    return path
