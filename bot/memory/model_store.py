"""What a memory has learned from its own threads: word vectors and a ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from bot.domain.thread import Thread
from bot.errors import WorldError
from bot.memory.bounds import load_json
from bot.memory.records import canonical
from bot.ranking.weights import RankingModels, parse, ranking_fields
from bot.reading.analyzer import body_terms, terms
from bot.reading.markdown import read

if TYPE_CHECKING:
    from bot.ranking.word_vectors import WordVectors


MODEL_FOLDER = "model"
WORDS_PATH = f"{MODEL_FOLDER}/words.bin"
RANKING_PATH = f"{MODEL_FOLDER}/ranking.json"
BACKTEST_PATH = f"{MODEL_FOLDER}/backtest.json"

MAX_EMBEDDED_CHARS = 4_000
"""Characters of an opening text passed to a text model, more than it reads."""


class Embedder(Protocol):
    """A downloaded model: texts → vectors of signed bytes. ``fingerprint`` identifies it."""

    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> list[bytes]: ...


@dataclass(frozen=True)
class LearnedModel:
    """The ranking, the trained word vectors (None for none) and the downloaded model (None if not wanted)."""

    ranking: RankingModels
    words: WordVectors | None = None
    embedder: Embedder | None = None

    @property
    def has_words(self) -> bool:
        return self.words is not None

    def vectors(self, thread: Thread) -> dict[str, bytes]:
        """The thread's vectors by vector field; empty ones are left out."""
        by_field = self.term_vectors(terms(thread.title), body_terms(thread.body))
        if self.embedder:
            by_field |= embed(thread, self.embedder)
        return {name: vector for name, vector in by_field.items() if vector}

    def term_vectors(self, title: Sequence[str], body: Sequence[str]) -> dict[str, bytes]:
        """The vectors of a text from its analysed terms."""
        if self.words is None:
            return {}
        by_field = {"trained": self.words.text(title, body), "trained_title": self.words.title(title)}
        return {name: vector for name, vector in by_field.items() if vector}


class Encoder:
    """Encodes threads with the learned models. A downloaded model that fails is dropped, with a ``note``."""

    def __init__(self, learned: LearnedModel, note: Callable[[str], None]) -> None:
        self.learned = learned
        self._note = note

    def vectors(self, thread: Thread) -> dict[str, bytes]:
        try:
            return self.learned.vectors(thread)
        except WorldError as error:
            self._note(f"Similar threads were found without embeddings: {error}")
            self.learned = replace(self.learned, embedder=None)
            return self.learned.vectors(thread)


class CachingEmbedder:
    """Encodes each text once: a rebuild needs a thread's vectors for the replay and for the index, an event needs its
    issue's vectors for the index and for the search."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[bytes, bytes] = {}

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._vectors}
        self._vectors |= zip(missing, self._embedder.encode(list(missing.values())), strict=True)
        return [self._vectors[key] for key in keys]


def embed(thread: Thread, embedder: Embedder) -> dict[str, bytes]:
    """The thread's vectors by a downloaded model. Raises WorldError when that fails."""
    body = thread.body[:MAX_EMBEDDED_CHARS]
    # Such models were trained on sentences: code, logs and quotations would make all reports of one kind alike.
    prose = "\n".join(read(body).prose) or body
    try:
        text, title = embedder.encode([f"{thread.title}\n{prose}", thread.title])
    except WorldError:
        raise
    except Exception as error:  # foreign native code: whatever it raises must not stop the run
        raise WorldError(f"the embeddings failed ({type(error).__name__}): the answer uses words alone") from error
    return {"semantic": text, "semantic_title": title}


@dataclass(frozen=True)
class ModelUpdate:
    """The models learned from a whole history of ``threads`` threads. ``backtest`` is the evidence, as JSON.

    ``words`` are in the format of `read_words`: empty removes the stored ones, None keeps them.
    """

    words: bytes | None
    ranking: RankingModels
    threads: int
    backtest: Mapping[str, object] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """Its files in the store, by path; empty content deletes a file."""
        contents = {RANKING_PATH: canonical(ranking_fields(self.ranking))}
        if self.words is not None:
            contents[WORDS_PATH] = self.words
        if self.backtest:
            contents[BACKTEST_PATH] = canonical(dict(self.backtest))
        return contents


def read_words(data: bytes) -> WordVectors:
    """Word vectors from untrusted bytes. Raises ValueError."""
    from bot.ranking.word_vectors import decode_words

    return decode_words(data)


def read_ranking(data: bytes) -> RankingModels:
    """A ranking from untrusted bytes. Raises ValueError."""
    return parse(load_json(data))
