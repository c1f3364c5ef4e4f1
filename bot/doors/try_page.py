"""The page of a try: every comment that would have been written, and why there is none on the other issues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.comment.as_html import as_html
from bot.comment.links import Links
from bot.comment.render import render_page
from bot.comment.visible import cut, one_line
from bot.comment.wording import count, day
from bot.evaluation.results import Backtest, Grade, Replayed
from bot.model import ThreadId

NOTE = (
    "Each issue was asked as it was opened, against issues that are older and what was known of them then. Whether "
    "people linked it to one of them was looked up afterwards. Mostly nobody does, so a comment without such a link "
    "need not be wrong."
)

_TITLE = 300
_LINKED = 10
_FOUND = (Grade.SUCCESS, Grade.ASSIST)
_UNSEEN = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), "\ufffd")


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a try: ``backtest`` on ``threads`` of the ``issues`` that the repository has, the oldest of them of
    ``oldest``; ``read_at`` is when they were read, ``settings`` whose settings they are."""

    backtest: Backtest
    server: str
    is_private: bool
    issues: int
    oldest: datetime | None
    read_at: datetime
    settings: str

    @property
    def repo(self) -> str:
        return self.backtest.repo

    @property
    def links(self) -> Links:
        return Links(self.server, self.repo, redirect=False)

    @property
    def spoken(self) -> list[Replayed]:
        """The issues with a comment, newest first."""
        return [one for one in reversed(self.backtest.replayed) if one.markdown]

    @property
    def silent(self) -> list[Replayed]:
        """The others."""
        return [one for one in reversed(self.backtest.replayed) if not one.markdown]


def render_try(tried: Tried) -> str:
    """The page as HTML in valid Unicode. It has no script and loads nothing; its links lead to the repository."""
    page = render_page(
        "try.html.j2",
        {
            "repo": tried.repo,
            "home": f"{tried.server}/{tried.repo}",
            "sentences": sentences(tried),
            "note": NOTE,
            "is_private": tried.is_private,
            "facts": list(_facts(tried)),
            "spoken": [_entry(one, tried) for one in tried.spoken],
            "silent": [_entry(one, tried) for one in tried.silent],
        },
    )
    return page.translate(_UNSEEN).encode("utf-8", "replace").decode()


def sentences(tried: Tried) -> list[str]:
    """What came out, in plain words."""
    asked, spoken = len(tried.backtest.replayed), tried.spoken
    if not asked:
        return ["Nobody but bots has opened an issue yet, so there is nothing to show."]
    of = f"On {len(spoken):,} of the {asked:,} newest issues" if asked > 1 else "On the newest issue"
    silent = "it would have been silent" if asked == 1 and not spoken else "it would have written a comment"
    said = [f"{of} {silent}."]
    alike = [one for one in spoken if one.shown]
    if alike:
        found = sum(one.grade in _FOUND for one in alike)
        said.append(
            f"{_comments(len(alike), of_all=len(alike) == len(spoken))} an issue that is alike; "
            f"people later linked {f'{found:,} of these' if found else 'none of these'} issues to one that was shown."
        )
    if len(alike) < len(spoken):
        rest = len(spoken) - len(alike)
        said.append(f"{_comments(rest, of_all=not alike)} what the issue itself points at.")
    return said


def _comments(number: int, *, of_all: bool) -> str:
    if number == 1:
        return "The comment shows" if of_all else "One comment shows"
    return f"{'All' if of_all else ''} {number:,} comments show".strip()


def figures(tried: Tried) -> dict[str, object]:
    """The same as plain data."""
    return {
        "repository": tried.repo,
        "issues": len(tried.backtest.replayed),
        "commented": len(tried.spoken),
        "history": tried.backtest.threads,
        "of": tried.issues,
        "threshold": tried.backtest.threshold,
        "private": tried.is_private,
        "read_at": tried.read_at.isoformat(timespec="seconds"),
        "entries": [_figures(one) for one in reversed(tried.backtest.replayed)],
    }


def _figures(one: Replayed) -> dict[str, object]:
    return {
        "id": one.id,
        "title": one.title,
        "spoke": bool(one.markdown),
        "reason": one.reason,
        "shown": [hit.id for hit in one.shown] if one.markdown else [],
        "linked": _sorted(one.relations.all),
    }


def _facts(tried: Tried) -> Iterable[tuple[str, str]]:
    known = tried.backtest.threads
    whole = (
        f"all {count(known, 'issue')}" if known >= tried.issues else f"the newest {known:,} of {tried.issues:,} issues"
    )
    yield "Read", f"{day(tried.read_at)}, {tried.read_at.astimezone(UTC):%H:%M} UTC"
    yield "History", f"{whole}{f', since {day(tried.oldest)}' if tried.oldest else ''}"
    yield "Shown from", f"a similarity of {tried.backtest.threshold:.2f}"
    yield "Settings", tried.settings
    yield "Ranking", _ranking(tried.backtest.evidence)


def _ranking(evidence: Mapping[str, object]) -> str:
    """Where the order and the cut come from: this repository's own history, as far as it is enough."""
    own = [f"an order from {evidence['order']}"] if "of this repository" in str(evidence.get("order")) else []
    cut = str(evidence.get("cut", ""))
    own += (
        [f"a cut at which {cut}"] if "replayed issues have a hit" in cut and not cut.startswith("the shipped") else []
    )
    return f"the words that older issues teach, and {' and '.join(own) or 'the shipped order and cut'}"


def _entry(one: Replayed, tried: Tried) -> dict[str, object]:
    return {
        **_thread(one.id, tried),
        "title": cut(one_line(one.title), _TITLE) or "(no title)",
        "day": day(one.created_at),
        "iso": one.created_at.date().isoformat(),
        "html": as_html(one.markdown, f"{tried.server}/{tried.repo}"),
        "reason": one.reason[:1].upper() + one.reason[1:],
        "nearest": _nearest(one, tried),
        "linked": [_thread(key, tried) for key in _sorted(one.relations.all)[:_LINKED]],
        "found": bool(one.markdown) and one.grade in _FOUND,
    }


def _nearest(one: Replayed, tried: Tried) -> dict[str, object] | None:
    best = max(one.hits, key=lambda hit: hit.similarity, default=None)
    if best is None or best.is_shown:
        return None
    return {**_thread(best.id, tried), "similarity": f"{best.similarity:.2f}"}


def _thread(key: ThreadId, tried: Tried) -> dict[str, object]:
    return {"id": f"#{key}", "url": tried.links.thread(key)}


def _sorted(keys: Iterable[ThreadId]) -> list[ThreadId]:
    return sorted(keys, key=lambda key: (str(type(key)), key))
