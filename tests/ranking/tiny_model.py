"""Writes a real model of a few hundred bytes and its tokenizer."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tools.minilm import safetensors

WORDS = ("build", "fails", "disk", "full", "login", "loop", "why", "the", "does", "fail")
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS)
DIMENSIONS = 6
TABLE = np.random.default_rng(7).integers(-127, 128, (len(VOCABULARY), DIMENSIONS), dtype=np.int8)
"""A row for each word; a token's vector is its row with mean 0 and variance 1."""


def tiny_model(table: np.ndarray = TABLE, factor: float = 1.0) -> bytes:
    """A model without layers that looks each token up in ``table``, as the content of a file."""
    size = table.shape[1]
    tensors = {"words": table, "words.scale": np.full(len(table), 1 / 64, np.float32)}
    tensors |= {"positions": np.zeros((128, size), np.float32)}
    tensors |= {"norm.weight": np.full(size, factor, np.float32), "norm.bias": np.zeros(size, np.float32)}
    return safetensors(tensors, {"heads": "1", "layers": "0"})


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


def write_folder(folder: Path, content: bytes | None = None, words: bytes | None = None) -> Path:
    """``folder`` with a model and a tokenizer in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(tiny_model() if content is None else content)
    (folder / "tokenizer.json").write_bytes(tokenizer() if words is None else words)
    return folder
