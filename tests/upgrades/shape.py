"""The shape of a branch: its files, and the keys and types of their content, without the values."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bot.memory.manifest import FORMAT

NOTED = Path(__file__).parent / "shape.json"
_NAMES = (
    (re.compile(r"records/\d{4}/\d+\.json"), "records/HUNDRED/NUMBER.json"),
    (re.compile(r"records/x[0-9a-f]+/[0-9a-f]{64}\.json"), "records/xHASH/HASH.json"),
    (re.compile(r"(\w+)/\d{4}\.jsonl"), r"\1/HUNDRED.jsonl"),
    (re.compile(r"(\w+)/x[0-9a-f]+\.jsonl"), r"\1/xHASH.jsonl"),
    (re.compile(r"(index|messages)-parts/[0-9a-f]/[0-9a-f]{32}"), r"\1-parts/DIGIT/HASH"),
    (re.compile(r"(index|messages)/MAIN_[0-9a-f]{16}\.(seg|core)"), r"\1/MAIN_CONTENT.\2"),
    (re.compile(r"(index|messages)/_MAIN_\d+\.toc"), r"\1/_MAIN_NUMBER.toc"),
)
_KEYS_ARE_VALUES = re.compile(r"manifest\.json (index|messages\.files|model|pages)|\.reactions$")
"""Objects whose keys are values, not fields."""


def of_bundle(bundle: Path) -> dict[str, list[str]]:
    """The shape of the branch in a bundle."""
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder) / "branch"
        command = ["git", "clone", "--quiet", "--branch", "precedent", str(bundle), str(checkout)]
        subprocess.run(command, check=True, capture_output=True)
        files = {path.relative_to(checkout).as_posix(): path for path in checkout.rglob("*") if path.is_file()}
        return of_files({name: path.read_bytes() for name, path in files.items() if not name.startswith(".git/")})


def of_files(files: Mapping[str, bytes]) -> dict[str, list[str]]:
    """Each kind of file → the paths inside its JSON, each with the type of its value."""
    shapes: dict[str, set[str]] = {}
    for path, data in files.items():
        kind = _kind(path)
        paths = shapes.setdefault(kind, set())
        for document in _documents(path, data):
            paths.update(_paths(document, kind))
    return {kind: sorted(paths) for kind, paths in sorted(shapes.items())}


def noted() -> dict[str, Any]:
    """The noted ``format`` and two shapes: that of ``all`` that can be written, and that of the ``story``."""
    return dict(json.loads(NOTED.read_text(encoding="utf-8")))


def note(everything: Mapping[str, Any], story: Mapping[str, Any]) -> None:
    """Note these shapes as those of the current format."""
    text = json.dumps({"format": FORMAT, "all": everything, "story": story}, indent=1, sort_keys=True)
    NOTED.write_text(f"{text}\n", encoding="utf-8")


def _kind(path: str) -> str:
    for pattern, name in _NAMES:
        if pattern.fullmatch(path):
            return pattern.sub(name, path)
    return path


def _documents(path: str, data: bytes) -> Iterable[Any]:
    if path.endswith(".jsonl"):
        return map(json.loads, data.splitlines())
    return [json.loads(data)] if path.endswith(".json") else []


def _paths(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            name = "*" if _KEYS_ARE_VALUES.search(at) else key
            yield from _paths(each, f"{at}.{name}" if " " in at else f"{at} {name}")
    elif isinstance(value, list):
        for each in value:
            yield from _paths(each, f"{at}[]")
        if not value:
            yield f"{at.partition(' ')[2]}: list"
    else:
        kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
        yield f"{at.partition(' ')[2]}: {kind}"
