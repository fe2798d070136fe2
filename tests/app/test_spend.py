"""The spend page: the real month to the cent, and the months in which something is missing or hostile."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from streamlit.testing.v1 import AppTest

from app.access import Scope
from fleet.errors import LakeBusyError
from tests.app.drawing import charts, draw, markup, metrics, table_rows, well, words
from tests.app.tiny_lakes import PERIOD, empty_workspace, tiny_workspace

if TYPE_CHECKING:
    from pathlib import Path


def test_the_real_month_to_the_cent(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "spend")
    assert metrics(at) == {
        "Invoice": ("1,948,803.84 USD", "reconciled, difference 0.00"),
        "Statements": ("1,948,803.84 USD", "20 teams"),
        "Held by teams": ("1,201,198.77 USD", "61.6 %, 392,548.6 GPU-hours"),
        "Model serving": ("57,251.53 USD", "2.9 %, 18,709.7 GPU-hours"),
        "Held by nobody (idle)": ("648,999.63 USD", "33.3 %, 212,091.4 GPU-hours"),
        "Other shared costs": ("41,353.91 USD", "2.1 %, named below"),
        "Queued while idle, GPU-hours": ("45,472.7", "of 45,671.6 GPU-hours queued"),
    }
    rows = table_rows(at, "May 2020: cost by team")
    first = ["vc6YE", "CC-1020", "118,179.7", "361,629.93", "0.00", "186,497.39", "0.00", "548,127.32", "28.1 %"]
    assert rows[1] == first
    assert rows[20][0::7] == ["vcJkd", "469.06"]
    assert rows[-1] == [
        "20 teams", "", "392,548.6", "1,201,198.77", "57,251.53", "648,999.63", "41,353.91", "1,948,803.84", "100.0 %",
    ]  # fmt: skip


def test_the_bridge_ends_at_the_invoice(demo_workspace: Path) -> None:
    rows = table_rows(draw(demo_workspace, "spend"), "Issuer ")
    assert [amount for _, amount in rows[1:]] == ["1,948,803.84", "0.00", "0.00", "0.00", "0.00", "1,948,803.84"]
    assert rows[-1][0] == "Invoice total"


def test_what_happened_is_mentioned_and_named(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "spend")
    assert "2 stretches in which no GPU of a pool was held and 1 disagreement between quota files" in words(at)
    assert "change nobody's share" in words(at)
    gaps = table_rows(at, "Counted and named")
    assert gaps[1][:2] == ["quota conflict", "17 teams whose quota differs from quotas.csv, which decides"]
    assert gaps[2][0::3] == ["tokens unreported", "20"]
    assert "Activity was not measured" in words(at)
    for meaning in ("Model serving: what tenants used", "Unattributed: cost that no team answers for"):
        assert meaning in words(at)


def test_every_team_links_to_its_statement(demo_workspace: Path) -> None:
    assert f'href="/team?period={"2020-05"}&amp;team=vc6YE"' in markup(draw(demo_workspace, "spend"))


def test_nothing_loaded(tmp_path: Path) -> None:
    said = words(draw(empty_workspace(tmp_path), "spend"))
    assert "Nothing has been loaded yet" in said
    assert "gputally load" in said


def test_no_lake_at_all(tmp_path: Path) -> None:
    workspace = empty_workspace(tmp_path)
    (workspace / "lake" / "catalog.sqlite").unlink()
    assert "Nothing has been loaded yet" in words(draw(workspace, "spend"))


def test_loaded_and_not_built(tmp_path: Path) -> None:
    said = words(draw(tiny_workspace(tmp_path, [], build=False), "spend"))
    assert "No month has been published yet" in said
    assert "gputally build" in said


def test_a_month_that_is_not_published(tmp_path: Path) -> None:
    at = draw(tiny_workspace(tmp_path, [{"team": "red"}]), "spend", {"period": "2031-07"})
    assert "July 2031 has not been published" in words(at)
    assert "gputally build 2031-07" in words(at)
    assert at.title[0].value == "Spend, February 2026"


def test_one_team(tmp_path: Path) -> None:
    at = draw(tiny_workspace(tmp_path, [{"team": "red", "gpus": "4"}]), "spend")
    assert metrics(at)["Statements"] == ("192.00 USD", "1 team")
    assert metrics(at)["Held by nobody (idle)"] == ("0.00 USD", "0.0 %, 0.0 GPU-hours")
    assert metrics(at)["Queued while idle, GPU-hours"] == ("n/a", "no demand is loaded")


def test_an_unmapped_owner_is_counted_and_named(tmp_path: Path) -> None:
    at = draw(tiny_workspace(tmp_path, [{"team": "red"}, {"team": "", "namespace": "lost"}]), "spend")
    assert metrics(at)["Other shared costs"] == ("48.00 USD", "25.0 %, named below")
    assert table_rows(at, "Counted and named")[1][0::2] == ["unmapped owner", "lost//", "24.0"]
    assert table_rows(at, "February 2026: cost by team")[-1][-2:] == ["192.00", "100.0 %"]


HOSTILE = (
    "<script>alert(1)</script>",
    "![x](http://evil.test/e.png)",
    "[a](http://evil.test)",
    '"><img src=x onerror=alert(1)>',
    "=1+1",
    "a/b?c=d&e#f",
    "a' OR '1'='1",
    "`x` $y$ :red[z]",
)


@pytest.mark.parametrize("view", ["spend", "team", "fleet"])
def test_hostile_names_stay_text(tmp_path: Path, view: str) -> None:
    holdings = [{"team": name, "gpus": "0.1"} for name in HOSTILE]
    at = draw(tiny_workspace(tmp_path, holdings), view, {"team": HOSTILE[0]})
    said = markup(at)
    assert "<script" not in said
    assert "<img" not in said
    assert "evil.test" not in "".join(element.value for element in at.markdown)
    if view != "team":
        shown = {row[0] for row in table_rows(at, "February 2026")}
        assert shown >= set(HOSTILE)
    assert len(charts(at)) >= 1


def test_a_hostile_team_can_be_opened(tmp_path: Path) -> None:
    workspace = tiny_workspace(tmp_path, [{"team": name, "gpus": "0.1"} for name in HOSTILE])
    for name in HOSTILE:
        at = draw(workspace, "team", {"period": PERIOD, "team": name})
        assert at.selectbox(key="pick_team").value == name
        assert not at.warning


def test_a_team_sees_its_own_row_and_no_invoice(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "spend", scope=Scope("team", ("vcJkd",)))
    assert "Invoice" not in metrics(at)
    assert metrics(at)["Statements"] == ("469.06 USD", "1 team")
    assert "1,948,803.84" not in words(at)
    assert "vc6YE" not in words(at) + "".join(charts(at))
    assert at.get("link_button") == []


def test_a_team_without_a_line(demo_workspace: Path) -> None:
    said = words(draw(demo_workspace, "spend", scope=Scope("team", ("nobody",))))
    assert "Nothing was charged in May 2020" in said


def test_a_lake_that_was_made_anew_is_read_anew(tmp_path: Path) -> None:
    workspace = tiny_workspace(tmp_path, [{"team": "red", "gpus": "4"}])
    assert metrics(draw(workspace, "spend"))["Statements"] == ("192.00 USD", "1 team")
    shutil.rmtree(workspace / "lake")
    assert "Nothing has been loaded yet" in words(draw(workspace, "spend"))
    tiny_workspace(tmp_path, [{"team": "red"}, {"team": "blue"}])
    assert metrics(draw(workspace, "spend"))["Statements"] == ("192.00 USD", "2 teams")


def test_a_new_build_is_shown_at_once(tmp_path: Path) -> None:
    workspace = tiny_workspace(tmp_path, [{"team": "red"}])
    assert "version 1" in words(draw(workspace, "spend"))
    tiny_workspace(tmp_path, [{"team": "red"}], teams=[{"team": "red", "cost_centre": "CC-9"}])
    at = draw(workspace, "spend")
    assert "version 2" in words(at)
    assert table_rows(at, "February 2026: cost by team")[1][:2] == ["red", "CC-9"]


def test_a_lake_that_cannot_be_read_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy() -> None:
        raise LakeBusyError("the lake stayed busy <b>for</b> 8 attempts")

    monkeypatch.setattr("app.main.open_reports", busy)
    at = draw(tmp_path, "spend")
    assert at.subheader[0].value == "The month cannot be read just now"
    assert at.markdown[0].value == "` the lake stayed busy <b>for</b> 8 attempts `"


def test_what_a_role_may_not_ask_is_an_empty_page(tmp_path: Path) -> None:
    workspace = tiny_workspace(tmp_path, [{"team": "red"}])
    script = 'from app.main import show\nfrom app.access import Scope\nask = lambda page: page.ask("gap_reason")\n'
    at = AppTest.from_string(script + 'show("Gaps", ask, Scope("team", ("red",)))', default_timeout=60)
    at.secrets["portal"] = {"workspace": str(workspace), "export_key": ""}
    well(at.run())
    assert at.subheader[0].value == "You may not see this"
