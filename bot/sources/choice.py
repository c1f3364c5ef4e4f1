"""Which sources of pages the settings name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from bot.reading.page_keys import DOCS, RELEASES, WIKI
from bot.settings import Pages
from bot.sources.branch_pages import Branch, BranchPages
from bot.sources.pages import NoPages, PageSource
from bot.sources.release_pages import Api, ReleasePages

WIKI_FILES = ("**/*",)


def page_sources(
    wanted: Pages, repo: str, api: Api, open_branch: Callable[[str], AbstractContextManager[Branch]]
) -> tuple[PageSource, ...]:
    """The documentation, the wiki and the releases of ``repo`` (``owner/name``).

    ``open_branch`` opens the default branch of the repository (``docs``) or of its wiki (``wiki``).
    """
    sources: list[PageSource] = [ReleasePages(api, repo, RELEASES)]
    for name, patterns in ((WIKI, WIKI_FILES if wanted.wiki else ()), (DOCS, wanted.docs)):
        branch = BranchPages(name, patterns, lambda name=name: open_branch(name))  # type: ignore[misc]
        sources.insert(0, branch if patterns else NoPages(name))
    return tuple(sources)
