"""Periods, months, local days and strict times, on the days when clocks change."""

from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.period import Period, local_day_of, local_days, month, parse_time, period_name, zone_named

ZONES = (
    "UTC", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "America/New_York", "Europe/Berlin",
    "America/Sao_Paulo", "America/Havana", "America/St_Johns", "Pacific/Apia", "Pacific/Chatham",
    "Asia/Beirut", "America/Nuuk", "Africa/Casablanca", "Asia/Pyongyang", "Antarctica/Casey",
)  # fmt: skip
NAIVE = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)


def at(*parts):
    return datetime(*parts, tzinfo=UTC)


def test_half_open():
    period = Period(at(2026, 10, 1), at(2026, 10, 2))
    assert period.seconds == 86_400
    assert period.contains(period.start)
    assert not period.contains(period.end)
    assert period.contains(period.end - timedelta(seconds=1))


def test_overlap():
    day = Period(at(2026, 10, 1), at(2026, 10, 2))
    assert day.overlap(Period(at(2026, 10, 1, 12), at(2026, 10, 3))) == Period(at(2026, 10, 1, 12), at(2026, 10, 2))
    assert day.overlap(Period(at(2026, 10, 2), at(2026, 10, 3))) is None
    assert day.overlap(day) == day


def test_hours_cover_a_ragged_period():
    period = Period(at(2026, 10, 1, 22, 30), at(2026, 10, 2, 0, 0, 1))
    assert list(period.hours()) == [at(2026, 10, 1, 22), at(2026, 10, 1, 23), at(2026, 10, 2)]
    assert len(list(month("2026-10").hours())) == 744


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (NAIVE, at(2026, 1, 2), "UTC"),
        (at(2026, 1, 1), datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1))), "UTC"),
        (at(2026, 1, 1), at(2026, 1, 1), "end after it starts"),
        (at(2026, 1, 2), at(2026, 1, 1), "end after it starts"),
        (at(2026, 1, 1, 0, 0, 0, 5), at(2026, 1, 2), "whole seconds"),
    ],
)
def test_what_is_no_period_is_refused(start, end, reason):
    with pytest.raises(ValueError, match=reason):
        Period(start, end)


@pytest.mark.parametrize(("text", "days"), [("2026-10", 31), ("2026-12", 31), ("2024-02", 29), ("2026-02", 28)])
def test_months(text, days):
    period = month(text)
    assert period.seconds == days * 86_400
    assert period_name(period) == text


@pytest.mark.parametrize(
    "text",
    ["2026-13", "2026-00", "2026-1", "26-10", "2026/10", "2026-10-01", "1969-12", "", " 2026-10", "2026-10\n",
     "\uff12\uff10\uff12\uff16-10", "9999-12"],
)  # fmt: skip
def test_what_is_no_month_is_refused(text):
    with pytest.raises(ValueError, match="not a month"):
        month(text)


@pytest.mark.parametrize(
    ("start", "end"),
    [(at(2026, 10, 1), at(2026, 10, 31)), (at(2026, 10, 2), at(2026, 11, 1)),
     (at(2026, 10, 1, 1), at(2026, 11, 1)), (at(2026, 10, 1), at(2026, 12, 1)),
     (at(2026, 10, 1, 0, 0, 1), at(2026, 11, 1))],
)  # fmt: skip
def test_only_whole_months_have_a_name(start, end):
    with pytest.raises(ValueError, match="not a whole UTC month"):
        period_name(Period(start, end))


@given(
    st.sampled_from(ZONES),
    st.integers(0, 40 * 365 * 86_400),
    st.integers(1, 40 * 86_400),
)
@settings(max_examples=150, deadline=None)
def test_local_days_cover_exactly_what_they_are_given(zone, start, seconds):
    begin = at(1990, 1, 1) + timedelta(seconds=start)
    period = Period(begin, begin + timedelta(seconds=seconds))
    days = local_days(period, zone)
    assert days[0].start == period.start
    assert days[-1].end == period.end
    assert all(one.end == two.start and one.day < two.day for one, two in pairwise(days))
    assert sum(day.seconds for day in days) == period.seconds


@given(st.sampled_from([z for z in ZONES if z != "America/St_Johns"]), st.integers(0, 40 * 365 * 24))
@settings(max_examples=100, deadline=None)
def test_each_moment_of_a_local_day_has_its_date(zone, hour):
    # St. John's set its clocks back over midnight until 2011: an hour there has yesterday's date again.
    start = at(1990, 1, 1) + timedelta(hours=hour)
    for day in local_days(Period(start, start + timedelta(days=2)), zone):
        for moment in (day.start, day.start + (day.end - day.start) / 2, day.end - timedelta(seconds=1)):
            assert moment.astimezone(ZoneInfo(zone)).date() == day.day


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("America/New_York", date(2026, 3, 8), 23),
        ("America/New_York", date(2026, 11, 1), 25),
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("Australia/Lord_Howe", date(2026, 10, 4), 23.5),
        ("America/Sao_Paulo", date(2018, 11, 4), 23),
        ("America/Sao_Paulo", date(2018, 2, 17), 25),
        ("America/Havana", date(2024, 11, 3), 25),
        ("Asia/Kathmandu", date(2026, 10, 10), 24),
    ],
)
def test_days_on_which_the_clocks_change(zone, day, hours):
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    period = Period(noon - timedelta(days=3), noon + timedelta(days=3))
    assert {d.day: d.seconds / 3600 for d in local_days(period, zone)}[day] == hours


def test_half_hour_zones_begin_their_day_inside_an_hour():
    days = local_days(Period(at(2026, 10, 1), at(2026, 10, 2)), "Asia/Kolkata")
    assert [(d.day.day, d.seconds) for d in days] == [(1, 18.5 * 3600), (2, 5.5 * 3600)]
    assert days[1].start == at(2026, 10, 1, 18, 30)


def test_a_skipped_date_has_no_day():
    days = local_days(Period(at(2011, 12, 29), at(2012, 1, 2)), "Pacific/Apia")
    assert date(2011, 12, 30) not in [d.day for d in days]
    assert date(2011, 12, 31) in [d.day for d in days]


@pytest.mark.parametrize(
    ("zone", "start", "end"),
    [
        # Ends in the hour before midnight that St. John's had a second time, after Sunday had begun.
        ("America/St_Johns", at(2010, 11, 6), at(2010, 11, 7, 3)),
        # Starts on a date whose midnight Toronto's clocks jumped over, before that midnight's instant.
        ("America/Toronto", at(1919, 3, 31, 4, 40), at(1919, 4, 2)),
    ],
)
def test_clocks_that_change_across_midnight_lose_no_second(zone, start, end):
    assert sum(day.seconds for day in local_days(Period(start, end), zone)) == Period(start, end).seconds


def test_an_hour_is_shown_under_the_day_it_starts_in():
    assert local_day_of(at(2026, 10, 1, 18), "Asia/Kolkata") == date(2026, 10, 1)
    assert local_day_of(at(2026, 10, 1, 19), "Asia/Kolkata") == date(2026, 10, 2)
    assert local_day_of(at(2026, 10, 1, 18, 30), "Asia/Kolkata") == date(2026, 10, 2)
    with pytest.raises(ValueError, match="no time zone"):
        local_day_of(NAIVE, "UTC")


@pytest.mark.parametrize(
    "zone", ["Mars/Base", "", "../etc/passwd", "/etc/passwd", "America", "a\0b", "localtime", "x" * 5000]
)
def test_what_is_no_zone_is_refused(zone):
    with pytest.raises(ValueError, match="is not a time zone"):
        zone_named(zone)
    with pytest.raises(ValueError, match="is not a time zone"):
        local_days(month("2026-10"), zone)


@pytest.mark.parametrize(
    ("text", "zone", "time"),
    [
        ("2026-10-01T00:00:00Z", None, at(2026, 10, 1)),
        ("2026-10-01t00:00:00z", None, at(2026, 10, 1)),
        ("2026-10-01 02:00:00+02:00", None, at(2026, 10, 1)),
        ("2026-10-01T05:45:00.123456789+05:45", None, at(2026, 10, 1, 0, 0, 0, 123456)),
        ("2026-10-01T00:00:00.5-00:00", None, at(2026, 10, 1, 0, 0, 0, 500000)),
        ("2026-07-01T00:00:00", "Europe/Berlin", at(2026, 6, 30, 22)),
        ("2026-07-01T00:00:00Z", "Europe/Berlin", at(2026, 7, 1)),
        ("2026-03-08T03:00:00", "America/New_York", at(2026, 3, 8, 7)),
    ],
)
def test_times_become_utc(text, zone, time):
    parsed = parse_time(text, zone=zone)
    assert parsed == time
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "zone", "reason"),
    [
        ("2026-10-01T00:00:00", None, "has no time zone"),
        (
            "2026-03-08T02:30:00",
            "America/New_York",
            "does not exist in America/New_York: the clocks skipped it",
        ),
        ("2026-11-01T01:30:00", "America/New_York", "is ambiguous in America/New_York"),
        ("2026-02-30T00:00:00Z", None, "does not exist"),
        ("2026-10-01T24:00:00Z", None, "does not exist"),
        ("2026-10-01T23:59:60Z", None, "does not exist"),
        ("2026-10-01T30:00:00Z", None, "does not exist"),
        ("2026-10-01", None, "is not a time"),
        ("2026-10-01T00:00Z", None, "is not a time"),
        ("2026-10-01T00:00:00+24:00", None, "is not a time"),
        ("1 Oct 2026", None, "is not a time"),
        ("\uff12026-10-01T00:00:00Z", None, "is not a time"),
        ("2026-10-01T00:00:00Z\n", None, "is not a time"),
        ("0001-01-01T00:00:00+14:00", None, "is out of range"),
        ("2026-10-01T00:00:00", "Mars/Base", "is not a time zone"),
    ],
)
def test_other_times_are_refused(text, zone, reason):
    with pytest.raises(ValueError, match=reason):
        parse_time(text, zone=zone)
