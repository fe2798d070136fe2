"""Commands that set a workspace up and fill it: init, load, doctor."""

from __future__ import annotations

from pathlib import Path

import click

from chargeback.kinds import KINDS
from chargeback.load import LoadOptions, QuarantineError, load_charges, load_files
from chargeback.sources.judging import identity_files
from chargeback.sources.providers import PROVIDERS
from chargeback.tokens.staging import FORMATS
from chargeback.tokens.usage import LogOptions
from fleet.config import CONFIG_FILE
from fleet.errors import ConfigError, InputError, one_line, quoted
from fleet.period import zone_named
from services.agent.doctor import examine_node
from services.commands.options import FOLDER, in_workspace
from services.doctor import examine
from services.explaining_charges import flag_lines, verdict_lines
from services.finding import has_failed, lines
from services.terminal import complain, progress, say
from services.workspace import Workspace, create


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
def init(folder: Path) -> None:
    """Make a workspace: DIR with a commented gputally.toml."""
    path = create(folder)
    say(f"{path}: edit it, then load files, for example: gputally -C {folder} load inventory nodes.csv")


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@click.option(
    "--provider",
    type=click.Choice(list(PROVIDERS)),
    default="focus",
    show_default=True,
    help="Whose charges they are.",
)
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="IDENTITY",
    help="Count charges although they break this identity of billing, such as I6.",
)
@click.option("--explain", is_flag=True, help="Charges: say what was accepted, flagged and rejected, and why.")
@click.option(
    "--format",
    "log_format",
    type=click.Choice(["csv", *FORMATS]),
    default="csv",
    show_default=True,
    help="What wrote a tokens file: csv is a file with the columns of its kind, the others are logs.",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="[FOUND=]NAME",
    help="Name of the server of a log, or of the one that the log calls FOUND.",
)
@click.option(
    "--tenant",
    metavar="FIELD",
    help="Who a log's tenant is: for litellm team, team_alias, organization, user, end_user, key or key_alias; "
    "for envoy a field (x-tenant-id); for sglang a custom label (team).",
)
@click.option("--time-zone", metavar="ZONE", help="IANA zone of times that carry none; without it they are refused.")
@click.option(
    "--ignore-column",
    "ignored",
    multiple=True,
    metavar="NAME",
    help="Leave out a column the format does not know.",
)
@click.option("--all-problems", is_flag=True, help="List every problem of a refused file, one a line.")
@in_workspace
def load(
    folder: Path,
    kind: str,
    files: tuple[Path, ...],
    provider: str,
    log_format: str,
    servers: tuple[str, ...],
    tenant: str | None,
    time_zone: str | None,
    ignored: tuple[str, ...],
    accepted: tuple[str, ...],
    *,
    explain: bool,
    all_problems: bool,
) -> None:
    """Load input files (CSV or Parquet; logs of tokens: JSON lines): all of them or none.

    KIND is inventory, devices, holdings, demand, charges, invoices, commitments, reservations, assets, prices,
    rates, quotas, teams or tokens.

    A file replaces what an earlier file of the same name said. Content that is already loaded is left alone.
    """
    workspace = Workspace.at(folder)
    if time_zone:
        _check_zone(time_zone)
    log = _log_options(kind, log_format, servers, tenant, time_zone)
    _check_charge_options(kind, provider, accepted, explain=explain)
    options = LoadOptions(provider, time_zone, ignored, accepted, log)
    with workspace.open_lake() as lake, progress(f"load {kind}", len(files)) as step:
        try:
            if kind == "charges":
                verdicts = load_charges(lake, files, options, progress=step)
                loaded = [verdict.loaded for verdict in verdicts]
            else:
                verdicts, loaded = [], load_files(lake, kind, files, options, progress=step)
        except QuarantineError as error:
            for line in verdict_lines(error.verdict) if explain else ():
                say(line)
            raise
        except InputError as error:
            for problem in error.problems[:-1] if all_problems else ():
                complain(f"gputally: {problem}")
            if all_problems:
                raise InputError([error.problems[-1]]) from error
            raise
    for result in loaded:
        elsewhere = f" as {one_line(result.same_as)}" if result.same_as not in (None, result.source) else ""
        note = f"already loaded{elsewhere}, nothing to do" if result.outcome == "unchanged" else result.outcome
        say(f"{one_line(result.source)}: {result.row_count:,} rows, {note}")
    for verdict in verdicts:
        for line in verdict_lines(verdict) if explain else flag_lines(verdict):
            say(line)


@click.command()
@click.option("--node", "with_node", is_flag=True, help="Look at this GPU node too, as its agent would see it.")
@in_workspace
def doctor(folder: Path, *, with_node: bool) -> None:
    """Examine the installation and the workspace; exit 1 if something must be mended."""
    findings = examine(folder)
    if with_node:
        findings += examine_node(folder / CONFIG_FILE)
    for line in lines(findings):
        say(line)
    if has_failed(findings):
        raise SystemExit(1)


def _log_options(
    kind: str, log_format: str, servers: tuple[str, ...], tenant: str | None, zone: str | None
) -> LogOptions | None:
    """How a log is to be read; None for a file with the columns of its kind."""
    if log_format == "csv":
        if servers or tenant:
            raise ConfigError("--server and --tenant are for logs (--format litellm, envoy or sglang)")
        return None
    if kind != "tokens":
        raise ConfigError(f"--format {log_format} is for tokens, not for {kind}")
    pairs = [(found.strip(), name.strip()) for found, _, name in (text.rpartition("=") for text in servers)]
    if not all(name for _, name in pairs) or len(dict(pairs)) < len(pairs):
        raise ConfigError("--server takes NAME once, and FOUND=NAME once for each FOUND")
    return LogOptions(log_format, zone, tenant, tuple(pairs))


def _check_charge_options(kind: str, provider: str, accepted: tuple[str, ...], *, explain: bool) -> None:
    if kind != "charges" and (provider != "focus" or accepted or explain):
        raise ConfigError("--provider, --accept and --explain are for charges")
    known = [file.header["Identity"] for file in identity_files()]
    for name in accepted:
        if name not in known:
            raise ConfigError(f"--accept takes one of {', '.join(known)}, not {quoted(name)}")


def _check_zone(name: str) -> None:
    try:
        zone_named(name)
    except ValueError as error:
        raise ConfigError(f"--time-zone: {error}") from None
