"""The words that fields choose from, each list once: the schema names them (SPECTACULAR_SETTINGS)."""

from backend.core.alerts import AlertKind, AlertState, DeliveryState, TargetKind
from backend.core.answers.kinds import AnswerOutcome
from backend.core.diagnosis import Cause
from backend.core.gates import Outcome as GateOutcome
from backend.core.gates import RuleKind
from backend.core.gates import Status as RuleStatus
from backend.core.generation.kinds import Action, DraftState, LeakageBand, QuestionKind
from backend.core.imported_rankings import Format
from backend.core.question_sets import format_names
from backend.core.states import (
    DocumentState,
    EvaluationState,
    FiringState,
    IndexState,
    IngestionState,
    JobKind,
    JobState,
    RunKind,
    RunState,
)
from backend.core.types import Level, Outcome
from backend.models import SourceKind
from backend.queries.baselines import BaselineState
from backend.queries.knowledge import BaseState
from backend.queries.waiting import Pause

EVALUATION_STATES = [one.value for one in EvaluationState]
RUN_STATES = [one.value for one in RunState]
RUN_KINDS = [one.value for one in RunKind]
DOCUMENT_STATES = [one.value for one in DocumentState]
INGESTION_STATES = [one.value for one in IngestionState]
JOB_STATES = [one.value for one in JobState]
JOB_KINDS = [one.value for one in JobKind]
ANSWER_OUTCOMES = [one.value for one in AnswerOutcome]
DRAFT_STATES = [one.value for one in DraftState]
QUESTION_KINDS = [one.value for one in QuestionKind]
LEAKAGE_BANDS = [one.value for one in LeakageBand]
VERDICT_ACTIONS = [one.value for one in Action]
INDEX_STATES = [one.value for one in IndexState]
WAITING_STATES = [one.value for one in Pause]
BASE_STATES = [one.value for one in BaseState]
SOURCE_KINDS = [one.value for one in SourceKind]
LEVELS = [one.value for one in Level]
OUTCOMES = [one.value for one in Outcome]
CAUSES = [one.value for one in Cause]
RANKING_FORMATS = [one.value for one in Format]
SET_FORMATS = list(format_names())
FIRING_STATES = [one.value for one in FiringState]
BASELINE_STATES = [one.value for one in BaselineState]
GATE_OUTCOMES = [one.value for one in GateOutcome]
RULE_KINDS = [one.value for one in RuleKind]
RULE_STATUSES = [one.value for one in RuleStatus]
ALERT_KINDS = [one.value for one in AlertKind]
ALERT_STATES = [one.value for one in AlertState]
TARGET_KINDS = [one.value for one in TargetKind]
DELIVERY_STATES = [one.value for one in DeliveryState]
