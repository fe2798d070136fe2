"""The workspace's configuration, `gputally.toml`, as frozen dataclasses.

A wrong key or value is refused with its path instead of ignored: a misspelt policy that
silently falls back to a default would move money.
"""

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from fleet.agent_config import AGENT_TEMPLATE, Agent
from fleet.binding import KEYS, BindError, FieldError, bind
from fleet.errors import ConfigError, quoted
from fleet.hub_config import HUB_TEMPLATE, Hub
from fleet.identity import bounded_name
from fleet.ledger_config import Server, SpareReplicas, TokenWeights
from fleet.money import minor_unit_digits
from fleet.period import zone_named
from fleet.sources_config import SOURCES_TEMPLATE, Source, check_names

CONFIG_FILE = "gputally.toml"

Policy = Literal["proportional", "even", "quota", "central"]

DEFAULT_POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "idle": "proportional",
        "unused_commitment": "central",
        "overhead": "proportional",
        "unknown": "central",
        "tax": "proportional",
        "credit": "proportional",
        "adjustment": "central",
        "rounding": "central",
        "unattributed": "central",
    }
)
"""Who pays for a pool unless the workspace says otherwise. What teams can influence by what
they run follows their direct cost; what only the buyers or the meters explain stays central."""


def _check(name: str, judge: Callable[[str], object], value: str) -> None:
    try:
        judge(value)
    except ValueError as error:
        raise FieldError(name, str(error)) from None


@dataclass(frozen=True, slots=True)
class Lake:
    """Where the lakehouse is; relative paths start at the workspace."""

    catalog: str = "lake/catalog.sqlite"
    data: str = "lake/data"

    def __post_init__(self) -> None:
        """Refuse empty places."""
        for name in ("catalog", "data"):
            if not getattr(self, name).strip():
                raise FieldError(name, "must not be empty")


@dataclass(frozen=True, slots=True)
class Ledger:
    """How costs are counted. `quota_source` names the loaded quota file that decides when two
    disagree; empty means the one loaded first. `invoice_tax` says whether teams pay a tax that
    only the invoice states."""

    currency: str = "USD"
    time_zone: str = "UTC"
    basis: Literal["held"] = "held"
    node_split: Literal["gpu_bound"] = "gpu_bound"
    central_team: str = "platform"
    quota_source: str = ""
    invoice_tax: Literal["share", "leave"] = "share"
    token_weights: TokenWeights = field(default_factory=TokenWeights)
    weight_basis: Literal["fixed", "measured"] = "fixed"
    servers: tuple[Server, ...] = ()
    spare_replicas: SpareReplicas = field(default_factory=SpareReplicas)

    def __post_init__(self) -> None:
        """Refuse what is no currency, no time zone or no name."""
        _check("currency", minor_unit_digits, self.currency)
        _check("time_zone", zone_named, self.time_zone)
        _check("central_team", bounded_name, self.central_team)
        if self.quota_source:
            _check("quota_source", bounded_name, self.quota_source)
        names = [server.name for server in self.servers]
        for name in names:
            if names.count(name) > 1:
                raise FieldError("servers", f"two are called {quoted(name)}")


@dataclass(frozen=True, slots=True)
class PoolPolicy:
    """How one kind of pool is distributed to teams."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class Portal:
    """Where the portal listens, and what it shows beside the books."""

    host: str = "127.0.0.1"
    port: int = 8501
    notice: str = ""
    api_prices: str = ""

    def __post_init__(self) -> None:
        """Refuse an empty host, impossible ports and texts that hide something."""
        _check("host", bounded_name, self.host)
        for name in ("notice", "api_prices"):
            if text := getattr(self, name):
                _check(name, bounded_name, text)
        if not 1 <= self.port <= 65535:
            raise FieldError("port", f"must be from 1 to 65535, not {self.port}")


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration. `pools` always holds every kind, defaults filled in."""

    lake: Lake = field(default_factory=Lake)
    ledger: Ledger = field(default_factory=Ledger)
    pools: Mapping[str, PoolPolicy] = field(default_factory=dict, metadata={KEYS: tuple(DEFAULT_POLICIES)})
    portal: Portal = field(default_factory=Portal)
    hub: Hub = field(default_factory=Hub)
    agent: Agent = field(default_factory=Agent)
    sources: tuple[Source, ...] = ()

    def __post_init__(self) -> None:
        """Fill in the default policies and make the mapping read-only; refuse two sources of one name."""
        check_names(self.sources)
        defaults = {kind: PoolPolicy(policy) for kind, policy in DEFAULT_POLICIES.items()}
        for kind in self.pools.keys() - defaults.keys():
            raise FieldError("pools", f"{quoted(kind)} is not a kind of pool with a policy")
        object.__setattr__(self, "pools", MappingProxyType(defaults | dict(self.pools)))

    def __reduce__(self) -> tuple[type["Config"], tuple[Any, ...]]:
        """Pickle by parts, for worker processes; a read-only mapping does not pickle itself."""
        return Config, (self.lake, self.ledger, dict(self.pools), self.portal, self.hub, self.agent, self.sources)

    def policy(self, kind: str) -> Policy:
        """The policy of a kind of pool; ValueError for a kind that has none."""
        if kind not in self.pools:
            raise ValueError(f"{quoted(kind)} is not a kind of pool with a policy")
        return self.pools[kind].policy


TEMPLATE = """\
# gputally.toml: each key is shown with its default.

[lake]
# Catalog of the lakehouse: a SQLite file, relative to this folder.
catalog = "lake/catalog.sqlite"
# Folder of its data files.
data = "lake/data"

[ledger]
# Currency in which a fleet that is billed in several is reported (ISO 4217). Statements are booked
# in the currencies of their invoices.
currency = "USD"
# Time zone in which reports show days; the books themselves are kept in UTC.
time_zone = "UTC"
# What a team pays for: "held", the GPUs it held, used or not.
basis = "held"
# How a node's cost reaches its GPUs: "gpu_bound", the whole node over its GPUs.
node_split = "gpu_bound"
# The team that pays what is shared with nobody else.
central_team = "platform"
# The quota file that decides when two disagree; empty is the one loaded first.
quota_source = ""
# A tax that the invoice states and no charge line carries: "share", teams pay it like other tax, or
# "leave", it stays out of the statement and the bridge names it.
invoice_tax = "share"
# What a token weighs when tenants share the cost of a model server: uncached input, cached input
# and output, as decimals in text. Weights divide a cost, they never change a total.
token_weights = { input = "1", cached_input = "0.1", output = "4" }
# Where the output weight comes from: "fixed", as above, or "measured", the engine's own prefill
# and decode time where it is known.
weight_basis = "fixed"
# Shared model servers: what they hold is paid for by their tenants. The first that matches counts.
# For example: [{ name = "llm-a", match_namespace = "serving", match_workload = "llm-a-*" }]
# With max_running_requests (how many one replica can run at once), spare replicas are judged by it.
servers = []
# When a server has more replicas than it needs: the p95 of running requests over slots, and of the
# cache in use, both below these, over at least so many days of the month.
spare_replicas = { running_ratio = "0.1", kv_ratio = "0.3", observed_days = 7 }

# Who pays for each pool. "proportional": teams, by their direct cost in the pool. "even": in
# equal parts, the teams that held anything in it. "quota": teams, by the quota they did not
# hold. "central": the central team.
[pools]
# GPUs that were up and held by nobody.
idle.policy = "proportional"
# Commitments that were paid and not used.
unused_commitment.policy = "central"
# Control planes, storage, network and whatever else is not a GPU node.
overhead.policy = "proportional"
# Hours in which the meter was blind.
unknown.policy = "central"
# Taxes.
tax.policy = "proportional"
# Credits and refunds.
credit.policy = "proportional"
# Late corrections that no original period explains.
adjustment.policy = "central"
# The provider's own rounding lines.
rounding.policy = "central"
# Cost of shared model servers that no tenant explains.
unattributed.policy = "central"

[portal]
# Address on which the portal listens.
host = "127.0.0.1"
# Its port.
port = 8501
# A remark that every page shows, as plain text; empty for none.
notice = ""
# Price list of an API (model, input_per_million, cached_per_million, output_per_million, currency)
# that page Serving compares with; a path relative to this folder, empty for none.
api_prices = ""
"""
TEMPLATE += HUB_TEMPLATE + AGENT_TEMPLATE + SOURCES_TEMPLATE
"""The file that a new workspace gets."""


def parse_config(text: str, file: str = CONFIG_FILE) -> Config:
    """The configuration written in a TOML text; `file` names it in messages.

    ConfigError for bad TOML (with its line), unknown keys and wrong values (with their path).
    """
    try:
        return bind(Config, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: {error}") from None
    except BindError as error:
        raise ConfigError(f"{file}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None


def load_config(workspace: Path) -> Config:
    """The configuration of a workspace folder; ConfigError if it has none or it is not valid."""
    try:
        return load_config_file(workspace / CONFIG_FILE)
    except FileNotFoundError:
        raise ConfigError(f"no {CONFIG_FILE} in {workspace}; run `gputally init {workspace}`") from None


def load_config_file(path: Path) -> Config:
    """The configuration in a file; FileNotFoundError without one, ConfigError if it is not valid."""
    try:
        # -sig: some editors put a byte order mark first, which TOML does not know.
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(f"no file {path}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start})") from None
    return parse_config(text)


def config_fingerprint(config: Config) -> str:
    """SHA-256, in hex, of what decides the books: the ledger and the pools' policies.

    Where the lake lies and where the portal listens do not count. Defaults do: a default and
    the same value written out are the same books.
    """
    parts = {
        "ledger": asdict(config.ledger),
        "pools": {kind: policy.policy for kind, policy in config.pools.items()},
    }
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
