"""What bench_image measured, in the shape that all results have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench.figures import Limit, Peer, Report, Result, Spread, one

OURS, API, IMPORTED = "to the first request", "to the first request to the API", "imports done"
IMAGE, PACKED = "image", "layers, packed"
MOST = 1.5
"""Of the imports alone, in the same image."""


def image_report(told: Mapping[str, Any]) -> Report:
    """From ``ms``, lists of each run, and ``bytes``; KeyError, TypeError or ValueError when it is something else."""
    times = {name: Spread.of(each) for name, each in told["ms"].items()}
    sizes: dict[str, int] = dict(told["bytes"])
    (base,) = sizes.keys() - {IMAGE, PACKED}
    imports = Peer("imports in the image, done", "", times[IMPORTED])
    results = [
        Result(
            "image-1", "image", f"from the start of the image {OURS}", "ms", times[OURS], imports, Limit("ratio", MOST)
        ),
        Result("image-2", "image", f"from the start of the image {API}", "ms", times[API], imports),
    ]
    parent = Peer(f"image {base.rpartition('/')[2]}", "", one(sizes[base] / 1e6))
    results.append(Result("image-size", "image", "size of the image", "MB", one(sizes[IMAGE] / 1e6), parent))
    results.append(Result("image-packed", "image", "its layers, packed", "MB", one(sizes[PACKED] / 1e6)))
    return Report(f"{times[OURS].n} runs by turns", tuple(results))
