"""Money in Decimal: reading, rounding, sharing out and printing, with no cent lost.

Floats are refused everywhere. The statement's own rounding, which has to agree with two sets
of totals at once, lives in `fleet.statement_rounding` and is offered here under the same roof.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

from fleet.errors import quoted
from fleet.exact import common_scale, from_units, require_decimal, require_digits, to_units
from fleet.statement_rounding import Line, round_lines

__all__ = [
    "Line",
    "format_money",
    "format_plain",
    "minor_unit_digits",
    "parse_decimal",
    "round_lines",
    "round_minor",
    "share_out",
]

_WITHOUT_CENTS = (
    "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG",
    "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF",
)  # fmt: skip
_WITH_THOUSANDTHS = ("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND")
_MINOR_UNIT_DIGITS = MappingProxyType({**dict.fromkeys(_WITHOUT_CENTS, 0), **dict.fromkeys(_WITH_THOUSANDTHS, 3)})

_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_PLAIN_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee]-?[0-9]+)?", re.ASCII)
# Far beyond any real price, near enough that the exact integers behind an amount stay small.
_EXPONENT_LIMIT = 1000
_TEXT_LIMIT = 1000


def minor_unit_digits(currency: str) -> int:
    """Decimals of a currency's minor unit by ISO 4217: 2 for USD, 0 for JPY, 3 for KWD.

    A code that is not three capital ASCII letters is a ValueError. A well-formed code outside
    the table of exceptions has 2, as nearly all currencies do.
    """
    if not _CURRENCY.fullmatch(currency):
        raise ValueError(f"{quoted(currency)} is not a currency code (three capital letters, such as USD)")
    return _MINOR_UNIT_DIGITS.get(currency, 2)


def parse_decimal(text: str) -> Decimal:
    """A number as billing files may write it (the numeric format of FOCUS), kept exactly.

    Optional minus, digits, optional fraction, optional exponent. Separators, currency signs,
    plus signs, spaces, NaN, infinities and digits of other scripts are a ValueError, as is a
    number with more than 1000 digits before or after the point. `-0` reads as 0.
    """
    if len(text) > _TEXT_LIMIT or not _PLAIN_DECIMAL.fullmatch(text):
        raise ValueError(f"{quoted(text)} is not a plain decimal")
    _, _, exponent = text.upper().partition("E")
    # Judged before Decimal sees it: beyond its own limits Decimal answers Infinity or 0.
    if len(exponent.lstrip("-0")) > 4:
        raise ValueError(f"{quoted(text)} is out of range")
    amount = Decimal(text)
    lowest = amount.as_tuple().exponent
    if not isinstance(lowest, int) or lowest < -_EXPONENT_LIMIT or amount.adjusted() > _EXPONENT_LIMIT:
        raise ValueError(f"{quoted(text)} is out of range")
    return amount if amount else amount.copy_abs()


def round_minor(amount: Decimal, digits: int) -> Decimal:
    """The amount rounded to `digits` decimals, halves away from zero, as DuckDB's `round` does.

    The answer always has exactly `digits` decimals and is never minus zero, whatever the
    current decimal context. TypeError for floats, ValueError for NaN and infinities.
    """
    require_decimal(amount, "amount")
    numerator, denominator = amount.as_integer_ratio()
    units, rest = divmod(abs(numerator) * 10 ** require_digits(digits), denominator)
    if 2 * rest >= denominator:
        units += 1
    return from_units(-units if numerator < 0 else units, digits)


def share_out(total: Decimal, weights: Mapping[str, Decimal | int], *, digits: int) -> dict[str, Decimal]:
    """Split `total` by weight into amounts of whole minor units that sum to it exactly.

    Largest remainder: everybody gets the floor of the exact share, and the units left over go
    one each to those whose share was cut most, ties in ascending order of key. So 100.00
    among three equals is 33.34, 33.33, 33.33. A negative total is split as its opposite and
    negated, so that a refund mirrors its charge. The answer keeps the order of `weights`.

    ValueError when `total` is not a whole number of minor units, when a weight is negative or
    not finite, and when there is no weight to share by: whether that means "the central team
    pays" is the caller's policy, not arithmetic. TypeError for floats.
    """
    total_units = to_units(require_decimal(total, "total"), require_digits(digits))
    shares = _whole_weights(weights)
    weight_sum = sum(shares.values())
    if weight_sum == 0:
        raise ValueError("no weight to share by")
    units: dict[str, int] = {}
    cut: dict[str, int] = {}
    for key, weight in shares.items():
        units[key], cut[key] = divmod(abs(total_units) * weight, weight_sum)
    left_over = abs(total_units) - sum(units.values())
    for key in sorted(cut, key=lambda key: (-cut[key], key))[:left_over]:
        units[key] += 1
    sign = -1 if total_units < 0 else 1
    return {key: from_units(sign * count, digits) for key, count in units.items()}


def format_money(amount: Decimal, currency: str) -> str:
    """For people: `1,948,803.84 USD`, rounded to the currency's minor unit."""
    return f"{round_minor(amount, minor_unit_digits(currency)):,f} {currency}"


def format_plain(amount: Decimal, digits: int) -> str:
    """For machines: `1948803.84`, rounded to `digits` decimals, no separators, no exponent."""
    return f"{round_minor(amount, digits):f}"


def _whole_weights(weights: Mapping[str, Decimal | int]) -> dict[str, int]:
    """The weights in proportion, as integers; only their ratios matter."""
    exact: dict[str, Decimal] = {}
    for key, weight in weights.items():
        what = f"weight of {quoted(key)}"
        value = Decimal(weight) if type(weight) is int else require_decimal(weight, what)
        if value < 0:
            raise ValueError(f"{what} must not be negative, not {value}")
        exact[key] = value
    scale = common_scale(exact.values(), 0)
    return {key: to_units(value, scale) for key, value in exact.items()}
