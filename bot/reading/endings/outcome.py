"""How a closed thread ended: from the events around its closing and the comment that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from bot.domain.thread import KNOWN_ROLES, Kind, Message, Outcome, OutcomeKind, Thread, TimelineEvent
from bot.domain.thread_json import ANSWERED
from bot.reading.analyzer import is_english, tokens
from bot.reading.endings.engine import NO_FIX, Judgement, SentenceContext, is_question, judge, says, undoes
from bot.reading.endings.phrases import MERGE_BOT, PhraseBook, is_said, phrase_book
from bot.reading.endings.quote import MAX_QUOTE, quote_of
from bot.reading.markdown import read, sentences, statements

SLACK = timedelta(minutes=2)
"""A comment up to this long after a closing belongs to it: many people close first and then say why."""

FLIP = timedelta(minutes=10)
"""A thread that is closed, reopened and closed again within this time was reopened by mistake."""

CLOSING_PULL = "closing pull request"
"""The evidence that GitHub itself names the pull request whose merge closed the thread."""

_COMMIT_BEFORE = timedelta(days=3)
_COMMIT_AFTER = timedelta(hours=1)
_PULL_BEFORE = timedelta(days=7)
_DUPLICATE_AROUND = timedelta(days=1)

# Measured on labelled threads: the ending is the last comment before closing in 89 %, and three quarters of these
# comments were written within two minutes of it. An older one than a day is the ending only if it says so.
_AT_ONCE = timedelta(minutes=2)
_NEAR = timedelta(days=1)
_WEEK = timedelta(days=7)
_WITHIN = timedelta(days=30)

_SHORT_CODE = 3
_SHORT_COMMENT = 80
_SHORTEST_ANSWER = 20
_MAX_STEPS_BACK = 4
_SEVERAL = 2
_READ = 4_000
"""Characters of a comment that its language is told by."""

_SURE = 0.7
"""Events of at least this confidence name a fix whatever was said; below it they are a guess."""

_CLAIM = 0.5
"""Confidence of a stranger's claim: lower than that of any event."""

# How often the last comment was the ending on those threads, rounded down, by how close to the closing it was written.
_QUOTED_AT_ONCE = 0.9
_QUOTED_NEAR = 0.7


@dataclass(frozen=True, slots=True)
class Closing:
    """The last closing. Comments from before ``since`` belong to an earlier closing that was taken back."""

    at: datetime
    by: str | None
    since: datetime | None
    event: TimelineEvent | None


def closing_of(thread: Thread) -> Closing | None:
    """The last closing of ``thread``, None while it is open."""
    if not thread.is_closed or thread.closed_at is None:
        return None
    at = thread.closed_at
    events = [event for event in thread.events if event.at <= at + SLACK]
    closed = next((event for event in reversed(events) if event.name == "closed"), None)
    reopened = [event.at for event in events if event.name == "reopened" and at - event.at > FLIP]
    by = thread.closed_by or (closed.actor if closed else None)
    return Closing(at, by, max(reopened, default=None), closed)


def outcome(thread: Thread, repo: str | None = None, book: PhraseBook | None = None) -> Outcome:
    """How ``thread`` ended. Names a kind only on strong evidence; otherwise the ending is quoted or left out.

    Open threads, and closed ones about which nothing is known, give the empty outcome. A marked answer is the
    ending. The quote is one or two
    sentences of the comment's prose, at most 300 characters, without Markdown quotes and code blocks. ``repo`` is
    OWNER/NAME of the thread's repository, which tells links to it from links elsewhere. ``book`` holds other phrases
    than those that come with the program.
    """
    closing = closing_of(thread)
    if closing is None:
        return Outcome()
    if marked := _marked_answer(thread):
        return marked
    ending, stated = _Reader(thread, closing, repo, book or phrase_book()).ending()
    verdict = _with_pull(_weigh(stated, _believed(_recorded(thread, closing), ending)), thread)
    verdict = _after(verdict, thread, closing)
    told = _quoted(ending, stated, verdict) if ending else Outcome(at=closing.at if verdict else None)
    if verdict is None:
        return told
    return replace(
        told,
        kind=verdict.kind,
        fix=verdict.fix,
        claimed=verdict.claimed,
        release=verdict.release,
        duplicate_of=verdict.duplicate_of,
        evidence=(*told.evidence, *verdict.evidence),
        confidence=verdict.confidence,
    )


def _marked_answer(thread: Thread) -> Outcome | None:
    """The answer that people marked in a discussion, whatever its words say and whatever was said after it."""
    event = next((event for event in reversed(thread.events) if event.name == ANSWERED), None)
    if event is None:
        return None
    answered = Outcome(OutcomeKind.ANSWERED, at=event.at, evidence=("marked as the answer",), confidence=0.99)
    for index, message in enumerate(thread.comments):
        if message.id is not None and message.id == event.comment:
            said = statements(message.text)
            quote = quote_of(said, None) or quote_of(said, 0) or next(iter(said), "")[:MAX_QUOTE]
            return replace(
                answered, comment=index, comment_id=message.id, quote=quote, author=message.author, role=message.role,
                at=message.created_at,
            )  # fmt: skip
    return answered


# Events


def _recorded(thread: Thread, closing: Closing) -> Judgement | None:
    until = closing.at + _DUPLICATE_AROUND
    marked = [event for event in thread.events if event.name.endswith("marked_as_duplicate") and event.at <= until]
    if marked and marked[-1].name == "marked_as_duplicate":
        return Judgement(OutcomeKind.DUPLICATE, ("marked as duplicate",), 0.95, duplicate_of=marked[-1].source)
    if thread.state_reason == "duplicate":
        return Judgement(OutcomeKind.DUPLICATE, ("closed as duplicate",), 0.95)
    fix = _fix(thread, closing)
    if thread.state_reason == "not_planned" and not (fix and fix.kind is OutcomeKind.FIXED):
        return Judgement(OutcomeKind.NOT_PLANNED, ("closed as not planned",), 0.6)
    return fix


def _fix(thread: Thread, closing: Closing) -> Judgement | None:
    event = closing.event
    if event and event.commit:
        return Judgement(OutcomeKind.FIXED, ("closing commit",), 0.95, fix=event.commit)
    if event and event.source is not None and event.source_kind is Kind.PULL:
        return Judgement(OutcomeKind.FIXED, (CLOSING_PULL,), 0.95, fix=f"#{event.source}")
    known = [event for event in thread.events if closing.since is None or event.at > closing.since]
    merged = bool(closing.by and MERGE_BOT.match(closing.by))
    commits = [event.commit for event in known if event.name == "referenced" and _is_around(event, closing)]
    if commits and commits[-1]:
        confidence = 0.9 if merged else 0.75
        return Judgement(OutcomeKind.FIXED, ("commit shortly before closing",), confidence, fix=commits[-1])
    pulls = {event.source for event in known if event.source_kind is Kind.PULL and _is_before(event, closing)}
    if len(pulls) == 1:
        evidence, pull = ("pull request shortly before closing",), f"#{pulls.pop()}"
        if merged:
            return Judgement(OutcomeKind.FIXED, evidence, 0.9, fix=pull)
        return Judgement(OutcomeKind.UNKNOWN, evidence, 0.6, claimed=pull)
    return Judgement(OutcomeKind.FIXED, ("closed by a merge",), 0.85) if merged else None


def _is_around(event: TimelineEvent, closing: Closing) -> bool:
    return closing.at - _COMMIT_BEFORE <= event.at <= closing.at + _COMMIT_AFTER


def _is_before(event: TimelineEvent, closing: Closing) -> bool:
    return event.name == "cross-referenced" and closing.at - _PULL_BEFORE <= event.at <= closing.at


# Comments


@dataclass(frozen=True, slots=True)
class _Ending:
    """A last comment before a closing: its index, its sentences, and how long before the closing it was written.

    ``is_swept``: only housekeeping came after it, however much later. ``is_outside``: a stranger to the project wrote
    it; whoever closes the thread of somebody else is no stranger.
    """

    index: int
    message: Message
    said: tuple[str, ...]
    gap: timedelta
    by_closer: bool
    is_swept: bool
    is_outside: bool

    @property
    def only_agrees(self) -> bool:
        return all(is_said("assent", sentence) for sentence in self.said)

    @property
    def is_shown(self) -> bool:
        """Whether the comment is worth quoting although it states no kind of ending."""
        if not self.said or self.is_swept:
            return False
        if self.gap <= _NEAR:
            return True
        if self.gap <= _WEEK and any(is_said("settling", sentence) for sentence in self.said):
            return True
        return self.gap <= _WITHIN and any(is_said("closable", sentence) for sentence in self.said)

    @property
    def spoken(self) -> list[str]:
        """The sentences with code spans blanked: a function may be called ``obsolete``."""
        said = "\n".join(self.said)
        for span in read(self.message.text).inline_code:
            if len(span) > _SHORT_CODE:
                said = said.replace(" ".join(span.split()), "`")
        return said.split("\n")


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the comments of a thread for the one that is its ending."""

    thread: Thread
    closing: Closing
    repo: str | None
    book: PhraseBook

    def ending(self) -> tuple[_Ending | None, Judgement | None]:
        """The comment that is the ending and what it states.

        A comment that only agrees or thanks points to one before it.
        """
        endings = islice(self._endings(), _MAX_STEPS_BACK)
        last = next(endings, None)
        if last is None:
            return None, None
        stated = self._stated(last)
        if stated:
            return last, stated
        agrees, thanked = last.only_agrees, self._thanks(last)
        for ending in endings if agrees or thanked else ():
            is_answer = thanked and self._answers(ending)
            if not (is_answer or agrees) or ending.gap - last.gap > _WITHIN:
                break
            stated = self._stated(ending, vouched=True)
            if is_answer and (stated is None or stated.kind is OutcomeKind.STALE):
                stated = Judgement(OutcomeKind.ANSWERED, ("the reporter's thanks",), 0.75)
            if stated:
                return ending, stated
            if not ending.only_agrees:
                break
        return (last, None) if last.is_shown else (None, None)

    def _endings(self) -> Iterator[_Ending]:
        """The comments of people on this thread before its closing, latest first; the closer may be a little late."""
        closing, swept = self.closing, False
        for index in range(len(self.thread.comments) - 1, -1, -1):
            message = self.thread.comments[index]
            gap = closing.at - message.created_at
            by_closer = closing.by is not None and message.author == closing.by
            late = gap < timedelta(0)
            if late and (gap < -SLACK or not (by_closer or closing.by is None)):
                continue
            if closing.since and message.created_at < closing.since:
                return
            if message.is_bot or _says_nothing(message.text):
                swept = swept or _sweeps(message.text)
                continue
            gap = max(gap, timedelta(0))
            is_outside = bool(message.role) and message.role not in KNOWN_ROLES
            is_outside = is_outside and not (by_closer and message.author != self.thread.author)
            yield _Ending(index, message, _said(message.text, gap), gap, by_closer, swept, is_outside)

    def _scene(self, ending: _Ending) -> SentenceContext:
        return SentenceContext(
            own=self.thread.id,
            title=self.thread.title,
            repo=self.repo,
            by_author=ending.message.author == self.thread.author,
            at_closing=ending.gap <= _AT_ONCE or ending.is_swept,
            near=ending.gap <= _NEAR or ending.is_swept,
        )

    def _thanks(self, ending: _Ending) -> bool:
        """Whether the reporter says that the comment before was the answer."""
        if ending.message.author != self.thread.author or ending.gap > _NEAR:
            return False
        if any(said.endswith("?") or is_said("contrast", said) or is_said("intent", said) for said in ending.said):
            return False
        return any(says(self.book.rules["thanked"], sentence) for sentence in ending.said)

    def _answers(self, ending: _Ending) -> bool:
        return ending.message.author != self.thread.author and sum(map(len, ending.said)) >= _SHORTEST_ANSWER

    def _stated(self, ending: _Ending, *, vouched: bool = False) -> Judgement | None:
        """The surest kind of ending that the comment names, in the sentence that first names it.

        A fix that is taken back in its sentence, or in a later one, is none, whatever other words name it.
        """
        scene = self._scene(ending)
        is_near = vouched or scene.near or ending.gap <= _WEEK
        said = {index: sentence for index, sentence in enumerate(ending.spoken) if not is_question(sentence)}
        denied = dict[int, Judgement]()
        undone: int | None = None
        for rule in self.book.endings:
            for index, sentence in said.items():
                if rule.kind is OutcomeKind.FIXED and undone is not None and index < undone:
                    continue  # whatever it says is taken back
                verdict = judge(rule, sentence, scene)
                if verdict is None or not (verdict.explicit or is_near):
                    continue
                if verdict.kind is OutcomeKind.FIXED:
                    undone = _last_undone(said) if undone is None else undone
                    if index in denied or index < undone or _excused(verdict, said.get(index + 1, "")):
                        verdict = NO_FIX
                sure = replace(verdict, sentence=index, confidence=_confidence(verdict, ending))
                if verdict.kind is OutcomeKind.FIXED and ending.is_outside:
                    return _claim(sure)
                if verdict.kind is not OutcomeKind.UNKNOWN:
                    return self._with_release(sure, said.values(), scene)
                denied.setdefault(index, sure)
        return next(iter(denied.values()), None)

    def _with_release(self, verdict: Judgement, said: Iterable[str], scene: SentenceContext) -> Judgement:
        """The verdict with the version that the comment names anywhere as having the fix."""
        if verdict.kind is not OutcomeKind.FIXED or verdict.release:
            return verdict
        named = (judge(self.book.rules["released_in"], sentence, scene) for sentence in said)
        return replace(verdict, release=next((other.release for other in named if other), None))


def _said(text: str, gap: timedelta) -> tuple[str, ...]:
    """The sentences of a comment. A closing comment that contains only a quotation says what it quotes."""
    said = statements(text)
    if gap > _AT_ONCE or not all(is_said("bare_closing", sentence) for sentence in said):
        return said
    return tuple(sentence for quote in read(text).quotes for sentence in sentences(quote)) or said


def _says_nothing(text: str) -> bool:
    bare = text.strip()
    if len(bare) < _SHORT_COMMENT and (is_said("courtesy", bare) or is_said("housekeeping", bare)):
        return True
    return is_said("command", bare)


def _sweeps(text: str) -> bool:
    return len(text) < _SHORT_COMMENT and is_said("housekeeping", text)


def _last_undone(said: Mapping[int, str]) -> int:
    """The index of the last sentence that takes a fix back, -1 without one."""
    return max((index for index, sentence in said.items() if undoes(sentence)), default=-1)


def _excused(fixed: Judgement, after: str) -> bool:
    """Whether the next sentence puts a fix that nothing names down to the writer's own setup."""
    return not (fixed.fix or fixed.release) and is_said("excuse", after)


def _claim(fixed: Judgement) -> Judgement:
    """A stranger's claim of a fix: it is quoted, and the change that it names may be looked up."""
    evidence = ("said to be fixed by a stranger to the project",)
    return Judgement(OutcomeKind.UNKNOWN, evidence, _CLAIM, claimed=fixed.fix, sentence=fixed.sentence)


def _confidence(verdict: Judgement, ending: _Ending) -> float:
    distance = 0.0 if ending.gap <= _AT_ONCE else 0.1 if ending.gap <= _NEAR else 0.2
    stranger = 0.0 if ending.by_closer or ending.message.by_maintainer else 0.05
    return round(min(max(verdict.confidence - distance - stranger + _liked(ending.message), 0.0), 0.99), 2)


def _liked(message: Message) -> float:
    """How the reactions to a comment change the confidence in it."""
    counts = dict(message.reactions)
    liked = sum(counts.get(name, 0) for name in ("+1", "heart", "hooray", "rocket"))
    disliked = sum(counts.get(name, 0) for name in ("-1", "confused"))
    return 0.05 if liked > 2 * disliked else -0.1 if disliked > liked else 0.0


# Events and comments together


def _believed(known: Judgement | None, ending: _Ending | None) -> Judgement | None:
    """The judgement by events, unless they only make a fix probable and the closing words say how it ended."""
    if known is None or known.confidence >= _SURE or not (known.kind is OutcomeKind.FIXED or known.claimed):
        return known
    return None if ending and ending.gap <= _AT_ONCE and not ending.only_agrees else known


def _weigh(stated: Judgement | None, known: Judgement | None) -> Judgement | None:
    """The surer of words and events, put together where they agree. Words that deny a fix deny nothing else."""
    if stated is None or known is None:
        return stated or known
    if stated.kind is OutcomeKind.UNKNOWN and known.kind is not OutcomeKind.FIXED and not known.claimed:
        return known
    if stated.kind is known.kind:
        return replace(
            stated,
            fix=stated.fix or known.fix,
            duplicate_of=stated.duplicate_of if stated.duplicate_of is not None else known.duplicate_of,
            confidence=max(stated.confidence, known.confidence),
            evidence=(*known.evidence, *stated.evidence),
        )
    return stated if stated.confidence >= known.confidence else known


def _with_pull(verdict: Judgement | None, thread: Thread) -> Judgement | None:
    """The verdict, noting when the fix that the words name is a pull request that refers to this thread."""
    pulls = {f"#{event.source}" for event in thread.events if event.source_kind is Kind.PULL}
    if verdict is None or verdict.fix not in pulls or any("pull" in words for words in verdict.evidence):
        return verdict
    return replace(verdict, evidence=(*verdict.evidence, "a pull request that refers to it"))


def _after(verdict: Judgement | None, thread: Thread, closing: Closing) -> Judgement | None:
    """The verdict, withdrawn when people say later that it did not last."""
    if verdict is None or not (verdict.kind.traits.may_come_back or verdict.claimed):
        return verdict
    if not is_reopened_in_words(thread, closing.at + SLACK):
        return verdict
    return Judgement(OutcomeKind.UNKNOWN, ("said to be back after the closing",), 0.0)


def _quoted(ending: _Ending, stated: Judgement | None, verdict: Judgement | None) -> Outcome:
    message = ending.message
    return Outcome(
        comment=ending.index,
        comment_id=message.id,
        quote=_quote(ending, stated) if _agrees(ending, stated, verdict) else "",
        author=message.author,
        role=message.role,
        at=message.created_at,
        evidence=("last comment before closing",),
        confidence=_QUOTED_AT_ONCE if ending.gap <= _AT_ONCE else _QUOTED_NEAR,
    )


def _quote(ending: _Ending, stated: Judgement | None) -> str:
    if stated:
        return quote_of(ending.said, stated.sentence)
    # Plain statements can be told from talk only in English.
    words = list(tokens(" ".join(ending.said)[:_READ]))
    is_late = ending.gap > _AT_ONCE and is_english(words, ascii_only=all(map(str.isascii, words)))
    return quote_of(ending.said, None, is_late=is_late)


def _agrees(ending: _Ending, stated: Judgement | None, verdict: Judgement | None) -> bool:
    """Whether the words fit the verdict: words from before events ended the thread otherwise contradict it."""
    if verdict is None or verdict.kind is OutcomeKind.UNKNOWN:
        return True
    return ending.gap <= _AT_ONCE if stated is None else stated.kind is verdict.kind or stated.claimed is not None


def is_reopened_in_words(thread: Thread, closed_at: datetime) -> bool:
    """Whether the reporter or several others say after the closing that the problem is back or still happens.

    A person who takes that back no longer counts; nor does anybody who spoke before a maintainer said that it is fixed
    again.
    """
    complaining: set[str] = set()
    for message in thread.comments:
        if message.created_at <= closed_at or message.is_bot:
            continue
        said = statements(message.text)
        if any(is_said("retraction", sentence) for sentence in said):
            complaining = set() if message.by_maintainer else complaining - {message.author}
        elif any(not sentence.endswith("?") and says(phrase_book().rules["still"], sentence) for sentence in said):
            complaining.add(message.author)
    return thread.author in complaining or len(complaining) >= _SEVERAL
