"""Languages other than English: whether a text is in one, and the form in which spellings of a word agree."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache

from bot.reading.lexicon import ALSO_ENGLISH, FUNCTION_WORDS, RUSSIAN_STOP_WORDS, STOP_PAIRS, STOP_WORDS

_ENOUGH = 2
_SHARE = 2

# Combining marks are dropped behind letters of the Latin and Greek scripts, where people leave them out when they type.
# In other scripts they make another letter (Cyrillic short i, voiced kana, vowel signs), but for two: the dots of the
# Cyrillic io, and stress marks on Cyrillic vowels.
_ACCENTED = re.compile(
    r"([A-Za-z\u00c0-\u02af\u0370-\u03ff\u1e00-\u1fff])[\u0300-\u036f]+"
    r"|([\u0435\u0415])\u0308|([\u0430\u0435\u0438\u043e\u0443\u044b\u044d-\u044f])[\u0300\u0301]"
)
# Letters of the Latin script that no decomposition takes to pieces.
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
    """The form in which ``word`` agrees with itself in capitals and with the accents left out. Idempotent."""
    return word.lower() if word.isascii() else without_accents(without_accents(word).casefold())


def is_english(words: Sequence[str], *, ascii_only: bool) -> bool:
    """Whether the Latin script among these words of a text is English, or too little to tell.

    Counts distinct words: those that another language uses in every sentence and those with a letter that English does
    not have, against the stop words of English. A text in another language stays so beside an English log.
    """
    if ascii_only and _FOREIGN.isdisjoint(words):
        return True
    marked = () if ascii_only else (word for word in words if not word.isascii() and _FOREIGN_LETTER.search(word))
    evidence = len(_FOREIGN.intersection(words)) + len(set(marked))
    return evidence < _ENOUGH or _SHARE * evidence <= len(_ENGLISH.intersection(words))


def bigrams(run: str) -> Iterator[str]:
    """The pairs of characters of a run in a script without spaces, without those of which every sentence is made.

    A single character stands for itself, and so does a Korean syllable before a particle.
    """
    if len(run) == 1 or (len(run) == 2 and run[1] in _PARTICLES):
        yield run[0]
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        if pair not in STOP_PAIRS:
            yield pair


def stretch(token: str, term: str, wanted: Container[str]) -> str:
    """What to show a reader of ``token`` for its ``term``: all of it.

    But of a run in a script without spaces, which may be a sentence, only the part around ``term`` whose pairs are all
    in ``wanted``. Linear in the token.
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
"""Words of the Latin script, folded, that say nothing where the text is not English; in English they may say a lot."""

ALL_STOP_WORDS = STOP_WORDS.union(map(folded, RUSSIAN_STOP_WORDS))
"""Words, folded, that say nothing in any text."""

_FOREIGN = frozenset(_as_written((FUNCTION_WORDS | OTHER_STOP_WORDS) - STOP_WORDS - ALSO_ENGLISH))
_ENGLISH = frozenset(_as_written(STOP_WORDS)) - frozenset(_as_written(OTHER_STOP_WORDS))
