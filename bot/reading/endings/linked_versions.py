"""Tells versions in links to other repositories from those of this one."""

from __future__ import annotations

import re
from functools import lru_cache

from bot.reading.markdown import read
from bot.reading.versions import PRERELEASE_PATTERN

VERSION = re.compile(rf"(?>v?\d{{1,4}}(?:\.\d{{1,5}}){{1,3}}{PRERELEASE_PATTERN}?)(?![\w-])", re.ASCII | re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://|//|www\.)[^/?#\s]*/?(?P<path>[^?#\s]*)", re.ASCII | re.IGNORECASE)


def is_own_address(target: str, repo: str | None) -> bool:
    """Whether a link leads into ``repo`` (OWNER/NAME), or is no web address."""
    address = _ADDRESS.match(target)
    own_path = f"{repo}/".casefold()
    return not address or (repo is not None and f"{address['path']}/".casefold().startswith(own_path))


def is_foreign(written: re.Match[str], text: str, repo: str | None) -> bool:
    """Whether a version, as matched in a sentence of ``text``, is part of an address, or of the text of a link, that
    belongs to another repository."""
    word = written.string[: written.start()].rpartition(" ")[2]
    address = _ADDRESS.search(word)
    return strip_v(written[0]) in foreign_versions(text, repo) or bool(
        address and not is_own_address(word[address.start() :], repo)
    )


@lru_cache(maxsize=16)
def foreign_versions(text: str, repo: str | None) -> frozenset[str]:
    """The versions in the texts of links that lead outside ``repo``, without a leading v.

    Remembered, as every sentence of a text asks for them.
    """
    foreign = (words for words, target in read(text).links if not is_own_address(target, repo))
    return frozenset(strip_v(match[0]) for words in foreign for match in VERSION.finditer(words))


def strip_v(version: str) -> str:
    return version.lstrip("vV")
