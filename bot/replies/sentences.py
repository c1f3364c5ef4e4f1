"""What a reply says beside its findings: texts of the catalogue, with values that are harmless as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from bot.comment.defang import inline
from bot.comment.wording import COMMANDS, Words
from bot.reading.intent import NAMES, Command

WORDS_SHOWN = 80
LONGEST_NAME = 20
"""Characters of what was typed in which the name of a command is looked for."""

QUESTION = "What did we decide about …?"
"""The question that a reply shows how to ask."""


def sentence(name: str, command: Command | None, words: Words, per_hour: int) -> str:
    """The text ``reply_NAME`` as Markdown; for ``help`` a list of several lines.

    ``per_hour`` is how often an account may ask. Raises KeyError for a name that the catalogue does not have.
    """
    match name:
        case "help":
            return _help(words)
        case "ask":
            return words.say("reply_ask", question=f"`{QUESTION}`")
        case "limited":
            return words.count("reply_limited", per_hour)
        case "off":
            return words.say("reply_off", command=COMMANDS["on"])
        case "unclear":
            return " ".join([words.say("reply_unclear"), *_meant(command, words)])
        case "wrong":
            return _wrong(command.about if command else (), words)
        case "nothing":
            return words.say("reply_nothing", words=inline(command.words if command else "", WORDS_SHOWN))
    return words.say(f"reply_{name}")


def _help(words: Words) -> str:
    lines = (f"- {command}: {words.say(f'reply_help_{name}')}" for name, command in COMMANDS.items())
    return "\n".join([words.say("reply_help"), "", *lines])


def _meant(command: Command | None, words: Words) -> Iterator[str]:
    """Which command was nearly given, or given without what it needs; none where none is near."""
    typed = command.line.split()[1:2] if command else []
    for name in get_close_matches("".join(typed).lower()[:LONGEST_NAME], NAMES, n=1):
        yield words.say("reply_meant", command=COMMANDS.get(name, f"`/precedent {name}`"))


def _wrong(about: tuple[int, ...], words: Words) -> str:
    *others, last = [str(number) for number in about] or [""]
    if not others:
        return words.say("reply_wrong_one", number=last)
    return words.say("reply_wrong_many", numbers=words.say("and", first=", ".join(others), second=last))
