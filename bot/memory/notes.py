"""What a maintainer should know of a memory, each once; and of damage, whether it is there still or was mended."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class Notes(list[str]):
    """The notes in the order in which they were made."""

    def __init__(self) -> None:
        super().__init__()
        self._faults: dict[str, tuple[str, str]] = {}

    def add(self, text: str) -> None:
        """Note something that stays true."""
        if text not in self:
            self.append(text)

    def fault(self, place: str, now: str, mended: str) -> None:
        """Note damage: ``now`` says that it is there, ``mended`` that it was, empty where that is not worth a line."""
        self._faults.setdefault(place, (now, mended))
        self.add(now)

    def settle(self, look: Callable[[Iterable[str]], None]) -> None:
        """Tell of damage that is mended by now as of what was. ``look`` looks at these places again, and notes the
        damage that is there still."""
        found, self._faults = self._faults, {}
        told = {now for now, _ in found.values()}
        self[:] = [note for note in self if note not in told]
        look(found)
        for place, (_, mended) in found.items():
            if mended and place not in self._faults:
                self.add(mended)
