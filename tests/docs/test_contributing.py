"""What CONTRIBUTING and the design page say about the code: names are in the given files, examples can be followed."""

from __future__ import annotations

import ast
import re
from importlib import import_module

import pytest

from tests.docs.pages import ROOT, blocks, text

PAGES = ("CONTRIBUTING.md", "docs/design.md")
NAMED_IN = re.compile(r"`(\w+(?:\.\w+)?)`(?: and `(\w+)`)? in\s+`(bot/[\w/]+\.py)`")
"""One or two names and the file that has them."""

MOST_FILES = {
    "A new command": 2,
    "A new feature that writes": 3,
    "A new stored value": 4,
    "A new field for templates": 3,
    "A new page source": 3,
    "A new phrase for an ending": 1,
}
"""How many files each example may touch."""


NEW_FILE = ("A new command", "A new feature that writes", "A new stored value", "A new page source")
"""The examples that add a file."""


def examples() -> dict[str, str]:
    """The text of each example by its heading."""
    part = text("CONTRIBUTING.md").partition("## Six examples")[2].partition("\n## ")[0]
    pieces = re.split(r"^### (.+)$", part, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


@pytest.mark.parametrize("page", PAGES)
def test_each_name_is_in_the_file_that_the_page_gives_for_it(page: str) -> None:
    pairs = [(name, file) for *names, file in NAMED_IN.findall(text(page)) for name in names if name]
    assert len(pairs) > 4
    for name, file in pairs:
        for part in name.split("."):
            assert re.search(rf"\b{part}\b", text(file)), f"{page}: {file} has no {name}"


def test_the_imports_of_the_examples_work() -> None:
    trees = [
        ast.parse(line)
        for body in blocks("CONTRIBUTING.md", "python")
        for line in body.splitlines()
        if "bot." in line
        if line.startswith("from ")
    ]
    imports = [node for tree in trees for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert imports
    for node in imports:
        module = import_module(str(node.module))
        assert [each.name for each in node.names if not hasattr(module, each.name)] == [], node.module


def test_an_example_touches_few_files_and_only_existing_ones_unless_it_adds_one() -> None:
    assert set(examples()) == set(MOST_FILES)
    for name, body in examples().items():
        files = re.findall(r"^# (bot/[\w/]+\.(?:py|toml))", body, re.MULTILINE)
        assert 0 < len(set(files)) <= MOST_FILES[name], name
        new = [file for file in files if not (ROOT / file).exists()]
        assert len(new) == (name in NEW_FILE), new


def test_the_new_command_is_registered_like_an_existing_one() -> None:
    (registered,) = re.findall(r'^( +")decided(": CommandSpec\(".*", ").*"\),$', text("CONTRIBUTING.md"), re.MULTILINE)
    before, _ = map(re.escape, registered)
    assert re.search(rf'{before}show": CommandSpec\(".*", "42"\),', text("bot/cli/commands/__init__.py"))
