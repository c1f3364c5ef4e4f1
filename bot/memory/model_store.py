"""What a memory has learned from its own threads, a ranking, and the vectors of an optional text model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from bot.domain.thread import Thread
from bot.errors import WorldError
from bot.memory.bounds import load_json
from bot.memory.records import canonical
from bot.ranking.weights import RankingModels, parse, ranking_fields

MODEL_FOLDER = "model"
RANKING_PATH = f"{MODEL_FOLDER}/ranking.json"
BACKTEST_PATH = f"{MODEL_FOLDER}/backtest.json"

MAX_EMBEDDED_CHARS = 4_000
"""Characters of an opening text passed to a text model, more than it reads."""


class Embedder(Protocol):
    """A text model: texts → vectors of signed bytes, zeros for a text that it cannot read. ``fingerprint`` identifies
    it."""

    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> list[bytes]: ...


class Encoder:
    """Reads threads with a text model (None: there is none). One that fails is dropped, with a ``note``."""

    def __init__(self, embedder: Embedder | None, note: Callable[[str], None]) -> None:
        self._embedder, self._note = embedder, note

    def vector(self, thread: Thread) -> bytes | None:
        """The thread's vector, see `embed`; None if there is no model."""
        if self._embedder is None:
            return None
        try:
            return embed(thread, self._embedder)
        except WorldError as error:
            self._note(f"Similar threads were found without embeddings: {error}")
            self._embedder = None
            return None


class CachingEmbedder:
    """Encodes each text once: a rebuild needs a thread's vector for the replay and for the index, an event needs its
    issue's vector for the index and for the search."""

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


def embed(thread: Thread, embedder: Embedder) -> bytes:
    """The thread's vector; b"" in a language that the model does not know. Raises WorldError when the model fails."""
    from bot.reading.markdown import read  # slow to load, and without a text model nothing needs it

    body = thread.body[:MAX_EMBEDDED_CHARS]
    # Such models were trained on sentences: code, logs and quotations would make all reports of one kind alike.
    prose = "\n".join(read(body).prose) or body
    try:
        (vector,) = embedder.encode([f"{thread.title}\n{prose}"])
    except WorldError:
        raise
    except Exception as error:  # foreign native code: whatever it raises must not stop the run
        raise WorldError(f"the embeddings failed ({type(error).__name__}): the answer uses words alone") from error
    return vector if any(vector) else b""


@dataclass(frozen=True)
class ModelUpdate:
    """The ranking learned from a whole history of ``threads`` threads. ``backtest`` is the evidence, as JSON."""

    ranking: RankingModels
    threads: int
    backtest: Mapping[str, object] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """Its files in the store, by path."""
        contents = {RANKING_PATH: canonical(ranking_fields(self.ranking))}
        if self.backtest:
            contents[BACKTEST_PATH] = canonical(dict(self.backtest))
        return contents


def read_ranking(data: bytes) -> RankingModels:
    """A ranking from untrusted bytes. Raises ValueError."""
    return parse(load_json(data))
