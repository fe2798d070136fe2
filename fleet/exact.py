"""Decimals as whole numbers of a chosen unit, so that no sum or product can lose a digit.

`Decimal` arithmetic rounds to the precision of a context that any caller may have changed (28
digits unless told otherwise), while the ledger holds 38. Integers have no such limit: amounts
are brought to one common scale, worked on as `int`, and turned back.
"""

from collections.abc import Iterable
from decimal import Decimal


def require_decimal(value: object, what: str) -> Decimal:
    """The value itself if it is a finite Decimal.

    TypeError for any other type, a float above all: 0.1 is not a tenth. ValueError for NaN
    and the infinities.
    """
    if not isinstance(value, Decimal):
        raise TypeError(f"{what} must be a Decimal, not {type(value).__name__}")
    if not value.is_finite():
        raise ValueError(f"{what} must be finite, not {value}")
    return value


def require_digits(digits: int) -> int:
    """The number of decimals of a currency, refused (ValueError) when negative."""
    if digits < 0:
        raise ValueError(f"digits must not be negative, not {digits}")
    return digits


def common_scale(amounts: Iterable[Decimal], digits: int) -> int:
    """The fewest decimals, at least `digits`, that write every finite amount exactly."""
    return max((digits, *(-_exponent(amount) for amount in amounts)))


def to_units(amount: Decimal, scale: int) -> int:
    """A finite amount in units of 10**-scale; ValueError if that is not a whole number."""
    numerator, denominator = amount.as_integer_ratio()
    units: int
    units, rest = divmod(numerator * 10**scale, denominator)
    if rest:
        raise ValueError(f"{amount} has more than {scale} decimals")
    return units


def from_units(units: int, digits: int) -> Decimal:
    """`units` of 10**-digits as a Decimal with exactly that many decimals, and no minus zero."""
    sign, figures, _ = Decimal(units).as_tuple()
    return Decimal((sign, figures, -digits))


def _exponent(amount: Decimal) -> int:
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{amount} is not finite")  # noqa: TRY004 - the type is right, the value is not
    return exponent
