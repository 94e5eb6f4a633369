"""One question asked by meaning, by words, by both and reranked: where each passage stands in each, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.html import format_html
from django.utils.safestring import SafeString

from backend.core.configs import MODES
from backend.core.errors import ErrorCode
from backend.core.types import Level, Passage
from backend.models import Scope
from backend.queries import knowledge, questions
from backend.search.explain import Snippet
from backend.services import search as searches
from backend.services.search import ModeAnswer, SearchAnswer, SearchResult
from console import faults
from console.access import PageRequest, page

DEFAULT_MODES = ("semantic", "keyword", "hybrid", "hybrid_rerank")
TOP_K, MOST_TOP_K = 10, 50
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One passage (or document) over all modes. `ranks` are by mode, in their order; None: not among its first.
    `reason` is that of the last mode that has it, which has seen the most."""

    passage: Passage
    snippet: SafeString
    ranks: tuple[tuple[str, int | None], ...]
    scores: tuple[tuple[str, int, float], ...]
    reason: str


# A letter by itself tells nothing: every passage has an "a".
_SHORTEST = 2


@page()
def search(request: PageRequest) -> HttpResponse:
    """By GET: the address of an answer can be passed on."""
    bases = list(knowledge.bases_of(request.workspace).filter(live_index__isnull=False)[:_MOST])
    given = request.GET
    modes = [mode for mode in MODES if mode in given.getlist("mode")] or list(DEFAULT_MODES)
    key = given.get("base", "") or (str(bases[0].id) if bases else "")
    context: dict[str, Any] = {
        "query": given.get("q", ""),
        "bases": bases,
        "chosen": key,
        "modes": MODES,
        "wanted": modes,
        "level": given.get("level", "") if given.get("level", "") in set(Level) else Level.PASSAGE.value,
        "reranker": given.get("reranker", ""),
        "top_k": _whole(given.get("top_k", ""), default=TOP_K),
    }
    if not context["query"].strip() or not key:
        return render(request, "search/search.html", context)
    try:
        answer = searches.search(
            workspace=request.workspace,
            scope_request={"knowledge_base": key},
            query=context["query"],
            modes=modes,
            top_k=context["top_k"],
            level=Level(context["level"]),
            reranker=context["reranker"].strip(),
        )
    except faults.EXPECTED as error:
        if error.code == ErrorCode.NOT_FOUND:
            raise
        context["fault"] = faults.shown(error)
        return render(request, "search/search.html", context, status=faults.status_of(error))
    context |= {"answer": answer, "found": _found(answer)}
    if Scope.WRITE in request.scopes:
        context["sets"] = list(questions.sets_of(request.workspace)[:_MOST])
    return render(request, "search/search.html", context)


def _found(answer: SearchAnswer) -> list[Found]:
    """Every passage that some mode has, best first by the last mode that has it: the one that has seen the most."""
    by_key: dict[str, dict[int, SearchResult]] = {}
    for column, mode in enumerate(answer.modes):
        for result in mode.results:
            by_key.setdefault(_key(answer, result), {})[column] = result
    rows = sorted(by_key.values(), key=lambda there: _order(there, len(answer.modes)))
    return [_row(there, answer.modes) for there in rows]


def _key(answer: SearchAnswer, result: SearchResult) -> str:
    return result.passage.document_id if answer.level is Level.DOCUMENT else result.passage.id


def _order(there: Mapping[int, SearchResult], n_modes: int) -> list[float]:
    return [there[column].rank if column in there else float("inf") for column in reversed(range(n_modes))]


def _row(there: Mapping[int, SearchResult], modes: Sequence[ModeAnswer]) -> Found:
    last = there[max(there)]
    return Found(
        passage=last.passage,
        snippet=_marked(last.snippet),
        ranks=tuple((mode.name, there[column].rank if column in there else None) for column, mode in enumerate(modes)),
        scores=tuple((name, stage.rank, stage.score) for name, stage in last.stages.items()),
        reason=last.reason,
    )


def _marked(snippet: Snippet) -> SafeString:
    """The snippet with what matched in <mark>; all of it escaped: a document may hold anything."""
    out, at = SafeString(""), 0
    for start, end in sorted(snippet.marks):
        if end - start < _SHORTEST:
            continue
        if start < at:
            continue
        out = format_html("{}{}<mark>{}</mark>", out, snippet.text[at:start], snippet.text[start:end])
        at = end
    return format_html("{}{}", out, snippet.text[at:])


def _whole(text: str, *, default: int) -> int:
    return min(MOST_TOP_K, max(1, int(text))) if text.isascii() and text.isdigit() and len(text) < 6 else default
