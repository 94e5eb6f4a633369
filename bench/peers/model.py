"""The model that all peers use: the one that the service embedded the passages with, one thread a process as there."""

import os
from functools import lru_cache
from typing import Any

from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

_NAME = "bench/all-MiniLM-L6-v2-int8"


@lru_cache(maxsize=1)
def load() -> Any:
    """TOUCHSTONE_BENCH_MODEL names its folder. One for all who ask: Haystack's two embedders share it."""
    TextEmbedding.add_custom_model(
        _NAME,
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf=_NAME),
        dim=384,
        model_file="model.onnx",
    )
    model: Any = TextEmbedding(_NAME, specific_model_path=os.environ["TOUCHSTONE_BENCH_MODEL"], threads=1)
    model.model.tokenizer.enable_truncation(256)
    return model
