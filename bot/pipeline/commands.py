"""Carries out what people ask of the bot, and replies: whether it is allowed, what memory knows, and the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches

from bot.comment.catalogue import COMMAND_SYNTAX, REPORTER_COMMANDS, Words
from bot.comment.defang import inline
from bot.comment.marker import fingerprint, seal
from bot.comment.outcome_text import TITLE_CHARS
from bot.domain.answer import Context, Speak, quoted_in, threads_in
from bot.domain.changes import CHANGE_REQUESTS, FORGET, JUDGEMENT_REQUESTS, Changes, Request, is_off
from bot.domain.post import PostKey, reply_slot
from bot.domain.thread import GHOST, Thread, ThreadId, text_id
from bot.github.errors import ForgeError
from bot.pipeline.draft import SWITCHED_OFF, Draft
from bot.pipeline.fetch import fetch_missing
from bot.pipeline.memory_cards import MemoryCards
from bot.pipeline.requests import WAITING, close_request, find_requests
from bot.pipeline.room import Room, Settlement
from bot.pipeline.tools import DAILY_LIMIT_REACHED, Facts, ParsedRequest, Tools
from bot.questions.issue import MAX_THREADS, QuestionService, about_issue, about_words
from bot.reading.questions import recall_question
from bot.reading.requests import COMMAND_NAMES, WHICH, Command
from bot.reading.search_query import SearchQuery, search_query
from bot.recall.mentions import MAX_FULL_MENTIONS, numbers_in

MAX_REPLIES = 10
"""Maximum number of replies that one run writes. The next run takes the others."""

HOUR = timedelta(hours=1)
DONE_REASONS = {
    "search": "asked to search",
    "context": "asked about an issue",
    "recall": "asked what was decided",
    "help": "asked for the commands",
    "unclear": "the request was not understood",
    WHICH: "the request names no issue",
    "wrong": "an issue was marked as unrelated",
    "same": "an issue was marked as the same",
    "different": "an issue was marked as different",
    "original": "an issue was named as the original",
    "off": "switched off on this issue",
    "on": "switched on again on this issue",
    "refresh": "asked for a new answer",
    FORGET: "the issue was forgotten",
}
"""What was asked for, as the job summary puts it."""

HOURLY_LIMIT_REACHED = "the account has used up its questions for this hour"

ABOUT_ISSUES = JUDGEMENT_REQUESTS | {"wrong"}
"""Changes that are about other issues."""

SEARCH_REQUESTS = frozenset({"search", "context", "recall"})
"""Requests that search memory."""

FAULTS = frozenset({"refused", "limited", "unclear", WHICH})
"""Names of requests that are not carried out. An account is told why once an hour."""

MAX_CHOICES = 5
"""Issues that are offered to somebody who named none."""


class Commands(Room):
    """What was asked for in comments and opening texts. Each request gets a reply or a reaction."""

    answers_events = True
    plans: Sequence[ReplyPlan] = ()

    def look(self) -> None:
        self.facts.requests = find_requests(self.facts, self.run)

    def plan(self) -> list[Draft]:
        """Plan the replies, and stage the requests, so that no crash repeats or loses one."""
        self.plans = prepare_replies(self.facts, self.run)
        replies = [reply_draft(plan, self.run) for plan in self.plans]
        self.facts.requested = tuple(promised_request(plan, self.run) for plan in self.plans)
        self.run.memory.stage(Changes(requests=self.facts.requested))
        return replies

    def settle(self, settlements: Sequence[Settlement]) -> None:
        """Close the requests whose reply GitHub refused, and react to the others. After other failures a later run
        checks whether the reply exists, and tries again if it does not."""
        results = {draft.key: result for draft, _, result in settlements}
        refused = []
        for plan in self.plans:
            result = results.get(PostKey(plan.request.thread.id, reply_slot(plan.request.key)))
            if result and result.is_refused:
                refused.append(close_request(promised_request(plan, self.run)))
            elif result and not (result.is_undone or plan.waits):
                react(plan.request, "rocket" if plan.good else "confused", self.run)
        if refused:
            self.run.memory.stage(Changes(requests=tuple(refused)))


@dataclass(frozen=True, slots=True)
class ReplyPlan:
    """The planned reply. ``name`` is the stored name of the request; ``text`` is empty if there is no reply.

    ``good``: the request is carried out; ``why`` is the reason in the job summary, "" for the usual one. ``waits``: why
    it is left to a later run.
    """

    request: ParsedRequest
    name: str
    context: Context = field(default_factory=Context)
    text: str = ""
    good: bool = True
    why: str = ""
    waits: str = ""
    fault: ForgeError | None = None

    @property
    def reason(self) -> str:
        """What happened, for the job summary."""
        return self.waits or self.why or DONE_REASONS.get(self.name, self.name)

    @property
    def stored(self) -> Request:
        """The request as stored before anything is done."""
        request = self.request
        about = request.command.about if request.command and self.name in ABOUT_ISSUES else ()
        return Request(request.thread.id, request.key, self.name, request.by, request.at, tuple(about))


@dataclass(frozen=True, slots=True)
class LastHour:
    """The requests of the last hour by account: ``used`` counts those that change nothing. Accounts in ``warned`` were
    told why a request was not carried out."""

    used: Counter[str]
    warned: set[str]

    @classmethod
    def of(cls, requests: Sequence[ParsedRequest], run: Tools) -> LastHour:
        repeated = [request.before for request in requests]
        recent = [
            stored for stored in run.memory.state.manifest.requests_since(run.now - HOUR) if stored not in repeated
        ]
        return cls(
            Counter(stored.by.casefold() for stored in recent if stored.name not in CHANGE_REQUESTS),
            {stored.by.casefold() for stored in recent if stored.name in FAULTS and _is_replied(stored, run)},
        )

    def note(self, plan: ReplyPlan) -> None:
        account = plan.request.by.casefold()
        name = plan.request.name if plan.name == WAITING else plan.name
        self.used[account] += name not in CHANGE_REQUESTS
        if plan.name in FAULTS and plan.text:
            self.warned.add(account)


def _is_replied(stored: Request, run: Tools) -> bool:
    """Whether the request has a reply, or is to get one."""
    if stored.state == "pending":
        return True
    return run.memory.state.posts_on(stored.id).post(reply_slot(stored.comment_id)) is not None


def promised_request(plan: ReplyPlan, run: Tools) -> Request:
    """The request to store before the reply is posted."""
    if plan.text and run.permit.writes:
        return replace(plan.stored, trying_since=run.now)
    return plan.stored if plan.waits else replace(plan.stored, state="done")


def reply_draft(plan: ReplyPlan, run: Tools) -> Draft:
    """The draft of a reply. It shows its own thread too, as it quotes the request."""
    request, thread = plan.request, plan.request.thread
    asked = [comment.text_id for comment in thread.comments if comment.id == request.key]
    asked = asked or [text_id(thread.title), text_id(thread.body)]
    quotes = {*asked, *quoted_in(plan.context, run.memory.records(threads_in(plan.context)))}
    return Draft(
        thread,
        Speak(plan.context),
        reply_slot(request.key),
        plan.text,
        waits=plan.waits,
        fault=plan.fault,
        quotes=tuple(sorted(quotes)),
        shows_too=(thread.id,),
        why=plan.reason,
    )


def prepare_replies(facts: Facts, run: Tools) -> list[ReplyPlan]:
    """Plan the reply to each request. New commands are acknowledged with 👀."""
    hour = LastHour.of(facts.requests, run)
    plans: list[ReplyPlan] = []
    for request in facts.requests:
        waits = run.permit.waits or _reason_to_wait(request, plans, facts)
        plan = ReplyPlan(request, WAITING, waits=waits) if waits else _take_up(request, hour, plans, run)
        plans.append(_apply_daily_limit(plan, facts))
        hour.note(plans[-1])
    return plans


def _take_up(request: ParsedRequest, hour: LastHour, earlier: Sequence[ReplyPlan], run: Tools) -> ReplyPlan:
    if request.command and not request.before:
        react(request, "eyes", run)
    try:
        return _plan_reply(request, hour, earlier, run)
    except ForgeError as error:
        return ReplyPlan(request, WAITING, waits=str(error), fault=error)


def _reason_to_wait(request: ParsedRequest, earlier: Sequence[ReplyPlan], facts: Facts) -> str:
    if sum(bool(plan.text) for plan in earlier) >= MAX_REPLIES:
        return "the limit of replies for one run is reached; the next run continues"
    has_waited = request.before is not None and request.before.name == WAITING and request.name not in CHANGE_REQUESTS
    return DAILY_LIMIT_REACHED if has_waited and facts.new_posts_left <= 0 else ""


def _apply_daily_limit(plan: ReplyPlan, facts: Facts) -> ReplyPlan:
    """Apply the daily limit: beyond it an answer waits, and everything else gets only a reaction."""
    if not plan.text or plan.request.was_promised or facts.take_new_post():
        return plan
    if plan.name in SEARCH_REQUESTS or plan.name == "help":
        return ReplyPlan(plan.request, WAITING, waits=DAILY_LIMIT_REACHED)
    return replace(plan, text="")


def _plan_reply(request: ParsedRequest, hour: LastHour, earlier: Iterable[ReplyPlan], run: Tools) -> ReplyPlan:
    """``earlier``: the requests of this run before it. A change that is carried out gets only a reaction."""
    key, name, account = request.thread.id, request.name, request.by.casefold()
    stored_requests = [stored for stored in run.memory.requests([key]).get(key, ()) if stored != request.before]
    is_silent = is_off([*stored_requests, *(plan.stored for plan in earlier if plan.request.thread.id == key)])
    is_untold = request.command is not None and account not in hour.warned

    def refuse(name: str, why: str, *sentences: str) -> ReplyPlan:
        plan = ReplyPlan(request, name, good=False, why=why)
        return _with_text(plan, sentences if is_untold else (), run, is_silent)

    if name == FORGET:  # an administrator's request has been carried out, unless the API could not be reached
        if may_administer(request, run):
            return ReplyPlan(request, WAITING, waits="the account's permission is unknown; a later run checks it")
        return refuse("refused", "only an administrator of the repository may ask for that", "admins")
    if name in CHANGE_REQUESTS or name == WHICH:
        if not _may_change(request, run):
            return refuse("refused", "only its author or people with write access may ask for that", "refused")
        return refuse(WHICH, "", WHICH) if name == WHICH else ReplyPlan(request, name)
    limit = run.settings.commands.searches_per_hour
    if is_silent:
        return refuse("limited", SWITCHED_OFF)
    if hour.used[account] >= limit:
        return refuse("limited", f"{HOURLY_LIMIT_REACHED} (commands.searches_per_hour: {limit})", "limited")
    if request.command and not request.command.clear:
        return refuse("unclear", "", *(("unclear", *_help_sentences(request, run)) if is_untold else ()))
    if name == "help":
        return _with_text(ReplyPlan(request, name), _help_sentences(request, run), run, is_silent)
    return plan_search(request, run)


def plan_search(request: ParsedRequest, run: Tools, only: frozenset[ThreadId] = frozenset()) -> ReplyPlan:
    """Plan the reply to a request that searches memory, limited to the threads in ``only``, if any."""
    name, context = request.name, _search_memory(request, run, only)
    nothing = all(mention.missing for mention in context.mentioned)
    if request.question and nothing:
        return ReplyPlan(request, name)  # people asking their colleagues need no "nothing found"
    is_search = request.command is not None and bool(request.command.words)
    sentences = ["nothing"] if nothing and is_search else []
    return _with_text(ReplyPlan(request, name, context, good=not nothing), sentences, run, is_silent=False)


def _help_sentences(request: ParsedRequest, run: Tools) -> tuple[str, ...]:
    """The list of commands, with an example question if the settings have phrases for one."""
    commands = "help_writers" if _is_writer(request, run) else "help"
    example = run.renderer.words.say("example_question").replace("…", "X1")
    return (commands, "ask") if recall_question(example, run.settings.commands.questions) else (commands,)


def _with_text(plan: ReplyPlan, sentences: Sequence[str], run: Tools, is_silent: bool) -> ReplyPlan:
    """The plan with its reply: the ``sentences`` of these names, then the findings. ``is_silent``: no reply."""
    request = plan.request
    if is_silent or request.has_reply or not (sentences or plan.context.mentioned):
        return plan
    names = (*sentences, *(["others_left"] if request.others else []))
    renderer = run.renderer.for_thread(request.thread)
    words, limit = renderer.words, run.settings.commands.searches_per_hour
    choices = _choices(request, run) if WHICH in names else ()
    lines = [sentence(name, request.command, words, limit, choices) for name in names]
    lines += [_searched_sentence(words, run)] if "nothing" in sentences else []
    rendered = renderer.reply(
        plan.context,
        asked="" if request.by in run.settings.ignore.hidden else request.text,
        reply_to=request.key,
        now=request.at,
        searched=run.memory.issues if SEARCH_REQUESTS & {plan.name} else 0,
        answer="\n\n".join(lines),
    )
    if rendered.problem:
        run.note(rendered.problem)
    return replace(plan, text=seal(rendered.text, fingerprint(plan.context)))


def _searched_sentence(words: Words, run: Tools) -> str:
    messages = run.memory.message_count
    threads = words.number(run.memory.state.manifest.threads)
    if not messages:
        return words.say("reply_searched_threads", threads=threads)
    return words.say("reply_searched", threads=threads, messages=words.number(messages))


def may_administer(request: ParsedRequest, run: Tools) -> bool:
    """Whether an administrator of the repository asks, according to the API now."""
    return request.by != GHOST and run.forge.permission(request.by) == "admin"


def _may_change(request: ParsedRequest, run: Tools) -> bool:
    """Whether the issue's author asks, or somebody with write access according to the API now."""
    if request.by.casefold() == request.thread.author.casefold() != GHOST:
        return True
    return _is_writer(request, run)


def _is_writer(request: ParsedRequest, run: Tools) -> bool:
    return request.by != GHOST and run.forge.may_write(request.by)


def _search_memory(request: ParsedRequest, run: Tools, only: frozenset[ThreadId]) -> Context:
    service = QuestionService(run.memory, run.settings, run.address, (request.thread.id,))
    command, question = request.command, request.question
    numbers = command.about if command else ()
    if question and question.about:
        numbers = tuple(dict.fromkeys((*question.about, *numbers_in(request.comment, run.address))))[:MAX_THREADS]
    if numbers:
        fetch_missing(numbers, run, f"asked for in issue {request.thread.id}")
        return about_issue(numbers, replace(service, skip=()))
    here = request.thread.id

    def may_show(key: ThreadId) -> bool:
        return isinstance(key, int) and key != here and (not only or key in only)

    cards = MemoryCards(run.memory, may_show)
    if command:
        query = search_query(command.words, request.at, run.settings.commands.questions, strict=False)
        return about_words(query, cards, cards.read, service)
    assert question is not None
    query = SearchQuery(request.thread.title, questions=run.settings.commands.questions)
    if question.topic:
        query = search_query(question.asked, request.at, run.settings.commands.questions, strict=False)
        query = query._replace(numbers=())  # those are in `question.about`
    query = query.asking(question.topic or query.words, decides=question.decides, verb=question.verb)
    return _with_mentioned(about_words(query, cards, cards.read, service), request, service, run)


def _with_mentioned(findings: Context, request: ParsedRequest, service: QuestionService, run: Tools) -> Context:
    """The findings, preceded by the issues that the question's comment refers to, as our other comments lack those."""
    numbers = numbers_in(request.comment, run.address)[:MAX_FULL_MENTIONS]
    if not numbers:
        return findings
    fetch_missing(numbers, run, f"mentioned in issue {request.thread.id}")
    named = [mention for mention in about_issue(numbers, service).mentioned if not mention.missing]
    named_ids = {mention.id for mention in named}
    return replace(
        findings,
        mentioned=(*named, *(mention for mention in findings.mentioned if mention.id not in named_ids))[:MAX_THREADS],
    )


def react(request: ParsedRequest, content: str, run: Tools) -> None:
    """React to the command. A failure is only noted."""
    number = request.thread.id
    if not run.permit.writes or request.command is None or not isinstance(number, int):
        return
    try:
        run.comments_on(number).react(number, request.key, content)
    except ForgeError as error:
        run.note(f"The command on issue {request.thread.id} got no reaction: {error}")


MAX_SHOWN_CHARS = 80
MAX_NAME_CHARS = 20
"""Characters of the typed text compared with the names of commands."""


def sentence(name: str, command: Command | None, words: Words, per_hour: int = 0, choices: Sequence[str] = ()) -> str:
    """The text ``reply_NAME`` as Markdown, several lines for ``help``, ``help_writers`` and ``which``.

    Raises KeyError for an unknown name. ``per_hour`` is how often an account may ask; ``choices`` are
    commands to choose from.
    """
    match name:
        case "help":
            return _help_text(words, REPORTER_COMMANDS)
        case "help_writers":
            return _help_text(words, tuple(COMMAND_SYNTAX))
        case "ask":
            return words.say("reply_ask", question=f"`{words.say('example_question')}`")
        case "limited":
            return words.count("reply_limited", per_hour)
        case "unclear":
            return " ".join([words.say("reply_unclear"), *_suggest_command(command, words)])
        case "which":
            return "\n".join([words.say("reply_which"), "", *choices])
        case "nothing":
            return words.say("reply_nothing", words=inline(command.words if command else "", MAX_SHOWN_CHARS))
    return words.say(f"reply_{name}")


def _choices(request: ParsedRequest, run: Tools) -> list[str]:
    """The command with the number of each issue that our comments on the thread show, and its title."""
    posts = run.memory.state.posts_on(request.thread.id).posts
    shown = dict.fromkeys(key for post in posts for key in post.shows)
    records = run.memory.records(key for key in shown if key != request.thread.id)
    issues = [
        record
        for record in records.values()
        if isinstance(record, Thread) and isinstance(record.id, int) and not record.kind.traits.is_change
    ]
    typed = request.command.words if request.command else ""
    lines = [f"- `/precedent {typed} {issue.id}`: {inline(issue.title, TITLE_CHARS)}" for issue in issues[:MAX_CHOICES]]
    return lines or [f"- {COMMAND_SYNTAX.get(typed, '')}"]


def _help_text(words: Words, names: Sequence[str]) -> str:
    lines = (f"- {COMMAND_SYNTAX[name]}: {words.say(f'reply_help_{name}')}" for name in names)
    return "\n".join([words.say("reply_help"), "", *lines])


def _suggest_command(command: Command | None, words: Words) -> Iterator[str]:
    typed = command.line.split()[1:2] if command else []
    for name in get_close_matches("".join(typed).lower()[:MAX_NAME_CHARS], COMMAND_NAMES, n=1):
        yield words.say("reply_meant", command=COMMAND_SYNTAX.get(name, f"`/precedent {name}`"))
