"""The values of GitHub's ``author_association`` and the plain words for them.

Quick to import, as every search from a shell starts with this module.
"""

from __future__ import annotations

MAINTAINER, CONTRIBUTOR, PARTICIPANT = "maintainer", "contributor", "participant"

ROLE_WORDS = {
    "OWNER": MAINTAINER,
    "MEMBER": MAINTAINER,
    "COLLABORATOR": MAINTAINER,
    "CONTRIBUTOR": CONTRIBUTOR,
}
"""Role → its word; everybody else is a participant."""

MERGE_BOTS = frozenset({"bors", "bors[bot]", "github-merge-queue[bot]", "mergify[bot]"})
"""The accounts of well-known programs that close issues by merging their fixes. A name like one of these is nobody."""

RELEASE_BOTS = frozenset({"semantic-release-bot"})
"""The accounts of well-known programs that say in a comment which release has a fix."""


OTHER_ROLES = frozenset({"FIRST_TIME_CONTRIBUTOR", "FIRST_TIMER", "MANNEQUIN", "NONE"})


def known_role(value: object) -> str:
    """The value if it is one of GitHub's, else "": the role is not known."""
    return value if isinstance(value, str) and (value in ROLE_WORDS or value in OTHER_ROLES) else ""


def role_word(role: str | None) -> str:
    """``maintainer``, ``contributor``, or ``participant`` for any other role."""
    return ROLE_WORDS.get(role or "", PARTICIPANT)
