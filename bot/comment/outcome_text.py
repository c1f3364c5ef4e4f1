"""Puts into a few words how a thread ended and why it was found, claiming no more than the evidence shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.comment.catalogue import PLACEHOLDER, Words
from bot.comment.clean_text import one_line
from bot.comment.defang import code_span, inline, link, prose
from bot.comment.links import CommentLinks
from bot.domain.answer import Match, Mention
from bot.domain.changes import FixInfo
from bot.domain.post import OpenPull
from bot.domain.reason import Reason, is_near
from bot.domain.thread import GHOST, Kind, Outcome, OutcomeKind, ThreadId
from bot.reading.endings.outcome import CONTINUATION
from bot.reading.endings.quote import is_unanswered, says_something
from bot.reading.lookalikes import without_quotation_marks

MAX_FILES = 3
MAX_CHANGED_FILES = 5
VERSION_CHARS = 60
EXTERNAL_REF_CHARS = 150

MAX_UNRELEASED_AGE = timedelta(days=365)
"""How long a fix is shown as unreleased. After that the project probably makes no releases."""

_NUMBER = re.compile(r"#([1-9][0-9]{0,9})", re.ASCII)
_SHA = re.compile(r"[0-9a-fA-F]{7,64}", re.ASCII)
_FOLDER_PREFIX = re.compile(r"(?![/\\~]|\.\.[/\\]|[A-Za-z]:)[^/\\]+[/\\]", re.ASCII)
_EXTERNAL_REF = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}(?:#[1-9][0-9]{0,9}|@[0-9a-fA-F]{7,64})", re.ASCII)


def ending(hit: Hit, phrases: CommentPhrases) -> str:
    """How the thread ended, when and by whom, or since when it has been open.

    Next to an issue that is only somewhat like the new one, a bold "declined" would read as an answer to the new one.
    """
    if isinstance(hit, Match) and not is_near(hit.similarity, hit.why):
        phrases = replace(phrases, words=phrases.words.without_bold())
    if hit.state != "closed":
        return reopening(hit, phrases) or _still_open(hit, phrases)
    what = (
        _pull_ending(hit, phrases)
        if isinstance(hit, Mention) and hit.kind.traits.is_change
        else _closing_text(hit, phrases)
    )
    if when := _ended_at(hit):
        what = phrases.words.say("dated", what=what, day=phrases.day(when))
    if is_waiting(hit):
        what = phrases.words.say("unreleased", what=what)
    if isinstance(hit, Match) and hit.closed_by not in (None, GHOST) and not hit.outcome.kind.traits.is_explained:
        return phrases.words.say("closed_by", what=what, who=inline(hit.closed_by, NAME_CHARS))
    return what


def closing_day(match: Match, phrases: CommentPhrases) -> str:
    """That it is closed, and since when, without how it ended."""
    what, when = phrases.words.texts["ended_closed"], _ended_at(match)
    return phrases.words.say("dated", what=what, day=phrases.day(when)) if when else what


def reopening(hit: Hit, phrases: CommentPhrases) -> str:
    """Since when it has been open again, and how it had ended before; "" if it was never closed."""
    earlier = hit.earlier
    if hit.state == "closed" or earlier is None:
        return ""
    ended = replace(hit, state_reason=None, closed_at=earlier.closed_at, outcome=earlier.outcome, fix=None)
    what = phrases.words.say("dated", what=_closing_text(ended, phrases), day=phrases.day(earlier.closed_at))
    return phrases.words.say("reopened", what=what, day=phrases.day(earlier.reopened_at))


def first_release(mention: Mention, phrases: CommentPhrases) -> str:
    """The first release with a merged pull request."""
    release = linked_release(mention, phrases) if mention.merged_at else ""
    return phrases.words.say("released_in", release=release) if release else ""


def open_pull(hit: Hit, phrases: CommentPhrases) -> str:
    """The open pull request that may end the issue, and the day as of which that is known; "" without one."""
    pull = phrases.pulls.get(hit.id)
    if pull is None:
        return ""
    file = phrases.files(pull.files[:1])
    name = ("open_pull_changes" if file else "open_pull") if pull.closes else "open_pull_file"
    name = "open_pull_draft" if pull.closes and pull.draft else name
    number = phrases.words.thread_label(pull.id, Kind.PULL)
    linked = phrases.link_title(pull.title.strip() or number, phrases.links.thread(pull.id, Kind.PULL))
    what = phrases.words.say(name, file=file, pull=linked)
    return phrases.words.say("as_of", what=what, day=phrases.day(pull.seen_at)) if pull.seen_at else what


def told_version(match: Match) -> str:
    """The question's version (raw) if it can be compared to the release with the fix, else ""."""
    return match.asked_on if match.state == "closed" and release_of(match) else ""


def shown_files(hit: Hit) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """At most five files that the fix changed, topped up to three with files that the thread names.

    A named path must have a folder, as most bare names are examples, and must not start at the root of somebody's disk.
    """
    changed = hit.fix.files[:MAX_CHANGED_FILES] if hit.fix else ()
    named = tuple(path for path in hit.files if path not in changed and _FOLDER_PREFIX.match(path))
    return changed, named[: max(MAX_FILES - len(changed), 0)]


def ending_quote(hit: Hit, phrases: CommentPhrases) -> str:
    """The ending in the thread's own words, with the speaker, and the day if that is not the day of the closing."""
    outcome, ended_at = hit.outcome, _ended_at(hit)
    told = (_fixing_change(hit), f"#{outcome.duplicate_of or ''}")
    # A thread that was closed because nobody answered says just that.
    is_told = hit.state != "closed" or is_unanswered(outcome)
    shown = "" if is_told else phrases.quote(_informative_quote(outcome.quote, told))
    is_same_day = outcome.at and ended_at and phrases.day(outcome.at) == phrases.day(ended_at)
    address = phrases.links.comment(hit.id, outcome.comment_id, hit.kind)
    return (
        f"{shown}{phrases.attribution(outcome.author, outcome.role, None if is_same_day else outcome.at, address)}"
        if shown
        else ""
    )


def _informative_quote(quote: str, told: tuple[str, ...] = ()) -> str:
    """The quote, "" if it says only that the thread is closed or done, by what is ``told`` next to it."""
    return quote.strip() if says_something(one_line(quote), told) else ""


def release_of(hit: Hit) -> str:
    """The first release with the fix, according to the forge, else to the thread itself (raw)."""
    tag = hit.fix.release if hit.fix else None
    return (tag or hit.outcome.release or "").strip()


def is_news(fix: FixInfo) -> bool:
    """Whether to show that no release has the fix: it was merged recently, and a release was looked for."""
    if not fix.unreleased or fix.commit is None or fix.release:
        return False
    return fix.merged_at is None or fix.looked_at - fix.merged_at <= MAX_UNRELEASED_AGE


def _still_open(hit: Hit, phrases: CommentPhrases) -> str:
    is_draft = isinstance(hit, Mention) and hit.draft
    what = phrases.words.texts["draft_open" if is_draft else "still_open"]
    return phrases.words.say("since", what=what, day=phrases.day(hit.created_at)) if hit.created_at else what


def _pull_ending(mention: Mention, phrases: CommentPhrases) -> str:
    """How a pull request ended. One that fixed something was merged, even if the time is unknown."""
    if mention.merged_at is None:
        is_unclear = mention.outcome.kind is OutcomeKind.FIXED
        return phrases.words.texts["ended_closed" if is_unclear else "ended_pull_dropped"]
    return phrases.words.texts["ended_pull_merged"]


def _closing_text(hit: Hit, phrases: CommentPhrases) -> str:
    kind, original = hit.outcome.kind, hit.outcome.duplicate_of
    if kind is OutcomeKind.FIXED:
        return _fix_text(hit, phrases)
    if not kind.is_known:
        return phrases.words.closing(hit.state_reason)
    thread = phrases.thread(original) if original is not None and original != hit.id else ""
    if thread and _goes_on_elsewhere(hit.outcome):
        return phrases.words.say("ended_moved", thread=thread)
    detail = thread if kind is OutcomeKind.DUPLICATE else _informative_quote(hit.outcome.quote)
    return phrases.words.say(kind.traits.words if detail else kind.traits.short_words, thread=thread)


def _goes_on_elsewhere(outcome: Outcome) -> bool:
    """Whether people only said in which issue it goes on ("part of #12"), and nobody called it a duplicate."""
    return CONTINUATION in outcome.evidence and not any("duplicate" in words for words in outcome.evidence)


def _fix_text(hit: Hit, phrases: CommentPhrases) -> str:
    release, change = linked_release(hit, phrases), _change(hit, phrases)
    if release:
        return phrases.words.say("ended_fixed_in_by" if change else "ended_fixed_in", release=release, change=change)
    return phrases.words.say("ended_fixed_by", change=change) if change else phrases.words.texts["ended_fixed"]


def is_waiting(hit: Hit) -> bool:
    """Whether no release has the fix yet, and that is worth telling."""
    is_fixed = hit.outcome.kind is OutcomeKind.FIXED or (isinstance(hit, Mention) and hit.merged_at is not None)
    return is_fixed and not release_of(hit) and hit.fix is not None and is_news(hit.fix)


def linked_release(hit: Hit, phrases: CommentPhrases) -> str:
    """The release, linked if the forge knows it; one named only in a thread may not be a tag."""
    if hit.fix and hit.fix.release:
        return phrases.link_title(hit.fix.release, phrases.links.release(hit.fix.release))
    return inline(release_of(hit), VERSION_CHARS)


def _change(hit: Hit, phrases: CommentPhrases) -> str:
    return change_link(_fixing_change(hit), hit, phrases)


def change_label(hit: Hit, phrases: CommentPhrases) -> str:
    """The fix as ``pull request 57``, linked; "" if none is known."""
    return change_link(_fixing_change(hit), hit, replace(phrases, titles={}))


def _fixing_change(hit: Hit) -> str:
    return (hit.fix.change if hit.fix else hit.outcome.fix) or ""


def change_link(ref: str, hit: Hit, phrases: CommentPhrases) -> str:
    """A change (``#57`` or a SHA) that ended the hit, linked; "" for no change.

    A number is called a pull request only if the evidence says so, as it may be an issue. A change of another
    repository is shown as code, in which GitHub sees no reference.
    """
    if number := _NUMBER.fullmatch(ref):
        is_pull = hit.fix.is_pull if hit.fix else any("pull" in words for words in hit.outcome.evidence)
        thread, kind = int(number[1]), Kind.PULL if is_pull else Kind.ISSUE
        noun = phrases.words.say("pull_request" if is_pull else "change", number=number[1])
        return phrases.link_title(phrases.titles.get(thread) or noun, phrases.links.thread(thread, kind))
    if _SHA.fullmatch(ref):
        sha = ref.lower()
        return phrases.link_title(phrases.words.say("commit", sha=sha[:7]), phrases.links.commit(sha))
    return code_span(ref, EXTERNAL_REF_CHARS) if _EXTERNAL_REF.fullmatch(ref) else ""


def _ended_at(hit: Hit) -> datetime | None:
    merged_at = hit.merged_at if isinstance(hit, Mention) else None
    return merged_at or hit.closed_at or hit.outcome.at


REASON_CHARS = 80
MAX_REASONS = 4
MAX_REASON_PARTS = 9

_REASON_TEXTS = {
    Reason.ERROR: "why_error",
    Reason.FILE: "why_file",
    Reason.NAMES: "why_names",
    Reason.WORDS: "why_words",
}
_TWO_NAMES = re.compile(r"(`[^`]{1,400}`) and (`[^`]{1,400}`)")


def why(reasons: tuple[str, ...], phrases: CommentPhrases) -> str:
    """At most four reasons, separated by commas."""
    return phrases.words.join(_reason(reason, phrases) for reason in reasons[:MAX_REASONS])


def _reason(reason: str, phrases: CommentPhrases) -> str:
    if reason in (Reason.TEXT, Reason.TITLE):
        return phrases.words.texts["why_text" if reason == Reason.TEXT else "why_title"]
    if reason.startswith(Reason.PHRASE):
        return phrases.words.say("why_phrase", what=phrases.quote(reason.removeprefix(Reason.PHRASE)))
    for beginning, name in _REASON_TEXTS.items():
        if reason.startswith(beginning):
            return phrases.words.say(name, what=_defang_names(reason.removeprefix(beginning), phrases))
    return _defang_reason(reason)


def _defang_names(text: str, phrases: CommentPhrases) -> str:
    if names := _TWO_NAMES.fullmatch(text):
        return phrases.words.say("and", first=_defang_reason(names[1]), second=_defang_reason(names[2]))
    return _defang_reason(text)


def _defang_reason(text: str) -> str:
    """Foreign words as plain text; text between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return inline(text, REASON_CHARS)
    shown = ""
    for index, part in enumerate(parts[:MAX_REASON_PARTS]):
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
    """Links, the time, titles of other threads (raw), the words, and the open pull requests by issue (raw).
    Every method returns harmless Markdown."""

    links: CommentLinks
    now: datetime
    titles: Mapping[ThreadId, str]
    words: Words
    pulls: Mapping[ThreadId, OpenPull] = field(default_factory=dict)

    def day(self, moment: datetime) -> str:
        return inline(self.words.day(moment), DAY_CHARS)

    def link_title(self, text: str, address: str) -> str:
        """A stranger's title, with a link if there is an address."""
        return link(text if inline(text, TITLE_CHARS) else self.words.texts["no_title"], address, TITLE_CHARS)

    def name(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """``issue 12``, without a link."""
        return inline(self.words.thread_label(thread, kind), TITLE_CHARS)

    def thread(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """The title, linked; without an address the title and the id."""
        title = self.titles.get(thread, "").strip()
        address = self.links.thread(thread, kind)
        if not title:
            return self.link_label(thread, kind)
        return (
            self.link_title(title, address) if address else f"{self.link_title(title, '')} ({self.name(thread, kind)})"
        )

    def numbered(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """The title, linked, and the id, which commands take."""
        shown = self.thread(thread, kind)
        if not self.titles.get(thread, "").strip() or not self.links.thread(thread, kind):
            return shown  # it has the id
        return self.words.say("numbered", thread=shown, number=self.name(thread, kind))

    def link_label(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """``issue 12``, linked."""
        return self.link_title(self.words.thread_label(thread, kind), self.links.thread(thread, kind))

    def quote(self, text: str) -> str:
        """A stranger's text on one line in quotation marks, "" for "".

        Whatever looks like a quotation mark becomes a single one, so that no text can end its own quotation and forge a
        speaker.
        """
        marks = PLACEHOLDER.sub("", self.words.texts["quote"]).split()
        inner = without_quotation_marks(text).translate(dict.fromkeys(map(ord, "".join(marks)), "'"))
        shown = prose(inner, QUOTE_CHARS)
        return self.words.say("quote", text=shown) if shown else ""

    def attribution(self, author: str | None, role: str | None, at: datetime | None, address: str) -> str:
        """`` (hubot, maintainer, 3 May 2025)``, linked to the comment; "" if not even the author is known."""
        if author is None and role is None:
            return ""
        who = self.words.speaker((author or "")[:NAME_CHARS], role)
        signed = self.words.say("who_when", who=who, day=self.words.day(at)) if at else who
        return f" ({self.link_title(signed, address)})"

    def files(self, paths: tuple[str, ...]) -> str:
        return self.words.join(code_span(path, PATH_CHARS) for path in paths)


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """What a release notice says: the ``tag``, and whether it is a pre-release.

    ``original`` is the fixed thread, if the notice is on a duplicate of it; ``upgrade_note`` is what the release says
    about upgrading (a stranger's words), "" if nothing.
    """

    tag: str
    is_early: bool = False
    original: ThreadId | None = None
    upgrade_note: str = ""


def release_text(facts: ReleaseFacts, phrases: CommentPhrases) -> str:
    """The notice as Markdown: at most two sentences, and the upgrade note in a paragraph of its own."""
    release = phrases.link_title(facts.tag, phrases.links.release(facts.tag))
    sentences = [phrases.words.say("notice_early" if facts.is_early else "notice_released", release=release)]
    if facts.original is not None:
        sentences.insert(0, phrases.words.say("notice_original", thread=phrases.link_label(facts.original)))
    note = phrases.quote(facts.upgrade_note)
    return "\n\n".join([" ".join(sentences), *([phrases.words.say("notice_upgrade", note=note)] if note else [])])
