"""The filters that need nothing but text: form, self-containment, leakage, duplicates. Cheapest first.

Each says pass, flag or drop, in words, with the numbers it went by. A drop is never a deletion: the draft stays, with
its reason, and a person may take it all the same.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backend.core import languages
from backend.core.folding import fold
from backend.core.generation.kinds import Action, LeakageBand, QuestionKind
from backend.core.generation.words import content_words, longest_run, overlap, words

LEAST_WORDS, MOST_WORDS = 4, 40
MOST_KEYWORDS = 12
# How alike two questions are that count as one, by their words; and from where a person should look.
_SAME_WORDS = 0.9
_NEAR_WORDS = 0.7
NEAR_COSINE = 0.95

_QUESTION_SIGN = re.compile(r"[?？؟;]\s*[\"'”»)]*$")
_OPENERS = {
    "english": (
        "what which who whom whose when where why how is are was were do does did can could may must should will would "
        "has have had am list name give tell explain describe"
    ),
    "german": "was wer wie wo wann warum welche welcher welches wieso",
    "french": "que quel quelle quels quelles qui quand comment pourquoi où combien",
    "spanish": "qué cuál cuándo dónde cómo quién cuánto",
    "italian": "che quale quando dove come chi quanto",
    "dutch": "hoe wat wie waar wanneer waarom welke",
    "turkish": "ne nasıl nerede kim kaç hangi niçin neden",
}
_LIST = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.M)
_ORDER = re.compile(
    r"ignore (?:all |any )?(?:the )?(?:previous|prior|above)|disregard (?:all|the|any)"
    r"|(?:score|rate|rank) (?:this|it)\b"
    r"|\bas an ai\b|system prompt|you are (?:now )?an? (?:assistant|ai)|<\|?/?(?:im_start|system|assistant)",
    re.I,
)
_POINTING = re.compile(
    r"\b(?:the|this|that|these|given|provided|following|above)\s+(?:text|passage|excerpt|document|table|figure|section|"
    r"paragraph|article|page|chapter|context|extract|chart|list above|snippet)s?\b"
    r"|\b(?:mentioned|described|listed|shown) (?:above|below|here)\b|\baccording to (?:it|this|them)\b"
    r"|\b(?:im|laut|in diesem|dieser|dieses|dem) (?:text|abschnitt|dokument|tabelle|absatz|auszug)\b"
    r"|\b(?:le|ce|cette|du|dans le) (?:texte|passage|document|tableau|extrait|section)\b"
    r"|\b(?:el|este|esta|del) (?:texto|pasaje|documento|tabla|fragmento|sección)\b"
    r"|\b(?:bu|metne|metinde|belgeye|belgede|yukarıdaki|yukaridaki|aşağıdaki|asagidaki) ?"
    r"(?:metin|metne|metinde|belge|belgede|belgeye|tablo|tabloda|bölüm|bolum|paragraf|göre|gore)\b",
    re.I,
)
_PRONOUN = re.compile(
    r"^(?:what|which|who|when|where|why|how(?: \w+)?|is|are|was|were|does|do|did|can|must|should|will)"
    r"(?: (?:is|are|was|were|does|do|did|can|must|should|will|has|have))? (?:it|they|he|she|this|these|those|them)\b",
    re.I,
)
_FILE = re.compile(r"\b[\w-]+\.(?:pdf|docx?|pptx?|xlsx?|csv|tsv|html?|md|txt|json|xml|eml|odt)\b", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one filter says of one draft. `numbers` are what it went by."""

    filter: str
    action: Action
    reason: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "filter": self.filter,
            "action": self.action.value,
            "reason": self.reason,
            "numbers": dict(self.numbers),
        }


def form(question: str, *, kind: QuestionKind, passage: str) -> Verdict:
    """One question of a usable length, in the passage's language, that gives no orders."""
    n_words = len(words(question))
    asked_in, written_in = languages.detect(question), languages.detect(passage)
    numbers = {"n_words": n_words, "language": asked_in, "passage_language": written_in}

    def drop(reason: str) -> Verdict:
        return Verdict(filter="form", action=Action.DROP, reason=reason, numbers=numbers)

    low, high = (1, MOST_KEYWORDS) if kind is QuestionKind.KEYWORD else (LEAST_WORDS, MOST_WORDS)
    if not low <= n_words <= high:
        return drop(f"It has {n_words} words, where {low} to {high} are usual.")
    if len(re.findall(r"[?？؟]", question)) > 1:
        return drop("It asks more than one question.")
    if _LIST.search(question) or "\n" in question.strip():
        return drop("It is a list, not one question.")
    if _ORDER.search(question):
        return drop("It gives an order instead of asking a question: the passage may hold instructions.")
    if asked_in and written_in and asked_in != written_in:
        return drop(f"It is in {asked_in}, the passage in {written_in}.")
    if kind is not QuestionKind.KEYWORD and not _reads_as_question(question):
        return drop("It does not read as a question.")
    return Verdict(filter="form", action=Action.PASS, numbers=numbers)


def self_contained(question: str, *, path: str) -> Verdict:
    """Somebody who has never seen the passage must be able to ask it."""
    if found := _POINTING.search(question):
        return Verdict(filter="self_containment", action=Action.DROP, reason=f"It points at its passage: “{found[0]}”.")
    name = fold(path.rpartition("/")[2])
    if (found := _FILE.search(question)) or (name and "." in name and name in fold(question)):
        said = found[0] if found else name
        return Verdict(filter="self_containment", action=Action.DROP, reason=f"It names a file: {said}.")
    if found := _PRONOUN.search(question):
        return Verdict(
            filter="self_containment",
            action=Action.FLAG,
            reason=f"“{found[0]}” says nothing to somebody who has not read the passage.",
        )
    return Verdict(filter="self_containment", action=Action.PASS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leakage:
    """`longest_run`: words in a row taken from the passage. `copied`: the share of the question's words of meaning that
    the passage holds."""

    longest_run: int
    copied: float

    @property
    def band(self) -> LeakageBand:
        if self.longest_run >= 5 or (self.longest_run >= 3 and self.copied >= 0.9):
            return LeakageBand.HIGH
        if self.longest_run >= 3 or self.copied >= 0.6:
            return LeakageBand.MIDDLE
        return LeakageBand.LOW


def measure_leakage(question: str, passage: str) -> Leakage:
    asked = content_words(question)
    held = set(words(passage))
    copied = sum(word in held for word in asked) / len(asked) if asked else 0.0
    return Leakage(longest_run=longest_run(words(question), words(passage)), copied=round(copied, 4))


def leakage(question: str, passage: str) -> tuple[Verdict, Leakage]:
    """Never drops: results can be reported by band."""
    found = measure_leakage(question, passage)
    numbers = {"longest_run": found.longest_run, "copied": found.copied, "band": found.band.value}
    if found.band is not LeakageBand.HIGH:
        return Verdict(filter="leakage", action=Action.PASS, numbers=numbers), found
    reason = f"{found.longest_run} words in a row are the passage's own: keyword search will find it easily."
    return Verdict(filter="leakage", action=Action.FLAG, reason=reason, numbers=numbers), found


def duplicate(question: str, others: Iterable[str]) -> Verdict:
    """Against the questions that there are already, by their words."""
    own, bag = fold(question), words(question)
    nearest, most = "", 0.0
    for other in others:
        alike = 1.0 if fold(other) == own else overlap(bag, words(other))
        if alike > most:
            nearest, most = other, alike
    numbers = {"likeness": round(most, 4)}
    if most >= _SAME_WORDS:
        return Verdict(
            filter="duplicates", action=Action.DROP, reason=f"It asks the same as “{nearest}”.", numbers=numbers
        )
    if most >= _NEAR_WORDS:
        return Verdict(filter="duplicates", action=Action.FLAG, reason=f"It is close to “{nearest}”.", numbers=numbers)
    return Verdict(filter="duplicates", action=Action.PASS, numbers=numbers)


def _reads_as_question(question: str) -> bool:
    if _QUESTION_SIGN.search(question.strip()):
        return True
    found = words(question)
    # Turkish and Japanese ask at the end of a sentence.
    return bool(found) and (found[0] in _FOLDED_OPENERS or found[-1] in {"mi", "mu", "mü", "ne", "nedir", "か"})


_FOLDED_OPENERS = frozenset(fold(word) for words_ in _OPENERS.values() for word in words_.split())
