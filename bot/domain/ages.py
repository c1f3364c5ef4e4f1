"""How long ago something was, in words."""

from __future__ import annotations

from datetime import timedelta


def age(span: timedelta) -> str:
    """A duration in the largest unit that fits twice: ``3 days``, ``90 minutes``; negative ones count as 0."""
    seconds = max(0, int(span.total_seconds()))
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:,} {unit}"
    return f"{seconds} seconds" if seconds != 1 else "1 second"


def days_ago(days: int) -> str:
    """``1 day ago``, ``12 days ago``."""
    return f"{days:,} day{'s' * (days != 1)} ago"
