"""Each import contract is broken once on a generated tree, and leaves a tree of allowed imports alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.tidy.files import PACKAGES, PYPROJECT, ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTRACTS = {contract["id"]: contract["name"] for contract in PYPROJECT["tool"]["importlinter"]["contracts"]}
LINT_IMPORTS = Path(sysconfig.get_path("scripts")) / "lint-imports"

ALLOWED = {
    "fleet/a.py": "import decimal",
    "store/a.py": "import duckdb, filelock, pytz, duckdb_extensions, fleet.a",
    "collectors/nvml/port.py": "import pynvml",
    "collectors/a.py": "import grpc, fleet.a",
    "exporters/a.py": "import prometheus_client, grpc, fleet.a",
    "chargeback/a.py": "import store.a",
    "chargeback/sources/aws.py": "import boto3, botocore.config",
    "chargeback/sources/gcp.py": "from google.cloud import billing_v1",
    "services/agent.py": "import fleet.a",
    "services/cli.py": "import click, rich.table, store.a, chargeback.a, collectors.a",
    "services/portal.py": "import streamlit.web, uvicorn\nfrom starlette.routing import Mount",
    "app/a.py": "import streamlit, chargeback.a, store.a",
}
# One contract may be broken in several ways: each is a tree of its own file beside the allowed ones.
BREAKS = [
    ("layers", "fleet/bad.py", "import store.a"),
    ("layers", "collectors/bad.py", "from exporters import a"),
    ("layers", "app/bad.py", "import services.cli"),
    ("acyclic", "store/bad.py", "import store.worse"),
    ("agent-stays-small", "services/bad.py", "import chargeback.a"),
    ("fleet-is-stdlib", "fleet/bad.py", "import rich"),
    ("home-duckdb", "chargeback/bad.py", "import duckdb"),
    ("home-duckdb", "services/bad.py", "import filelock"),
    ("home-streamlit", "services/bad.py", "import uvicorn"),
    ("home-streamlit", "chargeback/bad.py", "import streamlit"),
    ("home-terminal", "store/bad.py", "import rich.progress"),
    ("home-prometheus-client", "services/bad.py", "from prometheus_client import Gauge"),
    ("home-cloud-sdk", "chargeback/bad.py", "import boto3"),
    ("home-cloud-sdk", "services/bad.py", "from google.cloud import billing_v1"),
    ("home-pynvml", "collectors/bad.py", "import pynvml"),
    ("home-grpc", "chargeback/bad.py", "import grpc"),
    ("no-pandas", "app/bad.py", "import pandas as pd"),
]
# What a break needs beside its one file.
ALSO = {
    "acyclic": {"store/worse.py": "import store.bad"},
    "agent-stays-small": {"services/agent.py": "import services.bad"},
}


def broken(folder: Path, files: Mapping[str, str]) -> set[str]:
    """Write a tree with the project's contracts and return the ids of those that it breaks."""
    for package in (*PACKAGES, "chargeback/sources", "collectors/nvml"):
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").touch()
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    shutil.copy(ROOT / "pyproject.toml", folder)
    done = subprocess.run(
        [LINT_IMPORTS, "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    told = {
        contract
        for contract, name in CONTRACTS.items()
        if re.search(rf"^{re.escape(name)} BROKEN", done.stdout, re.MULTILINE)
    }
    kept = len(CONTRACTS) - len(told)
    assert f"Contracts: {kept} kept, {len(told)} broken." in done.stdout, done.stdout + done.stderr
    assert done.returncode == bool(told)
    return told


def test_allowed_imports_break_nothing(tmp_path: Path) -> None:
    assert broken(tmp_path, ALLOWED) == set()


@pytest.mark.parametrize(("contract", "name", "text"), BREAKS, ids=lambda value: str(value).replace("/", "."))
def test_contract_catches(tmp_path: Path, contract: str, name: str, text: str) -> None:
    assert contract in broken(tmp_path, {**ALLOWED, name: text, **ALSO.get(contract, {})})


def test_every_contract_is_broken_by_a_sample() -> None:
    assert {contract for contract, _, _ in BREAKS} == set(CONTRACTS)
