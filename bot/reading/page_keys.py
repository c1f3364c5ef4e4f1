"""The ids of pages (``docs:docs/setup.md``, ``wiki:Home``, ``releases:v2.3.0``), and the addresses they stand for."""

from __future__ import annotations

from urllib.parse import quote

from bot.model import ThreadId

DOCS, WIKI, RELEASES = SOURCES = ("docs", "wiki", "releases")
"""Where pages come from; each is the first part of the ids of its pages."""


LONGEST = 200
"""Characters of an id that a record keeps."""


def page_key(source: str, name: str) -> str | None:
    """The id of a page: a file's path, a wiki page's name or a release's tag. None where no id could hold the name."""
    key = f"{source}:{name}"
    return key if name and len(key) <= LONGEST and name.isprintable() else None


def source_of(key: ThreadId) -> str | None:
    """Where the page of this id comes from, None when it is not the id of a page."""
    source, colon, name = key.partition(":") if isinstance(key, str) else ("", "", "")
    return source if colon and name and source in SOURCES else None


def page_url(key: ThreadId, server: str, repo: str | None, anchor: str = "") -> str:
    """The address of a page, or of its section, on a server such as ``https://github.com``; empty without ``repo``.

    The sections of releases have no address of their own.
    """
    source = source_of(key)
    if source is None or not repo:
        return ""
    name = quote(str(key).partition(":")[2], safe="/" if source == DOCS else "")
    place = {DOCS: "blob/HEAD", WIKI: "wiki", RELEASES: "releases/tag"}[source]
    fragment = f"#{quote(anchor, safe='')}" if anchor and source != RELEASES else ""
    return f"{server}/{repo}/{place}/{name}{fragment}"
