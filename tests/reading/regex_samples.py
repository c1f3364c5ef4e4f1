"""Random texts that match a regular expression, the same in every run."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CLASSES = {
    code.CATEGORY_WORD: _LETTERS, code.CATEGORY_DIGIT: "0123456789", code.CATEGORY_SPACE: " ",
    code.CATEGORY_NOT_WORD: " -,", code.CATEGORY_NOT_SPACE: _LETTERS, code.CATEGORY_NOT_DIGIT: _LETTERS,
}  # fmt: skip
_MAX_REPEATS = 3
"""The most repetitions where a pattern has no limit."""


def generate_matches(pattern: re.Pattern[str], tries: int = 200) -> Iterator[str]:
    """Texts that the pattern matches, without repeats. All alternatives are equally likely."""
    rng, tree = random.Random(1), parser.parse(pattern.pattern, pattern.flags)
    for text in dict.fromkeys("".join(_expand(tree, rng)) for _ in range(tries)):
        if pattern.search(text):
            yield text


def _expand(tree: Any, rng: random.Random) -> Iterator[str]:
    for operation, value in tree:
        match operation:
            case code.LITERAL:
                yield chr(value)
            case code.NOT_LITERAL:
                yield "a"
            case code.ANY:
                yield "a"
            case code.IN:
                yield rng.choice(_characters(value))
            case code.BRANCH:
                yield from _expand(rng.choice(value[1]), rng)
            case code.SUBPATTERN:
                yield from _expand(value[-1], rng)
            case code.ATOMIC_GROUP:
                yield from _expand(value, rng)
            case code.MAX_REPEAT | code.MIN_REPEAT | code.POSSESSIVE_REPEAT:
                least, most, repeated = value
                for _ in range(rng.randint(least, max(least, min(most, _MAX_REPEATS)))):
                    yield from _expand(repeated, rng)
            case _:  # an assertion: texts that violate it do not match
                pass


def _characters(items: Any) -> str:
    """The characters of a class that people type."""
    if items[0][0] is code.NEGATE:
        return "".join(c for c in _LETTERS + " " if c not in _characters(items[1:])) or "-"
    characters = ""
    for operation, value in items:
        if operation is code.LITERAL:
            characters += chr(value)
        elif operation is code.RANGE:
            characters += "".join(map(chr, range(value[0], min(value[1], value[0] + 40) + 1)))
        else:
            characters += _CLASSES[value]
    return characters
