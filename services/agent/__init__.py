"""The node agent: what ``gputally-agent`` runs on a GPU node.

It is small on purpose: it never imports a database or a data frame, never runs a command, only reads, and writes
nothing but its spool. `services.agent.assembly` puts it together.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import logging
import platform
import signal
import sys
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.agent_config import Agent
from fleet.config import load_config_file
from fleet.errors import GputallyError, one_line
from fleet.identity import bounded_name
from fleet.log import setup
from services.finding import has_failed, lines

if TYPE_CHECKING:
    from collections.abc import Sequence

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def read_boot_id(path: Path = BOOT_ID) -> str | None:
    """Return the id of this boot, or None where the system has none (macOS) or does not tell.

    Counters of a device start again at a boot, so a reading is only comparable with one of the same boot.
    """
    try:
        return str(uuid.UUID(path.read_text(encoding="ascii").strip()))
    except (OSError, ValueError):
        return None


def identify(boot_id: Path = BOOT_ID) -> dict[str, str | None]:
    """Return the identity that every batch of this node carries; what is not known is None."""
    return {
        "node": platform.node() or None,
        "boot_id": read_boot_id(boot_id),
        "os": f"{platform.system()} {platform.release()}".strip() or None,
        "python": platform.python_version(),
    }


def version() -> str:
    """Return the installed version of gputally, or ``unknown`` when run from an unpacked tree."""
    try:
        return importlib.metadata.version("gputally")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def parser() -> argparse.ArgumentParser:
    """Return the command line of the agent."""
    root = argparse.ArgumentParser(prog="gputally-agent", description="gputally on a GPU node.")
    root.add_argument("--version", action="version", version=f"gputally-agent {version()}")
    verbs = root.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("identify", help="print this node's identity as one JSON line")
    doctor = verbs.add_parser("doctor", help="tell what the agent can and cannot see here, with the fix")
    doctor.add_argument("--config", type=Path, metavar="FILE", help="the agent's gputally.toml; without it, defaults")
    doctor.add_argument("--node", metavar="NAME", help="name of this node, instead of the configured one or the host's")
    run = verbs.add_parser("run", help="read the devices, serve their metrics and send them to the hub until stopped")
    run.add_argument("--config", type=Path, metavar="FILE", help="gputally.toml with a section [agent]")
    run.add_argument("--node", metavar="NAME", help="name of this node, instead of the configured one or the host's")
    run.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    return root


def run_until_stopped(config: Agent, node: str) -> int:
    """Run the agent until SIGTERM or SIGINT; a second signal ends it at once."""
    # Here and not above: `identify` must answer on a node where nothing of the agent's extra is installed.
    from services.agent.assembly import NodeAgent

    stopping = threading.Event()

    def stop(number: int, _: object) -> None:
        if stopping.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stopping.set()

    agent = NodeAgent(config, node, read_boot_id() or "unknown", version())
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    agent.start()
    logging.getLogger(__name__).info(
        "agent started", extra={"node": node, "page_port": agent.page_port, "hub": config.hub.address or "none"}
    )
    gc.freeze()  # what is loaded by now stays: it need not be looked through again and again
    stopping.wait()
    agent.stop()
    return 0


def examine(config: Path | None, node: str | None) -> int:
    """Print what the doctor finds, one line each; 1 if something must be mended."""
    from services.agent.doctor import examine_node

    findings = examine_node(config, node)
    sys.stdout.writelines(f"{line}\n" for line in lines(findings))
    return int(has_failed(findings))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent's command line and return its exit status."""
    arguments = parser().parse_args(argv)
    if arguments.verb == "identify":
        sys.stdout.write(json.dumps(identify()) + "\n")
        return 0
    if arguments.verb == "doctor":
        return examine(arguments.config, arguments.node)
    setup(arguments.log_level)
    try:
        config = load_config_file(arguments.config).agent if arguments.config else Agent()
        return run_until_stopped(config, bounded_name(arguments.node or config.node or platform.node()))
    except (GputallyError, OSError, ValueError) as error:
        sys.stderr.write(f"gputally-agent: {one_line(str(error))}\n")
        return 1
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in {"services", "collectors", "exporters", "fleet"}:
            raise
        sys.stderr.write(f"gputally-agent: {error.name} is not installed; install gputally[agent]\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
