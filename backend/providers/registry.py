"""From a specification (`local`, `cohere:MODEL`, `http:NAME`…) to the provider it names, or to its description.

Describing loads no model and imports no provider's library, so that processes that only read stay small.
"""

from backend.providers import (
    chat_openai,
    cohere_,
    http_rerank,
    llm_rerank,
    local,
    local_rerank,
    model_files,
    openai_embed,
)
from backend.providers.base import (
    Embedder,
    EmbedderInfo,
    ProviderError,
    ProviderFault,
    Reranker,
    RerankerInfo,
)
from backend.providers.chat import ChatInfo, ChatModel
from backend.providers.settings import ProviderSettings

_EMBEDDERS = "local, local:NAME_OR_FOLDER, openai:MODEL, cohere:MODEL"
_RERANKERS = "local, local:NAME_OR_FOLDER, http:NAME, cohere:MODEL, llm:PROVIDER:MODEL, llm-pointwise:PROVIDER:MODEL"
_CHATS = "openai:MODEL, or NAME:MODEL of a server in TOUCHSTONE_CHAT_NAME_URL"


def embedder(spec: str, settings: ProviderSettings) -> Embedder:
    """Raises ProviderError(NOT_CONFIGURED), naming the variable to set, or MODEL. Loads nothing yet."""
    kind, name = _split(spec)
    match kind:
        case "local":
            return local.LocalEmbedder(name, settings)
        case "openai":
            return openai_embed.OpenAIEmbedder(name, settings)
        case "cohere":
            return cohere_.CohereEmbedder(name, settings)
        case _:
            raise _unknown(spec, what="embedder", variable="TOUCHSTONE_EMBEDDER", known=_EMBEDDERS)


def describe_embedder(spec: str, settings: ProviderSettings) -> EmbedderInfo:
    """The `info` that the embedder would have."""
    kind, name = _split(spec)
    match kind:
        case "local":
            return local.describe(name, settings)
        case "openai":
            return openai_embed.describe(name, settings)
        case "cohere":
            return cohere_.describe_embedder(name, settings)
        case _:
            raise _unknown(spec, what="embedder", variable="TOUCHSTONE_EMBEDDER", known=_EMBEDDERS)


def reranker(spec: str, settings: ProviderSettings) -> Reranker:
    """Raises ProviderError(NOT_CONFIGURED), naming the variable to set, or MODEL. Loads nothing yet."""
    kind, name = _split(spec)
    match kind:
        case "local" if name in {"", model_files.BUNDLED}:
            return local_rerank.BlendReranker(settings)
        case "local":
            return local_rerank.CrossEncoderReranker(name, settings)
        case "http" if name:
            return http_rerank.HttpReranker(
                settings.http_reranker(name), connect_timeout=settings.connect_timeout_seconds
            )
        case "cohere":
            return cohere_.CohereReranker(name, settings)
        case llm_rerank.LISTWISE | llm_rerank.POINTWISE if all(_split(name)):
            return llm_rerank.LlmReranker(chat(name, settings), pointwise=kind == llm_rerank.POINTWISE)
        case _:
            raise _unknown(spec, what="reranker", variable="TOUCHSTONE_RERANKER", known=_RERANKERS)


def describe_reranker(spec: str, settings: ProviderSettings) -> RerankerInfo:
    """The `info` that the reranker would have."""
    kind, name = _split(spec)
    match kind:
        case "local" if name in {"", model_files.BUNDLED}:
            return local_rerank.describe_blend()
        case "local":
            return local_rerank.describe_cross_encoder(name, settings)
        case "http" if name:
            return http_rerank.describe(settings.http_reranker(name))
        case "cohere":
            return cohere_.describe_reranker(name, settings)
        case llm_rerank.LISTWISE | llm_rerank.POINTWISE if all(_split(name)):
            info = describe_chat(name, settings)
            return llm_rerank.describe(info.spec, base_url=info.base_url, pointwise=kind == llm_rerank.POINTWISE)
        case _:
            raise _unknown(spec, what="reranker", variable="TOUCHSTONE_RERANKER", known=_RERANKERS)


def chat(spec: str, settings: ProviderSettings) -> ChatModel:
    """Raises ProviderError(NOT_CONFIGURED), naming the variable to set."""
    server, model = _chat_parts(spec)
    return chat_openai.OpenAIChat(model, settings, server=server)


def describe_chat(spec: str, settings: ProviderSettings) -> ChatInfo:
    """The `info` that the chat model would have."""
    server, model = _chat_parts(spec)
    return chat_openai.describe(model, settings, server=server)


def _chat_parts(spec: str) -> tuple[str, str]:
    server, model = _split(spec)
    if not server or not model:
        raise _unknown(spec, what="chat model", variable="TOUCHSTONE_LLM", known=_CHATS)
    return server, model


def _split(spec: str) -> tuple[str, str]:
    kind, _, name = spec.strip().partition(":")
    return kind.strip().lower(), name.strip()


def _unknown(spec: str, *, what: str, variable: str, known: str) -> ProviderError:
    return ProviderError(
        ProviderFault.NOT_CONFIGURED,
        f"{spec!r} names no {what}: use one of {known} in the request, or set {variable}.",
    )
