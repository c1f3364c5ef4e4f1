"""One row of the threat model: what may be tried, what stands in the way, and the tests that try it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Threat:
    """`tests` are pytest node ids from the root of the checkout; without any, `not_applicable` says why."""

    row: int
    threat: str
    stands: str
    tests: tuple[str, ...]
    not_applicable: str = ""
