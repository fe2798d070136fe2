"""The node agent: what ``gputally-agent`` runs on a GPU node.

It is small on purpose: it imports the standard library and ``fleet``, never a database or a data frame, never
needs root, never runs a command and writes nothing. So far it says who it is; collectors will bring readings.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

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
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent's command line and return its exit status."""
    parser().parse_args(argv)
    sys.stdout.write(json.dumps(identify()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
