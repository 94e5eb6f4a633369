"""Answers in the providers' formats: request checked as the provider checks it, results sorted as it sorts them."""

import base64
import hashlib
import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from tests.standins import chat
from tests.standins.script import Fault, Script

_WORD = re.compile(r"\w+")


class RefusedError(Exception):
    """The provider refuses the request with this status and body."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


def unit_hash(*parts: str) -> float:
    """A number in 0..1 that depends only on the texts."""
    digest = hashlib.sha256("\x1f".join(parts).encode()).digest()
    return int.from_bytes(digest[:6]) / 2**48


def overlap(query: str, text: str) -> float:
    """The share of the query's words that the text holds, with a small hash so that ties are rare; in 0..1."""
    asked = set(_WORD.findall(query.lower()))
    share = len(asked & set(_WORD.findall(text.lower()))) / len(asked) if asked else 0.0
    return 0.98 * share + 0.02 * unit_hash(query, text)


def embedding(text: str, *, dimensions: int) -> list[float]:
    """A unit vector from the text's words: texts that share words lie near each other."""
    vector = [0.0] * dimensions
    for word in [*_WORD.findall(text.lower()), "\x00"]:
        digest = hashlib.sha256(word.encode()).digest()
        for step in range(4):
            place = int.from_bytes(digest[4 * step : 4 * step + 3]) % dimensions
            vector[place] += 1.0 if digest[4 * step + 3] % 2 else -1.0
    if not any(vector):
        vector[0] = 1.0
    length = math.sqrt(sum(v * v for v in vector))
    return [v / length for v in vector]


class Scorer:
    """Scores passages. `reverse` counts up over all calls, so that it holds across a client's batches."""

    def __init__(self) -> None:
        self._n = 0

    def scores(self, query: str, texts: list[str], *, order: str) -> list[float]:
        if order == "overlap":
            return [overlap(query, text) for text in texts]
        if order != "reverse":
            raise ValueError(f"unknown order {order!r}")
        first, self._n = self._n + 1, self._n + len(texts)
        return [n / (n + 100_000) for n in range(first, first + len(texts))]


def spoiled(pairs: list[tuple[int, float]], fault: Fault | None) -> list[tuple[Any, Any]]:
    """(index, score) pairs made wrong in the way that the fault names."""
    if not pairs:
        return list(pairs)
    (index, score), rest = pairs[0], pairs[1:]
    match fault:
        case Fault.TOO_FEW:
            return list(rest)
        case Fault.TOO_MANY:
            return [*pairs, (len(pairs), 0.5)]
        case Fault.NAN:
            return [(index, math.nan), *rest]
        case Fault.NOT_A_NUMBER:
            return [(index, "high"), *rest]
        case Fault.DOUBLED_INDEX:
            return [*pairs[:-1], (index, score)] if rest else [(index, score), (index, score)]
        case Fault.OUT_OF_RANGE:
            return [(len(pairs) + 5, score), *rest]
        case _:
            return list(pairs)


def _ranked(body: Any, texts: list[str], *, script: Script, fault: Fault | None, scorer: Scorer) -> list[Any]:
    scores = scorer.scores(body["query"], texts, order=script.order)
    best_first = sorted(enumerate(scores), key=lambda pair: (-pair[1], pair[0]))
    return spoiled(best_first[: body.get("top_n")], fault)


def tei_rerank(body: Any, *, script: Script, fault: Fault | None, scorer: Scorer) -> Any:
    texts = body.get("texts")
    if not isinstance(body.get("query"), str) or not isinstance(texts, list):
        raise RefusedError(422, {"error": "Failed to deserialize the JSON body", "error_type": "Validation"})
    if not texts:
        raise RefusedError(400, {"error": "`texts` cannot be empty", "error_type": "Empty"})
    if len(texts) > script.max_batch:
        message = f"batch size {len(texts)} > maximum allowed batch size {script.max_batch}"
        raise RefusedError(422, {"error": message, "error_type": "Validation"})
    ranked = _ranked(body, texts, script=script, fault=fault, scorer=scorer)
    return [{"index": index, "score": score} for index, score in ranked]


def v1_rerank(body: Any, *, script: Script, fault: Fault | None, scorer: Scorer) -> Any:
    """Jina, vLLM and llama.cpp: one format, with what differs between them left as any of them may leave it."""
    if "texts" in body:
        return tei_rerank(body, script=script, fault=fault, scorer=scorer)
    documents = body.get("documents")
    if not isinstance(documents, list) or not documents or not isinstance(body.get("query"), str):
        raise RefusedError(422, {"detail": "query and documents are required"})
    ranked = _ranked(body, documents, script=script, fault=fault, scorer=scorer)
    results: list[dict[str, Any]] = [{"index": index, "relevance_score": score} for index, score in ranked]
    if body.get("return_documents") is not False:
        for result in results:
            if isinstance(result["index"], int) and result["index"] < len(documents):
                result["document"] = {"text": documents[result["index"]]}
    n_tokens = sum(len(_WORD.findall(text)) for text in [body["query"], *documents])
    usage = {"total_tokens": n_tokens, "prompt_tokens": n_tokens}
    return {"model": body.get("model", ""), "object": "list", "usage": usage, "results": results}


def cohere_rerank(body: Any, *, script: Script, fault: Fault | None, scorer: Scorer) -> Any:
    documents = body.get("documents")
    if not documents:
        raise RefusedError(400, {"message": "invalid request: list of documents must not be empty", "id": "1"})
    ranked = _ranked(body, documents, script=script, fault=fault, scorer=scorer)
    return {
        "id": "11111111-2222-4333-8444-555555555555",
        "results": [{"index": index, "relevance_score": score} for index, score in ranked],
        "meta": {
            "api_version": {"version": "2"},
            "billed_units": {"search_units": math.ceil(len(documents) / 100)},
        },
    }


def cohere_embed(body: Any, *, script: Script, fault: Fault | None, scorer: Scorer) -> Any:
    texts = body.get("texts") or []
    if len(texts) > 96:
        message = f"invalid request: total number of texts must be at most 96 - received {len(texts)}"
        raise RefusedError(400, {"message": message, "id": "1"})
    if body.get("input_type") not in {"search_document", "search_query", "classification", "clustering"}:
        message = "invalid request: valid input_type must be provided with the provided model"
        raise RefusedError(400, {"message": message, "id": "1"})
    vectors = _vectors(texts, script=script, fault=fault)
    return {
        "id": "11111111-2222-4333-8444-555555555555",
        "response_type": "embeddings_by_type",
        "embeddings": {"float": [vector for _, vector in vectors]},
        "texts": texts,
        "meta": {
            "api_version": {"version": "2"},
            "billed_units": {"input_tokens": sum(len(_WORD.findall(text)) for text in texts)},
        },
    }


def openai_embeddings(body: Any, *, script: Script, fault: Fault | None, scorer: Scorer) -> Any:
    texts = body["input"] if isinstance(body.get("input"), list) else [body.get("input")]
    if len(texts) > 2048 or not all(isinstance(text, str) and text for text in texts):
        error = {"message": "'$.input' is invalid.", "type": "invalid_request_error", "param": "input", "code": None}
        raise RefusedError(400, {"error": error})
    data: list[dict[str, Any]] = []
    for index, vector in _vectors(texts, script=script, fault=fault):
        value: Any = vector
        if body.get("encoding_format") == "base64":
            value = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": value})
    # Not in order: clients must sort by index.
    data.reverse()
    n_tokens = sum(len(_WORD.findall(text)) for text in texts)
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}


def openai_chat(body: Any, *, script: Script, fault: Fault | None, scorer: Scorer) -> Any:
    n_prompt = sum(len(_WORD.findall(str(message.get("content")))) for message in body.get("messages", []))
    try:
        chat.refuse_manners(body, script)
    except chat.RefusedMannerError as refused:
        error = {"message": str(refused), "type": "invalid_request_error", "param": None, "code": None}
        raise RefusedError(400, {"error": error}) from refused
    content, reason, refusal = chat.reply(body, script)
    n_reply = len(_WORD.findall(content or ""))
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_reply,
            "total_tokens": n_prompt + n_reply,
        },
    }


def _vectors(texts: list[str], *, script: Script, fault: Fault | None) -> list[tuple[Any, list[Any]]]:
    vectors: list[list[Any]] = [embedding(text, dimensions=script.dimensions) for text in texts]
    if fault is Fault.NAN:
        vectors[0][0] = math.nan
    if fault is Fault.NOT_A_NUMBER:
        vectors[0][0] = "high"
    indexes = spoiled([(index, float(index)) for index in range(len(texts))], fault)
    return [(index, vectors[min(place, len(vectors) - 1)]) for place, (index, _) in enumerate(indexes)]


def info(script: Script) -> Any:
    """TEI's `GET /info`."""
    return {
        "model_id": "standin/reranker",
        "model_sha": None,
        "model_dtype": "float32",
        "model_type": {"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}},
        "max_concurrent_requests": 512,
        "max_input_length": 512,
        "max_client_batch_size": script.max_batch,
        "auto_truncate": True,
        "version": "1.9.3",
    }


def error_body(path: str, status: int) -> Any:
    """The error body that this path's provider would send."""
    message = f"scripted {status}"
    if path.startswith("/v2/"):
        return {"message": message, "id": "1"}
    if path == "/rerank":
        return {"error": message, "error_type": "Overloaded" if status == 429 else "Backend"}
    return {"error": {"message": message, "type": "error", "param": None, "code": None}}


ROUTES: dict[str, Callable[..., Any]] = {
    "/rerank": tei_rerank,
    "/v1/rerank": v1_rerank,
    "/v1/reranking": v1_rerank,
    "/v2/rerank": cohere_rerank,
    "/v2/embed": cohere_embed,
    "/v1/embeddings": openai_embeddings,
    "/v1/chat/completions": openai_chat,
}
