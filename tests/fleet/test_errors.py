"""Errors are one clear line each, whatever text they quote."""

import pickle

import pytest

from fleet.errors import (
    CheckError,
    ConfigError,
    GputallyError,
    InputError,
    LakeBusyError,
    LakeError,
    MissingDependencyError,
    NotBuiltError,
    Problem,
    quoted,
)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (
            Problem("charges.csv", "'1,234.50' is not a plain decimal", 3, "BilledCost"),
            "charges.csv: row 3, column BilledCost: '1,234.50' is not a plain decimal",
        ),
        (Problem("a.csv", "too short", row=3), "a.csv: row 3: too short"),
        (Problem("a.csv", "is missing", column="start"), "a.csv: column start: is missing"),
        (Problem("a.csv", "is empty"), "a.csv: is empty"),
        (Problem("a\n.csv", "bad\r\ntext", 1, "c\x1b[31m"), r"a\n.csv: row 1, column c\x1b[31m: bad\r\ntext"),
    ],
)
def test_problem_names_its_place_on_one_line(problem, text):
    assert str(problem) == text


def test_quoted_escapes_and_cuts():
    assert quoted("plain") == "'plain'"
    assert quoted("a\nb\x00\u202e") == r"'a\nb\x00\u202e'"
    assert quoted("x" * 60) == f"'{'x' * 60}'"
    assert quoted("x" * 61) == f"'{'x' * 60}'..."
    assert quoted("abcdef", limit=3) == "'abc'..."


def test_long_column_names_are_cut():
    assert len(str(Problem("f", "m", column="c" * 5000))) < 300


def test_input_error_shows_the_first_problem_and_counts_the_rest():
    one, two, three = (Problem("a.csv", f"m{i}") for i in (1, 2, 3))
    assert str(InputError([one])) == "a.csv: m1"
    assert str(InputError([one, two])) == "a.csv: m1 (and 1 more problem)"
    error = InputError([one, two, three])
    assert str(error) == "a.csv: m1 (and 2 more problems)"
    assert error.problems == (one, two, three)
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_check_error_carries_its_failures():
    error = CheckError([("postings_balance", 2, "team:a 0.01\nteam:b 0.02"), ("bridge", 1, "x")])
    assert error.failures[0] == ("postings_balance", 2, "team:a 0.01\nteam:b 0.02")
    assert error.failures[1].check == "bridge"
    assert str(error) == (
        r"check postings_balance failed on 2 rows: team:a 0.01\nteam:b 0.02 (and 1 more failed check)"
    )
    assert pickle.loads(pickle.dumps(error)).failures == error.failures


@pytest.mark.parametrize("cls", [InputError, CheckError])
def test_an_error_without_content_is_a_defect(cls):
    with pytest.raises(ValueError, match="at least one"):
        cls([])


@pytest.mark.parametrize("cls", [ConfigError, LakeError, LakeBusyError, NotBuiltError, MissingDependencyError])
def test_every_error_is_one_line_of_one_family(cls):
    assert str(cls("first\nsecond")) == r"first\nsecond"
    assert issubclass(cls, GputallyError)
    assert issubclass(LakeBusyError, LakeError)
