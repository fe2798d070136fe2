"""Machines with GPUs, described by a text that the stand-in for the driver's library reads."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).parent / "nvml_shim.c"
SONAME = "libnvidia-ml.so.1"
GIB = 2**30


def build_library(gcc: Path, folders: pytest.TempPathFactory, *lacking: str) -> Path:
    """Compile the library; warnings are errors."""
    target = folders.mktemp("nvml") / SONAME
    command = [
        str(gcc), "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-Wl,-soname,{SONAME}",
        *(f"-DNO_{name}" for name in lacking), str(SOURCE), "-o", str(target), "-lpthread",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def uuid(index: int) -> str:
    return f"GPU-{index:08x}-0000-4000-8000-000000000000"


def h100(index: int) -> dict[str, object]:
    """An H100 that works hard."""
    facts = {
        "uuid": uuid(index),
        "name": "NVIDIA H100 80GB HBM3",
        "serial": f"165092300000{index}",
        "pci": f"00000000:{0x1B + index:02X}:00.0",
        "architecture": 9,
        "minor": index,
        "util_gpu": 97,
        "util_mem": 41,
        "mem_total": 80 * GIB,
        "mem_used": 60 * GIB,
        "mem_reserved": GIB // 2,
        "power_mw": 412_345,
        "power_limit_mw": 700_000,
        "energy_mj": 55_491_669_881,
        "clock0": 1755,
        "clock1": 1755,
        "clock2": 2619,
        "pstate": 0,
        "temp_c": 61,
        "margin_c": 26,
        "event_reasons": "0x4",
        "throttle_reasons": "0x4",
        "ecc_corrected_volatile": 3,
        "ecc_uncorrected_volatile": 0,
        "ecc_corrected_aggregate": 12,
        "ecc_uncorrected_aggregate": 1,
        "remapped": "2 1 1 0",
        "pcie_kib0": 2048,
        "pcie_kib1": 1024,
        "pcie_replays": 7,
        "event_types": "0x1ff",
        "mig_mode": 0,
        "gpm": 1,
    }
    return {f"{index}.{key}": value for key, value in facts.items()}


class Machine:
    """The scenario file, and the library loaded into this process."""

    def __init__(self, scenario: Path, library: Callable[..., Path]) -> None:
        self.scenario = scenario
        self._built = library
        self._facts: dict[str, object] = {}
        self.library: Any = None
        self.describe({"*.count": 1, "*.driver": "550.127.08", **h100(0)})

    def load(self) -> None:
        """Load the library before the binding looks for it: the same soname satisfies the search."""
        self.library = ctypes.CDLL(str(self._built()))
        self.library.shim_reset()

    def library_file(self, *lacking: str) -> Path:
        """Where the library lies, for another process."""
        return self._built(*lacking)

    def describe(self, facts: Mapping[str, object]) -> None:
        """Replace the whole scenario, as one step."""
        self._facts = dict(facts)
        new = self.scenario.with_suffix(".new")
        text = "".join(f"{key} {value}\n" for key, value in self._facts.items())
        new.write_bytes(text.encode(errors="surrogateescape"))
        new.replace(self.scenario)
        if self.library:
            self.library.shim_changed()

    def change(self, facts: Mapping[str, object]) -> None:
        """Change some facts while the machine runs; None takes one away."""
        merged = {**self._facts, **facts}
        self.describe({key: value for key, value in merged.items() if value is not None})

    def asked(self, key: str) -> int:
        """How often the driver was asked for a key."""
        calls: int = self.library.shim_calls(key.encode())
        return calls

    def elsewhere(self, code: str, *lacking: str) -> Any:
        """What a program prints as JSON in a process of its own, where the library lacks some functions."""
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(self._built(*lacking).parent),
            "NVML_SHIM_SCENARIO": str(self.scenario),
        }
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
