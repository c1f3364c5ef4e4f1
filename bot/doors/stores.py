"""The store that a command names."""

from __future__ import annotations

from pathlib import Path

from bot.errors import UserError
from bot.memory.folder import FolderStore
from bot.memory.memory import Memory


def open_store(folder: Path, *, leaves_traces: bool = True) -> Memory:
    """The memory in a folder; UserError where there is none, or nothing in it. ``leaves_traces``: see FolderStore."""
    if not folder.is_dir():
        raise UserError(f"no store at {folder}: make one with 'precedent import FILE --store {folder}'")
    memory = Memory(FolderStore(folder, leaves_traces=leaves_traces)).open()
    if not memory.size:
        raise UserError(
            f"the store at {folder} holds no thread: read some with 'precedent import FILE --store {folder}'"
        )
    return memory
