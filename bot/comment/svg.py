"""The elements of our drawings, as SVG; places and sizes are in units of the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


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
