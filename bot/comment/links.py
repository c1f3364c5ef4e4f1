"""Addresses of threads, comments and commits, for links that leave no backlink on the threads they lead to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from bot.domain.hosts import GITHUB
from bot.domain.thread import Kind, ThreadId

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/[A-Za-z0-9_.-]{1,100}", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{7,64}", re.ASCII)
_REDIRECT = "https://redirect.github.com"


@dataclass(frozen=True, slots=True)
class CommentLinks:
    """Builds addresses. Every method returns an absolute URL, or "" if there is nothing to link to.

    ``redirect`` sends links through the host that GitHub provides for links without a backlink
    (https://docs.github.com/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls);
    it exists for github.com only. ``repo`` is ``owner/name``, or empty for threads from elsewhere.
    """

    server_url: str = GITHUB
    repo: str = ""
    redirect: bool = True

    def thread(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """An issue or pull request by number, "" for other threads."""
        base = self._base()
        is_linked = base and kind.is_on_github and isinstance(thread, int)
        return f"{base}/{kind.traits.path}/{thread}" if is_linked else ""

    def comment(self, thread: ThreadId, comment: int | None, kind: Kind = Kind.ISSUE) -> str:
        """The permalink of a comment; "" without a comment id, as for archives."""
        address = self.thread(thread, kind)
        return f"{address}{kind.traits.comment_path}{comment}" if address and comment is not None else ""

    def commit(self, sha: str) -> str:
        """A commit by its full or short SHA in lower case."""
        base = self._base()
        return f"{base}/commit/{sha}" if base and _SHA.fullmatch(sha) else ""

    def release(self, tag: str) -> str:
        base = self._base()
        return f"{base}/releases/tag/{quote(tag, safe='', errors='replace')}" if base and tag else ""

    def page(self, address: str) -> str:
        """The address of a documentation page, "" unless it is plain http(s)."""
        try:
            parts = urlsplit(address)
        except ValueError:
            return ""
        return address if parts.scheme in ("https", "http") and parts.hostname else ""

    def _base(self) -> str:
        if not _REPO.fullmatch(self.repo):
            return ""
        return f"{_REDIRECT if self.redirect else self.server_url.rstrip('/')}/{self.repo}"
