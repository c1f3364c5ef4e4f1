"""What a check found, how bad that is, and what mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Level = Literal["ok", "note", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about one thing. ``remedy``: the command, in backticks, or the place that mends it; "" for none needed.

    ``outside``: it is not in the hands of whoever reads this, such as a server that does not answer. Both texts may
    hold words of strangers.
    """

    check: str
    level: Level
    says: str
    remedy: str = ""
    outside: bool = False

    @property
    def is_problem(self) -> bool:
        return self.level in ("warning", "error")


def exit_code(findings: Iterable[Finding]) -> int:
    """2 where there is an error that the user can mend, 1 for warnings and for what failed outside, else 0."""
    problems = [each for each in findings if each.is_problem]
    if any(each.level == "error" and not each.outside for each in problems):
        return 2
    return 1 if problems else 0


def moment(at: datetime) -> str:
    """The minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def age(span: timedelta) -> str:
    """A length of time in the largest unit that fits twice: ``3 days``, ``90 minutes``; never a negative one."""
    seconds = max(0, int(span.total_seconds()))
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:,} {unit}"
    return f"{seconds} seconds" if seconds != 1 else "1 second"


def some(names: Iterable[str], most: int = 3) -> str:
    """The first few of these names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(f"{name:.120}" for name in listed[:most]) + more
