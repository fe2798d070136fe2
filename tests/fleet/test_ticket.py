"""Tickets: what was issued is redeemed, anything else is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.ticket import TicketError, issue, redeem

KEY = b"k" * 32


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=5))
def test_claims_come_back(claims: dict[str, str]) -> None:
    assert redeem(KEY, issue(KEY, claims, expires_s=100), now_s=99.9) == claims


def test_an_expired_ticket_says_so() -> None:
    with pytest.raises(TicketError) as caught:
        redeem(KEY, issue(KEY, {}, expires_s=100), now_s=100)
    assert caught.value.expired


@given(st.text(max_size=200))
def test_strange_text_is_no_ticket(text: str) -> None:
    with pytest.raises(TicketError) as caught:
        redeem(KEY, text, now_s=0)
    assert not caught.value.expired


def test_a_changed_or_foreign_ticket_is_no_ticket() -> None:
    ticket = issue(KEY, {"role": "team"}, expires_s=100)
    other = issue(KEY, {"role": "finance"}, expires_s=100)
    body, signature = other.split(".")[0], ticket.split(".")[1]
    for forged in (
        f"{body}.{signature}",
        ticket[:-1],
        ticket.split(".")[0],
        f"{ticket}0",
        issue(b"x" * 32, {}, expires_s=9),
        "a" * 5000,
    ):
        with pytest.raises(TicketError):
            redeem(KEY, forged, now_s=0)
