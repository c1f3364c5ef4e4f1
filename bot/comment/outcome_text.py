"""How a thread ended and why it was found, in a few words: what there is evidence for, and no more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.comment.catalogue import PLACEHOLDER, Words
from bot.comment.clean_text import one_line
from bot.comment.defang import code_span, inline, link, prose
from bot.comment.links import CommentLinks
from bot.domain.answer import Match, Mention
from bot.domain.changes import FixInfo
from bot.domain.thread import Kind, OutcomeKind, ThreadId
from bot.reading.endings.quote import says_something

MAX_FILES = 3
MAX_CHANGED = 5
VERSION_CHARS = 60
ELSEWHERE_CHARS = 150

LATEST_NEWS = timedelta(days=365)
"""How long after a fix it is news that no release has it: who waits longer uses a project without releases."""

_NUMBER = re.compile(r"#([1-9][0-9]{0,9})", re.ASCII)
_SHA = re.compile(r"[0-9a-fA-F]{7,64}", re.ASCII)
_IN_A_FOLDER = re.compile(r"(?![/\\~]|\.\.[/\\]|[A-Za-z]:)[^/\\]+[/\\]", re.ASCII)
_ELSEWHERE = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}(?:#[1-9][0-9]{0,9}|@[0-9a-fA-F]{7,64})", re.ASCII)


def ending(hit: Hit, scene: CommentPhrases) -> str:
    """How the thread ended, when and by whom, or since when it is open."""
    if hit.state != "closed":
        return reopening(hit, scene) or _still_open(hit, scene)
    told = _pull(hit, scene) if isinstance(hit, Mention) and hit.kind is Kind.PULL else _how(hit, scene)
    if when := _ended_at(hit):
        told = scene.words.say("dated", what=told, day=scene.day(when))
    return _by_whom(_or_waiting(told, hit, scene), hit, scene)


def reopening(hit: Hit, scene: CommentPhrases) -> str:
    """Since when it is open again, and how it had ended before; empty for what was never closed."""
    earlier = hit.earlier
    if hit.state == "closed" or earlier is None:
        return ""
    ended = replace(hit, state_reason=None, closed_at=earlier.closed_at, outcome=earlier.outcome, fix=None)
    what = scene.words.say("dated", what=_how(ended, scene), day=scene.day(earlier.closed_at))
    return scene.words.say("reopened", what=what, day=scene.day(earlier.reopened_at))


def first_release(mention: Mention, scene: CommentPhrases) -> str:
    """The release that a merged pull request came with."""
    release = _release(mention, scene) if mention.merged_at else ""
    return scene.words.say("released_in", release=release) if release else ""


def version(match: Match, scene: CommentPhrases) -> str:
    """Where the question's version stands to the release with the fix; empty where either is not known."""
    if not (match.asked_on and match.state == "closed" and release_of(match)):
        return ""
    name = "may_be_back" if match.may_be_back else "report_is_on"
    return scene.words.say(name, version=inline(match.asked_on, VERSION_CHARS))


def shown_files(hit: Hit) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the fix changed, at most five files; and up to three in all of those that the thread names.

    Of these a path has to have a folder, as most names alone are those of an example. One that begins at somebody's
    disk says more about it than about the repository, and is not named.
    """
    changed = hit.fix.files[:MAX_CHANGED] if hit.fix else ()
    named = tuple(path for path in hit.files if path not in changed and _IN_A_FOLDER.match(path))
    return changed, named[: max(MAX_FILES - len(changed), 0)]


def ending_quote(hit: Hit, scene: CommentPhrases) -> str:
    """The ending in the words of the thread, with who said them, and when if that was not the day it was closed."""
    outcome, ended_at = hit.outcome, _ended_at(hit)
    shown = scene.quote(_telling(outcome.quote)) if hit.state == "closed" else ""
    is_told = outcome.at and ended_at and scene.day(outcome.at) == scene.day(ended_at)
    address = scene.links.comment(hit.id, outcome.comment_id)
    return (
        f"{shown}{scene.said(outcome.author, outcome.role, None if is_told else outcome.at, address)}" if shown else ""
    )


def _telling(quote: str) -> str:
    """A quote that says more than that the thread is closed or done, else nothing."""
    return quote.strip() if says_something(one_line(quote)) else ""


def release_of(hit: Hit) -> str:
    """The first release with the fix: as the forge knows it, else as the thread's own words have it (raw)."""
    found = hit.fix.release if hit.fix else None
    return (found or hit.outcome.release or "").strip()


def is_news(fix: FixInfo) -> bool:
    """Whether to tell that no release has the fix: it is on the main line, not long since, and somebody looked."""
    if not fix.unreleased or fix.commit is None or fix.release:
        return False
    return fix.merged_at is None or fix.looked_at - fix.merged_at <= LATEST_NEWS


def _still_open(hit: Hit, scene: CommentPhrases) -> str:
    name = "still_open"
    if isinstance(hit, Mention) and hit.kind is Kind.PULL:
        name = "pull_draft" if hit.draft else "pull_open"
    told = scene.words.texts[name]
    return scene.words.say("since", what=told, day=scene.day(hit.created_at)) if hit.created_at else told


def _pull(mention: Mention, scene: CommentPhrases) -> str:
    """A pull request that is not open any more. One that fixed something was merged, whenever that was."""
    if mention.merged_at is None:
        is_unclear = mention.outcome.kind is OutcomeKind.FIXED
        return scene.words.texts["ended_pull_closed" if is_unclear else "ended_pull_dropped"]
    return scene.words.texts["ended_pull_merged"]


def _how(hit: Hit, scene: CommentPhrases) -> str:
    kind, original = hit.outcome.kind, hit.outcome.duplicate_of
    if kind is OutcomeKind.FIXED:
        return _fixed(hit, scene)
    if not kind.is_known:
        return scene.words.closed(hit.state_reason)
    thread = scene.thread(original) if original is not None and original != hit.id else ""
    detail = thread if kind is OutcomeKind.DUPLICATE else _telling(hit.outcome.quote)
    return scene.words.say(kind.traits.words if detail else kind.traits.short_words, thread=thread)


def _fixed(hit: Hit, scene: CommentPhrases) -> str:
    release, change = _release(hit, scene), _change(hit, scene)
    if release:
        return scene.words.say("ended_fixed_in_by" if change else "ended_fixed_in", release=release, change=change)
    return scene.words.say("ended_fixed_by", change=change) if change else scene.words.texts["ended_fixed"]


def _or_waiting(told: str, hit: Hit, scene: CommentPhrases) -> str:
    """The same, and that the fix is in no release yet."""
    is_fixed = hit.outcome.kind is OutcomeKind.FIXED or (isinstance(hit, Mention) and hit.merged_at)
    is_waiting = is_fixed and not release_of(hit) and hit.fix is not None and is_news(hit.fix)
    return scene.words.say("unreleased", what=told) if is_waiting else told


def _release(hit: Hit, scene: CommentPhrases) -> str:
    """The release, linked where the forge knows it; what a thread says of a release may not be the name of a tag."""
    if hit.fix and hit.fix.release:
        return scene.linked(hit.fix.release, scene.links.release(hit.fix.release))
    return inline(release_of(hit), VERSION_CHARS)


def _change(hit: Hit, scene: CommentPhrases) -> str:
    """What fixed it. A number is called a pull request only where the evidence does: it may be an issue as well.

    A change of another repository is named as code, in which GitHub sees no reference and leaves no trace there.
    """
    ref = (hit.fix.ref if hit.fix else hit.outcome.fix) or ""
    if number := _NUMBER.fullmatch(ref):
        is_pull = hit.fix.is_pull if hit.fix else any("pull" in words for words in hit.outcome.evidence)
        thread, kind = int(number[1]), Kind.PULL if is_pull else Kind.ISSUE
        noun = scene.words.say("pull_request" if is_pull else "change", number=number[1])
        return scene.linked(scene.titles.get(thread) or noun, scene.links.thread(thread, kind))
    if _SHA.fullmatch(ref):
        sha = ref.lower()
        return scene.linked(scene.words.say("commit", sha=sha[:7]), scene.links.commit(sha))
    return code_span(ref, ELSEWHERE_CHARS) if _ELSEWHERE.fullmatch(ref) else ""


def _ended_at(hit: Hit) -> datetime | None:
    merged_at = hit.merged_at if isinstance(hit, Mention) else None
    return merged_at or hit.closed_at or hit.outcome.at


def _by_whom(told: str, hit: Hit, scene: CommentPhrases) -> str:
    """Who closed it, where nothing else says why it ended."""
    if isinstance(hit, Match) and hit.closed_by and not hit.outcome.kind.traits.is_explained:
        return scene.words.say("closed_by", what=told, who=inline(hit.closed_by, NAME_CHARS))
    return told


REASON_CHARS = 80
MAX_REASONS = 4
MAX_PARTS = 9

_KNOWN = {
    "same error ": "why_error",
    "same file ": "why_file",
    "both name ": "why_names",
    "both speak of ": "why_words",
}
_TWO_NAMES = re.compile(r"(`[^`]{1,400}`) and (`[^`]{1,400}`)")


def why(reasons: tuple[str, ...], shown: tuple[str, ...], scene: CommentPhrases) -> str:
    """At most four reasons, with commas between them. Files that are ``shown`` beside them are not named again."""
    return ", ".join(filter(None, (_reason(reason, shown, scene) for reason in reasons[:MAX_REASONS])))


def _reason(reason: str, shown: tuple[str, ...], scene: CommentPhrases) -> str:
    if reason.removeprefix("same file ").strip("`") in shown:
        return scene.words.texts["why_file_shown"]
    if reason == "same text":
        return scene.words.texts["why_text"]
    for beginning, name in _KNOWN.items():
        if reason.startswith(beginning):
            return scene.words.say(name, what=_named(reason.removeprefix(beginning), scene))
    return _shown(reason)


def _named(text: str, scene: CommentPhrases) -> str:
    if two := _TWO_NAMES.fullmatch(text):
        return scene.words.say("and", first=_shown(two[1]), second=_shown(two[2]))
    return _shown(text)


def _shown(text: str) -> str:
    """Foreign words in plain text; what stands between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return inline(text, REASON_CHARS)
    shown = ""
    for index, part in enumerate(parts[:MAX_PARTS]):
        if part.strip():
            is_code = index % 2 == 1
            space = " " if shown and (is_code or not part.startswith(",")) else ""
            shown += space + (code_span if is_code else inline)(part.strip(), REASON_CHARS)
    return shown


TITLE_CHARS = 120
QUOTE_CHARS = 280
NAME_CHARS = 40
PATH_CHARS = 80
DAY_CHARS = 200

Hit = Mention | Match


@dataclass(frozen=True, slots=True)
class CommentPhrases:
    """Addresses, the day, titles of other threads (raw), and the words. Every method gives harmless Markdown."""

    links: CommentLinks
    now: datetime
    titles: Mapping[ThreadId, str]
    words: Words

    def day(self, moment: datetime) -> str:
        """A calendar day in UTC."""
        return inline(self.words.day(moment), DAY_CHARS)

    def linked(self, text: str, address: str) -> str:
        """A stranger's title with a link; without one where there is no address."""
        return link(text if inline(text, TITLE_CHARS) else self.words.texts["no_title"], address, TITLE_CHARS)

    def name(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """``issue 12``, without a link."""
        return inline(self.words.numbered(thread, kind), TITLE_CHARS)

    def thread(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """The title, linked; where no link can be had, the title and the id."""
        title = self.titles.get(thread, "").strip()
        address = self.links.thread(thread, kind)
        if not title:
            return self.numbered(thread, kind)
        return self.linked(title, address) if address else f"{self.linked(title, '')} ({self.name(thread, kind)})"

    def numbered(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """``issue 12``, linked."""
        return self.linked(self.words.numbered(thread, kind), self.links.thread(thread, kind))

    def quote(self, text: str) -> str:
        """What somebody wrote, on one line in quotation marks; nothing for nothing.

        Marks like those around it become single ones in it, so that no text ends its own quotation and names a speaker.
        """
        marks = PLACEHOLDER.sub("", self.words.texts["quote"]).split()
        shown = prose(text.translate(dict.fromkeys(map(ord, "".join(marks)), "'")), QUOTE_CHARS)
        return self.words.say("quote", text=shown) if shown else ""

    def said(self, author: str | None, role: str | None, at: datetime | None, address: str) -> str:
        """`` (maintainer, 3 May 2025)``, linked to the comment; nothing where not even the author is known."""
        if author is None and role is None:
            return ""
        who = self.words.speaker(author, role)[:NAME_CHARS]
        return f" ({self.linked(self._signed(who, at), address)})"

    def _signed(self, who: str, at: datetime | None) -> str:
        return self.words.say("who_when", who=who, day=self.words.day(at)) if at else who

    def files(self, paths: tuple[str, ...]) -> str:
        """Paths as code, with commas between them."""
        return ", ".join(filter(None, (code_span(path, PATH_CHARS) for path in paths)))
