"""The statement's rounding against its four guarantees, by brute force and by hand."""

from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.money import Line, round_lines, round_minor

D = Decimal

amounts = st.integers(-4000, 4000).map(lambda n: D(n).scaleb(-3)) | st.decimals(-50, 50, places=6)
line_lists = st.lists(
    st.builds(Line, st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["held", "idle", "tax"]), amounts),
    max_size=12,
)


def expected_totals(lines, key):
    """Guarantee b in the plainest words, in hundredths, by an independent route."""
    exact = defaultdict(Fraction)
    for line in lines:
        exact[key(line)] += Fraction(line[2]) * 100
    whole = sum(exact.values())
    grand = floor(abs(whole) + Fraction(1, 2)) * (1 if whole >= 0 else -1)
    totals = {k: floor(v) for k, v in exact.items()}
    by_cut = sorted(exact, key=lambda k: (-(exact[k] - floor(exact[k])), k))
    for k in by_cut[: grand - sum(totals.values())]:
        totals[k] += 1
    return totals, grand


def summed(lines, rounded, key):
    totals = defaultdict(int)
    for line, amount in zip(lines, rounded, strict=True):
        totals[key(line)] += int(amount * 100)
    return dict(totals)


def column_misses(lines, rounded, wanted):
    got = summed(lines, rounded, lambda x: x[1])
    return sum(abs(got[k] - wanted[k]) for k in wanted)


def fewest_misses(lines, rows, wanted):
    """By trying every choice of floor or floor + 1 that gives the row totals."""
    choices = []
    for line in lines:
        low = floor(Fraction(line[2]) * 100)
        choices.append((low,) if Fraction(line[2]) * 100 == low else (low, low + 1))
    best = None
    for picked in product(*choices):
        rounded = [D(units).scaleb(-2) for units in picked]
        if summed(lines, rounded, lambda x: x[0]) == rows:
            misses = column_misses(lines, rounded, wanted)
            best = misses if best is None else min(best, misses)
    return best


@given(line_lists)
@settings(max_examples=150, deadline=None)
def test_guarantees(lines):
    rounded = round_lines(lines, digits=2)
    assert len(rounded) == len(lines)
    if not lines:
        return
    rows, grand = expected_totals(lines, lambda x: x[0])
    columns, _ = expected_totals(lines, lambda x: x[1])
    assert sum(rounded) * 100 == grand
    assert summed(lines, rounded, lambda x: x[0]) == rows
    for line, amount in zip(lines, rounded, strict=True):
        units = Fraction(line.amount) * 100
        assert amount * 100 in ({int(units)} if units.denominator == 1 else {floor(units), floor(units) + 1})
    if len(lines) <= 9:
        assert column_misses(lines, rounded, columns) == fewest_misses(lines, rows, columns)


ties = st.builds(
    Line,
    st.sampled_from("abc"),
    st.sampled_from("xyz"),
    st.sampled_from([D("0.005"), D("1.005"), D("-0.005")]),
)


@given(line_lists | st.lists(ties, max_size=10), st.randoms(use_true_random=False), st.sampled_from([0, 2]))
@settings(max_examples=120)
def test_the_order_of_lines_decides_nothing(lines, random, digits):
    shuffled = list(lines)
    random.shuffle(shuffled)
    before = Counter(zip(lines, round_lines(lines, digits=digits), strict=True))
    assert Counter(zip(shuffled, round_lines(shuffled, digits=digits), strict=True)) == before


def test_the_worked_example_honours_teams_and_categories():
    lines = [Line("a", "held", D("0.005")), Line("b", "held", D("0.005")), Line("b", "idle", D("0.005"))]
    assert [str(x) for x in round_lines(lines, digits=2)] == ["0.01", "0.00", "0.01"]


def test_a_chain_may_run_through_several_rows_and_columns():
    # r's 0.004 makes z the most cut column, yet r has no cent: x gives one to y in p, y to z in q.
    lines = [
        Line("p", "x", D("0.006")), Line("p", "y", D("0.004")),
        Line("q", "y", D("0.006")), Line("q", "z", D("0.004")),
        Line("r", "z", D("0.004")),
    ]  # fmt: skip
    rounded = round_lines(lines, digits=2)
    wanted, _ = expected_totals(lines, lambda x: x[1])
    assert wanted == {"x": 0, "y": 1, "z": 1}
    assert summed(lines, rounded, lambda x: x[1]) == wanted
    assert [str(x) for x in rounded] == ["0.00", "0.01", "0.00", "0.01", "0.00"]


def test_teams_come_first_where_both_cannot_be_had():
    lines = [Line("a", "y", D("0.005")), Line("b", "x", D("0.005"))]
    assert [str(x) for x in round_lines(lines, digits=2)] == ["0.01", "0.00"]


def test_a_month_of_credits_and_charges_at_ledger_scale():
    lines = [
        Line(f"team-{i % 37:02d}", ("held", "idle", "credit", "tax")[i % 4],
             D((-1 if i % 4 == 2 else 1) * (i * 7919 % 1_000_003) * 10**7 + i).scaleb(-12))
        for i in range(4000)
    ]  # fmt: skip
    rounded = round_lines(lines, digits=2)
    columns, grand = expected_totals(lines, lambda x: x[1])
    assert sum(rounded) * 100 == grand
    assert summed(lines, rounded, lambda x: x[0]) == expected_totals(lines, lambda x: x[0])[0]
    assert summed(lines, rounded, lambda x: x[1]) == columns


def test_the_naive_sum_of_rounded_teams_loses_the_cent_this_keeps():
    lines = [Line(team, "held", D("10.004")) for team in "abc"]
    assert sum(round_minor(line.amount, 2) for line in lines) == D("30.00")
    assert round_minor(sum(line.amount for line in lines), 2) == D("30.01")
    assert sum(round_lines(lines, digits=2)) == D("30.01")


def test_plain_tuples_empty_input_and_other_scales():
    assert round_lines([], digits=2) == []
    assert round_lines([("a", "x", D("1.5")), ("b", "x", D("1.4"))], digits=0) == [D(2), D(1)]
    assert str(round_lines([("a", "x", D("-0.001"))], digits=2)[0]) == "0.00"


def test_floats_and_nan_are_refused():
    with pytest.raises(TypeError, match="float"):
        round_lines([("a", "x", 0.5)], digits=2)
    with pytest.raises(ValueError, match="finite"):
        round_lines([("a", "x", D("NaN"))], digits=2)
    with pytest.raises(ValueError, match="negative"):
        round_lines([("a", "x", D(1))], digits=-1)
