"""The portal's real server in its own process, once for all tests that need one."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from fleet.config import load_config
from fleet.log import setup
from services.portal import serve
setup("info", stream=sys.stdout)
serve(Path(sys.argv[1]), load_config(Path(sys.argv[1])), port=0)
"""


@pytest.fixture(scope="session")
def portal_address(demo_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a portal of the real month listens; started from a folder that has nothing to do with it."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    server = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(demo_workspace)], cwd=elsewhere, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout
        said = []
        for line in server.stdout:
            said.append(line)
            if found := re.search(r"portal ready at (http://[\d.:]+)", line):
                yield found[1]
                return
        pytest.fail(f"the portal did not start: {''.join(said)}")
    finally:
        server.terminate()
        server.wait(timeout=20)
