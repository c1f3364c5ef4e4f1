"""The analyser: turns text into index terms, the same way when a thread is stored and when it is looked for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import Stemmer

from bot.reading.language import (
    ALL_STOP_WORDS,
    OTHER_STOP_WORDS,
    bigrams,
    folded,
    is_english,
    unspaced,
    without_accents,
)

ANALYSER_VERSION = f"2+snowball{Stemmer.version()}"
"""Changes whenever the same text may give other terms; an index that was built with another value must be rebuilt."""

MAX_TERM = 40
"""Longest term, in characters. What is longer is generated: mangled symbols, keys, encoded data."""

_CACHE_TOKENS = 1 << 16
_CACHE_TOKEN_LENGTH = 64
_SLICE = 4096
_MAX_WORD = 4 * MAX_TERM
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

_COMPONENT = re.compile(r"::|[.'-]")
_PIECE = re.compile(r"[A-Z]+s(?![A-Za-z0-9])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z][a-z0-9]*|[A-Z]+[0-9]*|[0-9]+[a-z]*")
_VERSION = re.compile(r"v?(\d{1,6}(?:\.\d{1,6}){1,3})(?:$|[-.]?(?=[a-z-]))", re.ASCII | re.IGNORECASE)
_FILE_END = re.compile(r"\.[A-Za-z]\w{0,4}$", re.ASCII)
_DATE_OR_TIME = re.compile(r"\d+(?:[-:]\d+)+", re.ASCII)
_STATUS_CODE = re.compile(r"0x(?:[0-9a-f]{1,4}|(?:c0|80)[0-9a-f]{6})", re.ASCII)
_HASH = re.compile(r"h?(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}", re.ASCII)

_CYRILLIC = re.compile(r"[\u0430-\u044f]+")
_ELIDED = frozenset(("c", "d", "j", "l", "m", "n", "qu", "s", "t"))

_english_stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
_russian_stem: Callable[[str], str] = Stemmer.Stemmer("russian", 0).stemWord

_Word = Callable[[str], Iterator[str]]


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order, with repetitions.

    Words are lower-cased and stemmed, stop words and noise (addresses, hashes, dates, line numbers, encoded data) are
    left out. An identifier gives one term for the whole, written without separators so that ``fileName``,
    ``file_name`` and ``file-name`` agree, and one for each part. Scripts without spaces give bigrams. Time is linear in
    the length of the text; each term has 1 to 40 characters.

    Capitals and accents make no difference. English words are stemmed, and Russian ones by their own stemmer; other
    scripts are not. Words of the Latin script that stand in a text of another language also give a term as they are
    written, with their ending: two texts with the same word share its stem even if one of them (a title, two words of
    a search) is too short to tell its language.
    """
    found = tokens(text)
    table = _TERMS if is_english(found, ascii_only=text.isascii()) else _OTHER_TERMS
    return list(chain.from_iterable(map(table.__getitem__, found)))


def body_terms(text: str) -> list[str]:
    """The terms of an opening text without the words that its issue template put there."""
    from bot.reading.signals import strip_boilerplate  # a search by words has no use for it, and begins without it

    return terms(strip_boilerplate(text))


def tokens(text: str) -> list[str]:
    """The runs of ``text`` that terms are made of, as they are written (compatibility forms are unified)."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    found = _ANY_TOKEN.findall(_normalise(text))
    return [part for run in found for part in ((run,) if run.isascii() else unspaced().split(run)) if part]


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

    def __init__(self, word: _Word) -> None:
        super().__init__()
        self._word = word

    def __missing__(self, token: str) -> tuple[str, ...]:
        found = tuple(_analyse(token, self._word))
        if len(token) <= _CACHE_TOKEN_LENGTH:
            if len(self) >= _CACHE_TOKENS:
                self.clear()
            self[token] = found
        return found


def _analyse(token: str, word: _Word) -> Iterator[str]:
    is_unspaced = not token.isascii() and unspaced().match(token)
    return bigrams(token) if is_unspaced else _analyse_spaced(token, word)


def _analyse_spaced(token: str, word: _Word) -> Iterator[str]:
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
        yield from _whole([piece for pieces in components for piece in pieces], word)
    for pieces in components:
        if len(pieces) > 1:
            yield from _whole(pieces, word)
        for piece in pieces:
            yield from word(piece)


def _pieces(component: str) -> list[str]:
    """The words inside an identifier; none when it falls into such small ones that it must be encoded data."""
    if not component.isascii():
        return [piece for part in component.split("_") if len(part) <= _MAX_WORD for piece in _plain_pieces(part)]
    pieces = _PIECE.findall(component)
    if len(component) >= _ENCODED and len(component) < _ENCODED_PIECE * len(pieces):
        return []
    return pieces


def _plain_pieces(part: str) -> list[str]:
    plain = without_accents(part)
    return _pieces(plain) if plain.isascii() else [plain]


def _without_position(token: str) -> str:
    """Cuts ``:12:3`` after a file name, and all of ``line 12``; a number after a word stays (``error:404``)."""
    if token[4:5] == " ":
        return ""
    head, colon, number = token.partition(":")
    at_file = colon and not number.startswith(":") and _FILE_END.search(head)
    return head if at_file else token


def _without_contraction(token: str) -> str:
    """Cuts what English hangs behind an apostrophe, and what French and Italian put before one."""
    head, apostrophe, tail = token.rpartition("'")
    if not apostrophe:
        return token
    if tail.lower() in ("s", "t", "d", "m", "re", "ve", "ll"):
        return head
    return tail if head.lower() in _ELIDED else token


def _is_noise(token: str) -> bool:
    if not token or token.isalpha():
        return False
    lowered = token.lower()
    if lowered.startswith("0x"):
        return not _STATUS_CODE.fullmatch(lowered)
    return bool(_DATE_OR_TIME.fullmatch(token)) or token.startswith("_ZN")


def _whole(pieces: list[str], word: _Word) -> Iterator[str]:
    if sum(map(len, pieces)) <= MAX_TERM and len(pieces) > 1:
        yield from word("".join(pieces))


def _word(piece: str) -> Iterator[str]:
    word = piece.lower() if piece.isascii() else folded(piece)
    if not 2 <= len(word) <= MAX_TERM:
        return
    if word.isalpha():
        if word not in ALL_STOP_WORDS:
            yield _english_stem(word) if word.isascii() else _other_stem(word)
    elif word.isdigit():
        if len(word) <= 6:
            yield word
    elif not _HASH.fullmatch(word):
        yield word


def _other_word(piece: str) -> Iterator[str]:
    """The stem, which the word has in every text, and where the script does not tell the language the word itself."""
    word = folded(piece)
    if word not in OTHER_STOP_WORDS:
        for term in _word(word):
            yield term
            if term != word and word.isascii():
                yield word


def _other_stem(word: str) -> str:
    return _russian_stem(word) if _CYRILLIC.fullmatch(word) else word


_TERMS = _Terms(_word)
_OTHER_TERMS = _Terms(_other_word)
