"""Makes the digest for maintainers from a whole memory; nothing is fetched or written."""

from __future__ import annotations

import json
from collections.abc import Callable

from bot.domain.card import Card, CardId, card_of
from bot.domain.thread import RepositoryAddress
from bot.memory.memory import Memory
from bot.memory.shards import DIGESTS, FIXES, read_texts
from bot.pipeline.clusters import LINK_SECONDS, link_threads
from bot.questions.digest import DigestRequest, DigestSource, MaintainerReport, maintainer_report
from bot.recall.clusters import clusters_of
from bot.settings.schema import Settings


def digest_of_memory(
    memory: Memory,
    settings: Settings,
    place: RepositoryAddress,
    request: DigestRequest,
    tick: Callable[[int], None] = lambda _: None,
    clock: Callable[[], float] | None = None,
) -> MaintainerReport:
    """The digest of an opened memory. ``tick`` is called as issues are compared.

    With a ``clock``, threads that no run has compared for clusters yet are compared now, for at most LINK_SECONDS.
    """
    if clock:
        link_threads(memory, request.until, clock, LINK_SECONDS, tick)
    return maintainer_report(digest_source(memory, settings, place, request), tick)


def digest_source(memory: Memory, settings: Settings, place: RepositoryAddress, request: DigestRequest) -> DigestSource:
    cards, repeats = _cards(memory)
    fixes = memory.state.all_values(FIXES)
    clusters = clusters_of(memory)
    return DigestSource(
        cards, repeats, fixes, clusters, memory, settings, place, request, uncompared=len(memory.uncompared())
    )


def _cards(memory: Memory) -> tuple[dict[CardId, Card], dict[CardId, CardId]]:
    """All threads that GitHub shows, and for each duplicate the issue that somebody calls its original."""
    hidden, people = set(memory.state.manifest.hidden_by_github), memory.hidden_people
    cards: dict[CardId, Card] = {}
    repeats: dict[CardId, CardId] = {}
    for path, data in memory.state.base.digest_shards():
        for key, line in read_texts(data):
            card = card_of(line)
            if card and card.id == key and key not in hidden and DIGESTS.path(key) == path:
                cards[key] = card.without(people)._replace(summary="", keywords=(), references=())  # saves a third
                if '"duplicate"' in line and (target := _original_of(line)):
                    repeats[key] = target
    return cards, repeats


def _original_of(line: str) -> int:
    """The first issue of this repository that the text of a thread calls its original; 0 without one."""
    references = json.loads(line).get("references")
    named = (
        (reference for reference in references if isinstance(reference, dict)) if isinstance(references, list) else ()
    )
    numbers = (
        reference.get("number")
        for reference in named
        if reference.get("action") == "duplicate" and not reference.get("owner")
    )
    return next((number for number in numbers if isinstance(number, int) and number > 0), 0)
