"""What failed, in the words of the Action without its remedy: a run has another one than who reads this."""

from __future__ import annotations

import re

from bot.errors import PrecedentError
from bot.memory.git_errors import GitError

_OF_A_RUN = re.compile(r"(?:: |, )(?:the next run (?:catches up|goes on from here)|give the job '[^']{1,100}')\Z")


def plain(error: PrecedentError) -> str:
    """What went wrong, without what a run does about it."""
    told = str(error)
    if isinstance(error, GitError) and error.remedy:
        told = told.removesuffix(f"; {error.remedy}")
    return _OF_A_RUN.sub("", told)
