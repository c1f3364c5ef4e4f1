"""Turns values of the domain into JSON and back, by their annotations and the bounds in them."""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, partial, reduce
from operator import or_
from typing import Annotated, Any, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from bot.domain.bounds import Count, Fraction, Lenient, MaxChars, MaxItems, OneOf, OneWord, Past, Pattern, Position
from bot.domain.changes import TRACKED_NUMBER_LIMIT
from bot.domain.shape import one_word
from bot.domain.thread import ThreadId
from bot.domain.thread_json import FutureTime, parse_key, parse_number, parse_time, stamp, storable
from bot.files import MAX_FILES

Value = TypeVar("Value")
Read = Callable[[Any], Any]

DAMAGE = (KeyError, TypeError, ValueError, OverflowError, AttributeError)
"""What reading raises for a damaged value."""


def encode(value: Any) -> dict[str, object]:
    """The fields of a dataclass as JSON; of those that have a default, not the ones that are None, False or empty."""
    plain = ((field, _plain(getattr(value, field.name))) for field in fields(value))
    return {field.name: item for field, item in plain if _is_needed(field) or not is_empty(item)}


def is_empty(item: object) -> bool:
    """Whether a value in JSON says nothing."""
    return item is None or item is False or item in ("", [], {})


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return encode(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset):
        return _bits(value)
    return stamp(value) if isinstance(value, datetime) else value


def decode(kind: type[Value], stored: Mapping[str, Any], **given: object) -> Value:
    """The inverse of `encode`; ``given`` are fields that are not stored. Raises one of DAMAGE."""
    if not isinstance(stored, Mapping):
        raise TypeError("not an object")
    values = dict(given)
    for name, (read, is_needed, forgiven) in _field_readers(cast("Any", kind)).items():
        if name not in given and (is_needed or name in stored):
            with suppress(*forgiven):
                values[name] = read(stored[name])
    return kind(**values)


def decode_each(kind: type[Value], stored: Iterable[Any], **given: object) -> tuple[list[Value], bool]:
    """The readable values of a list, and whether those are all of it."""
    return read_each(stored, lambda item: decode(kind, item, **given))


def read_each(stored: Iterable[Any], read: Callable[[Any], Value]) -> tuple[list[Value], bool]:
    """The readable items, and whether those are all."""
    items, is_whole = [], True
    for item in stored:
        try:
            items.append(read(item))
        except DAMAGE:
            is_whole = False
    return items, is_whole


def as_list(value: Any) -> list[Any]:
    """Raises ValueError for anything but a list."""
    if not isinstance(value, list | tuple):
        raise ValueError("not a list")
    return list(value)


@cache
def _field_readers(kind: Any) -> dict[str, tuple[Read, bool, tuple[type[Exception], ...]]]:
    """For each field how it is read, whether it must be there, and for what errors it has its default."""
    hints = get_type_hints(kind, include_extras=True)
    forgiven = {name: DAMAGE if Lenient() in _bounds(hint) else () for name, hint in hints.items()}
    return {field.name: (_reader(hints[field.name]), _is_needed(field), forgiven[field.name]) for field in fields(kind)}


def _bounds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


@cache
def _reader(hint: Any) -> Read:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        items = get_args(arguments[0])
        is_list = Lenient() in arguments[1:] and items[-1:] == (Ellipsis,)
        read = _lenient_list_reader(_reader(items[0])) if is_list else _reader(arguments[0])
        for bound in arguments[1:]:
            read = _bounded(read, bound)
        return read
    if hint == ThreadId | None:
        return _or_none(parse_key)
    if hint == ThreadId:
        return parse_key
    if origin in (Union, types.UnionType):
        kind = reduce(or_, (argument for argument in arguments if argument is not type(None)))
        return parse_number if kind is int else _or_none(_reader(kind))
    if origin is tuple and arguments[-1] is Ellipsis:
        return _list_reader(_reader(arguments[0]))
    if origin is tuple:
        return _row_reader(arguments, lambda *items: items)
    if origin is dict:
        return _dict_reader(*map(_reader, arguments))
    if is_dataclass(hint):
        return partial(decode, cast("Any", hint))
    if issubclass(hint, Enum):
        return cast("Read", hint)
    if issubclass(hint, tuple):
        return _row_reader(get_type_hints(hint, include_extras=True).values(), hint)
    return _PLAIN_READERS[hint]


def _bounded(read: Read, bound: object) -> Read:
    match bound:
        case MaxChars(chars):
            return lambda value: read(value)[:chars]
        case OneWord():
            return one_word
        case OneOf(values):
            return lambda value: read(value) if value in values else _refuse()
        case Pattern(regex):
            return lambda value: value if isinstance(value, str) and regex.fullmatch(value) else _refuse()
        case Position():
            return lambda value: 0 if value == 0 and type(value) is int else read(value)
        case Fraction():
            return lambda value: min(1.0, max(0.0, read(value)))
        case MaxItems(count):
            return lambda value: read(as_list(value)[:count])
        case Past():
            return _past_reader(read)
        case Count():
            return _count
    return read


def _or_none(read: Read) -> Read:
    return lambda value: (read(value) or None) if value else None


def _list_reader(read: Read) -> Read:
    return lambda value: tuple(map(read, as_list(value)))


def _lenient_list_reader(read: Read) -> Read:
    return lambda value: tuple(read_each(as_list(value), read)[0])


def _dict_reader(read_name: Read, read: Read) -> Read:
    return lambda value: {read_name(name): read(item) for name, item in value.items()}


def _past_reader(read: Read) -> Read:
    def read_past(value: Any) -> Any:
        with suppress(FutureTime):
            return read(value)
        return None

    return read_past


def _row_reader(hints: Iterable[Any], build: Callable[..., Any]) -> Read:
    readers = tuple(map(_reader, hints))
    return lambda value: build(*(read(item) for read, item in zip(readers, as_list(value), strict=True)))


def _number(value: object) -> int:
    return parse_number(value) or _refuse()


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else _refuse()


def _bits(numbers: Iterable[int]) -> str:
    """A bit for each number from 0 to TRACKED_NUMBER_LIMIT, lowest bit first, in base64."""
    kept = [number for number in numbers if number < TRACKED_NUMBER_LIMIT]
    bits = bytearray(max(kept, default=0) // 8 + 1)
    for number in kept:
        bits[number // 8] |= 1 << number % 8
    return base64.b64encode(bits).decode()


def _numbers(value: Any) -> frozenset[int]:
    """The inverse of `_bits`. Raises ValueError for more numbers than a store can have threads."""
    bits = base64.b64decode(value, validate=True)[: TRACKED_NUMBER_LIMIT // 8]
    if int.from_bytes(bits, "little").bit_count() > MAX_FILES:
        raise ValueError("too many numbers")
    return frozenset(8 * place + bit for place, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1)


def _refuse() -> NoReturn:
    raise ValueError("no such value")


_PLAIN_READERS: dict[Any, Read] = {
    str: storable,
    bool: lambda value: value is True,
    int: _number,
    float: float,
    datetime: parse_time,
    frozenset[int]: _numbers,
}
