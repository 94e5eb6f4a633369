"""The states of evaluations, runs, slices, documents and indexes, and which of them are open."""

from enum import StrEnum


class EvaluationState(StrEnum):
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    AGGREGATING = "aggregating"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


class RunState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SCORED = "scored"
    UNAVAILABLE = "unavailable"
    CANCELLED = "cancelled"
    FAILED = "failed"


class RunKind(StrEnum):
    """How a run's rankings came to be: searched here, taken from another run and scored anew, or made elsewhere."""

    SEARCHED = "searched"
    RESCORED = "rescored"
    IMPORTED = "imported"


class SliceState(StrEnum):
    """`pending` waits for a place, `queued` has a doorbell out, `leased` is being worked on; the rest are ends."""

    PENDING = "pending"
    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    SPLIT = "split"
    GIVEN_UP = "given_up"
    CANCELLED = "cancelled"


class SliceKind(StrEnum):
    PREPARE = "prepare"
    EMBED = "embed"
    SEARCH = "search"
    RERANK = "rerank"
    ANSWER = "answer"
    AGGREGATE = "aggregate"
    INGEST = "ingest"
    JOB = "job"


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


class JobKind(StrEnum):
    """What a job does; each has its handler in backend/services/handlers/job.py."""

    PREFLIGHT = "preflight"
    COMPARISON = "comparison"
    RESCORE = "rescore"
    IMPORT = "import"
    EXPORT = "export"
    GENERATE = "generate"
    GATE = "gate"
    ALERT = "alert"
    SURVEY = "survey"


class FileRole(StrEnum):
    """A job's file: what it was given to work on, and what it made."""

    INPUT = "input"
    OUTPUT = "output"


class Lane(StrEnum):
    """Which workers take it. Also the name of the Celery queue."""

    CONTROL = "control"
    SEARCH = "search"
    PROVIDER = "provider"


class DocumentState(StrEnum):
    PENDING = "pending"
    INDEXED = "indexed"
    FAILED = "failed"


class IndexState(StrEnum):
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    RETIRED = "retired"


class IngestionState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FiringState(StrEnum):
    """What became of a schedule's slot. `missed`: nothing looked at the clock until its grace was over. `covered`:
    several slots passed within the grace, and the latest of them ran."""

    STARTED = "started"
    SKIPPED = "skipped"
    COVERED = "covered"
    MISSED = "missed"
    FAILED = "failed"


TERMINAL = frozenset({EvaluationState.COMPLETED, EvaluationState.FAILED, EvaluationState.CANCELLED})
OPEN_EVALUATIONS = frozenset(EvaluationState) - TERMINAL
WORKING = frozenset({EvaluationState.PREPARING, EvaluationState.RUNNING})
OPEN_SLICES = frozenset({SliceState.PENDING, SliceState.QUEUED, SliceState.LEASED})
OPEN_INGESTIONS = frozenset({IngestionState.QUEUED, IngestionState.RUNNING})
OPEN_JOBS = frozenset({JobState.QUEUED, JobState.RUNNING, JobState.CANCELLING})
