"""What an alert says: what it is about, what changed since it was well, and which questions were lost."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from backend.core.comparison import CorpusChange

MOST_LOST = 50


class AlertKind(StrEnum):
    """`gate`: a rule broke. `missed`: slots passed and nothing ran. `not_run`: a schedule's evaluation could not start
    or failed. `provider`: a provider died."""

    GATE = "gate"
    MISSED = "missed"
    NOT_RUN = "not_run"
    PROVIDER = "provider"


class AlertState(StrEnum):
    OPEN = "open"
    RESOLVED = "resolved"


class Event(StrEnum):
    OPENED = "opened"
    RESOLVED = "resolved"
    TEST = "test"


class TargetKind(StrEnum):
    EMAIL = "email"
    WEBHOOK = "webhook"


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run was made of, as far as it can be the cause of another outcome."""

    corpus: str
    labels: str
    config: Mapping[str, Any]
    config_fingerprint: str
    definitions: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelChange:
    """Questions of the set that came, went, or expect something else."""

    n_added: int = 0
    n_removed: int = 0
    n_changed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What differs between two runs. `documents` and `labels` are None where they are the same, or where nobody kept
    what they were (then `*_unknown`). `settings` are the names of those that differ."""

    documents: CorpusChange | None = None
    documents_unknown: bool = False
    labels: LabelChange | None = None
    labels_unknown: bool = False
    settings: tuple[str, ...] = ()
    definitions_changed: bool = False
    code_changed: bool = False

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each part in a few words, those that are the same too."""
        said = [_counted("corpus", "documents", self.documents, unknown=self.documents_unknown)]
        said.append(_counted("labels", "questions", self.labels, unknown=self.labels_unknown))
        said.append(f"configuration changed ({', '.join(self.settings)})" if self.settings else "configuration same")
        if self.definitions_changed:
            said.append("metric definitions changed")
        if self.code_changed:
            said.append("Touchstone's version changed")
        return tuple(said)

    def to_json(self) -> dict[str, Any]:
        return {
            "documents": None if self.documents is None else asdict(self.documents),
            "documents_unknown": self.documents_unknown,
            "labels": None if self.labels is None else asdict(self.labels),
            "labels_unknown": self.labels_unknown,
            "settings": list(self.settings),
            "definitions_changed": self.definitions_changed,
            "code_changed": self.code_changed,
            "sentences": list(self.sentences),
        }


def cause(before: Measured, after: Measured, *, documents: CorpusChange | None, labels: LabelChange | None) -> Cause:
    """`documents` and `labels` count the change where the caller knows it; fingerprints say whether there is one."""
    other_corpus, other_labels = before.corpus != after.corpus, before.labels != after.labels
    return Cause(
        documents=documents if other_corpus else None,
        documents_unknown=other_corpus and documents is None,
        labels=labels if other_labels else None,
        labels_unknown=other_labels and labels is None,
        settings=_differing(before, after),
        definitions_changed=before.definitions != after.definitions,
        code_changed=before.code != after.code,
    )


def lost(before: Mapping[str, int | None], after: Mapping[str, int | None], *, k: int) -> tuple[str, ...]:
    """The questions found in the first k before, and scored but not found there now; by key, in order."""
    return tuple(
        key for key, rank in before.items() if _is_found(rank, k) and key in after and not _is_found(after[key], k)
    )


def _is_found(rank: int | None, k: int) -> bool:
    return rank is not None and rank <= k


def _differing(before: Measured, after: Measured) -> tuple[str, ...]:
    if before.config_fingerprint == after.config_fingerprint:
        return ()
    names = sorted({*before.config, *after.config} - {"name"})
    differing = tuple(name for name in names if before.config.get(name) != after.config.get(name))
    # The same settings over an Index of other settings.
    return differing or ("index",)


def _counted(what: str, things: str, change: CorpusChange | LabelChange | None, *, unknown: bool) -> str:
    if unknown:
        return f"{what} changed"
    if change is None:
        return f"{what} same"
    parts = [
        f"{sign}{n}" if sign else f"{n} changed"
        for sign, n in (("+", change.n_added), ("-", change.n_removed), ("", change.n_changed))
        if n
    ]
    return f"{what} {', '.join(parts) or '±0'} {things}"


def body(
    *,
    event: Event,
    alert: Mapping[str, Any],
    lost_questions: Sequence[Mapping[str, Any]],
    with_texts: bool,
) -> dict[str, Any]:
    """What is sent: questions by id alone, unless the owner allows their texts to leave."""
    told = [
        {"id": one["id"], **({"question": one["question"]} if with_texts and one.get("question") else {})}
        for one in lost_questions[:MOST_LOST]
    ]
    return {"event": event.value, **alert, "lost": told, "n_lost": len(lost_questions)}


def to_text(message: Mapping[str, Any]) -> str:
    """The body of an e-mail."""
    lines = [str(message["title"]), ""]
    lines += [f"- {sentence}" for sentence in message.get("sentences", ())]
    if message.get("because"):
        lines += ["", f"Since it was well: {'; '.join(message['because'])}."]
    if message.get("n_lost"):
        lines += ["", f"Lost questions: {message['n_lost']}"]
        lines += [f"  {one['id']}" + (f": {one['question']}" if "question" in one else "") for one in message["lost"]]
        if message["n_lost"] > len(message["lost"]):
            lines.append(f"  and {message['n_lost'] - len(message['lost'])} more")
    for name in ("schedule", "gate", "evaluation"):
        if message.get(name):
            lines += ["", f"{name}: {message[name]}"] if name == "schedule" else [f"{name}: {message[name]}"]
    if message.get("url"):
        lines += ["", str(message["url"])]
    return "\n".join(lines) + "\n"
