"""Each rule is broken once, by a sample that it must catch, and once left alone."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.tidy import python_rules, sql_rules, text_rules, tree_rules

HEAD = "-- Purpose: p\n-- Grain: day\n-- Reads: charge\n"
SHORT = 'def short():\n    """Do."""\n' + "    x = 1\n" * 68
LONG = SHORT + "    x = 1\n"

FILES = [
    # rule, path, caught, left alone
    (python_rules.module_too_long, "store/a.py", "x = 1\n" * 301, "x = 1\n" * 300),
    (python_rules.function_too_long, "store/a.py", LONG, SHORT),
    (python_rules.docstring_missing, "store/a.py", "import os\n", '"""Why."""\nimport os\n'),
    (python_rules.work_at_import, "store/a.py", "configure()\n", "def f():\n    configure()\n"),
    (python_rules.work_at_import, "store/a.py", "for x in y:\n    z(x)\n", "Z = tuple(x for x in y)\n"),
    (python_rules.work_at_import, "store/a.py", "T = P.read_text()\n", "T = lambda: P.read_text()\n"),
    (python_rules.work_at_import, "store/a.py", "NOW = datetime.now(UTC)\n", "CENT = Decimal('0.01')\n"),
    (
        python_rules.work_at_import,
        "store/a.py",
        "try:\n    start()\nexcept OSError:\n    pass\n",
        'if __name__ == "__main__":\n    start()\n',
    ),
    (python_rules.sql_from_pieces, "chargeback/a.py", 'q = f"SELECT a FROM {t}"\n', 'q = f"from {t}"\n'),
    (python_rules.sql_from_pieces, "app/a.py", 'q = "delete from %s" % t\n', 'q = "DELETE FROM t"\n'),
    (
        python_rules.sql_from_pieces,
        "app/a.py",
        'q = "drop table {}".format(t)\n',
        'q = "drop {}".format(t)\n',
    ),
    (python_rules.stray_print, "store/a.py", "print(1)\n", "log.info(1)\n"),
    (python_rules.fleet_is_stdlib, "fleet/a.py", "import yaml.x\n", "import json\nfrom fleet import money\n"),
    (python_rules.fleet_is_stdlib, "fleet/a.py", "from rich import print\n", "from decimal import Decimal\n"),
    (sql_rules.header_missing, "store/a.sql", "-- Purpose: p\nSELECT 1", HEAD + "SELECT 1"),
    (sql_rules.header_missing, "store/a.sql", "SELECT 1\n" + HEAD, HEAD + "\n/* more */ SELECT 1"),
    (
        sql_rules.header_missing,
        "chargeback/checks/a.sql",
        HEAD + "SELECT 1",
        "-- Check: c\n-- Reads: charge\nSELECT 1",
    ),
    (
        sql_rules.header_missing,
        "chargeback/inputs/a.sql",
        "-- Rule: r\n-- Reads: staged\nSELECT 1",
        "-- Rule: r\n-- Kind: quotas\n-- Reads: staged\nSELECT 1",
    ),
    (sql_rules.money_in_float, "store/a.sql", "billed_cost DOUBLE,", "billed_cost DECIMAL(38,12),"),
    (sql_rules.money_in_float, "store/a.sql", "SELECT x::DOUBLE AS amount", "SELECT x::DOUBLE AS ratio"),
    (sql_rules.money_in_float, "store/a.sql", "CAST(x AS FLOAT) AS price", "CAST(x AS BIGINT) AS price"),
    (sql_rules.money_in_float, "store/a.sql", "sum(total::REAL)", "sum(total) -- total::REAL drifts"),
    (
        sql_rules.hugeint_stored,
        "store/a.sql",
        "CREATE TABLE t (a INT, n HUGEINT)",
        "CREATE TEMP TABLE t (n HUGEINT); SELECT n::HUGEINT AS n FROM t",
    ),
    (
        sql_rules.hugeint_stored,
        "store/a.sql",
        "create or replace table t as select sum(x::UHUGEINT)::hugeint AS n",
        "CREATE TABLE t AS SELECT (sum(x::HUGEINT))::BIGINT AS n",
    ),
    (text_rules.unfinished, "docs/a.md", "FIXME later", "to do"),
    (text_rules.machine_path, "docs/a.md", "see /home/ann/x", "see docs/home/ann"),
    (text_rules.machine_path, "tests/a.py", 'open("../shared/x")', 'open("shared/x")'),
    (text_rules.registry_host, "Makefile", "pip install --index-url x", "pip install x"),
    (text_rules.registry_host, "docs/a.md", "from pypi.example", "from PyPI. Then"),
    (
        text_rules.opt_out_without_reason,
        "store/a.py",
        "x  # noqa",
        "x  # noqa: BLE001 - a thread's last resort",
    ),
    (text_rules.opt_out_without_reason, "store/a.py", "x  # noqa: F401", "x  # noqa: F401, E402 - re-export"),
    (
        text_rules.opt_out_without_reason,
        "store/a.py",
        "x  # type: ignore[misc]",
        "x  # type: ignore[misc]  # the stub lacks it",
    ),
    (
        text_rules.opt_out_without_reason,
        "tests/a.py",
        "@pytest.mark.skip\n@pytest.mark.xfail()",
        '@pytest.mark.skipif(mac, reason="no /proc")\npytest.skip("no /proc here")',
    ),
    (
        text_rules.opt_out_without_reason,
        "store/a.py",
        "x  # pragma: no cover",
        "x  # pragma: no cover - only after a crash",
    ),
    (
        text_rules.dead_link,
        "README.md",
        "[a](docs/nowhere.md)",
        "[a](pyproject.toml) [b](https://x.y) [c](#d)",
    ),
]


@pytest.mark.parametrize(
    ("rule", "path", "bad", "good"), FILES, ids=[f"{case[0].__name__}-{n}" for n, case in enumerate(FILES)]
)
def test_a_file_rule_catches_its_sample_and_only_it(rule, path, bad, good) -> None:
    caught = rule(PurePosixPath(path), bad)
    assert caught
    assert all(message.startswith(path) for message in caught)
    assert rule(PurePosixPath(path), good) == []


def test_line_numbers_point_at_the_fault() -> None:
    sql = "/* a\nb */\nCREATE TABLE t (\n  a INT,\n  n HUGEINT,\n  cost DOUBLE\n)"
    (huge,) = sql_rules.hugeint_stored(PurePosixPath("store/a.sql"), sql)
    (money,) = sql_rules.money_in_float(PurePosixPath("store/a.sql"), sql)
    # The comma before the column is where the match begins.
    assert huge.startswith("store/a.sql:4: n ")
    assert money.startswith("store/a.sql:6: cost ")


@pytest.mark.parametrize(
    ("path", "caught"),
    [
        ("app/alerts.py", True),
        ("app/calendar.py", True),
        ("app/store/__init__.py", True),
        ("app/spend.py", False),
        ("app/views/alerts.py", False),
        ("services/calendar.py", False),
    ],
)
def test_app_name_clash(path: str, *, caught: bool) -> None:
    assert bool(python_rules.app_name_clash(PurePosixPath(path), "")) is caught


TREES = [
    (
        tree_rules.case_without_why,
        {"tests/sql/010_a/one/out.csv": "", "tests/sql/010_a/one/in_charge.csv": ""},
        {"tests/sql/010_a/one/out.csv": "", "tests/sql/010_a/one/why.md": "", "tests/sql/test_all.py": ""},
    ),
    (
        tree_rules.model_order,
        {"chargeback/model/010_a.sql": "", "chargeback/model/010_b.sql": ""},
        {"chargeback/model/010_a.sql": "", "chargeback/model/020_b.sql": "-- Reads: a, charge"},
    ),
    (tree_rules.model_order, {"chargeback/model/first.sql": ""}, {"chargeback/checks/first.sql": ""}),
    (
        tree_rules.model_order,
        {"chargeback/model/010_a.sql": "-- Reads: charge,\n--   b\n", "chargeback/model/020_b.sql": ""},
        {
            "chargeback/model/010_a.sql": "-- Reads: charge\n-- b comes later",
            "chargeback/model/020_b.sql": "",
        },
    ),
    (tree_rules.unknown_package, {"utils/a.py": ""}, {"bench/a.py": "", "store/a.py": "", "setup.py": ""}),
    (
        tree_rules.orphan_sample,
        {"tests/golden/page.prom": "", "tests/test_a.py": '"other.prom"'},
        {"tests/golden/page.prom": "", "tests/test_a.py": 'golden("page.prom", x)'},
    ),
    (
        tree_rules.orphan_sample,
        {"tests/store/fixtures/aws/a.csv": "", "tests/test_a.py": "'bws'"},
        {"tests/store/fixtures/aws/a.csv": "", "tests/test_a.py": "HERE / 'fixtures' / 'aws'"},
    ),
]


@pytest.mark.parametrize(
    ("rule", "bad", "good"), TREES, ids=[f"{case[0].__name__}-{n}" for n, case in enumerate(TREES)]
)
def test_a_tree_rule_catches_its_sample_and_only_it(rule, bad, good) -> None:
    assert rule({PurePosixPath(path): text for path, text in bad.items()})
    assert rule({PurePosixPath(path): text for path, text in good.items()}) == []


def test_every_rule_has_a_sample() -> None:
    tested = {case[0] for case in FILES + TREES} | {python_rules.app_name_clash}
    rules = {*python_rules.RULES, *sql_rules.RULES, *text_rules.RULES, *tree_rules.RULES}
    assert rules - tested == set()


def test_a_line_may_opt_out_of_one_rule_with_a_reason() -> None:
    text = "a\nprint(1)  # tidy: stray_print - why\nprint(2)  # tidy: stray_print\nprint(3)  # tidy: x - y\n"
    messages = python_rules.stray_print(PurePosixPath("store/a.py"), text)
    kept = text_rules.without_opt_outs("stray_print", messages, text)
    assert [message.split(":")[1] for message in kept] == ["3", "4"]


def test_opt_outs_are_counted_by_kind() -> None:
    text = "a  # noqa: X1 - why\nb  # type: ignore[x]  # why\nc  # noqa: X2 - why\n"
    counts = text_rules.count_opt_outs([(PurePosixPath("store/a.py"), text), (PurePosixPath("a.md"), text)])
    assert counts == {"noqa": 2, "type: ignore": 1, "no cover": 0, "tidy": 0, "skip": 0}
