"""What each embedding model wants before a query and before a document, as its authors say, and the sizes of the
models that fastembed knows by name. A wrong prefix costs quality without any error, so this is data, not code.
"""

import re
from dataclasses import dataclass

_SEARCH_SENTENCE = "Represent this sentence for searching relevant passages: "
_SEARCH_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    query: str = ""
    document: str = ""


# The first pattern found in the model's name decides; no pattern, no prefix (MiniLM, MPNet, GTE, BGE-M3, Jina,
# Granite, Cohere, OpenAI).
_TABLE: tuple[tuple[str, Prefixes], ...] = (
    (r"\be5-.*instruct", Prefixes(query=f"{_SEARCH_TASK}\nQuery: ")),
    (r"\be5-(small|base|large)|multilingual-e5-|\be5-v2", Prefixes(query="query: ", document="passage: ")),
    (r"nomic-embed-text", Prefixes(query="search_query: ", document="search_document: ")),
    (r"bge-(small|base|large)-zh", Prefixes(query="为这个句子生成表示以用于检索相关文章：")),
    (r"bge-(small|base|large)-en", Prefixes(query=_SEARCH_SENTENCE)),
    (r"mxbai-embed", Prefixes(query=_SEARCH_SENTENCE)),
    (r"arctic-embed-.*v2", Prefixes(query="query: ")),
    (r"arctic-embed", Prefixes(query=_SEARCH_SENTENCE)),
    (r"uae-large", Prefixes(query=_SEARCH_SENTENCE)),
    (r"embeddinggemma", Prefixes(query="task: search result | query: ", document="title: none | text: ")),
    (r"qwen3-embedding", Prefixes(query=f"{_SEARCH_TASK}\nQuery:")),
    (r"stella[-_]en", Prefixes(query=f"{_SEARCH_TASK}.\nQuery: ")),
)

# (dimensions, window in tokens) by fastembed's name in lower case: known here so that describing a model does not
# import fastembed, which brings onnxruntime into processes that only read.
SIZES: dict[str, tuple[int, int]] = {
    "baai/bge-base-en": (768, 512),
    "baai/bge-base-en-v1.5": (768, 512),
    "baai/bge-large-en-v1.5": (1024, 512),
    "baai/bge-small-en": (384, 512),
    "baai/bge-small-en-v1.5": (384, 512),
    "baai/bge-small-zh-v1.5": (512, 512),
    "google/embeddinggemma-300m": (768, 2048),
    "ibm-granite/granite-embedding-small-english-r2": (384, 8192),
    "intfloat/multilingual-e5-large": (1024, 512),
    "jinaai/jina-embeddings-v2-base-code": (768, 8192),
    "jinaai/jina-embeddings-v2-base-de": (768, 8192),
    "jinaai/jina-embeddings-v2-base-en": (768, 8192),
    "jinaai/jina-embeddings-v2-base-es": (768, 8192),
    "jinaai/jina-embeddings-v2-base-zh": (768, 8192),
    "jinaai/jina-embeddings-v2-small-en": (512, 8192),
    "jinaai/jina-embeddings-v3": (1024, 8192),
    "mixedbread-ai/mxbai-embed-large-v1": (1024, 512),
    "nomic-ai/nomic-embed-text-v1": (768, 8192),
    "nomic-ai/nomic-embed-text-v1.5": (768, 8192),
    "nomic-ai/nomic-embed-text-v1.5-q": (768, 8192),
    "qwen/qwen3-embedding-0.6b": (1024, 32768),
    "qwen/qwen3-embedding-0.6b-q": (1024, 32768),
    "sentence-transformers/all-minilm-l6-v2": (384, 256),
    "sentence-transformers/paraphrase-multilingual-minilm-l12-v2": (384, 128),
    "sentence-transformers/paraphrase-multilingual-mpnet-base-v2": (768, 512),
    "snowflake/snowflake-arctic-embed-l": (1024, 512),
    "snowflake/snowflake-arctic-embed-m": (768, 512),
    "snowflake/snowflake-arctic-embed-m-long": (768, 2048),
    "snowflake/snowflake-arctic-embed-s": (384, 512),
    "snowflake/snowflake-arctic-embed-xs": (384, 512),
    "thenlper/gte-base": (768, 512),
    "thenlper/gte-large": (1024, 512),
}


def for_model(name: str, *, query: str | None = None, document: str | None = None) -> Prefixes:
    """The prefixes of the model called `name`; `query` and `document` override the table where not None."""
    known = next((prefixes for pattern, prefixes in _TABLE if re.search(pattern, name, re.I)), Prefixes())
    return Prefixes(
        query=known.query if query is None else query,
        document=known.document if document is None else document,
    )


def reserved_tokens(document_prefix: str) -> int:
    """Tokens of a model's window that are not the document's: two special ones, and at most this for the prefix."""
    return 2 + 2 * len(re.findall(r"[^\W_]+|[^\w\s]|_", document_prefix))
