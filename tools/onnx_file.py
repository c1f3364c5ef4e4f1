"""Writes an ONNX file, with its own protobuf encoding, so that no library is needed.

Field numbers are those of https://github.com/onnx/onnx/blob/v1.18.0/onnx/onnx.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

FLOAT, INT8, INT32, INT64 = 1, 3, 6, 7
KINDS = {"float32": FLOAT, "int8": INT8, "int32": INT32, "int64": INT64}
"""NumPy's name of a type → ONNX's number."""

Attribute = int | float | Sequence[int]


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def content(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def node(
    operator: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, Attribute] | None = None
) -> bytes:
    """A NodeProto."""
    names = b"".join(content(1, name) for name in inputs) + b"".join(content(2, name) for name in outputs)
    return names + content(4, operator) + b"".join(content(5, _attribute(*item)) for item in (attributes or {}).items())


def tensor(name: str, values: NDArray[np.generic], *, elsewhere: str = "") -> bytes:
    """A TensorProto; with ``elsewhere``, it refers to the file of that name for its values."""
    head = b"".join(number(1, size) for size in values.shape) + number(2, KINDS[values.dtype.name]) + content(8, name)
    if elsewhere:
        return head + content(13, content(1, "location") + content(2, elsewhere)) + number(14, 1)
    return head + content(9, values.astype(values.dtype.newbyteorder("<")).tobytes())


def value(name: str, kind: int, axes: Sequence[str | int]) -> bytes:
    """A ValueInfoProto: a tensor of ``kind``, each axis with its size or a name for any size."""
    sizes = (content(2, axis) if isinstance(axis, str) else number(1, axis) for axis in axes)
    shape = b"".join(content(1, size) for size in sizes)
    return content(1, name) + content(2, content(1, number(1, kind) + content(2, shape)))


def model(nodes: Sequence[bytes], tensors: Sequence[bytes], inputs: Sequence[bytes], outputs: Sequence[bytes]) -> bytes:
    """A ModelProto of operator set 17."""
    graph = b"".join(content(1, each) for each in nodes) + content(2, "text")
    graph += b"".join(content(5, each) for each in tensors)
    graph += b"".join(content(11, each) for each in inputs) + b"".join(content(12, each) for each in outputs)
    return number(1, 8) + content(7, graph) + content(8, content(1, "") + number(2, 17))


def _attribute(name: str, value: Attribute) -> bytes:
    """An AttributeProto: a float, an integer or several integers."""
    if isinstance(value, float):
        return content(1, name) + varint(2 << 3 | 5) + np.float32(value).tobytes() + number(20, 1)
    if isinstance(value, int):
        return content(1, name) + number(3, value) + number(20, 2)
    return content(1, name) + b"".join(number(8, item) for item in value) + number(20, 7)
