"""Converts the results of bench_image to the common shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.figures import Limit, Peer, Report, Result, Spread, single

OURS, API, IMPORTED = "to the first request", "to the first request to the API", "imports done"
IMAGE, PACKED = "image", "layers, packed"
MOST = 1.5
"""Highest ratio to the imports alone, in the same image."""


def image_report(measured: Mapping[str, Any]) -> Report:
    """From ``ms``, lists for each run, and ``bytes``. Raises KeyError, TypeError or ValueError for anything else."""
    times = {name: Spread.of(each) for name, each in measured["ms"].items()}
    sizes: dict[str, int] = dict(measured["bytes"])
    (base,) = sizes.keys() - {IMAGE, PACKED}
    imports = Peer("imports in the image, done", "", times[IMPORTED])
    results = [
        Result(
            "image-1", "image", f"from the start of the image {OURS}", "ms", times[OURS], imports, Limit("ratio", MOST)
        ),
        Result("image-2", "image", f"from the start of the image {API}", "ms", times[API], imports),
    ]
    parent = Peer(f"image {base.rpartition('/')[2]}", "", single(sizes[base] / 1e6))
    results.append(Result("image-size", "image", "size of the image", "MB", single(sizes[IMAGE] / 1e6), parent))
    results.append(Result("image-packed", "image", "its layers, packed", "MB", single(sizes[PACKED] / 1e6)))
    return Report(f"{times[OURS].n} runs by turns", tuple(results))
