"""Measures how often a search for words finds the thread that they come from, in the five development archives.

python -m bench.bench_search

Needs the archives next to the checkout. Three kinds of searches, drawn with a fixed seed: a word that occurs in exactly
one comment of the archive and nowhere else; three words of one comment; two to four words of a title. `before` searches
only titles, opening texts and digests, `after` also messages.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.archives import need_archives
from bot.domain.card import CardId
from bot.domain.changes import Changes
from bot.domain.thread import Thread
from bot.index.scoring import MIN_QUERY_SHARE
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS_SCHEMA, open_database
from bot.local_cache.sync import fill_cache
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.questions.passages import messages_of
from bot.questions.requests import WordSearch
from bot.questions.search import search_memory
from bot.reading.analyzer import terms, token_terms, tokens
from bot.reading.search_query import SearchQuery
from tools.fit_ranking import SEED, archives

EACH, TITLES, SHOWN = 40, 100, 10
"""Searches of each comment kind in an archive, title searches, and hits to consider."""

_WORD = re.compile(r"[A-Za-z]{4,20}")


class WordQuery(NamedTuple):
    """A search and the thread that its words come from."""

    words: str
    thread: CardId


def cache_of(threads: Sequence[Thread], folder: Path) -> LocalCache:
    """The cache of a memory of these threads, as on a developer's machine."""
    memory = Memory(FolderStore(folder / "store")).open()
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("archive")
    database = open_database(folder / "cache.db", CARDS_SCHEMA)
    fill_cache(database, memory, "1")
    memory.close()
    return LocalCache(database)


def searches(threads: Sequence[Thread], rng: random.Random) -> dict[str, list[WordQuery]]:
    """The searches of each kind."""
    comments = [(thread.id, message.text) for thread in threads for message in thread.comments if not message.is_bot]
    three: list[WordQuery] = []
    while len(three) < EACH:
        key, text = rng.choice(comments)
        if len(words := _words(text)) >= 8:
            three.append(WordQuery(" ".join(rng.sample(words, 3)), key))
    titles: list[WordQuery] = []
    while len(titles) < TITLES:
        thread = rng.choice(threads)
        if len(words := _words(thread.title)) >= 3:
            titles.append(WordQuery(" ".join(rng.sample(words, min(len(words), rng.choice((2, 3, 4))))), thread.id))
    single = rng.sample(_in_one_comment(threads), EACH)
    return {"a word of one comment": single, "three words of a comment": three, "words of a title": titles}


def _words(text: str) -> list[str]:
    """The plain words of a text that give exactly one term, in a fixed order."""
    by_term = {
        token_terms(token)[0]: token
        for token in tokens(text)
        if _WORD.fullmatch(token) and len(token_terms(token)) == 1
    }
    return sorted(by_term.values())


def _in_one_comment(threads: Sequence[Thread]) -> list[WordQuery]:
    occurrences: dict[str, set[tuple[CardId, int]]] = defaultdict(set)
    for thread in threads:
        for position, message in enumerate(messages_of(thread)):
            for term in terms(f"{thread.title}\n{message.text}" if position == 0 else message.text):
                occurrences[term].add((thread.id, position))
    once = {term for term, positions in occurrences.items() if len(positions) == 1}
    return sorted(
        {
            WordQuery(word, thread.id)
            for thread in threads
            for message in thread.comments
            if not message.is_bot
            for word in _words(message.text)
            if token_terms(word)[0] in once
        },
        key=str,
    )


def rank(ids: Iterable[CardId], thread: CardId) -> int:
    """The rank of a thread among the hits, from 1; 0 if it is not among them."""
    return next((position for position, key in enumerate(ids, 1) if key == thread), 0)


def main() -> None:
    need_archives()
    ranks: dict[tuple[str, str], list[int]] = defaultdict(list)
    rng = random.Random(SEED)
    for archive in archives():
        with TemporaryDirectory() as folder:
            threads = archive.history.threads
            cache = cache_of(threads, Path(folder))
            for kind, queries in searches(threads, rng).items():
                for query in queries:
                    weights = {term: float(count) for term, count in Counter(terms(query.words)).items()}
                    old = cache.search(weights, limit=SHOWN, floor=MIN_QUERY_SHARE)
                    new = search_memory(WordSearch(query.words, SearchQuery(query.words), SHOWN), cache).hits
                    ranks[kind, "before"].append(rank((hit.card.id for hit in old), query.thread))
                    ranks[kind, "after"].append(rank((hit.card.id for hit in new), query.thread))
        print(f"{archive.name}: {len(threads):,} threads, {cache.messages:,} messages", flush=True)
    print(f"\n{'':28}{'searches':>10}{'first':>8}{'among ten':>11}{'mean 1/rank':>13}")
    for (kind, when), kind_ranks in sorted(ranks.items(), key=lambda row: (row[0][0], row[0][1] == "after")):
        first, among = sum(place == 1 for place in kind_ranks), sum(place > 0 for place in kind_ranks)
        mean = sum(1 / place for place in kind_ranks if place) / len(kind_ranks)
        print(f"{kind}, {when:<{26 - len(kind)}}{len(kind_ranks):>10}{first:>8}{among:>11}{mean:>13.3f}")


if __name__ == "__main__":
    main()
