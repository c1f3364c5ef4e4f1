"""Cards, the short form of threads that people and agents see, and the results of searching them.

Named tuples of plain values, quick to import: a search from a shell begins with this module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from bot.domain.change_state import LookedUpFix, NamedChange, change_state, named_change, revise_ending
from bot.domain.hidden_people import HiddenPeople
from bot.domain.kinds import Kind, OutcomeKind
from bot.domain.roles import known_role
from bot.domain.shape import one_word

CardId = int | str
"""Like `bot.domain.thread.ThreadId`: the number of an issue or pull request, or the name of another thread."""


class ThreadFacts(Protocol):
    """What a search knows about a thread before it reads its card."""

    @property
    def id(self) -> CardId: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def state(self) -> str: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def author(self) -> str: ...

    @property
    def created_at(self) -> datetime: ...

    @property
    def updated_at(self) -> datetime: ...


class Ruling(NamedTuple):
    """A sentence that states a decision; ``comment_id`` is GitHub's, None for the opening text.

    ``superseded_by``, ``is_proposal`` and ``done_in`` are as in `bot.domain.thread.Decision`.
    """

    text: str
    author: str
    role: str
    at: datetime | None
    comment_id: int | None = None
    superseded_by: str = ""
    is_proposal: bool = False
    done_in: str = ""


class Ending(NamedTuple):
    """How a thread ended: ``kind`` is a value of `OutcomeKind`; ``fix`` and ``claimed`` are as in `Outcome`."""

    kind: str = OutcomeKind.UNKNOWN
    quote: str = ""
    fix: str = ""
    release: str = ""
    author: str = ""
    role: str = ""
    at: datetime | None = None
    comment_id: int | None = None
    claimed: str = ""

    @property
    def change(self) -> NamedChange | None:
        """The change that it names as the fix."""
        return named_change(self.fix, self.claimed)


class Card(NamedTuple):
    """A thread without its conversation; ``state`` is open or closed.

    ``references`` are the numbers in this repository that its text mentions, in order, ``closes`` those that it says it
    closes; ``duplicate_of`` is the original of a duplicate. ``summary_by`` is who wrote the summary.
    """

    id: CardId
    kind: Kind
    title: str
    author: str
    state: str
    created_at: datetime
    updated_at: datetime
    closed_at: datetime | None = None
    state_reason: str = ""
    labels: tuple[str, ...] = ()
    turn_count: int = 1
    summary: str = ""
    keywords: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    decisions: tuple[Ruling, ...] = ()
    ending: Ending = Ending()
    references: tuple[int, ...] = ()
    duplicate_of: CardId | None = None
    merged_at: datetime | None = None
    closes: tuple[int, ...] = ()
    summary_by: str = ""

    def without(self, people: HiddenPeople) -> Card:
        """The card without the sentences and names of these people. Titles, labels, and names of files stay."""
        if not people:
            return self
        ending = self.ending
        if ending.author in people:
            ending = ending._replace(quote="", author="", role="", comment_id=None)
        return self._replace(
            author=people.alias(self.author),
            summary="" if self.summary_by in people else self.summary,
            decisions=tuple(ruling for ruling in self.decisions if ruling.author not in people),
            ending=ending,
        )


class MessageHit(NamedTuple):
    """A message that a search found: the one at ``position`` in its thread, 0 for the opening text.

    ``role`` is GitHub's ``author_association``, "" if not known. ``score``, ``part`` and ``terms`` are as in `CardHit`,
    but for the message alone.
    """

    thread: CardId
    position: int
    author: str
    role: str
    at: datetime | None
    score: float
    part: float
    terms: tuple[str, ...]


class CardHit(NamedTuple):
    """A card that a search found.

    ``score`` is in BM25F units (≥ 0). ``part`` in 0..1 is the share of the query that the thread contains, weighted by
    the rarity of the words; ``terms`` are the matching terms, the one that adds most first. ``message`` is the best
    message of the thread, None if none was found. ``decides``: decisions are sought, and it has one on the topic.
    """

    card: Card
    score: float
    part: float
    terms: tuple[str, ...]
    message: MessageHit | None = None
    decides: bool = False


class ThreadMessage(NamedTuple):
    """A message of a thread; ``comment_id`` is GitHub's, None for the opening text."""

    author: str
    role: str
    at: datetime | None
    text: str
    comment_id: int | None = None


class Passage(NamedTuple):
    """What was said about the words of a search: at most two sentences of a message, "" if its text is unavailable.

    The text is a stranger's. ``thread``, which is of this ``kind``, and ``comment_id`` say where it is.
    """

    thread: CardId
    author: str
    role: str
    at: datetime | None
    text: str = ""
    comment_id: int | None = None
    kind: Kind = Kind.ISSUE


class CardLink(NamedTuple):
    """``source`` points at ``target``; ``kind`` is ``reference``, ``duplicate`` (of) or ``fix`` (fixed by)."""

    source: CardId
    target: CardId
    kind: str


class SessionPassage(NamedTuple):
    """A message of a session that a search found. ``type`` is ``user`` or ``assistant``; ``text`` is at most 500
    characters around the match; ``session`` names the thread, ``path`` the transcript; ``part`` is as in `CardHit`."""

    session: str
    type: str
    text: str
    at: datetime | None
    score: float
    path: str
    part: float = 1.0


class SessionOutline(NamedTuple):
    """A session without its messages.

    ``title`` is the first line of the first prompt, ``turn_count`` the number of messages, ``path`` a file that
    contains it; times are None if no line has one. ``issue`` is the number of the issue that was worked on. ``why``
    says why it is shown.
    """

    id: str
    title: str
    begun: datetime | None
    ended: datetime | None
    turn_count: int
    path: str
    issue: int | None = None
    files: tuple[str, ...] = ()
    why: tuple[str, ...] = ()


class SessionHit(NamedTuple):
    """A session that was found with threads, and its best or newest message; None if only the session was sought."""

    outline: SessionOutline
    passage: SessionPassage | None = None


Item = TypeVar("Item")

_NUMBER_LIMIT = 2**53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_ITEMS = 200
_MAX_TEXT = 4_000
_MAX_NAME = 200
_KINDS = {kind.value: kind for kind in Kind}
_OUTCOMES = {kind.value: kind for kind in OutcomeKind}


def id_order(key: CardId) -> tuple[bool, CardId]:
    """Sorts ids: numbers come before texts."""
    return isinstance(key, str), key


def name_of(key: CardId) -> str:
    """The name of a thread in files: ``#42``, ``=ABC-123``."""
    return f"#{key}" if isinstance(key, int) else f"={key}"


def key_of(name: str) -> CardId:
    """The inverse of `name_of`."""
    return int(name[1:]) if name[:1] == "#" else name[1:]


def message_id(thread: CardId, position: int) -> str:
    """The id of a message's document: ``#42/3`` is the third comment of issue 42, ``=wiki:Home/0`` a page's text."""
    return f"{name_of(thread)}/{position}"


def message_of(key: CardId) -> tuple[CardId, int]:
    """The thread and position in a message's id. Raises ValueError for any other string."""
    name, _, position = str(key).rpartition("/")
    return key_of(name), int(position)


def card_of(line: str) -> Card | None:
    """The card of a digest (JSON), None for a damaged one."""
    try:
        fields = json.loads(line)
        return _card(fields)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _card(fields: Mapping[str, Any]) -> Card:
    created = _time(fields["created_at"]) or _EPOCH
    return Card(
        id=_key(fields["id"]),
        kind=_KINDS.get(_text(fields.get("kind")), Kind.ISSUE),
        title=_text(fields.get("title")),
        author=_text(fields.get("author")),
        state="closed" if fields.get("state") == "closed" else "open",
        created_at=created,
        updated_at=_time(fields.get("updated_at")) or created,
        closed_at=_time(fields.get("closed_at")),
        state_reason=one_word(fields.get("state_reason")),
        labels=_texts(fields, "labels"),
        turn_count=_number(fields.get("turn_count")) or 1,
        summary=_text(fields.get("summary")),
        keywords=_texts(fields, "keywords"),
        files=_texts(fields, "files"),
        decisions=_parse_list(fields, "decisions", _ruling),
        ending=_ending(fields.get("outcome")),
        references=_parse_list(fields, "references", _reference),
        duplicate_of=_original_of(fields),
        merged_at=_time(fields.get("merged_at")),
        closes=_parse_list(fields, "references", _closing_reference),
        summary_by=_text(fields.get("summary_by")),
    )


def cards_of(
    lines: Iterable[str], people: HiddenPeople, find: Callable[[Iterable[CardId]], Mapping[CardId, Card]]
) -> list[Card]:
    """The cards of these digests as they may be shown: without these people, and with endings that take into account
    the changes that they name, as ``find`` knows them."""
    cards = [card.without(people) for line in lines if (card := card_of(line))]
    numbers = {card.id: number for card in cards if (change := card.ending.change) and (number := change.number)}
    pulls = find(numbers.values()) if numbers else {}
    return [settled_card(card, pulls.get(numbers.get(card.id, 0))) for card in cards]


def settled_card(card: Card, pull: Card | None, fix: LookedUpFix | None = None) -> Card:
    """The card, given what is known about the change that its ending names: the ``pull`` in memory, and the ``fix`` as
    the forge knows it."""
    ending = card.ending
    named = ending.change
    if named is None:
        return card
    revised = revise_ending(ending.kind, ending.fix, ending.claimed, change_state(card.id, named, pull, fix))
    if revised is None:
        return card
    kind, fixed_by, claimed = revised
    release = ending.release if fixed_by else ""
    return card._replace(ending=ending._replace(kind=kind, fix=fixed_by, claimed=claimed, release=release))


def _key(value: Any) -> CardId:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _NUMBER_LIMIT:
        return value
    if isinstance(value, str) and 0 < len(value) <= _MAX_NAME:
        return _text(value)
    raise ValueError("no id")


def _text(value: Any) -> str:
    return value[:_MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NUMBER_LIMIT else 0


def _time(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = fields.get(name)
    return tuple(filter(None, map(_text, value[:_MAX_ITEMS]))) if isinstance(value, list) else ()


def _parse_list(fields: Mapping[str, Any], name: str, parse: Callable[[Any], Item | None]) -> tuple[Item, ...]:
    value = fields.get(name)
    items = map(parse, value[:_MAX_ITEMS]) if isinstance(value, list) else ()
    return tuple(item for item in items if item is not None)


def _ruling(value: Any) -> Ruling | None:
    if not isinstance(value, dict) or not _text(value.get("text")):
        return None
    author, role = _text(value.get("author")), known_role(value.get("role"))
    comment, later = _number(value.get("comment_id")) or None, one_word(value.get("superseded_by"))
    is_proposal, done_in = value.get("is_proposal") is True, one_word(value.get("done_in"))
    return Ruling(_text(value["text"]), author, role, _time(value.get("at")), comment, later, is_proposal, done_in)


def _reference(value: Any) -> int | None:
    is_here = isinstance(value, dict) and not value.get("owner") and not value.get("kind")
    return _number(value.get("number")) or None if is_here else None


def _closing_reference(value: Any) -> int | None:
    return _reference(value) if isinstance(value, dict) and value.get("action") == "closes" else None


def _ending(value: Any) -> Ending:
    if not isinstance(value, dict):
        return Ending()
    return Ending(
        kind=_OUTCOMES.get(_text(value.get("kind")), OutcomeKind.UNKNOWN),
        quote=_text(value.get("quote")),
        fix=one_word(value.get("fix")),
        claimed=one_word(value.get("claimed")),
        release=one_word(value.get("release")),
        author=_text(value.get("author")),
        role=known_role(value.get("role")),
        at=_time(value.get("at")),
        comment_id=_number(value.get("comment_id")) or None,
    )


def _original_of(fields: Mapping[str, Any]) -> CardId | None:
    outcome = fields.get("outcome")
    for value in (fields.get("duplicate_of"), outcome.get("duplicate_of") if isinstance(outcome, dict) else None):
        with suppress(ValueError):
            return _key(value)
    return None


class WorktreeCommit(NamedTuple):
    """A commit of a checkout: its subject and body, and the paths that it touched, relative to the top."""

    message: str
    files: tuple[str, ...] = ()


class Worktree(NamedTuple):
    """The signals of a checkout; all empty without one.

    ``branch`` is empty for a main branch and a detached head. ``commits`` are at most five, newest first. Paths are
    relative to the top: ``modified`` in the working tree, ``staged`` in the index. ``is_own`` says whether the commits
    were made on this branch or, on a main branch, are not pushed yet; ``is_clean_trunk`` that this is a main branch
    with nothing changed, where they are its last ones, pushed or not. ``project`` is its name and ``language`` its main
    language (``python``), empty if unknown. ``unused`` says in words which signals could not be read, and why.
    """

    branch: str = ""
    commits: tuple[WorktreeCommit, ...] = ()
    modified: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    is_own: bool = False
    is_clean_trunk: bool = False
    project: str = ""
    language: str = ""
    unused: tuple[str, ...] = ()
