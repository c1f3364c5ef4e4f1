"""Every command and option is documented, with its argument and default, and no other is."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from bot.cli.parser import parser
from bot.server.options import FLAGS, ServerOptions
from bot.settings.schema import MODES, Run, describe
from tests.docs.pages import CODE, PAGES, ROOT, blocks, code_of, parsers, rows, section, text

PAGE = "docs/command-line.md"
SHARED = "Options that several commands share"
NOTHING = (None, False, 0, [], Path())
"""Defaults that need no mention: nothing happens without the option."""


class Option(NamedTuple):
    """An option or argument of a command in the code, and its documentation ("" for none)."""

    action: argparse.Action
    command: str
    name: str
    description: str = ""
    syntax: str = ""

    def __str__(self) -> str:
        return f"precedent {self.command} {self.name}"

    @property
    def takes_value(self) -> bool:
        return self.action.nargs != 0

    @property
    def default(self) -> str:
        """The default as a page writes it: that of the parser, the server's options, or the help text."""
        default_value = self.action.default
        if self.command in ("serve", "worker", "deliveries", "repos", "org") and self.action.dest in FLAGS:
            default_value = getattr(ServerOptions(), self.action.dest) or None
        if default_value not in NOTHING:
            return str(default_value)
        match = re.search(r"\(default:? (?!here|all)([\w.]+)\)", self.action.help or "")
        return match[1] if match else ""


def shared(command: str) -> list[list[str]]:
    """The rows of a command's shared options: the command is named above the table, but not in the last column."""
    parts = pairwise(section(PAGE, SHARED).split("\n\n"))
    tables = [table for names, table in parts if table.startswith("| option |") and command in CODE.findall(names)]
    return [cells[:2] for table in tables for cells in rows(table) if command not in CODE.findall(cells[2])]


def described(command: str) -> list[list[str]]:
    """The rows of all options of a command: those in its own section, and the shared ones, to which it links."""
    own_section = section(PAGE, command)
    assert ("(#options-that-several-commands-share)" in own_section) is bool(shared(command)), command
    return [cells for cells in rows(own_section) if len(cells) == 2] + shared(command)


def options(command: str, command_parser: argparse.ArgumentParser, documentation: list[list[str]]) -> list[Option]:
    cells_by_name = {CODE.findall(cells[0])[0].split()[0]: cells for cells in documentation}
    documented_options = []
    for action in command_parser._actions:
        if not isinstance(action, argparse._HelpAction):
            name = action.option_strings[0] if action.option_strings else str(action.metavar)
            syntax, says = cells_by_name.get(name, ["", ""])[:2]
            documented_options.append(Option(action, command, name, says, syntax))
    return documented_options


def documented() -> list[Option]:
    documented_options = [
        each for name, command_parser in parsers().items() for each in options(name, command_parser, described(name))
    ]
    install = parsers(parsers()["skill"])["install"]
    return documented_options + options("skill install", install, rows(section("docs/agents.md", "The skill")))


OPTIONS = documented()


def test_the_documented_commands_are_exactly_those_that_exist() -> None:
    headings = set(re.findall(r"^## (\S+)$", text(PAGE), re.MULTILINE))
    assert headings == set(parsers())


def test_an_alias_is_documented_with_its_command() -> None:
    (group,) = (each for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    aliases = {
        alias: command_parser.prog.split()[-1]
        for alias, command_parser in group.choices.items()
        if alias not in parsers()
    }
    assert aliases == {"ss": "smart-search"}
    for alias, command in aliases.items():
        assert f"`precedent {alias}`" in section(PAGE, command)


@pytest.mark.parametrize("name", [*parsers(), "skill install"])
def test_every_command_and_option_is_documented(name: str) -> None:
    cells_of = rows(section("docs/agents.md", "The skill")) if name == "skill install" else described(name)
    first = [CODE.findall(cells[0]) for cells in cells_of]
    names = {codes[0].split()[0] for codes in first if name != "skill install" or codes[0].startswith("--")}
    assert names == {each.name for each in OPTIONS if each.command == name}, f"precedent {name}"


def test_options_are_documented_with_their_arguments() -> None:
    for each in OPTIONS:
        (syntax,) = CODE.findall(each.syntax)
        assert (" " in syntax) is (each.takes_value and syntax.startswith("-")), str(each)
        if " " in syntax and each.action.metavar:
            assert syntax.split(" ", 1)[1] == each.action.metavar, str(each)
        takes_several = not each.action.option_strings and each.action.nargs in ("*", "+")
        assert each.syntax.endswith("…") is takes_several, str(each)


def test_documented_defaults_are_those_of_the_code() -> None:
    for each in (option for option in OPTIONS if option.takes_value):
        code = re.search(r"`([^`]+)` \(default\)", each.description)
        plain = re.search(r"\(default `?([^`:),]+(?:,\d{3})*)`?[),]", each.description)
        default = (code or plain or ["", ""])[1].replace(",", "")
        assert default == each.default, f"{each}: {each.description}"


def test_every_choice_of_an_option_is_documented() -> None:
    for each in OPTIONS:
        choices_text = section("docs/agents.md", "The skill") if each.command == "skill install" else each.description
        assert set(each.action.choices or ()) <= set(CODE.findall(choices_text)), str(each)


def test_documented_bounds_are_those_that_are_enforced() -> None:
    checked = 0
    for each in OPTIONS:
        match, read = re.search(r"(\d[\d,]*) to (\d[\d,]*)", each.description), each.action.type
        if match and callable(read):
            checked += 1
            low, high = (int(bound.replace(",", "")) for bound in match.groups())
            assert (read(str(low)), read(str(high))) == (low, high), str(each)
            for beyond in (low - 1, high + 1):
                with pytest.raises(argparse.ArgumentTypeError):
                    read(str(beyond))
    assert checked > 2


def test_numeric_defaults_in_help_texts_are_those_of_the_code() -> None:
    """A help text that states a numeric default states the parser's."""
    checked = 0
    for each in OPTIONS:
        match = re.search(r"default:? (\d[\d,.]*\d|\d)", each.action.help or "")
        if match and each.action.default is not None:
            checked += 1
            assert float(match[1].replace(",", "")) == float(each.action.default), f"{each.command} {each.name}"
    assert checked > 5


# -- what pages show -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_shows_or_names_is_accepted(page: Path) -> None:
    """A command in prose may omit its arguments; its name and options must exist. So must a run or mode."""
    program = parser()
    shown = re.findall(r"^\$ (.+)$", "\n".join(blocks(page, "console")), re.MULTILINE)
    for line in (*shown, *"\n".join(blocks(page, "")).splitlines()):
        for arguments in re.findall(r"(?:^|\| )precedent ([^|\n]*)", line):
            words = shlex.split(re.sub(r" 2?>.*| &&.*", "", arguments))
            assert program.parse_args(words).command in {*parsers(), "ss"}
    assert unknown_names(CODE.findall(page.read_text(encoding="utf-8"))) == []


def test_every_command_run_mode_and_setting_that_the_program_names_exists() -> None:
    plain = re.compile(r"'(precedent [^']+)'|\b(?:run:?|see|with) (precedent [a-z-]+(?: [a-z-]+)?|run: [a-z-]+)")
    codes = []
    for path in sorted((ROOT / "bot").rglob("*.py")):
        for words in texts_of(ast.parse(path.read_text(encoding="utf-8"))):
            codes += [*CODE.findall(words), *("".join(named) for named in plain.findall(words))]
    assert {"run: rebuild", "run: forget", "precedent doctor --offline", "precedent org rebuild"} <= set(codes)
    assert unknown_names(codes) == []


def texts_of(tree: ast.AST) -> Iterator[str]:
    """The texts in code, with … for what is filled in."""
    parts = {each for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.value


def unknown_names(codes: Iterable[str]) -> list[str]:
    """The codes that name a command, an option of one, a run, a mode or a setting that does not exist."""
    return [code for code in codes if not is_known(code)]


def is_known(code: str) -> bool:
    if value := re.fullmatch(r"(run|mode): ([\w-]+)", code):
        return value[2] in {"run": get_args(Run), "mode": MODES}[value[1]]
    paths = {each.path for each in describe()}
    if (setting := re.fullmatch(r"(([a-z_]+)\.[a-z_]+)(?:: .*)?", code)) and setting[2] in paths:
        return setting[1] in paths
    name, *words = code.removeprefix("precedent ").split() if re.match(r"precedent [a-z]", code) else [""]
    if not name:
        return True
    command = parsers().get("smart-search" if name == "ss" else name)
    if command and words and (of_group := parsers(command)):
        command = of_group.get(words[0])
    existing = {option for action in command._actions for option in action.option_strings} if command else set[str]()
    return command is not None and {word for word in words if re.match("--[a-z]", word)} <= existing


def test_make_targets_in_the_pages_and_in_the_makefile_agree() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## \S", text("Makefile"), re.MULTILINE))
    mentioned = {name for page in PAGES for name in re.findall(r"\bmake ([a-z][a-z-]*)\b", code_of(page))}
    assert {"demo", "test"} <= mentioned
    assert mentioned <= targets, f"no target of the Makefile: {sorted(mentioned - targets)}"
    assert targets - mentioned == {"clean"}


# -- exit codes ----------------------------------------------------------------------------------------------------


def codes_in(page: str) -> set[int]:
    """The exit codes that a page documents, in a sentence or in a table."""
    content = re.sub(r"\s+", " ", text(page))
    codes = set(re.findall(r"[Ee]xit codes?(?: is)? (\d+)", content))
    for sentence in re.findall(r"Exit codes: ([^.]+)\.", content):
        codes |= set(re.findall(r"(?:^|[,;] )(\d+) ", sentence))
    for part in re.findall(r"\| exit code \| means \|(.*?)(?:\n\n|\Z)", text(page), re.DOTALL):
        codes |= set(re.findall(r"^\| (\d+) \|", part, re.MULTILINE))
    return {int(code) for code in codes}


def codes_of(tree: ast.AST) -> set[int]:
    """The literal exit codes in code; each has one of these forms."""
    values: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("exit_code", "INTERRUPT_EXIT_CODE"):
            values.append(node.value)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("sys.exit", "os._exit", "SystemExit"):
                values += node.args[:1]
            elif called == "CommandResult":
                values += node.args[1:2]
        elif isinstance(node, ast.FunctionDef) and node.name == "exit_code":
            values += [each.value for each in ast.walk(node) if isinstance(each, ast.Return)]
    inside = (part for value in values if value is not None for part in ast.walk(value))
    return {part.value for part in inside if isinstance(part, ast.Constant) and type(part.value) is int}


def test_every_exit_code_is_documented_and_no_other() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "bot").rglob("*.py"))
    exiting = (source for source in sources if re.search("exit|EXIT|SystemExit|CommandResult", source))
    code = set[int]().union(*(codes_of(ast.parse(source)) for source in exiting))
    assert code == {0, 1, 2, 3, 130}
    assert codes_in(PAGE) == code, "docs/command-line.md"
    assert codes_in("docs/getting-started.md") == {0, 1, 2}
