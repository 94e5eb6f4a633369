"""The tables. One Django app; each file one area."""

from backend.models.access import AuditEvent, LoginFailures, ProviderKey
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
from backend.models.answers import Answer, CachedReply
from backend.models.generation import Draft, Generation
from backend.models.jobs import Job, JobFile
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
from backend.models.runs import Evaluation, ProgressEntry, ProviderState, Pulse, Result, Run, Slice
from backend.models.schedules import (
    Alert,
    AlertTarget,
    Baseline,
    CorpusSnapshot,
    Delivery,
    Firing,
    Gate,
    GateCheck,
    Schedule,
)
from backend.models.spend import Purpose, SpendEntry, SpendMonth
from backend.models.tallies import Tally

__all__ = [
    "SCOPES_OF",
    "Alert",
    "AlertTarget",
    "Answer",
    "AuditEvent",
    "Baseline",
    "Blob",
    "CachedEmbedding",
    "CachedReply",
    "CachedScore",
    "Chunk",
    "CorpusSnapshot",
    "Delivery",
    "Document",
    "Draft",
    "Evaluation",
    "Firing",
    "Gate",
    "GateCheck",
    "Generation",
    "IdempotencyRecord",
    "Index",
    "IndexedDocument",
    "Ingestion",
    "Job",
    "JobFile",
    "KnowledgeBase",
    "LabelResolution",
    "LoginFailures",
    "LoginLink",
    "Membership",
    "ProgressEntry",
    "ProviderKey",
    "ProviderState",
    "Pulse",
    "Purpose",
    "Question",
    "QuestionSet",
    "QuestionSetVersion",
    "ResolvedLabel",
    "Result",
    "Role",
    "Run",
    "Schedule",
    "Scope",
    "Slice",
    "Source",
    "SourceKind",
    "SourceSetFile",
    "SpendEntry",
    "SpendMonth",
    "Tally",
    "Token",
    "Workspace",
]
