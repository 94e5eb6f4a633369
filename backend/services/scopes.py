"""From what a request calls its scope to the Indexes and filters of a search, inside one workspace."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from backend.core.errors import (
    ConflictError,
    ErrorCode,
    Fault,
    NotFoundError,
    TouchstoneError,
    ValidationError,
    together,
)
from backend.core.states import IndexState
from backend.models import Document, Index, KnowledgeBase, Source, Workspace
from backend.queries.lookups import as_uuid, get
from backend.search.types import IndexRef, SearchScope
from backend.services import base_settings

_ROOTS = ("workspace", "knowledge_base", "documents")
_FILTERS = ("source", "collection")
_MAX_DOCUMENTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedScope:
    """`knowledge_base` is set where the scope is one base (or documents of one). `canonical` is the scope as it is
    stored and shown: ids as texts, documents sorted."""

    scope: SearchScope
    knowledge_base: KnowledgeBase | None
    canonical: dict[str, Any]


def resolve(
    workspace: Workspace,
    scope: Mapping[str, Any],
    *,
    wait_for_index: bool = False,
    index_overrides: Sequence[str] = (),
) -> ResolvedScope:
    """Raises ValidationError (all faults together), NotFoundError for what is not the workspace's, ConflictError with
    KB_NOT_READY or KB_EMPTY.

    `workspace` means every ready base. `wait_for_index` takes the Index that is being built where a base has no live
    one. `index_overrides` are the Indexes that configurations name; each must belong to a base of the scope.
    """
    root = _checked(scope)
    documents: list[Document] = []
    if root == "workspace":
        if as_uuid(scope[root], what="workspace") != workspace.id:
            raise NotFoundError("workspace", scope[root])
        bases = list(_bases(workspace).order_by("id"))
    elif root == "knowledge_base":
        bases = [get(_bases(workspace), scope[root], what="knowledge base")]
    else:
        documents = _documents(workspace, scope[root])
        bases = list(_bases(workspace).filter(id__in={each.knowledge_base_id for each in documents}).order_by("id"))
    _check_filters(scope, bases)
    indexes = _indexes(bases, wait_for_index=wait_for_index, skip_unready=root == "workspace")
    resolved = SearchScope(
        indexes=tuple(_ref(index) for index in indexes),
        documents=frozenset(each.id for each in documents) if root == "documents" else None,
        source=scope.get("source") or "",
        collection=scope.get("collection") or "",
        alternatives=tuple(_alternatives(index_overrides, indexes, wait_for_index=wait_for_index)),
    )
    canonical: dict[str, Any] = {
        root: sorted(str(each.id) for each in documents)
        if root == "documents"
        else str(workspace.id if root == "workspace" else bases[0].id)
    }
    canonical |= {name: scope[name] for name in _FILTERS if scope.get(name)}
    base = bases[0] if root != "workspace" and len(bases) == 1 else None
    return ResolvedScope(scope=resolved, knowledge_base=base, canonical=canonical)


def _bases(workspace: Workspace) -> QuerySet[KnowledgeBase]:
    return KnowledgeBase.objects.filter(workspace=workspace).select_related("live_index")


def _checked(scope: Mapping[str, Any]) -> str:
    """The scope's root, when its form is right."""
    faults: list[Fault] = []

    def fault(message: str, field: str) -> None:
        faults.append(Fault(code=ErrorCode.VALIDATION, message=message, field=field))

    if not isinstance(scope, Mapping):
        raise ValidationError("scope is an object such as {'knowledge_base': ID}.", field="scope")
    for unknown in sorted(set(scope) - {*_ROOTS, *_FILTERS}, key=str):
        fault(f"A scope has no {unknown!r}. It has: {', '.join((*_ROOTS, *_FILTERS))}.", f"scope.{unknown}")
    roots = [root for root in _ROOTS if scope.get(root)]
    if len(roots) != 1:
        fault("A scope is exactly one of workspace, knowledge_base and documents (not an empty list).", "scope")
    for name in ("workspace", "knowledge_base", *_FILTERS):
        value = scope.get(name)
        if value is not None and not isinstance(value, str | UUID):
            fault(f"{name} is a text, not {value!r}.", f"scope.{name}")
    documents = scope.get("documents")
    if documents is not None and not (
        isinstance(documents, list | tuple) and all(isinstance(key, str | UUID) for key in documents)
    ):
        fault("documents is a list of document ids.", "scope.documents")
    elif documents is not None and len(documents) > _MAX_DOCUMENTS:
        fault(f"A scope names at most {_MAX_DOCUMENTS} documents; narrow it by collection instead.", "scope.documents")
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    return roots[0]


def _documents(workspace: Workspace, keys: Sequence[Any]) -> list[Document]:
    refused: list[TouchstoneError] = []
    wanted: dict[UUID, None] = {}
    for key in keys:
        try:
            wanted[as_uuid(key, what="document")] = None
        except NotFoundError as error:
            refused.append(error)
    rows = Document.objects.filter(knowledge_base__workspace=workspace, id__in=wanted).only("id", "knowledge_base_id")
    found = {row.id: row for row in rows}
    refused += [NotFoundError("document", key) for key in wanted if key not in found]
    if refused:
        raise together(refused)
    return [found[key] for key in wanted]


def _check_filters(scope: Mapping[str, Any], bases: Iterable[KnowledgeBase]) -> None:
    """A name that is nowhere in the bases is a slip, not a search without results."""
    faults = []
    sources = Source.objects.filter(knowledge_base__in=[base.id for base in bases])
    documents = Document.objects.filter(knowledge_base__in=[base.id for base in bases])
    for name, values in (
        ("source", sources.order_by("name").values_list("name", flat=True)),
        ("collection", documents.exclude(collection="").order_by("collection").values_list("collection", flat=True)),
    ):
        wanted = scope.get(name)
        if not wanted:
            continue
        there = sorted(set(values.distinct()))
        if wanted not in there:
            told = ", ".join(there[:20]) + (", …" if len(there) > 20 else "")
            faults.append(
                Fault(
                    code=ErrorCode.VALIDATION,
                    message=f"There is no {name} {wanted!r} here. There are: {told or 'none'}.",
                    field=f"scope.{name}",
                )
            )
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)


def _indexes(bases: Sequence[KnowledgeBase], *, wait_for_index: bool, skip_unready: bool) -> list[Index]:
    found: list[Index] = []
    refused: list[ConflictError] = []
    for base in bases:
        try:
            found.append(_index(base, wait_for_index=wait_for_index))
        except ConflictError as error:
            if not skip_unready:
                raise
            refused.append(error)
    if not found:
        # Nothing at all to search: the base that could be waited for says more than those that hold nothing.
        unready = [each for each in refused if each.code is ErrorCode.KB_NOT_READY]
        raise (
            unready[0]
            if unready
            else ConflictError("There is nothing to search: no base holds anything.", code=ErrorCode.KB_EMPTY)
        )
    return found


def _index(base: KnowledgeBase, *, wait_for_index: bool) -> Index:
    live = base.live_index
    if live is not None:
        if live.n_chunks == 0:
            raise ConflictError(f"{base.name} holds nothing to search: add documents first.", code=ErrorCode.KB_EMPTY)
        return live
    building = base.indexes.filter(state=IndexState.BUILDING).order_by("-created_at", "-id").first()
    if building is not None and wait_for_index:
        return building
    if building is not None:
        raise ConflictError(
            f"{base.name} is still being indexed. Wait until it is ready, or ask with wait_for_index.",
            code=ErrorCode.KB_NOT_READY,
        )
    if not base.documents.exists():
        raise ConflictError(f"{base.name} holds nothing to search: add documents first.", code=ErrorCode.KB_EMPTY)
    raise ConflictError(f"{base.name} has no Index: its last build failed.", code=ErrorCode.KB_NOT_READY)


def _alternatives(keys: Iterable[str], indexes: Sequence[Index], *, wait_for_index: bool) -> list[IndexRef]:
    found = []
    bases = {index.knowledge_base_id for index in indexes}
    for key in dict.fromkeys(keys):
        index = get(Index.objects.filter(knowledge_base__in=bases), key, what="Index")
        built = index.ready_at is not None and index.state in {IndexState.READY, IndexState.RETIRED}
        if not built and not (wait_for_index and index.state == IndexState.BUILDING):
            raise ConflictError(f"Index {index.id} is {index.state}, not ready.", code=ErrorCode.KB_NOT_READY)
        found.append(_ref(index))
    return found


def _ref(index: Index) -> IndexRef:
    return IndexRef(
        id=index.id,
        knowledge_base_id=index.knowledge_base_id,
        embedder=base_settings.embedder_of(index.settings),
        language=str(index.settings.get("keyword", {}).get("language") or "simple"),
        dimensions=index.dimensions,
        settings=index.settings,
    )
