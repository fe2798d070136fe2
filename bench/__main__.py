"""`python -m bench [SECONDS]`: every measurement, one table each; SECONDS are those of the agent's runs."""

from __future__ import annotations

import os
import platform
import sys

from bench import agent, charges


def main() -> None:
    """Print the machine and the tables."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {seconds:g} s a run")
    print(agent.run(seconds))
    print(charges.run())


if __name__ == "__main__":
    main()
