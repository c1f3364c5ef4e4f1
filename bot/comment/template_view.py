"""Turns a context into the values that templates see: dicts and lists of harmless Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

from bot.comment.catalogue import Words
from bot.comment.clean_text import account
from bot.comment.defang import block, code_span, inline
from bot.comment.links import CommentLinks
from bot.comment.outcome_text import (
    ELSEWHERE_CHARS,
    NAME_CHARS,
    CommentPhrases,
    Hit,
    ending,
    ending_quote,
    first_release,
    open_pull,
    reopening,
    shown_files,
    version,
    why,
)
from bot.domain.answer import CondensedTurn, Context, Match, Mention, OrganisationMatch, PageHit
from bot.domain.card import number_of
from bot.domain.thread import MAINTAINER_ROLES, Decision, Outcome, ThreadId
from bot.reading.markdown import LEFT_OUT, first_paragraph

FOLDED_CHARS = 2_000
"""Most characters of the Markdown of a conversation below "How it went"."""

LEAST_ROOM = 150
"""With fewer characters a turn says nothing."""

_QUOTED = "  > "
_COMMENT = re.compile(r"#(?:issue|discussion)comment-(\d{1,20})", re.ASCII)
MAX_DECISIONS = 5
MAX_ELSEWHERE = 5
MAX_OTHERS = 2

Item = dict[str, object]


def view_of(context: Context, links: CommentLinks, now: datetime, words: Words) -> Item:
    """The sections of a comment. Every value in them is a string of defanged Markdown, or a list of those."""
    scene = CommentPhrases(links, now, _titles(context), words, {pull.about: pull for pull in context.pulls})
    return {
        "mentioned": [_mention(mention, scene) for mention in context.mentioned],
        "also_mentioned": [scene.thread(m.id, m.kind) for m in context.also_mentioned],
        "elsewhere": _elsewhere(context.elsewhere, words),
        "seen_before": [_seen_before(match, scene) for match in context.seen_before],
        "open_now": [_open_now(match, scene) for match in context.open_now],
        "organisation": [_other(other, scene) for other in context.organisation[:MAX_OTHERS]],
        "pages": [_page(page, scene) for page in context.pages],
        "possible": [_possible(match, scene) for match in context.possible],
    }


def _titles(context: Context) -> Mapping[ThreadId, str]:
    hits: tuple[Hit, ...] = (
        *context.mentioned, *context.also_mentioned, *context.seen_before, *context.open_now, *context.possible,
    )  # fmt: skip
    return {hit.id: hit.title for hit in hits if hit.title}


def _elsewhere(names: tuple[str, ...], words: Words) -> list[str]:
    """Threads of other repositories as code, in which GitHub sees no reference."""
    shown = [code for name in names[:MAX_ELSEWHERE] if (code := code_span(name, ELSEWHERE_CHARS))]
    left = len(names) - MAX_ELSEWHERE
    return [*shown, words.say("more", count=words.number(left))] if left > 0 else shown


def _mention(mention: Mention, scene: CommentPhrases) -> Item:
    if mention.missing:
        return _item(link=scene.name(mention.id), facts=[scene.words.texts["no_record"]])
    quote = ending_quote(mention, scene)
    decisions = [d for d in _newest_first(mention.decisions) if not _is_quoted(d, mention.outcome)]
    folded = [_decision(d, mention, scene) for d in decisions[1:MAX_DECISIONS]]
    passage = _passage(mention, scene)
    return _item(
        link=scene.thread(mention.id, mention.kind),
        open_pull=open_pull(mention, scene),
        facts=[ending(mention, scene), first_release(mention, scene), _chain(mention, scene)],
        **_files(mention, scene),
        decision=_decision(decisions[0], mention, scene) if decisions else "",
        decisions=folded,
        quote=quote,
        passage=passage,
        summary=""
        if quote or decisions or passage
        else scene.quote(first_paragraph(mention.summary) or mention.summary),
        conversation=_conversation(mention.conversation, scene, FOLDED_CHARS - sum(map(len, folded))),
    )


def _seen_before(match: Match, scene: CommentPhrases) -> Item:
    return _item(
        link=scene.thread(match.id, match.kind),
        open_pull=open_pull(match, scene),
        facts=[ending(match, scene), version(match, scene)],
        **_files(match, scene),
        quote=ending_quote(match, scene),
        why=why(match.why, sum(shown_files(match), ()), scene),
        conversation=_conversation(match.conversation, scene),
    )


def _open_now(match: Match, scene: CommentPhrases) -> Item:
    comments = max(match.turn_count - 1, 0)
    count = scene.words.count("comments", comments) if comments else scene.words.texts["comments_none"]
    facts = [f"{scene.words.age(match.created_at, scene.now)}, {count}", reopening(match, scene)]
    link = scene.thread(match.id, match.kind)
    return _item(link=link, open_pull=open_pull(match, scene), facts=facts, why=why(match.why, (), scene))


def _possible(match: Match, scene: CommentPhrases) -> Item:
    words = scene.words
    closed = words.closed(match.state_reason)
    fact = words.say("dated", what=closed, day=words.day(match.closed_at)) if match.closed_at else closed
    is_open = match.state == "open"
    return _item(
        link=scene.thread(match.id, match.kind),
        facts=[words.texts["still_open"] if is_open else fact],
        why=why(match.why, (), scene),
    )


def _other(other: OrganisationMatch, scene: CommentPhrases) -> Item:
    """A thread of another repository, with links into that one; our titles and pull requests do not belong there.

    Without the host for links that leave no backlink there are no links at all.
    """
    match, links = other.match, scene.links
    repository = other.repository if links.redirect else ""
    there = replace(scene, links=replace(links, repo=repository), titles={match.id: match.title}, pulls={})
    what, where = ending(match, there), code_span(other.repository, ELSEWHERE_CHARS)
    return _item(
        link=there.thread(match.id, match.kind),
        facts=[scene.words.say("in_repository", repository=where, what=what) if where else what],
        quote=ending_quote(match, there),
        why=why(match.why, (), there),
    )


def _page(page: PageHit, scene: CommentPhrases) -> Item:
    title = page.title.strip() or page.url
    return _item(link=scene.linked(title, scene.links.page(page.url)), quote=scene.quote(page.excerpt))


def _files(hit: Hit, scene: CommentPhrases) -> dict[str, str]:
    changed, named = shown_files(hit)
    return {"changed": scene.files(changed), "files": scene.files(named)}


def _item(link: str, facts: list[str] | None = None, **rest: str | list[str]) -> Item:
    """One hit. Unknown values are empty strings, so that a template may use any key."""
    blank: Item = dict.fromkeys(
        ("open_pull", "decision", "quote", "passage", "summary", "why", "changed", "files", "conversation"), ""
    )
    return {**blank, "decisions": [], "link": link, "facts": [fact for fact in facts or () if fact], **rest}


def _chain(mention: Mention, scene: CommentPhrases) -> str:
    if not mention.chain:
        return ""
    threads = ", ".join(scene.numbered(thread) for thread in mention.chain)
    return scene.words.say("chain_one" if len(mention.chain) == 1 else "chain_many", threads=threads)


def _decision(decision: Decision, mention: Mention, scene: CommentPhrases) -> str:
    address = scene.links.comment(mention.id, decision.comment_id, mention.kind)
    quote, said = scene.quote(decision.text), scene.said(decision.author, decision.role, decision.at, address)
    if not (decision.superseded_by and quote):
        return f"{quote}{said}"
    return f"~~{quote}~~{said}, {scene.words.say('superseded', later=_later(decision.superseded_by, mention, scene))}"


def _later(ref: str, mention: Mention, scene: CommentPhrases) -> str:
    """What supersedes a decision of ``mention``, linked: another thread, or a later comment of this one."""
    if number := number_of(ref):
        return scene.numbered(number)
    found = _COMMENT.fullmatch(ref)
    address = scene.links.comment(mention.id, int(found[1]), mention.kind) if found else ""
    return scene.linked(scene.words.texts["later_comment"], address)


def _passage(mention: Mention, scene: CommentPhrases) -> str:
    """What was said about the words, if the ending and the decisions do not quote it anyway."""
    passage = mention.passage
    if passage is None or not passage.text:
        return ""
    shown = (mention.outcome.quote, *(decision.text for decision in mention.decisions))
    if any(_holds(text, passage.text) or _holds(passage.text, text) for text in shown if text):
        return ""
    address = scene.links.comment(passage.thread, passage.comment_id, mention.kind)
    return f"{scene.quote(passage.text)}{scene.said(passage.author, passage.role, passage.at, address)}"


def _holds(text: str, part: str) -> bool:
    return " ".join(part.split()) in " ".join(text.split())


def _is_quoted(decision: Decision, outcome: Outcome) -> bool:
    return _holds(outcome.quote, decision.text)


def _newest_first(decisions: tuple[Decision, ...]) -> list[Decision]:
    """The decisions: those that stand before superseded ones, maintainers' before others', newer before older."""
    return sorted(decisions, key=lambda d: (not d.superseded_by, d.role in MAINTAINER_ROLES, d.at), reverse=True)


def _conversation(turns: Sequence[CondensedTurn], scene: CommentPhrases, room: int = FOLDED_CHARS) -> str:
    """A quotation, indented to stand inside a list item: for each turn a line of ours, and below it the text.

    The text is quoted twice and our lines once, so that no text can look like one of them.
    """
    chosen, parts = _chosen(turns, scene, room), list[str]()
    for before, at in pairwise((-1, *chosen)):
        parts += [LEFT_OUT.strip()] * (at - before > 1) + [chosen[at]]
    lines = "\n\n".join((*(part.rstrip("\n") for part in parts[:-1]), *parts[-1:])).split("\n")
    return "\n".join(f"{_QUOTED}{line}".rstrip() for line in lines) if parts else ""


def _chosen(turns: Sequence[CondensedTurn], scene: CommentPhrases, room: int) -> dict[int, str]:
    """The opening and the latest turns that fit into ``room``, as Markdown by their places."""
    chosen: dict[int, str] = {}
    for at in (0, *range(len(turns) - 1, 0, -1)) if turns else ():
        shown = _fitting(turns[at], room // 3 if at == 0 and len(turns) > 1 else room, scene)
        if shown:
            chosen[at] = shown
            room -= _length(shown)
        if room < LEAST_ROOM or not (shown or at == 0):
            break
    return dict(sorted(chosen.items()))


def _fitting(turn: CondensedTurn, room: int, scene: CommentPhrases) -> str:
    """As much of the turn as fits as Markdown, which can be longer than the text."""
    limits = (room, room * 2 // 3, room // 3)
    return next((shown for limit in limits if _length(shown := _turn(turn, limit, scene)) <= room), "")


def _length(turn: str) -> int:
    """Characters of a turn in its place, with the prefixes of its lines and the text between turns."""
    return len(turn) + len(_QUOTED) * (turn.count("\n") + 3) + 2 * len(LEFT_OUT)


def _turn(turn: CondensedTurn, limit: int, scene: CommentPhrases) -> str:
    role = f" ({scene.words.texts['maintainer']})" if turn.by_maintainer else ""
    said = block(turn.text, limit)
    quoted = "".join(f"\n> {line}".rstrip() for line in said.strip("\n").split("\n")) if said else ""
    end = "\n" if said.endswith("\n") else ""
    return f"**{inline(account(turn.author), NAME_CHARS)}**{role}, {turn.at:%Y-%m-%d}:{quoted}{end}"
