"""What the demo does once everything runs: read the handbook, evaluate its question sets, print what came of it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from django.utils import timezone

from backend.core.errors import ConflictError, ErrorCode, NotFoundError, TouchstoneError
from backend.core.states import OPEN_INGESTIONS, DocumentState, IngestionState
from backend.management import following
from backend.models import (
    CachedEmbedding,
    Ingestion,
    KnowledgeBase,
    Source,
    SourceSetFile,
    Workspace,
)
from backend.queries import knowledge, questions, reused
from backend.queries.evaluations import EvaluationDetail
from backend.queries.knowledge import BaseState
from backend.services import evaluations, samples, sources
from backend.services.evaluation_requests import Request
from touchstone.progress import Bar

MODES = ("semantic", "keyword", "hybrid", "hybrid_rerank")
_MOST_FAILED = 20

Say = Callable[[str], Any]


def run(folder: Path, *, say: Say, stream: IO[str]) -> None:
    """Raises TouchstoneError when the folder cannot be read, holds no question set, or nothing could be measured."""
    workspace = Workspace.objects.order_by("created_at", "id").first()
    if workspace is None:
        raise NotFoundError("workspace", "default")
    n_embedded_before = _n_embedded(workspace)
    source = samples.source_of(workspace, folder)
    base = source.knowledge_base
    _read(source, say=say, stream=stream)
    n_embedded_read = _n_embedded(workspace)
    files = _set_files(base, say)
    say(f"Asking {sum(file.n_questions or 0 for file in files)} questions in {len(MODES)} modes: {', '.join(MODES)}")
    began = time.monotonic()
    started = [_start(workspace, base, file) for file in files]
    told = following.follow(workspace, [one.id for one in started], stream=stream, say=say)
    say(f"Measured in {time.monotonic() - began:.1f} s.")
    say(
        _cached(
            told,
            n_passages_embedded=n_embedded_read - n_embedded_before,
            n_questions_embedded=_n_embedded(workspace) - n_embedded_read,
        )
    )
    for file, one in zip(files, told, strict=True):
        title = f"{file.source.name}:{file.path}"
        say(f"\n{title}\n{'-' * len(title)}\n{following.shown(one)}")
        say("\n" + "\n".join(f"run {run.id}  {run.name}" for run in one.evaluation.runs))
    for one in told:
        if one.evaluation.state != "completed":
            raise TouchstoneError(
                ErrorCode(one.evaluation.code or ErrorCode.INTERNAL), f"The evaluation {one.evaluation.state}."
            )


def _read(source: Source, *, say: Say, stream: IO[str]) -> None:
    say(f"Reading {source.folder}")
    began = time.monotonic()
    ingestion = sources.sync(source)
    _wait(ingestion, say=say, stream=stream)
    ingestion.refresh_from_db()
    told = knowledge.ingestion_progress(ingestion)
    row = knowledge.base_row(KnowledgeBase.objects.select_related("live_index").get(id=source.knowledge_base_id))
    parts = [f"{told.n_indexed} documents read and indexed"] if told.n_indexed or not told.n_unchanged else []
    parts += [f"{told.n_unchanged} unchanged, not read again"] if told.n_unchanged else []
    parts += [f"{told.n_removed} removed"] if told.n_removed else []
    parts += [f"{told.n_failed} failed"] if told.n_failed else []
    say(f"{', '.join(parts)}; {row.n_chunks} passages, in {time.monotonic() - began:.1f} s.")
    failed = knowledge.documents_of(source.knowledge_base, state=DocumentState.FAILED)
    for document in failed[:_MOST_FAILED]:
        say(f"  {document.path}: {document.reason} ({document.code})")
    if row.state != BaseState.READY:
        code = ErrorCode(row.code) if row.code else ErrorCode.KB_NOT_READY
        raise ConflictError(row.reason or "The handbook could not be indexed.", code=code)


def _wait(ingestion: Ingestion, *, say: Say, stream: IO[str]) -> None:
    silence = following.Silence(say)
    with Bar("documents", stream=stream) as bar:
        while True:
            told = knowledge.ingestion_progress(ingestion)
            bar.show(told.n_documents - told.n_pending, told.n_documents)
            if IngestionState(told.state) not in OPEN_INGESTIONS:
                return
            silence.look(told.n_documents - told.n_pending)
            following.pause()


def _set_files(base: KnowledgeBase, say: Say) -> list[SourceSetFile]:
    """Those that can be asked; what is wrong with the others is told."""
    found = list(questions.set_files_of(base))
    for file in found:
        if file.code:
            say(f"  {file.source.name}:{file.path} is left out: {file.reason} ({file.code})")
    usable = [file for file in found if not file.code]
    if not usable:
        raise TouchstoneError(
            ErrorCode.EVAL_FILE, "There is no question set in the folder's .touchstone/ that could be asked."
        )
    # The set of documents first, the set of passages after it.
    return sorted(usable, key=lambda file: (not file.path.endswith(".jsonl"), file.path))


def _start(workspace: Workspace, base: KnowledgeBase, file: SourceSetFile) -> Any:
    request = Request(
        file=f"{file.source.name}:{file.path}", scope={"knowledge_base": str(base.id)}, modes=MODES, label="demo"
    )
    return evaluations.start(workspace, request, now=timezone.now())


def _n_embedded(workspace: Workspace) -> int:
    return CachedEmbedding.objects.filter(workspace=workspace).count()


def _cached(told: list[EvaluationDetail], *, n_passages_embedded: int, n_questions_embedded: int) -> str:
    """What was computed and what came from the caches. A cached embedding is one that left no new row."""
    n_questions = sum(one.evaluation.n_questions for one in told)
    costs = [run.cost for one in told for run in one.evaluation.runs]
    n_scores = int(sum(cost.get("rerank_cached", 0) for cost in costs))
    n_calls = int(sum(cost.get("rerank_calls", 0) for cost in costs))
    n_reused = int(sum(cost.get(reused.REUSED, 0) for cost in costs))
    if n_reused == sum(one.evaluation.n_questions * len(one.evaluation.runs) for one in told):
        return f"Nothing has changed since the last time: its {n_reused} results were taken over, none searched for."
    return (
        f"Embedded: {n_passages_embedded} passages, {n_questions_embedded} questions"
        f" ({max(0, n_questions - n_questions_embedded)} of {n_questions} questions from the cache)."
        f" Reranked: {n_calls} calls, {n_scores} scores from the cache."
    )
