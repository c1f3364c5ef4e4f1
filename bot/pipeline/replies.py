"""Works out the reply to each request: whether it is allowed, what memory knows, and the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches

from bot.comment.catalogue import COMMAND_SYNTAX, Words
from bot.comment.defang import inline
from bot.comment.marker import fingerprint, seal
from bot.domain.answer import Context
from bot.domain.changes import (
    CHANGE_REQUESTS,
    FORGET,
    JUDGEMENT_REQUESTS,
    Request,
    is_off,
    judgements,
    wrong_matches_for,
)
from bot.domain.thread import GHOST, ThreadId
from bot.github.errors import ForgeError
from bot.pipeline.fetch import fetch_missing
from bot.pipeline.outbox import SWITCHED_OFF
from bot.pipeline.requests import WAITING, ParsedRequest
from bot.pipeline.run_context import DAILY_LIMIT_REACHED, RunContext
from bot.questions.issue import MAX_THREADS, QuestionService, about_issue, decisions_about, search_words
from bot.reading.requests import COMMAND_NAMES, Command, recall_question
from bot.recall.mentions import numbers_in

MAX_REPLIES = 10
"""Maximum number of replies that one run writes. The next run takes the others."""

HOUR = timedelta(hours=1)
WRITE_PERMISSIONS = frozenset({"admin", "maintain", "write"})
"""Permissions that include write access: https://docs.github.com/rest/collaborators/collaborators"""

DONE_REASONS = {
    "search": "asked to search",
    "context": "asked about an issue",
    "recall": "asked what was decided",
    "help": "asked for the commands",
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

MAX_CONFIRMED = 3
"""Commands per account and hour that change something and get a reply; any further ones get only a reaction."""

HOURLY_LIMIT_REACHED = "the account has used up its questions for this hour"

ABOUT_ISSUES = JUDGEMENT_REQUESTS | {"wrong"}
"""Changes that are about other issues."""

SEARCH_REQUESTS = frozenset({"search", "context", "recall"})
"""Requests that search memory."""


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
    """The requests of the last hour by account: ``used`` counts those that change nothing, ``changed`` the others.
    Accounts in ``warned`` were told that they ask too often."""

    used: Counter[str]
    changed: Counter[str]
    warned: set[str]

    @classmethod
    def of(cls, requests: Sequence[ParsedRequest], run: RunContext) -> LastHour:
        repeated = [request.before for request in requests]
        recent = [
            stored for stored in run.memory.state.manifest.requests_since(run.now - HOUR) if stored not in repeated
        ]
        return cls(
            Counter(stored.by.casefold() for stored in recent if stored.name not in CHANGE_REQUESTS),
            Counter(stored.by.casefold() for stored in recent if stored.name in CHANGE_REQUESTS),
            {
                stored.by.casefold()
                for stored in recent
                if stored.name == "limited" and (stored.reply_id is not None or stored.state == "pending")
            },
        )

    def note(self, plan: ReplyPlan) -> None:
        account = plan.request.by.casefold()
        name = plan.request.name if plan.name == WAITING else plan.name
        (self.changed if name in CHANGE_REQUESTS else self.used)[account] += 1
        if plan.name == "limited" and plan.text:
            self.warned.add(account)


def prepare_replies(requests: Sequence[ParsedRequest], run: RunContext) -> list[ReplyPlan]:
    """Plan the reply to each request. New commands are acknowledged with 👀."""
    hour = LastHour.of(requests, run)
    plans: list[ReplyPlan] = []
    for request in requests:
        waits = run.muted or _reason_to_wait(request, plans, run)
        plans.append(ReplyPlan(request, WAITING, waits=waits) if waits else _take_up(request, hour, plans, run))
        hour.note(plans[-1])
    return plans


def _take_up(request: ParsedRequest, hour: LastHour, earlier: Sequence[ReplyPlan], run: RunContext) -> ReplyPlan:
    if request.command and not request.before:
        react(request, "eyes", run)
    try:
        return _apply_daily_limit(_plan_reply(request, hour, earlier, run), earlier, run)
    except ForgeError as error:
        return ReplyPlan(request, WAITING, waits=str(error), fault=error)


def _reason_to_wait(request: ParsedRequest, earlier: Sequence[ReplyPlan], run: RunContext) -> str:
    if sum(bool(plan.text) for plan in earlier) >= MAX_REPLIES:
        return "the limit of replies for one run is reached; the next run continues"
    has_waited = request.before is not None and request.before.name == WAITING and request.name not in CHANGE_REQUESTS
    return DAILY_LIMIT_REACHED if has_waited and not _is_within_limit(earlier, run) else ""


def _is_within_limit(plans: Iterable[ReplyPlan], run: RunContext) -> bool:
    return run.may_write(sum(bool(plan.text) and not plan.request.was_promised for plan in plans))


def _apply_daily_limit(plan: ReplyPlan, earlier: Iterable[ReplyPlan], run: RunContext) -> ReplyPlan:
    """Apply the daily limit: beyond it an answer waits, and everything else gets only a reaction."""
    if not plan.text or plan.request.was_promised or _is_within_limit(earlier, run):
        return plan
    if plan.name in SEARCH_REQUESTS or plan.name == "help":
        return ReplyPlan(plan.request, WAITING, waits=DAILY_LIMIT_REACHED)
    return replace(plan, text="")


def without_idle(plans: Iterable[ReplyPlan], idle: Collection[ThreadId]) -> list[ReplyPlan]:
    """The plans without replies to ``refresh`` where the answer did not change: a reaction is enough."""
    return [
        replace(plan, text="") if plan.name == "refresh" and plan.request.thread.id in idle else plan for plan in plans
    ]


def _plan_reply(request: ParsedRequest, hour: LastHour, earlier: Iterable[ReplyPlan], run: RunContext) -> ReplyPlan:
    """``earlier``: the requests of this run before it."""
    key, name, used = request.thread.id, request.name, hour.used[request.by.casefold()]
    stored_requests = [stored for stored in run.memory.requests([key]).get(key, ()) if stored != request.before]
    stored_requests += [plan.stored for plan in earlier if plan.request.thread.id == key]
    is_silent, limit = is_off(stored_requests), run.settings.commands.searches_per_hour
    if name == FORGET:  # an administrator's request has been carried out, unless the API could not be reached
        if may_administer(request, run):
            return ReplyPlan(request, WAITING, waits="the account's permission is unknown; a later run checks it")
        sentences = ["admins"] if used < limit else []
        why = "only an administrator of the repository may ask for that"
        return _with_text(ReplyPlan(request, "refused", good=False, why=why), sentences, run, is_silent)
    if name in CHANGE_REQUESTS:
        if not _may_change(request, run):
            sentences = ["refused"] if used < limit else []
            why = "only its author or people with write access may ask for that"
            return _with_text(ReplyPlan(request, "refused", good=False, why=why), sentences, run, is_silent)
        is_confirmed = _has_effect(request, stored_requests) and hour.changed[request.by.casefold()] < MAX_CONFIRMED
        return _with_text(ReplyPlan(request, name), [name] if is_confirmed else [], run, is_silent and name != "on")
    if used >= limit or is_silent:
        sentences = ["limited"] if request.command and request.by.casefold() not in hour.warned else []
        why = SWITCHED_OFF if is_silent else f"{HOURLY_LIMIT_REACHED} (commands.searches_per_hour: {limit})"
        return _with_text(ReplyPlan(request, "limited", good=False, why=why), sentences, run, is_silent)
    return _plan_help(request, run) if name == "help" else plan_search(request, run)


def plan_search(request: ParsedRequest, run: RunContext, only: frozenset[ThreadId] = frozenset()) -> ReplyPlan:
    """Plan the reply to a request that searches memory, limited to the threads in ``only``, if any."""
    name, context = request.name, _search_memory(request, run, only)
    nothing = all(mention.missing for mention in context.mentioned)
    if request.question and nothing:
        return ReplyPlan(request, name)  # people asking their colleagues need no "nothing found"
    is_search = request.command is not None and bool(request.command.words)
    sentences = ["nothing"] if nothing and is_search else []
    return _with_text(ReplyPlan(request, name, context, good=not nothing), sentences, run, is_silent=False)


def _has_effect(request: ParsedRequest, stored_requests: Sequence[Request]) -> bool:
    """Whether the command changes anything after the ``stored_requests``. ``refresh`` always may."""
    match request.name:
        case "off" | "on":
            return is_off(stored_requests) is (request.name == "on")
        case "wrong":
            return not wrong_matches_for(stored_requests).issuperset(request.command.about if request.command else ())
        case "same" | "different" | "original":
            verdicts = judgements(stored_requests)
            about = request.command.about if request.command else ()
            return not all(key in verdicts and verdicts[key].name == request.name for key in about)
    return True


def _plan_help(request: ParsedRequest, run: RunContext) -> ReplyPlan:
    """The list of commands, with an example question if the settings have phrases for one."""
    is_clear = request.command is not None and request.command.clear
    why = "" if is_clear else "the request was not understood"
    sentences = [*([] if is_clear else ["unclear"]), "help"]
    if recall_question(EXAMPLE_QUESTION.replace("…", "this topic"), run.settings.recall_phrases):
        sentences.append("ask")
    return _with_text(ReplyPlan(request, "help", good=is_clear, why=why), sentences, run, is_silent=False)


def _with_text(plan: ReplyPlan, sentences: Sequence[str], run: RunContext, is_silent: bool) -> ReplyPlan:
    """The plan with its reply: the ``sentences`` of these names, then the findings. ``is_silent``: no reply."""
    request = plan.request
    if is_silent or request.has_reply or not (sentences or plan.context.mentioned):
        return plan
    names = (*sentences, *(["others_left"] if request.others else []))
    limit = run.settings.commands.searches_per_hour
    lines = [sentence(name, request.command, run.renderer.words, limit) for name in names]
    lines += [_searched_sentence(run)] if "nothing" in sentences else []
    is_unquoted = request.by.casefold() in {login.casefold() for login in run.settings.ignore.people}
    rendered = run.renderer.reply(
        plan.context,
        asked="" if is_unquoted else request.text,
        reply_to=request.key,
        now=request.at,
        searched=run.memory.issues if SEARCH_REQUESTS & {plan.name} else 0,
        answer="\n\n".join(lines),
    )
    if rendered.problem:
        run.note(rendered.problem)
    return replace(plan, text=seal(rendered.text, fingerprint(plan.context)))


def _searched_sentence(run: RunContext) -> str:
    words, messages = run.renderer.words, run.memory.message_count
    threads = words.number(run.memory.state.manifest.threads)
    if not messages:
        return words.say("reply_searched_threads", threads=threads)
    return words.say("reply_searched", threads=threads, messages=words.number(messages))


def may_administer(request: ParsedRequest, run: RunContext) -> bool:
    """Whether an administrator of the repository asks, according to the API now."""
    return request.by != GHOST and run.forge.permission(request.by) == "admin"


def _may_change(request: ParsedRequest, run: RunContext) -> bool:
    """Whether the issue's author asks, or somebody with write access according to the API now.

    ``author_association`` does not count: it calls a private member of the organisation a contributor.
    """
    if request.by.casefold() == request.thread.author.casefold() != GHOST:
        return True
    return request.by != GHOST and run.forge.permission(request.by) in WRITE_PERMISSIONS


def _search_memory(request: ParsedRequest, run: RunContext, only: frozenset[ThreadId]) -> Context:
    service = QuestionService(run.memory, run.settings, run.address, (request.thread.id,), only, request.at)
    command, question = request.command, request.question
    numbers = command.about if command else ()
    if question and question.about:
        numbers = tuple(dict.fromkeys((*question.about, *numbers_in(request.comment, run.address))))[:MAX_THREADS]
    if numbers:
        fetch_missing(numbers, run, f"asked for in issue {request.thread.id}")
        return about_issue(numbers, replace(service, skip=()))
    if command:
        return search_words(command.words, service)
    assert question is not None
    topic = question.topic or request.thread.title
    findings = decisions_about(topic, service) if question.decides else search_words(topic, service, is_question=True)
    return _with_mentioned(findings, request, service, run)


def _with_mentioned(findings: Context, request: ParsedRequest, service: QuestionService, run: RunContext) -> Context:
    """The findings, preceded by the issues that the question's comment refers to, as our other comments lack those."""
    numbers = numbers_in(request.comment, run.address)[: run.settings.references.max]
    if not numbers:
        return findings
    fetch_missing(numbers, run, f"mentioned in issue {request.thread.id}")
    named = [mention for mention in about_issue(numbers, service).mentioned if not mention.missing]
    named_ids = {mention.id for mention in named}
    return replace(
        findings,
        mentioned=(*named, *(mention for mention in findings.mentioned if mention.id not in named_ids))[:MAX_THREADS],
    )


def react(request: ParsedRequest, content: str, run: RunContext) -> None:
    """React to the command. A failure is only noted. Not in a discussion, where the reply has to be enough."""
    if (
        run.settings.mode != "comment"
        or request.command is None
        or run.comments_on(request.thread.id) is run.discussion_comments
    ):
        return
    try:
        run.forge.react(request.key, content)
    except ForgeError as error:
        run.note(f"The command on issue {request.thread.id} got no reaction: {error}")


MAX_SHOWN_CHARS = 80
MAX_NAME_CHARS = 20
"""Characters of the typed text compared with the names of commands."""

EXAMPLE_QUESTION = "What did we decide about …?"
"""The example question in the help reply."""


def sentence(name: str, command: Command | None, words: Words, per_hour: int) -> str:
    """The text ``reply_NAME`` as Markdown, several lines for ``help``. Raises KeyError for an unknown name.

    ``per_hour`` is how often an account may ask.
    """
    match name:
        case "help":
            return _help_text(words)
        case "ask":
            return words.say("reply_ask", question=f"`{EXAMPLE_QUESTION}`")
        case "limited":
            return words.count("reply_limited", per_hour)
        case "off":
            return words.say("reply_off", command=COMMAND_SYNTAX["on"])
        case "unclear":
            return " ".join([words.say("reply_unclear"), *_suggest_command(command, words)])
        case "wrong" | "same" | "different":
            return _sentence_about(f"reply_{name}", command.about if command else (), words)
        case "original":
            return words.say("reply_original", number=str((command.about if command else ())[0]))
        case "nothing":
            return words.say("reply_nothing", words=inline(command.words if command else "", MAX_SHOWN_CHARS))
    return words.say(f"reply_{name}")


def _help_text(words: Words) -> str:
    lines = (f"- {command}: {words.say(f'reply_help_{name}')}" for name, command in COMMAND_SYNTAX.items())
    return "\n".join([words.say("reply_help"), "", *lines])


def _suggest_command(command: Command | None, words: Words) -> Iterator[str]:
    typed = command.line.split()[1:2] if command else []
    for name in get_close_matches("".join(typed).lower()[:MAX_NAME_CHARS], COMMAND_NAMES, n=1):
        yield words.say("reply_meant", command=COMMAND_SYNTAX.get(name, f"`/precedent {name}`"))


def _sentence_about(name: str, about: tuple[int, ...], words: Words) -> str:
    """The text ``NAME_one`` or ``NAME_many`` with the numbers of these issues."""
    *others, last = [str(number) for number in about] or [""]
    if not others:
        return words.say(f"{name}_one", number=last)
    return words.say(f"{name}_many", numbers=words.say("and", first=", ".join(others), second=last))
