"""Which Slurm jobs were given which GPUs, from the folder that a prolog writes for dcgm-exporter.

One file a GPU, named by its number (as the driver counts), `NUMBER.INSTANCE` for a MIG instance, or a UUID; in it one
job id a line. So a job that holds a GPU without using it is seen, which no list of processes shows.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from collectors.samples import DeviceSample

_FILES_LIMIT: Final = 1024
_FILE_LIMIT: Final = 16_384
_JOBS_LIMIT: Final = 256
_JOB_ID: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.+\[\]-]{0,63}")
_FILE_NAME: Final = re.compile(r"\d{1,4}(?:\.\d{1,4})?|(?:GPU|MIG)-[0-9a-fA-F-]{8,64}", re.ASCII)


def read_job_maps(folder: Path) -> dict[str, tuple[str, ...]]:
    """The job ids in each file, by the file's name; each once, in order; empty where the folder is not there.

    Empty lines say nothing, and what follows the id on a line (some prologs add the user) is not read.
    """
    maps: dict[str, tuple[str, ...]] = {}
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if _FILE_NAME.fullmatch(entry.name)][:_FILES_LIMIT]
    except OSError:
        return maps
    for name in sorted(names):
        words = (line.split()[0] for line in _text(folder / name).splitlines() if line.strip())
        if jobs := tuple(sorted({word for word in words if _JOB_ID.fullmatch(word)})[:_JOBS_LIMIT]):
            maps[name] = jobs
    return maps


def _text(path: Path) -> str:
    """The beginning of a plain file; empty for one that went, a link, or one that must not be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _FILE_LIMIT).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def jobs_by_device(maps: Mapping[str, tuple[str, ...]], samples: Iterable[DeviceSample]) -> dict[str, tuple[str, ...]]:
    """The jobs of each device by its name. A number is the place in the driver's list, as the prolog wrote it."""
    found: dict[str, set[str]] = {}
    devices = list(samples)
    slots = {sample.uuid: sample.slot for sample in devices if sample.kind == "gpu"}
    for sample in devices:
        if sample.device is None:
            continue
        names = {sample.uuid, sample.device}
        if sample.kind == "gpu":
            names.add(sample.slot)
        elif sample.kind == "mig" and (board := slots.get(sample.parent_uuid)) is not None:
            names.add(f"{board}.{sample.slot}")
        for name in names:
            if name and name in maps:
                found.setdefault(sample.device, set()).update(maps[name])
    return {device: tuple(sorted(jobs)) for device, jobs in found.items()}
