"""A question of a version with the ranking that was stored for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.core import kept_rankings
from backend.core.kept_rankings import Kept, Known
from backend.core.matching import KnownPaths, Targets, identity, merge
from backend.core.types import Level, Passage, Question
from backend.models import Question as QuestionRow
from backend.models import Result
from backend.services import plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A question of the version with the result it had. `carried`: what each expectation was in the run's own version;
    the others are matched again, for which `wanted` are the passages whose text helps and `needed` those it takes."""

    row: QuestionRow
    result: Result | None
    targets: Targets
    looks_at_content: bool
    beginning: Known
    carried: Mapping[int, int]
    is_same: bool
    wanted: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        row: QuestionRow,
        result: Result | None,
        *,
        kept: Kept,
        known: KnownPaths | None,
        old: Question | None,
        is_same: bool,
    ) -> "Piece":
        expectations = merge(plans.to_question(row).expectations)
        carried = {index: index for index in range(len(expectations))}
        if not is_same:
            before = {identity(one): at for at, one in enumerate(merge(old.expectations if old else ()))}
            carried = {at: before[key] for at, one in enumerate(expectations) if (key := identity(one)) in before}
        beginning = kept_rankings.known(result.ranking if result else (), kept=kept)
        looks = [any(each.looks_at_content for each in one.any_of) for one in expectations]
        reads = any(
            each.content_contains or each.text
            for at, one in enumerate(expectations)
            if at not in carried
            for each in one.any_of
        )
        return cls(
            row=row,
            result=result,
            targets=Targets(expectations, known=known),
            looks_at_content=any(looks),
            beginning=beginning,
            carried=carried,
            is_same=is_same,
            wanted=tuple(str(entry["c"]) for entry in result.ranking) if reads and result else (),
            needed=tuple(str(entry["c"]) for entry in beginning.entries) if reads else (),
        )

    def satisfying(self, texts: Mapping[str, str]) -> list[dict[str, Any]]:
        """The stored entries with `x` by this version's labels."""
        return self._satisfying(self.result.ranking if self.result else (), texts)

    def cut(self, texts: Mapping[str, str], *, kept: Kept, level: Level) -> list[dict[str, Any]]:
        """The same of what a score floor cut. At another level the ranks among passages stand for those among
        documents, which are never worse."""
        found = self._satisfying(self.result.cut if self.result else (), texts)
        for entry in found:
            if level is not kept.level:
                entry.pop("l", None)
                if level is Level.DOCUMENT:
                    entry["l"] = {name: int(value[0]) for name, value in entry["k"].items()}
        return [entry for entry in found if entry.get("x")]

    def _satisfying(self, stored: Sequence[Mapping[str, Any]], texts: Mapping[str, str]) -> list[dict[str, Any]]:
        ranking = [dict(entry) for entry in stored]
        if self.is_same:
            return ranking
        for entry in ranking:
            before = set(entry.pop("x", ()))
            found = {at for at, was in self.carried.items() if was in before}
            if len(self.carried) < len(self.targets.expectations):
                matched = self.targets.satisfied_by(passage_of(entry, text=texts.get(str(entry["c"]), "")))
                found.update(at for at in matched if at not in self.carried)
            if found:
                entry["x"] = sorted(found)
        return ranking


def passage_of(entry: Mapping[str, Any], *, text: str = "") -> Passage:
    return Passage(
        id=entry["c"], document_id=entry["d"], path=entry["p"], source=entry["s"], text=text, ordinal=entry["o"]
    )
