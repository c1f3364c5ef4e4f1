"""The made-up memory that most of the table's questions are asked: a tea shop's server and its till program.

Every thread is opened some days after the one before it; a comment follows a day later, and the end a day after that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

OWNER, MEMBER, USER = ("monalisa", "OWNER"), ("hubot", "MEMBER"), ("sample-user-1", "NONE")
REPORTER = ("octocat", "NONE")
"""Opens four issues and writes nothing else."""

_FIRST_DAY = datetime(2025, 1, 6, 9, tzinfo=UTC)
_DAYS_BETWEEN = 6


def threads() -> list[dict[str, object]]:
    """The threads as lines of an archive."""
    return list(_threads())


def _threads() -> Iterator[dict[str, object]]:
    yield from _decisions()
    yield from _names_and_numbers()
    yield from _scripts()
    yield from _others()


def _thread(
    number: int,
    title: str,
    body: str,
    said: Sequence[tuple[tuple[str, str], str]] = (),
    end: str = "completed",
    by: tuple[str, str] = USER,
    **fields: object,
) -> dict[str, object]:
    """A thread as a line of an archive: ``by`` and ``said`` have logins with roles.

    ``end`` is the reason with which it was closed, "" if it is open.
    """
    opened = _FIRST_DAY + timedelta(days=_DAYS_BETWEEN * number)
    author, role = by
    closed = (opened + timedelta(days=2)).isoformat() if end else None
    comments = [
        {"id": 1_000 * number + place, "author": login, "association": association, "body": text,
         "created_at": (opened + timedelta(days=1, minutes=place)).isoformat()}
        for place, ((login, association), text) in enumerate(said)
    ]  # fmt: skip
    return {
        "id": number,
        "title": title,
        "body": body,
        "author": author,
        "author_association": role,
        "created_at": opened.isoformat(),
        "updated_at": closed or (comments[-1]["created_at"] if comments else opened.isoformat()),
        "state": "closed" if end else "open",
        "state_reason": end or None,
        "closed_at": closed,
        "closed_by": OWNER[0] if end else None,
        "comments": comments,
        **fields,
    }


def _decisions() -> Iterator[dict[str, object]]:
    """What was decided about how the server works."""
    yield _thread(
        1,
        "Where do we keep sessions?",
        "Customers are signed out whenever the server restarts.",
        [(OWNER, "We decided to keep sessions in PostgreSQL; Redis lost every session on restart.")],
    )
    yield _thread(
        2,
        "Drop Redis from the default stack",
        "Is it still needed now?",
        [(OWNER, "Agreed, we drop Redis, because nobody wants to run a second server for a few hundred visitors.")],
    )
    yield _thread(
        3,
        "Caching of product pages",
        "Each page is rendered again for every visitor.",
        [(OWNER, "We decided to cache product pages for ten minutes in the reverse proxy, not in the application.")],
    )
    yield _thread(
        4,
        "Cache invalidation when a price changes",
        "The old price stays on the page for ten minutes.",
        [(MEMBER, "We decided that a price change purges the cached page at once.")],
    )
    yield _thread(
        5,
        "Should API responses be cached?",
        "Phones fetch the catalogue again and again.",
        [(OWNER, "We decided on caching API responses with ETags and nothing else.")],
    )
    yield _thread(
        6,
        "The build fills the disk",
        "The folder with the build's cache grew to 40 GB.",
        [(MEMBER, "Fixed by deleting what is older than a week.")],
    )
    yield _thread(
        7,
        "Authentication of staff accounts",
        "A password on a note beside the till is no protection.",
        [(OWNER, "We decided that staff sign in with a passkey; passwords are for customers only.")],
    )
    yield _thread(
        8,
        "OAuth 2 for partner shops",
        "Partners ask how their programs may place orders.",
        [(OWNER, "We settled on OAuth 2 with PKCE for partners; API keys go away in 3.0.")],
    )
    yield _thread(
        9,
        "API keys end up in the log",
        "Every request is logged with its key.",
        [(MEMBER, "Fixed: the header is masked now.")],
        labels=["security"],
    )
    yield _thread(
        10,
        "Which database for orders?",
        "SQLite or a server?",
        [(OWNER, "We picked PostgreSQL for orders. SQLite locks the whole file when two tills write.")],
    )
    yield _thread(
        11,
        "Orders are counted twice after a retry",
        "The till sends the order again when the network is slow.",
        [(MEMBER, "Fixed with an idempotency key.")],
    )
    yield _thread(
        12,
        "Order numbers must not be guessable",
        "Whoever adds one sees the order of a stranger.",
        [(OWNER, "We decided to use random order numbers of ten letters.")],
        labels=["security"],
    )
    yield _thread(
        13,
        "HTTP/2 between proxy and application",
        "Would it make pages faster?",
        [(OWNER, "We decided against HTTP/2 behind the proxy: it gains nothing on one machine.")],
    )
    yield _thread(14, "Offer HTTP/3 to browsers", "The proxy can do it since spring.", end="")
    yield _thread(
        47,
        "Finding a tea takes seconds with 50,000 products",
        "The shop's search reads every description.",
        [(OWNER, "We decided to use the full-text search of PostgreSQL instead of Elasticsearch.")],
    )
    yield _thread(
        48,
        "Elasticsearch for the shop's search?",
        "It would be faster.",
        [(OWNER, "Duplicate of #47")],
        end="duplicate",
    )
    yield _thread(
        49,
        "Rate limits for the public API",
        "One partner polls every second.",
        [(OWNER, "We agreed on 60 requests a minute for each key.")],
    )
    yield _thread(
        51,
        "Feature flags: build or buy",
        "We need to switch things on for one shop first.",
        [(OWNER, "We decided to build feature flags ourselves, as a table in PostgreSQL.")],
    )
    yield _thread(
        52,
        "Feature flags move to a file",
        "The table is read on every request.",
        [(OWNER, "We decided to move feature flags from the table to a file that is read at start.")],
    )
    yield _thread(
        53,
        "Log format",
        "Every module writes its own.",
        [(OWNER, "We decided to write one JSON object a line.")],
    )
    yield _thread(
        54,
        "Amounts of money as floating-point numbers",
        "0.1 + 0.2 shows up on an invoice.",
        [(OWNER, "We chose integers for amounts: cents add up, floats do not.")],
    )
    yield _thread(
        59,
        "Time zone of the daily report",
        "In summer it begins an hour late.",
        [(OWNER, "We decided that the daily report is in UTC.")],
    )


def _names_and_numbers() -> Iterator[dict[str, object]]:
    """Names with signs and digits, each with a lookalike that shares one of its words."""
    yield _thread(
        15,
        "Move the till program to Qt 6",
        "The old version gets no more fixes.",
        [(OWNER, "We go with Qt 6 for the till program and drop Qt5 in the next release.")],
    )
    yield _thread(
        16,
        "Qt5 build breaks on Debian",
        "The package has another name there.",
        [(MEMBER, "We will not fix that: Qt5 is gone.")],
        end="not_planned",
    )
    yield _thread(
        17,
        "Till program on Windows 7?",
        "Two of our shops still have it.",
        [(OWNER, "We decided not to support Windows 7: it gets no updates.")],
    )
    yield _thread(
        18,
        "Till crashes on Windows 11 with two screens",
        "It starts on the screen that is switched off.",
        [(MEMBER, "Fixed in 2.4.")],
    )
    yield _thread(
        19,
        "Label printers need a plug-in in C++",
        "Their library has no other interface.",
        [(OWNER, "We decided to write the plug-in in C++ and to ship it with the till.")],
    )
    yield _thread(
        20,
        "C# client for the stock service",
        "The warehouse has no other programmers.",
        [(OWNER, "We decided to keep the C# client in a repository of its own.")],
    )
    yield _thread(
        21,
        "F# example in the documentation",
        "I can write one.",
        [(OWNER, "We decided against an F# example: nobody here could maintain it.")],
        end="not_planned",
    )
    yield _thread(
        22,
        "Sales report in R",
        "Or should it be a spreadsheet?",
        [(OWNER, "We decided to keep the sales report in R, as the accountant can read it.")],
    )
    yield _thread(23, "C header of the scale driver is missing", "The package lacks it.", [(MEMBER, "Fixed in 2.1.")])
    yield _thread(
        24,
        "Which TLS version is the minimum?",
        "Old phones still ask for 1.0.",
        [(OWNER, "We decided to require TLS 1.2 at least.")],
        labels=["security"],
    )
    yield _thread(
        25, "TLS certificate of the test shop ran out", "Browsers refuse it.", [(MEMBER, "Fixed: it is renewed.")]
    )
    yield _thread(
        26,
        "Follow RFC 7230 for folded header lines",
        "One partner still sends them.",
        [(OWNER, "We decided to follow RFC 7230 and to reject them.")],
    )
    yield _thread(
        27,
        "Follow RFC 9110 for Retry-After",
        "Ours sends a date that no client reads.",
        [(MEMBER, "Fixed: it sends seconds.")],
    )
    yield _thread(
        28, "iPhone 15: the cart button is under the address bar", "Nobody can pay.", [(MEMBER, "Fixed in 2.5.")]
    )
    yield _thread(29, "iPhone 12 shows prices in the wrong currency", "Pounds.", [(MEMBER, "Fixed in 2.2.")])
    yield _thread(
        30,
        "Pictures over 16,384 bytes are refused",
        "The upload ends with an error.",
        [(MEMBER, "Fixed: the limit is a setting.")],
    )
    yield _thread(31, "The basket overflows at 2^31-1 items", "Somebody tried.", [(MEMBER, "Fixed in 2.6.")])
    yield _thread(
        32, "The price list of 2026-12-15 is a day late", "It is valid from the 16th.", [(MEMBER, "Fixed in 2.7.")]
    )
    yield _thread(
        33,
        "Launch day 🚀",
        "When do we open the new shop?",
        [(OWNER, "We decided to open on a Tuesday.")],
        kind="discussion",
        end="",
    )
    yield _thread(
        58,
        "The server does not start",
        "```\nError: connect ECONNREFUSED 127.0.0.1:5432\n```",
        [(MEMBER, "The database was not running.")],
    )


def _scripts() -> Iterator[dict[str, object]]:
    """Other languages, and signs that look the same but are written in several ways."""
    yield _thread(
        34,
        "Don’t round VAT on each line",
        "The sum is a cent off.",
        [(OWNER, "We decided to round VAT once per invoice: the tax office does the same.")],
    )
    yield _thread(
        35, "ＰＤＦ invoices are blank", "The file has one empty page.", [(MEMBER, "Fixed: the font was missing.")]
    )
    yield _thread(36, "Cafe\u0301 names lose their accent", "On the label it is gone.", [(MEMBER, "Fixed in 2.3.")])
    yield _thread(
        37,
        "Waren\u00adkorb bleibt nach der Anmeldung leer",
        "Alles, was vorher darin lag, ist weg.",
        [(MEMBER, "Behoben in 2.4.")],
    )
    yield _thread(
        38,
        "购物车在刷新后清空",
        "刷新页面以后，购物车里什么都没有了。",
        [(OWNER, "我们决定把购物车保存在数据库里。")],
    )
    yield _thread(39, "退款需要两个人审核", "一个人就可以退款，太危险了。", [(MEMBER, "已修复。")])
    yield _thread(
        40,
        "La búsqueda no encuentra el té verde",
        "Solo aparece el té negro.",
        [(MEMBER, "Corregido en 2.4.")],
    )
    yield _thread(
        41,
        "Gutscheine lassen sich zweimal einlösen",
        "Beim zweiten Mal kommt keine Meldung.",
        [(MEMBER, "Behoben in 2.5.")],
    )
    yield _thread(
        42,
        "To be or not to be open on Sundays",
        "Some shops are, some are not.",
        [(OWNER, "We decided to leave that to each shop.")],
    )


def _others() -> Iterator[dict[str, object]]:
    """What one person reported, changes, a discussion, questions without an answer, and what else goes wrong."""
    yield _thread(
        43,
        "Dark mode for the admin pages",
        "At night they glare.",
        [(OWNER, "We will not do that.")],
        end="not_planned",
        by=REPORTER,
    )
    yield _thread(44, "Export orders as CSV", "For the accountant.", end="", by=REPORTER)
    yield _thread(
        45, "Receipt printer cuts too early", "The last line is missing.", [(MEMBER, "Fixed in 2.6.")], by=REPORTER
    )
    yield _thread(
        46,
        "Remember the last delivery address",
        "Typing it again is a nuisance.",
        [(MEMBER, "Done in 2.6.")],
        by=REPORTER,
    )
    yield _thread(50, "What did we decide about gift wrapping?", "Does anybody know?", end="")
    yield _thread(
        55,
        "Purge cached pages on a price change",
        "Fixes #4.",
        kind="pull",
        merged_at="2025-12-03T09:00:00+00:00",
        by=MEMBER,
    )
    yield _thread(
        56,
        "Add sign-in with a passkey for staff",
        "Fixes #7.",
        kind="pull",
        merged_at="2025-12-09T09:00:00+00:00",
        by=MEMBER,
    )
    yield _thread(
        57,
        "How do you run the shop behind nginx?",
        "Is there an example?",
        [(MEMBER, "See deploy/nginx.conf, it has everything.")],
        kind="discussion",
        end="",
    )
    yield _thread(60, "Delivery slots on public holidays", "They are offered and nobody comes.", end="")
    yield _thread(
        61, "The newsletter asks for a birthday", "What for?", [(MEMBER, "Fixed: the field is optional, not required.")]
    )
    yield _thread(
        62,
        "Shelf labels show question marks instead of umlauts",
        "All labels must be printed again.",
        [(MEMBER, "Fixed by setting the code page.")],
    )
