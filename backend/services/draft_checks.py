"""The filters over one draft, cheapest first. The first that drops it ends the checking: what costs a call or a search
is not spent on a question that nobody will see."""

from collections.abc import Callable
from typing import Any, Protocol
from uuid import UUID

import numpy as np

from backend.core.configs import RetrievalConfig
from backend.core.folding import fold
from backend.core.generation import filters, local, parsing, prompts
from backend.core.generation.filters import Verdict
from backend.core.generation.kinds import Action, DraftState, QuestionKind
from backend.core.generation.parsing import MadeQuestion
from backend.core.generation.words import likeness, words
from backend.core.replies import UnreadableReplyError
from backend.core.types import Passage
from backend.models import Draft, Generation, Purpose
from backend.providers.base import ProviderError
from backend.providers.chat import Ask, Ending, system_and_user
from backend.search import chatting, embedding, pipeline
from backend.search.ledger import PaidFor
from backend.search.pacing import PacedError
from backend.search.snapshot import open_snapshot
from backend.search.types import Failure, Ranked
from backend.services import scopes
from backend.services.slices import Lease

# How far the round trip looks, in each of two retrievers: a filter by the retriever under test would favour it.
ROUND_TRIP_DEPTH = 50
_TWINS_AMONG = 20
_TWIN_LIKENESS = 0.8
_LEGS = {
    "semantic": RetrievalConfig(name="semantic", base="semantic", depth=ROUND_TRIP_DEPTH),
    "keyword": RetrievalConfig(name="keyword", base="keyword", depth=ROUND_TRIP_DEPTH),
}
_ANSWER_TOKENS = 400


class Told(Protocol):
    """What the checks add to (services/drafting.py)."""

    state: DraftState
    code: str
    reason: str
    verdicts: list[dict[str, Any]]
    changes: dict[str, Any]
    checks: dict[str, str]
    units: list[Any]


class Checker:
    """The checks of one generation, by one worker: it remembers the questions that there are, and their vectors."""

    def __init__(self, made: Generation, lease: Lease) -> None:
        self._made = made
        self._lease = lease
        kept = [DraftState.PENDING, DraftState.ACCEPTED]
        rows = made.drafts.filter(state__in=kept).order_by("ordinal").values_list("question", flat=True)
        self._questions: list[str] = list(rows)
        self._vectors: dict[str, np.ndarray[Any, Any]] = {}
        self._scope = scopes.resolve(made.workspace, {"knowledge_base": str(made.knowledge_base_id)}).scope

    def folded_questions(self) -> list[str]:
        return [" ".join(words(one)) for one in self._questions]

    def check(self, draft: Draft, question: MadeQuestion, told: Told) -> None:
        """Adds verdicts to `told`, and moves it to `dropped` at the first that drops."""
        texts = [passage["text"] for passage in draft.passages]
        whole = "\n\n".join(texts)
        kind = QuestionKind(draft.kind)
        asked = question.question
        leak, leakage = filters.leakage(asked, whole)
        told.changes |= {
            "leakage_run": leakage.longest_run,
            "leakage_copied": leakage.copied,
            "leakage_band": leakage.band.value,
        }
        self._label(draft, question, told)
        steps: list[Callable[[], Verdict]] = [
            lambda: filters.form(asked, kind=kind, passage=whole),
            lambda: filters.self_contained(asked, path=draft.passages[0]["path"]),
            lambda: leak,
            lambda: filters.duplicate(asked, self._questions),
            lambda: Verdict(filter="source_quality", action=Action.PASS),
            lambda: self._near(asked),
            lambda: self._answerable(asked, texts, kind=kind, told=told),
            lambda: self._round_trip(draft, asked, kind=kind, told=told),
        ]
        for step in steps:
            verdict = step()
            told.verdicts.append(verdict.to_json())
            if verdict.action is Action.DROP:
                told.state, told.code, told.reason = DraftState.DROPPED, verdict.filter, verdict.reason
                return
        self._questions.append(asked)

    def _label(self, draft: Draft, question: MadeQuestion, told: Told) -> None:
        """The snippet that stands for each passage. With several passages the quote lies in one of them."""
        labelled = []
        for passage in draft.passages:
            snippet = parsing.snippet_of(
                passage["text"], quote=question.quote, hints=(question.answer, question.question)
            )
            labelled.append({**passage, "snippet": snippet.text, "is_quoted": snippet.is_quoted})
        told.changes["passages"] = labelled

    def _vector(self, text: str) -> "np.ndarray[Any, Any] | None":
        index = self._scope.indexes[0]
        if not index.embedder:
            return None
        if text not in self._vectors:
            found = embedding.embed_queries(
                self._made.workspace_id,
                index.embedder,
                [text],
                query_prefix=index.query_prefix,
                timeout=self._lease.seconds_left,
                paid_for=self._paid_for,
            )
            vector = np.asarray(found.vectors[0], dtype=float)
            self._vectors[text] = vector / max(float(np.linalg.norm(vector)), 1e-12)
        return self._vectors[text]

    @property
    def _paid_for(self) -> PaidFor:
        return PaidFor(purpose=Purpose.GENERATION, owner=self._lease.job)

    def _near(self, asked: str) -> Verdict:
        """Near-duplicates by meaning. The vectors are those that a run over the questions will look up again."""
        name = "near_duplicates"
        try:
            own = self._vector(asked)
            others = [(other, self._vector(other)) for other in self._questions]
        except PacedError:
            raise
        except ProviderError as error:
            return Verdict(filter=name, action=Action.SKIP, reason=error.message)
        if own is None:
            return Verdict(filter=name, action=Action.SKIP, reason="The base has no embedding model.")
        scored = [(float(own @ vector), other) for other, vector in others if vector is not None]
        nearest = max(scored, default=(0.0, ""))
        numbers = {"cosine": round(nearest[0], 4)}
        if nearest[0] >= filters.NEAR_COSINE:
            reason = f"It means the same as “{nearest[1]}”."
            return Verdict(filter=name, action=Action.FLAG, reason=reason, numbers=numbers)
        return Verdict(filter=name, action=Action.PASS, numbers=numbers)

    def _answerable(self, asked: str, texts: list[str], *, kind: QuestionKind, told: Told) -> Verdict:
        """Whether the passage alone answers it: what does not is dropped, and what should not and does is, too."""
        name = "answerability"
        if self._made.llm == local.SPEC:
            return Verdict(filter=name, action=Action.SKIP, reason="It needs a chat model.")
        if not self._made.settings["answerability"]:
            return Verdict(filter=name, action=Action.SKIP, reason="It was not asked for.")
        prompt = prompts.answerability(asked, texts)
        replied = chatting.ask(
            self._made.workspace_id,
            self._made.llm,
            Ask(
                name="answerability",
                messages=system_and_user(prompt.system, prompt.user),
                schema=prompts.ANSWERABILITY_SCHEMA,
                max_tokens=_ANSWER_TOKENS,
            ),
            timeout=self._lease.call_seconds(local=False),
            paid_for=self._paid_for,
        )
        told.units.append(replied.reply.units)
        told.checks[name] = replied.reply.text.replace("\x00", "")[:5000]
        if replied.reply.ending is not Ending.COMPLETE:
            reason = f"The model's reply was {replied.reply.ending.value}: nobody has checked it."
            return Verdict(filter=name, action=Action.FLAG, reason=reason)
        try:
            answerable, _ = parsing.read_answerable(replied.reply.text)
        except UnreadableReplyError as error:
            return Verdict(filter=name, action=Action.FLAG, reason=f"Nobody has checked it. {error}")
        chatting.keep(self._made.workspace_id, replied)
        wanted = kind is not QuestionKind.UNANSWERABLE
        if answerable is wanted:
            return Verdict(filter=name, action=Action.PASS)
        reason = (
            "The passage alone does not answer it." if wanted else "The passage answers it, so it is not unanswerable."
        )
        return Verdict(filter=name, action=Action.DROP, reason=reason)

    def _round_trip(self, draft: Draft, asked: str, *, kind: QuestionKind, told: Told) -> Verdict:
        """Whether meaning or words find the passage within the first fifty: a flag, never a drop, or hard questions
        would vanish. The same look finds near-twins of the passage, which become alternatives of its label."""
        name = "round_trip"
        if kind is QuestionKind.UNANSWERABLE:
            return Verdict(filter=name, action=Action.SKIP, reason="Nothing should be found.")
        found = self._search(asked)
        chunk = str(draft.passages[0]["chunk"])
        ranks = {
            leg: next((rank for rank, one in enumerate(passages, start=1) if one.id == chunk), None)
            for leg, passages in found.items()
        }
        if len(draft.passages) == 1:
            told.changes["alternatives"] = self._twins(told.changes["passages"][0], found)
        numbers = {"ranks": ranks, "n_alternatives": len(told.changes.get("alternatives", ()))}
        if any(ranks.values()):
            return Verdict(filter=name, action=Action.PASS, numbers=numbers)
        reason = f"Neither words nor meaning find its passage within {ROUND_TRIP_DEPTH}."
        return Verdict(filter=name, action=Action.FLAG, reason=reason, numbers=numbers)

    def _search(self, asked: str) -> dict[str, list[Passage]]:
        index = self._scope.indexes[0]
        vectors: dict[UUID, Any] = {}
        try:
            vector = self._vector(asked)
        except PacedError:
            raise
        except ProviderError as error:
            vectors[index.id] = Failure.of(error)
        else:
            if vector is not None:
                vectors[index.id] = [float(value) for value in vector]
        configs = [config for leg, config in _LEGS.items() if leg == "keyword" or index.id in vectors]
        with open_snapshot(self._scope, older_words=True) as snapshot:
            ranked = pipeline.search_question(
                asked, vectors=vectors, configs=configs, scope=self._scope, snapshot=snapshot, top_k=_TWINS_AMONG
            )
        return {
            leg: [entry.passage for entry in one.entries[:ROUND_TRIP_DEPTH]]
            for leg, one in ranked.items()
            if isinstance(one, Ranked)
        }

    def _twins(self, own: dict[str, Any], found: dict[str, list[Passage]]) -> list[dict[str, Any]]:
        near = {one.id: one for passages in found.values() for one in passages[:_TWINS_AMONG]}
        wanted = fold(own["snippet"])
        twins = []
        for passage in near.values():
            if passage.id == str(own["chunk"]) or (passage.path == own["path"] and passage.source == own["source"]):
                continue
            holds = wanted in fold(passage.text)
            alike = likeness(own["text"], passage.text)
            if not holds and alike < _TWIN_LIKENESS:
                continue
            snippet = (
                own["snippet"] if holds else parsing.snippet_of(passage.text, quote="", hints=(own["snippet"],)).text
            )
            twins.append(
                {"path": passage.path, "source": passage.source, "snippet": snippet, "likeness": round(alike, 4)}
            )
        return twins
