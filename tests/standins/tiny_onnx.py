"""Writes a minimal ONNX cross-encoder by hand, as no package ships one and none here can build one.

Its score of a pair is the mean of the token ids: no sense in it, but it runs through the same code as a real one.
"""

import json
from pathlib import Path

_INT64, _FLOAT = 7, 1


def _varint(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def _tensor_type(name: str, kind: int, dimensions: list[str | int]) -> bytes:
    shape = b"".join(_block(1, _block(2, size) if isinstance(size, str) else _number(1, size)) for size in dimensions)
    return _block(1, name) + _block(2, _block(1, _number(1, kind) + _block(2, shape)))


def _integer_attribute(name: str, value: int) -> bytes:
    return _block(5, _block(1, name) + _number(3, value) + _number(20, 2))


def _integers_attribute(name: str, values: list[int]) -> bytes:
    return _block(5, _block(1, name) + b"".join(_number(8, value) for value in values) + _number(20, 7))


def cross_encoder() -> bytes:
    """The model: Cast(input_ids) to float, then ReduceMean over the tokens; output `logits`, batch x 1."""
    cast = _block(1, "input_ids") + _block(2, "ids") + _block(4, "Cast") + _integer_attribute("to", _FLOAT)
    mean = (
        _block(1, "ids")
        + _block(2, "logits")
        + _block(4, "ReduceMean")
        + _integers_attribute("axes", [1])
        + _integer_attribute("keepdims", 1)
    )
    graph = (
        _block(1, cast)
        + _block(1, mean)
        + _block(2, "tiny")
        + _block(11, _tensor_type("input_ids", _INT64, ["batch", "tokens"]))
        + _block(12, _tensor_type("logits", _FLOAT, ["batch", 1]))
    )
    # IR version 8, operators of version 13: old enough for every onnxruntime in use.
    return _number(1, 8) + _block(7, graph) + _block(8, _number(2, 13))


def write_cross_encoder(folder: Path, *, tokenizer: Path) -> None:
    """A folder that looks like a downloaded cross-encoder, with the tokenizer given."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(cross_encoder())
    (folder / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    config = {"model_max_length": 512, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
