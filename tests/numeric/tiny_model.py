"""Writes a real model of a few hundred bytes and its tokenizer, in ONNX's protobuf by hand, without a library for it.

Field numbers are those of https://github.com/onnx/onnx/blob/v1.18.0/onnx/onnx.proto.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

WORDS = ("build", "fails", "disk", "full", "login", "loop", "why", "the", "does", "fail")
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS)
DIMENSIONS = 6
TABLE = np.random.default_rng(7).normal(size=(len(VOCABULARY), DIMENSIONS)).astype(np.float32)

FLOAT, INT64 = 1, 7
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw


def node(operator: str, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """A NodeProto."""
    names = b"".join(_bytes(1, name) for name in inputs) + b"".join(_bytes(2, name) for name in outputs)
    return names + _bytes(4, operator)


def tensor(name: str, values: np.ndarray, *, elsewhere: str = "") -> bytes:
    """A TensorProto of floats; with ``elsewhere``, its values are said to be in the file of that name."""
    sizes = b"".join(_number(1, size) for size in values.shape)
    head = sizes + _number(2, FLOAT) + _bytes(8, name)
    if elsewhere:
        return head + _bytes(13, _bytes(1, "location") + _bytes(2, elsewhere)) + _number(14, 1)
    return head + _bytes(9, values.astype("<f4").tobytes())


def value(name: str, kind: int, axes: Sequence[str | int]) -> bytes:
    """A ValueInfoProto: a tensor of ``kind``, each axis with its size or a name for any size."""
    sizes = (_bytes(2, axis) if isinstance(axis, str) else _number(1, axis) for axis in axes)
    shape = b"".join(_bytes(1, size) for size in sizes)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def model(nodes: Sequence[bytes], tables: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes]) -> bytes:
    """A ModelProto of operator set 17."""
    graph = (
        b"".join(_bytes(1, each) for each in nodes) + _bytes(2, "tiny") + b"".join(_bytes(5, each) for each in tables)
    )
    graph += b"".join(_bytes(11, each) for each in inputs) + b"".join(_bytes(12, each) for each in outputs)
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _bytes(1, "") + _number(2, 17))


def ids(names: Sequence[str] = INPUTS, kind: int = INT64) -> list[bytes]:
    """Inputs of a text model."""
    return [value(name, kind, ("batch", "tokens")) for name in names]


@dataclass(frozen=True)
class Tiny:
    """A model that looks each token up in ``table``; ``quantise`` rounds as quantised models do: by the whole batch."""

    inputs: tuple[str, ...] = INPUTS
    table: np.ndarray = field(default_factory=lambda: TABLE)
    quantise: bool = False
    elsewhere: str = ""

    def content(self) -> bytes:
        """The model as the content of an .onnx file."""
        table = self.table
        nodes = [node("Gather", ("table", "input_ids"), ("looked_up" if self.quantise else "states",))]
        if self.quantise:
            nodes.append(node("DynamicQuantizeLinear", ("looked_up",), ("rounded", "scale", "zero")))
            nodes.append(node("DequantizeLinear", ("rounded", "scale", "zero"), ("states",)))
        outputs = [value("states", FLOAT, ("batch", "tokens", table.shape[1]))]
        return model(nodes, [tensor("table", table, elsewhere=self.elsewhere)], ids(self.inputs), outputs)


def tokenizer(vocabulary: Sequence[str] = VOCABULARY, **settings: object) -> bytes:
    """A tokenizer.json as BERT's: lower case, whole words, a frame of [CLS] and [SEP]."""
    numbers = {word: number for number, word in enumerate(vocabulary)}
    special = [
        {"id": number, "content": word, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for word, number in numbers.items()
        if word.startswith("[")
    ]
    bert = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    pieces = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    frame = {"sep": ["[SEP]", numbers["[SEP]"]], "cls": ["[CLS]", numbers["[CLS]"]]}
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "BertNormalizer"} | bert,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing"} | frame,
        "decoder": None,
        "model": {"type": "WordPiece", "vocab": numbers} | pieces,
    }
    return json.dumps(content | settings).encode()


def write_folder(
    folder: Path, content: bytes | None = None, words: bytes | None = None, name: str = "model.onnx"
) -> Path:
    """``folder`` with a model and a tokenizer in it."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(Tiny().content() if content is None else content)
    (folder / "tokenizer.json").write_bytes(tokenizer() if words is None else words)
    return folder
