"""Results of an earlier evaluation that nothing has changed since: taken over instead of asked for again.

A search over the same documents with the same settings gives the same list, as a vector or a rerank score from the
cache is the one that the provider gave. What a result depends on must all be the same: the set's version, the scope,
the configuration, each Index at the same generation, how lists are judged, this code, and the providers as set up.
The latencies come along, as measured then; what was paid then does not. `cache: false` asks everything again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from backend.core.configs import fingerprint
from backend.core.states import RunKind, RunState
from backend.models import ProgressEntry, Result, Run
from backend.providers.base import ProviderError
from backend.queries.corpora import generations_as_json
from backend.queries.reused import is_copy
from backend.search import providers
from backend.services import results
from backend.services.plans import Plan, PlannedRun

# Questions taken over in one commit.
AT_ONCE = 2000
_TAKE = results.noted("""
INSERT INTO backend_result (run_id, ordinal, question_key, epoch, outcome, code, reason, first_rank, judged, ranking,
                            cut, ann_recall, depth, timings, units, created_at)
SELECT %(run)s, ordinal, question_key, %(epoch)s, outcome, code, reason, first_rank, judged, ranking, cut, ann_recall,
       depth, timings, '{"reused": 1}', now()
FROM backend_result
WHERE run_id = (SELECT id FROM backend_run WHERE id = %(earlier)s AND pruned_at IS NULL FOR SHARE)
  AND outcome IN ('ok', 'empty') AND ordinal >= %(first)s AND ordinal < %(end)s
ORDER BY ordinal
ON CONFLICT (run_id, ordinal) DO NOTHING
""")

Corpora = Mapping[UUID, tuple[Mapping[UUID, int], str]]


def asked_with(plan: Plan, planned: PlannedRun) -> str:
    """A fingerprint of the providers that a run asks, as they are set up now; empty, and like nothing, where one of
    them is not set up any more: each question will tell that."""
    told: list[Any] = []
    try:
        for _, embedder in sorted(plan.embedders_of(planned).items()):
            info = providers.describe_embedder(
                embedder.spec, workspace_id=plan.workspace_id, query_prefix=embedder.query_prefix
            )
            told.append(asdict(info))
        if planned.config.reranker:
            told.append(asdict(providers.describe_reranker(planned.config.reranker, workspace_id=plan.workspace_id)))
    except ProviderError:
        return ""
    return fingerprint(told)


def sources(plan: Plan, corpora: Corpora, asked: Mapping[UUID, str]) -> dict[UUID, UUID]:
    """By run: the latest one whose good results are this one's as well; the run that it took them all over from, where
    that is one, too. `corpora`: what each run's Indexes hold now, `asked`: what it is asked with."""
    if not plan.use_cache or plan.version_id is None:
        return {}
    found = {}
    runs = Run.objects.filter(evaluation_id=plan.evaluation_id).select_related("evaluation")
    for run in runs:
        if not asked[run.id]:
            continue
        generations, corpus = corpora[run.id]
        earlier = (
            Run.objects.select_related("evaluation")
            .filter(
                workspace_id=run.workspace_id,
                kind=RunKind.SEARCHED,
                state=RunState.SCORED,
                evaluation__question_set_version_id=plan.version_id,
                evaluation__scope=run.evaluation.scope,
                config_fingerprint=run.config_fingerprint,
                corpus_fingerprint=corpus,
                generations=generations_as_json(generations),
                corpus_changed=False,
                code_version=run.code_version,
                metric_definitions=run.metric_definitions,
                level=run.level,
                threshold=run.threshold,
                top_k=run.top_k,
                origin__asked_with=asked[run.id],
                pruned_at=None,
            )
            .exclude(evaluation_id=plan.evaluation_id)
            .order_by("-finished_at")
        )
        latest = earlier.first()
        if latest is not None:
            found[run.id] = _measured(latest, among=earlier).id
    return found


def outdated(plan: Plan, corpora: Corpora, asked: Mapping[UUID, str]) -> list[UUID]:
    """The runs for which an attempt before this one took results over and came to no end, where documents or providers
    have changed since. Before a question is asked."""
    found = []
    for run in Run.objects.filter(evaluation_id=plan.evaluation_id).exclude(corpus_fingerprint=""):
        generations, corpus = corpora[run.id]
        noted = (run.corpus_fingerprint, run.generations, run.origin.get("asked_with"))
        if noted != (corpus, generations_as_json(generations), asked[run.id]):
            found.append(run.id)
    return found


def drop(run_ids: Sequence[UUID]) -> None:
    """What was taken over for these runs, and from where; inside the commit that begins anew."""
    ProgressEntry.objects.filter(run__in=run_ids).delete()
    Result.objects.filter(run__in=run_ids).delete()
    Run.objects.filter(id__in=run_ids).update(corpus_fingerprint="", generations={}, origin={})


def _measured(run: Run, *, among: QuerySet[Run]) -> Run:
    """So that nights without a change name the one that was measured, not each the night before."""
    while is_copy(run):
        origin = among.filter(id=run.origin["reused_from"]).first()
        if origin is None:
            break
        run = origin
    return run


def blocks(plan: Plan) -> Iterator[range]:
    """The questions, as many at a time as one commit takes over."""
    for start in range(0, plan.n_questions, AT_ONCE):
        yield range(start, start + AT_ONCE)


def take(run_id: UUID, *, earlier: UUID, ordinals: range, epoch: int) -> int:
    """Returns how many results were taken over."""
    with connection.cursor() as cursor:
        cursor.execute(
            _TAKE,
            {"run": run_id, "earlier": earlier, "epoch": epoch, "first": ordinals.start, "end": ordinals.stop},
        )
        return int(cursor.fetchone()[0])
