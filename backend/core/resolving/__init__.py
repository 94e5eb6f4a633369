"""What the labels of a question set mean in a corpus, and what is wrong with the set itself."""

from backend.core.resolving.checks import FindingKind, Noted, check_questions
from backend.core.resolving.nearest import Names
from backend.core.resolving.resolver import DocumentFact, LabelState, ResolvedExpectation, Resolver, label_of

__all__ = [
    "DocumentFact",
    "FindingKind",
    "LabelState",
    "Names",
    "Noted",
    "ResolvedExpectation",
    "Resolver",
    "check_questions",
    "label_of",
]
