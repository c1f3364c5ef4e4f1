"""The digest of a thread: its summary, keywords, references and decisions."""

import json
from dataclasses import asdict, replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.thread import Message, OutcomeKind, Reference, Thread
from bot.reading.digest import MAX_KEYWORDS, MAX_SUMMARY_CHARS, digest, is_visible
from tests.examples import share
from tests.reading.linear_time import assert_linear_time
from tests.reading.samples import OPENED, message

ANSWER = "Clear the cookie of the old path."


def thread(body: str = "It loops.", *comments: Message, title: str = "Login loops after upgrade") -> Thread:
    return Thread(id=42, title=title, body=body, author="octocat", created_at=OPENED, comments=comments)


def test_the_summary_is_the_first_reply_of_another_person() -> None:
    result = digest(thread("It loops.", message("Any news?", "octocat"), message(ANSWER), message("Later.")))
    assert result.summary == ANSWER


def test_a_maintainers_reply_comes_before_anyone_elses() -> None:
    other = "It loops here with another browser, too."
    result = digest(thread("It loops.", message(other), message(ANSWER, "monalisa", "MEMBER")))
    assert result.summary == ANSWER


FEW_WORDS = [
    "cc @octocat",
    "CC: @octo-org/maintainers @monalisa.",
    "Fixed",
    "Fixed in #12.",
    "Fixed by octo-org/linkbarn#12",
    "+1",
    "👍",
    "👍 +1 👍",
    "LGTM!",
    "Me too.",
    "Same here",
    "Duplicate of #7",
    "Any news?",
    "See GH-12.",
    "Fixed by https://github.com/octo-org/linkbarn/pull/12",
    "0d0e0ed056a45781a1b2c3d4e5f60718293a4b5c",
    "Ping @monalisa?",
    "> It loops.\n\n+1",
    "- [ ] @octocat",
    "**Fixed**",
    "Thanks!",
    "修复了",
    "谢谢 @octocat",
    "確認しました",
    "ขอบคุณ",
    "Danke!",
    "Исправлено",
]


def test_a_few_words_are_no_summary() -> None:
    for words in FEW_WORDS:
        few = message(words, "monalisa", "MEMBER")
        assert digest(thread("It loops.", few, message(ANSWER))).summary == ANSWER, words
        assert digest(thread("It loops.", message(words), message(ANSWER, "monalisa", "MEMBER"))).summary == ANSWER, (
            words
        )
        assert digest(thread("It loops.\n\nSince May.", few, message("+1"))).summary == "It loops.", words


def test_a_short_answer_is_a_summary() -> None:
    cases = [
        "The cookie path changed.",
        "Please run linkbarn repair --all once.",
        "清除 Cookie 后重新登录即可。",
        "バージョンを上げると直ります。",
        "쿠키를 지우고 다시 로그인하면 됩니다.",
        "Den Cookie löschen und neu anmelden.",
    ]
    assert [reply for reply in cases if digest(thread("It loops.", message(reply))).summary != reply] == []


def test_a_summary_has_no_address_question_thanks_or_bare_link() -> None:
    answer = "Set BASE_PATH and restart the server."
    cases = [
        "@octocat, set `BASE_PATH` and restart the server.".replace("set", "Set"),
        f"Thanks for the report! {answer}",
        f"Which version is it? {answer}",
        f"https://example.com/a/b\n\n{answer}",
        f"> It loops.\n\n{answer}",
    ]
    assert [reply for reply in cases if digest(thread("It loops.", message(reply))).summary != answer] == []
    empty = [
        "@octocat",
        "Love it.",
        "Thanks a lot for this!",
        "What do you mean by that loop?",
        "https://example.com/a-b",
    ]
    assert [reply for reply in empty if digest(thread("It loops.", message(reply))).summary != "It loops."] == []


def test_a_few_words_are_the_summary_if_nobody_says_more() -> None:
    assert digest(thread("", message("Fixed."), message("+1"))).summary == "Fixed."


def test_a_bots_reply_is_no_summary() -> None:
    bot = replace(message("Thanks for the report!", role="MEMBER"), is_bot=True)
    assert digest(thread("It loops.", bot)).summary == "It loops."


def test_without_a_reply_the_summary_is_the_first_paragraph_of_the_report() -> None:
    body = "### Describe the bug\n\nIt loops\nforever.\n\nSince May."
    assert digest(thread(body)).summary == "It loops\nforever."


def test_the_summary_is_cut_and_leaves_out_quotes() -> None:
    reply = "Clear the cookie of the old path" + "y" * MAX_SUMMARY_CHARS
    result = digest(thread("x", message(f"> It loops.\n\n{reply}")))
    assert result.summary == reply[:MAX_SUMMARY_CHARS]


def test_keywords_are_readable_and_those_of_the_title_come_first() -> None:
    body = (
        "The `parse_cookie` function in auth/cookie.py loops. Cookies, cookies! The sessions expire; a session is lost."
    )
    words = digest(thread(body, title="Login loops with PostgreSQL sessions")).keywords
    assert set(words[:4]) == {"PostgreSQL", "login", "loops", "sessions"}
    assert "parse_cookie" in words
    assert "cookies" in words
    assert "the" not in words
    assert len(words) <= MAX_KEYWORDS


def test_hosts_and_pieces_of_addresses_are_no_keywords() -> None:
    body = (
        "See https://docs.example.com/guide/cookies?tab=first or www.example.org, example.com's mirror of the parser."
    )
    words = digest(thread(body)).keywords
    assert {"parser", "mirror"} <= set(words)
    assert not {"docs", "guide", "tab", "example.com", "www.example.org", "example.com's", "https"} & set(words)


def test_stop_words_of_other_languages_are_no_keywords() -> None:
    cases = [
        ("Quando eu abro a janela, o programa não responde mais e também trava.", {"quando", "não", "mais", "também"}),
        ("Wenn ich das Fenster öffne, ist die Anwendung nicht mehr da und muss weg.", {"wenn", "ich", "die", "nicht"}),
        ("Quand je ferme la fenêtre, elle est encore là avec une erreur.", {"elle", "avec", "une", "encore"}),
    ]
    for body, stop_words in cases:
        words = digest(thread(body, title="PostgreSQL")).keywords
        assert not {word.lower() for word in words} & stop_words, body
        assert len(words) > 2, body


def test_a_stop_word_of_another_language_may_be_a_keyword_in_english() -> None:
    words = digest(thread("The son process and its era are under the MIT license.", title="PostgreSQL")).keywords
    assert {"son", "era", "MIT"} <= set(words)


def test_a_sentence_without_spaces_gives_its_words() -> None:
    words = digest(thread("登录失败后无法恢复会话。", title="PostgreSQL")).keywords
    assert {"登录", "恢复", "会话"} <= set(words)
    assert max(map(len, words[1:])) == 2


def test_files_errors_and_references_of_all_messages_are_kept() -> None:
    result = digest(thread("`error: no session` in auth/cookie.py:3", message("See store/session.py and #12")))
    assert result.files == ("auth/cookie.py", "store/session.py")
    assert result.errors == ("`error: no session` in auth/cookie.py:3",)
    assert result.references == (Reference(12),)


def test_a_reference_is_kept_once_with_its_strongest_action_and_never_to_its_own_thread() -> None:
    result = digest(thread("See #12 and #42.", message("Duplicate of #12")))
    assert result.references == (Reference(12, action="duplicate"),)


def test_the_strongest_action_of_all_messages_counts() -> None:
    cases = [
        ("Fixes #12.", "Duplicate of #12", Reference(12, action="duplicate")),
        ("Duplicate of #12", "Fixes #12.", Reference(12, action="duplicate")),
        ("See Octo/Hub#7.", "octo/hub#7 fixes octo/HUB#7", Reference(7, "Octo", "Hub", "closes")),
        ("Closes Octo/Hub#7.", "Duplicate of octo/hub#7", Reference(7, "Octo", "Hub", "duplicate")),
    ]
    assert [
        body for body, reply, expected in cases if digest(thread(body, message(reply))).references != (expected,)
    ] == []


def test_an_address_in_the_same_repository_is_a_local_reference() -> None:
    body = "See https://github.com/octocat/hello/issues/12"
    assert digest(thread(body), repo="octocat/hello").references == (Reference(12),)
    assert digest(thread(body)).references == (Reference(12, "octocat", "hello"),)


def test_decisions_are_kept_with_their_author_time_and_comment() -> None:
    result = digest(
        thread("It loops.", message("Hm."), message("We decided to use PostgreSQL.", "monalisa", "OWNER", 5, 77))
    )
    (decision,) = result.decisions
    assert decision.text == "We decided to use PostgreSQL."
    assert (decision.author, decision.role, decision.at) == ("monalisa", "OWNER", OPENED + timedelta(hours=5))
    assert (decision.comment, decision.comment_id) == (1, 77)


def test_the_outcome_and_the_canonical_thread_are_part_of_the_digest() -> None:
    closed = OPENED + timedelta(hours=2)
    duplicate = replace(
        thread("x", message("Duplicate of #12.", "monalisa", "MEMBER", 2)),
        state="closed",
        closed_at=closed,
        closed_by="monalisa",
    )
    result = digest(duplicate)
    assert result.outcome.kind is OutcomeKind.DUPLICATE
    assert result.duplicate_of == 12
    assert (result.state, result.closed_at, result.turn_count) == ("closed", closed, 2)


def test_a_long_thread_gives_a_small_digest() -> None:
    text = "\n".join(
        f"error: cannot open n{i}x in src/part_{i}/file_{i}.rs on {i}.{i}.1, see #{i + 100}. We decided on part{i}."
        for i in range(300)
    )
    result = digest(thread(text, *(message(text, role="OWNER", hours=hours) for hours in range(5))))
    assert len(json.dumps(asdict(result), default=str)) < 5_000
    assert len(result.decisions) == 3


def test_the_same_thread_gives_the_same_digest() -> None:
    issue = thread("`a_b` and `c_d` in x.py, y.py", message("We chose b."))
    assert digest(issue) == digest(replace(issue))
    shortened = replace(issue, comments=tuple(comment.shortened(10) for comment in issue.comments))
    assert not is_visible(issue, shortened, None)


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=60))
def test_any_thread_has_a_digest(body: str, reply: str, title: str) -> None:
    result = digest(thread(body, message(reply), title=title))
    assert len(result.summary) <= MAX_SUMMARY_CHARS
    assert len(result.keywords) <= MAX_KEYWORDS


PIECES = ["[", "*", ">", "we decided to ", "#1 ", "a_b ", "error: ", "`", "\0", "\u202e"]


def test_hostile_threads_are_digested_in_linear_time() -> None:
    assert_linear_time(lambda text: digest(thread(text, message(text))), *share(PIECES))
