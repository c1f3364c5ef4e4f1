"""Which variables of the environment code reads: found in its syntax, so that none is read unseen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
SHORT = {"COLUMNS", "HOME", "PATH", "SYSTEMROOT", "TERM", "TMPDIR", "TZ"}
"""Names without an underscore, which would else be taken for metavars."""

LOWER = re.compile(r"[a-z]+_proxy")


def read_by(path: Path) -> set[str]:
    """The variables that a module which has to do with an environment names, but for those that it sets for others."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not any(_is_environment(node) for node in ast.walk(tree)):
        return set()
    given = {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in given
             and isinstance(node.value, str)}  # fmt: skip
    named = {text.upper() if LOWER.fullmatch(text) else text for text in texts}
    return {text for text in named if NAME.fullmatch(text) or text in SHORT} | set(_asked(tree))


def _is_environment(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "environ") or (
        isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    )


def _asked(tree: ast.AST) -> Iterator[str]:
    """What stands in ``environ["…"]``, ``environ.get("…")`` and ``getenv("…")``, whatever it looks like."""
    for node in ast.walk(tree):
        found: ast.expr | None = None
        if isinstance(node, ast.Subscript) and _is_environment(node.value):
            found = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            asked = node.func.attr in ("get", "pop", "setdefault") and _is_environment(node.func.value)
            found = node.args[0] if asked or _is_environment(node.func) else None
        if isinstance(found, ast.Constant) and isinstance(found.value, str):
            yield found.value
