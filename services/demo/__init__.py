"""The demo: a month of a real GPU cluster with a made-up price, from the bundled traces to a loaded workspace.

Real: who held how many GPUs when, the quotas, the queue; and who asked two language models for how many tokens. That
the models ran on GPUs of this cluster, and on these days, is a composition of two traces. Made up: node names, cost
centres, the teams of the models' clients, the prices, the invoice.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from chargeback.load import load_files
from fleet.config import CONFIG_FILE
from services.workspace import Workspace, create
from store.lake import memory
from store.outfiles import write_csv
from store.sqlfile import package_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fleet.config import Policy

PERIOD = "2020-05"


@dataclass(frozen=True, slots=True)
class DemoFile:
    """One generated input: its kind, its file name, and the bundled file it is made from."""

    kind: str
    name: str
    source: str

    @property
    def file_name(self) -> str:
        """Name of the generated CSV."""
        return f"{self.name}.csv"


NOTICE: Final = (
    "Demo: two real traces, composed. GPUs, quotas and queue are Helios Earth, May 2020. Tokens are ServeGen's: two "
    "weeks without a date, laid on 18 to 31 May, on 96 GPUs that two teams held. All prices are made up."
)
"""What every page of the demo's portal says."""
API_PRICES: Final = "api_prices_example.csv"
SETTINGS: Final = {
    "servers": '[{ name = "llm-large", match_workload = "llm-large" }, '
    '{ name = "llm-small", match_workload = "llm-small" }]',
    "notice": f'"{NOTICE}"',
    "api_prices": f'"inputs/{API_PRICES}"',
}
"""Where the demo's configuration is not the default, as TOML."""
_MINUTES: Final = "helios_earth_2020_05_intervals.parquet"
FILES: Final = (
    DemoFile("inventory", "inventory", _MINUTES),
    DemoFile("teams", "teams", _MINUTES),
    DemoFile("quotas", "quotas", _MINUTES),
    DemoFile("quotas", "quotas-daily", "helios_earth_capacity_daily.csv"),
    DemoFile("holdings", "holdings", _MINUTES),
    DemoFile("demand", "demand", _MINUTES),
    DemoFile("tokens", "tokens", "servegen_tenant_hourly.parquet"),
    DemoFile("charges", "charges", _MINUTES),
    DemoFile("invoices", "invoices", _MINUTES),
)
"""In load order: holdings and quotas refer to the inventory."""


def step_count() -> int:
    """How many times `prepare_demo` calls its progress."""
    return 2 * len(FILES)


def prepare_demo(
    folder: Path, *, idle_policy: Policy | None = None, progress: Callable[[str], None] = lambda _: None
) -> Workspace:
    """Make `folder` a workspace with the demo month loaded; running it again changes nothing.

    `idle_policy` replaces the policy for idle GPUs in a new workspace's configuration.
    """
    workspace = make_workspace(folder, idle_policy=idle_policy)
    inputs = folder / "inputs"
    write_inputs(inputs, progress=progress)
    with workspace.open_lake() as lake:
        for file in FILES:
            progress(f"load {file.file_name}")
            load_files(lake, file.kind, [inputs / file.file_name])
    return workspace


def make_workspace(folder: Path, *, idle_policy: Policy | None = None) -> Workspace:
    """Make `folder` a workspace with the demo's configuration; one that has a configuration keeps it."""
    if not (folder / CONFIG_FILE).exists():
        policy = {"idle.policy": f'"{idle_policy}"'} if idle_policy else {}
        _configure(create(folder), SETTINGS | policy)
    return Workspace.at(folder)


def _configure(path: Path, settings: Mapping[str, str]) -> None:
    """Give keys of a new configuration file other values than the default."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for name, value in settings.items():
        (place,) = (number for number, line in enumerate(lines) if line.startswith(f"{name} = "))
        lines[place] = f"{name} = {value}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_inputs(inputs: Path, *, progress: Callable[[str], None] = lambda _: None) -> None:
    """Generate the demo's input files from the bundled data; the same bytes each time."""
    inputs.mkdir(parents=True, exist_ok=True)
    queries = {query.name: query for query in package_files("services.demo", "sql")}
    with resources.as_file(resources.files("services.demo") / "data") as data:
        con = memory()
        for file in FILES:
            progress(f"write {file.file_name}")
            write_csv(con, queries[file.name], data / file.source, inputs / file.file_name)
        con.close()
        shutil.copyfile(data / API_PRICES, inputs / API_PRICES)
