"""Questions made from documents: an asking is checked, its passages are drawn, and a job asks about one after another.

Every passage drawn has a row (Draft) from the beginning, and each row ends with a question or with the reason why
there is none: nothing is dropped silently. A job that is taken over goes on with the rows that are still open.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from backend import logs
from backend.core import languages
from backend.core.errors import ConflictError, ErrorCode, Fault, TouchstoneError, ValidationError
from backend.core.generation import local, prompts, quality, sampling
from backend.core.generation.kinds import DraftState, QuestionKind
from backend.core.generation.sampling import Sketch
from backend.core.states import JobKind, JobState, Lane
from backend.models import Chunk, Document, Draft, Generation, Job, KnowledgeBase, Workspace
from backend.providers.base import ProviderError
from backend.queries.lookups import get
from backend.search import providers
from backend.services import jobs, scopes, slices, spending
from backend.services.slices import Lease

MAX_SAMPLE = 2000
DEFAULT_SAMPLE = 50
DEFAULT_KINDS = (QuestionKind.FACT, QuestionKind.PARAPHRASE, QuestionKind.KEYWORD)
_READ_AT_ONCE = 50
_log = logs.get("generation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What `POST question-sets/generate` says. `llm` empty: TOUCHSTONE_LLM, else the local generator. `language` is a
    name such as english: only passages in it. `prompt` takes the place of our instructions."""

    knowledge_base: str = ""
    sample_size: int = DEFAULT_SAMPLE
    source: str = ""
    collection: str = ""
    language: str = ""
    kinds: Sequence[str] = ()
    llm: str = ""
    prompt: str = ""
    seed: int = 0
    answerability: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)


def parse(body: Mapping[str, Any]) -> Request:
    """Raises ValidationError with every fault."""
    faults: list[Fault] = []

    def tell(message: str, name: str) -> None:
        faults.append(Fault(code=ErrorCode.VALIDATION, message=message, field=name))

    values = {name: value for name, value in body.items() if value is not None}
    for name in ("knowledge_base", "source", "collection", "language", "llm", "prompt"):
        if not isinstance(values.get(name, ""), str):
            tell(f"{name} is a text, not {values[name]!r}.", name)
            values.pop(name)
    if not values.get("knowledge_base"):
        tell("knowledge_base is the id of the base whose documents are asked about.", "knowledge_base")
    for name, low, high in (("sample_size", 1, MAX_SAMPLE), ("seed", 0, 2**31 - 1)):
        value = values.get(name, low)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            tell(f"{name} is a whole number from {low} to {high:,}.", name)
    kinds = values.get("kinds", [])
    if not isinstance(kinds, list) or any(one not in set(QuestionKind) for one in kinds):
        tell(f"kinds is a list of some of: {', '.join(QuestionKind)}.", "kinds")
    if len(values.get("prompt", "")) > prompts.MOST_TEMPLATE:
        tell(f"prompt has at most {prompts.MOST_TEMPLATE:,} characters.", "prompt")
    if values.get("language") and values["language"] not in languages.NAMES:
        tell(f"language is one of {', '.join(languages.NAMES)}.", "language")
    if not isinstance(values.get("answerability", True), bool):
        tell("answerability is true or false.", "answerability")
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    known = {name for name in Request.__slots__ if name != "settings"}
    return Request(**{name: value for name, value in values.items() if name in known})


def start(workspace: Workspace, request: Request, *, created_by: str = "") -> Generation:
    """Raises TouchstoneError: for a base that is not the workspace's or holds nothing, and for a model that is not
    configured. The drawing itself is the job's: it reads the passages."""
    base = get(KnowledgeBase.objects.filter(workspace=workspace), request.knowledge_base, what="knowledge base")
    scope = {name: value for name in ("source", "collection") if (value := getattr(request, name))}
    # Checks that there is something to draw from, and that the source is the base's.
    scopes.resolve(workspace, {"knowledge_base": str(base.id), **scope})
    llm, kinds = _model(workspace, request)
    wanted = {
        **{name: value for name, value in asdict(request).items() if name not in {"settings", "knowledge_base"}},
        "kinds": [kind.value for kind in kinds],
        "llm": llm,
    }
    with transaction.atomic():
        generation = Generation.objects.create(
            workspace=workspace,
            knowledge_base=base,
            knowledge_base_name=base.name,
            llm=llm,
            prompt_version=local.VERSION if llm == local.SPEC else prompts.version_of(request.prompt),
            settings=wanted,
        )
        generation.job = _start_job(generation, n_total=request.sample_size, created_by=created_by)
        generation.save(update_fields=["job"])
    return generation


def retry(workspace: Workspace, generation_id: object, *, created_by: str = "") -> Generation:
    """Ask again what is open or failed. Raises ConflictError while a job of it is under way, or where nothing is."""
    with transaction.atomic():
        rows = Generation.objects.select_for_update(of=("self",)).select_related("job", "workspace")
        generation = get(rows.filter(workspace=workspace), generation_id, what="generation")
        if generation.job is not None and generation.job.state not in _ENDED:
            raise ConflictError(f"Its job is {generation.job.state}: wait for it to end, or cancel it.")
        Draft.objects.filter(generation=generation, state=DraftState.FAILED).update(
            state=DraftState.OPEN, code="", reason="", tries=0
        )
        n_open = Draft.objects.filter(generation=generation, state=DraftState.OPEN).count()
        if not n_open and generation.drawn_at is not None:
            raise ConflictError("Every passage that was drawn has its question: there is nothing to ask again.")
        _check_model(workspace, generation.llm)
        n_total = generation.drafts.count() or int(generation.settings["sample_size"])
        generation.job = _start_job(generation, n_total=n_total, created_by=created_by)
        generation.save(update_fields=["job"])
    return generation


def cancel(workspace: Workspace, generation_id: object) -> Generation:
    """Stop. What was made stays; what was not asked for stays open, for a retry."""
    found = Generation.objects.filter(workspace=workspace).select_related("job")
    generation = get(found, generation_id, what="generation")
    if generation.job is None:
        raise ConflictError("Its job is gone: there is nothing to cancel.")
    jobs.cancel(workspace, generation.job.id)
    generation.job.refresh_from_db()
    return generation


_ENDED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


def _start_job(generation: Generation, *, n_total: int, created_by: str) -> Job:
    lane = Lane.SEARCH if generation.llm == local.SPEC else Lane.PROVIDER
    return jobs.start(
        generation.workspace,
        JobKind.GENERATE,
        {"generation": str(generation.id)},
        lane=lane,
        created_by=created_by,
        n_total=n_total,
    )


def _model(workspace: Workspace, request: Request) -> tuple[str, tuple[QuestionKind, ...]]:
    llm = request.llm or settings.LLM or local.SPEC
    _check_model(workspace, llm)
    if llm != local.SPEC:
        return llm, tuple(map(QuestionKind, request.kinds)) or DEFAULT_KINDS
    if request.prompt:
        raise ValidationError("The local generator takes no prompt: name a chat model in llm.", field="prompt")
    if set(request.kinds) - {QuestionKind.KEYWORD}:
        raise ValidationError(
            "The local generator turns headings and sentences into keyword queries and can do nothing else: leave "
            "kinds out, or name a chat model in llm.",
            field="kinds",
        )
    return llm, (QuestionKind.KEYWORD,)


def _check_model(workspace: Workspace, llm: str) -> None:
    if llm == local.SPEC:
        return
    try:
        providers.chat(llm, workspace_id=workspace.id)
        spending.check(workspace.id, llm)
    except ProviderError as error:
        if error.code is ErrorCode.SPEND_LIMIT:
            raise ConflictError(error.message, code=error.code) from error
        raise TouchstoneError(error.code, error.message, field="llm") from error


# ---- drawing


def draw(lease: Lease, generation: Generation) -> int:
    """Insert the drafts, open. Passages that are not worth asking about are passed over and counted by reason.
    Returns how many were drawn."""
    wanted = generation.settings
    base = generation.knowledge_base
    if base is None or base.live_index_id is None:
        raise TouchstoneError(ErrorCode.KB_NOT_READY, "The knowledge base is gone, or has no live Index any more.")
    chunks = Chunk.objects.filter(index_id=base.live_index_id)
    if wanted["source"]:
        chunks = chunks.filter(source_name=wanted["source"])
    if wanted["collection"]:
        chunks = chunks.filter(collection=wanted["collection"])
    sketches = [
        Sketch(id=str(key), document=str(document), collection=collection)
        for key, document, collection in chunks.values_list("id", "document_id", "collection").iterator(10_000)
    ]
    turns = sampling.in_turn(sketches, seed=int(wanted["seed"]))
    skipped: Counter[str] = Counter()
    taken: list[dict[str, Any]] = []
    seen: set[str] = set()
    size = int(wanted["sample_size"])
    while len(taken) < size and (some := list(islice(turns, _READ_AT_ONCE))):
        lease.check()
        by_id = {str(one.id): one for one in Chunk.objects.filter(id__in=[one.id for one in some]).defer("embedding")}
        for sketch in some:
            chunk = by_id.get(sketch.id)
            fault = "gone meanwhile" if chunk is None else _why_not(chunk, language=wanted["language"], seen=seen)
            if fault or chunk is None:
                skipped[fault] += 1
            elif len(taken) < size:
                seen.add(_hash(chunk.text))
                taken.append(_passage(chunk))
    _insert(lease, generation, taken, skipped=skipped)
    return len(taken)


def _why_not(chunk: Chunk, *, language: str, seen: set[str]) -> str:
    if fault := quality.fault_of(chunk.text):
        # Counted by reason: how many words it has in particular is no reason of its own.
        return f"under {quality.LEAST_WORDS} words" if " words, " in fault else fault
    if _hash(chunk.text) in seen:
        return "the same text as another"
    if language and languages.detect(chunk.text) != language:
        return f"not in {language}"
    return ""


def _insert(
    lease: Lease, generation: Generation, taken: Sequence[dict[str, Any]], *, skipped: Mapping[str, int]
) -> None:
    documents = dict(Document.objects.filter(id__in={one["document"] for one in taken}).values_list("id", "bytes_hash"))
    for one in taken:
        one["document_hash"] = documents.get(UUID(one["document"]), "")
    kinds = sampling.kinds_for(len(taken), generation.settings["kinds"])
    rows = []
    for ordinal, (passage, kind) in enumerate(zip(taken, kinds, strict=True)):
        passages = [passage]
        verdicts: list[dict[str, Any]] = []
        if kind == QuestionKind.SEVERAL:
            other = _partner(passage, taken, seed=int(generation.settings["seed"]))
            if other is not None:
                passages.append(other)
            else:
                kind = QuestionKind.FACT  # noqa: PLW2901  told below
                reason = "There is no second passage to go with it: it was asked about as a fact."
                verdicts.append({"filter": "sampling", "action": "flag", "reason": reason, "numbers": {}})
        rows.append(Draft(generation=generation, ordinal=ordinal, kind=kind, passages=passages, verdicts=verdicts))
    with slices.commit(lease):
        # Of two workers that draw, one waits here and then finds the rows.
        locked = Generation.objects.select_for_update().get(id=generation.id)
        if locked.drawn_at is None:
            Draft.objects.bulk_create(rows, batch_size=200)
            locked.skipped, locked.drawn_at = dict(skipped), timezone.now()
            locked.save(update_fields=["skipped", "drawn_at"])


def _partner(passage: Mapping[str, Any], taken: Sequence[dict[str, Any]], *, seed: int) -> dict[str, Any] | None:
    """Another passage: of the same document if it can be, else of the same collection."""
    others = [one for one in taken if one["chunk"] != passage["chunk"]]
    for name in ("document", "collection"):
        near = [one for one in others if one[name] == passage[name]]
        if near:
            return random.Random(f"{seed}:{passage['chunk']}").choice(near)  # noqa: S311  can be drawn again
    return None


def _passage(chunk: Chunk) -> dict[str, Any]:
    return {
        "chunk": str(chunk.id),
        "document": str(chunk.document_id),
        "path": chunk.path,
        "source": chunk.source_name,
        "collection": chunk.collection,
        "heading": chunk.heading,
        "page": chunk.page,
        "start": chunk.start,
        "end": chunk.end,
        "text": chunk.text,
        "text_hash": _hash(chunk.text),
    }


def _hash(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:32]
