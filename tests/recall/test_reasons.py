"""Why a thread was found, in words that a reader can check."""

import pytest

from bot.domain.reason import Reason
from bot.domain.thread import Thread
from bot.reading.analyzer import terms
from bot.recall.reasons import SharedSignals, common_title, opening, reasons, shared_signals, surface_forms
from tests.recall.samples import thread


def explain(ours: str, theirs: str, title: str = "Sessions") -> tuple[str, ...]:
    newer, older = thread(2, title, ours), thread(1, title, theirs)
    shared = shared_of(newer, older)
    both = set(terms(theirs)) | set(terms(title))
    return reasons(text_of(newer), shared, {term: True for term in terms(ours) if term in both})


def text_of(issue: Thread) -> str:
    return opening(issue.title, issue.body).text


def shared_of(newer: Thread, older: Thread) -> SharedSignals:
    return shared_signals(opening(newer.title, newer.body), opening(older.title, older.body))


def errors(ours: str, theirs: str) -> tuple[str, ...]:
    return shared_of(thread(2, body=ours), thread(1, body=theirs)).errors


def test_the_strongest_reason_comes_first() -> None:
    text = "error: cookie `{}` refused by read_session in auth/cookie.py, mismatch on every request"
    assert explain(text.format("a"), text.format("b")) == (
        "same error `cookie … refused by read_session in auth/cookie.py, mismatch on every request`",
        "same file `auth/cookie.py`",
    )


def test_one_word_is_no_reason() -> None:
    assert explain("The parser", "A parser") == ()
    assert explain("The HTTP2-Settings", "An HTTP2-Settings") == ()
    assert explain("The parser of sessions", "A parser of a session") == ("words in common: parser, sessions",)
    assert explain("The parser, `auth/cookie.py:41`", "A parser, auth/cookie.py:7") == ("same file `auth/cookie.py`",)


def test_words_that_stand_together_in_both_titles_are_given_as_they_stand_there() -> None:
    ours, theirs = "Asked to compute contents of error type", 'ICE on `as _`: "asked to compute contents of error"'
    phrase = common_title(ours, theirs, is_same=False)
    assert phrase == "both titles say Asked to compute contents of error"
    assert common_title(ours, theirs, is_same=True) == "same title"
    words = dict.fromkeys(terms(f"{theirs} walrus"), True)
    assert reasons(ours, SharedSignals(), words, titles=phrase) == (phrase,)
    assert reasons(f"{ours}\nfor a walrus", SharedSignals(), words, titles=phrase) == (
        phrase,
        "words in common: walrus",
    )
    assert (
        reasons("in the way", SharedSignals(), dict.fromkeys(terms("in the way"), True), titles=Reason.PHRASE + "in")
        == ()
    )
    assert common_title("The cookie is lost", "A cookie was lost", is_same=False) == ""
    assert common_title("", "", is_same=False) == ""
    marks = common_title('Show "local addresses" in the node', "Show (local addresses) in one", is_same=False)
    assert marks == "both titles say Show local addresses"
    plural = common_title("Log the negotiation packet", "Logs of negotiation packets", is_same=False)
    assert plural == "both titles say negotiation packet"
    assert common_title("Tracking issue for relays", "Tracking issue for hooks", is_same=False) == ""
    assert common_title("Test the new parser", "Tests of the new one", is_same=False) == ""


def test_a_name_and_its_plural_are_one() -> None:
    text = "The `NSUserNotification` of `NSUserNotifications` and `SessionStore`"
    assert explain(text, text, title="") == ("both name `NSUserNotification` and `SessionStore`",)


def test_a_raised_exception_is_an_error_whatever_it_is_called() -> None:
    line = "Relay::BadGateway: upstream closed the connection"
    assert errors(f"It says {line}. Each time.", f"```\n{line}\n```") == (line,)
    assert explain(f"It says {line}, each time.", f"```\n{line} (502)\n```") == (f"same error `{line} …`",)
    assert errors(line, "Relay::BadGateway: the pool is empty again") == ()
    assert errors("JavaScript: a new one", "JavaScript: another one") == ()


def test_the_common_part_of_differing_error_lines_is_quoted() -> None:
    line = "UploadTimeoutError: chunk {} of 'logs {}' timed out after 30 s"
    assert explain(line.format(3, "a b"), line.format(17, "a c"))[0] == (
        "same error `UploadTimeoutError: chunk … of 'logs a … timed out after 30 s`"
    )
    shown = explain("Error: Pool is drained", "error: pool is drained")[0]
    assert shown == "same error `Error: Pool is drained`"


def test_at_most_three_reasons_are_given() -> None:
    text = "error: refused\n\nsession.py and read_session, write_session, drop_session: the proxy, the cookie, the path"
    assert explain(text, text) == (
        "same error `error: refused`",
        "same file `session.py`",
        "both name `read_session` and `write_session`",
    )


def test_errors_agree_whatever_their_numbers_and_paths() -> None:
    assert errors("error: slot 17 is taken in /srv/a.py", "error: slot 4 is taken in C:\\b.py")
    assert not errors("error: slot 17 is taken", "error: slot 17 is free")


def test_a_line_that_says_only_that_something_failed_is_no_shared_error() -> None:
    lines = [
        "error: aborting due to previous error",
        "error: aborting due to 3 previous errors",
        "error: linking with `gcc` failed: exit code: 1",
        "collect2: error: ld returned 1 exit status",
        "test result: FAILED. 12 passed; 1 failed; 3 ignored; 0 measured",
        "Segmentation fault (core dumped)",
        "Thread 1 received signal SIGSEGV, Segmentation fault.",
        "error:",
    ]
    assert [line for line in lines if errors(line, line) != ()] == []


def test_an_error_with_a_quoted_message_must_agree_word_for_word() -> None:
    ours = "task 'main' panicked at 'index out of bounds', lib.rs:12"
    assert errors(ours, ours)
    assert errors(ours, "task 'main' panicked at 'division by zero', lib.rs:12") == ()


def test_a_constant_is_called_an_error_only_where_something_failed() -> None:
    title = "Size of a WINDOW_UPDATE"
    assert explain("What does WINDOW_UPDATE mean?", "Drop WINDOW_UPDATE?", title)[0] == "both name `WINDOW_UPDATE`"
    assert explain("WARNING SESSION_PATH", "WARNING SESSION_PATH")[0] == "same error `SESSION_PATH`"
    assert (
        explain("The frame is WINDOW_UPDATE, never an error", "WINDOW_UPDATE", title)[0] == "both name `WINDOW_UPDATE`"
    )
    assert explain("Got PATH_MISMATCH", "PATH_MISMATCH again")[0] == "same error `PATH_MISMATCH`"


def test_a_single_name_is_a_reason_only_if_the_title_has_it() -> None:
    """A function that everything calls, such as ``unwrap``, is in many traces and the subject of none."""
    assert explain("It stops in `Store::open_all`", "See `Store::open_all`") == ()
    assert explain("It stops", "It stopped", "`Store::open_all` stops") == ("both name `Store::open_all`",)
    both = "It stops in `Store::open_all` and `Shelf::sort_by`"
    assert explain(both, both)[0] == "both name `Store::open_all` and `Shelf::sort_by`"


def test_a_name_is_shown_only_if_both_have_it_and_a_part_of_a_word_is_not_shown() -> None:
    assert explain("Split HEADERS_WITH_PRIORITY, the layout too", "A priority and a layout") == ()
    assert explain("An irrefutable and a refutable pattern", "irrefutable, refutable patterns") == (
        "words in common: irrefutable, pattern",
    )


def test_the_platform_of_a_program_is_no_reason() -> None:
    assert explain("Crates on x86_64-apple-darwin", "crates, x86_64-apple-darwin") == ()


def test_words_are_shown_as_the_question_writes_them() -> None:
    assert explain("Cookies are refused behind proxies", "a cookie was refused by the proxy") == (
        "words in common: Cookies, refused, proxies",
    )


def test_a_word_that_also_occurs_in_lower_case_is_shown_in_lower_case() -> None:
    forms = surface_forms("Cookie lost. The cookie of Redis.", terms("cookie redis"))
    assert list(forms.values()) == ["cookie", "Redis"]


def test_code_among_the_words_is_marked_as_code() -> None:
    newer, older = thread(2, body="vantage_point"), thread(1, body="vantage-point")
    assert reasons(text_of(newer), shared_of(newer, older), dict.fromkeys(terms("vantage_point odd"), False)) == ()
    shown = reasons(text_of(newer), shared_of(newer, older), {"vantagepoint": False, "odd": True})
    assert shown == ("words in common: `vantage_point`, odd",)


def test_numbers_dates_addresses_and_mangled_names_are_no_reason() -> None:
    cases = [
        "June 2019",
        "Monday",
        "02 64 127",
        "https://lists.example.org/Archives/Public/0925.html",
        "driver::span::h86708ae800cea0fd",
    ]
    for noise in cases:
        shown = explain(f"cookie proxy {noise}", f"cookie proxy {noise}")
        assert shown == ("words in common: cookie, proxy",), noise


def test_words_that_every_tracker_is_full_of_are_never_shown() -> None:
    assert explain("error problem proxy cookie", "error problem proxy cookie") == ("words in common: proxy, cookie",)
    assert explain("error problem", "error problem") == ()


def test_nothing_is_shown_twice() -> None:
    shown = explain("Got PATH_MISMATCH for the path", "PATH_MISMATCH of a path")
    assert shown == ("same error `PATH_MISMATCH`",)


def test_backticks_inside_code_do_not_end_it() -> None:
    text = "error: cookie `lb` refused"
    assert explain(text, text)[0] == "same error `error: cookie 'lb' refused`"


WITH_EVERY_REASON = (
    "error: src/auth/cookie.py refused the relay\nresolve_proxy and LOST_RELAY confuse walrus and marmot\n"
)


@pytest.mark.slow
def test_hostile_text_gives_no_more_than_three_reasons() -> None:
    texts = ["[" * 65_536, "\x00\ud800" * 100, "a" * 65_536, "`" * 65_536, "\u202eabc" * 1000, WITH_EVERY_REASON * 1000]
    for text in texts:
        newer = Thread(2, text[:1000], text, "monalisa", thread(2).created_at)
        assert len(reasons(text_of(newer), shared_of(newer, newer), dict.fromkeys(terms(text)[:50], True))) <= 3, text


def test_an_error_code_alone_is_a_reason() -> None:
    assert explain("The backup ends with ENOSPC at night", "We see ENOSPC since Monday")[0] == "same error `ENOSPC`"


def test_words_of_the_titles_are_a_reason() -> None:
    newer, older = thread(2, "Snapshot worker stops", "It is idle."), thread(1, "Worker of snapshots stops", "No room.")
    assert reasons(text_of(newer), shared_of(newer, older), dict.fromkeys(terms("snapshot worker"), True)) == (
        "words in common: Snapshot, worker",
    )


def test_threads_that_share_nothing_have_no_reason() -> None:
    newer, older = thread(2, "Snapshot worker stops"), thread(1, "Archive is full")
    assert reasons(text_of(newer), shared_of(newer, older), {}) == ()


def test_unspecific_words_are_shown_only_if_they_are_code() -> None:
    newer, older = thread(2, body="The read_path of the cookie"), thread(1, body="read_path: cookie")
    words = {"cooki": False, "path": False, "readpath": True, "odd": True}
    assert reasons(text_of(newer), SharedSignals(), words) == ("words in common: `read_path`, odd",)
    assert shared_of(newer, older).names == ("read_path",)


def test_words_of_every_report_are_no_reason_in_any_language() -> None:
    texts = ("报错 podspec", "エラー podspec", "ошибка podspec", "오류 podspec", "erreur podspec")
    for text in texts:
        newer, older = thread(2, text), thread(1, text)
        assert reasons(text_of(newer), shared_of(newer, older), dict.fromkeys(terms(text), True)) == (), text


def test_the_same_text_is_a_reason_without_its_words() -> None:
    text = "error: relay 7 closed the channel; see read_session"
    newer, older = thread(2, body=text), thread(1, body=text)
    shown = reasons(text_of(newer), shared_of(newer, older), {"relay": True, "channel": True}, is_same=True)
    assert shown == ("same text", "same error `error: relay 7 closed the channel; see read_session`")


def test_the_telling_part_of_an_error_is_quoted() -> None:
    cases = [
        ("a.rs:7:6: 7:11 error: cookie is lost", "b.rs:1:6: 1:9 error: cookie is lost", "cookie is lost"),
        (
            "<std macros>:3:24: 19:30 error: type `A` has no cookie left in the jar",
            "<std macros>:3:24: 10:11 error: type `B` has no cookie left in the jar",
            "type … has no cookie left in the jar",
        ),
        (
            "task 'one' panicked at 'no cookie is left in the jar', a/b.rs:10",
            "thread 'two' panicked at 'no cookie is left in the jar', a/b.rs:12",
            "no cookie is left in the jar",
        ),
        (
            "error: internal compiler error: " + "the cookie that was asked for is lost",
            "x.rs:1:1: error: internal compiler error: the cookie that was asked for is lost",
            "the cookie that was asked for is lost",
        ),
    ]
    assert [
        ours for ours, theirs, shown in cases if explain(ours, theirs, title="It stops")[0] != f"same error `{shown}`"
    ] == []


def test_an_error_of_few_words_with_another_name_is_no_reason() -> None:
    assert explain("error: type `Jar` has no cookie", "error: type `Box` has no cookie", title="It stops") == ()


def test_a_panic_that_says_nothing_is_no_shared_error() -> None:
    for message in ["Box<Any>", "explicit panic", "assertion failed"]:
        line = f"thread 'main' panicked at '{message}', src/lib.rs:4"
        assert errors(line, line) == (), message


def test_a_file_on_a_machine_is_shown_with_its_folder_only() -> None:
    line = "It stops at /home/{}/build/src/libcore/option.rs."
    assert explain(line.format("mona"), "/home/mona/build/src/libcore/option.rs")[0] == "same file `libcore/option.rs`"


@pytest.mark.parametrize("name", ["tmp.rs", "test.rs:9:2", "foo.py", "main2.c", "a.js:3", "Main.java"])
def test_a_file_made_to_show_a_problem_is_no_reason(name: str) -> None:
    assert explain(f"The parser stops in {name}", f"The linker fails in {name}") == ()
    assert explain(f"The parser stops in src/parser/{name}", f"A failure in src/parser/{name}") != ()


def test_a_frame_of_the_runtime_is_no_shared_file() -> None:
    frames = "at f (internal/module.js:12:17)\n    at internal/main/run.js:17:47\n    at node:internal/main/run.js:3:1"
    assert shared_of(thread(2, body=f"    {frames}"), thread(1, body=f"    {frames}")).files == ()
    own = "    at Relay.close (src/relay.js:12:3)\n    at src/pool.js:1:2"
    assert shared_of(thread(2, body=own), thread(1, body=own)).files == ("src/relay.js", "src/pool.js")


def test_a_chinese_phrase_does_not_end_with_a_word_of_grammar() -> None:
    ours, theirs = "native主动发送事件到weex", "native主动发送事件到JS"
    assert explain(ours, theirs, title="") == ("words in common: native, 主动发送事件",)
