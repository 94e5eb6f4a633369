"""Askings for questions and their drafts, as API, console and commands show them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet

from backend.core.generation.kinds import DraftState, LeakageBand
from backend.models import Draft, Generation, Workspace
from backend.queries.lookups import get


def of(workspace: Workspace) -> QuerySet[Generation]:
    """A workspace's, newest first."""
    return Generation.objects.filter(workspace=workspace).select_related("job", "knowledge_base", "question_set")


def get_generation(workspace: Workspace, key: object, *, rows: QuerySet[Generation] | None = None) -> Generation:
    """Raises NotFoundError."""
    found = of(workspace) if rows is None else rows.filter(workspace=workspace)
    return get(found, key, what="generation")


def drafts_of(made: Generation, *, state: str = "", kind: str = "", band: str = "") -> QuerySet[Draft]:
    """In the order in which they were drawn."""
    found = made.drafts.order_by("ordinal")
    if state:
        found = found.filter(state=state)
    if kind:
        found = found.filter(kind=kind)
    if band:
        found = found.filter(leakage_band=band)
    return found


def get_draft(workspace: Workspace, key: object, *, rows: QuerySet[Draft] | None = None) -> Draft:
    """Raises NotFoundError."""
    found = (Draft.objects.all() if rows is None else rows).filter(generation__workspace=workspace)
    return get(found.select_related("generation"), key, what="draft")


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRow:
    """A generation with what came of it. `counts` by state add up to what was drawn; `faults` are those of the failed
    and the dropped, by code; `flags` what filters flagged, `bands` by leakage, `rungs` how the replies' form was asked
    for."""

    generation: Generation
    counts: Mapping[str, int]
    faults: Mapping[str, int]
    flags: Mapping[str, int]
    bands: Mapping[str, int]
    rungs: Mapping[str, int]
    units: Mapping[str, float]

    @property
    def n_drawn(self) -> int:
        return sum(self.counts.values())


def row(made: Generation) -> GenerationRow:
    """A few passes over its drafts, of which there are at most 2,000; texts are not read."""
    states = _by(made, "state")
    flags: dict[str, int] = {}
    units: dict[str, float] = {}
    for verdicts, billed in made.drafts.values_list("verdicts", "units"):
        for verdict in verdicts:
            if verdict["action"] == "flag":
                flags[verdict["filter"]] = flags.get(verdict["filter"], 0) + 1
        for name, amount in billed.items():
            units[name] = units.get(name, 0.0) + amount
    return GenerationRow(
        generation=made,
        counts={state.value: states.get(state.value, 0) for state in DraftState},
        faults={name: n for name, n in _by(made, "code").items() if name},
        flags=dict(sorted(flags.items())),
        bands={band.value: _by(made, "leakage_band").get(band.value, 0) for band in LeakageBand},
        rungs={name: n for name, n in _by(made, "rung").items() if name},
        units={name: round(amount, 6) for name, amount in sorted(units.items())},
    )


def _by(made: Generation, field: str) -> dict[str, int]:
    return dict(made.drafts.values_list(field).annotate(n=Count("id")).values_list(field, "n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How a prompt did: of the drafts that a person decided about, which share was accepted. None: nobody decided."""

    llm: str
    prompt_version: str
    n_drafts: int
    n_accepted: int
    n_edited: int
    n_rejected: int
    n_dropped: int
    n_failed: int

    @property
    def acceptance(self) -> float | None:
        decided = self.n_accepted + self.n_rejected
        return self.n_accepted / decided if decided else None


def rates(workspace: Workspace) -> list[Rates]:
    """By model and prompt version, the most used first."""
    counted: Any = (
        Draft.objects.filter(generation__workspace=workspace)
        .exclude(state=DraftState.OPEN)
        .values("generation__llm", "generation__prompt_version")
        .annotate(
            n_drafts=Count("id"),
            n_accepted=Count("id", filter=Q(state=DraftState.ACCEPTED)),
            n_edited=Count("id", filter=Q(state=DraftState.ACCEPTED) & ~Q(original="")),
            n_rejected=Count("id", filter=Q(state=DraftState.REJECTED)),
            n_dropped=Count("id", filter=Q(state=DraftState.DROPPED)),
            n_failed=Count("id", filter=Q(state=DraftState.FAILED)),
        )
        .order_by("-n_drafts", "generation__llm", "generation__prompt_version")
    )
    return [
        Rates(
            llm=one["generation__llm"],
            prompt_version=one["generation__prompt_version"],
            **{name: value for name, value in one.items() if name.startswith("n_")},
        )
        for one in counted
    ]
