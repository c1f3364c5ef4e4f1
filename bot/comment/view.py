"""Context → what a template sees: plain dicts and lists of Markdown that is harmless already."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bot.answer import Context, Match, Mention, PageHit
from bot.comment import wording
from bot.comment.defang import block, code_span, inline, link
from bot.comment.links import Links
from bot.model import MAINTAINER_ROLES, Decision, Kind, Outcome, OutcomeKind, ThreadId
from bot.reading.markdown import first_paragraph

TITLE_CHARS = 120
QUOTE_CHARS = 280
REASON_CHARS = 80
NAME_CHARS = 40
PATH_CHARS = 80
CONVERSATION_CHARS = 50_000
MAX_FILES = 3
MAX_REASONS = 4
MAX_DECISIONS = 5

_NUMBER = re.compile(r"#([1-9][0-9]{0,9})", re.ASCII)
_SHA = re.compile(r"[0-9a-fA-F]{7,64}", re.ASCII)

Item = dict[str, object]
Hit = Mention | Match


@dataclass(frozen=True, slots=True)
class Scene:
    """What the words about one hit depend on beside the hit: addresses, the day, and titles of other threads (raw)."""

    links: Links
    now: datetime
    titles: Mapping[ThreadId, str]


def view_of(context: Context, links: Links, now: datetime) -> Item:
    """The sections of a comment. Every value in them is a string of defanged Markdown, or a list of such."""
    scene = Scene(links, now, _titles(context))
    return {
        "mentioned": [_mention(mention, scene) for mention in context.mentioned],
        "also_mentioned": [_thread_link(m.id, m.kind, scene) for m in context.also_mentioned],
        "seen_before": [_seen_before(match, scene) for match in context.seen_before],
        "open_now": [_open_now(match, scene) for match in context.open_now],
        "pages": [_page(page, scene) for page in context.pages],
    }


def _titles(context: Context) -> dict[ThreadId, str]:
    hits: tuple[Hit, ...] = (
        *context.mentioned, *context.also_mentioned, *context.seen_before, *context.open_now,
    )  # fmt: skip
    return {hit.id: hit.title for hit in hits if hit.title}


def _mention(mention: Mention, scene: Scene) -> Item:
    if mention.missing:
        return _item(link=_name(mention.id), facts=[wording.NO_RECORD])
    quote = _ending_quote(mention, scene)
    decisions = [d for d in _newest_first(mention.decisions) if not _is_quoted(d, mention.outcome)]
    facts = [_ending(mention, scene), _chain(mention, scene)]
    return _item(
        link=_thread_link(mention.id, mention.kind, scene),
        facts=[*facts, _files(mention.files)],
        decision=_decision(decisions[0], mention, scene) if decisions else "",
        decisions=[_decision(d, mention, scene) for d in decisions[1:MAX_DECISIONS]],
        quote=quote,
        summary="" if quote or decisions else _summary(mention.summary),
        conversation=_conversation(mention.conversation),
    )


def _summary(text: str) -> str:
    """The first paragraph of a summary; code that it begins with says nothing in a line of prose."""
    told = first_paragraph(text) or text
    return f"“{inline(told, QUOTE_CHARS)}”" if told.strip() else ""


def _seen_before(match: Match, scene: Scene) -> Item:
    return _item(
        link=_thread_link(match.id, Kind.ISSUE, scene),
        facts=[_ending(match, scene), _files(match.files)],
        quote=_ending_quote(match, scene),
        why=_why(match.why),
        conversation=_conversation(match.conversation),
    )


def _open_now(match: Match, scene: Scene) -> Item:
    comments = wording.count(max(match.turn_count - 1, 0), "comment")
    facts = [f"{wording.age(match.created_at, scene.now)}, {comments}"]
    return _item(link=_thread_link(match.id, Kind.ISSUE, scene), facts=facts, why=_why(match.why))


def _page(page: PageHit, scene: Scene) -> Item:
    address = scene.links.page(page.url)
    title = page.title.strip() or page.url
    excerpt = f"“{inline(page.excerpt, QUOTE_CHARS)}”" if page.excerpt.strip() else ""
    return _item(link=_linked(title, address), quote=excerpt)


def _item(link: str, facts: list[str] | None = None, **rest: str | list[str]) -> Item:
    """One hit; what is not known of it is an empty string, so that a template may ask for any key."""
    blank: Item = dict.fromkeys(("decision", "quote", "summary", "why", "conversation"), "")
    return {**blank, "decisions": [], "link": link, "facts": [fact for fact in facts or () if fact], **rest}


def _linked(text: str, address: str) -> str:
    return link(text, address, TITLE_CHARS)


def _name(thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
    return inline(wording.numbered(thread, kind), TITLE_CHARS)


def _thread_link(thread: ThreadId, kind: Kind, scene: Scene) -> str:
    """The title, linked; where no link can be had, the title and the id."""
    title = scene.titles.get(thread, "").strip()
    address = scene.links.thread(thread, kind)
    if not title:
        return _linked(wording.numbered(thread, kind), address)
    return _linked(title, address) if address else f"{_linked(title, '')} ({_name(thread, kind)})"


def _numbered_link(thread: ThreadId, scene: Scene) -> str:
    return _linked(wording.numbered(thread), scene.links.thread(thread))


def _ending(hit: Hit, scene: Scene) -> str:
    """How the thread ended, or since when it is open; only what there is evidence for."""
    pull = "pull request, " if isinstance(hit, Mention) and hit.kind is Kind.PULL else ""
    if hit.state != "closed":
        return f"{pull}open since {wording.day(hit.created_at)}" if hit.created_at else f"{pull}open"
    when = hit.closed_at or hit.outcome.at
    return f"{pull}{_how(hit, scene)}{f', {wording.day(when)}' if when else ''}{_by_whom(hit)}"


def _how(hit: Hit, scene: Scene) -> str:
    outcome = hit.outcome
    match outcome.kind:
        case OutcomeKind.FIXED:
            return f"**fixed**{_fix(outcome, scene)}"
        case OutcomeKind.ANSWERED:
            return "**answered**"
        case OutcomeKind.WORKAROUND:
            return "closed with a **workaround**"
        case OutcomeKind.NOT_PLANNED:
            return "**not planned**"
        case OutcomeKind.STALE:
            return "closed as stale"
        case OutcomeKind.DUPLICATE if outcome.duplicate_of not in (None, hit.id):
            return f"closed as a duplicate of {_thread_link(outcome.duplicate_of, Kind.ISSUE, scene)}"
        case OutcomeKind.DUPLICATE:
            return "closed as a duplicate"
    return wording.closed(hit.state_reason)


def _fix(outcome: Outcome, scene: Scene) -> str:
    """`` by …``. A number is called a pull request only where the evidence does: it may be an issue as well."""
    fix = outcome.fix or ""
    if number := _NUMBER.fullmatch(fix):
        noun = "pull request" if any("pull" in words for words in outcome.evidence) else "change"
        thread = int(number[1])
        kind = Kind.PULL if noun == "pull request" else Kind.ISSUE
        title = scene.titles.get(thread)
        return f" by {_linked(title or f'{noun} {thread}', scene.links.thread(thread, kind))}"
    if _SHA.fullmatch(fix):
        sha = fix.lower()
        return f" by {_linked(f'commit {sha[:7]}', scene.links.commit(sha))}"
    return ""


def _by_whom(hit: Hit) -> str:
    if isinstance(hit, Match) and hit.closed_by and hit.outcome.kind is OutcomeKind.UNKNOWN:
        return f", by {inline(hit.closed_by, NAME_CHARS)}"
    return ""


def _chain(mention: Mention, scene: Scene) -> str:
    if not mention.chain:
        return ""
    return f"mentioned as {_numbered_link(mention.chain[0], scene)}, which was closed in favour of this one"


def _ending_quote(hit: Hit, scene: Scene) -> str:
    outcome = hit.outcome
    if hit.state != "closed" or not outcome.quote.strip():
        return ""
    said = _said(outcome.author, outcome.role, outcome.at, scene.links.comment(hit.id, outcome.comment_id))
    return f"“{inline(outcome.quote, QUOTE_CHARS)}”{said}"


def _decision(decision: Decision, mention: Mention, scene: Scene) -> str:
    address = scene.links.comment(mention.id, decision.comment_id, mention.kind)
    return f"“{inline(decision.text, QUOTE_CHARS)}”{_said(decision.author, decision.role, decision.at, address)}"


def _said(author: str | None, role: str | None, at: datetime | None, address: str) -> str:
    """`` (maintainer, 3 May 2025)``, linked to the comment; nothing where not even the author is known."""
    if author is None and role is None:
        return ""
    words = wording.speaker(author, role)[:NAME_CHARS] + (f", {wording.day(at)}" if at else "")
    return f" ({_linked(words, address)})"


def _is_quoted(decision: Decision, outcome: Outcome) -> bool:
    """Whether the ending, which is quoted anyway, says the same."""
    return " ".join(decision.text.split()) in " ".join(outcome.quote.split())


def _newest_first(decisions: tuple[Decision, ...]) -> list[Decision]:
    """The decision that stands comes first: the maintainers' before others', the newest before older ones."""
    return sorted(decisions, key=lambda d: (d.role in MAINTAINER_ROLES, d.at), reverse=True)


def _files(paths: tuple[str, ...]) -> str:
    return ", ".join(code_span(path, PATH_CHARS) for path in paths[:MAX_FILES])


def _why(reasons: tuple[str, ...]) -> str:
    return ", ".join(_reason(reason) for reason in reasons[:MAX_REASONS])


def _reason(reason: str) -> str:
    """A reason in plain words; what it puts between backticks stays code."""
    parts = reason.split("`")
    if len(parts) % 2 == 0:
        return inline(reason, REASON_CHARS)
    shown = ""
    for index, part in enumerate(parts[:9]):
        if part.strip():
            is_code = index % 2 == 1
            space = " " if shown and (is_code or not part.startswith(",")) else ""
            shown += space + (code_span if is_code else _inner)(part, REASON_CHARS)
    return shown


def _inner(text: str, limit: int) -> str:
    return inline(text.strip(), limit)


def _conversation(text: str) -> str:
    """A quotation, indented to stand inside a list item."""
    if not text.strip():
        return ""
    return "\n".join(f"  > {line}".rstrip() for line in block(text.strip(), CONVERSATION_CHARS).split("\n"))
