"""How a closed thread ended: the events around its closing, the comment that says so, what took it back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice

from bot.domain.thread import KNOWN_ROLES, Kind, Message, Outcome, OutcomeKind, Thread, TimelineEvent
from bot.reading.analyzer import is_english, tokens
from bot.reading.endings import phrases
from bot.reading.endings.doubts import excuses, undoes
from bot.reading.endings.engine import NO_FIX, RULES, Judgement, PhraseRules, SentenceContext, denies, is_question
from bot.reading.endings.phrases import MERGE_BOT
from bot.reading.endings.quote import quote_of
from bot.reading.markdown import read, sentences, statements

SLACK = timedelta(minutes=2)
"""So late may come what belongs to a closing: many close first and then say why."""

FLIP = timedelta(minutes=10)
"""Closed, reopened and closed again within this time is one closing by a slip of the hand."""

CLOSING_PULL = "closing pull request"
"""The evidence that GitHub itself names the pull request whose merge closed the thread."""

_COMMIT_BEFORE = timedelta(days=3)
_COMMIT_AFTER = timedelta(hours=1)
_PULL_BEFORE = timedelta(days=7)
_DUPLICATE_AROUND = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Closing:
    """The closing that counts. What was said before ``since`` belongs to an earlier one that was taken back."""

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


def recorded(thread: Thread, closing: Closing) -> Judgement | None:
    """What the events around the closing say."""
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
    commits = [event.commit for event in known if event.name == "referenced" and _is_around(event, closing)]
    merged = bool(closing.by and MERGE_BOT.match(closing.by))
    if commits and commits[-1]:
        return Judgement(
            OutcomeKind.FIXED, ("commit shortly before closing",), 0.9 if merged else 0.75, fix=commits[-1]
        )
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


# Measured on labelled threads: the ending is the last comment before closing in 89 %, three quarters of them stand
# within two minutes of it; what stands there more than a day before is the ending only when it says so.
_AT_ONCE = timedelta(minutes=2)
_NEAR = timedelta(days=1)
_WEEK = timedelta(days=7)
_WITHIN = timedelta(days=30)

_SHORT_CODE = 3
_SHORT_COMMENT = 80
_SHORTEST_ANSWER = 20
_MAX_STEPS_BACK = 4
_READ = 4_000
"""Characters of a comment by which its language is told."""

_SURE = 0.7
"""From here on events name a fix whatever was said; below, they are a guess."""

_CLAIM = 0.5
"""How sure it is that a stranger's claim is one: whatever events say is surer."""

# How often the last comment was the ending on those threads, rounded down, by how near to the closing it stood.
_QUOTED_AT_ONCE = 0.9
_QUOTED_NEAR = 0.7


@dataclass(frozen=True, slots=True)
class _Ending:
    """A last word before a closing: its place, its sentences, and how long before the closing it was said.

    ``is_swept`` says that only housekeeping came after it, however much later; ``is_outside`` that a stranger to the
    project said it. Who closes the thread of somebody else is none.
    """

    index: int
    message: Message
    said: tuple[str, ...]
    gap: timedelta
    by_closer: bool
    is_swept: bool = False
    is_outside: bool = False

    @property
    def is_trusted(self) -> bool:
        return self.by_closer or self.message.by_maintainer

    def scene(self, thread: Thread, repo: str | None) -> SentenceContext:
        at_closing = self.gap <= _AT_ONCE or self.is_swept
        near = self.gap <= _NEAR or self.is_swept
        return SentenceContext(thread.id, thread.title, repo, self.message.author == thread.author, at_closing, near)


def outcome(thread: Thread, repo: str | None = None, rules: PhraseRules = RULES) -> Outcome:
    """How ``thread`` ended. A kind is named only on strong evidence, otherwise the ending is quoted or left out.

    Open threads, and closed ones about which nothing is known, give the empty outcome. The quote is one or two
    sentences of the comment's prose, at most 300 characters, without Markdown quotes and code blocks. ``repo`` is
    OWNER/NAME of the thread's repository, which tells links to it from links elsewhere. A measurement may leave out
    some of the ``rules``.
    """
    closing = closing_of(thread)
    if closing is None:
        return Outcome()
    ending, stated = _statement(thread, closing, repo, rules)
    verdict = _with_pull(_weigh(stated, _believed(recorded(thread, closing), ending)), thread)
    verdict = _after(verdict, thread, closing)
    if ending is None:
        return _unquoted(verdict, closing)
    return _quoted(ending, stated, verdict)


def _statement(
    thread: Thread, closing: Closing, repo: str | None, rules: PhraseRules
) -> tuple[_Ending | None, Judgement | None]:
    """The comment that is the ending and what it says; a comment that only agrees or thanks points to one before it."""
    endings = islice(_endings(thread, closing), _MAX_STEPS_BACK)
    last = next(endings, None)
    if last is None:
        return None, None
    stated = _stated(last, thread, repo, rules)
    if stated:
        return last, stated
    agrees, thanked = _only_agrees(last), _thanks(last, thread, rules)
    for ending in endings if agrees or thanked else ():
        is_answer = thanked and _answers(ending, thread)
        if not (is_answer or agrees) or ending.gap - last.gap > _WITHIN:
            break
        stated = _stated(ending, thread, repo, rules, vouched=True)
        if is_answer and (stated is None or stated.kind is OutcomeKind.STALE):
            stated = Judgement(OutcomeKind.ANSWERED, ("the reporter's thanks",), 0.75)
        if stated:
            return ending, stated
        if not _only_agrees(ending):
            break
    return (last, None) if _is_shown(last) else (None, None)


def _endings(thread: Thread, closing: Closing) -> Iterator[_Ending]:
    """What people said of this thread before its closing, latest first; the closer may be a little late."""
    swept = False
    for index in range(len(thread.comments) - 1, -1, -1):
        message = thread.comments[index]
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
        is_outside = is_outside and not (by_closer and message.author != thread.author)
        yield _Ending(index, message, _said(message.text, gap), gap, by_closer, swept, is_outside)


def _said(text: str, gap: timedelta) -> tuple[str, ...]:
    """The sentences of a comment. Whoever closes with nothing but a quotation says what it says."""
    said = statements(text)
    if gap > _AT_ONCE or not all(map(phrases.BARE_CLOSING.fullmatch, said)):
        return said
    return tuple(sentence for quote in read(text).quotes for sentence in sentences(quote)) or said


def _says_nothing(text: str) -> bool:
    bare = text.strip()
    if len(bare) < _SHORT_COMMENT and (phrases.COURTESY.fullmatch(bare) or phrases.HOUSEKEEPING.search(bare)):
        return True
    return bool(phrases.COMMAND.match(bare))


def _sweeps(text: str) -> bool:
    return len(text) < _SHORT_COMMENT and bool(phrases.HOUSEKEEPING.search(text))


def _is_shown(ending: _Ending) -> bool:
    if not ending.said or ending.is_swept:
        return False
    if ending.gap <= _NEAR:
        return True
    if ending.gap <= _WEEK and any(map(phrases.DECIDES.search, ending.said)):
        return True
    return ending.gap <= _WITHIN and any(map(phrases.CLOSABLE.search, ending.said))


def _only_agrees(ending: _Ending) -> bool:
    return all(map(phrases.ASSENT.fullmatch, ending.said))


def _thanks(ending: _Ending, thread: Thread, rules: PhraseRules) -> bool:
    """Whether the reporter says that the comment before was the answer."""
    if ending.message.author != thread.author or ending.gap > _NEAR:
        return False
    if any(said.endswith("?") or phrases.BUT.search(said) or phrases.INTENT.search(said) for said in ending.said):
        return False
    return any(rules.thanked(sentence, ending.scene(thread, None)) for sentence in ending.said)


def _answers(ending: _Ending, thread: Thread) -> bool:
    return ending.message.author != thread.author and sum(map(len, ending.said)) >= _SHORTEST_ANSWER


def _stated(
    ending: _Ending, thread: Thread, repo: str | None, rules: PhraseRules, vouched: bool = False
) -> Judgement | None:
    """What the ending comment says in so many words: of the kinds it names the surest, where it first names it.

    A fix that is taken back in its sentence, or in a later one, is none, whatever surer or less sure words name it.
    """
    scene = ending.scene(thread, repo)
    is_near = vouched or scene.near or ending.gap <= _WEEK
    said = [(index, sentence) for index, sentence in enumerate(_spoken(ending)) if not is_question(sentence)]
    undone, denied = _Undone(said), dict[int, Judgement]()
    for rule in rules.stating:
        for index, sentence in said:
            verdict = rule(sentence, scene)
            if verdict is None or not (verdict.explicit or is_near):
                continue
            if verdict.kind is OutcomeKind.FIXED and (index in denied or undone.later(verdict, index)):
                verdict = NO_FIX
            sure = replace(verdict, sentence=index, confidence=_confidence(verdict, ending))
            if verdict.kind is OutcomeKind.FIXED and ending.is_outside:
                return _claim(sure)
            if verdict.kind is not OutcomeKind.UNKNOWN:
                return replace(sure, release=_release(verdict, said, scene, rules))
            denied.setdefault(index, sure)
    return next(iter(denied.values()), None)


def _claim(fixed: Judgement) -> Judgement:
    """What a stranger's word for a fix is worth: it is quoted, and what it names may be looked up."""
    evidence = ("said to be fixed by a stranger to the project",)
    return Judgement(OutcomeKind.UNKNOWN, evidence, _CLAIM, claimed=fixed.fix, sentence=fixed.sentence)


@dataclass(frozen=True)
class _Undone:
    """Which fixes the later sentences of a comment take back."""

    said: list[tuple[int, str]]

    @cached_property
    def _last(self) -> int:
        return max((index for index, sentence in self.said if undoes(sentence)), default=-1)

    @cached_property
    def _by_index(self) -> dict[int, str]:
        return dict(self.said)

    def later(self, fixed: Judgement, index: int) -> bool:
        """Whether one after ``index`` takes the fix back, or the next one says what it was where nothing names it."""
        is_named = fixed.fix or fixed.release
        return index < self._last or (not is_named and excuses(self._by_index.get(index + 1, "")))


def _release(verdict: Judgement, said: list[tuple[int, str]], scene: SentenceContext, rules: PhraseRules) -> str | None:
    """The version that the comment names anywhere, when it says that something was fixed."""
    if verdict.kind is not OutcomeKind.FIXED or verdict.release:
        return verdict.release
    named = (rules.released(sentence, scene) for _, sentence in said)
    return next((other.release for other in named if other), None)


def _spoken(ending: _Ending) -> list[str]:
    """The sentences with code spans blanked: a function may be called ``obsolete``."""
    code = [span for span in read(ending.message.text).inline_code if len(span) > _SHORT_CODE]
    said = "\n".join(ending.said)
    for span in code:
        said = said.replace(" ".join(span.split()), "`")
    return said.split("\n")


def _confidence(verdict: Judgement, ending: _Ending) -> float:
    distance = 0.0 if ending.gap <= _AT_ONCE else 0.1 if ending.gap <= _NEAR else 0.2
    stranger = 0.0 if ending.is_trusted else 0.05
    liked = _reaction(ending.message)
    return round(min(max(verdict.confidence - distance - stranger + liked, 0.0), 0.99), 2)


def _reaction(message: Message) -> float:
    """What the readers of a comment think of it, as a little more or less confidence."""
    counts = dict(message.reactions)
    liked = sum(counts.get(name, 0) for name in ("+1", "heart", "hooray", "rocket"))
    disliked = sum(counts.get(name, 0) for name in ("-1", "confused"))
    return 0.05 if liked > 2 * disliked else -0.1 if disliked > liked else 0.0


def _believed(known: Judgement | None, ending: _Ending | None) -> Judgement | None:
    """What the events say. Those that only make a fix probable count where no words say how it ended."""
    is_guess = known is not None and (known.kind is OutcomeKind.FIXED or known.claimed) and known.confidence < _SURE
    if not is_guess:
        return known
    tells = ending and ending.gap <= _AT_ONCE and not _only_agrees(ending)
    return None if tells else known


def _weigh(stated: Judgement | None, known: Judgement | None) -> Judgement | None:
    """Of words and events the surer; where both agree, what either knows. What denies a fix denies nothing else."""
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
    """The verdict, knowing when the fix that words only number is a pull request that refers to this thread."""
    pulls = {f"#{event.source}" for event in thread.events if event.source_kind is Kind.PULL}
    if verdict is None or verdict.fix not in pulls or any("pull" in words for words in verdict.evidence):
        return verdict
    return replace(verdict, evidence=(*verdict.evidence, "a pull request that refers to it"))


def _after(verdict: Judgement | None, thread: Thread, closing: Closing) -> Judgement | None:
    """The verdict, or what is left of it when people say later that it did not last."""
    if verdict is None or not (verdict.kind.traits.may_come_back or verdict.claimed):
        return verdict
    if not is_reopened_in_words(thread, closing.at + SLACK):
        return verdict
    return Judgement(OutcomeKind.UNKNOWN, ("said to be back after the closing",), 0.0)


def _unquoted(verdict: Judgement | None, closing: Closing) -> Outcome:
    if verdict is None:
        return Outcome()
    return Outcome(
        kind=verdict.kind,
        at=closing.at,
        fix=verdict.fix,
        claimed=verdict.claimed,
        release=verdict.release,
        duplicate_of=verdict.duplicate_of,
        evidence=verdict.evidence,
        confidence=verdict.confidence,
    )


def _quote(ending: _Ending, stated: Judgement | None) -> str:
    if stated:
        return quote_of(ending.said, stated.sentence)
    # Of plain statements only English ones are told from talk.
    words = list(tokens(" ".join(ending.said)[:_READ]))
    is_late = ending.gap > _AT_ONCE and is_english(words, ascii_only=all(map(str.isascii, words)))
    return quote_of(ending.said, None, is_late=is_late)


def _agrees(ending: _Ending, stated: Judgement | None, verdict: Judgement | None) -> bool:
    """Whether the words stand beside the verdict: what was said before events ended it otherwise speaks against it."""
    if verdict is None or verdict.kind is OutcomeKind.UNKNOWN:
        return True
    return ending.gap <= _AT_ONCE if stated is None else stated.kind is verdict.kind or stated.claimed is not None


def _quoted(ending: _Ending, stated: Judgement | None, verdict: Judgement | None) -> Outcome:
    message = ending.message
    plain = Outcome(
        comment=ending.index,
        comment_id=message.id,
        quote=_quote(ending, stated) if _agrees(ending, stated, verdict) else "",
        author=message.author,
        role=message.role,
        at=message.created_at,
        evidence=("last comment before closing",),
        confidence=_QUOTED_AT_ONCE if ending.gap <= _AT_ONCE else _QUOTED_NEAR,
    )
    if verdict is None:
        return plain
    return replace(
        plain,
        kind=verdict.kind,
        fix=verdict.fix,
        claimed=verdict.claimed,
        release=verdict.release,
        duplicate_of=verdict.duplicate_of,
        evidence=(*plain.evidence, *verdict.evidence),
        confidence=verdict.confidence,
    )


_SEVERAL = 2


def is_reopened_in_words(thread: Thread, closed_at: datetime) -> bool:
    """Whether the reporter or several others say after the closing that it is back or still happens.

    Who takes that back no longer counts; nobody counts who spoke before a maintainer said that it is fixed again.
    """
    complaining: set[str] = set()
    for message in thread.comments:
        if message.created_at <= closed_at or message.is_bot:
            continue
        said = statements(message.text)
        if any(map(phrases.RETRACTS.search, said)):
            complaining = set() if message.by_maintainer else complaining - {message.author}
        elif _complains(said):
            complaining.add(message.author)
    return thread.author in complaining or len(complaining) >= _SEVERAL


def _complains(said: tuple[str, ...]) -> bool:
    for sentence in said:
        found = phrases.STILL.search(sentence)
        if found and not sentence.endswith("?") and not denies(sentence[: found.start()]):
            return True
    return False
