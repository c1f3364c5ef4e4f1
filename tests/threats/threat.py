"""One row of the threat model: the attack, the defence, and the tests that try it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Threat:
    """`tests` are pytest node ids from the root of the checkout; without any, `not_applicable` says why."""

    row: int
    threat: str
    defence: str
    tests: tuple[str, ...]
    not_applicable: str = ""
