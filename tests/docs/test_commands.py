"""Every command is documented, and every option in its help text, with its default; no page names any other."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from bot.cli.parser import parser
from bot.server.options import FLAGS, ServerOptions
from bot.settings.schema import MODES, Run, describe
from tests.docs.pages import CODE, PAGES, ROOT, anchors, blocks, code_of, parsers, section, text

PAGE = "docs/command-line.md"
NOTHING = (None, False, 0, [], Path())
"""Defaults that need no mention: nothing happens without the option."""


class Option(NamedTuple):
    """An option or argument of a command."""

    action: argparse.Action
    command: str

    def __str__(self) -> str:
        return f"precedent {self.command} {self.action.option_strings or self.action.metavar}"

    @property
    def help(self) -> str:
        return self.action.help or ""

    @property
    def default(self) -> str:
        """The default of the parser, or of the server's options."""
        default = self.action.default
        if self.command in ("serve", "worker", "deliveries", "repos", "org") and self.action.dest in FLAGS:
            default = getattr(ServerOptions(), self.action.dest)
        return "" if default in NOTHING or default == "" else str(default)


def options(command: str, command_parser: argparse.ArgumentParser) -> Iterator[Option]:
    """The options of a command, and of its own commands."""
    for action in command_parser._actions:
        if not isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)):
            yield Option(action, command)
    for name, inner in parsers(command_parser).items():
        yield from options(f"{command} {name}", inner)


OPTIONS = [each for name, command_parser in parsers().items() for each in options(name, command_parser)]


def command_rows() -> list[str]:
    """The first cells of the table of all commands."""
    return re.findall(r"^\| (\[?`.*?) \| ", text(PAGE).partition("\n## ")[0], re.MULTILINE)


def test_the_documented_commands_are_exactly_those_that_exist() -> None:
    assert sorted(code for cell in command_rows() for code in CODE.findall(cell)) == sorted(parsers())


def test_each_command_is_used_or_explained_where_its_link_leads() -> None:
    linked = [pair for cell in command_rows() for pair in re.findall(r"\[`([\w-]+)`\]\(([^)]+)\)", cell)]
    assert {name for name, _ in linked} == set(parsers()) - {"action"}
    for name, target in linked:
        page, _, fragment = target.partition("#")
        assert not fragment or fragment in anchors(ROOT / "docs" / (page or "command-line.md")), target
        part = part_at(f"docs/{page}" if page else PAGE, fragment)
        assert fragment == name or re.search(rf"precedent {name}\b|`{name}`", part), f"{target} does not name {name}"


def part_at(page: str, fragment: str) -> str:
    """The part of a page below the heading with this fragment, with the parts inside it; all of it without one."""
    pieces = re.split(r"^(#+ .+)$", text(page), flags=re.MULTILINE)
    heads = [re.sub(r"[^\w\- ]", "", head.strip("# ").lower()).replace(" ", "-") for head in pieces[1::2]]
    first = heads.index(fragment) if fragment else 0
    level = len(pieces[1::2][first].split()[0])
    body = ""
    for place, (head, below) in enumerate(zip(pieces[1::2], pieces[2::2], strict=True)):
        if place > first and len(head.split()[0]) <= level:
            break
        body += below if place >= first else ""
    return body


def test_an_alias_is_documented_with_its_command() -> None:
    (group,) = (each for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    aliases = {
        alias: command_parser.prog.split()[-1]
        for alias, command_parser in group.choices.items()
        if alias not in parsers()
    }
    assert aliases == {"ss": "smart-search"}
    for alias, command in aliases.items():
        assert f"`precedent {alias}`" in section("docs/asking.md", command)


def test_every_option_says_what_it_does() -> None:
    assert len(OPTIONS) > 150
    assert [str(each) for each in OPTIONS if not re.search(r"\w{3}", each.help)] == []


def test_help_texts_state_the_defaults_of_the_code() -> None:
    """A help text that states a default states the parser's, and every number that is a default is stated."""
    checked = 0
    for each in OPTIONS:
        match = re.search(r"\(default:? `?(?!here|all|that|the |in |built)([\w.,-]*\w)", each.help)
        if match and each.default:
            checked += 1
            assert match[1].replace(",", "") == each.default, f"{each}: {each.help}"
        elif each.default.isdigit():
            stated = each.default in re.sub(r"(?<=\d),(?=\d)", "", each.help)
            assert stated or each.action.dest in UNSTATED, f"{each}: {each.help}"
    assert checked > 15


UNSTATED = {"chars"}
"""Options whose default is their limit: nothing is cut without them."""


def test_every_choice_of_an_option_is_in_its_help() -> None:
    """Without a metavar of its own, argparse lists the choices."""
    for each in (option for option in OPTIONS if option.action.choices and option.action.metavar):
        assert set(map(str, each.action.choices or ())) <= set(re.findall(r"[\w-]+", each.help)), str(each)


def test_bounds_in_help_texts_are_those_that_are_enforced() -> None:
    checked = 0
    for each in OPTIONS:
        match, read = re.search(r"(\d[\d,]*) to (\d[\d,]*)", each.help), each.action.type
        if match and callable(read):
            checked += 1
            low, high = (int(bound.replace(",", "")) for bound in match.groups())
            assert (read(str(low)), read(str(high))) == (low, high), str(each)
            for beyond in (low - 1, high + 1):
                with pytest.raises(argparse.ArgumentTypeError):
                    read(str(beyond))
    assert checked > 2


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
    assert codes_in("docs/troubleshooting.md") == {0, 1, 2}
