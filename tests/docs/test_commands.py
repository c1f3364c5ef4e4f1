"""Commands: each of them and of their options is documented, with what it takes and its default, and no other is."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.cli.main import parser
from bot.server.options import FLAGS, ServerOptions
from tests.docs.pages import CODE, PAGES, ROOT, blocks, code_of, parsers, rows, section, text

PAGE = "docs/command-line.md"
SHARED = "Options that several commands share"
NOTHING = (None, False, 0, [], Path())
"""Defaults that need no word: without the option nothing of it happens."""


class Option(NamedTuple):
    """An option or argument of a command as the code has it, and what the documentation says of it ("" for nothing)."""

    action: argparse.Action
    command: str
    name: str
    told: str = ""
    shown: str = ""

    def __str__(self) -> str:
        return f"precedent {self.command} {self.name}"

    @property
    def takes(self) -> bool:
        return self.action.nargs != 0

    @property
    def default(self) -> str:
        """What holds without it, as a page writes it: of the parser, of the server's options, or of the help text."""
        given = self.action.default
        if self.command in ("serve", "worker", "deliveries", "repos", "org") and self.action.dest in FLAGS:
            given = getattr(ServerOptions(), self.action.dest) or None
        if given not in NOTHING:
            return str(given)
        found = re.search(r"\(default:? (?!here|all)([\w.]+)\)", self.action.help or "")
        return found[1] if found else ""


def shared(command: str) -> list[list[str]]:
    """The rows of the shared options that a command takes: it is named above the table, and not in the last column."""
    parts = pairwise(section(PAGE, SHARED).split("\n\n"))
    tables = [table for names, table in parts if table.startswith("| option |") and command in CODE.findall(names)]
    return [cells[:2] for table in tables for cells in rows(table) if command not in CODE.findall(cells[2])]


def described(command: str) -> list[list[str]]:
    """The rows of all options of a command: those of its own section, and the shared ones, to which that links."""
    own = section(PAGE, command)
    assert ("(#options-that-several-commands-share)" in own) is bool(shared(command)), command
    return [cells for cells in rows(own) if len(cells) == 2] + shared(command)


def options(command: str, one: argparse.ArgumentParser, documentation: list[list[str]]) -> list[Option]:
    told = {CODE.findall(cells[0])[0].split()[0]: cells for cells in documentation}
    found = []
    for action in one._actions:
        if not isinstance(action, argparse._HelpAction):
            name = action.option_strings[0] if action.option_strings else str(action.metavar)
            shown, says = told.get(name, ["", ""])[:2]
            found.append(Option(action, command, name, says, shown))
    return found


def documented() -> list[Option]:
    found = [each for name, one in parsers().items() for each in options(name, one, described(name))]
    install = parsers(parsers()["skill"])["install"]
    return found + options("skill install", install, rows(section("docs/agents.md", "The skill")))


OPTIONS = documented()


def test_no_command_is_documented_that_is_not_there_and_none_is_left_out() -> None:
    headings = set(re.findall(r"^## (\S+)$", text(PAGE), re.MULTILINE))
    assert headings == set(parsers())


def test_a_second_name_of_a_command_is_told_where_the_command_is() -> None:
    (group,) = (each for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    second = {name: one.prog.split()[-1] for name, one in group.choices.items() if name not in parsers()}
    assert second == {"ss": "smart-search"}
    for name, command in second.items():
        assert f"`precedent {name}`" in section(PAGE, command)


@pytest.mark.parametrize("name", [*parsers(), "skill install"])
def test_every_command_and_option_is_documented(name: str) -> None:
    cells_of = rows(section("docs/agents.md", "The skill")) if name == "skill install" else described(name)
    first = [CODE.findall(cells[0]) for cells in cells_of]
    told = {codes[0].split()[0] for codes in first if name != "skill install" or codes[0].startswith("--")}
    assert told == {each.name for each in OPTIONS if each.command == name}, f"precedent {name}"


def test_options_are_shown_with_what_they_take() -> None:
    for each in OPTIONS:
        (shown,) = CODE.findall(each.shown)
        assert (" " in shown) is (each.takes and shown.startswith("-")), str(each)
        if " " in shown and each.action.metavar:
            assert shown.split(" ", 1)[1] == each.action.metavar, str(each)
        takes_several = not each.action.option_strings and each.action.nargs in ("*", "+")
        assert each.shown.endswith("…") is takes_several, str(each)


def test_what_holds_without_an_option_is_told_as_it_is() -> None:
    for each in (one for one in OPTIONS if one.takes):
        code = re.search(r"`([^`]+)` \(default\)", each.told)
        plain = re.search(r"\(default `?([^`:),]+(?:,\d{3})*)`?[),]", each.told)
        told = (code or plain or ["", ""])[1].replace(",", "")
        assert told == each.default, f"{each}: {each.told}"


def test_all_that_an_option_may_be_is_told() -> None:
    for each in OPTIONS:
        place = section("docs/agents.md", "The skill") if each.command == "skill install" else each.told
        assert set(each.action.choices or ()) <= set(CODE.findall(place)), str(each)


def test_bounds_that_are_told_are_those_that_hold() -> None:
    met = 0
    for each in OPTIONS:
        found, read = re.search(r"(\d[\d,]*) to (\d[\d,]*)", each.told), each.action.type
        if found and callable(read):
            met += 1
            low, high = (int(bound.replace(",", "")) for bound in found.groups())
            assert (read(str(low)), read(str(high))) == (low, high), str(each)
            for beyond in (low - 1, high + 1):
                with pytest.raises(argparse.ArgumentTypeError):
                    read(str(beyond))
    assert met > 2


def test_numbers_in_helps_are_those_of_the_code() -> None:
    """A help text that names a default in numbers names the one that the parser has."""
    met = 0
    for each in OPTIONS:
        found = re.search(r"default:? (\d[\d,.]*\d|\d)", each.action.help or "")
        if found and each.action.default is not None:
            met += 1
            assert float(found[1].replace(",", "")) == float(each.action.default), f"{each.command} {each.name}"
    assert met > 5


# -- what pages show -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_precedent_command_that_a_page_shows_is_accepted(page: Path) -> None:
    typed = re.findall(r"^\$ (.+)$", "\n".join(blocks(page, "console")), re.MULTILINE)
    typed += "\n".join(blocks(page, "")).splitlines()
    program, known = parser(), {*parsers(), "ss"}
    for line in typed:
        for arguments in re.findall(r"(?:^|\| )precedent ([^|\n]*)", line):
            words = shlex.split(re.sub(r" 2?>.*| &&.*", "", arguments))
            assert program.parse_args(words).command in known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_in_its_text_is_there(page: Path) -> None:
    """In a line of prose a command may stand without its arguments; its name and its options have to be right."""
    known = parsers()
    for code in CODE.findall(page.read_text(encoding="utf-8")):
        found = re.match(r"precedent ([a-z][a-z-]*)(?: (.*))?$", code)
        if found is None:
            continue
        assert found[1] in {*known, "ss"}, f"{page.name} names `{code}`"
        one = known["smart-search" if found[1] == "ss" else found[1]]
        if found[1] == "skill" and found[2]:
            one = parsers(one)[found[2].split()[0]]
        named = set(re.findall(r"(?<!\S)--[a-z-]+", found[2] or ""))
        has = {name for action in one._actions for name in action.option_strings}
        assert named <= has, f"{page.name} names `{code}`"


def test_what_the_pages_tell_to_make_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## \S", text("Makefile"), re.MULTILINE))
    told = {name for page in PAGES for name in re.findall(r"\bmake ([a-z][a-z-]*)\b", code_of(page))}
    assert {"demo", "test"} <= told
    assert told <= targets, f"no target of the Makefile: {sorted(told - targets)}"
    assert targets - {"help"} - told == UNTOLD


UNTOLD: set[str] = {"clean"}
"""Targets that only `make help` lists."""


# -- exit codes ----------------------------------------------------------------------------------------------------


def codes_in(page: str) -> set[int]:
    """The exit codes that a page tells of: in a sentence, or in the table of them."""
    content = re.sub(r"\s+", " ", text(page))
    found = set(re.findall(r"[Ee]xit codes?(?: is)? (\d+)", content))
    for sentence in re.findall(r"Exit codes: ([^.]+)\.", content):
        found |= set(re.findall(r"(?:^|[,;] )(\d+) ", sentence))
    for part in re.findall(r"\| exit code \| means \|(.*?)(?:\n\n|\Z)", text(page), re.DOTALL):
        found |= set(re.findall(r"^\| (\d+) \|", part, re.MULTILINE))
    return {int(code) for code in found}


def codes_of(tree: ast.AST) -> set[int]:
    """The numbers with which code may end the program, as far as they are written down: each is one of these shapes."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("exit_code", "INTERRUPTED"):
            found.append(node.value)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("sys.exit", "os._exit", "SystemExit", "_end", "leave"):
                found += node.args[:1]
            elif called == "Verdict":
                found += node.args[1:2]
        elif isinstance(node, ast.FunctionDef) and node.name == "exit_code":
            found += [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
    inside = (part for value in found if value is not None for part in ast.walk(value))
    return {part.value for part in inside if isinstance(part, ast.Constant) and type(part.value) is int}


def test_every_exit_code_is_documented_and_no_other() -> None:
    code = set[int]().union(*(codes_of(ast.parse(path.read_text("utf-8"))) for path in (ROOT / "bot").rglob("*.py")))
    assert code == {0, 1, 2, 3, 130}
    assert codes_in(PAGE) == code, "docs/command-line.md"
    assert codes_in("docs/getting-started.md") == {0, 1, 2}
