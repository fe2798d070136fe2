"""How values are written, and how strangers' names are made harmless."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import text
from app.events import lasted, wall_ms
from app.tables import Column, Link, table_html


def test_values_carry_separators_and_units() -> None:
    assert text.money(Decimal("1948803.84"), "USD") == "1,948,803.84 USD"
    assert text.money(Decimal(1234), "JPY") == "1,234 JPY"
    assert text.amount(Decimal("-0.001"), "USD") == "0.00"
    assert text.exact(Decimal("241.318189857303")) == "241.318190"
    assert text.gpu_hours(1_529_181_420_000_000) == "424,772.6"
    assert text.gpus(Decimal("840.000")) == "840"
    assert text.gpus(Decimal("0.500")) == "0.5"
    assert text.gpus(Decimal(1200)) == "1,200"
    assert text.percent(1, 3) == "33.3 %"
    assert text.count(1, "team", "teams") == "1 team"
    assert text.count(1700, "team", "teams") == "1,700 teams"
    assert text.month_name("2020-05") == "May 2020"
    assert text.day(date(2020, 5, 9)) == "9 May 2020"
    assert text.moment(datetime(2020, 5, 9, 23, 56)) == "9 May 2020 23:56"
    assert lasted(datetime(2020, 5, 9, 23, 56), datetime(2020, 5, 11, 0, 1)) == "24 h 5 min"
    assert lasted(datetime(2020, 5, 9), datetime(2020, 5, 10)) == "24 h"
    assert lasted(datetime(2020, 5, 9), datetime(2020, 5, 9, 0, 15)) == "15 min"
    assert wall_ms(datetime(1970, 1, 2)) == 86_400_000


def test_what_is_not_known_is_said() -> None:
    assert {text.money(None, "USD"), text.amount(None, "USD"), text.exact(None), text.gpu_hours(None)} == {"n/a"}
    assert {text.gpus(None), text.percent(None, 1), text.percent(1, 0), text.percent(1, None)} == {"n/a"}


@given(st.text(max_size=300))
def test_a_plain_name_is_one_bounded_code_span(name: str) -> None:
    made = text.plain(name)
    fence = made[: len(made) - len(made.lstrip("`"))]
    inside = made[len(fence) : -len(fence)]
    assert "\n" not in made
    assert len(inside) <= text.LABEL_LIMIT + 2
    assert fence not in inside or inside.strip() == ""
    assert made.endswith(fence)


@given(st.text(max_size=120))
def test_a_cell_cannot_become_markup(name: str) -> None:
    html = table_html([Column("Team")], [[name], [Link(name, "team", {"team": name})]], caption=name, footer=[name])
    assert html.count("<") == html.count(">")
    tags = {part.split(">")[0].split()[0] for part in html.split("<")[1:]}
    known = {"div", "table", "caption", "thead", "tr", "th", "small", "tbody", "td", "a", "tfoot"}
    assert {tag.lstrip("/") for tag in tags} <= known
    assert html.count('"') == table_html(
        [Column("T")], [["x"], [Link("x", "team", {})]], caption="x", footer=["x"]
    ).count('"')


@pytest.mark.parametrize("name", ["javascript:alert(1)", "//evil.test", "?team=other", "a b&c"])
def test_a_link_never_leaves_the_portal(name: str) -> None:
    assert Link(name, "team", {"team": name}).address.startswith("/team?team=")
