"""The contract of the index: what goes in, what is asked, what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypedDict

from bot.domain.digest import Hit, IndexEntry
from bot.domain.thread import Kind, ThreadId

TEXT = "text"
"""The field of titles and opening texts: what a new thread is compared with."""

NOTES = "notes"
"""The field of what was made of the thread: decisions, keywords, files, summary. For a search by words."""

VECTOR_FIELDS = ("trained", "trained_title", "semantic", "semantic_title")
"""The kinds of vectors that a document may have beside its terms: of its text and of its title, from the model that the
repository trained on itself and from an optional one that was downloaded."""

FLOOD = 25
"""More unvouched threads of one account at one moment than this are no questions. In six archives the busiest person
had 20, a bot with weekly digests 28, and all accounts that are gone, which count as one, 26 at their worst moment."""


class IndexCorrupt(Exception):
    """The index is damaged, hostile, or of a format that this version does not read. The remedy is to rebuild it."""


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A thread as it is indexed: its entry, and analysed terms in order, with repetitions.

    ``notes`` maps a section (``decisions``, ``keywords``, ``files``, ``summary``; others count least) to its terms.
    ``vectors`` maps an arm to a vector of signed bytes; all of one arm in an index have one length, at most 1,024.
    ``has_role``: the thread tells what its author is to the repository, be it nothing.
    """

    entry: IndexEntry
    title: Sequence[str]
    body: Sequence[str] = ()
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    vectors: Mapping[str, bytes] = field(default_factory=dict)
    has_role: bool = True


@dataclass(frozen=True, slots=True)
class Query:
    """Analysed terms with their weights, and the fields to look in with theirs.

    Weights are ≥ 0; a term or field of weight 0 is skipped. ``vectors`` maps a vector field to a vector of signed
    bytes. A ``blend`` weighs features by name (those with an array form in `bot.ranking.features`): the best documents
    are then those with the highest sum; without one, those with the highest score. ``kinds`` limits the search to some
    kinds (None: all), which finds few among many faster than ``keep``.
    """

    terms: Mapping[str, float]
    fields: Mapping[str, float] = field(default_factory=lambda: {TEXT: 1.0})
    vectors: Mapping[str, bytes] = field(default_factory=dict)
    blend: Mapping[str, float] | None = None
    kinds: frozenset[Kind] | None = None


class Narrowing(TypedDict, total=False):
    """The options of ``Index.search``, as those pass them on who do not look at them."""

    limit: int
    before: datetime | None
    keep: Callable[[IndexEntry], bool] | None


PostingItem = tuple[bytes, list[int], bytes]
"""A key, its documents in ascending order, and a level for each."""

Fetch = Callable[[Sequence[str]], Mapping[str, bytes]]
"""Names of parts → those of them that the store has, all in one exchange."""


class IndexSegment(Protocol):
    """A segment of ``count`` documents, of which some are ``deleted``. Reading a damaged one may raise anything."""

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
    ) -> list[Hit]:
        """The ``limit`` best threads: by their score for the terms of ``query``, or by the sum of its blend.

        Ordered by their score for the terms (0 where none is shared), best first; equal scores by id, numbers before
        strings. Without a blend only threads that share a term are found; a blend needs ``before``, else ValueError.
        With ``before``, threads that were created then or later do not exist: they are neither found nor counted in
        term statistics, and duplicates that became known after it are not counted. Nor do unvouched threads exist
        (`IndexEntry.is_unvouched_at`) that were closed then, or whose account had more than FLOOD of them. But where no
        issue has a role (`IndexDocument.has_role`), none is unvouched, as nobody knows who is unknown. ``keep`` leaves
        threads out after they were scored; it is asked about each once, the best first. A vector whose length is not
        that of its vector field is near to nothing. Raises IndexCorrupt.
        """

    def rarity(self, terms: Iterable[str], *, before: datetime | None = None) -> dict[str, float]:
        """The inverse document frequency (> 0, natural logarithm) of each term in titles and opening texts.

        Raises IndexCorrupt.
        """

    def held_by(self, groups: Iterable[frozenset[str]], *, before: datetime | None = None) -> dict[frozenset[str], int]:
        """How many threads hold all terms of each group in their titles and opening texts; none hold an empty one.

        Of the terms of a question this reads nothing that `rarity` has not read. Raises IndexCorrupt.
        """

    def entries(self, ids: Iterable[ThreadId]) -> dict[ThreadId, IndexEntry]:
        """The entries of those of ``ids`` that are in the index. Raises IndexCorrupt."""

    def update(self, documents: Iterable[IndexDocument], remove: Iterable[ThreadId] = ()) -> None:
        """Put documents in the place of those with the same id, and take out ``remove``; visible at once, and on disk.

        Of two documents with one id the later one stays; an id in both arguments stays. Raises IndexCorrupt; what was
        there before is then still on disk.
        """

    def count(self, kind: Kind) -> int:
        """The number of threads of this kind. Raises IndexCorrupt."""

    def segments(self) -> Mapping[str, IndexSegment]:
        """Its segments by name, for callers that keep their contents elsewhere; a name always stands for one content.

        Fetches all parts. Raises IndexCorrupt.
        """

    def parts(self) -> set[str]:
        """The names of the parts that its large segments lie in."""

    def close(self) -> None:
        """Release the files. Using the index afterwards is an error."""

    def __len__(self) -> int:
        """The number of threads."""


LAYOUT = 3
"""The layout of an index and of the digests beside it: one more with each change after which what was written before
it cannot be read, or says something else than this version would. The manifest has it, 0 where it was written before
there was such a number."""

PARTS_FOLDER = "parts"
"""Where in the folder of an index the parts lie that are here."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a segment in one file and a part become.

    ``documents``: a segment of more is written in parts; above that, most of what an event fetched it would not read.
    ``rows`` and ``entries``: documents whose numbers and codes, and whose entries, are in one part: the candidates of a
    question are scattered over all of history. ``bucket``: bytes that the lists in one bucket have together, about.
    ``heavy``: bytes of a list from which it lies alone: who wants another one of its bucket is not to fetch it.
    """

    documents: int = 16_384
    rows: int = 8_192
    entries: int = 64
    bucket: int = 24_000
    heavy: int = 8_000


USUAL = Sizes()
