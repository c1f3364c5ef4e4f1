"""What people see of a run in the job summary and in the log."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.report import MAX_REPLAYED_COMMENTS, MAX_SUMMARY_BYTES, replayed_comments, summarise
from bot.comment.clean_text import log_line
from bot.domain.answer import Match
from bot.github.threads import OwnComment
from bot.pipeline.reconcile import CommentResult
from tests.evaluation.samples import backtest, replayed, shown

NOON = datetime(2025, 3, 11, 12, tzinfo=UTC)


def test_problems_come_first_then_threads_and_stages() -> None:
    comment = OwnComment(5, "", url="https://github.com/o/r/issues/12")
    text = summarise(
        results=(
            CommentResult(12, "Login loops", "created", comment=comment),
            CommentResult("ABC-1", "", "silent", "nothing reached 0.65"),
        ),
        notes=("catch-up: 3 threads",),
        problems=("template context.md.j2: 'nobody' is undefined; the shipped template was used",),
    )
    positions = [text.index(part) for part in ("Needs attention", "nobody", "Login loops", "ABC-1", "catch-up")]
    assert positions == sorted(positions)
    assert "nothing reached 0.65" in text
    assert "[created](https://github.com/o/r/issues/12)" in text


def test_a_run_without_work_says_so() -> None:
    assert "Nothing to do." in summarise()


def test_a_comment_that_would_have_been_posted_is_shown_in_full() -> None:
    text = summarise([CommentResult(3, "", "would say", text="<!-- precedent:v1 id=action -->\n\n- one\n- two\n")])
    assert "  - one\n  - two" in text
    assert text.count("<details open>") == text.count("</details>") == 1


def test_the_nearest_threads_are_folded_below_the_result_with_similarity_and_reasons() -> None:
    match = Match(7, "@octocat </details> lost", 0.5123, "closed", NOON, why=("same error `<b>X_LOST`",))
    text = summarise([CommentResult(3, "", "silent", "nothing", nearest=(match,)), CommentResult(4, "", "silent")])
    assert text.count("<details>") == text.count("</details>") == 1
    (line,) = (line for line in text.splitlines() if line.startswith("  - 0.51"))
    assert "issue 7" in line
    assert "X_LOST" in line
    assert "@octocat" not in line
    assert "<b>" not in line


def test_a_near_thread_without_a_reason_ends_with_its_state() -> None:
    text = summarise([CommentResult(3, "", "silent", "nothing", nearest=(Match(7, "Lost", 0.1, "closed", NOON),))])
    assert "  - 0.10 · issue 7: Lost · closed\n" in text


def test_text_by_strangers_is_defanged() -> None:
    hostile = "@octocat\n# x ![i](https://evil.example/p.png) | </details>"
    text = summarise([CommentResult(3, hostile, "silent", hostile)], [hostile], [hostile])
    assert "@octocat" not in text
    assert "![" not in text
    assert "\n# x" not in text
    assert "</details>" not in text


def test_a_report_that_is_too_long_ends_after_a_complete_entry_and_says_so() -> None:
    text = summarise(notes=[f"note {n} " + "é" * 200 for n in range(9_000)])
    assert len(text.encode()) <= MAX_SUMMARY_BYTES
    assert text.endswith("\n*The rest did not fit.*\n")
    assert text.split("\n")[-4].endswith("é")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("::add-mask::x", ": :add-mask: :x"),
        (":::x", ": ::x".replace("::", ": :")),
        ("##[group]x", "# #[group]x"),
        ("a\n::error::b\r\n", "a%0A: :error: :b%0D%0A"),
        ("100%0Asure", "100%250Asure"),
        ("\x1b[2J\u202e\ud800", "\ufffd[2J\ufffd\ufffd"),
    ],
)
def test_a_log_line_is_one_line_and_never_a_workflow_command(text: str, line: str) -> None:
    assert log_line(text) == line


@given(st.text(st.characters(codec=None)) | st.text(st.sampled_from(":#[%\r\n ad"), max_size=30))
def test_no_text_becomes_a_workflow_command(text: str) -> None:
    line = log_line(text)
    assert "::" not in line
    assert "##[" not in line
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line)
    line.encode()


def test_the_comments_of_a_replay_are_folded_below_their_issues_newest_first() -> None:
    silent, spoke, newest = (
        replayed(1),
        replayed(2, shown(11, 0.9), title="@octocat `loops`", markdown="- [#11](https://github.com/o/r/issues/11)\n"),
        replayed(3, shown(11, 0.9), title="Newest", markdown="### Seen before\n"),
    )
    entries = list(replayed_comments(backtest(silent, spoke, newest), "https://github.com/o/r"))
    text = summarise(findings=entries)
    assert [text.count(part) for part in ("<details>", "</details>", "issues/1)")] == [2, 2, 0]
    assert text.index("Newest") < text.index("loops")
    assert "- [issue 2: " in text
    assert "](https://github.com/o/r/issues/2)" in text
    assert "@octocat" not in text
    assert "\n  - [#11](https://github.com/o/r/issues/11)\n" in text
    assert list(replayed_comments(backtest(silent), "https://github.com/o/r")) == []


def test_the_summary_shows_at_most_twenty_comments_of_a_replay() -> None:
    threads = [replayed(key, shown(900, 0.9)) for key in range(1, 40)]
    entries = list(replayed_comments(backtest(*threads), "https://github.com/o/r"))
    assert len(entries) == 1 + MAX_REPLAYED_COMMENTS
