"""The table of fault codes: what each is judged to be, and what a text adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.faults.xid import PAGING_XIDS, UNKNOWN, fault
from collectors.faults.xid_table import ALWAYS_FATAL_SXIDS, BY_TEXT, FATAL_SXIDS, NONFATAL_SXIDS, XIDS
from collectors.samples import CodeSpace, Severity

if TYPE_CHECKING:
    from collectors.faults.xid import Fault

CLASSES = {"application", "reset", "reboot", "hardware", "link", "notice", "test", "unknown"}


def judged(found: Fault) -> tuple[str, str]:
    return found.severity, found.fault_class


@pytest.mark.parametrize(
    ("codes", "severity", "fault_class"),
    [
        ((13, 31, 11, 25, 32, 69, 80, 43), "info", "application"),
        ((8, 39, 40, 41, 70, 77, 85, 126, 135, 60, 68, 82, 96, 105, 139, 142, 94), "warn", "application"),
        ((46, 48, 61, 62, 64, 95, 110, 119, 120, 140, 143, 158, 169, 171, 172), "critical", "reset"),
        ((79, 151, 167), "critical", "reboot"),
        ((74, 136, 155, 166, 170), "critical", "link"),
        ((54, 157), "critical", "hardware"),
        ((92, 161, 165, 168), "warn", "hardware"),
        ((37, 38, 44, 45, 66, 67, 93, 141), "info", "notice"),
        ((63, 78, 121, 160, 162, 163, 164), "warn", "notice"),
        ((109, 156), "warn", "reset"),
        ((106, 107), "info", "test"),
        ((137, *range(144, 151)), "warn", "link"),
        ((0, 1, 999, 65_535), "warn", "unknown"),
    ],
)
def test_xids(codes: tuple[int, ...], severity: str, fault_class: str) -> None:
    assert {judged(fault("xid", code)) for code in codes} == {(severity, fault_class)}


def test_no_code_is_listed_twice() -> None:
    codes = [code for codes, *_ in XIDS for code in codes]
    assert len(codes) == len(set(codes))
    assert not NONFATAL_SXIDS & FATAL_SXIDS
    assert not ALWAYS_FATAL_SXIDS & (FATAL_SXIDS | NONFATAL_SXIDS)


def test_every_fault_says_what_to_do() -> None:
    for codes, *_ in XIDS:
        found = fault("xid", codes[0])
        assert found.meaning
        assert found.action
        assert found.fault_class in CLASSES


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x00000001)", "critical"),
        ("NETIR_LINK_EVT Nonfatal XC0 i0 Link 08", "warn"),
        ("NETIR_LINK_EVT Non-fatal XC0 i0 Link 08", "warn"),
        ("NETIR_LINK_EVT XC0", "warn"),
        ("Fatality", "warn"),
    ],
)
def test_the_units_of_nvlink_5_say_in_words_how_severe_it_is(text: str, severity: str) -> None:
    assert judged(fault("xid", 149, text)) == (severity, "link")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", ("critical", "reset")),
        ("GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", ("critical", "reboot")),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", ("critical", "reset")),
        ("GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)", ("warn", "notice")),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", ("info", "notice")),
        ("", ("warn", "notice")),
    ],
)
def test_xid_154_is_as_severe_as_what_the_driver_asks_for(text: str, expected: tuple[str, str]) -> None:
    assert judged(fault("xid", 154, text)) == expected


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (20034, "Fatal, Link 30 LTSSM Fault Up", ("critical", "link")),
        (20034, "Non-fatal, Link 30 LTSSM Fault Up", ("warn", "link")),
        (12028, "Non-fatal, Link 32 egress non-posted PRIV error", ("warn", "link")),
        (12028, "Fatal, Link 32", ("critical", "link")),
        (12028, None, ("warn", "link")),
        (23017, "Fatal, Link 1", ("critical", "reboot")),
        (10001, None, ("critical", "reboot")),
        (14017, None, ("critical", "link")),
        (99999, None, ("warn", "unknown")),
        (99999, "Fatal, what nobody heard of", ("critical", "link")),
        (99999, "Non-fatal, what nobody heard of", ("warn", "link")),
    ],
)
def test_of_an_sxid_the_word_comes_first(code: int, text: str | None, expected: tuple[str, str]) -> None:
    assert judged(fault("sxid", code, text)) == expected


def test_what_pages_is_what_is_or_may_be_critical() -> None:
    critical = {code for codes, severity, *_ in XIDS for code in codes if severity == "critical"}
    assert set(PAGING_XIDS) == critical | set(BY_TEXT)
    assert list(PAGING_XIDS) == sorted(PAGING_XIDS)
    assert {79, 48, 95, 119, 149, 154} <= set(PAGING_XIDS)
    assert not {13, 31, 43, 45, 63, 94} & set(PAGING_XIDS)


@given(st.sampled_from(get_args(CodeSpace)), st.integers(), st.text(max_size=300))
def test_any_code_is_judged(space: CodeSpace, code: int, text: str) -> None:
    found = fault(space, code, text)
    assert found.severity in get_args(Severity)
    assert found.fault_class in CLASSES
    if space in {"afid", "hlml", "neuron"}:
        assert found is UNKNOWN
