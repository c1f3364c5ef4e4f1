"""Pieces of SVG: a frame with two axes, and what stands in it; colours and fonts are the page's, by class names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 360, 236
LEFT, RIGHT, TOP, BOTTOM = 40, 18, 32, 40
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """From 0 to ``end``, which is above 0. ``ticks``: where numbers stand, as (value, text)."""

    label: str
    end: float
    ticks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A plane between two axes; values become places in a drawing, 360 wide and 236 high."""

    x: Axis
    y: Axis

    def at_x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(value / self.x.end, 1.0)

    def at_y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(value / self.y.end, 1.0)

    def axes(self) -> str:
        """Lines across at the ticks of y, numbers at both axes, and what the axes mean."""
        right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
        parts = [text(LEFT - 30, 13, self.y.label, "label")]
        for value, name in self.y.ticks:
            parts.append(line((LEFT, self.at_y(value)), (right, self.at_y(value)), "grid" if value else "axis"))
            parts.append(text(LEFT - 6, self.at_y(value) + 4, name, "tick end"))
        parts += [text(self.at_x(value), floor + 15, name, "tick middle") for value, name in self.x.ticks]
        parts.append(text(right, floor + 32, self.x.label, "label end"))
        return "".join(parts)


def axis(label: str, highest: float, suffix: str = "", scale: float = 1.0) -> Axis:
    """An axis that ends at a round number, not below ``highest``; its numbers are values times ``scale``."""
    return _axis(label, highest * scale, _round_step(max(highest * scale, 1e-9) / _TICKS), suffix, scale)


def count_axis(label: str, highest: float) -> Axis:
    """An axis of whole numbers that does not end below ``highest``."""
    return _axis(label, highest, math.ceil(_round_step(max(highest, 1e-9) / _TICKS)))


def _axis(label: str, highest: float, step: float, suffix: str = "", scale: float = 1.0) -> Axis:
    steps = max(1, math.ceil(highest / step - 1e-9))
    ticks = tuple((place * step / scale, number(place * step) + suffix) for place in range(steps + 1))
    return Axis(label, ticks[-1][0], ticks)


def drawing(name: str, parts: Sequence[str], height: int = HEIGHT) -> str:
    """A whole drawing; ``name`` says in words what is in it."""
    start = f'<svg class="plot" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(name)}">'
    return start + "".join(parts) + "</svg>"


def line(start: tuple[float, float], end: tuple[float, float], style: str) -> str:
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line class="{style}" {ends}/>'


def curve(points: Sequence[tuple[float, float]], style: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{style}" points="{path}"/>'


def dot(x: float, y: float, radius: float, style: str) -> str:
    return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'


def bar(x: float, y: float, size: tuple[float, float], style: str) -> str:
    """A rectangle from its upper left corner, ``size`` wide and high."""
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"/>'


def text(x: float, y: float, words: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def number(value: float) -> str:
    """At most two digits behind the point, and none that say nothing."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def thinned(points: Sequence[tuple[float, float]], gap: float = 1.0) -> list[tuple[float, float]]:
    """A curve to the right without the points that are less than ``gap`` pixels after the last one; its ends stay."""
    kept = list(points[:1])
    for point in points[1:-1]:
        if point[0] - kept[-1][0] >= gap:
            kept.append(point)
    return [*kept, *points[1:][-1:]]


def _round_step(step: float) -> float:
    unit = 10.0 ** math.floor(math.log10(step))
    return next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= step * (1 - 1e-9))
