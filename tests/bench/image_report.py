"""What bench_image measured, in the shape that all results have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.bench.figures import Limit, Peer, Report, Result, Spread, one

OURS, IMPORTED, ENDED = "to the first request", "imports done", "imports, to the end"
IMAGE, PACKED = "image", "layers, packed"
MOST = 1.5
"""Of the imports alone, in the same image."""


def image_report(told: Mapping[str, Any]) -> Report:
    """From ``ms``, lists of each run, and ``bytes``; KeyError, TypeError or ValueError when it is something else."""
    times = {name: Spread.of(each) for name, each in told["ms"].items()}
    sizes: dict[str, int] = dict(told["bytes"])
    ours = times[OURS]
    (base,) = sizes.keys() - {IMAGE, PACKED}
    imports = {IMPORTED: "imports in the image, done", ENDED: "imports in the image, to its end"}
    what = "from the start of the image to its first request"
    results = [
        Result(f"image-{number}", "image", what, "ms", ours, Peer(name, "", times[key]), Limit("ratio", MOST))
        for number, (key, name) in enumerate(imports.items(), 1)
    ]
    parent = Peer(f"image {base.rpartition('/')[2]}", "", one(sizes[base] / 1e6))
    results.append(Result("image-size", "image", "size of the image", "MB", one(sizes[IMAGE] / 1e6), parent))
    results.append(Result("image-packed", "image", "its layers, packed", "MB", one(sizes[PACKED] / 1e6)))
    return Report(f"{ours.n} runs by turns", tuple(results))
