"""Runs: the pieces of a rendered page in which GitHub looks for references, with bare URLs cut out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_URL = re.compile(r"(?<![A-Za-z0-9])(?:https?://|www\.)[^\s<]+", re.IGNORECASE | re.ASCII)


class Run(NamedTuple):
    """``kind`` is ``text`` (one text node outside code and links), ``link`` (its target) or ``gap``.

    A gap stands where a block ends or code is: words before it do not belong to what follows.
    """

    kind: str
    value: str


GAP = Run("gap", "")


def split_urls(text: str) -> Iterator[Run]:
    """Plain text as runs, its bare URLs as links (https://github.github.com/gfm/#autolinks-extension-)."""
    at = 0
    for found in _URL.finditer(text):
        url = _trim(found[0])
        if found.start() > at:
            yield Run("text", text[at : found.start()])
        yield Run("link", url)
        at = found.start() + len(url)
    if at < len(text):
        yield Run("text", text[at:])


def _trim(url: str) -> str:
    """A bare URL without the punctuation of the sentence around it."""
    surplus = url.count(")") - url.count("(")
    end = len(url)
    while end:
        last = url[end - 1]
        if last == ")" and surplus > 0:
            surplus -= 1
        elif last not in "?!.,:;*_~'\"":
            break
        end -= 1
    return url[:end]
