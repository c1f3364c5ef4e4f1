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
from bot.comment.first_line import first_line
from bot.comment.links import CommentLinks
from bot.comment.outcome_text import (
    EXTERNAL_REF_CHARS,
    NAME_CHARS,
    CommentPhrases,
    Hit,
    change_link,
    closing_day,
    ending,
    ending_quote,
    first_release,
    open_pull,
    reopening,
    shown_files,
    why,
)
from bot.domain.answer import CondensedTurn, Context, Match, Mention, OrganisationMatch, PageHit
from bot.domain.change_state import number_of
from bot.domain.reason import is_near, is_told
from bot.domain.thread import MAINTAINER_ROLES, Decision, Outcome, ThreadId
from bot.reading.markdown import OMISSION_MARK

MAX_FOLDED_CHARS = 2_000
"""Most characters of a conversation's Markdown below "How it went"."""

MIN_TURN_CHARS = 150
"""A turn shorter than this many characters is not worth quoting."""

_QUOTE_PREFIX = "  > "
_COMMENT_FRAGMENT = re.compile(r"#(?:issue|discussion)comment-(\d{1,20})", re.ASCII)
MAX_DECISIONS = 5
MAX_ORGANISATION_HITS = 2

Item = dict[str, object]


def view_of(context: Context, links: CommentLinks, now: datetime, words: Words) -> Item:
    """The sections of a comment. Every value in them is a string of defanged Markdown, or a list of those."""
    phrases = CommentPhrases(links, now, _titles(context), words, {pull.about: pull for pull in context.pulls})
    first = first_line(context, phrases)
    return {
        "first_line": first,
        "mentioned": [_mention(mention, phrases) for mention in context.mentioned],
        "also_mentioned": [_in_brief(mention, phrases) for mention in context.also_mentioned],
        "seen_before": [_seen_before(match, phrases, first) for match in context.seen_before],
        "has_near": any(is_near(match.similarity, match.why) for match in context.seen_before),
        "open_now": [_open_now(match, phrases) for match in context.open_now],
        "organisation": [_organisation_match(other, phrases) for other in context.organisation[:MAX_ORGANISATION_HITS]],
        "pages": [_page(page, phrases) for page in context.pages],
    }


def _titles(context: Context) -> Mapping[ThreadId, str]:
    hits: tuple[Hit, ...] = (
        *context.mentioned, *context.also_mentioned, *context.seen_before, *context.open_now,
    )  # fmt: skip
    return {hit.id: hit.title for hit in hits if hit.title}


def _mention(mention: Mention, phrases: CommentPhrases) -> Item:
    if mention.missing:
        return _item(link=phrases.name(mention.id), facts=[phrases.words.texts["no_record"]])
    quote = ending_quote(mention, phrases)
    decisions = [d for d in _newest_first(mention.decisions) if not _is_quoted(d, mention.outcome)]
    folded = [_decision(d, mention, phrases) for d in decisions[1:MAX_DECISIONS]]
    passage = _passage(mention, phrases)
    return _item(
        link=phrases.numbered(mention.id, mention.kind),
        open_pull=open_pull(mention, phrases),
        facts=[ending(mention, phrases), first_release(mention, phrases), _chain(mention, phrases)],
        decision=_decision(decisions[0], mention, phrases) if decisions else "",
        quote=quote,
        passage=passage,
        **_folded(mention, phrases, folded),
    )


def _in_brief(mention: Mention, phrases: CommentPhrases) -> str:
    """The thread and how it ended, in a few words."""
    name = phrases.name(mention.id) if mention.missing else phrases.thread(mention.id, mention.kind)
    what = phrases.words.texts["no_record"] if mention.missing else ending(mention, phrases)
    return phrases.words.say("in_brief", thread=name, what=what)


def _seen_before(match: Match, phrases: CommentPhrases, first: str) -> Item:
    """``first``: the first line of the comment. What it quotes is not repeated."""
    told, quote = ending(match, phrases), ending_quote(match, phrases)
    tells = is_told(match.similarity, match.why)
    return _item(
        link=phrases.numbered(match.id, match.kind),
        open_pull=open_pull(match, phrases),
        facts=[told if tells else closing_day(match, phrases)],
        quote=quote if tells and quote not in first else "",
        why=why(match.why, phrases),
        **_folded(match, phrases, ended="" if tells else " ".join(filter(None, (told, quote)))),
    )


def _open_now(match: Match, phrases: CommentPhrases) -> Item:
    comments = max(match.turn_count - 1, 0)
    count = phrases.words.count("comments", comments) if comments else phrases.words.texts["comments_none"]
    facts = [phrases.words.join((phrases.words.age(match.created_at, phrases.now), count)), reopening(match, phrases)]
    link = phrases.numbered(match.id, match.kind)
    return _item(link=link, open_pull=open_pull(match, phrases), facts=facts, why=why(match.why, phrases))


def _organisation_match(other: OrganisationMatch, phrases: CommentPhrases) -> Item:
    """A thread of another repository, with links into that repository, where our titles and pull requests do not apply.

    Without the host for links that leave no backlink, nothing is linked.
    """
    match, links = other.match, phrases.links
    repository = other.repository if links.redirect else ""
    other_phrases = replace(phrases, links=replace(links, repo=repository), titles={match.id: match.title}, pulls={})
    what, where = ending(match, other_phrases), code_span(other.repository, EXTERNAL_REF_CHARS)
    return _item(
        link=other_phrases.thread(match.id, match.kind),
        facts=[phrases.words.say("in_repository", repository=where, what=what) if where else what],
        quote=ending_quote(match, other_phrases),
        why=why(match.why, other_phrases),
    )


def _page(page: PageHit, phrases: CommentPhrases) -> Item:
    title = page.title.strip() or page.url
    return _item(link=phrases.link_title(title, phrases.links.page(page.url)), quote=phrases.quote(page.excerpt))


def _folded(
    hit: Hit, phrases: CommentPhrases, decisions: Sequence[str] = (), ended: str = ""
) -> dict[str, str | list[str]]:
    """What is folded, and the line that unfolds it. ``ended``: how it ended, if its line does not say it."""
    changed, named = map(phrases.files, shown_files(hit))
    messages = _choose_turns(hit.conversation, phrases, MAX_FOLDED_CHARS - sum(map(len, decisions)))
    show = phrases.words.count("show", len(messages)) if messages else phrases.words.texts["show_more"]
    return {
        "changed": changed,
        "files": named,
        "decisions": list(decisions),
        "ended": ended,
        "conversation": _conversation(messages),
        "show": show if changed or named or decisions or messages or ended else "",
    }


def _item(link: str, facts: list[str] | None = None, **rest: str | list[str]) -> Item:
    """One hit. Unknown values are empty strings, so that a template can use any key."""
    blank: Item = dict.fromkeys(
        ("open_pull", "decision", "quote", "passage", "why", "show", "changed", "files", "ended", "conversation"), ""
    )
    return {**blank, "decisions": [], "link": link, "facts": [fact for fact in facts or () if fact], **rest}


def _chain(mention: Mention, phrases: CommentPhrases) -> str:
    if not mention.chain:
        return ""
    threads = phrases.words.join(phrases.link_label(thread) for thread in mention.chain)
    return phrases.words.count("chain", len(mention.chain), threads=threads)


def _decision(decision: Decision, mention: Mention, phrases: CommentPhrases) -> str:
    address = phrases.links.comment(mention.id, decision.comment_id, mention.kind)
    quote, attribution = (
        phrases.quote(decision.text),
        phrases.attribution(decision.author, decision.role, decision.at, address),
    )
    if not (decision.superseded_by and quote):
        return f"{quote}{attribution}{_proposal_note(decision, mention, phrases)}"
    later = phrases.words.say("superseded", later=_superseder(decision.superseded_by, mention, phrases))
    return phrases.words.join((f"~~{quote}~~{attribution}", later))


def _proposal_note(decision: Decision, mention: Mention, phrases: CommentPhrases) -> str:
    """That a maintainer's words were a proposal, and which change did it."""
    if not decision.is_proposal:
        return ""
    known = (mention.outcome.fix, mention.fix.change if mention.fix else None)
    change = change_link(decision.done_in, mention, phrases) if decision.done_in in known else ""
    words = phrases.words
    note = words.say("proposed_done_in", change=change) if change else words.texts["proposed_done"]
    return words.comma + note


def _superseder(ref: str, mention: Mention, phrases: CommentPhrases) -> str:
    """What supersedes a decision of ``mention``, linked: another thread, or a later comment of this one."""
    if number := number_of(ref):
        return phrases.link_label(number)
    match = _COMMENT_FRAGMENT.fullmatch(ref)
    address = phrases.links.comment(mention.id, int(match[1]), mention.kind) if match else ""
    return phrases.link_title(phrases.words.texts["later_comment"], address)


def _passage(mention: Mention, phrases: CommentPhrases) -> str:
    """What was said about the searched words, unless the ending or the decisions quote it anyway."""
    passage = mention.passage
    if passage is None or not passage.text:
        return ""
    shown = (mention.outcome.quote, *(decision.text for decision in mention.decisions))
    if any(_contains(text, passage.text) or _contains(passage.text, text) for text in shown if text):
        return ""
    address = phrases.links.comment(passage.thread, passage.comment_id, mention.kind)
    return f"{phrases.quote(passage.text)}{phrases.attribution(passage.author, passage.role, passage.at, address)}"


def _contains(text: str, part: str) -> bool:
    return " ".join(part.split()) in " ".join(text.split())


def _is_quoted(decision: Decision, outcome: Outcome) -> bool:
    return _contains(outcome.quote, decision.text)


def _newest_first(decisions: tuple[Decision, ...]) -> list[Decision]:
    """The decisions: current before superseded ones, maintainers' before others', newer before older."""
    return sorted(decisions, key=lambda d: (not d.superseded_by, d.role in MAINTAINER_ROLES, d.at), reverse=True)


def _conversation(chosen: Mapping[int, str]) -> str:
    """A quotation of the chosen turns, indented to fit inside a list item: for each, our own line, below it its text.

    The text is quoted twice and our lines once, so that no text can look like one of our lines.
    """
    parts = list[str]()
    for before, at in pairwise((-1, *chosen)):
        parts += [OMISSION_MARK.strip()] * (at - before > 1) + [chosen[at]]
    lines = "\n\n".join((*(part.rstrip("\n") for part in parts[:-1]), *parts[-1:])).split("\n")
    return "\n".join(f"{_QUOTE_PREFIX}{line}".rstrip() for line in lines) if parts else ""


def _choose_turns(turns: Sequence[CondensedTurn], phrases: CommentPhrases, room: int) -> dict[int, str]:
    """The opening and the latest turns that fit into ``room``, as Markdown by position."""
    chosen: dict[int, str] = {}
    for at in (0, *range(len(turns) - 1, 0, -1)) if turns else ():
        shown = _fit_turn(turns[at], room // 3 if at == 0 and len(turns) > 1 else room, phrases)
        if shown:
            chosen[at] = shown
            room -= _length(shown)
        if room < MIN_TURN_CHARS or not (shown or at == 0):
            break
    return dict(sorted(chosen.items()))


def _fit_turn(turn: CondensedTurn, room: int, phrases: CommentPhrases) -> str:
    """As much of the turn as fits as Markdown, which can be longer than the raw text."""
    limits = (room, room * 2 // 3, room // 3)
    return next((shown for limit in limits if _length(shown := _turn(turn, limit, phrases)) <= room), "")


def _length(turn: str) -> int:
    """Characters of a turn in the quotation, including line prefixes and the text between turns."""
    return len(turn) + len(_QUOTE_PREFIX) * (turn.count("\n") + 3) + 2 * len(OMISSION_MARK)


def _turn(turn: CondensedTurn, limit: int, phrases: CommentPhrases) -> str:
    role = f" ({phrases.words.texts['maintainer']})" if turn.by_maintainer else ""
    text = block(turn.text, limit)
    quoted = "".join(f"\n> {line}".rstrip() for line in text.strip("\n").split("\n")) if text else ""
    end = "\n" if text.endswith("\n") else ""
    return f"**{inline(account(turn.author), NAME_CHARS)}**{role}, {turn.at:%Y-%m-%d}:{quoted}{end}"
