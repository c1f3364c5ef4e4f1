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


def role_word(role: str | None) -> str:
    """``maintainer``, ``contributor``, or ``participant`` for any other role."""
    return ROLE_WORDS.get(role or "", PARTICIPANT)
