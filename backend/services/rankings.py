"""From search entries to what a Result keeps: the judged list, and the ranking with the rank of each stage."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from backend.core import diagnosis, judging
from backend.core.matching import Targets
from backend.core.types import Level, Outcome, Passage
from backend.search.types import Entry
from backend.services.plans import Plan, PlannedRun
from backend.services.results import ResultRow

SNIPPET_LENGTH = 240


def stored_row(
    *,
    plan: Plan,
    planned: PlannedRun,
    ordinal: int,
    key: str,
    targets: Targets,
    entries: Sequence[Entry],
    depth: int,
    timings: dict[str, float],
    cut: Sequence[Entry] = (),
    ann_recall: float | None = None,
    satisfied: Callable[[Passage], Collection[int]] | None = None,
    units: dict[str, float] | None = None,
) -> ResultRow:
    """The row of a question that was searched without an error: `ok`, or `empty` when nothing came back. `cut` is what
    a score floor took from the end of `entries`."""
    judged = judging.judge(
        (entry.passage for entry in entries),
        targets,
        level=plan.level,
        threshold=plan.threshold,
        top_k=plan.top_k,
        satisfied=satisfied,
    )
    satisfies = satisfied or targets.satisfied_by
    return ResultRow(
        run_id=planned.run_id,
        ordinal=ordinal,
        question_key=key,
        outcome=Outcome.OK if entries else Outcome.EMPTY,
        first_rank=judging.first_rank(judged),
        judged=judged.to_json(),
        ranking=stored_ranking(entries, level=plan.level, top_k=plan.top_k, satisfied=satisfies, cut=cut),
        ann_recall=ann_recall,
        cut=stored_cut(entries, level=plan.level, top_k=plan.top_k, satisfied=satisfies, cut=cut),
        depth=depth,
        timings=timings,
        units=units or {},
    )


def stored_ranking(
    entries: Sequence[Entry],
    *,
    level: Level,
    top_k: int,
    satisfied: Callable[[Passage], Collection[int]],
    cut: Sequence[Entry] = (),
) -> list[dict[str, Any]]:
    """The entries worth keeping, in rank order: those up to the (top_k + 1)-th key, those within `top_k` of any
    stage, and every one that satisfies an expectation, however deep (where a miss was lost is read from these).

    Keys are short since there are many: `r` rank, `c` passage, `d` document, `p` path, `s` source, `o` ordinal,
    `h` heading, `g` page, `x` satisfied expectations, `k` [rank, score] by stage, `t` snippet, `l` rank by stage
    among documents (of what satisfies something, at document level: it does not follow from the entries kept).
    """
    kept = []
    seen: set[str] = set()
    satisfying = [tuple(sorted(satisfied(entry.passage))) for entry in entries]
    among_documents = _among_documents((*entries, *cut), satisfying, level=level, top_k=top_k)
    for rank, (entry, found) in enumerate(zip(entries, satisfying, strict=True), start=1):
        passage = entry.passage
        if len(seen) <= top_k:
            seen.add(passage.document_id if level is Level.DOCUMENT else passage.id)
        within = len(seen) <= top_k
        if not (within or found or any(stage.rank <= top_k for stage in entry.stages.values())):
            continue
        item = {"r": rank, **_item(entry)}
        if found:
            item["x"] = list(found)
            if rank - 1 in among_documents:
                item["l"] = among_documents[rank - 1]
        if within and passage.text:
            item["t"] = passage.text[:SNIPPET_LENGTH]
        kept.append(item)
    return kept


def stored_cut(
    entries: Sequence[Entry],
    *,
    level: Level,
    top_k: int,
    satisfied: Callable[[Passage], Collection[int]],
    cut: Sequence[Entry],
) -> list[dict[str, Any]]:
    """What a score floor cut and something is satisfied by: entries without a rank in the final list (`r`, and `final`
    of `l`) and without text."""
    satisfying = [tuple(sorted(satisfied(entry.passage))) for entry in cut]
    if not any(satisfying):
        return []
    nothing: list[tuple[int, ...]] = [()] * len(entries)
    ranks = _among_documents((*entries, *cut), [*nothing, *satisfying], level=level, top_k=top_k)
    kept = []
    for place, (entry, found) in enumerate(zip(cut, satisfying, strict=True), start=len(entries)):
        if found:
            item = {**_item(entry), "x": list(found)}
            if place in ranks:
                item["l"] = {stage: rank for stage, rank in ranks[place].items() if stage != diagnosis.FINAL}
            kept.append(item)
    return kept


def _item(entry: Entry) -> dict[str, Any]:
    passage = entry.passage
    item: dict[str, Any] = {
        "c": passage.id,
        "d": passage.document_id,
        "p": passage.path,
        "s": passage.source,
        "o": passage.ordinal,
        "k": {name: [stage.rank, stage.score] for name, stage in entry.stages.items()},
    }
    if passage.heading:
        item["h"] = passage.heading
    if passage.page is not None:
        item["g"] = passage.page
    return item


def _among_documents(
    entries: Sequence[Entry], satisfying: Sequence[tuple[int, ...]], *, level: Level, top_k: int
) -> dict[int, dict[str, int]]:
    wanted = [place for place, found in enumerate(satisfying) if found]
    if level is not Level.DOCUMENT or not wanted:
        return {}
    ranks: dict[int, dict[str, int]] = {place: {} for place in wanted}
    lists: dict[str, list[tuple[int, int]]] = {name: [] for place in wanted for name in entries[place].stages}
    documents = []
    for place, entry in enumerate(entries):
        documents.append(entry.passage.document_id)
        for name, stage in entry.stages.items():
            if name in lists:
                lists[name].append((stage.rank, place))
    diagnosis.collapse_into(ranks, lists, documents=documents, top_k=top_k)
    return ranks
