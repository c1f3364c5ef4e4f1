"""The search index: terms, postings, scores and vectors. Only `open_index` and `build_index` use Whoosh."""

from __future__ import annotations

from typing import TYPE_CHECKING

import bot.ranking  # noqa: F401 - sets NumPy's number of threads before NumPy is loaded

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bot.index.protocol import Index, IndexDocument


def open_index(folder: Path) -> Index:
    """Open the index in ``folder``, which nobody else may change meanwhile. Raises IndexCorrupt."""
    from bot.index.whoosh.index import WhooshIndex  # a run queries GitHub before the index

    return WhooshIndex(folder)


def build_index(folder: Path, documents: Iterable[IndexDocument]) -> None:
    """Write an index of ``documents`` into an empty folder, as few segments.

    Searches ``before`` a moment are fastest when the documents are in order of creation. Of two documents with the same
    id, the later one is kept. The same documents give the same files, and a file name always stands for one content.
    Raises ValueError if vectors differ in length.
    """
    from bot.index.whoosh.writer import write_index

    write_index(folder, documents)
