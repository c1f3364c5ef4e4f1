"""What a checkout tells of what somebody is working on."""

from __future__ import annotations

from typing import NamedTuple


class Checkout(NamedTuple):
    """The signals of a checkout; empty where there is none.

    ``branch`` is empty for a main branch and a detached head. ``messages`` are subjects and bodies of the newest
    commits, newest first, at most five. Paths are relative to the top: ``modified`` in the working tree, ``staged`` in
    the index, ``recent`` those that the newest commits touched. ``is_own`` says whether these commits are the branch's
    own, and not those that it began at. ``project`` is its name and ``language`` what it is made of (``python``), empty
    where nothing tells. ``unused`` says in words which signals could not be had, and why.
    """

    branch: str = ""
    messages: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    is_own: bool = False
    project: str = ""
    language: str = ""
    unused: tuple[str, ...] = ()
