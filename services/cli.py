"""`gputally`: the command line. Every command works on a workspace (`-C DIR`); an error is one clear line."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata


def main() -> None:
    """Run the command line; exit 1 on anything a user can mend, 2 on wrong usage."""
    from fleet.errors import GputallyError

    try:
        commands = importlib.import_module("services.commands")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in {"services", "chargeback", "store", "fleet"}:
            raise
        sys.stderr.write(f"gputally: {error.name} is not installed; install gputally[ledger] or gputally[portal]\n")
        sys.exit(1)
    try:
        commands.gputally(prog_name="gputally")
    except GputallyError as error:
        sys.stderr.write(f"gputally: {error}\n")
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)


def version() -> str:
    """The installed version of gputally."""
    return metadata.version("gputally")


if __name__ == "__main__":
    main()
