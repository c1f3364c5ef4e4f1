"""The folder in which this program keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path

from bot.errors import WorldError

_LONGEST_NAME = 150


def cache_folder() -> Path:
    """Where that folder is. https://specifications.freedesktop.org/basedir-spec/latest/"""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(named) if named.startswith("/") else Path.home() / ".cache") / "precedent"
    except RuntimeError as error:
        raise WorldError("this account has no home folder", "name a folder in XDG_CACHE_HOME") from error


def name_of(text: str) -> str:
    """A name for a file or folder that no other text has."""
    plain = "".join(letter if letter.isascii() and letter.isalnum() else f"_{ord(letter):x}_" for letter in text)
    if len(plain) <= _LONGEST_NAME:
        return plain
    from hashlib import sha256  # loads a library of ciphers, which takes its time

    return f"{plain[-_LONGEST_NAME:]}.{sha256(plain.encode()).hexdigest()}"
