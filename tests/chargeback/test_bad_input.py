"""Bad input, through the command a user types: one line that says where, and a lake that did not change."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from store.lake import memory
from tests.month import CHARGES, HELD, HOLDINGS, INVENTORY, INVOICES, MONTH, NODE, charge, load_month, write_lines
from tests.program import gputally, newest_snapshot, refused, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return load_month(tmp_path_factory.mktemp("loaded") / "ws")


@pytest.fixture
def ws(loaded: Path, tmp_path: Path) -> Path:
    """A copy of it to change; what is refused changes nothing and needs none."""
    return shutil.copytree(loaded, tmp_path / "ws")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    return lambda name, *lines: write_lines(tmp_path / name, *lines)


CELLS = [
    # kind, header, good row, bad row, where and what the line must say
    (
        "charges", CHARGES, charge(resource="i-7"), charge("1,234.50").replace("1,234.50", '"1,234.50"'),
        "row 3, column BilledCost: '1,234.50' is not a plain decimal number",
    ),
    ("charges", CHARGES, charge(resource="i-7"), charge("$5"), "row 3, column BilledCost: '$5' is not a plain decimal"),
    ("charges", CHARGES, charge(resource="i-7"), charge("NaN"), "row 3, column BilledCost: must not be empty"),
    ("charges", CHARGES, charge(resource="i-7"), charge(""), "row 3, column BilledCost: must not be empty"),
    (
        "charges", CHARGES, charge(resource="i-7"), charge(category="Use"),
        "row 3, column ChargeCategory: 'Use' is not Usage, Purchase, Tax, Credit or Adjustment",
    ),
    (
        "charges", CHARGES, charge(resource="i-7"), charge(span="2026-05-02T00:00:00Z,2026-05-01T00:00:00Z"),
        "row 3, column ChargePeriodEnd: '2026-05-01T00:00:00Z' is before ChargePeriodStart",
    ),
    (
        "charges", CHARGES, charge(resource="i-7"), charge().replace(MONTH, MONTH[:20] + "," + MONTH[:20], 1),
        "row 3, column BillingPeriodEnd: '2026-05-01T00:00:00Z' is not after BillingPeriodStart",
    ),
    (
        "inventory", INVENTORY, NODE.replace("1", "2"), "c,n3,8,2026-05-02T00:00:00Z,2026-05-01T00:00:00Z,train,i-3",
        "row 3, column valid_to: '2026-05-01T00:00:00Z' is not after valid_from",
    ),
    (
        "inventory", INVENTORY, "c,n3,8,2026-05-01T00:00:00Z,,train,i-3", "c,n3,4,2026-07-01T00:00:00Z,,train,i-3",
        "row 3, column valid_from: 'c/n3' overlaps bad.csv row 2: one node, two descriptions at the same time",
    ),
    (
        "inventory", INVENTORY, "c,n3,8,2026-05-01T00:00:00Z,,train,i-3", "c,n1,8,2026-05-31T00:00:00Z,,train,i-9",
        "row 3, column valid_from: 'c/n1' overlaps inventory.csv row 2: one node, two descriptions at the same time",
    ),
    (
        "inventory", INVENTORY, "c,n3,8,2026-05-01T00:00:00Z,,train,i-3", "c,n4,8,2026-05-31T00:00:00Z,,train,i-1",
        "row 3, column resource_id: 'i-1' is also the resource of c/n1 at the same time",
    ),
    ("inventory", INVENTORY, NODE, "c,n2,-1,2026-05-01T00:00:00Z,,,", "row 3, column gpu_count: '-1' is below 0"),
    (
        "holdings", HOLDINGS, HELD, HELD.replace("n1", "n2"),
        "row 3, column node: 'n2' is not in the inventory (load inventory first)",
    ),
    (
        "holdings", HOLDINGS, HELD, "2026-05-02T00:00:00Z,2026-05-02T00:00:00Z,8,n1,ann",
        "row 3, column end: '2026-05-02T00:00:00Z' is not after start",
    ),
    (
        "holdings", HOLDINGS, HELD, HELD.replace(",n1,", ",,"),
        "row 3: exactly one of device, node, pool must be given, found 0",
    ),
    (
        "holdings", "start,end,gpus,node,pool,team", HELD.replace(",n1,", ",n1,,"), HELD.replace(",n1,", ",n1,train,"),
        "row 3: exactly one of device, node, pool must be given, found 2",
    ),
    (
        "holdings", "start,end,gpus,pool,team", HELD.replace("n1", "train"), HELD.replace("n1", "nowhere"),
        "row 3, column pool: 'nowhere' is not a pool of the inventory (load inventory first)",
    ),
    (
        "holdings", "start,end,gpus,device,team", HELD.replace("n1", "GPU-1"), HELD.replace("n1", "GPU-1"),
        "row 2, column device: 'GPU-1' is not a known device (load devices first) (and 1 more problem)",
    ),
    (
        "demand", "start,end,gpus,pool", "2026-05-01T00:00:00Z,2026-05-02T00:00:00Z,1,train",
        "2026-05-01T00:00:00Z,2026-04-02T00:00:00Z,1,train",
        "row 3, column end: '2026-04-02T00:00:00Z' is not after start",
    ),
    (
        "devices", "device,cluster,node,valid_from,valid_to", "GPU-1,c,n1,2026-05-01T00:00:00Z,",
        "GPU-2,c,n9,2026-05-01T00:00:00Z,", "row 3, column node: 'c/n9' is not in the inventory (load inventory first)",
    ),
    (
        "devices", "device,cluster,node,valid_from,valid_to", "GPU-1,c,n1,2026-05-01T00:00:00Z,",
        "GPU-1,c,n1,2026-05-09T00:00:00Z,",
        "row 3, column valid_from: 'GPU-1' overlaps bad.csv row 2: one device, two places at the same time",
    ),
    (
        "quotas", "pool,team,gpus,valid_from,valid_to", "train,ann,4,2026-05-01T00:00:00Z,",
        "train,ann,6,2026-05-09T00:00:00Z,", "row 3, column valid_from: 'ann' has another quota in this pool",
    ),
    (
        "teams", "team,cost_centre,gl_account", "ann,100,6000", "ann,200,6000",
        "row 2, column cost_centre: 'ann' has another cost centre or GL account in bad.csv row 3",
    ),
    ("invoices", INVOICES, "Cloud,inv-2,2026-05,USD,5", "Cloud,inv-2,2026-05,USD,6", "'inv-2' is stated 2 times"),
    ("invoices", INVOICES, "Cloud,inv-2,2026-05,USD,5", "Cloud,inv-1,2026-05,USD,6", "'inv-1' is stated 2 times"),
    ("invoices", INVOICES, "Cloud,inv-2,2026-05,USD,5", "Cloud,inv-3,2026-5,USD,6", "'2026-5' is not a month"),
    (
        "invoices", INVOICES, "Cloud,inv-2,2026-05,USD,5", "Cloud,inv-3,2026-05,usd,6",
        "row 3, column currency: 'usd' is not an ISO 4217 currency code",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "header", "good", "bad", "message"), CELLS, ids=[f"{c[0]}-{n}" for n, c in enumerate(CELLS)]
)
def test_a_bad_row_is_named_and_nothing_is_kept(
    loaded: Path, write: Callable[..., Path], kind: str, header: str, good: str, bad: str, message: str
) -> None:
    line = refused(loaded, kind, write("bad.csv", header, good, bad))
    assert line.startswith("bad.csv: row ")
    assert message in line


def test_an_unknown_column_is_named_and_may_be_left_out(ws: Path, write: Callable[..., Path]) -> None:
    path = write("more.csv", HOLDINGS + ",colour", HELD.replace("ann", "bob") + ",red")
    line = refused(ws, "holdings", path)
    assert line.startswith("more.csv: row 1, column colour: unknown column; `--ignore-column` leaves it out")
    assert (
        said(gputally("-C", ws, "load", "holdings", path, "--ignore-column", "colour")) == "more.csv: 1 rows, loaded\n"
    )


def test_a_missing_required_column_is_named(loaded: Path, write: Callable[..., Path]) -> None:
    line = refused(
        loaded,
        "charges",
        write("few.csv", *(row.replace(",USD", "").replace(",BillingCurrency", "") for row in (CHARGES, charge()))),
    )
    assert line == "few.csv: row 1, column BillingCurrency: required column is missing"


def test_every_problem_is_listed_when_asked_for(loaded: Path, write: Callable[..., Path]) -> None:
    path = write("bad.csv", HOLDINGS, HELD.replace(",8,", ",x,"), HELD, HELD.replace(",8,", ",y,"))
    assert "(and 1 more problem)" in refused(loaded, "holdings", path)
    before = newest_snapshot(loaded)
    done = gputally("-C", loaded, "load", "holdings", path, "--all-problems")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "gputally: bad.csv: row 2, column gpus: 'x' is not a plain decimal number",
        "gputally: bad.csv: row 4, column gpus: 'y' is not a plain decimal number",
    ]
    assert newest_snapshot(loaded) == before


def test_two_files_of_one_name_cannot_be_loaded_together(
    loaded: Path, tmp_path: Path, write: Callable[..., Path]
) -> None:
    (tmp_path / "other").mkdir()
    paths = [write(name, HOLDINGS, HELD) for name in ("h.csv", "other/h.csv")]
    assert refused(loaded, "holdings", *paths) == "h.csv: is given twice; sources are told apart by file name"


def test_a_bad_second_file_leaves_nothing_of_the_first(loaded: Path, write: Callable[..., Path]) -> None:
    first = write("first.csv", HOLDINGS, HELD.replace("ann", "bob"))
    second = write("second.csv", HOLDINGS, HELD, HELD.replace(",8,", ",many,"))
    line = refused(loaded, "holdings", first, second)
    assert line == "second.csv: row 3, column gpus: 'many' is not a plain decimal number"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (CHARGES.encode() + b"\n", "has a header but no rows"),
        (b"PAR1 and then nothing that could be read", "is not a complete Parquet file (cut off or damaged)"),
        (CHARGES.encode("utf-16"), "row 1: has no readable UTF-8 header row"),
        (f"{CHARGES}\n{charge()}\n{charge()},more\n".encode(), "row 3: is not well-formed CSV"),
        (f'{CHARGES}\n{charge()}\n"{charge()}\n'.encode(), "row 3: is not well-formed CSV"),
    ],
    ids=["no bytes", "header only", "parquet mark only", "utf-16", "ragged", "open quote"],
)
def test_a_broken_file_is_refused(loaded: Path, tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.csv"
    path.write_bytes(content)
    assert refused(loaded, "charges", path).startswith(f"broken.csv: {message}")


def test_a_parquet_file_cut_off_in_its_middle_is_refused(loaded: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    memory().execute(f"COPY (SELECT range AS n FROM range(10000)) TO '{path}'")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refused(loaded, "charges", path) == "cut.parquet: is not a complete Parquet file (cut off or damaged)"


def test_a_file_whose_name_is_not_utf8_is_refused(loaded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    try:
        path = shutil.copy(loaded / "holdings.csv", folder / "odd\udcff.csv")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert "has a name or folder that is not UTF-8" in refused(loaded, "holdings", path)
