"""A runner's rules: which printed lines it takes for commands, and what it reads from an outputs file."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

LINE_ENDS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
PARTS = (
    *LINE_ENDS, "::", ":", "##[", "#", "##", "[", "]", "%0A", "%0D", "%25", "%", " ", "\t", "\x00", "\ufeff", "\u200b",
    "\u3000", "\x1b[2K", "\ud800", "\u202e", "error", "add-mask", "stop-commands", "set-env name=PATH", "add-path",
    "add-matcher", "set-output name=spoke", "save-state", "debug", "group", "endgroup", "x", "EVIL=1", "<<", "EOF",
    "::error::x", "::add-mask::x", "##[add-matcher]x", "::set-env name=A::b", "\n::stop-commands::t\n", "precedent_",
)  # fmt: skip


def hostile_texts(count: int, seed: int = 20261122) -> Iterator[str]:
    """Titles, labels, names, paths and messages as an attacker would write them."""
    draw = random.Random(seed)
    yield from PARTS
    for _ in range(count):
        yield "".join(draw.choices(PARTS, k=draw.randint(1, 12)))


def commands(output: str) -> list[str]:
    """The names of the commands that a runner finds in the output of a program.

    Its rules: a line whose first characters after white space are ``::`` and which has a second ``::``, or one that has
    ``##[`` anywhere and a ``]`` after it. Lines end at CR and LF; here at every character that any reader takes for a
    line end. https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
    """
    names = []
    for line in re.split("|".join(map(re.escape, sorted(LINE_ENDS, key=len, reverse=True))), output):
        stripped = line.lstrip().lstrip("\ufeff\u200b\x00").lstrip()
        if stripped.startswith("::") and "::" in stripped[2:]:
            names.append(stripped[2:].partition("::")[0].split(" ")[0].lower())
        at = line.find("##[")
        if at >= 0 and "]" in line[at:]:
            names.append(line[at + 3 :].partition("]")[0].split(" ")[0].lower())
    return names


def read_outputs_file(text: str) -> dict[str, str]:
    """The names and values that a runner reads from an outputs file."""
    values: dict[str, str] = {}
    lines = iter(re.split(r"\r\n|\r|\n", text))
    for line in lines:
        equals, heredoc = line.find("="), line.find("<<")
        if heredoc >= 0 and (equals < 0 or heredoc < equals):
            name, _, fence = line.partition("<<")
            value_lines = []
            for part in lines:
                if part == fence:
                    break
                value_lines.append(part)
            else:
                raise AssertionError(f"no end of {name}")
            values[name] = "\n".join(value_lines)
        elif equals >= 0:
            values[line[:equals]] = line[equals + 1 :]
        else:
            assert line == ""
    return values
