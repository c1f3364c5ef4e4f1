"""All fuzzing targets by name."""

from __future__ import annotations

from tests.fuzz.target import Target
from tests.fuzz.targets import comment, files, forge, index, reading

TARGETS: dict[str, Target] = {
    target.name: target for part in (forge, reading, comment, files, index) for target in part.TARGETS
}
