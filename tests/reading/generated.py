"""Texts made from an expression: whatever it fits, by chance, the same in every run."""

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
_MOST = 3
"""So often is repeated what may be repeated without end."""


def generated(pattern: re.Pattern[str], tries: int = 200) -> Iterator[str]:
    """Texts in which the pattern is found, each once. Each of its alternatives is as likely as the others."""
    chance, tree = random.Random(1), parser.parse(pattern.pattern, pattern.flags)
    for text in dict.fromkeys("".join(_written(tree, chance)) for _ in range(tries)):
        if pattern.search(text):
            yield text


def _written(tree: Any, chance: random.Random) -> Iterator[str]:
    for operation, value in tree:
        match operation:
            case code.LITERAL:
                yield chr(value)
            case code.NOT_LITERAL:
                yield "a"
            case code.ANY:
                yield "a"
            case code.IN:
                yield chance.choice(_characters(value))
            case code.BRANCH:
                yield from _written(chance.choice(value[1]), chance)
            case code.SUBPATTERN:
                yield from _written(value[-1], chance)
            case code.ATOMIC_GROUP:
                yield from _written(value, chance)
            case code.MAX_REPEAT | code.MIN_REPEAT | code.POSSESSIVE_REPEAT:
                least, most, repeated = value
                for _ in range(chance.randint(least, max(least, min(most, _MOST)))):
                    yield from _written(repeated, chance)
            case _:  # an assertion: what does not hold is not found
                pass


def _characters(items: Any) -> str:
    """Those that a class allows, of what people type."""
    if items[0][0] is code.NEGATE:
        return "".join(c for c in _LETTERS + " " if c not in _characters(items[1:])) or "-"
    found = ""
    for operation, value in items:
        if operation is code.LITERAL:
            found += chr(value)
        elif operation is code.RANGE:
            found += "".join(map(chr, range(value[0], min(value[1], value[0] + 40) + 1)))
        else:
            found += _CLASSES[value]
    return found
