"""Makes new inputs from old ones: texts, bytes and JSON, changed where it hurts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz.target import MAX_CHARS, Input

CHARACTERS = [
    *"[]()<>{}*_`~#>|\\!@:;&$%^=+-/.,'\"?0 9aZ\t\n\r",
    *("\0", "\x1b", "\x7f", "\x85", "\xa0", "\xad", "\u0301", "\u200b", "\u200d", "\u202e", "\u2028", "\u2066"),
    *("\u3164", "\ufeff", "\ufffd", "\ud800", "\udfff"),
    *("\U0001f600", "\U000e0041", "İ", "ß", "ﬁ", "٣", "字", "я", "\uff20", "Ⅷ"),
]  # fmt: skip
TOKENS = [
    "\n\n", "\r\n", "```\n", "~~~\n", "> ", "- ", "1. ", "    ", "\t", "# ", "===\n", "---\n", "<!-- ", " -->",
    "<details>", "</details>", "<![CDATA[", "<pre>", "<a href=", "](", "][", "[^1]: ", "![", "|a|b|\n|-|-|\n", "\\",
    "&#64;", "&num;", "@octocat", "#1", "GH-1", "octo-org/linkbarn#2", "https://github.com/octo-org/linkbarn/issues/3#issuecomment-4",
    "Duplicate of #5", "fixes #6", "http://", "www.", "a@b.c", "/precedent search ", "/precedent wrong #1", "v1.2.3",
    "Error: ", "Traceback (most recent call last):\n", '  File "a.py", line 1, in f\n', "at a.b.C(D.java:1)\n", "0x7f",
    "we decided to ", "won't fix", "the conclusion is ", "fixed in v2.0", "workaround: ", "thanks, that works",
    "2026-01-01",
    "{{ ", " }}", "{% ", " %}", "name: ", "- a\n", "&a ", "*a", "!!python/object:os.system ", "%TAG ! x:\n", "? ", ": ",
]  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**30, -(10**30), 0.0, 0.5, -1.5, 1e300, float("inf"),
    float("-inf"), float("nan"), "", "x", "0", "-1", "1e400", "null", "ghost", "\0", "\ud800", "closed", "open",
    "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+23:59", "0001-01-01T00:00:00+23:59",
    "2026-13-01",
    [], {}, [None], [[]], [{}], {"": None}, {"login": None}, {"login": 5}, {"nodes": None}, {"number": "1"},
    [1, "a", None],
]  # fmt: skip
NUMBERS = (
    0,
    1,
    2,
    7,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**53,
    2**63 - 1,
    2**64 - 1,
)
TIMES = (2, 3, 9, 40, 200, 1_000, 5_000, MAX_CHARS)


class Mutator:
    """Makes random inputs; the same ``rng`` gives the same inputs. ``pool`` holds texts to splice in."""

    def __init__(self, rng: random.Random, pool: Sequence[str], tokens: Sequence[str] = ()) -> None:
        self.rng, self.pool = rng, list(pool) or [""]
        self.tokens = [*TOKENS, *tokens, *tokens]

    def mutate(self, kind: str, value: Input) -> Input:
        """A neighbour of ``value``, one to six changes away."""
        for _ in range(self.rng.choice((1, 1, 1, 2, 3, 6))):
            value = self._mutate_once(kind, value)
        return value

    def _mutate_once(self, kind: str, value: Input) -> Input:
        if kind == "text":
            return self.text(value)
        if kind == "bytes":
            return self.data(value)
        if kind == "json bytes":
            return self._json_bytes(value)
        if kind == "texts":
            index = self.rng.randrange(len(value))
            return [*value[:index], self.text(value[index]), *value[index + 1 :]]
        return self.tree(value)

    # -- texts -----------------------------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """One change of a text, within MAX_CHARS."""
        changes: list[Callable[[str], str]] = [
            self._insert, self._insert, self._insert, self._delete, self._repeat, self._splice, self._swap,
            self._prefix, self._flood, self._wrap,
        ]  # fmt: skip
        return self.rng.choice(changes)(text)[:MAX_CHARS]

    def _position(self, text: str | bytes) -> int:
        return self.rng.randint(0, len(text))

    def _span(self, text: str | bytes) -> tuple[int, int]:
        start = self._position(text)
        return start, min(len(text), start + self.rng.choice((1, 2, 5, 20, 100, 1_000)))

    def _piece(self) -> str:
        return self.rng.choice(self.rng.choice((self.tokens, CHARACTERS)))

    def _insert(self, text: str) -> str:
        at = self._position(text)
        return text[:at] + "".join(self._piece() for _ in range(self.rng.choice((1, 1, 2, 5)))) + text[at:]

    def _delete(self, text: str) -> str:
        start, end = self._span(text)
        return text[:start] + text[end:]

    def _repeat(self, text: str) -> str:
        start, end = self._span(text)
        return text[:start] + self._repeated(text[start:end] or self._piece()) + text[end:]

    def _repeated(self, piece: str) -> str:
        return piece * min(self.rng.choice(TIMES), MAX_CHARS // max(1, len(piece)))

    def _splice(self, text: str) -> str:
        other = self.rng.choice(self.pool)
        start, end = self._span(other)
        at = self._position(text)
        return text[:at] + other[start : max(end, start + 40)] + text[at:]

    def _swap(self, text: str) -> str:
        start, end = self._span(text)
        return (
            text[:start] + self.rng.choice((str.upper, str.swapcase, lambda t: t[::-1]))(text[start:end]) + text[end:]
        )

    def _prefix(self, text: str) -> str:
        mark = self._piece()
        return "\n".join(mark + line for line in text.split("\n")[:500])

    def _flood(self, text: str) -> str:
        """One piece repeated as often as fits, perhaps with something behind it."""
        flood = self._repeated(self._piece() + self.rng.choice(("", self._piece())))
        return self.rng.choice((flood, flood + text, text + flood, flood[: MAX_CHARS - 20] + self._piece()))

    def _wrap(self, text: str) -> str:
        opening, closing = self._piece(), self._piece()
        times = self.rng.choice((1, 2, 10, 100, 3_000))
        return opening * times + text[:2_000] + closing * times

    # -- bytes -----------------------------------------------------------------------------------------------------

    def data(self, data: bytes) -> bytes:
        """One change of some bytes."""
        start, end = self._span(data)
        number = self.rng.choice(NUMBERS)
        size = self.rng.choice((1, 2, 4, 8))
        packed = (number % 256**size).to_bytes(size, self.rng.choice(("big", "little")))
        noise = self.rng.randbytes(self.rng.choice((1, 2, 8, 64)))
        changes = (
            lambda: data[:start] + packed + data[start + size :],
            lambda: data[:start] + packed + data[start:],
            lambda: data[:start] + noise + data[start + len(noise) :],
            lambda: (
                data[:start] + bytes([data[start] ^ 1 << self.rng.randrange(8)]) + data[start + 1 :]
                if start < len(data)
                else data
            ),
            lambda: data[:start] + data[end:],
            lambda: data[:start],
            lambda: data[:start] + data[start:end] * self.rng.choice((2, 5, 50)) + data[end:],
        )
        return self.rng.choice(changes)()[: 4 * MAX_CHARS]

    def _json_bytes(self, data: bytes) -> bytes:
        if self.rng.random() < 0.3:
            return self._raw_json(data)
        try:
            return json.dumps(self.tree(json.loads(data)), ensure_ascii=self.rng.random() < 0.5).encode(
                "utf-8", "surrogatepass"
            )[: 4 * MAX_CHARS]
        except (ValueError, RecursionError):
            return self.data(data)

    def _raw_json(self, data: bytes) -> bytes:
        """What no JSON writer writes: absurd numbers and nesting, other encodings."""
        at = self._position(data)
        depth = self.rng.choice((10, 900, 5_000, 60_000))
        malformed = (
            b"1e400",
            b"-1e400",
            b"NaN",
            b"1" * 5_000,
            b"[" * depth,
            b'{"a":' * depth,
            b"\xff\xfe",
            b"\xef\xbb\xbf",
        )
        changes = (
            lambda: data[:at] + self.rng.choice(malformed) + data[at:],
            lambda: data.replace(b": ", b": " + self.rng.choice(malformed) + b" ", 1),
            lambda: data.decode("utf-8", "replace").encode(self.rng.choice(("utf-16", "utf-32", "utf-8-sig"))),
            lambda: self.data(data),
        )
        return self.rng.choice(changes)()[: 4 * MAX_CHARS]

    # -- JSON ------------------------------------------------------------------------------------------------------

    def tree(self, value: Input) -> Input:
        """The structure with one change: another value or text, or one key more or less."""
        places = list(_paths(value))
        path = self.rng.choice(places)
        texts = [index for index in places if isinstance(_get(value, index), str)]
        if texts and self.rng.random() < 0.5:
            path = self.rng.choice(texts)
            return _replaced(value, path, self.text(_get(value, path)))
        return _replaced(value, path, self._other(_get(value, path), value))

    def _other(self, old: Input, root: Input) -> Input:
        rng = self.rng
        if isinstance(old, dict) and old and rng.random() < 0.6:
            key = rng.choice(list(old))
            rest = {k: v for k, v in old.items() if k != key}
            return rng.choice((rest, rest | {self._piece(): old[key]}, old | {key: rng.choice(ODD)}))
        if isinstance(old, list) and old and rng.random() < 0.6:
            at = rng.randrange(len(old))
            repeated = old[:at] + [old[at]] * rng.choice((2, 5, 50)) + old[at + 1 :]
            return rng.choice((old[:at] + old[at + 1 :], repeated[:300], old[::-1], [*old, rng.choice(ODD)]))
        if rng.random() < 0.2:
            return _get(root, rng.choice(list(_paths(root))))
        if rng.random() < 0.1:
            return _nested(rng.choice((3, 50, 400)))
        return rng.choice(ODD)


def _nested(depth: int) -> Input:
    value: Input = 1
    for _ in range(depth):
        value = [value]
    return value


def _paths(value: Input, at: tuple[Any, ...] = (), levels: int = 6) -> Any:
    """The paths to all parts of a structure, six levels deep."""
    yield at
    if levels and isinstance(value, dict):
        for key in value:
            yield from _paths(value[key], (*at, key), levels - 1)
    if levels and isinstance(value, list):
        for number, item in enumerate(value[:60]):
            yield from _paths(item, (*at, number), levels - 1)


def _get(value: Input, path: tuple[Any, ...]) -> Input:
    for step in path:
        value = value[step]
    return value


def _replaced(value: Input, path: tuple[Any, ...], new: Input) -> Input:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy
