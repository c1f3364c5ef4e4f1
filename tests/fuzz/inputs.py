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

CHARACTERS = [*string.punctuation, *string.whitespace, "0", "a", "\x7f", "\x85", "\ufffd", "\udfff", *"İﬁ٣字яⅧ😀"]
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**30, -(10**30), 0.0, 0.5, -1.5, 1e300, float("inf"),
    float("-inf"), float("nan"), "", "0", "-1", "1e400", "null", "ghost", "\0", "\ud800", "\udfff", "closed", "open",
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
def _by_size(seeds: Seeds) -> list[Any]:
    """The seeds, small ones first: a finding is reduced to them."""
    return sorted(seeds(), key=lambda seed: len(str(seed)))


def _pick(draw: Draw, items: Sequence[Any]) -> Any:
    """One of the items; several times faster than a strategy for each list."""
    return items[draw(st.integers(0, len(items) - 1))]


def _times(draw: Draw, changes: Callable[[Any], Any], value: Any) -> Any:
    for _ in range(_pick(draw, CHANGES)):
        value = changes(value)
    return value


# -- texts -------------------------------------------------------------------------------------------------------------


@st.composite
def texts(draw: Draw, seeds: Seeds, tokens: Sequence[str] = ()) -> str:
    """A text of at most MAX_CHARS; ``tokens`` are put in more often than others."""
    return _times(draw, lambda text: _change_text(draw, text, tokens, seeds), _pick(draw, _by_size(seeds)))


@st.composite
def lists_of_texts(draw: Draw, seeds: Seeds, tokens: Sequence[str] = ()) -> list[str]:
    """A list of texts, some of which are changed."""

    def change(items: list[str]) -> list[str]:
        at = draw(st.integers(0, len(items) - 1))
        return [*items[:at], _change_text(draw, items[at], tokens), *items[at + 1 :]]

    return _times(draw, change, _pick(draw, _by_size(seeds)))


def _change_text(draw: Draw, text: str, tokens: Sequence[str] = (), seeds: Seeds = lambda: [""]) -> str:
    def piece() -> str:
        pieces = _pick(draw, (PIECES, CHARACTERS, tokens or PIECES, UNSEEN))
        return "".join(_pick(draw, pieces) for _ in range(_pick(draw, (1, 1, 2))))

    match _pick(
        draw, ("insert", "insert", "insert", "delete", "repeat", "splice", "swap", "mark", "append", "flood", "wrap")
    ):
        case "mark":
            mark = piece()
            text = "\n".join(mark + line for line in text.split("\n")[:500])
        case "append":
            text = text[: MAX_CHARS - 20] + piece()
        case "flood":
            text = _repeated(draw, piece()) + text if draw(st.booleans()) else text + _repeated(draw, piece())
        case "wrap":
            text = _repeated(draw, piece())[:30_000] + text[:2_000] + _repeated(draw, piece())
        case way:
            before, middle, after = _cut(draw, text)
            match way:
                case "insert":
                    middle = piece() + middle
                case "delete":
                    middle = ""
                case "repeat":
                    middle = _repeated(draw, middle or piece())
                case "splice":
                    middle += _cut(draw, _pick(draw, _by_size(seeds)))[1]
                case "swap":
                    middle = _pick(draw, (middle.upper(), middle.swapcase(), middle[::-1]))
            text = before + middle + after
    return text[:MAX_CHARS]


def _cut(draw: Draw, value: Any) -> tuple[Any, Any, Any]:
    """A text or bytes in three parts."""
    start = draw(st.integers(0, len(value)))
    end = start + _pick(draw, LENGTHS)
    return value[:start], value[start:end], value[end:]


def _repeated(draw: Draw, piece: str) -> str:
    return piece * min(_pick(draw, TIMES), MAX_CHARS // len(piece))


# -- bytes -------------------------------------------------------------------------------------------------------------


@st.composite
def binary(draw: Draw, seeds: Seeds) -> bytes:
    return _times(draw, lambda data: _change_bytes(draw, data), _pick(draw, _by_size(seeds)))


def _change_bytes(draw: Draw, data: bytes) -> bytes:
    before, middle, after = _cut(draw, data)
    match _pick(draw, ("replace", "replace", "insert", "noise", "flip", "delete", "end", "repeat")):
        case "replace":
            number = _number(draw)
            data = before + number + data[len(before) + len(number) :]
        case "insert":
            data = before + _number(draw) + middle + after
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
            data = before + middle * _pick(draw, (2, 5, 50)) + after
    return data[: 4 * MAX_CHARS]


def _number(draw: Draw) -> bytes:
    size = _pick(draw, (1, 2, 4, 8))
    return (_pick(draw, NUMBERS) % 256**size).to_bytes(size, _pick(draw, ("big", "little")))


@st.composite
def files(draw: Draw, seeds: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    """Files by name, one or more of them changed, and now and then missing or renamed."""

    def change(contents: dict[str, bytes]) -> dict[str, bytes]:
        name = _pick(draw, sorted(contents))
        rest = {other: data for other, data in contents.items() if other != name}
        new_name = _pick(draw, [*[name] * 40, name.replace("0", "1"), f"{name}x", ""])
        return rest | {new_name: _change_bytes(draw, contents[name])} if new_name else rest or contents

    return _times(draw, change, seeds())


# -- JSON --------------------------------------------------------------------------------------------------------------


@st.composite
def structures(draw: Draw, seeds: Seeds) -> Any:
    """JSON as Python has it, with other values, types and texts at some of its places, and keys more or less."""
    return _times(draw, lambda value: _change_json(draw, value), _pick(draw, _by_size(seeds)))


@st.composite
def json_lines(draw: Draw, seeds: Seeds) -> bytes:
    """Lines of JSON, one of which is changed, and some of which are JSON no more."""
    data = _pick(draw, _by_size(seeds))
    if draw(st.integers(0, 3)):
        lines = data.split(b"\n")
        at = draw(st.integers(0, len(lines) - 1))
        value = _times(draw, lambda value: _change_json(draw, value), json.loads(lines[at]))
        lines[at] = json.dumps(value, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
        return b"\n".join(lines)[: 4 * MAX_CHARS]
    unwritten = _pick(draw, UNWRITTEN)
    before, _, after = _cut(draw, data)
    encoding = _pick(draw, ("utf-16", "utf-32", "utf-8-sig"))
    inserted = (before + unwritten + after, data.replace(b": ", b": " + unwritten + b" ", 1))
    changed = (*inserted, data.decode().encode(encoding), _change_bytes(draw, data))
    return _pick(draw, changed)[: 4 * MAX_CHARS]


def _change_json(draw: Draw, root: Any) -> Any:
    path = _pick(draw, list(_paths(root)))
    return _replaced(root, path, _other(draw, _get(root, path), root))


def _other(draw: Draw, old: Any, root: Any) -> Any:
    way = _pick(draw, ("inside", "inside", "inside", "odd", "odd", "part", "deep"))
    if way == "part":
        return _get(root, _pick(draw, list(_paths(root))))
    if way == "deep":
        return reduce(lambda inner, _: [inner], range(_pick(draw, (3, 50, 400))), 1)
    if way == "odd" or not old or not isinstance(old, str | dict | list):
        return _pick(draw, ODD)
    if isinstance(old, str):
        return _change_text(draw, old)
    key = _pick(draw, [*old] if isinstance(old, dict) else range(len(old)))
    if isinstance(old, dict):
        rest = {name: value for name, value in old.items() if name != key}
        return _pick(draw, (rest, rest | {_pick(draw, PIECES): old[key]}, old | {key: _pick(draw, ODD)}))
    before, item, after = old[:key], old[key], old[key + 1 :]
    repeated = [item] * _pick(draw, (2, 5, 50))
    return _pick(draw, (before + after, (before + repeated + after)[:300], old[::-1], [*old, _pick(draw, ODD)]))


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
