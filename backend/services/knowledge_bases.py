"""Knowledge bases: made, changed, deleted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from backend.core.errors import ConflictError, ErrorCode, Fault, ValidationError
from backend.core.states import OPEN_EVALUATIONS
from backend.models import Baseline, Document, Evaluation, Ingestion, KnowledgeBase, Run, Schedule, Workspace
from backend.services import base_settings, blobs, deadlocks, in_use, ingestion

MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """`ingestion`: the building of a new Index, where the change asks for one."""

    knowledge_base: KnowledgeBase
    ingestion: Ingestion | None


def create(workspace: Workspace, *, name: str, settings: Mapping[str, Any] | None = None) -> KnowledgeBase:
    """An empty base. Raises ValidationError with every fault, ConflictError when the name is taken."""
    name, complete = _checked(workspace.id, name, settings if settings is not None else {}, over=None)
    try:
        with transaction.atomic():
            return KnowledgeBase.objects.create(workspace=workspace, name=name, settings=complete)
    except IntegrityError as error:
        raise _name_is_taken(name) from error


def patch(base: KnowledgeBase, *, name: str | None = None, settings: Mapping[str, Any] | None = None) -> Changed:
    """Change the name or some settings; those not given stay. A change of chunking, embedding or keyword builds a new
    Index beside the live one. Raises ValidationError with every fault, ConflictError when the name is taken."""
    try:
        with transaction.atomic():
            base = ingestion.lock_base(base)
            new_name, complete = _checked(
                base.workspace_id,
                base.name if name is None else name,
                settings if settings is not None else {},
                over=base.settings,
            )
            base.name, base.settings, base.updated_at = new_name, complete, timezone.now()
            base.save(update_fields=["name", "settings", "updated_at"])
            started = ingestion.build_index(base) if settings is not None else None
    except IntegrityError as error:
        raise _name_is_taken(name or "") from error
    return Changed(knowledge_base=base, ingestion=started)


def delete(base: KnowledgeBase, *, force: bool = False) -> None:
    """Delete a base and all that was read into it; runs outlive it. Raises ConflictError while an open evaluation
    uses it; `force` cancels those."""
    # It takes locks of every kind there is, and runs into all who work on the base.
    deadlocks.again(lambda: _delete(base, force=force))


def _delete(base: KnowledgeBase, *, force: bool) -> None:
    with transaction.atomic():
        in_use.check_kept(
            base.name,
            schedules=Schedule.objects.filter(knowledge_base=base),
            baselines=Baseline.objects.filter(run__knowledge_base=base),
            force=force,
        )
        in_use.free(base.name, open_evaluations(base), force=force)
        ingestion.cancel_all(base)
    with transaction.atomic():
        ingestion.lock_base(base)
        blob_ids = list(Document.objects.filter(knowledge_base=base).values_list("blob_id", flat=True).distinct())
        # Set by set: a cascade in Python would first load the ids of every passage.
        with connection.cursor() as cursor:
            for table in ("chunk", "indexeddocument"):
                cursor.execute(
                    f"DELETE FROM backend_{table} WHERE index_id IN "  # noqa: S608  constants only
                    "(SELECT id FROM backend_index WHERE knowledge_base_id = %s)",
                    [base.id],
                )
            cursor.execute("DELETE FROM backend_document WHERE knowledge_base_id = %s", [base.id])
        KnowledgeBase.objects.filter(id=base.id).delete()
    for start in range(0, len(blob_ids), 5000):
        blobs.delete_unused(blob_ids[start : start + 5000])


def open_evaluations(base: KnowledgeBase) -> QuerySet[Evaluation]:
    """The evaluations that are not over and search this base, alone or among others."""
    by_run = Run.objects.filter(evaluation=OuterRef("id"), knowledge_base=base)
    return (
        Evaluation.objects.filter(workspace=base.workspace_id, state__in=OPEN_EVALUATIONS)
        .alias(plan_text=Cast("plan", TextField()), scope_text=Cast("scope", TextField()))
        # A plan names the bases that it froze: an evaluation of the whole workspace has several.
        .filter(Exists(by_run) | Q(plan_text__contains=str(base.id)) | Q(scope_text__contains=str(base.id)))
    )


def _checked(
    workspace_id: UUID, name: Any, settings: Mapping[str, Any], *, over: Mapping[str, Any] | None
) -> tuple[str, base_settings.Settings]:
    faults: list[Fault] = []
    complete: base_settings.Settings = {}
    if not isinstance(name, str) or not name.strip() or len(name.strip()) > MAX_NAME or "\x00" in name:
        faults.append(
            Fault(code=ErrorCode.VALIDATION, message=f"name is a text of 1 to {MAX_NAME} characters.", field="name")
        )
    try:
        complete = base_settings.complete(settings, workspace_id=workspace_id, over=over)
    except ValidationError as error:
        faults += error.faults
    if faults:
        raise ValidationError(faults[0].message, field=faults[0].field, faults=faults)
    return name.strip(), complete


def _name_is_taken(name: str) -> ConflictError:
    return ConflictError(f"There is a knowledge base named {name.strip()!r} already.")
