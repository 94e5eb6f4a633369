"""Cron slots against a second reading of the rule: every minute of three years, in zones that change their clocks
differently."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from numpy.typing import NDArray

from backend.core import cron
from backend.core.errors import ValidationError

# 2023-2025: a 29 February, and each zone's gaps and folds (Lord Howe's are of 30 minutes, Kathmandu has none).
START, N_DAYS = datetime(2023, 1, 1, tzinfo=UTC), 3 * 365 + 1
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
Numbers = NDArray[np.int64]


def local_minutes(zone: str) -> Numbers:
    """What the local clock shows in each minute of UTC, in minutes since 1970."""
    info, first = ZoneInfo(zone), int(START.timestamp())
    # Clocks are changed on whole quarters of an hour.
    quarters = range(first, first + N_DAYS * 86_400, 900)
    offsets = [datetime.fromtimestamp(second, info).utcoffset() or timedelta() for second in quarters]
    shifts = np.repeat([int(offset.total_seconds()) // 60 for offset in offsets], 15)
    local: Numbers = np.arange(first // 60, first // 60 + len(shifts), dtype=np.int64) + shifts
    return local


def matches(minutes: Numbers, *, minute: int, hour: int | None, day: int | None, month: int | None) -> Numbers:
    """1 for each local minute that fits."""
    fits = np.zeros(len(minutes), dtype=np.int64)
    at = np.flatnonzero(minutes % 60 == minute)
    some = minutes[at]
    times = some.astype("datetime64[m]")
    days, months = times.astype("datetime64[D]"), times.astype("datetime64[M]")
    good = np.ones(len(some), dtype=bool)
    if hour is not None:
        good &= some // 60 % 24 == hour
    if day is not None:
        good &= (days - months.astype("datetime64[D]")).astype(np.int64) + 1 == day
    if month is not None:
        good &= months.astype(np.int64) % 12 + 1 == month
    fits[at[good]] = 1
    return fits


def due_minutes(shown: Numbers, **fields: int | None) -> list[int]:
    """Indices of the minutes in which a schedule is due: the clock reaches, or jumps over, a time that fits and that
    it has not shown before."""
    axis = np.arange(shown.min() - 1, shown.max() + 1, dtype=np.int64)
    so_far = np.cumsum(matches(axis, **fields))  # type: ignore[arg-type]
    furthest = np.maximum.accumulate(shown)
    before = np.concatenate(([shown[0] - 1], furthest[:-1]))
    new = so_far[furthest - axis[0]] - so_far[before - axis[0]]
    return [int(index) for index in np.flatnonzero(new > 0)]


@pytest.mark.parametrize("zone", ZONES)
def test_slots_are_those_of_a_walk_minute_by_minute_over_three_years(zone: str) -> None:
    shown = local_minutes(zone)
    end = START + timedelta(days=N_DAYS)
    for expression, fields in (
        ("30 2 * * *", {"minute": 30, "hour": 2, "day": None, "month": None}),
        ("15 * * * *", {"minute": 15, "hour": None, "day": None, "month": None}),
        ("10 3 29 2 *", {"minute": 10, "hour": 3, "day": 29, "month": 2}),
        ("5 0 31 * *", {"minute": 5, "hour": 0, "day": 31, "month": None}),
    ):
        made = takewhile(lambda slot: slot < end, cron.slots(cron.parse(expression, zone), after=START - timedelta(1)))
        told = [int((slot - START).total_seconds() // 60) for slot in made if slot >= START]
        assert told == due_minutes(shown, **fields), expression


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [
        # 02:00 to 03:00 is skipped: due at 03:00, not at 03:30.
        ("Europe/Berlin", "30 2 * * *", "2024-03-30T12:00+01:00", ["2024-03-31T01:00", "2024-04-01T00:30"]),
        # 02:30 comes twice: the first time only.
        ("Europe/Berlin", "30 2 * * *", "2024-10-26T12:00+02:00", ["2024-10-27T00:30", "2024-10-28T01:30"]),
        ("America/New_York", "30 2 * * *", "2024-03-09T12:00-05:00", ["2024-03-10T07:00", "2024-03-11T06:30"]),
        # 30 minutes, 02:00 to 02:30.
        ("Australia/Lord_Howe", "10 2 * * *", "2024-10-05T12:00+10:30", ["2024-10-05T15:30", "2024-10-06T15:10"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2024-04-06T12:00+11:00", ["2024-04-06T14:45", "2024-04-07T15:15"]),
        ("Asia/Kathmandu", "0 6 * * *", "2024-01-01T00:00+00:00", ["2024-01-01T00:15", "2024-01-02T00:15"]),
        ("UTC", "0 3 29 2 *", "2024-03-01T00:00+00:00", ["2028-02-29T03:00", "2032-02-29T03:00"]),
        ("UTC", "0 3 31 * *", "2024-01-31T03:00+00:00", ["2024-03-31T03:00", "2024-05-31T03:00"]),
        # A whole day was skipped.
        ("Pacific/Apia", "0 9 30 12 *", "2011-12-29T00:00-10:00", ["2011-12-30T10:00", "2012-12-29T19:00"]),
    ],
)
def test_what_the_clock_skips_is_due_after_the_gap_and_what_comes_twice_is_due_once(
    zone: str, expression: str, after: str, expected: list[str]
) -> None:
    found = cron.upcoming(cron.parse(expression, zone), after=datetime.fromisoformat(after), n=2)
    assert [slot.isoformat(timespec="minutes").removesuffix("+00:00") for slot in found] == expected


def test_two_times_of_one_gap_are_one_slot() -> None:
    every = cron.parse("*/10 2 * * *", "Europe/Berlin")
    found = cron.upcoming(every, after=datetime(2024, 3, 30, 12, tzinfo=UTC), n=2)
    assert found == [datetime(2024, 3, 31, 1, tzinfo=UTC), datetime(2024, 4, 1, 0, tzinfo=UTC)]


def test_the_slots_that_passed_end_with_the_latest() -> None:
    nightly = cron.parse("0 2 * * *", "UTC")
    since, now = datetime(2026, 1, 1, 2, tzinfo=UTC), datetime(2026, 1, 8, 1, tzinfo=UTC)
    assert [slot.day for slot in cron.passed(nightly, since=since, now=now, most=100)] == [1, 2, 3, 4, 5, 6, 7]
    assert [slot.day for slot in cron.passed(nightly, since=since, now=now, most=3)] == [5, 6, 7]
    assert cron.passed(nightly, since=since, now=since - timedelta(seconds=1), most=3) == []


@pytest.mark.parametrize(
    ("expression", "zone", "fields"),
    [
        ("0 2 * *", "UTC", ["cron"]),
        ("0 0 2 * * *", "UTC", ["cron"]),
        ("61 2 * * *", "UTC", ["cron"]),
        ("0 2 30 2 *", "UTC", ["cron"]),
        ("soon", "Mars/Olympus", ["cron", "time_zone"]),
        ("0 2 * * *", "", ["time_zone"]),
        ("0 2 * * *", "../../etc/passwd", ["time_zone"]),
        ("0 2 * * *", "/etc/localtime", ["time_zone"]),
    ],
)
def test_what_is_no_schedule_is_refused_with_its_fields(expression: str, zone: str, fields: list[str]) -> None:
    with pytest.raises(ValidationError) as caught:
        cron.parse(expression, zone)
    assert [fault.field for fault in caught.value.faults] == fields
