"""Tells in which language a text is written, as far as comments can be written in it."""

from __future__ import annotations

import re

from bot.reading.markdown import read
from bot.reading.signals import strip_boilerplate

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_OTHER_SCRIPT = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_LATIN_WORD = re.compile("[A-Za-z\u00c0-\u024f]{2,}")
MIN_CHARACTERS = 4


def language_of(title: str, body: str) -> str:
    """``zh`` if what a person wrote, without code and forms, has more Chinese characters than words of an alphabet,
    otherwise ``en``.

    Japanese and Korean, which also use Chinese characters, are known by their own.
    """
    text = "\n".join((title, *read(strip_boilerplate(body)).prose))
    characters, other = len(_HAN.findall(text)), len(_OTHER_SCRIPT.findall(text))
    is_chinese = characters > 3 * other and characters > len(_LATIN_WORD.findall(text))
    return "zh" if characters >= MIN_CHARACTERS and is_chinese else "en"
