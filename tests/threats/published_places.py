"""Every place in what we publish where a stranger's words can appear, each filled through the real renderer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import product

from bot.action.report import summarise
from bot.comment.render import Renderer, shipped_words
from bot.domain.answer import CondensedTurn, Context, Mention, OrganisationMatch
from bot.domain.changes import FixInfo
from bot.domain.post import OpenPull, OrganisationKey
from bot.domain.thread import Decision, Kind, Outcome, OutcomeKind
from bot.errors import UserError
from bot.pipeline.commands import sentence
from bot.pipeline.reconcile import CommentResult
from bot.reading.pages import page_key, page_url
from bot.reading.requests import Command
from bot.settings.yaml_file import load_settings, load_texts
from tests.comment.contexts import GITHUB, MENTION, NOW, OPEN, PAGE, closed_match, day, quoted_outcome, turn
from tests.comment.detector import Findings, report

REPO = "octo-org/hello-world"
ALLOWED = re.compile(
    rf"https://redirect\.github\.com/octo-org/[\w.-]+/(?:(?:issues|pull)/[0-9]+(?:#issuecomment-[0-9]+)?"
    rf"|commit/[0-9a-f]{{7,64}}|releases/tag/[^/?#&\s]*)"
    rf"|https://github\.com/{REPO}/(?:wiki|releases/tag|blob/HEAD)/[^?#\s]+(?:#[^?#\s]*)?"
)
"""Where our links may lead: threads, commits, releases and pages of this repository or of another of its owner."""

Place = Callable[[str], str]

RENDERER = Renderer(links=GITHUB)


def comment(context: Context) -> str:
    rendered = RENDERER.render(context, thread_id=1000, now=NOW, searched=1204)
    assert rendered.problem is None
    return rendered.text


def reply(question: str, answer: str = "") -> str:
    context = Context(seen_before=(closed_match(quoted_outcome(OutcomeKind.ANSWERED)),))
    rendered = RENDERER.reply(context, asked=question, reply_to=77, now=NOW, searched=9, answer=answer)
    assert rendered.problem is None
    return rendered.text


def mentioned(**fields: object) -> str:
    return comment(Context(mentioned=(replace(MENTION, **fields),)))  # type: ignore[arg-type]


def pull(**fields: object) -> str:
    return mentioned(**({"kind": Kind.PULL, "merged_at": day(3, 12)} | fields))


def past_match(outcome: Outcome, **fields: object) -> str:
    return comment(Context(seen_before=(closed_match(outcome, **fields),)))


def answered(**fields: object) -> str:
    return past_match(quoted_outcome(OutcomeKind.ANSWERED), **fields)


def fixed(**fields: object) -> str:
    return past_match(Outcome(OutcomeKind.FIXED, **fields))  # type: ignore[arg-type]


def with_fix(asked_on: str = "", **fields: object) -> str:
    fix = replace(FixInfo(7, "#30", NOW, True, "a" * 40, day(5, 1)), **fields)  # type: ignore[arg-type]
    return past_match(Outcome(OutcomeKind.FIXED, fix=fix.ref), fix=fix, asked_on=asked_on)


def elsewhere(outcome: Outcome, name: str = "octo-org/sdk", **fields: object) -> str:
    """A comment that shows an issue of another repository."""
    match = OrganisationMatch(OrganisationKey(31, 7), name, closed_match(outcome, **fields))
    return comment(Context(organisation=(match,)))


def open_match(**fields: object) -> str:
    return comment(Context(open_now=(replace(OPEN, **fields),)))  # type: ignore[arg-type]


def open_match_with(pull: OpenPull) -> str:
    return comment(Context(open_now=(OPEN,), pulls=(pull,)))


def page(**fields: object) -> str:
    return comment(Context(pages=(replace(PAGE, **fields),)))  # type: ignore[arg-type]


def page_named(source: str, name: str) -> str:
    key = page_key(source, name)
    return page(url=page_url(key, "https://github.com", REPO, name) if key else "")


def decided(text: str = "We go with PostgreSQL.", author: str = "hubot", role: str = "NONE") -> str:
    decision = Decision(text, author, role, day(3, 9), 0, 76)
    return mentioned(decisions=(decision, replace(decision, at=decision.at - timedelta(days=1))))


def summary(**fields: object) -> str:
    return summarise(**fields)  # type: ignore[arg-type]


def result_summary(**fields: object) -> str:
    return summary(results=(replace(CommentResult(7, "Title", "would say", "asked for"), **fields),))  # type: ignore[arg-type]


def refusal_summary(read: Callable[[str], object], text: str) -> str:
    """The job summary of a run whose file was refused for holding ``text``."""
    try:
        read(text)
    except UserError as error:
        return summary(problems=(str(error),))
    return summary(problems=("nothing",))


def no_hits_reply(words: str) -> str:
    return sentence("nothing", Command("search", words, (), words), shipped_words(), 5)


def conversation_by(text: str, role: str = "NONE") -> tuple[CondensedTurn, ...]:
    return (turn("octocat", NOW, text, role),) if text else ()


WORDS: dict[str, Place] = {
    "title of a mention": lambda text: mentioned(title=text),
    "title of a further mention": lambda text: comment(Context((MENTION,), (Mention(5, text, "open"),))),
    "title of a missing mention": lambda text: mentioned(missing=text, title=text),
    "title of a duplicate on the way": lambda text: comment(
        Context((replace(MENTION, chain=(41,)), Mention(41, text)))
    ),
    "title of a match": lambda text: answered(title=text),
    "title of a canonical issue": lambda text: comment(
        Context(
            (Mention(12, text, "open"),),
            seen_before=(closed_match(quoted_outcome(OutcomeKind.DUPLICATE, duplicate_of=12)),),
        )
    ),
    "title of an open match": lambda text: open_match(title=text),
    "title of an open pull request": lambda text: open_match_with(OpenPull(8, 61, text, closes=True)),
    "file of an open pull request": lambda text: open_match_with(OpenPull(8, 61, "Title", files=(text,))),
    "title of a page": lambda text: page(title=text),
    "title without a link": lambda text: answered(id=text or "x", title="Title"),
    "state": lambda text: mentioned(state=text, outcome=Outcome()),
    "state reason": lambda text: past_match(Outcome(), state_reason=text),
    "who closed it": lambda text: past_match(Outcome(), closed_by=text or "x"),
    "who ended it": lambda text: past_match(quoted_outcome(OutcomeKind.ANSWERED, author=text, role="NONE")),
    "role of who ended it": lambda text: past_match(quoted_outcome(OutcomeKind.ANSWERED, author="hubot", role=text)),
    "who decided": lambda text: decided(author=text),
    "fix that a text names": lambda text: fixed(fix=text),
    "fix, a change elsewhere": lambda text: fixed(fix=f"octo/{text}#1"),
    "fix, a commit": lambda text: fixed(fix=f"deadbeef{text}"),
    "release that a text names": lambda text: fixed(fix="#30", release=text),
    "release of the forge": lambda text: with_fix(release=text),
    "release of a pull request": lambda text: pull(outcome=Outcome(OutcomeKind.FIXED, release=text)),
    "version in the question": lambda text: with_fix(asked_on=text, release="v2"),
    "file of the fix": lambda text: with_fix(files=(text, f"{text}.py")),
    "file of a match": lambda text: answered(files=(text,)),
    "file of a mention": lambda text: mentioned(files=(text,)),
    "title of an issue elsewhere": lambda text: elsewhere(quoted_outcome(OutcomeKind.ANSWERED), title=text),
    "name of the repository elsewhere": lambda text: elsewhere(
        quoted_outcome(OutcomeKind.ANSWERED), f"octo-org/{text}"
    ),
    "fix elsewhere": lambda text: elsewhere(Outcome(OutcomeKind.FIXED, fix=text)),
    "release elsewhere": lambda text: elsewhere(Outcome(OutcomeKind.FIXED, fix="#30", release=text)),
    "who ended it elsewhere": lambda text: elsewhere(quoted_outcome(OutcomeKind.ANSWERED, author=text, role="NONE")),
    "other repository": lambda text: comment(Context((MENTION,), elsewhere=(text, f"octo/{text}#1"))),
    "name of a file of pages": lambda text: page_named("docs", f"docs/{text}.md"),
    "name of a wiki page": lambda text: page_named("wiki", text),
    "tag of a release page": lambda text: page_named("releases", text),
    "what is asked": reply,
    "words that found nothing": lambda text: reply("", no_hits_reply(text)),
    "thread in the job summary": lambda text: result_summary(title=text),
    "reason in the job summary": lambda text: result_summary(reason=text),
    "id in the job summary": lambda text: result_summary(id=text or "x"),
    "note in the job summary": lambda text: summary(notes=(text or "x",)),
    "problem in the job summary": lambda text: summary(problems=(text or "x",)),
    "refused settings": lambda text: refusal_summary(load_settings, text),
    "refused name of a setting": lambda text: refusal_summary(load_settings, f"? |-\n  {text}\n: 1"),
    "refused value of a setting": lambda text: refusal_summary(load_settings, f'mode: "{text}"'),
    "refused words": lambda text: refusal_summary(lambda content: load_texts(content, "words.yml"), text),
    "refused template": lambda text: summary(problems=(Renderer(overrides={text or "x": ""}).render(
        Context((MENTION,)), thread_id=1, now=NOW, searched=1).problem or "x",)),
    "template that fails": lambda text: summary(problems=(Renderer(overrides={"context.md.j2": "{{ " + text}).render(
        Context((MENTION,)), thread_id=1, now=NOW, searched=1).problem or "x",)),
}  # fmt: skip
"""Places for plain words: where the page has code or one of our links, the text is only its label."""

QUOTES: dict[str, Place] = {
    "summary": lambda text: mentioned(summary=text, decisions=(), outcome=Outcome()),
    "decision": decided,
    "quote of an ending": lambda text: past_match(quoted_outcome(OutcomeKind.ANSWERED, text)),
    "quote of a refusal": lambda text: past_match(quoted_outcome(OutcomeKind.NOT_PLANNED, text)),
    "quote of an ending elsewhere": lambda text: elsewhere(quoted_outcome(OutcomeKind.ANSWERED, text)),
    "why it was found elsewhere": lambda text: elsewhere(
        quoted_outcome(OutcomeKind.ANSWERED), why=(text, f"same error `{text}`")
    ),
    "excerpt of a page": lambda text: page(excerpt=text),
    "why it was found": lambda text: answered(why=(text, f"both name {text}", f"same error `{text}`")),
    "why an open one was found": lambda text: open_match(
        why=(f"words in common: `{text}`, {text}", f"same file {text}")
    ),
}
"""Places for words that may hold code spans."""

TRANSCRIPTS: dict[str, Place] = {
    "conversation of a mention": lambda text: mentioned(conversation=conversation_by(text)),
    "conversation of a match": lambda text: answered(
        conversation=conversation_by(text) + conversation_by(text, "OWNER")
    ),
    "conversation in the job summary": lambda text: result_summary(text=answered(conversation=conversation_by(text))),
    "author of a turn": lambda text: answered(conversation=(turn(text, NOW, "words"),)),
}
"""Places for whole conversations: quotations with paragraphs and fenced code."""

PLACES = {**WORDS, **QUOTES, **TRANSCRIPTS}

HARMLESS = ("plain words", "", "\0", "#31", "octo/hub#31", "deadbeef", "#", "`")
"""Words, an empty text, and what may become a link or code where a fix is named."""

UNFOLDED: dict[str, Place] = {
    "decision": lambda text: mentioned(decisions=(Decision(text, "hubot", "NONE", day(3, 9), 0, 76),), conversation=()),
}
"""What remains of a place when the escaped text takes the room of what is folded beside it."""

_INSIDE = re.compile(r"(?:.*/)?blockquote(?:/p|/p/br|/pre|/pre/code)?")


def structure(name: str, text: str, places: Mapping[str, Place] = PLACES) -> tuple[list[str], Findings]:
    """The elements published with ``text`` in the place ``name``, without those it may hold, and the findings.

    A quotation may hold code, a conversation paragraphs and fenced code.
    """
    findings = report(places[name](text))
    tags = findings.tags
    if name in QUOTES:
        tags = [tag for tag in tags if not tag.endswith("/code")]
    if name in TRANSCRIPTS:
        tags = [tag for tag in tags if not _INSIDE.fullmatch(tag)]
    return tags, findings


def find_escapes(name: str, text: str) -> list[str]:
    """How ``text`` escapes from this place when it is published; empty if it does not."""
    tags, findings = structure(name, text)
    problems = problems_in(findings)
    forms = product(HARMLESS, (False, True) if name in UNFOLDED else (False,))
    is_as_usual = any(tags == harmless_tags(name, harmless, is_unfolded) for harmless, is_unfolded in forms)
    return problems if is_as_usual else [*problems, f"structure: {tags}"]


def problems_in(findings: Findings) -> list[str]:
    """What a comment must not hold, whoever wrote it."""
    kinds = ("mentions", "references", "images", "formulas", "shortcodes")
    problems = [f"{kind}: {getattr(findings, kind)}" for kind in kinds if getattr(findings, kind)]
    return problems + [f"link: {link}" for link in findings.links if not ALLOWED.fullmatch(link)]


@cache
def harmless_tags(name: str, text: str, is_unfolded: bool) -> list[str]:
    """The elements that are published with harmless text in this place."""
    return structure(name, text, UNFOLDED if is_unfolded else PLACES)[0]
