"""What a reply says beside its findings: texts of the catalogue, with values that are harmless as they stand."""

from __future__ import annotations

from bot.comment.defang import inline
from bot.comment.wording import COMMANDS, Words
from bot.reading.intent import Command

WORDS_SHOWN = 80
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
        case "wrong":
            return _wrong(command.about if command else (), words)
        case "nothing":
            return words.say("reply_nothing", words=inline(command.words if command else "", WORDS_SHOWN))
    return words.say(f"reply_{name}")


def _help(words: Words) -> str:
    lines = (f"- {command}: {words.say(f'reply_help_{name}')}" for name, command in COMMANDS.items())
    return "\n".join([words.say("reply_help"), "", *lines])


def _wrong(about: tuple[int, ...], words: Words) -> str:
    *others, last = [str(number) for number in about] or [""]
    if not others:
        return words.say("reply_wrong_one", number=last)
    return words.say("reply_wrong_many", numbers=words.say("and", first=", ".join(others), second=last))
