"""Where a store keeps the record of a thread, and a cache keeps its clone.

Fast to import, as a search from a shell reads records.
"""

from __future__ import annotations

import re

from bot.domain.card import CardId

CLONE_FOLDER = "clone.git"
RECORD_FOLDER = "records"
FOLDER_SIZE = 100
_PLAIN_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}", re.ASCII)  # shorter than a hash: no key looks like one


def folder_of(key: CardId) -> str:
    """The folder that a thread shares with its neighbours: number // 100, or a hash for other keys."""
    if isinstance(key, int):
        return f"{key // FOLDER_SIZE:04d}"
    return "x" + _hash(key)[:2]


def record_path(key: CardId) -> str:
    """The path of a thread's record, for example ``records/0042/4242.json``."""
    folder = folder_of(key)
    if isinstance(key, str) and not _PLAIN_KEY.fullmatch(key):
        key = _hash(key)
    return f"{RECORD_FOLDER}/{folder}/{key}.json"


def _hash(key: str) -> str:
    import hashlib  # slow to load

    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
