"""Reranking by a chat model: `llm:PROVIDER:MODEL` sees a pool at once, `llm-pointwise:…` one passage at a time.

A reply that cannot be read is asked for once more, as the model may do better. If it does not, the passages keep their
order, without a score, and the fallback is counted: it is in the run's cost, under `rerank_fallbacks`.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from backend.core import llm_ranking, replies
from backend.core.replies import UnreadableReplyError
from backend.providers.base import Candidate, Reranked, RerankerInfo
from backend.providers.chat import Ask, ChatModel, Ending, Message, added, system_and_user

LISTWISE, POINTWISE = "llm", "llm-pointwise"
# A pool that one prompt holds: fifty passages of 1,200 characters are some 15,000 tokens.
_MOST_PASSAGES = 50
_TOKENS_A_NUMBER = 6
_TRIES = 2
_AGAIN = Message(role="user", content="Reply with the JSON object alone, in exactly the form asked for.")


class LlmReranker:
    def __init__(self, chat: ChatModel, *, pointwise: bool = False) -> None:
        self._chat = chat
        self._info = describe(chat.info.spec, base_url=chat.info.base_url, pointwise=pointwise)
        self._pointwise = pointwise

    @property
    def info(self) -> RerankerInfo:
        return self._info

    def rerank(self, query: str, candidates: Sequence[Candidate], *, timeout: float) -> Reranked:
        if not candidates:
            return Reranked(scores=())
        if self._pointwise:
            return self._one(query, candidates, timeout=timeout)
        return self._all(query, candidates, timeout=timeout)

    def _all(self, query: str, candidates: Sequence[Candidate], *, timeout: float) -> Reranked:
        prompt = llm_ranking.listwise_prompt(query, [candidate.text for candidate in candidates])
        ask = Ask(
            name="ranking",
            messages=system_and_user(prompt.system, prompt.user),
            schema=llm_ranking.LISTWISE_SCHEMA,
            max_tokens=100 + _TOKENS_A_NUMBER * len(candidates),
        )
        units: list[dict[str, float]] = []
        for reply in self._replies(ask, timeout=timeout, units=units):
            try:
                order = llm_ranking.read_order(replies.read_object(reply).value, shown=prompt.shown)
            except UnreadableReplyError:
                continue
            units.append(
                {
                    "rerank_ids_missing": float(order.n_missing),
                    "rerank_ids_doubled": float(order.n_doubled),
                    "rerank_ids_unknown": float(order.n_unknown),
                }
            )
            return Reranked(scores=llm_ranking.scores_of(order), units=added(units), scale="order")
        return Reranked(
            scores=(None,) * len(candidates), units=added([*units, {"rerank_fallbacks": 1.0}]), scale="order"
        )

    def _one(self, query: str, candidates: Sequence[Candidate], *, timeout: float) -> Reranked:
        """`max_documents` is 1, so that each score is paced, cached and kept by itself; more are asked in turn."""
        deadline = time.monotonic() + timeout
        scores: list[float | None] = []
        units: list[dict[str, float]] = []
        for candidate in candidates:
            prompt = llm_ranking.pointwise_prompt(query, candidate.text)
            ask = Ask(
                name="score",
                messages=system_and_user(prompt.system, prompt.user),
                schema=llm_ranking.POINTWISE_SCHEMA,
                max_tokens=100,
            )
            score: float | None = None
            for reply in self._replies(ask, timeout=deadline - time.monotonic(), units=units):
                try:
                    score = llm_ranking.read_score(replies.read_object(reply).value)
                except UnreadableReplyError:
                    continue
                break
            if score is None:
                units.append({"rerank_fallbacks": 1.0})
            scores.append(score)
        return Reranked(scores=tuple(scores), units=added(units), scale="rubric")

    def _replies(self, ask: Ask, *, timeout: float, units: list[dict[str, float]]) -> Iterator[str]:
        """The model's texts, another one each time that the caller could not read the last. A second try is worded
        otherwise, or a model at temperature 0 would say the same again."""
        deadline = time.monotonic() + timeout
        for turn in range(_TRIES):
            asked = ask if not turn else replace(ask, messages=(*ask.messages, _AGAIN))
            reply = self._chat.reply(asked, timeout=deadline - time.monotonic())
            units.append(dict(reply.units))
            # A reply that was cut may still hold its object; a refusal or nothing at all cannot.
            if reply.ending in {Ending.COMPLETE, Ending.CUT}:
                yield reply.text


def describe(chat_spec: str, *, base_url: str, pointwise: bool) -> RerankerInfo:
    kind = POINTWISE if pointwise else LISTWISE
    return RerankerInfo(
        spec=f"{kind}:{chat_spec}",
        provider=kind,
        # The wording is part of what it is: other words give other orders.
        model=f"{chat_spec} {llm_ranking.PROMPT_VERSION}",
        base_url=base_url,
        label=f"{chat_spec} ({'passage by passage' if pointwise else 'whole pool'})",
        pool_dependent=not pointwise,
        max_documents=1 if pointwise else _MOST_PASSAGES,
    )
