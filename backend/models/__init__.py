"""The tables. One Django app; each file one area."""

from backend.models.accounts import (
    SCOPES_OF,
    IdempotencyRecord,
    LoginLink,
    Membership,
    Role,
    Scope,
    Token,
    Workspace,
)
from backend.models.knowledge import (
    Blob,
    CachedEmbedding,
    CachedScore,
    Chunk,
    Document,
    Index,
    IndexedDocument,
    Ingestion,
    KnowledgeBase,
    Source,
    SourceKind,
)
from backend.models.labels import LabelResolution, ResolvedLabel
from backend.models.questions import Question, QuestionSet, QuestionSetVersion, SourceSetFile
from backend.models.runs import Evaluation, ProviderState, Pulse, Result, Run, Slice

__all__ = [
    "SCOPES_OF",
    "Blob",
    "CachedEmbedding",
    "CachedScore",
    "Chunk",
    "Document",
    "Evaluation",
    "IdempotencyRecord",
    "Index",
    "IndexedDocument",
    "Ingestion",
    "KnowledgeBase",
    "LabelResolution",
    "LoginLink",
    "Membership",
    "ProviderState",
    "Pulse",
    "Question",
    "QuestionSet",
    "QuestionSetVersion",
    "ResolvedLabel",
    "Result",
    "Role",
    "Run",
    "Scope",
    "Slice",
    "Source",
    "SourceKind",
    "SourceSetFile",
    "Token",
    "Workspace",
]
