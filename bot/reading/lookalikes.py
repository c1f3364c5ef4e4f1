"""Replaces characters by the ASCII ones that they look like, one for one, so that positions stay the same."""

from __future__ import annotations

ZERO_WIDTH_SPACE = "\u200b"
"""Our comments insert it where GitHub would see a mention, a reference or an address. Copied text contains it too."""

_APOSTROPHES = "\u2018\u2019\u201a\u201b\u02bc\u02b9\u2032\uff07\u00b4\ua78c\u055a"
_QUOTATION_MARKS = '"\u201c\u201d\u201e\u201f\u2033\u2036\uff02\u275d\u275e\u301d\u301e\u301f\u00ab\u00bb\u2039\u203a'
_QUOTATION_MARKS += "\u300c\u300d\u300e\u300f\ufe41\ufe42\ufe43\ufe44\uff62\uff63\u02ba\u02ee\u05f4\U0001f676\U0001f677"
_HYPHENS = "\u2010\u2011\u2012\u2212\ufe63\uff0d"
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"

_PLAIN = (
    {0xFF01 + offset: chr(0x21 + offset) for offset in range(0x5E)}  # full-width forms
    | dict.fromkeys(map(ord, _APOSTROPHES), "'")
    | dict.fromkeys(map(ord, _HYPHENS), "-")
    | dict.fromkeys(map(ord, _SPACES), " ")
    | {ord("\u2015"): "\u2014", ord("\u3002"): ".", ord("\uff61"): ".", ord("\u3001"): ",", ord("\uff64"): ","}
    | {ord("\u061f"): "?", ord("\u060c"): ",", ord("\u061b"): ";"}
)
_SINGLE = dict.fromkeys(map(ord, _QUOTATION_MARKS), "'")


def plain(text: str) -> str:
    """The text with typographic apostrophes, hyphens, spaces and full-width forms as ASCII; of the same length."""
    return text if text.isascii() else text.translate(_PLAIN)


def without_quotation_marks(text: str) -> str:
    """The text with everything that looks like a double quotation mark as ``'``, so that it cannot end a quotation."""
    return text.translate(_SINGLE)
