"""The analyser: turns text into index terms, the same way when a thread is stored and when it is looked for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import partial
from itertools import chain

import Stemmer

from bot.reading.lexicon import STOP_WORDS
from bot.reading.signals import strip_boilerplate

ANALYSER_VERSION = f"1+snowball{Stemmer.version()}"
"""Changes whenever the same text may give other terms; an index that was built with another value must be rebuilt."""

MAX_TERM = 40
"""Longest term, in characters. What is longer is generated: mangled symbols, keys, encoded data."""

_CACHE_TOKENS = 1 << 16
_CACHE_TOKEN_LENGTH = 64
_SLICE = 4096
_ENCODED = 20
_ENCODED_PIECE = 3.5

# A token is a run of word characters with single connectors inside (``std::vec``, ``file.py``, ``well-known``,
# ``don't``) and the line and column that compilers append. Each repetition begins with a character that the one before
# it cannot match, so a scan never backtracks more than one step.
_SHAPE = r"[Ll]ine \d+|{w}+(?:(?:::|[.'-]){w}+)*(?::\d+)*"
_ASCII_TOKEN = re.compile(_SHAPE.format(w=r"\w"), re.ASCII)
# ``\w`` leaves out combining vowel signs, which would cut words of Indic and South-East Asian scripts to pieces.
_MARKS = r"\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0df3\u0e31-\u109f\u1780-\u17d3"
_ANY_TOKEN = re.compile(_SHAPE.format(w=rf"[\w{_MARKS}]"))
_INVISIBLE = re.compile(r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
# Scripts that are written without spaces: Thai, Lao, Myanmar, Khmer, Hangul, kana, Han.
_UNSPACED = re.compile(
    r"([\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+)"
)

_COMPONENT = re.compile(r"::|[.'-]")
_PIECE = re.compile(r"[A-Z]+s(?![A-Za-z0-9])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z][a-z0-9]*|[A-Z]+[0-9]*|[0-9]+[a-z]*")
_VERSION = re.compile(r"v?(\d{1,6}(?:\.\d{1,6}){1,3})(?:$|[-.]?(?=[a-z-]))", re.ASCII | re.IGNORECASE)
_FILE_END = re.compile(r"\.[A-Za-z]\w{0,4}$", re.ASCII)
_DATE_OR_TIME = re.compile(r"\d+(?:[-:]\d+)+", re.ASCII)
_STATUS_CODE = re.compile(r"0x(?:[0-9a-f]{1,4}|(?:c0|80)[0-9a-f]{6})", re.ASCII)
_HASH = re.compile(r"h?(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}", re.ASCII)

_stem = Stemmer.Stemmer("english", 0).stemWord


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order, with repetitions.

    Words are lower-cased and stemmed, stop words and noise (addresses, hashes, dates, line numbers, encoded data) are
    left out. An identifier gives one term for the whole, written without separators so that ``fileName``,
    ``file_name`` and ``file-name`` agree, and one for each part. Scripts without spaces give bigrams. Time is linear in
    the length of the text; each term has 1 to 40 characters.
    """
    return list(chain.from_iterable(map(_TERMS.__getitem__, tokens(text))))


def body_terms(text: str) -> list[str]:
    """The terms of an opening text without the words that its issue template put there."""
    return terms(strip_boilerplate(text))


def tokens(text: str) -> list[str]:
    """The runs of ``text`` that terms are made of, as they are written (compatibility forms are unified)."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    return _ANY_TOKEN.findall(_normalise(text))


def token_terms(token: str) -> tuple[str, ...]:
    """The terms of one element of ``tokens(text)``, that for the whole first; empty for stop words and noise."""
    return _TERMS[token]


def _normalise(text: str) -> str:
    # Sorting a run of combining marks takes the library time that grows with the square of the run: slices bound it.
    unify = partial(unicodedata.normalize, "NFKC")
    unified = "".join(unify(text[at : at + _SLICE]) for at in range(0, len(text), _SLICE))
    return _INVISIBLE.sub("", unified.replace("\u2019", "'"))


class _Terms(dict[str, tuple[str, ...]]):
    """Remembers the terms of tokens. Emptied when full, which costs less than to track what was used last."""

    def __missing__(self, token: str) -> tuple[str, ...]:
        found = tuple(_analyse(token))
        if len(token) <= _CACHE_TOKEN_LENGTH:
            if len(self) >= _CACHE_TOKENS:
                self.clear()
            self[token] = found
        return found


_TERMS = _Terms()


def _analyse(token: str) -> Iterator[str]:
    if token.isascii():
        yield from _analyse_spaced(token)
        return
    for position, run in enumerate(_UNSPACED.split(token)):
        if position % 2:
            yield from _bigrams(run)
        elif run:
            yield from _analyse_spaced(run)


def _bigrams(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


def _analyse_spaced(token: str) -> Iterator[str]:
    token = _without_position(token)
    if _is_noise(token):
        return
    token = token.strip("_")
    if token.startswith("0x"):
        yield token.lower()
        return
    version = _VERSION.match(token)
    if version:
        yield version[1]
        token = token[version.end() :]
    components = [_pieces(component) for component in _COMPONENT.split(_without_contraction(token))]
    if len(components) > 1:
        yield from _whole([piece for pieces in components for piece in pieces])
    for pieces in components:
        if len(pieces) > 1:
            yield from _whole(pieces)
        for piece in pieces:
            yield from _word(piece)


def _pieces(component: str) -> list[str]:
    """The words inside an identifier; none when it falls into such small ones that it must be encoded data."""
    if not component.isascii():
        return component.split("_")
    pieces = _PIECE.findall(component)
    if len(component) >= _ENCODED and len(component) < _ENCODED_PIECE * len(pieces):
        return []
    return pieces


def _without_position(token: str) -> str:
    """Cuts ``:12:3`` after a file name, and all of ``line 12``; a number after a word stays (``error:404``)."""
    if token[4:5] == " ":
        return ""
    head, colon, number = token.partition(":")
    at_file = colon and not number.startswith(":") and _FILE_END.search(head)
    return head if at_file else token


def _without_contraction(token: str) -> str:
    head, apostrophe, tail = token.rpartition("'")
    return head if apostrophe and tail.lower() in ("s", "t", "d", "m", "re", "ve", "ll") else token


def _is_noise(token: str) -> bool:
    if not token or token.isalpha():
        return False
    lowered = token.lower()
    if lowered.startswith("0x"):
        return not _STATUS_CODE.fullmatch(lowered)
    return bool(_DATE_OR_TIME.fullmatch(token)) or token.startswith("_ZN")


def _whole(pieces: list[str]) -> Iterator[str]:
    if sum(map(len, pieces)) <= MAX_TERM and len(pieces) > 1:
        yield from _word("".join(pieces))


def _word(piece: str) -> Iterator[str]:
    word = piece.lower()
    if not 2 <= len(word) <= MAX_TERM:
        return
    if word.isalpha():
        if word not in STOP_WORDS:
            yield _stem(word)
    elif word.isdigit():
        if len(word) <= 6:
            yield word
    elif not _HASH.fullmatch(word):
        yield word
