"""Turns text in any language into index terms, in the same way for stored texts and for queries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain

import Stemmer

from bot.reading.word_lists import ALSO_ENGLISH, FUNCTION_WORDS, RUSSIAN_STOP_WORDS, STOP_PAIRS, STOP_WORDS

_ENOUGH = 2
_SHARE = 2

# Combining marks are dropped behind letters of the Latin and Greek scripts, where people leave them out when they type.
# In other scripts they make another letter (Cyrillic short i, voiced kana, vowel signs), but for two: the dots of the
# Cyrillic io, and stress marks on Cyrillic vowels.
_ACCENTED = re.compile(
    r"([A-Za-z\u00c0-\u02af\u0370-\u03ff\u1e00-\u1fff])[\u0300-\u036f]+"
    r"|([\u0435\u0415])\u0308|([\u0430\u0435\u0438\u043e\u0443\u044b\u044d-\u044f])[\u0300\u0301]"
)
# Latin letters that have no decomposition.
_LETTERS = str.maketrans(
    dict(zip("øØđĐłŁħĦŧŦıðÐ", "oOdDlLhHtTidD", strict=True))
    | {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "TH"}
)
_FOREIGN_LETTER = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
_PARTICLES = frozenset("이가을를은는에의로도와과만")


@cache
def unspaced() -> re.Pattern[str]:
    """A run in the scripts that are written without spaces: Thai, Lao, Myanmar, Khmer, Hangul, kana, Han."""
    return re.compile(
        r"([\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
        r"\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+)"
    )


def without_accents(word: str) -> str:
    """``word`` in plain letters (``Ação`` → ``Acao``, ``Straße`` → ``Strasse``, ``ё`` → ``е``), capitals kept.

    Marks that make another letter stay: Cyrillic ``й``, voiced kana, Indic vowels. Idempotent. Time grows with the
    square of a run of combining marks: give it words, not texts.
    """
    if word.isascii():
        return word
    plain = _ACCENTED.sub(lambda found: found[1] or found[2] or found[3], unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", plain).translate(_LETTERS)


def folded(word: str) -> str:
    """``word`` in lower case and without accents, for comparison. Idempotent."""
    return word.lower() if word.isascii() else without_accents(without_accents(word).casefold())


def is_english(words: Sequence[str], *, ascii_only: bool) -> bool:
    """Whether the Latin script among these words of a text is English, or too little to tell.

    Counts distinct words: those that another language uses in every sentence and those with a letter that English does
    not have, against the stop words of English. A text in another language stays so next to an English log.
    """
    if ascii_only and _FOREIGN.isdisjoint(words):
        return True
    marked = () if ascii_only else (word for word in words if not word.isascii() and _FOREIGN_LETTER.search(word))
    evidence = len(_FOREIGN.intersection(words)) + len(set(marked))
    return evidence < _ENOUGH or _SHARE * evidence <= len(_ENGLISH.intersection(words))


def bigrams(run: str) -> Iterator[str]:
    """The pairs of characters of a run in a script without spaces, leaving out those that every sentence contains.

    A single character stands for itself, and so does a Korean syllable before a particle.
    """
    if len(run) == 1 or (len(run) == 2 and run[1] in _PARTICLES):
        yield run[0]
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        if pair not in STOP_PAIRS:
            yield pair


def stretch(token: str, term: str, wanted: Container[str]) -> str:
    """The part of ``token`` to show for its ``term``: all of it, except in a script without spaces.

    There a token may be a sentence, and only the part around ``term`` whose pairs are all in ``wanted`` is shown.
    Linear in the length of the token.
    """
    if token.isascii() or term not in wanted or not unspaced().match(token):
        return token
    start = token.find(term)
    end = start + len(term)
    while start > 0 and token[start - 1 : start + 1] in wanted:
        start -= 1
    while end < len(token) and token[end - 1 : end + 1] in wanted:
        end += 1
    return token[start:end]


def _as_written(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        yield from (word, word.capitalize())


OTHER_STOP_WORDS = frozenset(map(folded, FUNCTION_WORDS))
"""Words of the Latin script, folded, that carry no meaning outside English; in English they may."""

ALL_STOP_WORDS = STOP_WORDS.union(map(folded, RUSSIAN_STOP_WORDS))
"""Words, folded, that carry no meaning in any text."""

_FOREIGN = frozenset(_as_written((FUNCTION_WORDS | OTHER_STOP_WORDS) - STOP_WORDS - ALSO_ENGLISH))
_ENGLISH = frozenset(_as_written(STOP_WORDS)) - frozenset(_as_written(OTHER_STOP_WORDS))


ANALYSER_VERSION = f"2+snowball{Stemmer.version()}"
"""Changes whenever the same text may give other terms: an index built with another value must be rebuilt."""

MAX_TERM = 40
"""Longest term, in characters. Longer ones are generated: mangled symbols, keys, encoded data."""

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
_MARKS = r"\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0df3\u0e31-\u109f\u1780-\u17d3"

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
    """The terms of an opening text without those of its issue template."""
    from bot.reading.signals import strip_boilerplate  # a search by words has no use for it, and begins without it

    return terms(strip_boilerplate(text))


def tokens(text: str) -> list[str]:
    """The runs of ``text`` that terms are made of, as written (compatibility forms are unified)."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    found = _any_token().findall(_normalise(text))
    return [part for run in found for part in ((run,) if run.isascii() else unspaced().split(run)) if part]


@cache
def _any_token() -> re.Pattern[str]:
    """As `_ASCII_TOKEN`, and with what ``\\w`` leaves out: combining vowel signs, without which words of Indic and
    South-East Asian scripts would fall to pieces."""
    return re.compile(_SHAPE.format(w=rf"[\w{_MARKS}]"))


@cache
def _invisible() -> re.Pattern[str]:
    return re.compile(r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")


def token_terms(token: str) -> tuple[str, ...]:
    """The terms of one element of ``tokens(text)``, the whole first; empty for stop words and noise."""
    return _TERMS[token]


def _normalise(text: str) -> str:
    # Sorting a run of combining marks takes the library time that grows with the square of the run: slices bound it.
    unify = partial(unicodedata.normalize, "NFKC")
    unified = "".join(unify(text[at : at + _SLICE]) for at in range(0, len(text), _SLICE))
    return _invisible().sub("", unified.replace("\u2019", "'"))


class _Terms(dict[str, tuple[str, ...]]):
    """A cache of the terms of tokens. It is emptied when full, which costs less than tracking the last use."""

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
    """The words inside an identifier; none if they are so short that it must be encoded data."""
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
    """Cuts English endings after an apostrophe, and French and Italian articles before one."""
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
    """The stem, and also the word itself where the script does not tell the language."""
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
