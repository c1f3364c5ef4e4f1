"""How a thread ended, in words: only what is known, never a verdict on the report."""

from dataclasses import replace
from datetime import timedelta

from bot.comment.render import shipped_words
from bot.comment.template_view import view_of
from bot.domain.answer import Context, Match, Mention
from bot.domain.changes import FixInfo
from bot.domain.thread import Kind, Outcome, OutcomeKind
from bot.reading.endings.outcome import CONTINUATION
from tests.comment.contexts import GITHUB, NOW, REOPENED, closed_match, day, quoted_outcome, turn
from tests.comment.detector import report

FIX = FixInfo(
    7, "#30", NOW, is_pull=True, commit="9c1d2e3", merged_at=day(5, 2), files=("a.py", "b.py"), release="v2.3.0"
)
FIXED = quoted_outcome(OutcomeKind.FIXED, fix="#30")
WAITING = replace(FIX, release=None, unreleased=True)
PULL = Mention(30, "Widen the path", "closed", kind=Kind.PULL, created_at=day(5, 1), closed_at=day(5, 3))
DUPLICATE = quoted_outcome(OutcomeKind.DUPLICATE, "", duplicate_of=12)


def item_of(hit: Match | Mention) -> dict[str, object]:
    """What the comment says about a hit that its first line is not about."""
    first = closed_match(Outcome(), id=1)
    context = Context(mentioned=(hit,)) if isinstance(hit, Mention) else Context(seen_before=(first, hit))
    view = view_of(context, GITHUB, NOW, shipped_words())
    *_, shown = view["mentioned" if isinstance(hit, Mention) else "seen_before"]  # type: ignore[misc]
    assert isinstance(shown, dict)
    return shown


def facts_of(hit: Match | Mention) -> str:
    """The facts as a reader sees them."""
    return report(" · ".join(item_of(hit)["facts"])).text.strip()  # type: ignore[arg-type]


def test_an_ending_says_what_is_known() -> None:
    cases = [
        (closed_match(FIXED, fix=FIX), "fixed in v2.3.0 by pull request 30, 3 May 2025"),
        (closed_match(replace(FIXED, release="2.2"), fix=FIX), "fixed in v2.3.0 by pull request 30, 3 May 2025"),
        (closed_match(replace(FIXED, release="2.2")), "fixed in 2.2 by change 30, 3 May 2025"),
        (closed_match(replace(FIXED, fix=None, release="2.2")), "fixed in 2.2, 3 May 2025"),
        (closed_match(FIXED, fix=WAITING), "fixed by pull request 30, 3 May 2025, not in a release yet"),
        (closed_match(replace(FIXED, release="2.2"), fix=WAITING), "fixed in 2.2 by pull request 30, 3 May 2025"),
        (closed_match(FIXED, fix=replace(WAITING, commit=None)), "fixed by pull request 30, 3 May 2025"),
        (
            closed_match(FIXED, fix=replace(WAITING, merged_at=NOW - timedelta(days=366))),
            "fixed by pull request 30, 3 May 2025",
        ),
        (closed_match(FIXED, fix=replace(FIX, is_pull=False)), "fixed in v2.3.0 by change 30, 3 May 2025"),
        (closed_match(replace(FIXED, fix=None)), "fixed, 3 May 2025"),
        (closed_match(replace(FIXED, fix="octo/other#57")), "fixed by octo/other#57, 3 May 2025"),
        (closed_match(replace(FIXED, fix="octo/other@9c1d2e3")), "fixed by octo/other@9c1d2e3, 3 May 2025"),
        (closed_match(quoted_outcome(OutcomeKind.NOT_PLANNED)), "declined, 3 May 2025"),
        (closed_match(quoted_outcome(OutcomeKind.NOT_PLANNED, "")), "closed as not planned, 3 May 2025"),
        (closed_match(quoted_outcome(OutcomeKind.NOT_PLANNED, "Closing this.")), "closed as not planned, 3 May 2025"),
        (closed_match(quoted_outcome(OutcomeKind.NOT_PLANNED, "\u3164\u202e")), "closed as not planned, 3 May 2025"),
        (closed_match(quoted_outcome(OutcomeKind.STALE, "")), "closed as stale, 3 May 2025, by monalisa"),
        (closed_match(Outcome()), "closed as completed, 3 May 2025, by monalisa"),
        (closed_match(Outcome(), closed_by=None, state_reason=None), "closed, 3 May 2025"),
        (closed_match(DUPLICATE), "closed as a duplicate of issue 12, 3 May 2025"),
        (
            closed_match(replace(DUPLICATE, duplicate_of=None)),
            "closed as a duplicate, 3 May 2025",
        ),
        (
            closed_match(replace(DUPLICATE, evidence=("last comment before closing", CONTINUATION))),
            "closed in favour of issue 12, 3 May 2025",
        ),
        (
            closed_match(replace(DUPLICATE, evidence=("marked as duplicate", CONTINUATION))),
            "closed as a duplicate of issue 12, 3 May 2025",
        ),
        (replace(PULL, merged_at=day(5, 2)), "merged, 2 May 2025"),
        (replace(PULL, merged_at=day(5, 2), fix=FIX), "merged, 2 May 2025 · first released in v2.3.0"),
        (replace(PULL, merged_at=day(5, 2), fix=WAITING), "merged, 2 May 2025, not in a release yet"),
        (PULL, "closed without being merged, 3 May 2025"),
        (replace(PULL, outcome=quoted_outcome(OutcomeKind.FIXED, "")), "closed, 3 May 2025"),
        (replace(PULL, state="open"), "still open since 1 May 2025"),
        (replace(PULL, state="open", draft=True), "open draft since 1 May 2025"),
        (Mention(5, "Cookies", "open"), "still open"),
        (
            Mention(5, "Cookies", "open", created_at=day(4, 1), earlier=REOPENED),
            "open again since 9 May 2025, after it was fixed by change 30, 3 May 2025",
        ),
        (
            Mention(5, "Cookies", "open", earlier=replace(REOPENED, outcome=Outcome())),
            "open again since 9 May 2025, after it was closed, 3 May 2025",
        ),
        (
            Mention(5, "Cookies", "open", created_at=day(5, 1), chain=(4,)),
            "still open since 1 May 2025 · issue 4 was closed as a duplicate of it",
        ),
        (
            Mention(5, "Cookies", "open", chain=(3, 4)),
            "still open · issue 3, issue 4 were closed as duplicates of it",
        ),
    ]
    assert [hit for hit, words in cases if facts_of(hit) != words] == []


def test_a_release_is_linked_only_if_the_forge_knows_it() -> None:
    linked, unlinked = (
        str(item_of(closed_match(FIXED, fix=fix))["facts"]) for fix in (replace(FIX, release="a/b#1?"), None)
    )
    assert "(https://redirect.github.com/octo-org/hello-world/releases/tag/a%2Fb%231%3F)" in linked
    assert "/releases/" not in unlinked


def test_the_files_of_the_fix_come_before_those_that_the_thread_names() -> None:
    shown = item_of(closed_match(FIXED, fix=FIX, files=("b.py", "e/c.py", "e/d.py")))
    assert (shown["changed"], shown["files"]) == ("`a.py`, `b.py`", "`e/c.py`")
    many = tuple(f"{n}.py" for n in range(9))
    shown = item_of(closed_match(FIXED, fix=replace(FIX, files=many), files=("x.py",)))
    assert (shown["changed"], shown["files"]) == ("`0.py`, `1.py`, `2.py`, `3.py`, `4.py`", "")


def test_only_named_files_in_a_folder_of_the_repository_are_shown() -> None:
    names = ("t.rs", "-.rs", "README.md", "/home/mona/a/b.py", "../a/b.py", "C:\\a\\b.py", "auth/cookie.py")
    assert item_of(closed_match(FIXED, fix=None, files=names))["files"] == "`auth/cookie.py`"


def test_the_day_of_the_ending_is_shown_once() -> None:
    assert "May" not in report(str(item_of(closed_match(FIXED))["quote"])).text
    assert "4 May 2025" in report(str(item_of(closed_match(replace(FIXED, at=day(5, 4))))["quote"])).text


def test_code_in_a_quote_is_code() -> None:
    quote = "Set `@octocat #1 <b>` and ` x` or ``y``; http:`//evil.example` ` `//evil.example @` `octocat"
    findings = report(str(item_of(closed_match(quoted_outcome(OutcomeKind.ANSWERED, quote)))["quote"]))
    assert set(findings.tags) == {"p", "p/code", "p/a"}
    assert (findings.mentions, findings.references) == ([], [])
    assert len(findings.links) == 1


def test_a_quote_does_not_repeat_that_a_thread_is_closed() -> None:
    sentences = ["Closing.", "Closing for now.", "Ok, I'm closing this issue."]
    for sentence in sentences:
        assert item_of(closed_match(quoted_outcome(OutcomeKind.UNKNOWN, sentence)))["quote"] == "", sentence
        assert item_of(closed_match(quoted_outcome(OutcomeKind.UNKNOWN, f"{sentence} It works.")))["quote"], sentence


def test_an_ending_is_bold_only_if_the_issue_is_nearly_the_same() -> None:
    is_bold = {("same error `E42`",): True, ("same error `E42 … lost`",): False, ("words in common: a, b",): False}
    for why, expected in is_bold.items():
        (ending,) = item_of(closed_match(FIXED, why=why, similarity=0.8))["facts"]
        assert ("**" in ending, "fixed" in ending) == (expected, True), why


def test_the_ending_of_an_issue_that_is_only_somewhat_alike_is_folded() -> None:
    """Next to its title it reads as an answer to the new issue."""
    declined = quoted_outcome(OutcomeKind.NOT_PLANNED)
    for why, similarity, is_told in (
        (("both titles say END_STREAM flag",), 0.74, False),
        (("both titles say END_STREAM flag",), 0.75, True),
        (("same error `E42`",), 0.66, True),
    ):
        shown = item_of(closed_match(declined, why=why, similarity=similarity))
        facts, ended = (report(str(shown[name])).text for name in ("facts", "ended"))
        assert ("declined" in facts, bool(shown["quote"]), "declined" in ended) == (is_told, is_told, not is_told), why
        assert "3 May 2025" in facts
        assert shown["show"]


def test_a_quote_does_not_repeat_that_nobody_answered() -> None:
    for sentence in ("No response for months, closing.", "这个问题长期没有讨论，这里先做关闭处理了"):
        assert item_of(closed_match(quoted_outcome(OutcomeKind.STALE, sentence)))["quote"] == "", sentence
    assert item_of(closed_match(quoted_outcome(OutcomeKind.STALE, "Gone with the new engine.")))["quote"]
    assert item_of(closed_match(quoted_outcome(OutcomeKind.FIXED, "The inactive tab has focus again.")))["quote"]


def test_a_turn_that_was_cut_within_its_code_does_not_swallow_the_next_turn() -> None:
    cut = turn("octocat", day(4, 20), "```\nlog...")
    turns = (cut, turn("monalisa", day(5, 3), "Ask @hubot of #5.", "MEMBER"))
    shown = str(item_of(closed_match(FIXED, conversation=turns))["conversation"])
    assert shown.count("```") == 2
    assert shown.rindex("```") < shown.index("**monalisa** (maintainer)")
    assert "@hubot" not in shown
    assert "#5" not in shown


def test_files_on_somebodys_disk_are_not_named() -> None:
    paths = ("/home/octocat/src/a.py", "~/a.py", "C:\\src\\a.py", "../../usr/a.h", "src/a.py")
    assert item_of(closed_match(FIXED, files=paths))["files"] == "`src/a.py`"
