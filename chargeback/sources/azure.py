"""Microsoft Azure's cost exports as files: FOCUS, and cost details as two datasets, actual and amortized cost.

Actual cost is the bill: purchases of reservations and savings plans, and usage under them at 0. Amortized cost has no
such purchases and spreads them over used and unused hours. Each has all other charges, so both files of a month are one
delivery, loaded in one command: billed cost comes from the one, effective cost from the other, never added.
Where exports lie as Azure wrote them, `EXPORT/YYYYMMDD-YYYYMMDD/RUN/part_0_0001.csv`, the folders name export, period
and run.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from chargeback.sources.azure_columns import cost_details_spec, missing_columns
from chargeback.sources.export import Dialect, Export, Part
from chargeback.sources.focus import FOCUS
from fleet.errors import InputError, Problem
from store.columns import Column, Kind
from store.headers import column_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.lake import Connection

_STEPS: Final = ("azure_unit", "azure_line", "azure_pair")
# Where Azure's own columns say what FOCUS of that version had no column for; a filled FOCUS column, listed later, wins.
_INVOICE = Column("x_InvoiceId", "invoice_id", Kind.TEXT)
_COST_CENTER = Column("x_CostCenter", "x_cost_center", Kind.TEXT)
FOCUS_EXPORT: Final = Dialect(
    "azure", replace(FOCUS.spec, columns=(_INVOICE, *FOCUS.spec.columns, _COST_CENTER)), "azure_focus", ("focus",)
)
_FOLDERS: Final = re.compile(
    r"/([^/]+)/(\d{4})(\d{2})\d{2}-\2\3\d{2}/(?:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/)?[^/]+",
    re.ASCII | re.IGNORECASE,
)


class _Run(NamedTuple):
    """One run of an export over a month, as its folders name it."""

    export_name: str
    period: str
    run_id: str | None


def exports(_: Connection, paths: Sequence[Path]) -> tuple[Export, ...]:
    """FOCUS: the files of each run are a delivery, any other file is one. All files of cost details are one delivery.

    InputError when a file is neither, when it is not plain which dataset one of several is, or when runs are mixed.
    """
    headers = {path: column_names(path) for path in paths}
    details = [path for path in paths if "chargetype" in {name.lower() for name in headers[path]}]
    others = [path for path in paths if path not in details]
    wrong = [path for path in others if "BilledCost" not in headers[path]]
    if wrong:
        wanted = "is no Azure cost export: it has neither the column ChargeType nor BilledCost"
        raise InputError([Problem(path.name, wanted, 1) for path in wrong])
    found = _focus(others)
    return (*found, _cost_details(details, [headers[path] for path in details])) if details else found


def _focus(paths: Sequence[Path]) -> tuple[Export, ...]:
    runs: dict[_Run, list[Path]] = {}
    loose = []
    for path in paths:
        run = _run_of(path)
        if run:
            runs.setdefault(run, []).append(path)
        else:
            loose.append(Export(path.name, FOCUS_EXPORT, (Part(path.name, path),)))
    _refuse_mixed({path: run for run, files in runs.items() for path in files})
    return (
        *loose,
        *(_of_run(run, FOCUS_EXPORT, [Part(path.name, path) for path in files]) for run, files in runs.items()),
    )


def _cost_details(paths: Sequence[Path], headers: Sequence[Sequence[str]]) -> Export:
    missing = [
        Problem(path.name, "required column is missing", 1, name)
        for path, names in zip(paths, headers, strict=True)
        for name in missing_columns(names)
    ]
    if missing:
        raise InputError(missing)
    parts = [Part(path.name, path) for path in paths] if len(paths) == 1 else [_told_apart(path) for path in paths]
    actual = sorted(part for part in parts if dataset_of(part.name) != "amortized")
    if not actual:
        said = (
            "is amortized cost, which bills nothing: load it together with the actual cost of the same scope and period"
        )
        raise InputError([Problem(parts[0].path.name, said)])
    runs = {path: run for path in paths if (run := _run_of(path))}
    _refuse_mixed(runs)
    dialect, run = Dialect("azure", cost_details_spec(headers), "azure", _STEPS), runs.get(actual[0].path)
    return _of_run(run, dialect, parts) if run else Export(actual[0].name, dialect, tuple(parts))


def _told_apart(path: Path) -> Part:
    """One of several files of cost details, named so that its dataset is plain."""
    run = _run_of(path)
    folders = [run.export_name] if run else [path.absolute().parent.name]
    for name in (path.name, *(f"{folder}/{path.name}" for folder in folders)):
        if dataset_of(name):
            return Part(name, path)
    said = (
        "may be actual or amortized cost, which are never added: one of both words must be in its name or its folder's"
    )
    raise InputError([Problem(path.name, said)])


def dataset_of(name: str) -> str | None:
    """`actual` or `amortized`, by the name of a file or its folder; None where it says neither or both."""
    lowered = name.lower()
    said = [dataset for dataset, word in (("actual", "actual"), ("amortized", "amorti")) if word in lowered]
    return said[0] if len(said) == 1 else None


def _run_of(path: Path) -> _Run | None:
    """The run that a file is of, if it lies in the folders that Azure makes for a month."""
    found = _FOLDERS.search(path.absolute().as_posix())
    return _Run(found[1], f"{found[2]}-{found[3]}", found[4]) if found and found.end() == len(found.string) else None


def _refuse_mixed(runs: dict[Path, _Run]) -> None:
    """Two runs of an export over the same month say the same twice."""
    known: dict[tuple[str, str], _Run] = {}
    for path, run in runs.items():
        other = known.setdefault((run.export_name, run.period), run)
        if other != run:
            said = (
                f"is of another run of export {run.export_name} over {run.period} than other files: load the newest run"
            )
            raise InputError([Problem(path.name, said)])


def _of_run(run: _Run, dialect: Dialect, parts: Sequence[Part]) -> Export:
    return Export(
        f"azure/{run.export_name}/{run.period}", dialect, tuple(parts), run.export_name, run.period, run.run_id
    )
