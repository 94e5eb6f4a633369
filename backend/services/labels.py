"""Labels resolved in a corpus: read from the table, or made by one pass over the passages and kept there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Count, Model, QuerySet

from backend.core.configs import fingerprint
from backend.core.matching import KnownPaths
from backend.core.resolving import DocumentFact, LabelState, Names, ResolvedExpectation, Resolver, label_of
from backend.core.types import Question
from backend.models import Chunk, Document, Index, LabelResolution, QuestionSetVersion, ResolvedLabel
from backend.queries import questions as question_queries
from backend.search.snapshot import open_snapshot
from backend.search.types import IndexRef, SearchScope

KEPT_DAYS = 90
_ROWS = 1000
# Whole texts are long: few at a time.
_DOCUMENTS = 50
_Model = TypeVar("_Model", bound=Model)


def resolve(
    version: QuestionSetVersion, scope: SearchScope, *, indexes: Sequence[IndexRef] | None = None
) -> LabelResolution:
    """How the version's labels resolve in these Indexes (those of the scope, unless given) as they are now.

    Made once per corpus: a pass over the passages that labels look at, in one snapshot (inside a transaction, in what
    that one sees).
    """
    read = replace(scope, indexes=tuple(indexes or scope.indexes), alternatives=())
    scope_hash = _scope_hash(read)
    _, corpus_hash = _corpus(read)
    found = LabelResolution.objects.filter(version=version, scope_hash=scope_hash, corpus_hash=corpus_hash).first()
    return found or _make(version, read, scope_hash=scope_hash)


def at_generations(
    version: QuestionSetVersion, scope: SearchScope, *, indexes: Sequence[IndexRef], generations: Mapping[str, int]
) -> tuple[LabelResolution, bool]:
    """How they resolved in the corpus of these generations, and whether it is that corpus: where it was not resolved
    while it was there, the one of today is given."""
    read = replace(scope, indexes=tuple(indexes), alternatives=())
    wanted = {str(index.id): generations[str(index.id)] for index in indexes if str(index.id) in generations}
    found = (
        LabelResolution.objects.filter(version=version, scope_hash=_scope_hash(read), generations=wanted)
        .order_by("-created_at", "-id")
        .first()
    )
    if found is not None:
        return found, True
    made = resolve(version, scope, indexes=indexes)
    return made, made.generations == wanted


def known_paths(scope: SearchScope, generations: Mapping[UUID, int]) -> KnownPaths:
    """The documents that judging folds a path's label by, where none is equal: of all Indexes of the scope, at these
    generations. Read once per process and generation."""
    return _known_paths(tuple(sorted((key, generations.get(key, 0)) for key in {one.id for one in scope.all_indexes})))


@lru_cache(maxsize=8)
def _known_paths(indexes: tuple[tuple[UUID, int], ...]) -> KnownPaths:
    held = Document.objects.filter(indexed_in__index__in=[key for key, _ in indexes]).order_by().distinct()
    return KnownPaths(held.values_list("source__name", "path").iterator(chunk_size=_ROWS))


def of(resolution: LabelResolution, *, ordinals: Iterable[int] | None = None) -> dict[int, list[ResolvedLabel]]:
    """The rows by question; only of some questions if given."""
    rows = ResolvedLabel.objects.filter(resolution=resolution).order_by("ordinal", "expectation")
    if ordinals is not None:
        rows = rows.filter(ordinal__in=list(ordinals))
    found: dict[int, list[ResolvedLabel]] = {}
    for row in rows.iterator(chunk_size=_ROWS):
        found.setdefault(row.ordinal, []).append(row)
    return found


def forget(*, now: datetime) -> int:
    """Drop what was resolved KEPT_DAYS ago or earlier: a nightly run over a changing corpus adds one a night. The
    causes of loss of older runs are then told by today's labels, and say so. Returns how many were dropped."""
    old = LabelResolution.objects.filter(created_at__lt=now - timedelta(days=KEPT_DAYS))
    return old.delete()[1].get("backend.LabelResolution", 0)


def _scope_hash(scope: SearchScope) -> str:
    documents = None if scope.documents is None else sorted(map(str, scope.documents))
    return fingerprint([sorted(str(index.id) for index in scope.indexes), documents, scope.source, scope.collection])


def _corpus(scope: SearchScope) -> tuple[dict[str, int], str]:
    """The generations, and a hash that also changes when documents fail or wait: they have no part in a generation."""
    ids = [index.id for index in scope.indexes]
    generations = {str(key): n for key, n in Index.objects.filter(id__in=ids).values_list("id", "generation")}
    states = (
        Document.objects.filter(knowledge_base__in=[index.knowledge_base_id for index in scope.indexes])
        .values_list("state", "code")
        .annotate(n=Count("id"))
        .order_by("state", "code")
    )
    return generations, fingerprint([generations, [list(row) for row in states]])


def _make(version: QuestionSetVersion, scope: SearchScope, *, scope_hash: str) -> LabelResolution:
    questions = list(question_queries.as_core(version))
    with nullcontext() if connection.in_atomic_block else open_snapshot(scope):
        generations, corpus_hash = _corpus(scope)
        resolver = _resolved(questions, scope)
    try:
        with transaction.atomic():
            resolution = LabelResolution.objects.create(
                version=version,
                scope_hash=scope_hash,
                corpus_hash=corpus_hash,
                generations=generations,
                n_expectations=sum(1 for question in resolver.expectations for one in question if one.grade > 0),
            )
            ResolvedLabel.objects.bulk_create(_rows(resolution, resolver), batch_size=_ROWS)
    except IntegrityError:
        # Somebody else resolved them at the same time, and as well.
        return LabelResolution.objects.get(version=version, scope_hash=scope_hash, corpus_hash=corpus_hash)
    return resolution


def _resolved(questions: Sequence[Question], scope: SearchScope) -> Resolver:
    chunks = Chunk.objects.filter(index__in=[index.id for index in scope.indexes])
    indexed = set(chunks.order_by().values_list("document_id", flat=True).distinct())
    resolver = Resolver(questions, _documents(scope, indexed))
    ids = [key for text in resolver.passage_ids if (key := _uuid(text)) is not None]
    if ids:
        # An id that is written with capitals is the same one to the database, and to judging (folded).
        spelled: dict[str, list[str]] = {}
        for text in resolver.passage_ids:
            spelled.setdefault(text.lower(), []).append(text)
        rows = chunks.filter(id__in=ids).values_list("id", "document_id")
        resolver.know_passages({text: str(document) for key, document in rows for text in spelled.get(str(key), ())})
    passages = _some(chunks, "document_id", resolver.open_documents()).values_list("document_id", "text", "id")
    resolver.read_passages(
        (str(document), text, str(key)) for document, text, key in passages.iterator(chunk_size=_ROWS)
    )
    whole = _some(Document.objects.filter(id__in=indexed), "id", resolver.open_documents()).values_list("id", "text")
    resolver.read_texts((str(key), text) for key, text in whole.iterator(chunk_size=_DOCUMENTS))
    return resolver


def _documents(scope: SearchScope, indexed: set[UUID]) -> Iterator[DocumentFact]:
    rows = Document.objects.filter(knowledge_base__in=[index.knowledge_base_id for index in scope.indexes]).values_list(
        "id", "path", "source__name", "collection", "code", "reason"
    )
    for key, path, source, collection, code, reason in rows.order_by("path", "id").iterator(chunk_size=_ROWS):
        yield DocumentFact(
            id=str(key),
            path=path,
            source=source,
            indexed=key in indexed,
            in_scope=(scope.documents is None or key in scope.documents)
            and (not scope.source or scope.source == source)
            and (not scope.collection or scope.collection == collection),
            code=code,
            reason=reason,
        )


def _some(rows: QuerySet[_Model, _Model], key: str, documents: list[str] | None) -> QuerySet[_Model, _Model]:
    """The rows of these documents, in no order: sorting so much text would cost more than reading it. None: all."""
    if documents is not None:
        rows = rows.filter(**{f"{key}__in": documents}) if documents else rows.none()
    return rows.order_by()


def _rows(resolution: LabelResolution, resolver: Resolver) -> Iterator[ResolvedLabel]:
    names = Names((one.source, one.path) for one in resolver.documents.values() if one.indexed)
    for ordinal, merged in enumerate(resolver.expectations):
        for resolved in resolver.of(ordinal):
            is_plain = resolved.state is LabelState.RESOLVED and not resolved.alternative.looks_at_content
            if merged[resolved.index].grade > 0 and not is_plain:
                yield _row(resolution, resolver, names, ordinal, resolved)


def _row(
    resolution: LabelResolution, resolver: Resolver, names: Names, ordinal: int, resolved: ResolvedExpectation
) -> ResolvedLabel:
    named = resolved.alternative.path or resolved.alternative.document
    nearest: tuple[str, ...] = ()
    if resolved.state is LabelState.NO_DOCUMENT and named is not None:
        nearest = names.of(named, source=resolved.alternative.source)
    elsewhere = resolver.documents.get(resolved.elsewhere)
    return ResolvedLabel(
        resolution=resolution,
        ordinal=ordinal,
        expectation=resolved.index,
        state=resolved.state,
        label=label_of(resolved.alternative),
        documents=[UUID(one) for one in resolved.documents],
        n_passages=resolved.n_passages,
        nearest=list(nearest),
        elsewhere="" if elsewhere is None else elsewhere.path,
    )


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
