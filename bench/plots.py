"""Saved results → plots: self-contained SVG files, light and dark, with their words and numbers.

They are 720 wide and meant to be read at 600: no text is smaller than 14. Words repeat whatever colour conveys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from bench.figures import Curve, Result, results_of, shown
from bot.comment.svg import bar, curve, line, text
from bot.evaluation.plots import number

WIDTH = 720
LEFT, RIGHT = 16, 150
"""Margins of the drawing; the one at the right of the bars is for words."""

INDENT = 36
"""Of the scale of ratios, so that its first number fits."""

ROW, TOP, BOTTOM = 46, 78, 46
STYLE = """
svg { background: #ffffff; font-family: system-ui, -apple-system, "Segoe UI", sans-serif; }
text { fill: #1f2328; font-size: 15px; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
.title { font-size: 18px; font-weight: 600; } .small { font-size: 14px; }
.quiet { fill: #59636e; } .end { text-anchor: end; } .middle { text-anchor: middle; }
.grid { stroke: #d1d9e0; } .axis { stroke: #59636e; stroke-width: 1.5; } .limit { stroke: #1f2328; stroke-width: 3; }
.ours { fill: #0969da; } .worse { fill: #bc4c00; } .other { fill: #59636e; } .third { fill: #8c959f; }
polyline { fill: none; stroke-width: 2.5; }
.line-0 { stroke: #0969da; } .line-1 { stroke: #bc4c00; stroke-dasharray: 7 4; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; } text { fill: #f0f6fc; stroke: #0d1117; } .quiet { fill: #9198a1; }
.grid { stroke: #3d444d; } .axis { stroke: #9198a1; } .limit { stroke: #f0f6fc; }
.ours { fill: #4493f8; } .worse { fill: #f0883e; } .other { fill: #b7bdc8; } .third { fill: #6e7681; }
.line-0 { stroke: #4493f8; } .line-1 { stroke: #f0883e; }
}
"""


def plots(saved: Mapping[str, Any]) -> dict[str, str]:
    """File name → drawing, where there is something to draw."""
    results = results_of(saved)
    ratios = [result for result in results if result.ratio and result.group != "quality"]
    drawings = {"bench-ratios.svg": ratio_plot(ratios)} if ratios else {}
    quality = [result for result in results if result.group == "quality"]
    if quality:
        drawings["bench-quality.svg"] = quality_plot(quality)
    growth = [curve_of(saved_curve) for entry in saved["benches"].values() for saved_curve in entry.get("curves", ())]
    if growth:
        drawings["bench-growth.svg"] = growth_plot(growth)
    return drawings


def curve_of(saved: Mapping[str, Any]) -> Curve:
    return Curve(saved["group"], saved["name"], saved["x"], saved["y"], tuple((x, y) for x, y in saved["points"]))


def svg_file(title: str, about: str, parts: Sequence[str], height: int) -> str:
    """An SVG file. ``about`` describes everything visible in words."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-labelledby="title about">'
    )
    words = f'<title id="title">{escape(title)}</title><desc id="about">{escape(about)}</desc>'
    ground = [f"<style>{STYLE}</style>", text(LEFT, 28, title, "title")]
    return "\n".join([head, words, *ground, *parts, "</svg>"]) + "\n"


def ratio_plot(results: Sequence[Result]) -> str:
    """A bar for each result, from the peer's line to ours, on a logarithmic scale."""
    height = TOP + ROW * len(results) + BOTTOM
    low, high = scale_ends([result.ratio or 1.0 for result in results])
    parts = [
        text(
            LEFT, 52, "left of the line: ours needs less; right of it: more. A thick stroke is a limit.", "quiet small"
        )
    ]
    for power in range(low, high + 1):
        x = x_of(10.0**power, low, high)
        parts.append(line((x, TOP - 8), (x, height - BOTTOM), "axis" if power == 0 else "grid"))
        parts.append(text(x, height - BOTTOM + 20, f"{number_of(10.0**power)} ×", "small middle"))
    for row, result in enumerate(results):
        parts += ratio_row(result, TOP + ROW * row, low, high)
    words = "; ".join(f"{label(result)}: {shown(result.ratio or 0)} times" for result in results)
    return svg_file("Ours as a multiple of the peer", f"Bars on a logarithmic scale. {words}.", parts, height)


def ratio_row(result: Result, top: float, low: int, high: int) -> list[str]:
    ratio = result.ratio or 1.0
    start, end = sorted((x_of(1.0, low, high), x_of(ratio, low, high)))
    style = "ours" if result.is_better else "worse"
    value_text = f"{shown(ratio)} ×, {'less' if ratio < 1 else 'more'}"
    parts = [
        text(LEFT, top + 12, label(result), "small"),
        bar(start, top + 19, (max(end - start, 1.5), 14), style),
        text(WIDTH - 16, top + 31, value_text, "end"),
    ]
    if result.limit and result.limit.of == "ratio":
        x = x_of(result.limit.value, low, high)
        parts.append(line((x, top + 16), (x, top + 36), "limit"))
    return parts


def label(result: Result) -> str:
    assert result.peer is not None
    return f"{result.what}, against {result.peer.name}"


def scale_ends(ratios: Sequence[float]) -> tuple[int, int]:
    """The powers of ten at the ends of the scale."""
    return min(-1, *(math.floor(math.log10(ratio)) for ratio in ratios)), max(
        1, *(math.ceil(math.log10(ratio)) for ratio in ratios)
    )


def x_of(ratio: float, low: int, high: int) -> float:
    width = WIDTH - INDENT - RIGHT
    return INDENT + width * (math.log10(ratio) - low) / (high - low)


def quality_plot(results: Sequence[Result]) -> str:
    """For each measure, our bar and one for each peer."""
    peers = list(dict.fromkeys(result.peer.name for result in results if result.peer))
    bars: dict[str, dict[str, float]] = {}
    for result in results:
        group = bars.setdefault(result.what, {"ours": result.ours.median})
        if result.peer:
            group[result.peer.name] = result.peer.spread.median
    names, styles = ["ours", *peers], ("ours", "other", "third")
    height, floor, wide = 400, 340, (WIDTH - 80) / len(bars)
    parts = grid([step / 5 for step in range(6)], 1.0, floor, "")
    for number_of_group, (measure, values) in enumerate(bars.items()):
        left = 60 + wide * number_of_group
        for count, name in enumerate(names):
            tall = (floor - 80) * values.get(name, 0.0)
            x = left + 44 * count
            parts.append(bar(x, floor - tall, (38, tall), styles[count % 3]))
            parts.append(text(x + 19, floor - tall - 6, f"{values.get(name, 0.0):.2f}"[1:], "small middle"))
        parts.append(text(left + 22 * len(names), floor + 22, measure, "middle"))
    parts += legend(names, styles, height - 16)
    words = "; ".join(
        f"{measure}: " + ", ".join(f"{n} {v:.3f}" for n, v in values.items()) for measure, values in bars.items()
    )
    return svg_file("Finding the known duplicate: higher is better", f"Bars. {words}.", parts, height)


def growth_plot(curves: Sequence[Curve]) -> str:
    """Megabytes against events, ours and the peer's."""
    height, floor = 360, 296
    right = max(x for growth in curves for x, _ in growth.points) or 1.0
    top = math.ceil(max(y for growth in curves for _, y in growth.points) * 1.1)
    parts = grid([top * step / 4 for step in range(5)], top, floor, " MB")
    for share in (0.0, 0.5, 1.0):
        parts.append(text(60 + (WIDTH - 100) * share, floor + 22, number(right * share), "small middle"))
    parts.append(text(WIDTH / 2, floor + 42, curves[0].x, "small middle quiet"))
    for count, growth in enumerate(curves):
        spots = [(60 + (WIDTH - 100) * x / right, floor - (floor - 70) * y / top) for x, y in growth.points]
        parts.append(curve(spots, f"line-{count % 2}"))
        above = min(y for x, y in spots if x > WIDTH / 2) - 10
        parts.append(text(WIDTH - 40, above, f"{growth.name}: {shown(growth.points[-1][1])} MB", "end"))
    words = "; ".join(
        f"{growth.name}: from {shown(growth.points[0][1])} to {shown(growth.points[-1][1])} MB" for growth in curves
    )
    about = f"Curves of what a clone gets, after 0 to {number(right)} events. {words}."
    return svg_file("What a clone of the branch gets", about, parts, height)


def grid(values: Sequence[float], top: float, floor: float, suffix: str) -> list[str]:
    """Horizontal lines with their numbers at the left."""
    parts = []
    for value in values:
        y = floor - (floor - (80 if not suffix else 70)) * value / top
        parts.append(line((60, y), (WIDTH - 40, y), "grid" if value else "axis"))
        parts.append(text(54, y + 5, number(value), "small end"))
    return [*parts, text(LEFT, 54, suffix.strip(), "small quiet")] if suffix else parts


def legend(names: Sequence[str], styles: Sequence[str], y: float) -> list[str]:
    parts, x = [], 60.0
    for count, name in enumerate(names):
        parts += [bar(x, y - 12, (14, 14), styles[count % len(styles)]), text(x + 20, y, name, "small")]
        x += 50 + 9 * len(name)
    return parts


def number_of(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.3f}".rstrip("0")
