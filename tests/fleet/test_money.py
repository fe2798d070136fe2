"""Reading, rounding, sharing and printing money, with oracles worked out by hand."""

import decimal
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.money import (
    format_money,
    format_plain,
    minor_unit_digits,
    parse_decimal,
    round_minor,
    share_out,
)

D = Decimal


def texts(amounts):
    return [str(amount) for amount in amounts]


def test_minor_units():
    assert [minor_unit_digits(c) for c in ("USD", "EUR", "JPY", "KRW", "KWD", "BHD")] == [2, 2, 0, 0, 3, 3]


@pytest.mark.parametrize("code", ["usd", "US", "USDX", "", "U$D", "USD\n", "\uff35\uff33\uff24"])
def test_what_is_no_currency_code_is_refused(code):
    with pytest.raises(ValueError, match="not a currency code"):
        minor_unit_digits(code)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("-12.50", "-12.50"),
        ("007.10", "7.10"),
        ("1E3", "1E+3"),
        ("1.1102230246251565e-16", "1.1102230246251565E-16"),
        ("-0.00", "0.00"),
        ("12345678901234567890123456.123456789012345678",) * 2,
    ],
)
def test_plain_decimals_are_kept_exactly(text, value):
    assert parse_decimal(text).as_tuple() == D(value).as_tuple()


@pytest.mark.parametrize(
    "text",
    ["1,234.50", "$5", "NaN", "sNaN", "Infinity", "-inf", "+5", "", " 5", "5 ", "5\n",
     "\uff11\uff12", "\u0663", "1_000",
     ".5", "5.", "1e+3", "1e", "0x10", "--1", "1e99999999999999999999", "1E1001", "1e-1001", "9" * 1001],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"is not a plain decimal|is out of range"):
        parse_decimal(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
@settings(max_examples=60)
def test_parsing_keeps_the_value(value):
    assert parse_decimal(f"{value:f}") == value


@given(st.text(max_size=8))
@settings(max_examples=60)
def test_parsing_either_refuses_or_agrees_with_decimal(text):
    try:
        value = parse_decimal(text)
    except ValueError:
        return
    assert text.isascii()
    assert value == D(text)


@pytest.mark.parametrize(
    ("amount", "digits", "expected"),
    [("1.005", 2, "1.01"), ("2.475", 2, "2.48"), ("-2.475", 2, "-2.48"), ("2.4749999", 2, "2.47"),
     ("0.5", 0, "1"), ("-0.004", 2, "0.00"), ("5", 3, "5.000"), ("1E3", 2, "1000.00"),
     ("99.995", 2, "100.00"), ("0.0049", 2, "0.00")],
)  # fmt: skip
def test_halves_round_away_from_zero(amount, digits, expected):
    assert str(round_minor(D(amount), digits)) == expected


def test_rounding_does_not_depend_on_the_decimal_context():
    amount = D("123456789012345678901234567890123456.785")
    with decimal.localcontext(prec=3):
        assert str(round_minor(amount, 2)) == "123456789012345678901234567890123456.79"
        assert share_out(D("123456.78"), {"a": D("1.00001"), "b": D(0)}, digits=2)["a"] == D("123456.78")


# Oracle O10: largest remainder, by hand.
@pytest.mark.parametrize(
    ("total", "weights", "expected"),
    [
        ("100.00", "1 1 1", "33.34 33.33 33.33"),
        ("-100.00", "1 1 1", "-33.34 -33.33 -33.33"),
        ("0.01", "1 1 1", "0.01 0.00 0.00"),
        ("1000.01", "1 1 1 1 1 1 1", "142.86 142.86 142.86 142.86 142.86 142.86 142.85"),
        ("0.05", "1 1 1 97", "0.00 0.00 0.00 0.05"),
        ("1320.96", "96.5 48.25 47.25", "663.92 331.96 325.08"),
    ],
)
def test_largest_remainder_oracle(total, weights, expected):
    by_key = dict(zip("abcdefg", map(D, weights.split()), strict=False))
    assert texts(share_out(D(total), by_key, digits=2).values()) == expected.split()


# Oracle O11: 8.25 % tax on three lines of 10.00 is 2.48 on the total and 2.49 line by line.
def test_tax_is_rounded_on_the_total_and_shared():
    lines = {"a": D("10.00"), "b": D("10.00"), "c": D("10.00")}
    rate = D("0.0825")
    total = round_minor(sum(lines.values()) * rate, 2)
    assert total == D("2.48")
    assert sum(round_minor(line * rate, 2) for line in lines.values()) == D("2.49")
    assert texts(share_out(total, lines, digits=2).values()) == ["0.83", "0.83", "0.82"]


weights = st.dictionaries(
    st.text("abcxyz", min_size=1, max_size=3),
    st.decimals(0, 10**6, places=4) | st.integers(0, 5),
    min_size=1,
    max_size=7,
).filter(lambda found: sum(found.values()) > 0)
totals = st.integers(-(10**7), 10**7)


@given(totals, weights, st.sampled_from([0, 2, 3]))
@settings(max_examples=120)
def test_shares_sum_exactly_and_stay_within_a_unit(units, by_key, digits):
    total = D(units).scaleb(-digits)
    shares = share_out(total, by_key, digits=digits)
    assert list(shares) == list(by_key)
    assert sum(shares.values()) == total
    whole = sum(Fraction(w) for w in by_key.values())
    for key, share in shares.items():
        exact = Fraction(total) * Fraction(by_key[key]) / whole
        assert abs(Fraction(share) - exact) < Fraction(1, 10**digits)
        assert share.as_tuple().exponent == -digits


@given(totals, weights, st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_shares_do_not_depend_on_order_and_mirror_refunds(units, by_key, random):
    total = D(units).scaleb(-2)
    shuffled = list(by_key.items())
    random.shuffle(shuffled)
    shares = share_out(total, by_key, digits=2)
    assert share_out(total, dict(shuffled), digits=2) == shares
    assert share_out(-total, by_key, digits=2) == {key: -share for key, share in shares.items()}


@pytest.mark.parametrize(
    ("total", "by_key", "reason"),
    [
        ("1.005", {"a": 1}, "more than 2 decimals"),
        ("1.00", {}, "no weight"),
        ("1.00", {"a": 0, "b": D(0)}, "no weight"),
        ("0.00", {"a": 0}, "no weight"),
        ("1.00", {"a": 1, "b": D(-1)}, "must not be negative"),
        ("1.00", {"a": D("NaN")}, "must be finite"),
        ("1.00", {"a": D("Infinity")}, "must be finite"),
        ("NaN", {"a": 1}, "must be finite"),
    ],
)
def test_what_cannot_be_shared_is_refused(total, by_key, reason):
    with pytest.raises(ValueError, match=reason):
        share_out(D(total), by_key, digits=2)


def test_floats_are_refused():
    with pytest.raises(TypeError, match="must be a Decimal, not float"):
        round_minor(0.1, 2)
    with pytest.raises(TypeError, match="must be a Decimal, not float"):
        share_out(1.0, {"a": 1}, digits=2)
    with pytest.raises(TypeError, match="weight of 'a' must be a Decimal, not float"):
        share_out(D(1), {"a": 0.5}, digits=2)
    with pytest.raises(TypeError, match="float"):
        format_money(0.1, "USD")


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [("1948803.84", "USD", "1,948,803.84 USD"), ("-1234.5", "EUR", "-1,234.50 EUR"),
     ("-0.001", "USD", "0.00 USD"), ("1234567.5", "JPY", "1,234,568 JPY"), ("1", "KWD", "1.000 KWD"),
     ("1E+9", "USD", "1,000,000,000.00 USD")],
)  # fmt: skip
def test_money_for_people(amount, currency, text):
    assert format_money(D(amount), currency) == text


@pytest.mark.parametrize(
    ("amount", "digits", "text"),
    [("1948803.84", 2, "1948803.84"), ("-0.00", 2, "0.00"), ("1E-9", 2, "0.00"), ("1E+9", 0, "1000000000"),
     ("-5", 2, "-5.00"),
     ("12345678901234567890123456789012345678.9", 2, "12345678901234567890123456789012345678.90")],
)  # fmt: skip
def test_money_for_machines(amount, digits, text):
    assert format_plain(D(amount), digits) == text


def test_negative_digits_are_refused():
    with pytest.raises(ValueError, match="must not be negative"):
        round_minor(D(1), -1)
