"""Every identity finds what breaks it and leaves its neighbours alone; conformant bills break none.

`tests/sql/identities/<iNN_case>/`: `in_charges.csv` is a FOCUS file of February 2026 (columns that every file repeats
are filled in), `out.csv` all that is found in it, by whatever identity, and `why.md` says why.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chargeback.sources.judging import identity_files
from store.sqlfile import tables_read
from tests.chargeback.ledger import read_rows, write_rows
from tests.chargeback.sources.focus_files import staged, unpacked

if TYPE_CHECKING:
    from store.lake import Connection

CASES = Path(__file__).parents[2] / "sql" / "identities"
CONFORMANT = ("1.2-aws", "1.2-azure", "1.2-gcp", "1.3-aws", "1.3-azure", "1.3-gcp", "1.4-aws")


def test_every_identity_has_a_case_a_severity_and_reads_what_it_says(con: Connection) -> None:
    files = identity_files()
    assert {path.name.split("_", 1)[0] for path in CASES.iterdir()} == {
        file.name.split("_", 1)[0] for file in files if file.header["Identity"].startswith("I")
    }
    assert {file.header["Severity"] for file in files} == {"error", "warn", "info"}
    assert len({file.header["Identity"] for file in files}) == len(files)
    for file in files:
        assert tables_read(con, file.text) == set(file.reads) == {"staged_charge"}, file.name
        assert file.header["Source"], file.name


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir()))
def test_identity(con: Connection, tmp_path: Path, name: str) -> None:
    rows = read_rows(CASES / name / "in_charges.csv")
    broken = staged(con, write_rows(tmp_path / "charges.csv", "charges", rows))
    found = [
        {"identity": b.identity, "severity": b.severity, "row": str(row.source_row)}
        | {"column": row.column or "", "value": row.value or ""}
        for b in broken
        for row in sorted(b.rows, key=lambda row: (row.source_row, row.column or "", row.value or ""))
    ]
    assert found == read_rows(CASES / name / "out.csv")
    assert [b.row_count for b in broken] == [len(b.rows) for b in broken]


@pytest.mark.parametrize("name", CONFORMANT)
def test_a_conformant_bill_breaks_no_identity(con: Connection, tmp_path: Path, name: str) -> None:
    assert staged(con, unpacked(tmp_path, f"focus-{name}")) == ()
