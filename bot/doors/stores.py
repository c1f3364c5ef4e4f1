"""The store that a command names, and the text model."""

from __future__ import annotations

from pathlib import Path

from bot.errors import UserError
from bot.memory.folder import FolderStore
from bot.memory.learned import Embedder
from bot.memory.memory import Memory


def text_model(folder: Path | None) -> Embedder | None:
    """The text model in a folder, None without one; WorldError where it cannot be used."""
    from bot.numeric.embedder import open_embedder

    return open_embedder(folder) if folder else None


def open_store(folder: Path, *, leaves_traces: bool = True, semantic: Path | None = None) -> Memory:
    """The memory in a folder; UserError where there is none, or nothing in it. ``leaves_traces``: see FolderStore.

    ``semantic``: the folder of a text model.
    """
    if not folder.is_dir():
        raise UserError(f"no store at {folder}: make one with 'precedent import FILE --store {folder}'")
    memory = Memory(FolderStore(folder, leaves_traces=leaves_traces), embedder=text_model(semantic)).open()
    if not memory.size:
        raise UserError(
            f"the store at {folder} holds no thread: read some with 'precedent import FILE --store {folder}'"
        )
    return memory
