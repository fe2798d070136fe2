"""`gputally`: the command line. Every command works on a workspace (`-C DIR`); an error is one clear line."""

from __future__ import annotations

import importlib
import os
import sys
from importlib import metadata


def main() -> None:
    """Run the command line; exit 1 on anything a user can mend, 2 on wrong usage."""
    from fleet.errors import GputallyError, one_line

    try:
        commands = importlib.import_module("services.commands")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] in {"services", "chargeback", "store", "fleet"}:
            raise
        sys.stderr.write(f"gputally: {error.name} is not installed; install gputally[ledger] or gputally[portal]\n")
        sys.exit(1)
    try:
        try:
            commands.gputally(prog_name="gputally")
        finally:
            sys.stdout.flush()
    except GputallyError as error:
        sys.stderr.write(f"gputally: {error}\n")
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); there is nobody left to tell.
        _drop_output()
        sys.exit(1)
    except OSError as error:
        # A full disk, a missing permission, a folder that is a file: the system's word, without a stack trace.
        where = f"{one_line(str(error.filename))}: " if error.filename else ""
        sys.stderr.write(f"gputally: {where}{error.strerror or one_line(str(error))}\n")
        _drop_output()
        sys.exit(1)


def _drop_output() -> None:
    """Send what is still buffered nowhere: Python would try to write it once more at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def version() -> str:
    """The installed version of gputally."""
    return metadata.version("gputally")


if __name__ == "__main__":
    main()
