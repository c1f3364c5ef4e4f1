"""Makes inputs for properties: texts, bytes and JSON, each an honest or hostile one that is changed where it hurts."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from typing import Any

from hypothesis import strategies as st

from tests.threats.corpus import PIECES, UNSEEN

Draw = Callable[[st.SearchStrategy[Any]], Any]
Path = tuple[Any, ...]

MAX_CHARS = 65_536
"""Characters of one text: GitHub's limit for a comment. Bytes may be four times as many."""

CHARACTERS = [*string.printable, "\x7f", "\x85", "\ufffd", "\udfff", "İ", "ﬁ", "٣", "字", "я", "Ⅷ", "\U0001f600"]
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**30, -(10**30), 0.0, 0.5, -1.5, 1e300, float("inf"),
    float("-inf"), float("nan"), "", "x", "0", "-1", "1e400", "null", "ghost", "\0", "\ud800", "closed", "open",
    "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+23:59", "0001-01-01T00:00:00+23:59",
    "2026-13-01",
    [], {}, [None], [[]], [{}], {"": None}, {"login": None}, {"login": 5}, {"nodes": None}, {"number": "1"},
    [1, "a", None],
]  # fmt: skip
NUMBERS = [0, 1, 2, 7, *(2**bits - 1 for bits in (7, 8, 15, 16, 31, 32, 63, 64)), 2**7, 2**31, 2**53]
UNWRITTEN = [b"1e400", b"-1e400", b"NaN", b"1" * 5_000, *(mark * n for mark in (b"[", b'{"a":') for n in (900, 60_000))]
"""Numbers and nesting that no JSON writer writes."""

LENGTHS = (0, 1, 2, 5, 20, 100, 1_000)
TIMES = (2, 3, 9, 40, 200, 1_000, 5_000, MAX_CHARS)
CHANGES = (1, 1, 1, 2, 3, 6, 12)

Seeds = Callable[[], Sequence[Any]]


@cache
def _by_size(seeds: Seeds) -> st.SearchStrategy[Any]:
    """One of the seeds, small ones first: a finding is reduced to them."""
    return st.sampled_from(sorted(seeds(), key=lambda seed: len(str(seed))))


def _times(draw: Draw, changes: Callable[[Any], Any], value: Any) -> Any:
    for _ in range(draw(st.sampled_from(CHANGES))):
        value = changes(value)
    return value


# -- texts -------------------------------------------------------------------------------------------------------------


@st.composite
def texts(draw: Draw, seeds: Seeds, tokens: Sequence[str] = ()) -> str:
    """A text of at most MAX_CHARS; ``tokens`` are put in more often than others."""
    return _times(draw, lambda text: _change_text(draw, text, tokens, seeds), draw(_by_size(seeds)))


@st.composite
def lists_of_texts(draw: Draw, seeds: Seeds, tokens: Sequence[str] = ()) -> list[str]:
    """A list of texts, some of which are changed."""

    def change(items: list[str]) -> list[str]:
        at = draw(st.integers(0, len(items) - 1))
        return [*items[:at], _change_text(draw, items[at], tokens), *items[at + 1 :]]

    return _times(draw, change, draw(_by_size(seeds)))


def _change_text(draw: Draw, text: str, tokens: Sequence[str] = (), seeds: Seeds = lambda: [""]) -> str:
    tokens_or_characters = st.sampled_from([*PIECES, *tokens * 5]) | st.sampled_from([*CHARACTERS, *UNSEEN])
    piece = "".join(draw(st.lists(tokens_or_characters, min_size=1, max_size=4)))
    before, middle, after = _cut(draw, text)
    ways = ("insert", "insert", "delete", "repeat", "splice", "swap", "mark", "append", "flood", "wrap")
    match draw(st.sampled_from(ways)):
        case "insert":
            text = before + piece + middle + after
        case "delete":
            text = before + after
        case "repeat":
            text = before + _repeated(draw, middle or piece) + after
        case "splice":
            text = before + _cut(draw, draw(_by_size(seeds)))[1] + middle + after
        case "swap":
            text = before + draw(st.sampled_from((middle.upper(), middle.swapcase(), middle[::-1]))) + after
        case "mark":
            text = "\n".join(piece + line for line in text.split("\n")[:500])
        case "append":
            text = text[: MAX_CHARS - 20] + piece
        case "flood":
            text = draw(st.permutations((_repeated(draw, piece), text)).map("".join))
        case "wrap":
            text = _repeated(draw, piece)[:30_000] + text[:2_000] + _repeated(draw, draw(tokens_or_characters))
    return text[:MAX_CHARS]


def _cut(draw: Draw, value: Any) -> tuple[Any, Any, Any]:
    """A text or bytes in three parts."""
    start = draw(st.integers(0, len(value)))
    end = start + draw(st.sampled_from(LENGTHS))
    return value[:start], value[start:end], value[end:]


def _repeated(draw: Draw, piece: str) -> str:
    return piece * min(draw(st.sampled_from(TIMES)), MAX_CHARS // len(piece))


# -- bytes -------------------------------------------------------------------------------------------------------------


@st.composite
def binary(draw: Draw, seeds: Seeds) -> bytes:
    return _times(draw, lambda data: _change_bytes(draw, data), draw(_by_size(seeds)))


def _change_bytes(draw: Draw, data: bytes) -> bytes:
    before, middle, after = _cut(draw, data)
    size, order = draw(st.sampled_from((1, 2, 4, 8))), draw(st.sampled_from(("big", "little")))
    new = (draw(st.sampled_from(NUMBERS)) % 256**size).to_bytes(size, order)
    ways = ("insert", "replace", "replace", "noise", "flip", "delete", "end", "repeat")
    match draw(st.sampled_from(ways)):
        case "insert":
            data = before + new + middle + after
        case "replace":
            data = before + new + data[len(before) + size :]
        case "noise":
            noise = draw(st.binary(max_size=64))
            data = before + noise + data[len(before) + len(noise) :]
        case "flip":
            data = before + bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in middle[:1]) + middle[1:] + after
        case "delete":
            data = before + after
        case "end":
            data = before
        case "repeat":
            data = before + middle * draw(st.sampled_from((2, 5, 50))) + after
    return data[: 4 * MAX_CHARS]


@st.composite
def files(draw: Draw, seeds: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    """Files by name, one or more of them changed, and now and then missing or renamed."""

    def change(contents: dict[str, bytes]) -> dict[str, bytes]:
        name = draw(st.sampled_from(sorted(contents)))
        rest = {other: data for other, data in contents.items() if other != name}
        new_name = draw(st.sampled_from([*[name] * 40, name.replace("0", "1"), f"{name}x", ""]))
        return rest | {new_name: _change_bytes(draw, contents[name])} if new_name else rest or contents

    return _times(draw, change, seeds())


# -- JSON --------------------------------------------------------------------------------------------------------------


@st.composite
def structures(draw: Draw, seeds: Seeds) -> Any:
    """JSON as Python has it, with other values, types and texts at some of its places, and keys more or less."""
    return _times(draw, lambda value: _change_json(draw, value), draw(_by_size(seeds)))


@st.composite
def json_lines(draw: Draw, seeds: Seeds) -> bytes:
    """Lines of JSON, one of which is changed, and some of which are JSON no more."""
    data = draw(_by_size(seeds))
    if draw(st.integers(0, 3)):
        lines = data.split(b"\n")
        at = draw(st.integers(0, len(lines) - 1))
        value = _times(draw, lambda value: _change_json(draw, value), json.loads(lines[at]))
        lines[at] = json.dumps(value, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
        return b"\n".join(lines)[: 4 * MAX_CHARS]
    unwritten = draw(st.sampled_from(UNWRITTEN))
    before, _, after = _cut(draw, data)
    encoding = draw(st.sampled_from(("utf-16", "utf-32", "utf-8-sig")))
    inserted = (before + unwritten + after, data.replace(b": ", b": " + unwritten + b" ", 1))
    changed = (*inserted, data.decode().encode(encoding), _change_bytes(draw, data))
    return draw(st.sampled_from(changed))[: 4 * MAX_CHARS]


def _change_json(draw: Draw, root: Any) -> Any:
    path = draw(st.sampled_from(list(_paths(root))))
    return _replaced(root, path, _other(draw, _get(root, path), root))


def _other(draw: Draw, old: Any, root: Any) -> Any:
    odd = draw(st.sampled_from(ODD))
    way = draw(st.sampled_from(("inside", "inside", "inside", "odd", "odd", "part", "deep")))
    if way == "part":
        return _get(root, draw(st.sampled_from(list(_paths(root)))))
    if way == "deep":
        return reduce(lambda inner, _: [inner], range(draw(st.sampled_from((3, 50, 400)))), 1)
    if way == "inside" and isinstance(old, str):
        return _change_text(draw, old)
    if way == "inside" and isinstance(old, dict) and old:
        key = draw(st.sampled_from(list(old)))
        rest = {name: value for name, value in old.items() if name != key}
        return draw(st.sampled_from((rest, rest | {draw(st.sampled_from(PIECES)): old[key]}, old | {key: odd})))
    if way == "inside" and isinstance(old, list) and old:
        at = draw(st.integers(0, len(old) - 1))
        before, item, after = old[:at], old[at], old[at + 1 :]
        repeated = [item] * draw(st.sampled_from((2, 5, 50)))
        return draw(st.sampled_from((before + after, (before + repeated + after)[:300], old[::-1], [*old, odd])))
    return odd


def _paths(value: Any, at: Path = (), levels: int = 6) -> Iterator[Path]:
    """The paths to all parts of a structure, six levels deep."""
    yield at
    if levels and isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(min(60, len(value))):
            yield from _paths(value[key], (*at, key), levels - 1)


def _get(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _replaced(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy
