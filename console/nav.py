"""The entries of the main navigation. One whose page does not exist is not shown."""

from dataclasses import dataclass
from functools import cache

from django.urls import NoReverseMatch, reverse

from backend.models import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`name` is the address's; `stems` are the first words of the names of the pages that belong to it: `base` has
    `base-documents`. `scope`: shown only to those who have it."""

    label: str
    name: str
    stems: tuple[str, ...]
    scope: Scope = Scope.READ


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    label: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGroup:
    label: str
    entries: tuple[Shown, ...]


GROUPS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Measure",
        (
            Entry(label="Overview", name="home", stems=("home",)),
            Entry(label="Evaluations", name="evaluations", stems=("evaluations", "evaluation", "run", "question")),
            Entry(label="Compare", name="compare", stems=("compare", "comparison")),
            Entry(label="History", name="history", stems=("history",)),
            Entry(label="Experiments", name="experiments", stems=("experiments", "experiment")),
        ),
    ),
    (
        "Material",
        (
            Entry(label="Knowledge bases", name="bases", stems=("bases", "base")),
            Entry(label="Question sets", name="sets", stems=("sets", "set")),
            Entry(label="Drafts", name="drafts", stems=("drafts", "draft", "review", "generation")),
            Entry(label="Search", name="search", stems=("search",)),
        ),
    ),
    (
        "Watch",
        (
            Entry(label="Schedules", name="schedules", stems=("schedules", "schedule")),
            Entry(label="Baselines", name="baselines", stems=("baselines", "baseline")),
            Entry(label="Gates", name="gates", stems=("gates", "gate")),
            Entry(label="Alerts", name="alerts", stems=("alerts", "alert")),
            Entry(label="Jobs", name="jobs", stems=("jobs", "job")),
        ),
    ),
    (
        "Workspace",
        (
            Entry(label="Members", name="members", stems=("members", "member"), scope=Scope.ADMIN),
            Entry(label="Tokens", name="tokens", stems=("tokens", "token"), scope=Scope.READ),
            Entry(label="Provider keys", name="provider-keys", stems=("provider",), scope=Scope.ADMIN),
            Entry(label="Audit log", name="audit", stems=("audit",), scope=Scope.ADMIN),
        ),
    ),
)


def shown(scopes: frozenset[Scope], current: str) -> list[ShownGroup]:
    """For a page of the name `current`, to somebody who has these scopes."""
    stem = current.partition("-")[0]
    found = []
    for label, entries in GROUPS:
        there = tuple(
            Shown(label=one.label, url=url, is_current=stem in one.stems)
            for one in entries
            if one.scope in scopes and (url := _url(one.name))
        )
        if there:
            found.append(ShownGroup(label=label, entries=there))
    return found


@cache
def _url(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
