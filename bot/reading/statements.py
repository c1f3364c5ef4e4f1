"""What a Markdown text states in its author's own words, sentence by sentence."""

from __future__ import annotations

import re

from bot.reading.markdown import read, sentences

_STRUCK = re.compile(r"~~[^~\n]{1,2000}~~")
# People wrap lines by hand as often as they write one statement a line: a line that begins like a sentence is one.
_LINE = re.compile(r"\n(?=[A-Z*#@`(\[\u00c0-\U0010ffff-])")


def statements(text: str) -> tuple[str, ...]:
    """The sentences of the prose of ``text`` in order, white space collapsed.

    Nothing of quotes, code blocks, headings, hidden comments and struck-out text.
    """
    if "~~" in text:
        text = _STRUCK.sub(" ", text)
    lines = (line for paragraph in read(text).prose for line in _LINE.split(_unpadded(paragraph)))
    return tuple(sentence for line in lines for sentence in sentences(line))


def _unpadded(paragraph: str) -> str:
    """The paragraph without empty lines, which breaks in it can make, and without white space around its lines."""
    return "\n".join(line for row in paragraph.split("\n") if (line := row.strip()))
