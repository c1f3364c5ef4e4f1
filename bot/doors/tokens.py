"""The token of who works at a terminal: from the environment, as every process can read the arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from bot.errors import UserError

TOKENS = ("PRECEDENT_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
"""Where a token is looked for: one that is meant for this program, then in the order of GitHub's own command line
(``gh help environment``)."""


class Token(NamedTuple):
    """A token and the variable that held it, both empty where there is none."""

    variable: str = ""
    text: str = ""


def token_of(environ: Mapping[str, str]) -> Token:
    """The first one that there is. UserError where that can be no token."""
    name = next((name for name in TOKENS if environ.get(name, "").strip()), "")
    text = environ.get(name, "").strip()
    if not re.fullmatch(r"[\x21-\x7e]*", text):
        raise UserError(f"{name} holds characters that no token has: copy it again")
    return Token(name, text)
