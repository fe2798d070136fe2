"""Whole units carry more digits than any decimal context."""

from decimal import Decimal

import pytest

from fleet.exact import common_scale, from_units, to_units


def test_units_round_trip_beyond_any_context():
    amount = Decimal("-98765432109876543210987654321098765432.123456789012")
    assert to_units(amount, 12) == -98765432109876543210987654321098765432123456789012
    assert from_units(to_units(amount, 12), 12).as_tuple() == amount.as_tuple()
    assert str(from_units(0, 2)) == "0.00"


def test_a_finer_amount_than_the_scale_is_refused():
    with pytest.raises(ValueError, match="more than 2 decimals"):
        to_units(Decimal("0.001"), 2)


def test_common_scale_writes_every_amount():
    assert common_scale([Decimal("1E+3"), Decimal("0.125")], 2) == 3
    assert common_scale([], 2) == 2
    with pytest.raises(ValueError, match="not finite"):
        common_scale([Decimal("NaN")], 2)
