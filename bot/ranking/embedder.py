"""Optional embeddings: a text model from a folder turns texts into vectors of signed bytes.

Only this module imports tokenizers, and only when it opens a model.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bot.errors import UserError, WorldError
from bot.ranking.bert import MAX_TOKENS, Bert, NotAModel

MODEL_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
MANIFEST_FILE = "model.sha256"
"""Optional: the hashes of model and tokenizer, in the format of `sha256sum`."""

IMAGE_FOLDER = Path("/models")
"""The folder of the model shipped in the image."""

MAX_CHARS = 8192
"""Maximum characters read of a text: 128 tokens are 750 characters of prose, or a few thousand hexadecimal digits."""

MIN_TOKEN_CHARS = 2.0
"""The tokens of a text that a model can read have at least this many characters on average. all-MiniLM-L6-v2 splits
English prose into tokens of 2.8 to 4.2 characters, other scripts into single letters. Of the texts in five English
archives, 1.5 % have shorter tokens; of 1,585 in a Chinese one 75 %."""

MAX_DIMENSIONS = 1024
MAX_MODEL_BYTES = 512 * 1024 * 1024
MAX_TOKENIZER_BYTES = 64 * 1024 * 1024
MAX_MANIFEST_BYTES = 64 * 1024

_ENCODING_RECIPE = b"mean of 128 tokens of prose, 8192 characters, 2 a token, signed bytes, exact sums: 4"
"""Part of the fingerprint; change it whenever the same model would give a thread a different vector, also if
`bot.memory.model_store.embed` chooses other parts of its text."""

_OPT_OUT_HINT = 'or set similar.model to ""'
_HASH_LINE = re.compile(r"([0-9a-f]{64}) [ *](.{1,300})", re.ASCII)
_PROBE_TEXT = "why does the build fail"


class EmbeddingsUnavailable(WorldError):
    """Embeddings are unavailable; one line names the cause and the remedy. Search by words works without them."""


@dataclass(frozen=True, slots=True)
class BertEmbedder:
    """An opened model. Vectors are comparable only between embedders with the same ``fingerprint`` (16 hex digits)."""

    dimensions: int
    fingerprint: str
    _tokenizer: Any = field(repr=False)
    _model: Bert = field(repr=False)

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """A vector of ``dimensions`` signed bytes for each text, for cosines.

        A vector is the mean of the model's vectors for the first 128 tokens, scaled so that its largest component is
        ±127. A text without tokens, or in a language that the model does not know, has the zero vector. A vector does
        not depend on the other texts. Raises EmbeddingsUnavailable if the model fails.
        """
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> bytes:
        tokens = _token_ids(self._tokenizer, text)
        if not tokens:
            return bytes(self.dimensions)
        return quantised(_mean(self._model, tokens))


class LazyEmbedder:
    """The model in a folder, opened only when a text is to be read: most runs read none, or only after a search.

    Raises EmbeddingsUnavailable if there is no usable model, or later if it proves damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.fingerprint = _listed_fingerprint(folder) or self._opened.fingerprint

    @cached_property
    def _opened(self) -> BertEmbedder:
        return open_embedder(self._folder)

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """See `BertEmbedder.encode`."""
        return self._opened.encode(texts)


def model_folder(named: str, workspace: Path) -> Path:
    """The folder that the setting ``similar.model`` names: below ``workspace``, or the image's.

    Native code parses the tokenizer, so a path that leads outside, even through a link, raises UserError.
    """
    root = IMAGE_FOLDER if Path(named).is_relative_to(IMAGE_FOLDER) else workspace
    try:
        folder = (workspace / named).resolve()
        inside = folder.is_relative_to(root.resolve())
    except (OSError, RuntimeError, ValueError):  # a cycle of links, or characters not allowed in a path
        inside = False
    if not named or not inside:
        raise UserError(f"similar.model must be a folder below the workspace or {IMAGE_FOLDER}, not {named!a}")
    return folder


def open_embedder(folder: Path) -> BertEmbedder:
    """Open the model in ``folder``: `MODEL_FILE` and `TOKENIZER_FILE`, checked against `MANIFEST_FILE`.

    Raises EmbeddingsUnavailable, with one line, if a file is missing, damaged or of the wrong kind.
    """
    try:
        import tokenizers
    except ImportError:
        raise EmbeddingsUnavailable(
            f"embeddings need tokenizers: install Precedent's semantic extra, {_OPT_OUT_HINT}"
        ) from None
    content, tokenizer = _read_folder(folder)
    opened = _open_tokenizer(tokenizers, tokenizer, folder / TOKENIZER_FILE)
    model = _open_model(content, folder / MODEL_FILE)
    _mean(model, _token_ids(opened, _PROBE_TEXT) or [0])
    hashes = (hashlib.sha256(part).digest() for part in (content, tokenizer))
    return BertEmbedder(model.size, _fingerprint(*hashes), opened, model)


def quantised(vector: NDArray[np.float32]) -> bytes:
    """``vector`` as signed bytes, scaled so that its largest component is ±127; the zero vector stays zero."""
    largest = float(np.abs(vector).max(initial=0.0))
    if largest == 0.0:
        return bytes(len(vector))
    return np.rint(vector.astype(np.float64) * (127.0 / largest)).astype(np.int8).tobytes()


def _mean(model: Bert, tokens: list[int]) -> NDArray[np.float32]:
    """Mean pooling, control tokens included (https://arxiv.org/abs/1908.10084, section 3)."""
    try:
        mean = model.mean(tokens)
    except (IndexError, ValueError) as error:
        raise EmbeddingsUnavailable(
            f"{MODEL_FILE} fails on a text ({_first_line(error)}); check that {TOKENIZER_FILE} belongs to it"
        ) from error
    if not np.isfinite(mean).all():
        raise EmbeddingsUnavailable(f"the model returns numbers that are not finite; fetch it again, {_OPT_OUT_HINT}")
    return mean


def _fingerprint(model_hash: bytes, tokenizer_hash: bytes) -> str:
    recipe = hashlib.sha256(_ENCODING_RECIPE).digest()
    return hashlib.sha256(recipe + model_hash + tokenizer_hash).hexdigest()[:16]


def _listed_fingerprint(folder: Path) -> str:
    """The fingerprint of a complete folder by the hashes that it lists, which are checked when it is opened; empty if
    it lists none."""
    _check_names(folder)
    listed = _listed_hashes(folder) or {}
    hashes = [listed[name] for name in (MODEL_FILE, TOKENIZER_FILE) if name in listed]
    return _fingerprint(*map(bytes.fromhex, hashes)) if len(hashes) == 2 else ""


def _read_folder(folder: Path) -> tuple[bytes, bytes]:
    """The model and the tokenizer."""
    _check_names(folder)
    model = _read(folder / MODEL_FILE, MAX_MODEL_BYTES)
    tokenizer = _read(folder / TOKENIZER_FILE, MAX_TOKENIZER_BYTES)
    _check_manifest(folder, {MODEL_FILE: model, TOKENIZER_FILE: tokenizer})
    return model, tokenizer


def _check_names(folder: Path) -> None:
    if not folder.is_dir():
        raise EmbeddingsUnavailable(f"{folder}: no such folder; put the model there, {_OPT_OUT_HINT}")
    for name in (MODEL_FILE, TOKENIZER_FILE):
        if not (folder / name).exists():
            raise EmbeddingsUnavailable(f"{folder}: no {name}; put the model's there, {_OPT_OUT_HINT}")


def _read(path: Path, limit: int) -> bytes:
    try:
        if not path.is_file():
            raise EmbeddingsUnavailable(f"{path}: not a file; put the model's there, {_OPT_OUT_HINT}")
        if path.stat().st_size > limit:
            raise EmbeddingsUnavailable(f"{path}: larger than {limit >> 10:,} KB; use a smaller model")
        return path.read_bytes()
    except OSError as error:
        raise EmbeddingsUnavailable(f"{path}: cannot be read ({error.strerror}); fix that, {_OPT_OUT_HINT}") from None


def _check_manifest(folder: Path, contents: dict[str, bytes]) -> None:
    listed = _listed_hashes(folder)
    if listed is None:
        return
    for name, content in contents.items():
        if name not in listed:
            path = folder / MANIFEST_FILE
            raise EmbeddingsUnavailable(f"{path}: does not list {name}; recreate it with sha256sum, or remove it")
        if hashlib.sha256(content).hexdigest() != listed[name]:
            raise EmbeddingsUnavailable(f"{folder / name}: does not match {MANIFEST_FILE}; fetch the model again")


def _listed_hashes(folder: Path) -> dict[str, str] | None:
    """The hashes in the manifest by file; None without one."""
    path = folder / MANIFEST_FILE
    if not path.exists():
        return None
    lines = _read(path, MAX_MANIFEST_BYTES).decode("utf-8", "replace").splitlines()
    return {match[2].removeprefix("./"): match[1] for match in map(_HASH_LINE.fullmatch, lines) if match}


def _open_tokenizer(tokenizers: Any, content: bytes, path: Path) -> Any:
    """The tokenizer, without padding, truncating at `MAX_TOKENS`, and ignoring control tokens spelled out in a text."""
    try:
        opened = tokenizers.Tokenizer.from_buffer(content)
        opened.no_padding()
        opened.enable_truncation(MAX_TOKENS)
        opened.encode_special_tokens = True
    except Exception as error:
        raise EmbeddingsUnavailable(f"{path}: damaged ({_first_line(error)}); fetch the model again") from error
    return opened


def _token_ids(tokenizer: Any, text: str) -> list[int]:
    """At most `MAX_TOKENS` ids, including control tokens; none if the text itself has no token, or if the tokens are so
    short that the tokenizer cannot know its words."""
    clean = text[:MAX_CHARS].encode("utf-8", "ignore").decode("utf-8")
    try:
        encoding = tokenizer.encode(clean)
    except Exception as error:
        raise EmbeddingsUnavailable(
            f"the model's {TOKENIZER_FILE} fails ({_first_line(error)}); use another model, {_OPT_OUT_HINT}"
        ) from error
    marked = zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
    spans = [span for span, is_control in marked if not is_control]
    is_known = sum(end - start for start, end in spans) >= MIN_TOKEN_CHARS * len(spans)
    return list(encoding.ids) if spans and is_known else []


def _open_model(content: bytes, path: Path) -> Bert:
    try:
        model = Bert.read(content)
    except NotAModel as error:
        raise EmbeddingsUnavailable(f"{path}: not a usable model ({_first_line(error)}); fetch it again") from error
    if not 1 <= model.size <= MAX_DIMENSIONS:
        raise EmbeddingsUnavailable(
            f"{path}: vectors of {model.size} numbers, at most {MAX_DIMENSIONS} can be used; use a smaller model"
        )
    return model


def _first_line(error: object) -> str:
    """A library's error message as one short line of printable ASCII."""
    lines = str(error).splitlines() or [type(error).__name__]
    return ascii(lines[0])[1:-1][:120]
