"""Xids on a page: a gauge that is sticky, absent at times, and no record."""

from __future__ import annotations

from collectors.faults.page_xids import PageXids
from collectors.samples import DeviceSample


def codes(xids: PageXids, *shown: tuple[str, tuple[int, ...] | None]) -> list[tuple[str | None, int]]:
    samples = [DeviceSample("gpu", uuid, xid_codes=known) for uuid, known in shown]
    return [(event.uuid, event.code) for event in xids.news(samples)]


def test_dcgm_exporter_500_646_a_code_is_news_once() -> None:
    xids = PageXids()
    assert codes(xids, ("GPU-a", (31,)), ("GPU-b", None)) == [], "old, for all we know"
    assert codes(xids, ("GPU-a", (31,)), ("GPU-b", (79,))) == [("GPU-b", 79)]
    assert codes(xids, ("GPU-a", (31, 48)), ("GPU-b", None)) == [("GPU-a", 48)]
    assert codes(xids, ("GPU-a", (13,)), ("GPU-b", (79,))) == [("GPU-a", 13)], "absent was not the end of it"
    assert codes(xids, ("GPU-a", ()), ("GPU-b", ())) == []
    assert codes(xids, ("GPU-a", (13,))) == [("GPU-a", 13)]


def test_made_up_names_do_not_fill_the_memory() -> None:
    xids = PageXids()
    for start in (0, 1000, 2000):
        codes(xids, *((f"GPU-{start + n}", ()) for n in range(1000)))
    assert codes(xids, ("GPU-5", (13,)), ("GPU-2999", (13,)), ("GPU-2999", (14,))) == [("GPU-5", 13)]
