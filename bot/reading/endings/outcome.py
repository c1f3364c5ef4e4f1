"""Finds out how a closed thread ended, from the events around its closing and the comment that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from bot.domain.thread import KNOWN_ROLES, Kind, Message, Outcome, OutcomeKind, Thread, TimelineEvent
from bot.domain.thread_json import ANSWERED
from bot.reading.analyzer import is_english, tokens
from bot.reading.endings.engine import (
    CLAIM_CONFIDENCE,
    NO_FIX,
    Judgement,
    SentenceContext,
    as_claim,
    is_question,
    is_vague,
    judge,
    says,
    takes_fix_back,
)
from bot.reading.endings.linked_versions import foreign_versions, strip_v
from bot.reading.endings.phrases import PhraseBook, has_phrase, phrase_book
from bot.reading.endings.quote import MAX_QUOTE_CHARS, in_latin_script, quote_of
from bot.reading.markdown import read, sentences, statements
from bot.reading.requests import without_requests

CLOSING_WINDOW = timedelta(minutes=2)
"""A comment up to this long after a closing belongs to it: many people close first and explain afterwards."""

MISTAKE_WINDOW = timedelta(minutes=10)
"""A thread closed, reopened and closed again within this time was reopened by mistake."""

CLOSING_PULL, CLOSING_COMMIT, CLOSING_MERGE = "closing pull request", "closing commit", "closed by a merge"
"""The evidence for a change that closed the thread according to GitHub: named, or merged by a program."""

_MERGED_PULL = "a merged pull request that says that it closes it"
FIX_WITNESSES = frozenset({CLOSING_PULL, CLOSING_COMMIT, _MERGED_PULL})
"""The evidence for a fix that no person has to state."""

CONTINUATION = "goes on in another issue"
"""The evidence for a thread that is only said to be part of another one, or moved there."""

_DUPLICATE_WINDOW = timedelta(days=1)

# Measured on labelled threads: the ending is the last comment before closing in 89 %, and three quarters of these
# comments were written within two minutes of it. A comment older than a day is the ending only if it says so.
_IMMEDIATE_GAP = timedelta(minutes=2)
_NEAR_GAP = timedelta(days=1)
_WEEK = timedelta(days=7)
_MAX_ENDING_GAP = timedelta(days=30)

_SHORT_CODE_CHARS = 3
_SHORT_COMMENT_CHARS = 80
_MIN_ANSWER_BYTES = 20
"""Of UTF-8, in which characters that say more take more."""

_MAX_STEPS_BACK = 4
_MIN_COMPLAINERS = 2
_LANGUAGE_SAMPLE_CHARS = 4_000
"""Characters of a comment from which its language is detected."""

_BOT_CONFIDENCE = 0.85
"""Confidence of what a program says as it closes a thread."""

# How often the last comment was the ending in those threads, rounded down, by its distance from the closing.
_IMMEDIATE_CONFIDENCE = 0.9
_LATE_CONFIDENCE = 0.7


@dataclass(frozen=True, slots=True)
class Closing:
    """The last closing. Comments before ``since`` belong to an earlier closing that was undone."""

    at: datetime
    by: str | None
    since: datetime | None
    event: TimelineEvent | None


def closing_of(thread: Thread) -> Closing | None:
    """The last closing of ``thread``, None while it is open."""
    if not thread.is_closed or thread.closed_at is None:
        return None
    at = thread.closed_at
    events = [event for event in thread.events if event.at <= at + CLOSING_WINDOW]
    closed = next((event for event in reversed(events) if event.name == "closed"), None)
    reopened = [event.at for event in events if event.name == "reopened" and at - event.at > MISTAKE_WINDOW]
    by = thread.closed_by or (closed.actor if closed else None)
    return Closing(at, by, max(reopened, default=None), closed)


def outcome(thread: Thread, repo: str | None = None, book: PhraseBook | None = None) -> Outcome:
    """How ``thread`` ended. Names a kind only on strong evidence; otherwise the ending is quoted or left out.

    Open threads, and closed ones about which nothing is known, give the empty outcome. A marked answer is the ending,
    unless the discussion's author wrote it; one that is over only because of such an answer counts as open.
    The quote is one or two sentences of the comment's prose, at most 300 characters, without Markdown quotes and code
    blocks. ``repo`` is OWNER/NAME of the thread's repository, to tell links to it from links elsewhere. ``book``
    replaces the shipped phrases.
    """
    closing = closing_of(thread)
    if closing is None:
        return Outcome()
    if event := _answer_event(thread):
        if not _is_own_answer(thread, event):
            return _marked_answer(thread, event)
        if thread.state_reason == ANSWERED:
            return Outcome()
    reader = _Reader(thread, closing, repo, book or phrase_book())
    ending, stated = reader.ending()
    recorded = (
        _closing_change(closing)
        or _marked_duplicate(thread, closing)
        or reader.judge_bots()
        or _not_planned(thread)
        or _fixing_change(thread, closing)
        or _claim(thread, closing)
    )
    judgement = _with_pull_evidence(_combine(stated, recorded), thread)
    judgement = _unless_reopened(judgement, thread, closing)
    quoted = _quoted_outcome(ending, stated, judgement) if ending else Outcome(at=closing.at if judgement else None)
    if judgement is None:
        return quoted
    return replace(
        quoted,
        kind=judgement.kind,
        fix=judgement.fix,
        claimed=judgement.claimed,
        release=judgement.release,
        duplicate_of=judgement.duplicate_of,
        evidence=(*quoted.evidence, *judgement.evidence),
        confidence=judgement.confidence,
    )


def _answer_event(thread: Thread) -> TimelineEvent | None:
    return next((event for event in reversed(thread.events) if event.name == ANSWERED), None)


def _is_own_answer(thread: Thread, event: TimelineEvent) -> bool:
    own = (message.id for message in thread.comments if message.author == thread.author)
    return event.comment is not None and event.comment in own


def _marked_answer(thread: Thread, event: TimelineEvent) -> Outcome:
    """The marked answer of a discussion, whatever it or later comments say."""
    answered = Outcome(OutcomeKind.ANSWERED, at=event.at, evidence=("marked as the answer",), confidence=0.99)
    for index, message in enumerate(thread.comments):
        if message.id is not None and message.id == event.comment:
            answer = statements(message.text)
            quote = quote_of(answer, None) or quote_of(answer, 0) or next(iter(answer), "")[:MAX_QUOTE_CHARS]
            return replace(
                answered, comment=index, comment_id=message.id, quote=quote, author=message.author, role=message.role,
                at=message.created_at,
            )  # fmt: skip
    return answered


# Events


def _closing_change(closing: Closing) -> Judgement | None:
    """The change that closed the thread according to GitHub."""
    event = closing.event
    if event and event.commit:
        return Judgement(OutcomeKind.FIXED, (CLOSING_COMMIT,), 0.95, fix=event.commit)
    if event and event.source is not None and event.source_kind is Kind.PULL:
        return Judgement(OutcomeKind.FIXED, (CLOSING_PULL,), 0.95, fix=f"#{event.source}")
    return None


def _marked_duplicate(thread: Thread, closing: Closing) -> Judgement | None:
    until = closing.at + _DUPLICATE_WINDOW
    marked = [event for event in thread.events if event.name.endswith("marked_as_duplicate") and event.at <= until]
    if marked and marked[-1].name == "marked_as_duplicate":
        return Judgement(OutcomeKind.DUPLICATE, ("marked as duplicate",), 0.95, duplicate_of=marked[-1].source)
    if thread.state_reason == "duplicate":
        return Judgement(OutcomeKind.DUPLICATE, ("closed as duplicate",), 0.95)
    return None


def _not_planned(thread: Thread) -> Judgement | None:
    is_declined = thread.state_reason == "not_planned"
    return Judgement(OutcomeKind.NOT_PLANNED, ("closed as not planned",), 0.6) if is_declined else None


def _fixing_change(thread: Thread, closing: Closing) -> Judgement | None:
    """The last merged pull request that says that it closes the thread; or some change, if a program merged it."""
    merged = [
        event
        for event in _references(thread, closing)
        if event.closes and event.merged_at and not (closing.since and event.merged_at < closing.since)
    ]
    if merged:
        fix = f"#{max(merged, key=_merge_time).source}"
        return Judgement(OutcomeKind.FIXED, (_MERGED_PULL,), 0.9, fix=fix)
    if closing.by and thread.is_merge_bot(closing.by):
        return Judgement(OutcomeKind.FIXED, (CLOSING_MERGE,), 0.85)
    return None


def _claim(thread: Thread, closing: Closing) -> Judgement | None:
    """The change that most likely closed the thread, if any. A mere mention is no evidence: it has to be looked up."""
    references = [event for event in _references(thread, closing) if event.at <= closing.at]
    pulls = [event for event in references if event.source is not None]
    if pulls:
        likeliest = max(pulls, key=lambda event: (event.closes, event.merged_at is not None, event.at))
        return Judgement(
            OutcomeKind.UNKNOWN, ("a pull request refers to it",), CLAIM_CONFIDENCE, claimed=f"#{likeliest.source}"
        )
    if references:
        return Judgement(
            OutcomeKind.UNKNOWN, ("a commit refers to it",), CLAIM_CONFIDENCE, claimed=references[-1].commit
        )
    return None


def _references(thread: Thread, closing: Closing) -> list[TimelineEvent]:
    """The references by pull requests and commits since the thread was last reopened."""
    recent = (event for event in thread.events if closing.since is None or event.at > closing.since)
    return [
        event
        for event in recent
        if (event.name == "cross-referenced" and event.source_kind is Kind.PULL)
        or (event.name == "referenced" and event.commit)
    ]


def _merge_time(event: TimelineEvent) -> datetime:
    return event.merged_at or event.at


# Comments


@dataclass(frozen=True, slots=True)
class _Ending:
    """A comment that may be the ending, with its index, its sentences and the time from it to the closing.

    ``is_swept``: only housekeeping came after it, however much later. ``is_outside``: a stranger to the project wrote
    it; a person who closes somebody else's thread is no stranger.
    """

    index: int
    message: Message
    sentences: tuple[str, ...]
    gap: timedelta
    by_closer: bool
    is_swept: bool
    is_outside: bool

    @property
    def only_agrees(self) -> bool:
        return all(has_phrase("assent", sentence) for sentence in self.sentences)

    @property
    def only_closes(self) -> bool:
        return all(has_phrase("bare_closing", one) or has_phrase("courtesy", one) for one in self.sentences)

    @property
    def is_shown(self) -> bool:
        """Whether the comment is worth quoting although it states no kind of ending."""
        if not self.sentences or self.is_swept:
            return False
        if self.gap <= _NEAR_GAP:
            return True
        if self.gap <= _WEEK and any(has_phrase("settling", sentence) for sentence in self.sentences):
            return True
        return self.gap <= _MAX_ENDING_GAP and any(has_phrase("closable", sentence) for sentence in self.sentences)

    @property
    def without_code(self) -> list[str]:
        """The sentences with code spans blanked: a function may be called ``obsolete``."""
        blanked = "\n".join(self.sentences)
        for span in read(self.message.text).inline_code:
            if len(span) > _SHORT_CODE_CHARS:
                blanked = blanked.replace(" ".join(span.split()), "`")
        return blanked.split("\n")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Searches the comments of a thread for its ending."""

    thread: Thread
    closing: Closing
    repo: str | None
    book: PhraseBook

    def ending(self) -> tuple[_Ending | None, Judgement | None]:
        """The comment that is the ending, and what it states.

        A comment that only closes, agrees or thanks points to an earlier one.
        """
        last = own_words = None
        latest = timedelta(0)
        is_vouched = is_thanked = False
        for ending in islice(self._endings(), _MAX_STEPS_BACK):
            if is_vouched and ending.gap - latest > _MAX_ENDING_GAP:
                break
            stated = self._judge(ending, vouched=is_vouched)
            if is_thanked and self._may_answer(ending) and (stated is None or stated.kind is OutcomeKind.STALE):
                stated = Judgement(OutcomeKind.ANSWERED, ("the reporter's thanks",), 0.75)
            thanks = self._is_thanks(ending)
            points_back = ending.only_closes or ending.only_agrees or thanks
            if stated and (last or not (is_vague(stated) and points_back)):
                return ending, stated
            if last is None and not ending.only_closes:
                last, own_words = ending, stated
            if not points_back:
                break
            latest = latest if is_vouched else ending.gap
            is_vouched, is_thanked = True, is_thanked or thanks
        return (last, own_words) if last and (own_words or last.is_shown) else (None, None)

    def _endings(self) -> Iterator[_Ending]:
        """People's comments before the closing, latest first; the closer may comment shortly after it."""
        closing, only_housekeeping = self.closing, False
        for index in range(len(self.thread.comments) - 1, -1, -1):
            message = self.thread.comments[index]
            gap = closing.at - message.created_at
            by_closer = closing.by is not None and message.author == closing.by
            late = gap < timedelta(0)
            if late and (gap < -CLOSING_WINDOW or not (by_closer or closing.by is None)):
                continue
            if closing.since and message.created_at < closing.since:
                return
            text = without_requests(message.text).strip()
            if message.is_bot or not text or _is_noise(text):
                only_housekeeping = only_housekeeping or _is_housekeeping(text)
                continue
            gap = max(gap, timedelta(0))
            is_outside = bool(message.role) and message.role not in KNOWN_ROLES
            is_outside = is_outside and not (by_closer and message.author != self.thread.author)
            yield _Ending(index, message, _sentences_of(text, gap), gap, by_closer, only_housekeeping, is_outside)

    def judge_bots(self) -> Judgement | None:
        """What a program said when it closed the thread: which one it duplicates, or that nobody answers any more.

        Only the program that closed it is believed: another one may repeat what a stranger wrote.
        """
        for message in reversed(self.thread.comments):
            is_late = message.created_at > self.closing.at + CLOSING_WINDOW
            if is_late or (self.closing.since and message.created_at < self.closing.since):
                continue
            is_close = self.closing.at - message.created_at <= CLOSING_WINDOW
            is_closer = message.author == self.closing.by if self.closing.by else is_close
            if not (message.is_bot and is_closer):
                if is_close:
                    continue
                return None
            context = SentenceContext(own=self.thread.id, title=self.thread.title, repo=self.repo, near=True)
            for name in ("duplicate_of", "inactive") if is_close else ("inactive",):
                for sentence in statements(message.text):
                    is_unsure = is_question(sentence) or has_phrase("tentative", sentence)
                    judgement = None if is_unsure else judge(self.book.rules[name], sentence, context)
                    if judgement and judgement.kind.is_known:
                        return replace(judgement, confidence=_BOT_CONFIDENCE)
        return None

    def _context(self, ending: _Ending) -> SentenceContext:
        return SentenceContext(
            own=self.thread.id,
            title=self.thread.title,
            repo=self.repo,
            by_author=ending.message.author == self.thread.author,
            by_outsider=ending.is_outside,
            at_closing=ending.gap <= _IMMEDIATE_GAP or ending.is_swept,
            near=ending.gap <= _NEAR_GAP or ending.is_swept,
        )

    def _is_thanks(self, ending: _Ending) -> bool:
        """Whether the reporter says that an earlier comment was the answer."""
        if ending.message.author != self.thread.author or ending.gap > _NEAR_GAP:
            return False
        if any(
            is_question(sentence) or has_phrase("contrast", sentence) or has_phrase("intent", sentence)
            for sentence in ending.sentences
        ):
            return False
        return any(says(self.book.rules["thanked"], sentence) for sentence in ending.sentences)

    def _may_answer(self, ending: _Ending) -> bool:
        length = sum(len(sentence.encode()) for sentence in ending.sentences)
        return ending.message.author != self.thread.author and length >= _MIN_ANSWER_BYTES

    def _judge(self, ending: _Ending, *, vouched: bool = False) -> Judgement | None:
        """The surest kind of ending that the comment names, in the sentence that first names it.

        A fix taken back in its own sentence or a later one does not count, whatever other words name it.
        """
        context = self._context(ending)
        is_near = vouched or context.near or ending.gap <= _WEEK
        assertions = {
            index: sentence for index, sentence in enumerate(ending.without_code) if not is_question(sentence)
        }
        denied = dict[int, Judgement]()
        undone: int | None = None
        for rule in self.book.endings:
            for index, sentence in assertions.items():
                if rule.kind is OutcomeKind.FIXED and undone is not None and index < undone:
                    continue  # whatever it says is taken back
                judgement = judge(rule, sentence, context)
                if judgement is None or not (judgement.explicit or is_near):
                    continue
                if judgement.kind is OutcomeKind.FIXED:
                    undone = _last_undone(assertions) if undone is None else undone
                    if index < undone or _is_own_setup(judgement, assertions.get(index + 1, "")):
                        judgement = NO_FIX
                    judgement = denied.get(index, judgement)
                    if judgement.release and self._is_elsewhere(judgement.release, ending):
                        judgement = NO_FIX
                rated = replace(judgement, sentence=index, confidence=_confidence(judgement, ending))
                if judgement.kind is OutcomeKind.FIXED and ending.is_outside:
                    return as_claim(rated, "said to be fixed by a stranger to the project")
                if judgement.kind is not OutcomeKind.UNKNOWN:
                    return self._with_release(rated, assertions.values(), context)
                denied.setdefault(index, rated)
        return next(iter(denied.values()), None)

    def _is_elsewhere(self, release: str, ending: _Ending) -> bool:
        return strip_v(release) in foreign_versions(ending.message.text, self.repo) if self.repo else False

    def _with_release(self, judgement: Judgement, assertions: Iterable[str], context: SentenceContext) -> Judgement:
        """Adds the version that the comment names, anywhere, as having the fix."""
        if judgement.kind is not OutcomeKind.FIXED or judgement.release:
            return judgement
        named = (judge(self.book.rules["released_in"], sentence, context) for sentence in assertions)
        return replace(judgement, release=next((other.release for other in named if other), None))


def _sentences_of(text: str, gap: timedelta) -> tuple[str, ...]:
    """The sentences of a comment; of a closing comment with nothing but a quotation, those it quotes."""
    own = statements(text)
    if gap > _IMMEDIATE_GAP or not all(has_phrase("bare_closing", sentence) for sentence in own):
        return own
    return tuple(sentence for quote in read(text).quotes for sentence in sentences(quote)) or own


def _is_noise(text: str) -> bool:
    bare = text.strip()
    if len(bare) < _SHORT_COMMENT_CHARS and (has_phrase("courtesy", bare) or has_phrase("housekeeping", bare)):
        return True
    return has_phrase("command", bare)


def _is_housekeeping(text: str) -> bool:
    return len(text) < _SHORT_COMMENT_CHARS and has_phrase("housekeeping", text)


def _last_undone(assertions: Mapping[int, str]) -> int:
    """The index of the last sentence that takes a fix back, -1 if none."""
    return max((index for index, sentence in assertions.items() if takes_fix_back(sentence)), default=-1)


def _is_own_setup(fixed: Judgement, after: str) -> bool:
    """Whether the next sentence attributes a fix without a named change to the writer's own setup."""
    return not (fixed.fix or fixed.release) and has_phrase("excuse", after)


def _confidence(judgement: Judgement, ending: _Ending) -> float:
    distance = 0.0 if ending.gap <= _IMMEDIATE_GAP else 0.1 if ending.gap <= _NEAR_GAP else 0.2
    stranger = 0.0 if ending.by_closer or ending.message.by_maintainer else 0.05
    return round(min(max(judgement.confidence - distance - stranger + _reaction_bonus(ending.message), 0.0), 0.99), 2)


def _reaction_bonus(message: Message) -> float:
    """How the reactions to a comment change the confidence in it."""
    counts = dict(message.reactions)
    liked = sum(counts.get(name, 0) for name in ("+1", "heart", "hooray", "rocket"))
    disliked = sum(counts.get(name, 0) for name in ("-1", "confused"))
    return 0.05 if liked > 2 * disliked else -0.1 if disliked > liked else 0.0


# Events and comments together


def _combine(stated: Judgement | None, recorded: Judgement | None) -> Judgement | None:
    """The surer of words and events, merged where they agree.

    Words that deny a fix outweigh every event but GitHub's own word, and deny nothing else. No words make a fix of what
    people closed as not planned or as a duplicate.
    """
    if stated is None or recorded is None:
        return stated or recorded
    if stated.evidence == NO_FIX.evidence:
        is_denied = not recorded.kind.is_known or (recorded.kind is OutcomeKind.FIXED and not _is_certain(recorded))
        return stated if is_denied else recorded
    if not stated.kind.is_known:
        return recorded if recorded.kind.is_known else replace(stated, claimed=stated.claimed or recorded.claimed)
    if stated.kind is recorded.kind:
        return replace(
            stated,
            fix=stated.fix or recorded.fix,
            duplicate_of=stated.duplicate_of if stated.duplicate_of is not None else recorded.duplicate_of,
            confidence=max(stated.confidence, recorded.confidence),
            evidence=(*recorded.evidence, *stated.evidence),
        )
    if not recorded.kind.is_known:
        return stated
    is_surer = stated.confidence >= recorded.confidence and stated.kind is not OutcomeKind.FIXED
    return stated if is_surer else recorded


def _is_certain(recorded: Judgement) -> bool:
    """Whether GitHub itself says that a change closed the thread."""
    return bool({CLOSING_PULL, CLOSING_COMMIT, CLOSING_MERGE}.intersection(recorded.evidence))


def _with_pull_evidence(judgement: Judgement | None, thread: Thread) -> Judgement | None:
    """Adds evidence if the fix named in words is a pull request that refers to this thread."""
    pulls = {f"#{event.source}" for event in thread.events if event.source_kind is Kind.PULL}
    if judgement is None or judgement.fix not in pulls or any("pull" in words for words in judgement.evidence):
        return judgement
    return replace(judgement, evidence=(*judgement.evidence, "a pull request that refers to it"))


def _unless_reopened(judgement: Judgement | None, thread: Thread, closing: Closing) -> Judgement | None:
    """The judgement, withdrawn if people say later that the problem is back."""
    if judgement is None or not (judgement.kind.traits.may_come_back or judgement.claimed):
        return judgement
    if not is_reopened_in_words(thread, closing.at + CLOSING_WINDOW):
        return judgement
    return Judgement(OutcomeKind.UNKNOWN, ("said to be back after the closing",), 0.0)


def _quoted_outcome(ending: _Ending, stated: Judgement | None, judgement: Judgement | None) -> Outcome:
    message = ending.message
    return Outcome(
        comment=ending.index,
        comment_id=message.id,
        quote=_quote(ending, stated) if _agrees(ending, stated, judgement) else "",
        author=message.author,
        role=message.role,
        at=message.created_at,
        evidence=("last comment before closing",),
        confidence=_IMMEDIATE_CONFIDENCE if ending.gap <= _IMMEDIATE_GAP else _LATE_CONFIDENCE,
    )


def _quote(ending: _Ending, stated: Judgement | None) -> str:
    if stated:
        return quote_of(ending.sentences, stated.sentence)
    # Plain statements can be told from small talk only in English.
    sample = " ".join(ending.sentences)[:_LANGUAGE_SAMPLE_CHARS]
    words = list(tokens(sample))
    is_late = ending.gap > _IMMEDIATE_GAP and in_latin_script(sample)
    is_late = is_late and is_english(words, ascii_only=all(map(str.isascii, words)))
    return quote_of(ending.sentences, None, is_late=is_late)


def _agrees(ending: _Ending, stated: Judgement | None, judgement: Judgement | None) -> bool:
    """Whether the words fit the judgement. Words without an ending fit only if they came with the closing."""
    if judgement is None or judgement.kind is OutcomeKind.UNKNOWN:
        return True
    return (
        ending.gap <= _IMMEDIATE_GAP if stated is None else stated.kind is judgement.kind or stated.claimed is not None
    )


def is_reopened_in_words(thread: Thread, closed_at: datetime) -> bool:
    """Whether the reporter or several others say after the closing that the problem is back or still happens.

    A person who takes that back no longer counts, nor does anybody who wrote before a maintainer said that it is fixed
    again.
    """
    complaining: set[str] = set()
    for message in thread.comments:
        if message.created_at <= closed_at or message.is_bot:
            continue
        remarks = statements(message.text)
        if any(has_phrase("retraction", sentence) for sentence in remarks):
            complaining = set() if message.by_maintainer else complaining - {message.author}
        elif any(not is_question(sentence) and says(phrase_book().rules["still"], sentence) for sentence in remarks):
            complaining.add(message.author)
    return thread.author in complaining or len(complaining) >= _MIN_COMPLAINERS
