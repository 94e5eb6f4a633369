"""For bench.scale: the legs of one Index, read one by one in this process. Prints a line of JSON.

`python -m bench.scale_legs INDEX N_QUESTIONS TOP`; with no questions its graph and its words' file are taken away.
"""

import json
import os
import statistics
import sys
import time
from uuid import UUID

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backend.settings")
django.setup()

# Models load with it, so only after the set-up.
from backend.models import Index  # noqa: E402
from backend.search import ann, bm25_files, legs, providers  # noqa: E402
from backend.search.snapshot import Snapshot, open_snapshot  # noqa: E402
from backend.search.types import IndexRef, SearchScope  # noqa: E402
from bench import service  # noqa: E402

_DEPTH = 100
_EF_SEARCH = 100


def main() -> None:
    index_id, n_asked, top = UUID(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    row = Index.objects.get(id=index_id)
    if n_asked == 0:
        ann.drop_ann_index(index_id)
        bm25_files.remove(index_id)
        return
    index = IndexRef(
        id=row.id,
        knowledge_base_id=row.knowledge_base_id,
        embedder="local",
        language="english",
        dimensions=row.dimensions,
        settings=row.settings,
    )
    texts = [one["question"] for one in service.questions(n_asked)]
    vectors = providers.embedder("local", workspace_id=UUID(int=0)).embed_queries(texts, timeout=600).vectors
    started = time.monotonic()
    ann.ensure_ann_index(index)
    graph_s = time.monotonic() - started
    exact = legs.LegKey(kind=legs.SEMANTIC, index_id=index_id, depth=_DEPTH)
    near = legs.LegKey(kind=legs.SEMANTIC, index_id=index_id, depth=_DEPTH, ef_search=_EF_SEARCH)
    words = legs.LegKey(kind=legs.BM25, index_id=index_id, depth=_DEPTH)
    scope = SearchScope(indexes=(index,))
    with open_snapshot(scope) as snapshot:
        started = time.monotonic()
        legs.read(words, question=texts[0], vector=None, index=index, scope=scope, snapshot=snapshot)
        words_build_s = time.monotonic() - started
        took: dict[str, list[float]] = {"exact": [], "near": [], "words": []}
        recall = []
        for text, vector in zip(texts, vectors, strict=True):
            found = {}
            for name, key in (("exact", exact), ("near", near), ("words", words)):
                leg = _read(key, text, vector=vector, index=index, scope=scope, snapshot=snapshot)
                took[name].append(leg.ms)
                found[name] = [hit.id for hit in leg.hits[:top]]
            recall.append(len(set(found["exact"]) & set(found["near"])) / len(found["exact"]))
    print(
        json.dumps(
            {
                **{f"{name}_ms": statistics.median(values) for name, values in took.items()},
                "recall": statistics.mean(recall),
                "graph_s": graph_s,
                "words_build_s": words_build_s,
            }
        )
    )


def _read(
    key: legs.LegKey,
    text: str,
    *,
    vector: tuple[float, ...],
    index: IndexRef,
    scope: SearchScope,
    snapshot: Snapshot,
) -> legs.Leg:
    return legs.read(key, question=text, vector=vector, index=index, scope=scope, snapshot=snapshot)


if __name__ == "__main__":
    main()
