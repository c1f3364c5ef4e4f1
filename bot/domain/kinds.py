"""The kinds of threads and the kinds of endings, each with everything that differs from kind to kind.

To add a kind, add a member and its row in the table below it: traits have no defaults, so none can be forgotten.
Quick to import, as every search from a shell starts with this module.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class KindTraits(NamedTuple):
    """How one kind of thread differs from the others."""

    noun: str
    """Its name in English."""

    words: str
    """The text of ``templates/words.yml`` that names one by its number."""

    path: str
    """The folder of its address on GitHub; "" for a kind that has no number there."""

    comment_path: str
    """What comes between the address of a thread and the id of its comment in the address of the comment."""

    qualifiers: tuple[str, ...]
    """The words for it after ``is:`` in a search."""

    is_conversation: bool
    """Whether people talk in it, so that memory learns from it."""

    is_suggested: bool
    """Whether threads of this kind are shown as similar."""

    is_answered: bool
    """Whether threads of this kind get answers without a setting."""

    is_listed: bool
    """Whether GitHub's list of issues includes it, so that one missing there may be gone."""

    is_change: bool
    """Whether it proposes a change to files, and so can be merged, be a draft, and fix other threads."""

    is_local: bool
    """Whether it is a conversation of one person with an agent on their machine."""


class Kind(StrEnum):
    """What sort of conversation a thread is. The values are stored; an index also stores their order: append only."""

    ISSUE = "issue"
    PULL = "pull"
    PAGE = "page"
    SESSION = "session"
    DISCUSSION = "discussion"

    @property
    def traits(self) -> KindTraits:
        return _KINDS[self]

    @property
    def is_on_github(self) -> bool:
        """Whether GitHub numbers threads of this kind, people can comment on them, and they are open or closed."""
        return bool(self.traits.path)


_ISSUE_COMMENT = "#issuecomment-"
_KINDS = {
    Kind.ISSUE: KindTraits(
        noun="issue", words="issue", path="issues", comment_path=_ISSUE_COMMENT, qualifiers=("issue",),
        is_conversation=True, is_suggested=True, is_answered=True, is_listed=True, is_change=False,
        is_local=False,
    ),
    Kind.PULL: KindTraits(
        noun="pull request", words="pull_request", path="pull", comment_path=_ISSUE_COMMENT,
        qualifiers=("pr", "pull"),
        is_conversation=True, is_suggested=False, is_answered=False, is_listed=False, is_change=True,
        is_local=False,
    ),
    Kind.PAGE: KindTraits(
        noun="page", words="issue", path="", comment_path=_ISSUE_COMMENT, qualifiers=("page",),
        is_conversation=False, is_suggested=False, is_answered=False, is_listed=False, is_change=False,
        is_local=False,
    ),
    Kind.SESSION: KindTraits(
        noun="session", words="issue", path="", comment_path=_ISSUE_COMMENT, qualifiers=("session",),
        is_conversation=True, is_suggested=False, is_answered=False, is_listed=False, is_change=False,
        is_local=True,
    ),
    Kind.DISCUSSION: KindTraits(
        noun="discussion", words="discussion", path="discussions",
        comment_path="#discussioncomment-", qualifiers=("discussion",),
        is_conversation=True, is_suggested=True, is_answered=False, is_listed=False, is_change=False,
        is_local=False,
    ),
}  # fmt: skip


class OutcomeTraits(NamedTuple):
    """How one kind of ending differs from the others."""

    words: str
    """The text of ``templates/words.yml`` that states it in full."""

    short_words: str
    """The text used when no detail is known, such as the original of a duplicate or a sentence that declines."""

    is_explained: bool
    """Whether the kind says why the thread ended; otherwise a comment names whoever closed it."""

    may_come_back: bool
    """Whether a new report of the problem after the closing refutes it."""


class OutcomeKind(StrEnum):
    """How a closed thread ended; ``UNKNOWN`` when there is no evidence. The values are stored."""

    FIXED = "fixed"
    ANSWERED = "answered"
    WORKAROUND = "workaround"
    NOT_PLANNED = "not planned"
    DUPLICATE = "duplicate"
    STALE = "stale"
    UNKNOWN = "unknown"

    @property
    def traits(self) -> OutcomeTraits:
        return _OUTCOMES[self]

    @property
    def is_known(self) -> bool:
        return self is not OutcomeKind.UNKNOWN


_OUTCOMES = {
    OutcomeKind.FIXED: OutcomeTraits("ended_fixed", "ended_fixed", is_explained=True, may_come_back=True),
    OutcomeKind.ANSWERED: OutcomeTraits("ended_answered", "ended_answered", is_explained=True, may_come_back=True),
    OutcomeKind.WORKAROUND: OutcomeTraits("ended_workaround", "ended_workaround", True, may_come_back=True),
    OutcomeKind.NOT_PLANNED: OutcomeTraits("ended_declined", "ended_not_planned", True, may_come_back=False),
    OutcomeKind.DUPLICATE: OutcomeTraits("ended_duplicate", "ended_duplicate_unknown", True, may_come_back=False),
    OutcomeKind.STALE: OutcomeTraits("ended_stale", "ended_stale", is_explained=False, may_come_back=True),
    OutcomeKind.UNKNOWN: OutcomeTraits("ended_closed", "ended_closed", is_explained=False, may_come_back=False),
}
