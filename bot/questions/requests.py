"""What a question needs of memory (`Cards`), and how an issue is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bot.domain.card import Card, CardHit, CardId, CardLink
from bot.errors import UserError

if TYPE_CHECKING:
    from bot.domain.thread import ThreadId

DAYS, MAX_DAYS = 7, 30
"""Days of recent conversations: usually, and at most."""

MIN_CHARS, MAX_CHARS = 1_000, 120_000
"""Characters of their text, its frame included, at least and at most: about 30,000 tokens."""


class Cards(Protocol):
    """The cards of all threads of a repository. `bot.local_cache` is one on this machine."""

    @property
    def size(self) -> int:
        """Number of threads."""
        ...

    def search(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[Card], bool] | None = None,
        floor: float = 0.0,
    ) -> list[CardHit]:
        """The ``limit`` best threads for these terms (`bot.reading.analyzer.terms`), each with its score (> 0).

        They are looked for in titles, opening texts, decisions, keywords, files and summaries; best first, equal scores
        by id, numbers before texts. ``keep`` leaves threads out; ``floor`` those whose `CardHit.part` is smaller.
        """
        ...

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        """The cards of those threads that are known."""
        ...

    def naming(self, path: str) -> dict[CardId, tuple[str, ...]]:
        """The threads that name this file, each with how they write it: a path of which one ends as the other does."""
        ...

    def links(self, ids: Iterable[CardId]) -> list[CardLink]:
        """What points from these threads, and what points at them."""
        ...

    def decided(self, limit: int) -> list[Card]:
        """The threads with the newest decisions, newest first."""
        ...


MAX_NAME = 200

SLUG = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_.-]{1,100}"

_ISSUE = re.compile(rf"(?P<repo>{SLUG})?#(?P<number>[1-9][0-9]{{0,14}})|(?P<digits>[1-9][0-9]{{0,14}})", re.ASCII)
_ADDRESS = re.compile(
    rf"(?:https?://[A-Za-z0-9.:-]{{1,260}}|[A-Za-z0-9-]{{1,63}}\.[A-Za-z0-9.:-]{{1,200}})/(?P<repo>{SLUG})/(?:-/)?(?:issues|pull|merge_requests)/"
    r"(?P<number>[1-9][0-9]{0,14})(?:[/?#]\S*)?",
    re.ASCII | re.IGNORECASE,
)


class Issue(NamedTuple):
    """An issue or pull request as somebody names it; ``repo`` is OWNER/NAME, "" where they do not say."""

    number: int
    repo: str = ""

    def is_of(self, repo: str) -> bool:
        """Whether it may be one of the repository ``repo``, "" where nobody knows which that is."""
        return not self.repo or not repo or self.repo.casefold() == repo.casefold()

    def within(self, repo: str) -> int:
        """Its number in this repository. UserError where it is named as one of another."""
        if self.is_of(repo):
            return self.number
        raise UserError(f"{self.repo}#{self.number} is no issue of {repo}: name its repository with --repo {self.repo}")


def issue_named(text: str) -> Issue | None:
    """The issue that ``42``, ``#42``, ``OWNER/NAME#42`` or the address of its page names; None for anything else."""
    text = text.strip()
    if found := _ADDRESS.fullmatch(text):
        return Issue(int(found["number"]), found["repo"])
    found = _ISSUE.fullmatch(text)
    return Issue(int(found["number"] or found["digits"]), found["repo"] or "") if found else None


def keys_of(text: str, repo: str = "") -> list[ThreadId]:
    """What may be meant by this name of a thread in the memory of ``repo``, what goes before first.

    A number goes before a name of the same digits, and a name that looks like an issue elsewhere before its number.
    """
    from bot.domain.thread_json import clean  # a search has no use for it

    name = clean(text)[:MAX_NAME].strip()
    names = list(dict.fromkeys((name.removeprefix("#"), name)))
    named = issue_named(name)
    if named is None or not named.is_of(repo):
        return [*names]
    return [*names, named.number] if named.repo else [named.number, *names]
