"""Tells in which language a text is written, as far as comments can be written in it."""

from __future__ import annotations

import re

from bot.reading.markdown import read
from bot.reading.signals import strip_boilerplate

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_OTHER_SCRIPT = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]{2,}")
MIN_CHARACTERS, MIN_TITLE_CHARACTERS = 4, 2
WORDS_PER_CHARACTER = 3
"""Reports in Chinese are full of names in Latin letters, but few quote more Chinese than this in another language."""


def language_of(title: str, body: str) -> str:
    """``zh`` if the title, or enough of what a person wrote without code and forms, is Chinese, otherwise ``en``.

    Japanese and Korean, which also use Chinese characters, are known by their own.
    """
    text = "\n".join((title, *read(strip_boilerplate(body)).prose))
    characters, other = len(_HAN.findall(text)), len(_OTHER_SCRIPT.findall(text))
    is_told = len(_HAN.findall(title)) >= MIN_TITLE_CHARACTERS
    is_told |= characters * WORDS_PER_CHARACTER > len(_LATIN_WORD.findall(text))
    return "zh" if characters >= MIN_CHARACTERS and characters > 3 * other and is_told else "en"
