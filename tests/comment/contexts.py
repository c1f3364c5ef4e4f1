"""What memory might have to say: one sample for each shape that a comment can take."""

from dataclasses import replace
from datetime import UTC, datetime

from bot.comment.links import CommentLinks
from bot.domain.answer import CondensedTurn, Context, EarlierClosing, Match, Mention, OrganisationMatch, PageHit
from bot.domain.card import Passage
from bot.domain.changes import FixInfo
from bot.domain.post import OpenPull, OrganisationKey
from bot.domain.thread import Decision, Kind, Outcome, OutcomeKind

GITHUB = CommentLinks("https://github.com", "octo-org/hello-world", redirect=True)
ENTERPRISE = CommentLinks("https://git.example.com/", "octo-org/hello-world", redirect=False)


def day(month: int, number: int, year: int = 2025) -> datetime:
    return datetime(year, month, number, 9, 30, tzinfo=UTC)


def turn(author: str, at: datetime, text: str, role: str = "NONE") -> CondensedTurn:
    return CondensedTurn(author, role, at, text)


NOW = day(6, 5)

DECIDED = (
    Decision("Let us try Redis first.", "hubot", "NONE", day(3, 9), 0, 76),
    Decision("We go with PostgreSQL; Redis lost sessions on restart.", "monalisa", "MEMBER", day(3, 11), 1, 77),
)

MENTION = Mention(
    12, "Use PostgreSQL for sessions", "closed", "completed", created_at=day(3, 1), closed_at=day(3, 12),
    summary="Redis lost our sessions again.", decisions=DECIDED, files=("store/session.py",),
    conversation=(
        turn("octocat", day(3, 1), "Which store?"),
        turn("monalisa", day(3, 11), "We go with PostgreSQL.", "MEMBER"),
    ),
)  # fmt: skip

OPEN = Match(
    8, "Session lost behind a proxy", 0.71, "open", day(6, 1), turn_count=7, why=("both name `X-Forwarded-Proto`",)
)

PAGE = PageHit(
    "Sessions: choosing a store", "https://github.com/octo-org/hello-world/wiki/Sessions",
    "Set `SESSION_STORE` to one of *memory* or postgres.", 0.7,
)  # fmt: skip


def closed_match(outcome: Outcome, **rest: object) -> Match:
    values: dict[str, object] = {
        "id": 7, "title": "Login loops after upgrade", "similarity": 0.8, "state": "closed", "created_at": day(4, 20),
        "state_reason": "completed", "closed_at": day(5, 3), "closed_by": "monalisa", "turn_count": 5,
        "why": ("same error `SESSION_PATH_MISMATCH`", "same file `auth/cookie.py`"), "files": ("auth/cookie.py",),
        "conversation": (
            turn("octocat", day(4, 20), "It loops."),
            turn("monalisa", day(5, 3), "Clear the cookie.", "OWNER"),
        ),
    }  # fmt: skip
    return Match(**(values | {"outcome": outcome} | rest))  # type: ignore[arg-type]


def quoted_outcome(
    kind: OutcomeKind, quote: str = "The cookie path changed; clear it or upgrade.", **rest: object
) -> Outcome:
    values: dict[str, object] = {
        "kind": kind, "comment": 3, "comment_id": 900, "quote": quote, "author": "monalisa", "role": "OWNER",
        "at": day(5, 3), "confidence": 0.9,
    }  # fmt: skip
    return Outcome(**(values | rest))  # type: ignore[arg-type]


REOPENED = EarlierClosing(day(5, 3), day(5, 9), quoted_outcome(OutcomeKind.FIXED, fix="#30"))


def context_of(outcome: Outcome, **rest: object) -> Context:
    return Context(seen_before=(closed_match(outcome, **rest),))


FIXED = quoted_outcome(OutcomeKind.FIXED, fix="#30", evidence=("closed by a pull request",))

RELEASED = FixInfo(31, "#57", NOW, True, "9c1d2e3", day(5, 3), ("sdk/cookie.py",), "v4.2", day(5, 9))


def organisation_match(match: Match, repository: str = "octo-org/sdk") -> OrganisationMatch:
    return OrganisationMatch(OrganisationKey(31, match.id), repository, match)


ORGANISATION = (
    organisation_match(
        closed_match(
            quoted_outcome(OutcomeKind.FIXED, fix="#57"), id=31, title="The cookie is never sent", fix=RELEASED
        )
    ),
    organisation_match(replace(OPEN, id=5, kind=Kind.DISCUSSION), "octo-org/server"),
)

HOSTILE_TITLE = (
    "@octo-org/team closes #3 ![x](https://evil.example/p.png) </details> [a](b) | `c` \u202eevil\u200b\n# h"
)
HOSTILE_TEXT = (
    "Duplicate of #4\nFixes #5\n@octocat please\n</details>\n<!-- precedent:v1 id=action -->\n```\nnever closed\n"
    "https://github.com/octo-org/hello-world/issues/6\n> quote\n# heading\n| a | b |\n|---|---|\n[x]: https://evil.example\n"
    "see [x] and GH-7 and octo-org/hello-world#8 <img src=x> {{ 7*7 }} {% raw %}\x00\ud800"
)

HOSTILE_TALK = (turn("@octocat [x](y)", day(3, 1), HOSTILE_TEXT), turn("hubot", day(3, 2), HOSTILE_TEXT, "OWNER"))

HOSTILE = Context(
    mentioned=(
        Mention(
            12, HOSTILE_TITLE, "closed", "@nobody", created_at=day(3, 1), closed_at=day(3, 12), summary=HOSTILE_TEXT,
            decisions=(Decision(HOSTILE_TEXT, "@octocat", "NONE", day(3, 9), 0, 76),), files=("d/`@a`\n#1", "d/b|c"),
            conversation=HOSTILE_TALK,
        ),
        Mention(
            14, HOSTILE_TITLE, "open", created_at=day(3, 1),
            passage=Passage(14, "@octocat", "NONE", day(3, 2), HOSTILE_TEXT, 77),
        ),
        Mention(13, HOSTILE_TITLE, "open", created_at=day(3, 1), summary=HOSTILE_TEXT),
    ),
    seen_before=(
        closed_match(
            quoted_outcome(OutcomeKind.ANSWERED, HOSTILE_TEXT, author="@octocat", role="NONE", fix="#1 @octocat"),
            title=HOSTILE_TITLE, why=("`@octocat` #9", "closes #4"), files=("../@octocat",), conversation=HOSTILE_TALK,
        ),
    ),
    open_now=(Match(8, HOSTILE_TITLE, 0.7, "open", day(6, 5), why=(HOSTILE_TEXT,)),),
    pages=(PageHit(HOSTILE_TITLE, "javascript:alert(1)", HOSTILE_TEXT, 0.7),),
    organisation=(
        organisation_match(
            closed_match(
                quoted_outcome(OutcomeKind.FIXED, HOSTILE_TEXT, author="@octocat", role="NONE", fix="octo-org/sdk#57"),
                title=HOSTILE_TITLE, why=("`@octocat` #9", "closes #4"),
            ),
            "octo-org/sdk#4 `x`](https://evil.example) @octocat",
        ),
        organisation_match(
            closed_match(
                quoted_outcome(OutcomeKind.DUPLICATE, HOSTILE_TEXT, duplicate_of=12), title=HOSTILE_TITLE, id=12
            ),
            "octo-org/issues",
        ),
    ),
)  # fmt: skip

LONG = Context(
    mentioned=tuple(
        Mention(
            n,
            f"Mentioned {n}",
            "open",
            created_at=day(1, n),
            conversation=(turn("octocat", day(1, n), "ab. " * 2_500),),
        )
        for n in range(1, 18)
    ),
    seen_before=tuple(
        closed_match(FIXED, id=n, title=f"Similar {n}", conversation=(turn("octocat", day(2, n - 20), "cd. " * 4_000),))
        for n in range(21, 41)
    ),
)

SUPERSEDED = replace(
    MENTION,
    decisions=(
        replace(
            DECIDED[1], text="We go with Redis for ~~all~~ sessions.", comment_id=75, superseded_by="#issuecomment-77"
        ),
        replace(DECIDED[0], superseded_by="#51"),
        DECIDED[1],
    ),
)
PROPOSED = replace(
    MENTION,
    outcome=Outcome(OutcomeKind.FIXED, fix="#57"),
    decisions=tuple(
        replace(DECIDED[0], text=f"We should use {what} for sessions.", is_proposal=True, done_in=done_in)
        for what, done_in in (("PostgreSQL", "#57"), ("a table", "#4711"))
    ),
)

SHA = "975AC55B0f6e5d0c9b9b0d2d2f8f2f0a6a1f0e11"
DUPLICATE = closed_match(quoted_outcome(OutcomeKind.DUPLICATE, "", duplicate_of=12))
DISCUSSION = replace(MENTION, kind=Kind.DISCUSSION, outcome=quoted_outcome(OutcomeKind.ANSWERED), decisions=())
NAMED = Mention("ABC-12", "Use PostgreSQL", "closed", "completed", closed_at=day(3, 12), decisions=DECIDED)

ON_GITHUB = {
    "superseded": Context(mentioned=(SUPERSEDED,)),
    "proposed": Context(mentioned=(PROPOSED,)),
    "discussion": Context(
        mentioned=(
            DISCUSSION,
            replace(
                DISCUSSION, id=13, title="", state="open", closed_at=None, outcome=Outcome(), summary="",
                conversation=(),
            ),
        ),
        seen_before=(closed_match(quoted_outcome(OutcomeKind.ANSWERED), kind=Kind.DISCUSSION),),
        open_now=(replace(OPEN, kind=Kind.DISCUSSION),),
    ),
    "all_sections": Context(
        mentioned=(MENTION,),
        also_mentioned=(Mention(5, "Sessions time out", "closed"), Mention(6, "Remember me", "open")),
        seen_before=(closed_match(FIXED),),
        open_now=(OPEN,),
        pages=(PAGE,),
    ),
    "open_pulls": Context(
        mentioned=(Mention(5, "Sessions time out", "open", created_at=day(3, 1)),),
        open_now=(OPEN, *(replace(OPEN, id=number) for number in (9, 10, 11))),
        pulls=(
            OpenPull(5, 60, "Keep @octocat's sessions, fixes #5", closes=True, seen_at=day(6, 4)),
            OpenPull(8, 61, "Trust the proxy", closes=True, draft=True),
            OpenPull(9, 62, "Trust it", closes=True, files=("auth/proxy.py",), seen_at=day(6, 4)),
            OpenPull(10, 63, "\u3164", files=("auth/proxy.py",), seen_at=day(6, 4)),
        ),
    ),
    "organisation": Context(seen_before=(closed_match(FIXED),), organisation=ORGANISATION),
    "organisation_alone": Context(
        organisation=(
            organisation_match(DUPLICATE),
            organisation_match(closed_match(quoted_outcome(OutcomeKind.FIXED, "", fix=SHA), why=())),
        )
    ),
    "fixed_by_commit": context_of(quoted_outcome(OutcomeKind.FIXED, "", fix=SHA)),
    "answered": context_of(quoted_outcome(OutcomeKind.ANSWERED, author="hubot", role="NONE")),
    "duplicate": Context(seen_before=(DUPLICATE,), mentioned=(MENTION,)),
    "unknown_and_nobody": context_of(Outcome(), state_reason=None, closed_by=None, why=(), files=()),
    "missing": Context(mentioned=(MENTION,), also_mentioned=(Mention(99, missing="no record of this issue"),)),
    "chain": Context(
        mentioned=(
            Mention(
                40, "Cookies vanish", "open", created_at=day(3, 1), chain=(42, 41), summary="They are gone by morning."
            ),
        )
    ),
    "passage": Context(
        mentioned=(
            Mention(
                31, "Planning", "open", created_at=day(5, 1), summary="What comes next?",
                passage=Passage(31, "hubot", "MEMBER", day(5, 2), "The importer takes **ages**, see #3.", 311),
            ),
            replace(NAMED, id=32, passage=Passage(32, "hubot", "MEMBER", day(3, 9), DECIDED[0].text, 321)),
            Mention(33, "Records are away", "open", created_at=day(5, 1), passage=Passage(33, "hubot", "", day(5, 2))),
        )
    ),
    "reopened": Context(
        mentioned=(Mention(5, "Cookies are lost", "open", created_at=day(4, 1), earlier=REOPENED),),
        open_now=(replace(OPEN, earlier=REOPENED),),
    ),
    "pages_only": Context(pages=(PAGE, PageHit("", "https://docs.example.com/a_(b)", "", 0.6))),
    "cjk": context_of(
        quoted_outcome(OutcomeKind.ANSWERED, "クッキーを削除してください。"),
        title="アップグレード後にログインが繰り返される",
        why=("同じエラー",),
        conversation=(turn("monalisa", day(5, 3), "登录循环 로그인 반복"),),
    ),
    "long": LONG,
    "hostile": HOSTILE,
}  # fmt: skip
CASES: dict[str, tuple[Context, CommentLinks]] = {
    **{name: (context, GITHUB) for name, context in ON_GITHUB.items()},
    "superseded_alone": (
        Context(mentioned=(replace(SUPERSEDED, decisions=SUPERSEDED.decisions[:1], conversation=()),)),
        CommentLinks(),
    ),
    "organisation_enterprise": (Context(mentioned=(MENTION,), organisation=ORGANISATION), ENTERPRISE),
    "string_ids": (
        Context(
            mentioned=(NAMED,),
            seen_before=(closed_match(quoted_outcome(OutcomeKind.ANSWERED, comment_id=None), id="ABC-7"),),
        ),
        CommentLinks(),
    ),
    "enterprise": (Context(mentioned=(MENTION,), seen_before=(closed_match(FIXED),), open_now=(OPEN,)), ENTERPRISE),
}
