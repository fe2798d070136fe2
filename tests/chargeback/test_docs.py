"""Tables in the documentation are written by these tests (`make golden`) and compared with the code they describe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chargeback.checks import check_files
from chargeback.kinds import KINDS
from chargeback.sources.judging import identity_files

DOCS = Path(__file__).parents[2] / "docs"


def input_table() -> str:
    lines = []
    for spec in KINDS.values():
        required = [f"**{column.name}**{'*' if column.filled else ''}" for column in spec.columns if column.required]
        optional = [column.name for column in spec.columns if not column.required]
        one_of = f"; exactly one of {', '.join(spec.one_of)} in each row" if spec.one_of else ""
        lines.append(f"| `{spec.kind}` | {', '.join(required + optional)}{one_of} |")
    return "\n".join(["| kind | columns |", "|---|---|", *lines])


def check_table() -> str:
    lines = [
        f"| `{file.name}`{' (strict)' if file.header['Tier'] == 'strict' else ''} "
        f"| {file.header['Check'][0].upper()}{file.header['Check'][1:]} |"
        for file in check_files()
    ]
    return "\n".join(["| check | says |", "|---|---|", *lines])


def identity_table() -> str:
    lines = [
        f"| {file.header['Identity']} | {file.header['Severity']} | {file.header['Purpose'][0].upper()}"
        f"{file.header['Purpose'][1:]} | {file.header['Source']} |"
        for file in identity_files()
    ]
    return "\n".join(["| identity | severity | says | source |", "|---|---|---|---|", *lines])


@pytest.mark.parametrize(
    ("page", "block", "table"),
    [
        ("inputs.md", "inputs", input_table()),
        ("ledger.md", "checks", check_table()),
        ("bill.md", "identities", identity_table()),
    ],
)
def test_table_says_what_the_code_does(pytestconfig: pytest.Config, page: str, block: str, table: str) -> None:
    path = DOCS / page
    text = path.read_text("utf-8")
    wanted = f"<!-- begin {block} -->\n{table}\n<!-- end {block} -->"
    if pytestconfig.getoption("--update-golden"):
        between = rf"<!-- begin {block} -->\n.*?<!-- end {block} -->"
        path.write_text(re.sub(between, lambda _: wanted, text, flags=re.DOTALL), "utf-8")
    assert wanted in path.read_text("utf-8"), "run `make golden` and read the diff"
