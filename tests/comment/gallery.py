"""The comments of docs/comments.md, each as a reader of the sample project might see it."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bot.comment.links import CommentLinks
from bot.comment.render import Renderer
from bot.domain.answer import Context, EarlierClosing, Match, Mention, OrganisationMatch, PageHit
from bot.domain.changes import FixInfo
from bot.domain.post import OpenPull, OrganisationKey
from bot.domain.thread import Decision, Kind, Outcome, OutcomeKind
from tests.comment.contexts import turn

REPOSITORY = "octo-org/linkbarn"
LINKS = CommentLinks("https://github.com", REPOSITORY, redirect=True)
SEARCHED = 1_204
ASKED = 1_480


@dataclass(frozen=True)
class GalleryComment:
    """What a comment shows, its caption in one line, what makes it a reply, and its language."""

    caption: str
    context: Context
    asked: str = ""
    language: str = "en"


def at(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, 9, 30, tzinfo=UTC)


NOW = at(2026, 11, 3)

TALK = (
    turn("octocat", at(2026, 4, 20), "After the upgrade I am sent back to the login page."),
    turn("monalisa", at(2026, 5, 3), "The cookie path changed; clear it or upgrade.", "MEMBER"),
)

LOGIN = Outcome(
    OutcomeKind.FIXED, 3, 900, "The cookie path changed; clear it or upgrade.", "monalisa", "MEMBER", at(2026, 5, 3),
    fix="#1310", evidence=("closed by a pull request",), confidence=0.95,
)  # fmt: skip
LOGIN_FIX = FixInfo(
    1302, "#1310", NOW, is_pull=True, commit="9c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c9d", merged_at=at(2026, 5, 3),
    files=("auth/cookie.py", "auth/session.py"), release="v2.3.0", released_at=at(2026, 5, 9),
)  # fmt: skip


def login(**rest: object) -> Match:
    values: dict[str, object] = {
        "id": 1302, "title": "Login loops after the upgrade", "similarity": 0.83, "state": "closed",
        "created_at": at(2026, 4, 20), "state_reason": "completed", "closed_at": at(2026, 5, 3),
        "closed_by": "monalisa", "turn_count": 5, "outcome": LOGIN, "fix": LOGIN_FIX,
        "why": ("same error `SESSION_PATH_MISMATCH`", "same file `auth/cookie.py`"), "files": ("auth/cookie.py",),
        "conversation": TALK,
    }  # fmt: skip
    return Match(**(values | rest))  # type: ignore[arg-type]


def closed(number: int, title: str, outcome: Outcome, **rest: object) -> Match:
    conversation = (
        turn("octocat", at(2025, 2, 1), f"{title}, as described."),
        turn("monalisa", at(2025, 2, 3), outcome.quote, "OWNER"),
    )
    return login(id=number, title=title, outcome=outcome, fix=None, files=(), conversation=conversation, **rest)


CHINESE = login(
    title="升级后登录循环", outcome=replace(LOGIN, quote="Cookie 的路径变了，请清除 Cookie 或升级。"), asked_on="2.2.4",
    conversation=(
        turn("octocat", at(2026, 4, 20), "升级之后总是回到登录页。"),
        turn("monalisa", at(2026, 5, 3), "Cookie 的路径变了，请清除 Cookie 或升级。", "MEMBER"),
    ),
)  # fmt: skip

JAPANESE = login(
    title="更新後にログインが繰り返される", asked_on="2.2.4",
    outcome=replace(LOGIN, quote="Cookie のパスが変わりました。Cookie を削除するか更新してください。"),
    conversation=(
        turn("octocat", at(2026, 4, 20), "更新してから、いつもログイン画面に戻ります。"),
        turn(
            "monalisa", at(2026, 5, 3), "Cookie のパスが変わりました。Cookie を削除するか更新してください。", "MEMBER"
        ),
    ),
)  # fmt: skip

DECLINED = Outcome(
    OutcomeKind.NOT_PLANNED, 6, 910, "We decided against a second sync protocol: two of them could lose bookmarks.",
    "monalisa", "OWNER", at(2025, 9, 14), confidence=0.85,
)  # fmt: skip
WORKED_AROUND = Outcome(
    OutcomeKind.WORKAROUND, 2, 920, "Until then, set `SNAPSHOT_TIMEOUT=120`; that works behind our proxy.",
    "hubot", "CONTRIBUTOR", at(2026, 2, 11), confidence=0.8,
)  # fmt: skip

CERTIFICATE = Outcome(
    OutcomeKind.ANSWERED, 4, 930, "Let the proxy check the certificate and pass `X-Remote-User` on.", "monalisa",
    "OWNER", at(2024, 6, 21), confidence=0.85,
)  # fmt: skip

DECISIONS = (
    Decision("Let us try Redis first.", "hubot", "NONE", at(2025, 3, 9), 0, 76),
    Decision(
        "We go with PostgreSQL for sessions; Redis lost them on restart.", "monalisa", "MEMBER", at(2025, 3, 11), 1, 77
    ),
)
STORE = Mention(
    912, "Which store for sessions?", "closed", "completed", created_at=at(2025, 3, 1), closed_at=at(2025, 3, 12),
    decisions=DECISIONS, files=("store/session.py",), chain=(1044,),
    conversation=(
        turn("octocat", at(2025, 3, 1), "Which store?"),
        turn("monalisa", at(2025, 3, 11), "We go with PostgreSQL.", "MEMBER"),
    ),
)  # fmt: skip

LOGIN_THREAD = Mention(
    1302, "Login loops after the upgrade", "closed", "completed", created_at=at(2026, 4, 20), closed_at=at(2026, 5, 3),
    outcome=LOGIN, fix=LOGIN_FIX, conversation=TALK,
)  # fmt: skip
CERTIFICATE_THREAD = Mention(
    655, "Login with a client certificate", "closed", "completed", created_at=at(2024, 6, 1),
    closed_at=at(2024, 6, 21), outcome=CERTIFICATE,
)  # fmt: skip

PULLS = (
    Mention(
        1310, "Widen the cookie path", "closed", kind=Kind.PULL, created_at=at(2026, 5, 1), closed_at=at(2026, 5, 3),
        merged_at=at(2026, 5, 3), fix=LOGIN_FIX,
    ),
    Mention(1466, "Keep sessions over a restart", "open", kind=Kind.PULL, draft=True, created_at=at(2026, 10, 20)),
    Mention(1207, "Sessions in Redis", "closed", kind=Kind.PULL, created_at=at(2026, 1, 8), closed_at=at(2026, 1, 19)),
)  # fmt: skip

PROXY = Match(
    1471, "Session lost behind a proxy", 0.71, "open", at(2026, 10, 30), turn_count=7,
    why=("both name `X-Forwarded-Proto`",),
)  # fmt: skip

PAGES = (
    PageHit(
        "Backup: while the server runs", "https://github.com/octo-org/linkbarn/wiki/Backup#while-the-server-runs",
        "Use `linkbarn backup`, which takes a snapshot first. Copying the database file may give a torn copy.", 0.72,
    ),
    PageHit(
        "Linkbarn 2.2.0", "https://github.com/octo-org/linkbarn/releases/tag/v2.2.0",
        "Backups can be encrypted now.", 0.66,
    ),
)  # fmt: skip

ELSEWHERE = (
    OrganisationMatch(
        OrganisationKey(31, 212), "octo-org/sdk",
        login(
            id=212, title="The session cookie is never sent", conversation=(),
            outcome=replace(
                LOGIN, quote="Since 4.2 the client sets `SameSite=Lax`; before that the browser dropped the cookie.",
            ),
            fix=replace(LOGIN_FIX, ref="#218", release="v4.2", files=()),
        ),
    ),
    OrganisationMatch(
        OrganisationKey(32, 90), "octo-org/deploy",
        closed(
            90, "Logged out behind the proxy", WORKED_AROUND, closed_at=at(2026, 2, 15),
            why=("both name `X-Forwarded-Proto`",),
        ),
    ),
)  # fmt: skip

GALLERY: dict[str, GalleryComment] = {
    "fixed-in-a-release": GalleryComment(
        "The release with the fix is newer than the reporter's version.",
        Context(seen_before=(login(asked_on="2.2.4"),)),
    ),
    "possibly-back": GalleryComment(
        "The same fix, and a report on a later version.",
        Context(seen_before=(login(asked_on="2.4", may_be_back=True),)),
    ),
    "not-released-yet": GalleryComment(
        "A fix that is not released yet, and a similar open issue.",
        Context(
            seen_before=(
                login(
                    fix=FixInfo(
                        1302, "#1310", NOW, True, "9c1d2e3", at(2026, 10, 28), ("auth/cookie.py",), unreleased=True
                    ),
                    outcome=replace(LOGIN, at=at(2026, 10, 28)), closed_at=at(2026, 10, 28),
                ),
            ),
            open_now=(PROXY,),
        ),
    ),
    "open-pull-request": GalleryComment(
        "An open issue, and an open pull request that says it fixes the issue.",
        Context(
            open_now=(PROXY,),
            pulls=(OpenPull(1471, 1476, "Trust the header of a known proxy", closes=True, seen_at=NOW),),
        ),
    ),
    "reopened": GalleryComment(
        "An issue that was fixed and then reopened.",
        Context(
            open_now=(
                replace(
                    PROXY, created_at=at(2026, 5, 20), earlier=EarlierClosing(at(2026, 6, 2), at(2026, 10, 30), LOGIN)
                ),
            )
        ),
    ),
    "declined": GalleryComment(
        "A request that was declined, with the reason.",
        Context(
            seen_before=(
                closed(
                    871, "Sync with a second service", DECLINED, state_reason="not_planned", closed_at=at(2025, 9, 14),
                    why=("words in common: sync, protocol, bookmarks",),
                ),
            )
        ),
    ),
    "workaround": GalleryComment(
        "A workaround by a contributor.",
        Context(
            seen_before=(
                closed(
                    1219, "Snapshots time out behind a proxy", WORKED_AROUND, closed_at=at(2026, 2, 15),
                    why=("both name `SNAPSHOT_TIMEOUT` and `HTTPS_PROXY`",),
                ),
            )
        ),
    ),
    "decision": GalleryComment(
        "The decision in an issue whose duplicate the text mentions.", Context(mentioned=(STORE,))
    ),
    "pull-requests": GalleryComment(
        "Mentioned pull requests, which do not get a backlink.", Context(mentioned=PULLS)
    ),
    "organisation": GalleryComment(
        "A fix and a workaround in other repositories, on a [server](self-hosting.md) that searches them.",
        Context(organisation=ELSEWHERE),
    ),
    "from-the-docs": GalleryComment("No similar issue, but a wiki page and a release that fit.", Context(pages=PAGES)),
    "reply": GalleryComment(
        "The reply to a search of past conversations.",
        Context(mentioned=(replace(STORE, chain=()), LOGIN_THREAD, CERTIFICATE_THREAD)),
        asked="Search all past conversations for mentions of authentication",
    ),
    "chinese": GalleryComment(
        "The comment on an issue that is written in Chinese.",
        Context(seen_before=(CHINESE,), open_now=(replace(PROXY, title="代理后面登录会话丢失"),)),
        language="zh",
    ),
    "japanese": GalleryComment(
        "The comment on an issue that is written in Japanese.",
        Context(seen_before=(JAPANESE,), open_now=(replace(PROXY, title="プロキシ経由でログインが失われる"),)),
        language="ja",
    ),
}  # fmt: skip


def render_comment(shown: GalleryComment) -> str:
    """Renders the comment."""
    renderer = Renderer(links=LINKS, language=shown.language)
    if shown.asked:
        rendered = renderer.reply(shown.context, asked=shown.asked, reply_to=77, now=NOW, searched=SEARCHED)
    else:
        rendered = renderer.render(shown.context, thread_id=ASKED, now=NOW, searched=SEARCHED)
    assert rendered.problem is None, rendered.problem
    return rendered.text
