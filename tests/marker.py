"""Finds the bot's marker in a comment."""

from bot.comment.marker import marker
from bot.domain.post import COMMENT, reply_slot


def find_marker(text: str, instance: str = "action", reply_to: int | None = None) -> bool:
    """Whether the first line of a comment is our marker. Anyone can write it: check the comment's author too."""
    first, _, _ = text.lstrip("\ufeff \t\r\n").partition("\n")
    return first.rstrip() == marker(instance, COMMENT if reply_to is None else reply_slot(reply_to))
