"""What is judged of a memory: its branch, its manifest and its index."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from shlex import quote

from bot.doors.checkup.finding import Finding, age, some
from bot.doors.checkup.held import Held
from bot.doors.checkup.place import Place
from bot.memory.draft import other_maker
from bot.memory.formats import FORMAT
from bot.memory.git_errors import AuthFailed, RemoteUnreachable
from bot.memory.store import StoreError
from bot.memory.tip import Tip
from bot.settings import Settings


def branch(
    tip: Tip | StoreError | None, place: Place, settings: Settings, now: datetime, *, token: bool = False
) -> Finding:
    """Whether the branch is there, when it was last written, and how far it has grown. ``token``: git had one."""
    if isinstance(tip, RemoteUnreachable):
        says = f"git cannot reach the server: {tip.cause}"
        return Finding("branch", "error", says, "run it again later", outside=True)
    if isinstance(tip, AuthFailed):
        return Finding("branch", "error", _no_entry(tip, place, token=token), token_remedy(place))
    if isinstance(tip, StoreError):
        return Finding("branch", "error", f"{place.branch} cannot be read: {tip.cause}", tip.remedy or place.by_hand())
    if tip is None:
        says = f"there is no branch {place.branch}: nothing is remembered yet"
        return Finding("branch", "warning", says, place.by_hand())
    written = f"written {age(now - tip.at)} ago" if tip.at else "written nobody knows when"
    many = f"{tip.growth.commits:,} commit{'' if tip.growth.commits == 1 else 's'}"
    grown = f"{many}, {tip.growth.bytes / 1e6:.1f} MB since its last squash"
    says = f"{place.branch}, {written}; {grown}"
    memory = settings.memory
    if tip.growth.commits > memory.squash_commits or tip.growth.bytes > memory.squash_megabytes * 1_000_000:
        remedy = f"let the workflow's token force a push to {place.branch}: {place.page('settings/rules')}"
        return Finding("branch", "note", f"{says}: it grows, as the server forbids to squash it", remedy)
    return Finding("branch", "ok", says)


def _no_entry(refusal: AuthFailed, place: Place, *, token: bool) -> str:
    if "could not read Username" in str(refusal):  # git was about to ask for one, as there is no token
        if token:
            return f"git may not read {place.repository} with this token: the server does not know it"
        return f"git may not read {place.repository} without a token: it is private, or does not exist"
    return f"git may not read {place.repository}: {refusal.cause}"


def token_remedy(place: Place) -> str:
    """How to give a token that may read the repository."""
    where = f"{place.server}/settings/tokens"
    return f"set PRECEDENT_TOKEN to a token that may read {place.repository}; one is made at {where}"


def manifest(held: Held, place: Place) -> Iterator[Finding]:
    """Whether the manifest can be read, and is of a format that this version reads."""
    if held.fault == "missing" and not held.has_records:
        yield Finding("manifest", "warning", "there is none, and no record: nothing is remembered yet", _fill(place))
    elif held.fault:
        yield Finding("manifest", "error", f"manifest.json is {held.fault}", place.by_hand())
    elif held.foreign:
        yield Finding("format", "error", held.foreign.cause, held.foreign.remedy)
    else:
        yield Finding("manifest", "ok", f"manifest.json is whole, format {FORMAT}")


def _fill(place: Place) -> str:
    is_made_here = place.store and not place.is_checkout
    return f"`precedent import FILE --store {quote(place.store)}`" if is_made_here else place.by_hand()


def index(held: Held, place: Place) -> Iterator[Finding]:
    """Whether the index is what the manifest says, and was made by this version and its analyser."""
    if held.fault or held.foreign:
        return
    if held.manifest.index and (maker := other_maker(held.manifest)):
        yield Finding("index", "note", f"made by {maker}; it is made anew when used", place.by_hand())
    elif held.index:
        yield Finding("index", "warning", f"damaged: {some(held.index)}; it is made anew when used", place.by_hand())
    elif not held.manifest.index and held.manifest.threads:
        yield Finding("index", "warning", "there is none; it is made anew when used", place.by_hand())
    else:
        yield Finding("index", "ok", f"{len(held.manifest.index):,} files, all as the manifest says")
