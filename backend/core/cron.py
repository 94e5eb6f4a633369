"""When a schedule is due: five cron fields, read in a time zone.

`cronsim` knows the fields (lists, ranges, steps, names, `L`, `MON#2`; days of the month and of the week are either-or
unless one of them is a star). The clock is ours: a time that a change of the clock skips is due in the first minute
after the gap, one that comes twice is due the first time, so each local time is due once or not at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from backend.core.errors import ErrorCode, Fault, ValidationError

_MINUTE = timedelta(minutes=1)
_SOME_DAY = datetime(2024, 1, 1)  # noqa: DTZ001  a local time: which zone it is in does not matter here


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """Fields that were checked, and the zone they are read in."""

    expression: str
    zone: ZoneInfo


def parse(expression: str, time_zone: str) -> Cron:
    """Raises ValidationError with every fault, also for fields that no day there is fits (30 February)."""
    faults = []
    fields = expression.split()
    if len(fields) != 5:
        faults.append(_fault(f"cron has five fields (minute hour day month weekday), not {len(fields)}.", "cron"))
    else:
        try:
            next(CronSim(expression, _SOME_DAY))
        except CronSimError as error:
            faults.append(_fault(f"cron {expression!r} cannot be read: {error}.", "cron"))
        except StopIteration:
            faults.append(_fault(f"cron {expression!r} is never due.", "cron"))
    zone = None
    try:
        # Only names: a path would open files.
        zone = ZoneInfo(time_zone) if time_zone else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zone = None
    if zone is None:
        faults.append(_fault(f"There is no time zone {time_zone!r}. Write one such as Europe/Berlin.", "time_zone"))
    if faults or zone is None:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    return Cron(expression=" ".join(fields), zone=zone)


def slots(cron: Cron, *, after: datetime) -> Iterator[datetime]:
    """The times it is due strictly after an aware time, ascending, in UTC. Ends where nothing fits for 50 years."""
    local = after.astimezone(cron.zone).replace(tzinfo=None)
    last = after.astimezone(UTC)
    for wall in CronSim(cron.expression, local):
        due = _instant(wall, cron.zone)
        # Two local times of a gap are one time, and those that come twice have been.
        if due > last:
            last = due
            yield due


def next_slot(cron: Cron, *, after: datetime) -> datetime | None:
    return next(slots(cron, after=after), None)


def passed(cron: Cron, *, since: datetime, now: datetime, most: int) -> list[datetime]:
    """The slots from `since` (which is one) to `now`, at most the last `most` of them."""
    found = [since] if since <= now else []
    for slot in slots(cron, after=since):
        if slot > now:
            break
        found.append(slot)
        if len(found) > 2 * most:
            found = found[-most:]
    return found[-most:]


def upcoming(cron: Cron, *, after: datetime, n: int) -> list[datetime]:
    return list(islice(slots(cron, after=after), n))


def _instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first time that a local clock shows this, or, where it never does, the first minute after the gap."""
    found = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    while found.astimezone(zone).replace(tzinfo=None) != wall:
        wall += _MINUTE
        found = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    return found


def _fault(message: str, field: str) -> Fault:
    return Fault(code=ErrorCode.VALIDATION, message=message, field=field)
