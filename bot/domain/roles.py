"""The values of GitHub's ``author_association`` and the plain words for them.

Light to import, as a search from a shell begins with it.
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


def role_word(role: str | None) -> str:
    """``maintainer``, ``contributor``, or ``participant`` for any other role."""
    return ROLE_WORDS.get(role or "", PARTICIPANT)
