"""The search index: terms, postings, scores and vectors. `open_index` and `build_index` are the only door to Whoosh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bot.ranking  # noqa: F401 - it sets how many threads NumPy uses, before NumPy is loaded

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bot.index.protocol import Fetch, Index, IndexDocument, Sizes


def open_index(folder: Path, fetch: Fetch | None = None, sizes: Sizes | None = None) -> Index:
    """Open the index in ``folder``, which nobody else may change meanwhile. Raises IndexCorrupt.

    ``fetch`` gives those parts of large segments that are not in the folder; the parts that a search or an update needs
    are fetched together. A StoreError that it raises comes through. ``sizes`` tell which segments are written in parts.
    """
    from bot.index.whoosh.index import WhooshIndex  # a run asks GitHub before it asks the index

    return WhooshIndex(folder, fetch, sizes)


def build_index(folder: Path, documents: Iterable[IndexDocument], sizes: Sizes | None = None) -> None:
    """Write an index of ``documents`` into an empty folder, as one segment.

    Searches ``before`` a moment are fastest when the documents come in the order of their creation. Of two with one id
    the later one stays. The same documents give the same files, and a file name always stands for one content. Many
    documents are written in parts. Raises ValueError where vectors of one field differ in length.
    """
    from bot.index.whoosh.writer import write_index

    write_index(folder, documents, sizes)
