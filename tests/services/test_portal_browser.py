"""The portal in a real browser: exact totals, no error, nothing fetched from elsewhere, pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import sync_playwright

from chargeback.finance_csv import csv_bytes
from fleet.config import load_config
from store.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PAGES = {
    "spend": (
        "/",
        ["1,948,803.84 USD", "1,201,198.77 USD", "57,251.53 USD", "648,999.63 USD", "45,472.7", "548,127.32", "469.06"],
    ),
    "team": (
        "/team?period=2020-05&team=vc6YE&day=2020-05-09&category=idle",
        [
            "548,127.32 USD",
            "361,629.93 USD",
            "186,497.39 USD",
            "1,258,450.30",
            "pool:earth-v100/idle",
            "llm-large held",
        ],
    ),
    "serving": (
        "/serving?period=2020-05&server=llm-small",
        ["32,901.12 USD", "14,736.14 USD", "97.92 USD", "18,067.06 USD", "0.1322", "0.5505", "89.9 %", "vcpDC"],
    ),
    "fleet": (
        "/fleet",
        [
            "636,864.0",
            "424,772.6",
            "212,091.4",
            "45,671.6",
            "45,472.7",
            "9 May 2020 23:56",
            "12 May 2020 16:02",
            "856 GPUs",
        ],
    ),
}
SCREENS = [("light", 1280, 900), ("dark", 1280, 900), ("light", 390, 844), ("dark", 390, 844)]
PAINTED = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    return app !== null && app.getAttribute('data-test-script-state') === 'notRunning'
        && document.querySelector('[data-testid="stMetric"]') !== null
        && document.querySelector('[data-testid="stVegaLiteChart"] :is(canvas, svg)') !== null
        && document.querySelector('[data-testid="stSkeleton"]') === null;
}"""
HEIGHT = "() => document.querySelector('[data-testid=stMainBlockContainer]').scrollHeight"
TOO_WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
KNOWN = "404 (Not Found)"
"""Streamlit looks for its own endpoints below a sub-page first, then finds them one level up: two lines a deep link."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser(chromium_bin: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(chromium_bin), args=["--no-sandbox"])
        yield opened
        opened.close()


def opened(page: Page, address: str) -> tuple[list[str], list[str]]:
    """Open a page and wait until it is painted; return its console errors and what it asked of other servers."""
    errors: list[str] = []
    strangers: list[str] = []
    home = address.split("/", 3)[2]
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: strangers.append(request.url) if _is_elsewhere(request.url, home) else None)
    page.goto(address)
    painted(page)
    return errors, strangers


def painted(page: Page) -> None:
    page.wait_for_function(PAINTED, timeout=60_000)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def _is_elsewhere(url: str, home: str) -> bool:
    return url.split(":")[0] in ("http", "https", "ws", "wss") and url.split("/", 3)[2] != home


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_complete_and_quiet(browser: Browser, portal_address: str, tmp_path: Path, name: str) -> None:
    path, figures = PAGES[name]
    shots = Path(os.environ.get("GPUTALLY_SHOTS") or tmp_path)
    shots.mkdir(parents=True, exist_ok=True)
    for scheme, width, height in SCREENS:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            timezone_id="America/Los_Angeles",
            is_mobile=width < 500,
            has_touch=width < 500,
        )
        page = context.new_page()
        errors, strangers = opened(page, portal_address + path)
        said = page.locator("[data-testid=stMainBlockContainer]").inner_text()
        assert [figure for figure in figures if figure not in said] == []
        assert [line for line in errors if KNOWN not in line] == []
        assert len(errors) <= (0 if path == "/" else 2)
        assert strangers == []
        assert page.get_by_text("Page not found").count() == 0
        assert page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0
        assert not page.evaluate(TOO_WIDE)
        page.set_viewport_size({"width": width, "height": min(page.evaluate(HEIGHT) + 60, 6000)})
        page.wait_for_timeout(500)
        page.screenshot(path=shots / f"{name}-{scheme}-{width}.png")
        context.close()


def test_from_the_invoice_to_a_day_by_clicking(browser: Browser, portal_address: str) -> None:
    page = browser.new_page()
    opened(page, portal_address)
    page.get_by_role("link", name="vc6YE").click()
    page.get_by_text("548,127.32 USD").first.wait_for()
    painted(page)
    page.wait_for_timeout(500)
    page.get_by_role("combobox", name="Day").click()
    page.keyboard.type("10 May")
    page.get_by_role("option", name="Sunday, 10 May 2020").click()
    page.get_by_text("2020-05-10").first.wait_for()
    painted(page)
    assert "day=2020-05-10" in page.url
    page.get_by_role("link", name="Fleet").first.click()
    page.get_by_text("Stop: no GPU of the pool was held").first.wait_for()
    page.close()


def test_the_download_is_the_finance_csv(browser: Browser, portal_address: str, demo_workspace: Path) -> None:
    page = browser.new_page()
    opened(page, portal_address)
    address = page.get_by_role("link", name="Download the finance CSV of May 2020").get_attribute("href")
    page.close()
    config = load_config(demo_workspace)
    with Lake.open(demo_workspace / config.lake.catalog, demo_workspace / config.lake.data, read_only=True) as lake:
        assert httpx.get(portal_address + str(address)).content == csv_bytes(lake.connection, "2020-05")
