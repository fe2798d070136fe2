"""The message modules in the tree are what the compiler makes of proto/."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.tidy.files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MODULES = (
    "exporters/ingest_pb2.py",
    "exporters/ingest_pb2.pyi",
    "collectors/placement/podresources_pb2.py",
    "collectors/placement/podresources_pb2.pyi",
    "collectors/serving/triton_pb2.py",
    "collectors/serving/triton_pb2.pyi",
)


def test_message_modules_are_those_of_the_proto_files(tmp_path: Path) -> None:
    command = ["/bin/sh", str(ROOT / "scripts" / "make-proto"), str(tmp_path)]
    done = subprocess.run(
        command, env={"PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*_pb2.py*")}
    assert made == set(MODULES)
    for name in MODULES:
        assert (tmp_path / name).read_text() == (ROOT / name).read_text(), f"{name}: run scripts/make-proto"
