"""How often a search for words finds the thread in which they were said, in the five development archives.

python -m tests.bench.bench_search

Three kinds of searches, drawn with a fixed seed: a word that stands in exactly one comment of the archive and nowhere
else; three words of one comment; two to four words of a title. `before` looks only in titles, opening texts and
digests, `after` in messages as well.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bot.domain.card import LEAST_PART, CardId
from bot.domain.changes import Changes
from bot.domain.thread import Thread
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS, open_database
from bot.local_cache.sync import fill_cache
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.questions.passages import messages_of
from bot.questions.requests import WordSearch
from bot.questions.search import search_memory
from bot.reading.analyzer import terms, token_terms, tokens
from tools.fit_ranking import SEED, archives

EACH, TITLES, SHOWN = 40, 100, 10
"""Searches of each kind in an archive, title searches, and hits that are looked at."""

_WORD = re.compile(r"[A-Za-z]{4,20}")


class Asked(NamedTuple):
    """A search, and the thread that its words come from."""

    words: str
    thread: CardId


def cache_of(threads: Sequence[Thread], folder: Path) -> LocalCache:
    """The cache of a memory of these threads, as on a developer's machine."""
    memory = Memory(FolderStore(folder / "store")).open()
    memory.stage(Changes(records=tuple(threads)))
    memory.commit("archive")
    database = open_database(folder / "cache.db", CARDS)
    fill_cache(database, memory, "1")
    memory.close()
    return LocalCache(database)


def searches(threads: Sequence[Thread], chance: random.Random) -> dict[str, list[Asked]]:
    """The searches of each kind."""
    comments = [(one.id, said.text) for one in threads for said in one.comments if not said.is_bot]
    three: list[Asked] = []
    while len(three) < EACH:
        key, text = chance.choice(comments)
        if len(words := _words(text)) >= 8:
            three.append(Asked(" ".join(chance.sample(words, 3)), key))
    titles: list[Asked] = []
    while len(titles) < TITLES:
        one = chance.choice(threads)
        if len(words := _words(one.title)) >= 3:
            titles.append(Asked(" ".join(chance.sample(words, min(len(words), chance.choice((2, 3, 4))))), one.id))
    single = chance.sample(_in_one_comment(threads), EACH)
    return {"a word of one comment": single, "three words of a comment": three, "words of a title": titles}


def _words(text: str) -> list[str]:
    """The plain words of a text, each that gives one term, in a fixed order."""
    found = {token_terms(one)[0]: one for one in tokens(text) if _WORD.fullmatch(one) and len(token_terms(one)) == 1}
    return sorted(found.values())


def _in_one_comment(threads: Sequence[Thread]) -> list[Asked]:
    places: dict[str, set[tuple[CardId, int]]] = defaultdict(set)
    for one in threads:
        for place, said in enumerate(messages_of(one)):
            for term in terms(f"{one.title}\n{said.text}" if place == 0 else said.text):
                places[term].add((one.id, place))
    once = {term for term, found in places.items() if len(found) == 1}
    return sorted(
        {
            Asked(word, one.id)
            for one in threads
            for said in one.comments
            if not said.is_bot
            for word in _words(said.text)
            if token_terms(word)[0] in once
        },
        key=str,
    )


def rank(found: Iterable[CardId], wanted: CardId) -> int:
    """The place of a thread among the hits, from 1; 0 if it is not among them."""
    return next((place for place, key in enumerate(found, 1) if key == wanted), 0)


def main() -> None:
    ranks: dict[tuple[str, str], list[int]] = defaultdict(list)
    chance = random.Random(SEED)
    for archive in archives():
        with TemporaryDirectory() as folder:
            threads = archive.history.threads
            cache = cache_of(threads, Path(folder))
            for kind, asked in searches(threads, chance).items():
                for one in asked:
                    weights = {term: float(count) for term, count in Counter(terms(one.words)).items()}
                    old = cache.search(weights, limit=SHOWN, floor=LEAST_PART)
                    new = search_memory(WordSearch(one.words, limit=SHOWN), cache).hits
                    ranks[kind, "before"].append(rank((hit.card.id for hit in old), one.thread))
                    ranks[kind, "after"].append(rank((hit.card.id for hit in new), one.thread))
        print(f"{archive.name}: {len(threads):,} threads, {cache.messages:,} messages", flush=True)
    print(f"\n{'':28}{'searches':>10}{'first':>8}{'among ten':>11}{'mean 1/rank':>13}")
    for (kind, when), found in sorted(ranks.items(), key=lambda row: (row[0][0], row[0][1] == "after")):
        first, among = sum(one == 1 for one in found), sum(one > 0 for one in found)
        mean = sum(1 / one for one in found if one) / len(found)
        print(f"{kind}, {when:<{26 - len(kind)}}{len(found):>10}{first:>8}{among:>11}{mean:>13.3f}")


if __name__ == "__main__":
    main()
