"""The contract of the index: documents, queries and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypedDict

from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.thread import Kind, ThreadId

TEXT = "text"
"""The field of titles and opening texts, against which a new thread is compared."""

NOTES = "notes"
"""The field of the digest: decisions, keywords, files, summary. Used for a search by words."""

FLOOD_THRESHOLD = 25
"""More unvouched threads of one account at one moment are a flood. In six archives, the peak was 20 for the busiest
person, 28 for a bot with weekly digests, and 26 for all deleted accounts, which count as one."""


class IndexCorrupt(Exception):
    """The index is damaged, hostile, or of a format that this version does not read. The remedy is to rebuild it."""


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A thread as indexed: its entry, and its analysed terms in order, with repetitions.

    ``notes`` maps a section (``decisions``, ``keywords``, ``files``, ``summary``; others count least) to its terms.
    ``vector`` is that of its text, by a text model: signed bytes, as many as all others have, at most 1,024. None: no
    text model has read the thread; b"": one has, but does not know its language.
    ``has_role``: the thread records the author's role in the repository, also if the role is ``NONE``.
    """

    entry: IndexEntry
    title: Sequence[str]
    body: Sequence[str] = ()
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    vector: bytes | None = None
    has_role: bool = True


@dataclass(frozen=True, slots=True)
class Query:
    """Analysed terms with their weights, and the fields to search with theirs.

    Weights are ≥ 0; a term or field of weight 0 is skipped. ``vector`` has signed bytes; b"" for none. A ``blend``
    weighs features by name (those with an array form in `bot.ranking.features`): the best documents are then those with
    the highest sum; without one, those with the highest score. ``kinds`` limits the search to some kinds (None: all),
    which finds few among many faster than ``keep``. A ``floor`` leaves out documents that hold less of the query
    (`IndexHit.part`); None: that is not computed. Hits list the ``most_terms`` terms that add most to a score.
    """

    terms: Mapping[str, float]
    fields: Mapping[str, float] = field(default_factory=lambda: {TEXT: 1.0})
    vector: bytes = b""
    blend: Mapping[str, float] | None = None
    kinds: frozenset[Kind] | None = None
    floor: float | None = None
    most_terms: int = 8


class SearchOptions(TypedDict, total=False):
    """The options of ``Index.search``, for callers that only pass them on."""

    limit: int
    before: datetime | None
    keep: Callable[[IndexEntry], bool] | None


PostingItem = tuple[bytes, list[int], bytes]
"""A key, its documents in ascending order, and a level for each."""


class IndexSegment(Protocol):
    """A segment of ``count`` documents, some of which are ``deleted``. Reading damaged ones may raise any exception."""

    count: int
    deleted: frozenset[int]

    def items(self) -> Iterator[PostingItem]:
        """All lists."""

    def entry(self, document: int) -> IndexEntry:
        """The entry of a document by its number."""


class Index(Protocol):
    """A searchable set of threads, at most one document for each id. `bot.index.open_index` opens one."""

    def search(
        self,
        query: Query,
        *,
        limit: int = 200,
        before: datetime | None = None,
        keep: Callable[[IndexEntry], bool] | None = None,
    ) -> list[IndexHit]:
        """The ``limit`` best threads: by their score for the terms of ``query``, or by the sum of its blend.

        They are ordered by their score for the terms (0 if they share none), best first; equal scores by id, numbers
        before strings. Without a blend, only threads that share a term are found; a blend without ``before`` raises
        ValueError. With ``before``, later threads do not exist: they are neither found nor counted in term statistics,
        and duplicates that became known later are not counted. Unvouched threads (`IndexEntry.is_unvouched_at`) do not
        exist either if they were closed then, or if their account had more than FLOOD_THRESHOLD of them; but if no
        issue has a role (`IndexDocument.has_role`), none is unvouched. ``keep`` filters threads after scoring; it is
        called once for each, best first. A vector that differs in length from those of the index has a cosine of 0.
        Raises IndexCorrupt.
        """

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> dict[str, float]:
        """The inverse document frequency (> 0, natural logarithm) of each term in titles and opening texts.

        Raises IndexCorrupt.
        """

    def joint_frequency(
        self, groups: Iterable[frozenset[str]], *, before: datetime | None = None
    ) -> dict[frozenset[str], int]:
        """How many threads contain all terms of each group in titles and opening texts; 0 for an empty group.

        For the terms of a query, this reads no more than `rarity` did. Raises IndexCorrupt.
        """

    def entries(self, ids: Iterable[ThreadId]) -> dict[ThreadId, IndexEntry]:
        """The entries of those ``ids`` that are in the index. Raises IndexCorrupt."""

    def of_kind(self, kind: Kind) -> list[IndexEntry]:
        """The entries of all threads of this kind, in no order. Raises IndexCorrupt."""

    def vectors(self) -> dict[ThreadId, bytes]:
        """The vectors of all threads that a text model has read (`IndexDocument.vector`).

        Raises IndexCorrupt.
        """

    def unread(self) -> list[ThreadId]:
        """The threads that no text model has read, newest first. Raises IndexCorrupt."""

    def update(self, documents: Iterable[IndexDocument], remove: Iterable[ThreadId] = ()) -> None:
        """Add documents, replacing those with the same id, and delete ``remove``; effective at once, also on disk.

        Of two documents with the same id, the later one is kept; an id in both arguments is kept. After IndexCorrupt
        the folder is unchanged. Raises ValueError for vectors of different lengths, IndexCorrupt if those of the index
        have another one.
        """

    def count(self, kind: Kind) -> int:
        """The number of threads of this kind. Raises IndexCorrupt."""

    def segments(self) -> Mapping[str, IndexSegment]:
        """Its segments by name, for callers that store their contents elsewhere; a name always stands for one content.

        Raises IndexCorrupt.
        """

    def close(self) -> None:
        """Release the files. Using the index afterwards is an error."""

    def __len__(self) -> int:
        """The number of threads."""


LAYOUT_VERSION = 12
"""The layout of an index and of the digests next to it. Raise it with each change that makes older files unreadable or
changes their meaning. The manifest stores it; 0 stands for files from before this number existed."""
