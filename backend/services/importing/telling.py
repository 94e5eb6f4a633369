"""What a person should know of a file of rankings, in sentences."""

from collections.abc import Sequence

from backend.core import imported_rankings
from backend.core.imported_rankings import ParsedRankings
from backend.core.types import Level, Question
from backend.models import Document, KnowledgeBase
from backend.services.importing.matching import MOST_NAMED, Matched
from backend.services.importing.rows import Rows, as_id


def warnings(
    parsed: ParsedRankings,
    matched: Matched,
    *,
    asked: Sequence[Question],
    base: KnowledgeBase | None,
    rows: Rows,
) -> list[str]:
    """Ties, repeats, what was cut, questions and ids that match nothing."""
    told = list(parsed.warnings)
    if parsed.n_tied:
        told.append(f"{parsed.n_tied} results share their score with another of the same question: left in file order.")
    if parsed.n_repeated:
        told.append(f"{parsed.n_repeated} ids came again for the same question: each kept at its first place.")
    if parsed.n_cut:
        told.append(f"{parsed.n_cut} results beyond the {imported_rankings.MAX_RESULTS}th of a question were left out.")
    if matched.unknown:
        shown = ", ".join(repr(one[:60]) for one in matched.unknown[:MOST_NAMED])
        told.append(f"{len(matched.unknown)} rankings are for questions that the set does not have: {shown}.")
    n_missing = len(asked) - len(matched.by_key)
    if n_missing:
        told.append(f"{n_missing} of {len(asked)} questions have no ranking: counted as {rows.missing.value}.")
    expected = {each.path for question in asked for one in question.expectations for each in one.any_of if each.path}
    ids = {hit.document or hit.id for ranking in matched.by_key.values() for hit in ranking.hits}
    absent = expected - {rows.split(one)[1] for one in ids}
    if expected and absent == expected and rows.level is Level.DOCUMENT:
        told.append(
            f"None of the {len(expected)} documents that the set expects is in any ranking. It expects, for one, "
            f"{min(expected)!r}; the file has {min(ids, default='none')!r}: are these the same ids?"
        )
    elif absent and rows.level is Level.DOCUMENT:
        shown = ", ".join(repr(one[:60]) for one in sorted(absent)[:MOST_NAMED])
        told.append(f"{len(absent)} of {len(expected)} expected documents are in no ranking: {shown}.")
    if base is not None:
        paths = set(Document.objects.filter(knowledge_base=base).values_list("path", flat=True))
        unknown = sorted(one for one in ids if rows.split(one)[1] not in paths and as_id(one) is None)
        if unknown:
            shown = ", ".join(repr(one[:60]) for one in unknown[:MOST_NAMED])
            told.append(f"{len(unknown)} ids are no documents of {base.name!r}: {shown}.")
    return told
