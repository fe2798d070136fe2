"""Addresses: what is written can be read back, and what strangers write leads nowhere bad."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from app.selection import Selection, choose, parse

NAMES = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), min_size=1, max_size=60)
SELECTIONS = st.builds(
    Selection,
    period=st.none() | st.dates(date(1970, 1, 1), date(9998, 12, 31)).map(lambda day: f"{day:%Y-%m}".rjust(7, "0")),
    currency=st.none() | st.sampled_from(["USD", "EUR", "JPY", "KWD"]),
    team=st.none() | NAMES,
    pool=st.none() | NAMES,
    category=st.none() | NAMES,
    day=st.none() | st.dates(date(1970, 1, 1), date(9998, 12, 31)),
)


@given(SELECTIONS)
def test_a_selection_survives_the_address(selection: Selection) -> None:
    assert parse(selection.params()) == (selection, ())


@given(st.dictionaries(st.sampled_from([*Selection.__dataclass_fields__, "evil"]), st.text(max_size=300)))
def test_any_address_gives_a_selection_or_names_what_it_could_not_read(params: dict[str, str]) -> None:
    selection, junk = parse(params)
    assert set(junk) <= set(params)
    assert all(getattr(selection, name) is None for name in junk)
    assert parse(selection.params()) == (selection, ())


@given(SELECTIONS, st.sampled_from(["period", "team", "currency"]))
def test_moving_on_forgets_the_day(selection: Selection, name: str) -> None:
    moved = selection.moved(name, "2026-02")
    assert (moved.day, moved.category) == (None, None)
    assert getattr(moved, name) == "2026-02"


def test_junk_is_named() -> None:
    junk = {
        "period": "2026-13",
        "day": "2026-2-1",
        "currency": "dollars",
        "team": "",
        "pool": "a\nb",
        "category": "x" * 201,
    }
    assert parse(junk) == (Selection(), ("period", "currency", "team", "pool", "category", "day"))


def test_a_choice_outside_the_list_is_never_made() -> None:
    assert choose("b", ["a", "b"]) == ("b", True)
    assert choose("z", ["a", "b"]) == ("a", False)
    assert choose(None, ["a", "b"]) == ("a", True)
    assert choose("z", []) == (None, False)
    assert choose(None, []) == (None, True)
