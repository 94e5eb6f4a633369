"""The sample handbook: a base to look at before one has documents of one's own."""

from pathlib import Path

from django.conf import settings

from backend.core.errors import ConflictError
from backend.models import Ingestion, KnowledgeBase, Source, SourceKind, Workspace
from backend.services import knowledge_bases, sources

NAME = "handbook"
HANDBOOK: Path = settings.BASE_DIR / "examples" / "handbook"


def is_there() -> bool:
    """Whether this installation has it."""
    return HANDBOOK.is_dir()


def source_of(workspace: Workspace, folder: Path) -> Source:
    """The folder's base and source, made at the first time; a copy elsewhere has a base of its own."""
    real = str(folder.resolve())
    there = Source.objects.select_related("knowledge_base").filter(
        knowledge_base__workspace=workspace, name=NAME, kind=SourceKind.FOLDER, folder=real
    )
    found = there.order_by("id").first()
    if found is not None:
        return found
    taken = set(KnowledgeBase.objects.filter(workspace=workspace).values_list("name", flat=True))
    names = [NAME, f"{NAME} {real}"[:180], *(f"{NAME} {number}" for number in range(2, 1000))]
    base = knowledge_bases.create(workspace, name=next(name for name in names if name not in taken))
    return sources.create(base, name=NAME, kind=SourceKind.FOLDER, folder=real)


def load(workspace: Workspace) -> Ingestion:
    """Read the handbook into its base, which a second call finds again. Raises ConflictError where there is none."""
    if not is_there():
        raise ConflictError("This installation came without the sample handbook.")
    return sources.sync(source_of(workspace, HANDBOOK))
