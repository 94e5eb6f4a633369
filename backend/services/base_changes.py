"""What a change of a base's settings would do, told before it is done."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from backend.core import configs
from backend.core.states import IndexState
from backend.models import Index, KnowledgeBase
from backend.services import base_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One setting, as a path such as `chunking.size`; None: there was, or will be, none."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`rebuilds`: a new Index is made of `n_documents`. `is_embedded_anew`: with vectors of another model, so that
    none of the `n_chunks` there are now can come from the cache."""

    settings: Mapping[str, Any]
    changes: tuple[Change, ...]
    rebuilds: bool
    is_embedded_anew: bool
    embedder: str
    n_documents: int
    n_chunks: int


def preview(base: KnowledgeBase, given: Mapping[str, Any]) -> Preview:
    """Raises ValidationError with every fault of the settings."""
    wanted = base_settings.complete(given, workspace_id=base.workspace_id, over=base.settings)
    live = Index.objects.filter(id=base.live_index_id).first() if base.live_index_id else None
    n_documents = base.documents.count()
    # As services/ingestion.py decides it.
    fitting = Index.objects.filter(
        Q(id=base.live_index_id) | Q(state=IndexState.BUILDING),
        knowledge_base=base,
        fingerprint=configs.fingerprint(base_settings.of_index(wanted)),
    )
    rebuilds = (live is not None or n_documents > 0) and not fitting.exists()
    compared = live.settings if live is not None else base_settings.of_index(base.settings)
    return Preview(
        settings=wanted,
        changes=tuple(_changes(base.settings, wanted)),
        rebuilds=rebuilds,
        is_embedded_anew=rebuilds and wanted["embedding"] != compared.get("embedding"),
        embedder=base_settings.embedder_of(wanted),
        n_documents=n_documents,
        n_chunks=live.n_chunks if live is not None else 0,
    )


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> list[Change]:
    found: list[Change] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if isinstance(old, Mapping) or isinstance(new, Mapping):
            found += _changes(
                old if isinstance(old, Mapping) else {}, new if isinstance(new, Mapping) else {}, f"{prefix}{name}."
            )
        elif old != new:
            found.append(Change(path=f"{prefix}{name}", before=old, after=new))
    return found
