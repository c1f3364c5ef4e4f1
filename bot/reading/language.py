"""Tells in which language a text is written, as far as comments can be written in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from bot.reading.markdown import read
from bot.reading.signals import strip_boilerplate
from bot.reading.word_lists import ENGLISH_HOMOGRAPHS, FUNCTION_WORDS, FUNCTION_WORDS_OF, REPORT_WORDS, STOP_WORDS
from bot.settings.schema import ENGLISH

UNCLEAR = ""

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_CYRILLIC_WORD = re.compile("[\u0400-\u045f]{2,}")
_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]{2,}")

_NOT_RUSSIAN = re.compile("[\u0402-\u040f\u0452-\u045f]|ъ(?![еёюя])")
"""Letters of Ukrainian, Belarusian, Serbian and Macedonian; Bulgarian writes the hard sign before other letters."""

MIN_CHARACTERS, MIN_TITLE_CHARACTERS = 4, 2
WORDS_PER_CHARACTER = 3
"""Reports in Chinese are full of names in Latin letters, but few quote more Chinese than this in another language."""

MIN_CYRILLIC_WORDS, WORDS_PER_CYRILLIC_WORD = 3, 2
MIN_WORDS = 3
"""Distinct words of a language in Latin script that make it clear."""

MIN_ENGLISH_WORDS = 3
MAX_STRAY_ENGLISH = 1
MARGIN = 2
"""Distinct words by which the language must lead over its neighbours, as Spanish over Portuguese."""


def language_of(title: str, body: str) -> str:
    """The language of what a person wrote without code and forms: ``en`` for a language that comments cannot be written
    in, and UNCLEAR for a few words or none. Linear in the length of the text.
    """
    text = "\n".join((title, *read(strip_boilerplate(body)).prose))
    latin = _LATIN_WORD.findall(text)
    return _by_characters(title, text, len(latin)) or _by_cyrillic_words(title, text, len(latin)) or _by_words(latin)


def most_frequent(languages: Iterable[str]) -> str:
    """The language of more than half of the texts whose language is clear; otherwise ``en``."""
    clear = sorted(filter(None, languages))
    middle = clear[len(clear) // 2] if clear else ENGLISH
    return middle if clear.count(middle) * 2 > len(clear) else ENGLISH


def _by_characters(title: str, text: str, latin_words: int) -> str:
    """Chinese, Japanese or Korean; the latter two, which also use Chinese characters, are known by their own."""
    han, kana, hangul = (len(script.findall(text)) for script in (_HAN, _KANA, _HANGUL))
    characters = han + kana + hangul
    if characters < MIN_CHARACTERS:
        return UNCLEAR
    in_title = sum(len(script.findall(title)) for script in (_HAN, _KANA, _HANGUL))
    is_told = in_title >= max(MIN_TITLE_CHARACTERS, len(_LATIN_WORD.findall(title)))
    if not is_told and characters * WORDS_PER_CHARACTER <= latin_words:
        return UNCLEAR
    if hangul * 2 > characters:
        return "ko"
    return "zh" if han > 3 * (kana + hangul) else "ja"


def _by_cyrillic_words(title: str, text: str, latin_words: int) -> str:
    words = _CYRILLIC_WORD.findall(text)
    in_title = len(_CYRILLIC_WORD.findall(title))
    is_told = in_title >= max(2, len(_LATIN_WORD.findall(title)))
    if len(words) < MIN_CYRILLIC_WORDS or not (is_told or len(words) * WORDS_PER_CYRILLIC_WORD > latin_words):
        return UNCLEAR
    other = sum(bool(_NOT_RUSSIAN.search(word.lower())) for word in words)
    return "ru" if other * 20 < len(words) else ENGLISH


def _by_words(latin: Sequence[str]) -> str:
    """The language with the most function words and words of reports.

    Words that are also words or names in English (``des``, ``la``) count only in a text with hardly any English ones.
    """
    words = {word.lower() for word in latin}
    english = len(words & _english_words())
    shared = frozenset() if english <= MAX_STRAY_ENGLISH else ENGLISH_HOMOGRAPHS
    counts = sorted(((len(words & telling - shared), name) for name, telling in _telling_words().items()), reverse=True)
    (most, language), (second, _) = counts[:2]
    if most >= MIN_WORDS and most >= second + MARGIN and most * 2 > english:
        return language if language in REPORT_WORDS else ENGLISH
    return ENGLISH if english >= MIN_ENGLISH_WORDS else UNCLEAR


@cache
def _english_words() -> frozenset[str]:
    return STOP_WORDS - FUNCTION_WORDS


@cache
def _telling_words() -> dict[str, frozenset[str]]:
    return {
        language: (words | REPORT_WORDS.get(language, frozenset())) - STOP_WORDS
        for language, words in FUNCTION_WORDS_OF.items()
    }
