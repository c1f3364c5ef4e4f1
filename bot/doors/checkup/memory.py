"""What is judged of a memory: its branch, its manifest, and whether all that it keeps agrees."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from shlex import quote

from bot.doors.checkup.finding import Finding, age, moment, some
from bot.doors.checkup.held import Held
from bot.doors.checkup.place import Place
from bot.doors.checkup.runs import Runs, cause
from bot.learning import CALM_GROWTH, LEAST_THREADS
from bot.memory.draft import other_maker
from bot.memory.formats import FORMAT
from bot.memory.git_errors import AuthFailed, RemoteUnreachable
from bot.memory.learned import RANKING
from bot.memory.store import StoreError
from bot.memory.tip import Tip
from bot.reading.words import ANALYSER_VERSION
from bot.settings import Settings

STALE = timedelta(days=2)
"""A cursor older than that, with changes since, means that no run of an event or of the schedule came to its end."""

GRACE = timedelta(hours=1)
"""A change as young as this may be read by a run that waits for its turn."""


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
        return Finding("branch", "error", f"{place.branch} cannot be read: {tip.cause}", place.by_hand("rebuild"))
    if tip is None:
        says = f"there is no branch {place.branch}: nothing is remembered yet"
        return Finding("branch", "warning", says, place.by_hand("rebuild"))
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
    if held.fault == "missing" and not held.records:
        yield Finding("manifest", "warning", "there is none, and no record: nothing is remembered yet", _fill(place))
    elif held.fault:
        yield Finding("manifest", "error", f"manifest.json is {held.fault}", place.by_hand("rebuild"))
    elif held.foreign:
        yield Finding("format", "error", held.foreign.cause, held.foreign.remedy)
    else:
        yield Finding("manifest", "ok", f"manifest.json is whole, format {FORMAT}")


def is_readable(held: Held) -> bool:
    """Whether there is a manifest that the other checks can go by."""
    return not held.fault and not held.foreign


def _fill(place: Place) -> str:
    return f"`precedent import FILE --store {quote(place.store)}`" if _is_local(place) else place.by_hand("rebuild")


def _is_local(place: Place) -> bool:
    """Whether no workflow writes the store: it was made of archives."""
    return bool(place.store) and not place.is_checkout


def counts(held: Held, place: Place) -> Finding:
    """Whether there are as many records as the manifest says."""
    told = held.manifest.threads + held.manifest.tombstones
    if told != held.records:
        says = f"the manifest tells of {told:,} threads, and there are records of {held.records:,}"
        return Finding("counts", "warning", says, place.by_hand("rebuild"))
    return Finding("counts", "ok", f"{held.manifest.threads:,} threads, and {held.manifest.tombstones:,} that are gone")


def reading(held: Held, place: Place) -> Iterator[Finding]:
    """A reading of the whole history that is not at its end."""
    if going := held.manifest.reading:
        upto = f", and came as far as {moment(going.upto)}" if going.upto else ""
        says = f"the history is being read since {moment(going.began)}{upto}: what is not read yet cannot be found"
        yield Finding(
            "history", "note", says, f"each run goes on from there; to read on at once, {place.by_hand('rebuild')}"
        )


def cursor(held: Held, changed: tuple[datetime, ...] | None, runs: Runs, place: Place, now: datetime) -> Finding:
    """Whether what changes is remembered. ``changed``: when threads changed since, None where nobody looked."""
    upto = held.manifest.cursor
    if upto is None:
        if _is_local(place):
            return Finding("cursor", "ok", "there is none: the store was made of archives")
        return Finding("cursor", "warning", "no run has come to its end yet", place.by_hand("catch-up"))
    says = f"all is remembered up to {moment(upto)}"
    if held.manifest.reading or changed is None:
        return Finding("cursor", "ok", says)
    missed = [at for at in changed if upto < at < now - GRACE]
    if now - upto > STALE and missed:
        many = f"{len(missed):,} threads" if len(missed) > 1 else "a thread"
        why, remedy = cause(runs, min(missed), place)
        return Finding("cursor", "warning", f"{says}, {age(now - upto)} ago, and {many} changed since: {why}", remedy)
    return Finding("cursor", "ok", f"{says}; {'younger changes wait' if changed else 'nothing changed since'}")


def promises(held: Held, place: Place, settings: Settings, now: datetime) -> Finding:
    """Comments that were promised and not seen yet."""
    waiting = len(held.manifest.pending)
    if not waiting:
        return Finding("promises", "ok", "no comment waits")
    oldest = min((said.at for said in held.promised), default=None)
    says = f"{waiting:,} promised comment{'s wait' if waiting > 1 else ' waits'}"
    says += f", the oldest for {age(now - oldest)}" if oldest else ""
    if oldest and now - oldest > timedelta(hours=settings.comment.answer_within_hours):
        return Finding("promises", "warning", f"{says}: too old to be given", place.by_hand("catch-up"))
    return Finding("promises", "note", says, f"the next run gives what is due; {place.by_hand('catch-up')}")


def index(held: Held, place: Place) -> Iterator[Finding]:
    """Whether the index is what the manifest says, and was made by this version and its analyser."""
    if held.manifest.index and (maker := other_maker(held.manifest)):
        yield Finding("index", "note", f"made by {maker}; it is made anew when used", place.by_hand("rebuild"))
    elif held.index:
        yield Finding(
            "index", "warning", f"damaged: {some(held.index)}; it is made anew when used", place.by_hand("rebuild")
        )
    elif not held.manifest.index and held.manifest.threads:
        yield Finding("index", "warning", "there is none; it is made anew when used", place.by_hand("rebuild"))
    else:
        yield Finding("index", "ok", f"{len(held.manifest.index):,} files, all as the manifest says")
    if held.manifest.index and held.manifest.analyser != ANALYSER_VERSION:
        says = (
            f"made by analyser {held.manifest.analyser!r:.40}, this version has {ANALYSER_VERSION!r}: it is made anew"
        )
        yield Finding("analyser", "note", says, "use the same version here and in the workflow")
    elif held.manifest.index:
        yield Finding("analyser", "ok", f"{ANALYSER_VERSION}, that of this version")


def records(held: Held, place: Place) -> Iterator[Finding]:
    """Whether the records that were looked at can be read, and whether their digests were made of them."""
    found = held.sampled
    looked = f"all {found.read:,}" if found.read >= held.records else f"{found.read:,} of {held.records:,}"
    if found.damaged:
        yield Finding("records", "error", f"cannot be read: {some(found.damaged)}", place.by_hand("rebuild"))
    else:
        whole = "" if found.read >= held.records else "every one is read with `precedent doctor --thorough`"
        yield Finding("records", "ok", f"{looked} were read and are whole", whole)
    if found.leftover:
        says = f"threads that are gone still have theirs: {some(found.leftover)}"
        yield Finding("digests", "error", says, place.by_hand("rebuild"))
    if found.undigested:
        says = f"missing, or not of this revision: {some(found.undigested)}"
        yield Finding("digests", "warning", says, place.by_hand("rebuild"))
    if not found.leftover and not found.undigested:
        yield Finding("digests", "ok", f"{looked} agree with their records")


def learned(held: Held, place: Place) -> Iterator[Finding]:
    """Whether what was learned is whole, from how much it was learned, and whether it is time again."""
    if held.learned:
        says = f"damaged or missing: {some(held.learned)}; the search goes without"
        yield Finding("learned", "warning", says, place.by_hand("rebuild"))
    else:
        yield _taught(held, place)


def _taught(held: Held, place: Place) -> Finding:
    size, known = held.manifest.threads, held.manifest.learned_from
    remedy = f"`precedent learn --store {quote(place.store)}`" if _is_local(place) else place.by_hand("rebuild")
    if size < LEAST_THREADS and not known:
        return Finding("learned", "ok", f"nothing yet from its {size:,} threads: it begins with {LEAST_THREADS}")
    if not known and RANKING in held.manifest.model:
        return Finding("learned", "ok", "the cut was set from its own history")
    if not known:
        return Finding("learned", "note", f"nothing yet from its {size:,} threads", remedy)
    if size >= CALM_GROWTH * known:
        does_it = "" if _is_local(place) else ", and the next scheduled run does it"
        return Finding("learned", "note", f"from {known:,} threads of {size:,}: it is time again{does_it}", remedy)
    return Finding("learned", "ok", f"from {known:,} threads of {size:,}")
