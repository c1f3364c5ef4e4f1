"""The questions that people and agents ask a memory, the ways to name an issue, and what a memory offers (`Cards`).

The command line, the tools for agents and the bot's replies create these; `bot.questions` has one function for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from bot.domain.card import Card, CardHit, CardId, CardLink, MessageHit, ThreadFacts, ThreadMessage, Worktree
from bot.domain.hosts import SLUG
from bot.domain.kinds import Kind
from bot.errors import UserError
from bot.reading.search_query import SearchQuery, search_query

if TYPE_CHECKING:
    from bot.domain.thread import ThreadId

DAYS, MAX_DAYS = 7, 30
"""Days of recent conversations: by default, and at most."""

MIN_CHARS, MAX_CHARS = 1_000, 120_000
"""Limits of their text in characters, markup included; the larger is about 30,000 tokens."""


Keep = Callable[[ThreadFacts], bool]
"""Whether a thread is wanted."""

ReadMessages = Callable[[Iterable[CardId]], Mapping[CardId, Sequence[ThreadMessage]]]
"""The messages of those threads whose records can be read, the opening text first."""


def nothing_read(_: Iterable[CardId]) -> dict[CardId, Sequence[ThreadMessage]]:
    """For a caller without records."""
    return {}


class WordSearch(NamedTuple):
    """Find at most ``limit`` threads: messages of transcripts if the only kind is ``session``, both without a kind.

    ``words`` is the text as typed, ``query`` its parsed form with all filters. ``expand`` adds the
    threads one link away. ``logs`` are transcripts in addition to those in the settings. ``is_of_organisation``: search
    many repositories.
    """

    words: str
    query: SearchQuery
    limit: int = 10
    expand: bool = False
    logs: tuple[str, ...] = ()
    is_of_organisation: bool = False

    @property
    def is_of_sessions(self) -> bool:
        return self.query.kinds == {Kind.SESSION}

    @property
    def takes_sessions(self) -> bool:
        """Whether it also searches sessions, after the threads."""
        kinds = self.query.kinds
        return (not kinds or Kind.SESSION in kinds) and not set(self.filters_without_sessions) - {"expand"}

    @property
    def filters_without_sessions(self) -> tuple[str, ...]:
        """The filters in use that do not exist for sessions."""
        query = self.query
        filters = {
            "state": query.states,
            "label": query.labels,
            "author": query.opened_by or query.authors,
            "role": query.roles,
            "before": query.before,
            "expand": self.expand,
        }
        return tuple(name for name, is_given in filters.items() if is_given)

    @property
    def since(self) -> datetime | None:
        """The earliest time of messages of sessions."""
        return max(filter(None, (self.query.changed_since, self.query.after)), default=None)


class WorkRequest(NamedTuple):
    """Find what matters for the work in a checkout, as of ``now``; with ``files``, what matters for them.

    A path that ends with "/" is a folder, at the top of the project if it begins with "./"; any other path may be a
    file or a folder. ``is_search``: find at most ``limit`` threads, about the words if there are any, and nothing else;
    ``words`` and ``query`` are as in `WordSearch`.
    """

    worktree: Worktree
    now: datetime
    words: str = ""
    limit: int = 20
    query: SearchQuery = SearchQuery()
    files: tuple[str, ...] = ()
    is_search: bool = False


AnySearch = TypeVar("AnySearch", WordSearch, WorkRequest)


def asked_by(request: AnySearch, questions: tuple[str, ...], now: datetime) -> AnySearch:
    """The request as people understand it who ask with these phrases."""
    if not questions:
        return request
    return request._replace(query=search_query(request.words, now, questions, given=request.query))


class ThreadRequest(NamedTuple):
    """Read the thread called ``name``, with at most ``chars`` characters of its conversation. ``expand``
    adds the threads one link away."""

    name: str
    chars: int
    expand: bool = False


class IssueRequest(NamedTuple):
    """Report what memory knows about an issue, with at most ``chars`` characters of other people's words.

    ``me``: the agent's own logins, by default the bot's.
    """

    issue: Issue
    chars: int
    now: datetime
    me: tuple[str, ...] = ()


class DraftRequest(NamedTuple):
    """Ask what the bot would say about an issue with this title and body, opened ``now``."""

    title: str
    body: str
    now: datetime


class CardSearch(Protocol):
    """The cards of all threads of a repository, as a search needs them: `bot.local_cache` has them on a developer's
    machine, `bot.pipeline.memory_cards` where the bot runs. Both give the same answers."""

    @property
    def size(self) -> int:
        """Number of threads."""
        ...

    @property
    def messages(self) -> int:
        """Number of messages that can be searched, 0 before the memory has an index of them."""
        ...

    def search(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Keep | None = None,
        floor: float = 0.0,
    ) -> list[CardHit]:
        """The ``limit`` best threads for these terms (`bot.reading.analyzer.terms`), each with its score (> 0).

        Searches titles, opening texts, decisions, keywords, files and summaries. Best first; equal scores by id,
        numbers before texts. Leaves out threads that ``keep`` refuses or whose `CardHit.part` is below ``floor``.
        """
        ...

    def search_messages(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[MessageHit], bool] | None = None,
        floor: float = 0.0,
    ) -> list[MessageHit]:
        """As `search`, for the messages of threads: opening texts, with their titles, and comments."""
        ...

    def rarity(self, terms: Iterable[str]) -> Mapping[str, float]:
        """The weight (> 0) of each term by how few threads have it in their titles and opening texts."""
        ...

    def newest(self, limit: int, keep: Callable[[Card], bool]) -> list[Card]:
        """The ``limit`` threads that changed last, among those that ``keep`` accepts."""
        ...

    def threads_with(self, keep: Callable[[MessageHit], bool]) -> set[CardId]:
        """The threads with a message that ``keep`` accepts; the hits have no score. Reads all messages' facts."""
        ...

    def facts(self, ids: Iterable[CardId]) -> Mapping[CardId, ThreadFacts]:
        """The facts of those threads that are known, which may be quicker than their cards."""
        ...

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        """The cards of those threads that are known."""
        ...


class Cards(CardSearch, Protocol):
    """The same, with the links between threads, and the files and decisions in them."""

    def file_mentions(self, path: str) -> dict[CardId, tuple[str, ...]]:
        """The threads that name this file, each with its spellings. Two paths match if one ends with the other."""
        ...

    def files(self) -> Iterable[tuple[CardId, str]]:
        """All files that threads name: each thread with each of its files, as it writes them."""
        ...

    def links(self, ids: Iterable[CardId]) -> list[CardLink]:
        """The links from and to these threads."""
        ...

    def recently_decided(self, limit: int) -> list[Card]:
        """The threads with the newest decisions, newest first."""
        ...


MAX_NAME = 200

_ISSUE = rf"(?P<repo>{SLUG})?#(?P<number>[1-9][0-9]{{0,14}})|(?P<digits>[1-9][0-9]{{0,14}})"
_ISSUE_URL = (
    rf"(?:https?://[A-Za-z0-9.:-]{{1,260}}|[A-Za-z0-9-]{{1,63}}\.[A-Za-z0-9.:-]{{1,200}})/(?P<repo>{SLUG})/(?:-/)?(?:issues|pull|merge_requests)/"
    r"(?P<number>[1-9][0-9]{0,14})(?:[/?#]\S*)?"
)


class Issue(NamedTuple):
    """An issue or pull request as somebody named it; ``repo`` is OWNER/NAME, or "" if not given."""

    number: int
    repo: str = ""

    def is_of(self, repo: str) -> bool:
        """Whether it may belong to the repository ``repo``, "" for an unknown one."""
        return not self.repo or not repo or self.repo.casefold() == repo.casefold()

    def within(self, repo: str) -> int:
        """Its number in this repository. Raises UserError if it belongs to another one."""
        if self.is_of(repo):
            return self.number
        raise UserError(
            f"{self.repo}#{self.number} is not an issue of {repo}: name its repository with --repo {self.repo}"
        )


def parse_issue(text: str) -> Issue | None:
    """Parse ``42``, ``#42``, ``OWNER/NAME#42`` or the address of an issue's page; None for anything else."""
    text = text.strip()
    if match := re.fullmatch(_ISSUE_URL, text, re.ASCII | re.IGNORECASE):
        return Issue(int(match["number"]), match["repo"])
    match = re.fullmatch(_ISSUE, text, re.ASCII)
    return Issue(int(match["number"] or match["digits"]), match["repo"] or "") if match else None


def keys_of(text: str, repo: str = "") -> list[ThreadId]:
    """The ids that this name of a thread may mean in the memory of ``repo``, the likeliest first.

    A number comes before a text of the same digits; a text that looks like an issue elsewhere comes before its number.
    """
    from bot.domain.thread_json import storable  # a search does not need it

    name = storable(text)[:MAX_NAME].strip()
    names = list(dict.fromkeys((name.removeprefix("#"), name)))
    issue = parse_issue(name)
    if issue is None or not issue.is_of(repo):
        return [*names]
    return [*names, issue.number] if issue.repo else [issue.number, *names]
