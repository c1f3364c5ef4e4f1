"""What a memory has learned from its own threads: vectors of words, and a ranking."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from bot.errors import WorldError
from bot.memory.records import canonical
from bot.model import Thread
from bot.ranking import Ranking, parse, ranking_fields, shipped
from bot.reading.words import body_terms, terms

if TYPE_CHECKING:
    from bot.numeric.word_vectors import WordVectors

WORDS = "model/words.bin"
RANKING = "model/ranking.json"

MAX_EMBEDDED = 4_000
"""Characters of an opening text that are embedded; a model reads fewer words than that."""


class Embedder(Protocol):
    """A model that was downloaded: texts → vectors of signed bytes. ``fingerprint`` tells it from others."""

    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> list[bytes]: ...


@dataclass(frozen=True)
class Learned:
    """``words``: vectors of the repository's words, None where none were trained. ``embedder``: None if not wanted."""

    ranking: Ranking
    words: WordVectors | None = None
    embedder: Embedder | None = None

    def vectors(self, thread: Thread, arms: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
        """The thread's vectors by arm; empty ones are left out. ``arms``: those that are known already."""
        found = {**(arms or {}), **self.term_vectors(terms(thread.title), body_terms(thread.body))}
        if self.embedder and "semantic" not in found:
            found |= embedded(thread, self.embedder)
        return {arm: vector for arm, vector in found.items() if vector}

    def term_vectors(self, title: Sequence[str], body: Sequence[str]) -> dict[str, bytes]:
        """The vectors of a text from its analysed terms."""
        if self.words is None:
            return {}
        found = {"trained": self.words.text(title, body), "trained_title": self.words.title(title)}
        return {arm: vector for arm, vector in found.items() if vector}

    def without_embedder(self) -> Learned:
        return replace(self, embedder=None)


def embedded(thread: Thread, embedder: Embedder) -> dict[str, bytes]:
    """The thread's vectors by a downloaded model. Raises WorldError when that fails."""
    try:
        text, title = embedder.encode([f"{thread.title}\n{thread.body[:MAX_EMBEDDED]}", thread.title])
    except WorldError:
        raise
    except Exception as error:  # native code of others: whatever it raises costs the arm, not the run
        raise WorldError(f"the embeddings failed ({type(error).__name__}): the answer goes by words") from error
    return {"semantic": text, "semantic_title": title}


def read_words(data: bytes) -> WordVectors:
    """Word vectors from the bytes of a stranger. Raises ValueError."""
    from bot.numeric.word_vectors import decode

    return decode(data)


def read_ranking(data: bytes) -> Ranking:
    """A ranking from the bytes of a stranger. Raises ValueError."""
    try:
        fields: Any = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return parse(fields)


def write_ranking(ranking: Ranking) -> bytes:
    """The canonical bytes of a ranking."""
    return canonical(ranking_fields(ranking))


def nothing() -> Learned:
    """What a memory knows that has learned nothing: what is shipped."""
    return Learned(shipped())
