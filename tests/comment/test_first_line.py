"""The first line of a comment: what the nearest issue says, if that is certain enough."""

from dataclasses import replace

from bot.comment.first_line import first_line
from bot.comment.outcome_text import CommentPhrases
from bot.comment.render import shipped_words
from bot.domain.answer import Context
from bot.domain.thread import Outcome, OutcomeKind
from tests.comment.contexts import GITHUB, MENTION, NOW, OPEN, closed_match, quoted_outcome
from tests.comment.detector import report
from tests.comment.test_outcome_text import FIX, FIXED, WAITING


def line_of(context: Context) -> str:
    """The first line as a reader sees it."""
    return report(first_line(context, CommentPhrases(GITHUB, NOW, {}, shipped_words()))).text.strip()


def test_a_fix_is_told_with_its_release_its_change_and_the_version_of_the_report() -> None:
    cases = [
        (FIXED, FIX, "2.2.4", False, "Likely fixed in v2.3.0 by pull request 30; you report 2.2.4."),
        (FIXED, FIX, "2.4", True, "Fixed before, in v2.3.0; you report 2.4, so the problem may be back."),
        (FIXED, FIX, "", False, "Likely fixed in v2.3.0 by pull request 30."),
        (FIXED, WAITING, "2.2.4", False, "Likely fixed by pull request 30, which is not in a release yet."),
        (FIXED, None, "", False, "Likely fixed by change 30."),
        (replace(FIXED, release="3"), None, "2-rc.1", False, "Likely fixed in 3 by change 30; you report 2-rc.1."),
        (replace(FIXED, release="2.3", fix=None), None, "2.2", False, "Likely fixed in 2.3; you report 2.2."),
        (replace(FIXED, fix=None), None, "2.2", False, ""),
        (replace(FIXED, confidence=0.5), FIX, "", False, ""),
    ]  # fmt: skip
    for outcome, fix, asked_on, may_be_back, words in cases:
        nearest = closed_match(outcome, fix=fix, asked_on=asked_on, may_be_back=may_be_back)
        assert line_of(Context(seen_before=(nearest,))) == words


def test_other_endings_are_told_in_the_words_of_those_who_know() -> None:
    said, shown = "Set `proxy: true`.", "“Set proxy: true.” (monalisa, maintainer)"
    marked = quoted_outcome(OutcomeKind.ANSWERED, said, role="NONE", confidence=0.99)
    cases = [
        (quoted_outcome(OutcomeKind.ANSWERED, said), f"Answered before: {shown}"),
        (quoted_outcome(OutcomeKind.WORKAROUND, said), f"There is a workaround: {shown}"),
        (quoted_outcome(OutcomeKind.NOT_PLANNED, said), f"Declined before: {shown}"),
        (quoted_outcome(OutcomeKind.ANSWERED, said, role="NONE"), ""),
        (marked, "Answered before: “Set proxy: true.” (monalisa)"),
        (quoted_outcome(OutcomeKind.ANSWERED, "Closing."), ""),
        (quoted_outcome(OutcomeKind.STALE, said), ""),
        (quoted_outcome(OutcomeKind.UNKNOWN, said), ""),
        (Outcome(), ""),
    ]  # fmt: skip
    for outcome, words in cases:
        assert line_of(Context(seen_before=(closed_match(outcome),))) == words


def test_only_the_nearest_issue_counts_and_an_open_one_says_that_it_is_open() -> None:
    fixed, unknown = closed_match(FIXED, fix=FIX), closed_match(Outcome(), similarity=0.81)
    near = replace(OPEN, why=("same title", "same error `E42`"))
    assert line_of(Context(seen_before=(unknown, fixed))) == ""
    assert line_of(Context((MENTION,), open_now=(near,))) == "Likely the same as issue 8, which is still open."
    assert line_of(Context(seen_before=(fixed,), open_now=(replace(near, similarity=0.9),))).startswith(
        "Likely the same"
    )
    assert line_of(Context((MENTION,))) == ""


def test_what_has_only_words_or_names_in_common_is_not_called_the_same() -> None:
    cases = {("words in common: a, b",): False, ("both name `a` and `b`",): False, ("same error `a … b`",): False}
    cases |= {("same text",): True, ("same title", "words in common: a, b"): True, ("same file `a.py`",): True}
    cases |= {("same error `E1: a`",): False}
    for why, is_told in cases.items():
        assert bool(line_of(Context(open_now=(replace(OPEN, why=why, similarity=0.8),)))) is is_told, why
    assert line_of(Context(open_now=(replace(OPEN, why=("words in common: a, b",), similarity=0.9),)))


def test_the_same_error_with_other_titles_is_not_called_the_same_issue() -> None:
    whys = {
        ("same error `E1: a`", "same file `a.py`"): "Same error as in",
        ("same text", "same error `E1: a`"): "Likely",
    }
    whys |= {("same title", "same error `E1: a`"): "Likely", ("same file `a.py`",): "Likely"}
    for why, beginning in whys.items():
        assert line_of(Context(open_now=(replace(OPEN, why=why, similarity=0.9),))).startswith(beginning), why
