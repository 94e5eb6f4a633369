"""From a ranking and a question to the one judged list that every metric and every k reads.

Rank order is the order the search returned. `merge` makes the expectations distinct, `judge` walks the ranking,
`JudgedList` is the outcome: small, stored with the result, and all that a metric may look at.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.core.errors import ValidationError
from backend.core.matching import KnownPaths, Targets, merge
from backend.core.types import Level, Passage, Question

_STORED_VERSION = 1
_RELEVANT, _JUDGED = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRank:
    """One rank: a document or a passage, and what it satisfies.

    `relevant`: it satisfies at least one relevant expectation, counted before or not. `new`: the expectations of
    grade > 0 first satisfied here (indices into `JudgedList.grades`). `gain`: the highest grade among `new`, 0 if
    there is none. `judged`: it carries any judgement, of whatever grade.
    """

    key: str
    relevant: bool = False
    judged: bool = False
    new: tuple[int, ...] = ()
    gain: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedList:
    """One question of one run, judged at one level, cut at `top_k`. Every smaller k is a cut of this list.

    `grades` are those of the merged expectations with grade > 0, in the question's order; `n_judgements` counts
    the merged ones with grade <= 0, which earn nothing. `threshold` is the grade from which one is relevant.
    """

    level: Level
    top_k: int
    threshold: float
    grades: tuple[float, ...]
    n_judgements: int = 0
    ranks: tuple[JudgedRank, ...] = ()

    n_relevant: int = field(init=False, compare=False, repr=False)
    """R, the denominator of recall and map. 0 means that this question has no metrics."""

    ideal: tuple[float, ...] = field(init=False, compare=False, repr=False)
    """The positive grades, high to low: the gains of the best possible list."""

    def __post_init__(self) -> None:
        # Kept, not derived each time: some twenty metrics a question read them.
        object.__setattr__(self, "n_relevant", sum(1 for grade in self.grades if grade >= self.threshold))
        object.__setattr__(self, "ideal", tuple(sorted(self.grades, reverse=True)))

    @property
    def n_expectations(self) -> int:
        """The merged expectations with grade > 0, relevant or not."""
        return len(self.grades)

    @property
    def has_judgements(self) -> bool:
        """Whether the question is graded or carries negative judgements, so that judged@k says something."""
        return self.n_judgements > 0 or any(grade != 1 for grade in self.grades)

    def is_relevant(self, expectation: int) -> bool:
        """Whether the expectation at this index of `grades` counts for hit, recall, precision, mrr and map."""
        return self.grades[expectation] >= self.threshold

    def to_json(self) -> dict[str, Any]:
        """A compact value for a JSON column. `from_json` gives an equal list back.

        A rank that nothing is said about is its key alone; else `[key, flags, new…]`. Gains are not stored: they
        follow from `new` and `grades`.
        """
        return {
            "v": _STORED_VERSION,
            "level": self.level.value,
            "top_k": self.top_k,
            "threshold": self.threshold,
            "grades": list(self.grades),
            "n_judgements": self.n_judgements,
            "ranks": [
                [rank.key, _RELEVANT * rank.relevant + _JUDGED * rank.judged, *rank.new]
                if rank.relevant or rank.judged
                else rank.key
                for rank in self.ranks
            ],
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> "JudgedList":
        """The list that `to_json` stored. Raises ValueError for a layout this release does not know."""
        if stored.get("v") != _STORED_VERSION:
            raise ValueError(f"unknown judged list layout {stored.get('v')!r}")
        grades = tuple(float(grade) for grade in stored["grades"])
        return JudgedList(
            level=Level(stored["level"]),
            top_k=stored["top_k"],
            threshold=float(stored["threshold"]),
            grades=grades,
            n_judgements=stored["n_judgements"],
            ranks=tuple(_rank_from_json(rank, grades=grades) for rank in stored["ranks"]),
        )


def judge(
    passages: Iterable[Passage],
    question: Question | Targets,
    *,
    level: Level,
    threshold: float,
    top_k: int,
    known: KnownPaths | None = None,
    satisfied: Callable[[Passage], Collection[int]] | None = None,
) -> JudgedList:
    """Judge a ranking, best passage first.

    Passage level: the first `top_k` distinct passages. Document level: collapsed to documents, each at its first
    passage, then cut; a document's evidence is every passage of its own that ranks before the first passage of
    the (`top_k` + 1)-th document, so the ranking should reach that far. What comes after changes nothing.

    A key that comes twice is kept at its first place. To judge one question in several modes, pass its `Targets`
    (made once; `known` is then not looked at). `satisfied` replaces the matching of text and paths, where the
    labels are resolved already: it gives the indices, in the merged expectations, that a passage satisfies.
    """
    if top_k < 1:
        raise ValidationError(f"top_k must be at least 1, not {top_k}.", field="top_k")
    targets = question if isinstance(question, Targets) else Targets(merge(question.expectations), known=known)
    satisfies = satisfied or targets.satisfied_by
    found: dict[str, set[int]] = {}
    for passage in passages:
        key = passage.document_id if level is Level.DOCUMENT else passage.id
        if key in found:
            if level is Level.DOCUMENT:
                found[key].update(satisfies(passage))
            continue
        if len(found) == top_k:
            break
        found[key] = set(satisfies(passage))
    grades = tuple(expectation.grade for expectation in targets.expectations if expectation.grade > 0)
    return JudgedList(
        level=level,
        top_k=top_k,
        threshold=threshold,
        grades=grades,
        n_judgements=len(targets.expectations) - len(grades),
        ranks=_walk(found, grades=grades, threshold=threshold),
    )


def first_rank(judged: JudgedList) -> int | None:
    """The rank, from 1, of the first result that satisfies a relevant expectation; None if none does."""
    for number, rank in enumerate(judged.ranks, start=1):
        if rank.relevant:
            return number
    return None


def _walk(found: Mapping[str, Collection[int]], *, grades: Sequence[float], threshold: float) -> tuple[JudgedRank, ...]:
    """Credit each expectation at the first rank that satisfies it. Indices past `grades` are judgements only."""
    credited: set[int] = set()
    ranks = []
    for key, satisfied in found.items():
        if not satisfied:
            ranks.append(JudgedRank(key=key))
            continue
        counting = sorted(index for index in satisfied if index < len(grades))
        new = tuple(index for index in counting if index not in credited)
        credited.update(new)
        ranks.append(
            JudgedRank(
                key=key,
                relevant=any(grades[index] >= threshold for index in counting),
                judged=True,
                new=new,
                gain=max((grades[index] for index in new), default=0.0),
            )
        )
    return tuple(ranks)


def _rank_from_json(stored: Any, *, grades: Sequence[float]) -> JudgedRank:
    if isinstance(stored, str):
        return JudgedRank(key=stored)
    key, flags, *new = stored
    return JudgedRank(
        key=key,
        relevant=bool(flags & _RELEVANT),
        judged=bool(flags & _JUDGED),
        new=tuple(new),
        gain=max((grades[index] for index in new), default=0.0),
    )
