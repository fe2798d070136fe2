"""The serving page: its parts are the servers' cost, a team sees its own part, nothing unknown is shown as 0."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from app.access import LOCAL, Scope
from app.queries import Reports
from tests.app.drawing import charts, draw, markup, metrics, table_rows, well, words
from tests.app.tiny_lakes import DAY, empty_workspace, tiny_workspace

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = {
    "servers = []": 'servers = [{ name = "chat", match_namespace = "chat" }, { name = "code", match_workload = "c" }]'
}
PRICES = "model,input_per_million,cached_per_million,output_per_million,currency\n"
HOLDINGS = [
    {"team": "ml", "namespace": "chat", "gpus": "2"},
    {"team": "ml", "workload": "c", "gpus": "1"},
    {"team": "red", "gpus": "1"},
]
HOSTILE = ("<script>alert(1)</script>", "![x](http://evil.test/e.png)", "a' OR '1'='1", "=1+1", "a/b?c=d&e#f")


def used(tenant: str, hour: int, tokens: str, output: str = "0", server: str = "chat") -> dict[str, str]:
    time = f"{DAY}T{hour:02}:00:00Z"
    return {"server": server, "tenant": tenant, "hour_start": time, "input_tokens": tokens, "output_tokens": output}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of two model servers: `chat` holds 2 GPUs at 2 USD an hour, `code` 1, for tenants with odd names."""
    settings = SERVERS | {
        'api_prices = ""': 'api_prices = "api.csv"',
        'notice = ""': 'notice = "<b>beta</b> [a](http://evil.test)"',
    }
    tokens = [used("app-1", 0, "100"), used("red", 0, "100", "50"), used("app-2", 1, "", "")]
    tokens += [used(name, 0, "7", server="code") for name in HOSTILE]
    teams = [{"team": "apps", "match_user": "app-*"}]
    return tiny_workspace(
        tmp_path_factory.mktemp("small") / "ws", HOLDINGS, settings=settings, teams=teams, tokens=tokens
    )


def test_the_real_months_servers(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "serving")
    assert metrics(at) == {
        "Cost": ("98,703.36 USD", "2 model servers, 32,256.0 GPU-hours"),
        "Paid by tenants": ("57,251.53 USD", "58.0 %, by weighted tokens"),
        "Idle, paid by the owner": ("97.92 USD", "0.1 %, nobody asked"),
        "Unattributed": ("41,353.91 USD", "41.9 %, 895,313,529 requests without tokens"),
        "Tokens, million": ("241,455.1", "209,273.9 input, 32,181.2 output"),
    }
    rows = table_rows(at, "May 2020: tokens that were reported")
    assert rows[1][:3] == ["llm-large", "vc6YE", "147"]
    assert rows[1][6:] == ["65,802.24", "0.1936", "0.7035", "0.000286"]
    tenants = table_rows(at, "May 2020, most expensive first")
    assert tenants[1][:3] == ["m-large/client-61", "apps-b", "llm-large"]
    shown = sum(Decimal(row[6].replace(",", "")) for row in tenants[1:-1])
    assert abs(shown - Decimal("98703.36")) < Decimal("0.10")
    assert tenants[-1][6] == "98,703.36"
    assert "Demo: two real traces, composed" in markup(at)


def test_one_server_of_the_real_month(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "serving", {"server": "llm-small"})
    assert metrics(at)["Cost"] == ("32,901.12 USD", "1 model server, 10,752.0 GPU-hours")
    assert "m-large" not in words(at)
    bought = table_rows(at, "At the price list inputs/api_prices_example.csv")
    assert bought[1] == ["llm-small", "14,736.14", "97.92", "14,834.06", "16,495.20", "89.9 %", "18,067.06"]
    well(at.selectbox(key="pick_server").set_value("all model servers").run())
    assert metrics(at)["Cost"][0] == "98,703.36 USD"


@pytest.mark.parametrize("scope", [LOCAL, Scope("team", ("apps-c", "vcpDC"))])
def test_the_days_add_up_to_the_servers(demo_workspace: Path, scope: Scope) -> None:
    month = Reports(demo_workspace)
    (build,) = month.builds()
    days: dict[str, Decimal] = defaultdict(Decimal)
    for row in month.ask(scope, build, "server_day").to_pylist():
        days[row["server"]] += row["amount"]
    assert days == {row["server"]: row["amount"] for row in month.ask(scope, build, "server_total").to_pylist()}


@pytest.mark.parametrize("server", ["no such server", "'; DROP TABLE lake.token_cost; --", "\u202eevil"])
def test_a_server_that_does_not_exist_is_a_remark(demo_workspace: Path, server: str) -> None:
    at = draw(demo_workspace, "serving", {"server": server})
    assert metrics(at)["Cost"][0] == "98,703.36 USD"
    assert len(at.warning) == 1


def test_a_tenants_team_sees_its_part_only(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "serving", scope=Scope("team", ("apps-c",)))
    assert metrics(at)["Cost to your teams"][0] == metrics(at)["Paid by tenants"][0] == "15,007.24 USD"
    assert "Unattributed" not in metrics(at)
    said = words(at) + "".join(charts(at))
    for hidden in (
        "98,703.36",
        "65,802.24",
        "41,353.91",
        "apps-b",
        "vc6YE",
        "client-61",
        "requests whose tokens were not reported",
    ):
        assert hidden not in said
    assert {row[1] for row in table_rows(at, "May 2020, most expensive first")[1:-1]} == {"apps-c", ""}


def test_an_owner_sees_its_idle_hours_only(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "serving", scope=Scope("team", ("vcpDC",)))
    assert metrics(at)["Cost to your teams"] == ("97.92 USD", "1 model server, 32.0 GPU-hours")
    assert table_rows(at, "May 2020, most expensive first")[1][0] == "hours in which nobody asked for anything"


def test_a_team_without_a_part(demo_workspace: Path) -> None:
    said = words(draw(demo_workspace, "serving", scope=Scope("team", ("vcJkd",))))
    assert "No shared model server cost you anything in May 2020" in said


def test_the_team_page_of_a_tenant_and_of_an_owner(demo_workspace: Path) -> None:
    day = {"team": "apps-c", "day": "2020-05-20", "category": "serving"}
    at = draw(demo_workspace, "team", day)
    assert metrics(at)["Model serving"][0] == "15,007.24 USD"
    rows = table_rows(at, "May 2020: what tenants of this team used")
    assert [row[0] for row in rows[1:]] == ["llm-large"]
    hours = table_rows(at, "Each hour")
    assert {row[1] for row in hours[1:-1]} == {"server:llm-large"}
    assert "divided hour by hour by policy ` tokens `" in words(at)
    for row in hours[1:-1]:
        paid, share = Decimal(row[2]), Decimal(row[5])
        assert paid * share / 100 == pytest.approx(Decimal(row[6]), abs=Decimal("0.0002"))
    owner = words(draw(demo_workspace, "team", {"team": "vc6YE"}))
    assert "llm-large held 21,504.0 GPU-hours of this team's GPUs" in owner
    idle = {"team": "vcpDC", "day": "2020-05-28", "category": "held_idle"}
    assert "nobody asked the model server for anything" in words(draw(demo_workspace, "team", idle))
    central = metrics(draw(demo_workspace, "team", {"team": "platform"}))
    assert central["Shares of common cost"] == ("41,353.91 USD", "100.0 % of the total")


def test_a_small_day_by_hand(small: Path) -> None:
    """4 USD an hour for `chat`: the first hour 1:3 to two teams, the second to nobody known, 22 hours idle."""
    at = draw(small, "serving", {"server": "chat"})
    assert metrics(at)["Cost"][0] == "96.00 USD"
    assert metrics(at)["Paid by tenants"][0] == "4.00 USD"
    assert metrics(at)["Idle, paid by the owner"][0] == "88.00 USD"
    assert metrics(at)["Unattributed"] == ("4.00 USD", "4.2 %, 1 request without tokens")
    rows = table_rows(at, "February 2026, most expensive first")
    assert [row[:2] + row[5:6] for row in rows[1:]] == [
        ["red", "red", "3.00"],
        ["app-1", "apps", "1.00"],
        ["hours in which nobody asked for anything", "ml", "88.00"],
        ["requests whose tokens were not reported", "unattributed", "0.00"],
        ["hours of which no tokens are known", "unattributed", "4.00"],
        ["2 tenants", "", "96.00"],
    ]
    assert rows[2][2:5] == ["0.0001", "0.0", "1"]
    assert rows[2][6:] == ["10,000.0000", "n/a"]


def test_no_server_is_configured(tmp_path: Path) -> None:
    said = words(draw(tiny_workspace(tmp_path, [{"team": "red"}]), "serving"))
    assert "No shared model server cost you anything" in said
    assert "gputally load tokens FILE" in said


def test_an_empty_lake(tmp_path: Path) -> None:
    assert "Nothing has been loaded yet" in words(draw(empty_workspace(tmp_path), "serving"))


def test_hostile_tenants_stay_text(small: Path) -> None:
    at = draw(small, "serving")
    assert {row[0] for row in table_rows(at, "February 2026, most expensive first")} >= set(HOSTILE)
    assert "<script" not in markup(at)
    assert "evil.test" not in "".join(element.value for element in at.markdown)


def test_the_price_list_is_read_again_when_it_changes(small: Path) -> None:
    asked, prices = {"server": "chat"}, small / "api.csv"
    missing = draw(small, "serving", asked)
    assert "there is no file 'api.csv'" in missing.warning[0].value
    assert "Self-host or buy" not in [each.value for each in missing.subheader]
    prices.write_text(PRICES + "m,80000,,100000,USD\n", "utf-8")
    # 200 tokens of input and 50 of output: 16 + 5 at the API, 4 and 88 idle here.
    row = table_rows(draw(small, "serving", asked), "At the price")[1]
    assert row == ["chat", "4.00", "88.00", "92.00", "21.00", "438.1 %", "4.00"]
    prices.write_text(PRICES + "other,8,,1,USD\n", "utf-8")
    assert table_rows(draw(small, "serving", asked), "At the price")[1][4:6] == ["n/a", "n/a"]
    prices.write_text(PRICES + "m,x,,1,USD\n", "utf-8")
    broken = draw(small, "serving", asked)
    assert "cannot be read" in broken.warning[0].value
    assert metrics(broken)["Paid by tenants"][0] == "4.00 USD"


def test_the_notice_of_the_configuration_is_on_every_page_as_text(small: Path) -> None:
    for view in ("spend", "team", "fleet", "serving"):
        assert "&lt;b&gt;beta&lt;/b&gt; [a](http://evil.test)" in markup(draw(small, view))
