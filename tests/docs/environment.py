"""Which environment variables code reads: found in its syntax tree, so that none is missed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
SHORT = {"COLUMNS", "HOME", "PATH", "SYSTEMROOT", "TERM", "TMPDIR", "TZ"}
"""Names without an underscore, which would otherwise be taken for metavars."""

LOWER = re.compile(r"[a-z]+_proxy")


def read_by(path: Path) -> set[str]:
    """The variables named by a module that uses an environment, except those that it sets for others."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"environ|getenv", text):  # parsing all modules takes seconds
        return set()
    tree = ast.parse(text)
    if not any(_is_environment(node) for node in ast.walk(tree)):
        return set()
    dict_keys = {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in dict_keys
             and isinstance(node.value, str)}  # fmt: skip
    names = {each.upper() if LOWER.fullmatch(each) else each for each in texts}
    return {each for each in names if NAME.fullmatch(each) or each in SHORT} | set(_literal_names(tree))


def _is_environment(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "environ") or (
        isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    )


def _literal_names(tree: ast.AST) -> Iterator[str]:
    """Every literal in ``environ["…"]``, ``environ.get("…")`` and ``getenv("…")``, whatever its form."""
    for node in ast.walk(tree):
        argument: ast.expr | None = None
        if isinstance(node, ast.Subscript) and _is_environment(node.value):
            argument = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            is_access = node.func.attr in ("get", "pop", "setdefault") and _is_environment(node.func.value)
            argument = node.args[0] if is_access or _is_environment(node.func) else None
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value
