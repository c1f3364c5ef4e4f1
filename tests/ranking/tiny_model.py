"""Writes a real model of a few hundred bytes and its tokenizer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tools.onnx_file import FLOAT, INT64, model, node, tensor, value

WORDS = ("build", "fails", "disk", "full", "login", "loop", "why", "the", "does", "fail")
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS)
DIMENSIONS = 6
TABLE = np.random.default_rng(7).normal(size=(len(VOCABULARY), DIMENSIONS)).astype(np.float32)

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def model_inputs(names: Sequence[str] = INPUTS, kind: int = INT64) -> list[bytes]:
    """The inputs of a text model."""
    return [value(name, kind, ("batch", "tokens")) for name in names]


@dataclass(frozen=True)
class TinyModel:
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
        return model(nodes, [tensor("table", table, elsewhere=self.elsewhere)], model_inputs(self.inputs), outputs)


def tokenizer(vocabulary: Sequence[str] = VOCABULARY, **settings: object) -> bytes:
    """A tokenizer.json like BERT's: lower case, whole words, a frame of [CLS] and [SEP]."""
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
    (folder / name).write_bytes(TinyModel().content() if content is None else content)
    (folder / "tokenizer.json").write_bytes(tokenizer() if words is None else words)
    return folder
