"""How threads ended: what counts as evidence, and when nothing is claimed."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import endings
from bot.domain.change_state import ChangeState
from bot.domain.thread import Kind, Message, Outcome, OutcomeKind, Thread, TimelineEvent
from bot.reading.endings.outcome import outcome
from bot.reading.endings.phrases import fold_for_stems, phrase_book
from bot.reading.endings.quote import MAX_QUOTE_CHARS
from bot.reading.markdown import statements
from bot.recall.answer import with_change_state
from tests.reading.linear_time import assert_linear_time
from tests.reading.samples import CLOSED, closed

SHA = "0d0e0ed056a4578107cd5cc90484dd57cde089de"


def message(text: str, before: timedelta = timedelta(0), author: str = "monalisa", role: str = "MEMBER") -> Message:
    return Message(author, role, CLOSED - before, text, id=7)


KINDS = [
    ("Fixed by #57.", OutcomeKind.FIXED),
    ("This was fixed in 8b3a56dd0bd2.", OutcomeKind.FIXED),
    ("Closing, as #57 has been merged.", OutcomeKind.FIXED),
    ("Done.", OutcomeKind.FIXED),
    ("Duplicate of #12.", OutcomeKind.DUPLICATE),
    ("This appears to be a dupe of #12.", OutcomeKind.DUPLICATE),
    ("Probably a duplicate of #12, closing.", OutcomeKind.DUPLICATE),
    ("Closing in favour of https://github.com/octocat/hello/issues/12", OutcomeKind.DUPLICATE),
    ("Thanks! Closing as a duplicate.", OutcomeKind.DUPLICATE),
    ("We decided not to support this.", OutcomeKind.NOT_PLANNED),
    ("wontfix, sorry", OutcomeKind.NOT_PLANNED),
    ("That code is no longer used, closing.", OutcomeKind.STALE),
    ("Closing due to lack of activity.", OutcomeKind.STALE),
    ("This is expected behavior.", OutcomeKind.ANSWERED),
    ("As a workaround, clear the cookie.", OutcomeKind.WORKAROUND),
    ("#57 fixed this.", OutcomeKind.FIXED),
    ("This is fixed now, if not please reopen.", OutcomeKind.FIXED),
    ("The fix has been merged.", OutcomeKind.FIXED),
    ("I've added a section on cookies.", OutcomeKind.FIXED),
    ("Works for me now.", OutcomeKind.FIXED),
    ("Superseded by #12.", OutcomeKind.DUPLICATE),
    ("This is the same issue as #12.", OutcomeKind.DUPLICATE),
    ("#12 is a duplicate and has more about it.", OutcomeKind.DUPLICATE),
    ("This has moved to #12.", OutcomeKind.DUPLICATE),
    ("I don't think that this is worth the trouble.", OutcomeKind.NOT_PLANNED),
    ("There is nothing here that we can do.", OutcomeKind.NOT_PLANNED),
    ("This isn't the right place to ask for it.", OutcomeKind.NOT_PLANNED),
    ("Closing with no action.", OutcomeKind.NOT_PLANNED),
    ("The plugin was removed in the meantime.", OutcomeKind.STALE),
    ("It does not happen to anybody any more.", OutcomeKind.STALE),
    ("We never heard back, closing.", OutcomeKind.STALE),
    ("Not a bug: the cookie has to go.", OutcomeKind.ANSWERED),
    ("That is by design.", OutcomeKind.ANSWERED),
]


def test_a_closing_comment_gives_the_kind_that_it_states() -> None:
    for text, kind in KINDS:
        result = outcome(closed(message(text)))
        assert result.kind is kind, text
        assert (result.comment, result.comment_id, result.author, result.role, result.at) == (
            0,
            7,
            "monalisa",
            "MEMBER",
            CLOSED,
        ), text
        assert result.confidence >= 0.75, text


def test_doubt_quotes_and_code_name_no_kind() -> None:
    texts = [
        "Is this a duplicate of #12?",
        "This is not a duplicate of #12.",
        "Maybe a duplicate of #12",
        "This will be fixed by #57",
        "Not fixed by #57",
        "#57 is related.",
        "It should be done in the library.",
        "> Fixed by #57.\n\nI see.",
        "~~Fixed by #57.~~ See below.",
        "```\nFixed by #57.\n```\nis the log line",
        "It calls `obsolete()` there.",
        "Duplicate of #42",
        "The parser rejected the file.",
        "This will be in the 1.4.0 release.",
        "Let me fix that.",
        "It can be fixed by #57.",
        "This should be addressed in #57.",
        "This will be fixed once #57 has landed.",
        "If this is no longer relevant, please close it.",
        "It is not obsolete.",
        "This was not intended.",
        "The maximum frame size is fixed.",
        "The variable is used out of scope.",
        "I changed the title.",
        "I added a note to #12.",
        "This is still in scope.",
        "I believe this is fixed now. Please reopen otherwise.",
        "Should be fixed by #57 (and partly by #58).",
        "This should be fixed now, if not please reopen.",
        "Likely fixed by #57.",
        "Fixed by #57, I think.",
        "Hopefully fixed in 2.3.0.",
        "This isn’t fixed by #57.",
        "It can’t be a duplicate of #12.",
        "Is this fixed by #57？",
        "Fixed by #57 了吗？",
        "Fixed by #57 了吗",
        "并没有 fixed by #57",
        "如果合并了就 fixed by #57",
        "Nicht fixed in #57",
        "não é duplicate of #12",
        "これは duplicate of #12 ではありません",
        "아직 fixed by #57 아닙니다",
        "Ещё не fixed by #57",
        "This symbol is not exported anymore.",
        "Closing due to the age and the changes that have been merged since.",
        "The Chinese document is out of date. We suggest that you use the English one.",
        "Please move into this issue for more discussion: #12",
    ]
    assert [text for text in texts if outcome(closed(message(text))).kind is not OutcomeKind.UNKNOWN] == []


def test_words_beside_another_language_are_heard() -> None:
    for text in (
        "已经fixed by #57",
        "Fixed by ＃57。",
        "fixed by #57，谢谢",
        "これは fixed by #57 です",
        "уже fixed by #57",
    ):
        assert outcome(closed(message(text))).fix == "#57", text
    assert outcome(closed(message("duplicate of #12，关闭"))).duplicate_of == 12


def test_a_doubted_fix_is_a_claim_that_the_change_may_confirm() -> None:
    for text in ("I think this was fixed by #57.", "Should be fixed by #57.", "Likely fixed by #57."):
        result = outcome(closed(message(text)))
        assert (result.kind, result.claimed, result.quote) == (OutcomeKind.UNKNOWN, "#57", text)


def test_the_reporters_confirmation_leaves_the_ending_to_the_maintainers_words() -> None:
    words = "Root cause: the body was parsed too early. Fixed in 2.4.3 by verifying the raw body."
    for confirmation in (
        "Confirmed, thanks!",
        "I can confirm that 2.4.3 works.",
        "Thanks, that fixed it.",
        "Confirmed.",
    ):
        thread = closed(message(words, timedelta(hours=20)), message(confirmation, author="octocat", role="NONE"))
        result = outcome(replace(thread, closed_by="octocat"), "octocat/hello")
        assert (result.kind, result.release, result.comment) == (OutcomeKind.FIXED, "2.4.3", 0), confirmation


def test_the_outcome_names_the_fix_and_the_original() -> None:
    assert outcome(closed(message("Fixed by #57."))).fix == "#57"
    assert outcome(closed(message("Fixed in https://github.com/octocat/hello/pull/57"))).fix == "#57"
    assert outcome(closed(message(f"Fixed in https://github.com/octocat/hello/commit/{SHA}"))).fix == SHA
    assert outcome(closed(message("Dupe of #12"))).duplicate_of == 12


def test_a_duplicate_in_another_repository_is_not_our_thread_with_that_number() -> None:
    link = "Duplicate of https://github.com/octo/other/issues/5"
    for result in (
        outcome(closed(message("Duplicate of octo/other#5"))),
        outcome(closed(message(link)), "octocat/hello"),
    ):
        assert (result.kind, result.duplicate_of) == (OutcomeKind.DUPLICATE, None)
    assert outcome(closed(message(link)), "octo/other").duplicate_of == 5
    assert outcome(closed(message(link)), "new-owner/other").duplicate_of == 5
    assert outcome(closed(message("Duplicate of octo/other#5")), "octo/other").duplicate_of == 5


def test_a_fix_in_another_repository_is_not_our_change_with_that_number() -> None:
    def fix_of(text: str) -> str | None:
        result = outcome(closed(message(text)), "octocat/hello")
        assert result.kind is OutcomeKind.FIXED
        return result.fix

    assert fix_of("Fixed in https://github.com/octo/other/pull/57") == "octo/other#57"
    assert fix_of(f"Fixed by https://github.com/octo/other/commit/{SHA}") == f"octo/other@{SHA}"
    assert fix_of("Fixed by octo/other#57.") == "octo/other#57"
    for here in ("#57", "GH-57", "octocat/hello#57", "https://github.com/old-owner/hello/pull/57"):
        assert fix_of(f"Fixed by {here}.") == "#57"


def test_a_repository_that_is_known_only_by_name_is_compared_by_name() -> None:
    def fix_of(repo: str) -> str | None:
        return outcome(closed(message(f"Fixed by https://github.com/octo/other/commit/{SHA}")), repo).fix

    assert (fix_of("hello"), fix_of("other")) == (f"octo/other@{SHA}", SHA)


def test_a_release_is_named_only_if_the_words_say_that_it_has_the_fix() -> None:
    expected = {
        "Fixed in v2.3.0.": "v2.3.0",
        "Released in 2.3.": "2.3",
        "This has been fixed in version 1.4.0-rc.1": "1.4.0-rc.1",
        "Fixed by #57, released today in v2.3.0.": "v2.3.0",
        "Done. It is part of the 2024.10.1 release.": "2024.10.1",
        "2.4.1 is out with the fix.": "2.4.1",
        "This will be in the 1.4.0 release.": None,
        "Fixed by #57. It will be released in 1.4.0.": None,
        "Fixed by #57. You get it with 1.4.0 soon.": None,
        "Fixed in section 3.2.": None,
        "The table was added after 0.2.": None,
        "Duplicate of #12, fixed in 2.3.0.": None,
    }
    assert {text: outcome(closed(message(text))).release for text in expected} == expected


def test_an_open_thread_has_no_outcome() -> None:
    assert outcome(replace(closed(message("Fixed by #57.")), state="open")) == Outcome()


def test_without_evidence_nothing_is_claimed() -> None:
    assert outcome(closed()) == Outcome()
    assert outcome(closed(message("Me too, any news on that one?", timedelta(days=200), "hubot", "NONE"))) == Outcome()


def test_a_comment_at_the_closing_without_a_known_phrase_is_quoted_without_a_kind() -> None:
    result = outcome(closed(message("The cookie path changed. Clear it or upgrade.")))
    assert result.kind is OutcomeKind.UNKNOWN
    assert result.quote == "The cookie path changed. Clear it or upgrade."


def test_an_explicit_reference_counts_however_long_before_the_closing_it_was_made() -> None:
    result = outcome(closed(message("Dupe of #12", timedelta(days=137), "hubot", "NONE")))
    assert (result.kind, result.duplicate_of) == (OutcomeKind.DUPLICATE, 12)
    assert result.confidence < outcome(closed(message("Dupe of #12"))).confidence


def test_how_early_before_the_closing_a_comment_counts_depends_on_what_it_says() -> None:
    cases = [
        ("The cookie path changed.", timedelta(days=1)),
        ("In the meeting we agreed on the cookie path.", timedelta(days=7)),
        ("The path of the cookie is documented, so this can be closed now.", timedelta(days=30)),
    ]
    for text, limit in cases:
        assert outcome(closed(message(text, limit))).comment == 0, text
        assert outcome(closed(message(text, limit + timedelta(seconds=1)))) == Outcome(), text


def test_bots_courtesy_and_housekeeping_are_skipped() -> None:
    bot = replace(message("Closing as stale."), is_bot=True)
    thread = closed(
        message("Fixed by #57."),
        message("Thanks!", author="octocat"),
        message("Spring cleaning."),
        message("@bors r+"),
        bot,
    )
    assert outcome(thread).comment == 0


def test_a_comment_after_the_closing_counts_only_from_the_closer_and_at_once() -> None:
    late = timedelta(seconds=-60)
    assert outcome(closed(message("Fixed by #57.", late))).comment == 0
    assert outcome(closed(message("Fixed by #57.", late, "hubot"))) == Outcome()
    assert outcome(closed(message("Fixed by #57.", timedelta(minutes=-3)))) == Outcome()


def test_a_reopening_takes_back_all_earlier_statements() -> None:
    fixed = message("Fixed by #57.", timedelta(hours=5))
    reopened = TimelineEvent("reopened", CLOSED - timedelta(hours=2))
    assert outcome(closed(fixed)).kind is OutcomeKind.FIXED
    assert outcome(closed(fixed, events=(reopened,))) == Outcome()


def test_an_accidental_reopening_does_not_count() -> None:
    slip = TimelineEvent("reopened", CLOSED - timedelta(seconds=6))
    assert outcome(closed(message("Fixed by #57.", timedelta(minutes=20)), events=(slip,))).kind is OutcomeKind.FIXED


def test_a_housekeeping_closing_leaves_the_ending_to_a_much_older_comment() -> None:
    added = message("Added.", timedelta(days=14))
    swept = outcome(closed(added, message("Spring cleaning.")))
    assert (swept.kind, swept.comment, swept.quote) == (OutcomeKind.FIXED, 0, "Added.")
    assert outcome(closed(added)) == Outcome()
    assert outcome(closed(message("Any news?", timedelta(days=14), "hubot"), message("Spring cleaning."))) == Outcome()


def test_mere_agreement_points_to_the_comment_before() -> None:
    proposed = message("I propose to close with no action.", timedelta(days=2), "hubot")
    result = outcome(closed(proposed, message("No objection, let's close.")))
    assert (result.kind, result.comment) == (OutcomeKind.NOT_PLANNED, 0)
    other = outcome(closed(proposed, message("The cookie path changed.")))
    assert (other.kind, other.comment) == (OutcomeKind.UNKNOWN, 1)


def test_the_reporters_thanks_make_the_comment_before_an_answer() -> None:
    answer = message("The path has to end with a slash, as the guide says.", timedelta(days=3))
    thanks = message("Thank you for the explanation.", author="octocat", role="NONE")
    result = outcome(closed(answer, thanks))
    assert (result.kind, result.comment) == (OutcomeKind.ANSWERED, 0)
    assert "the reporter's thanks" in result.evidence
    for other in (
        replace(thanks, author="hubot"),
        replace(thanks, text="Thanks for the explanation, but it still fails."),
        replace(thanks, text="Thanks for the tip, I'll try."),
    ):
        assert outcome(closed(answer, other)).kind is OutcomeKind.UNKNOWN
    fixed = outcome(closed(message("Fixed by #57."), replace(thanks, text="Thanks for the help!")))
    assert (fixed.kind, fixed.fix) == (OutcomeKind.FIXED, "#57")


@pytest.mark.parametrize(
    ("answer", "thanks", "closing"),
    [
        ("The path has to end with a slash, as the guide says.", "Thank you for the explanation.", "Closing this now."),
        ("路径要以斜杠结尾。", "谢谢，按照你说的可以了。", "@octocat 🤝\n那我就先 close 了。"),
        (
            "パスの末尾にスラッシュが必要です。",
            "ありがとうございます、解決しました。",
            "こちらのissueはクローズします。",
        ),
        ("Der Pfad muss mit einem Schrägstrich enden.", "Danke, jetzt klappt es.", "Dann schließe ich das hier."),
        ("Путь должен заканчиваться косой чертой.", "Спасибо, помогло.", "Тогда закрываю."),
    ],
)
def test_a_comment_that_only_closes_leaves_the_ending_to_the_ones_before(
    answer: str, thanks: str, closing: str
) -> None:
    comments = (message(answer, timedelta(days=1)), message(thanks, timedelta(hours=1), "octocat", "NONE"))
    result = outcome(closed(*comments, message(closing)))
    assert (result.kind, result.comment in (0, 1)) == (OutcomeKind.ANSWERED, True)
    assert outcome(closed(message(closing))) == Outcome()


def test_only_the_reporter_can_be_mistaken() -> None:
    assert outcome(closed(message("My mistake, sorry.", author="octocat"))).kind is OutcomeKind.ANSWERED
    assert outcome(closed(message("My mistake, sorry."))).kind is OutcomeKind.UNKNOWN


def test_gone_means_fixed_if_removal_was_requested() -> None:
    gone = closed(message("The old parser is gone."))
    assert outcome(gone).kind is OutcomeKind.STALE
    assert outcome(replace(gone, title="Remove the old parser")).kind is OutcomeKind.FIXED


def test_a_closing_comment_that_only_quotes_means_what_the_quotation_says() -> None:
    assert outcome(closed(message("> Fixed by #57."))).fix == "#57"
    assert outcome(closed(message("> Fixed by #57.", timedelta(hours=1)))) == Outcome()
    assert outcome(closed(message("> Fixed by #57.\n\nOk, closing this."))).fix == "#57"
    assert outcome(closed(message("> Fixed by #57.\n\nI do not think so, closing."))).fix is None
    assert outcome(closed(message("Closing for now."))).quote == ""


def test_later_reports_that_the_problem_is_back_revoke_the_verdict() -> None:
    cases = [
        ([("octocat", "This is back in 2.4.")], OutcomeKind.UNKNOWN),
        ([("octocat", "It still happens here.")], OutcomeKind.UNKNOWN),
        ([("hubot", "It still happens here.")], OutcomeKind.FIXED),
        ([("hubot", "It still happens here."), ("mona", "Still broken for me.")], OutcomeKind.UNKNOWN),
        ([("hubot", "It still happens here."), ("hubot", "Still broken for me.")], OutcomeKind.FIXED),
        ([("octocat", "It still happens."), ("octocat", "Never mind, I ran the old one.")], OutcomeKind.FIXED),
        ([("octocat", "It still happens."), ("monalisa", "Fixed now.")], OutcomeKind.FIXED),
        ([("octocat", "Does it still happen?")], OutcomeKind.FIXED),
        ([("octocat", "I'll tell if it still happens.")], OutcomeKind.FIXED),
    ]
    for later, kind in cases:
        after = [
            message(text, timedelta(days=-n), author, "MEMBER" if author == "monalisa" else "NONE")
            for n, (author, text) in enumerate(later, 1)
        ]
        result = outcome(closed(message("Fixed by #57."), *after))
        assert (result.kind, result.quote) == (kind, "Fixed by #57."), later
        assert ("said to be back after the closing" in result.evidence) is (kind is OutcomeKind.UNKNOWN), later


def test_a_report_that_it_still_happens_does_not_change_not_planned() -> None:
    thread = closed(
        message("We decided not to support this."), message("It still happens.", timedelta(days=-1), "octocat")
    )
    assert outcome(thread).kind is OutcomeKind.NOT_PLANNED


def test_reactions_to_a_comment_change_the_confidence() -> None:
    comment = message("This is expected behavior.")
    liked = replace(comment, reactions=(("+1", 5),))
    doubted = replace(comment, reactions=(("+1", 1), ("confused", 4)))
    low, middle, high = (outcome(closed(each)).confidence for each in (doubted, comment, liked))
    assert low < middle < high


def test_a_thread_closed_by_a_merge_is_fixed() -> None:
    for login in ["bors", "bors[bot]", "mergify[bot]", "github-merge-queue[bot]"]:
        result = outcome(closed(closed_by=login))
        assert (result.kind, result.evidence) == (OutcomeKind.FIXED, ("closed by a merge",)), login
        assert outcome(closed(closed_by=f"not-{login}")) == Outcome(), login


@pytest.mark.parametrize(
    "login", ["homu", "homu-bot", "mergify", "mergifybot", "Bors-bot", "bors-bot", "merge-bot", "merge-queue", "BORS"]
)
def test_no_account_is_a_merge_bot_by_the_look_of_its_name(login: str) -> None:
    assert outcome(closed(closed_by=login)) == Outcome()
    listed = outcome(closed(closed_by=login, merge_bots=(login,)))
    assert (listed.kind, listed.evidence) == (OutcomeKind.FIXED, ("closed by a merge",))
    assert outcome(closed(closed_by=login, author=login, merge_bots=(login,))) == Outcome(), "its own issue"


@pytest.mark.parametrize("words", ["Duplicate of #12.", "Closed, as there was no response for 14 days."])
@pytest.mark.parametrize("closer", ["hubot", "octocat", "stale[bot]"])
@pytest.mark.parametrize("gap", [-30, 30])
def test_what_a_bot_repeats_from_a_stranger_is_no_ending(words: str, closer: str, gap: int) -> None:
    echo = message(f"octocat wrote:\n\n{words}", timedelta(seconds=gap), "bridge[bot]", "CONTRIBUTOR")
    thread = closed(replace(echo, is_bot=True), closed_by=closer)
    assert outcome(thread).kind is OutcomeKind.UNKNOWN
    assert outcome(replace(thread, closed_by="bridge[bot]")).kind.is_known


PULL = TimelineEvent("cross-referenced", CLOSED - timedelta(days=20), source=57, source_kind=Kind.PULL)
CLOSING_PULL = replace(PULL, closes=True, merged_at=CLOSED - timedelta(days=10))


def test_the_change_that_closed_the_thread_is_the_fix() -> None:
    cases = [
        (TimelineEvent("closed", CLOSED, "monalisa", commit=SHA), SHA, "closing commit"),
        (TimelineEvent("closed", CLOSED, source=57, source_kind=Kind.PULL), "#57", "closing pull request"),
        (CLOSING_PULL, "#57", "a merged pull request that says that it closes it"),
        (replace(CLOSING_PULL, merged_at=CLOSED + timedelta(days=1)), "#57",
         "a merged pull request that says that it closes it"),
    ]  # fmt: skip
    for event, fix, evidence in cases:
        result = outcome(closed(events=(event,)))
        found = (result.kind, result.fix, result.evidence, result.comment)
        assert found == (OutcomeKind.FIXED, fix, (evidence,), None), event


def test_a_change_that_only_refers_to_the_thread_is_a_claim_however_near_to_the_closing() -> None:
    for lead in (timedelta(0), timedelta(minutes=1), timedelta(days=400)):
        for event, change in (
            (replace(PULL, at=CLOSED - lead, merged_at=CLOSED - lead), "#57"),
            (replace(PULL, at=CLOSED - lead, closes=True), "#57"),
            (TimelineEvent("referenced", CLOSED - lead, commit=SHA), SHA),
        ):
            result = outcome(closed(events=(event,)))
            assert (result.kind, result.fix, result.claimed) == (OutcomeKind.UNKNOWN, None, change), event
            assert with_change_state(result, ChangeState()) == with_change_state(result, ChangeState(True)) == result
            proven = with_change_state(result, ChangeState(True, "#60"))
            assert (proven.kind, proven.fix, proven.claimed) == (OutcomeKind.FIXED, "#60", None)
            assert outcome(closed(message("Works for me."), events=(event,))).kind is OutcomeKind.UNKNOWN


def test_of_several_claims_the_likeliest_is_looked_up() -> None:
    others = [
        TimelineEvent("referenced", CLOSED, commit=SHA),
        replace(PULL, source=58, at=CLOSED),
        replace(PULL, source=59, merged_at=CLOSED),
        replace(PULL, source=60, closes=True),
    ]
    found = [outcome(closed(events=tuple(others[:count]))).claimed for count in range(1, 5)]
    assert found == [SHA, "#58", "#59", "#60"]


def test_a_merge_before_the_issue_was_reopened_fixed_nothing() -> None:
    reopened = TimelineEvent("reopened", CLOSED - timedelta(days=5))
    merged = replace(CLOSING_PULL, at=CLOSED - timedelta(days=4))
    assert outcome(closed(events=(CLOSING_PULL, reopened))).kind is OutcomeKind.UNKNOWN
    assert outcome(closed(events=(reopened, merged))).kind is OutcomeKind.UNKNOWN
    again = replace(merged, merged_at=CLOSED - timedelta(days=1))
    assert outcome(closed(events=(reopened, again))).kind is OutcomeKind.FIXED


def test_not_planned_and_duplicate_outweigh_every_fix_that_github_does_not_name() -> None:
    named = TimelineEvent("closed", CLOSED, "monalisa", commit=SHA)
    for reason, kind in (("not_planned", OutcomeKind.NOT_PLANNED), ("duplicate", OutcomeKind.DUPLICATE)):
        for comments, events in (
            ((message("Fixed by #57."),), ()),
            ((message("Fixed in 2.3.0."),), (CLOSING_PULL,)),
            ((), (PULL, CLOSING_PULL)),
            ((), (TimelineEvent("referenced", CLOSED, commit=SHA),)),
        ):
            result = outcome(closed(*comments, events=events, state_reason=reason))
            assert (result.kind, result.fix, result.claimed, result.release) == (kind, None, None, None), comments
        assert outcome(closed(events=(named,), state_reason=reason)).kind is OutcomeKind.FIXED


def test_words_that_deny_a_fix_outweigh_what_the_change_says() -> None:
    for text in ("Not fixed by #57 as it seems.", "This isn’t fixed by #57.", "Fixed by #57, then reverted in #6."):
        result = outcome(closed(message(text), events=(CLOSING_PULL,)))
        assert (result.kind, result.fix, result.claimed) == (OutcomeKind.UNKNOWN, None, None), text


def test_a_program_that_closes_may_call_the_thread_a_duplicate_or_inactive() -> None:
    def by_program(text: str, gap: timedelta = timedelta(0), **fields: object) -> Outcome:
        said = replace(message(text, gap, "stale[bot]", "NONE"), is_bot=True)
        return outcome(closed(said, **{"closed_by": "stale[bot]", **fields}))

    inactive = "This issue was closed because it has been inactive for 14 days since being marked as stale."
    for reason in (None, "completed", "not_planned"):
        assert by_program(inactive, state_reason=reason).kind is OutcomeKind.STALE
    warning = "Marked as stale, as there was no recent activity. It will be closed if no further activity occurs."
    assert by_program(warning, timedelta(days=7)).kind is OutcomeKind.STALE
    assert by_program(warning, timedelta(days=7), closed_by="monalisa").kind is OutcomeKind.UNKNOWN
    original = by_program("Duplicate of #12.")
    assert (original.kind, original.duplicate_of, original.quote) == (OutcomeKind.DUPLICATE, 12, "")
    for text in ("Possible duplicate of #12.", "Fixed by #57.", "Released in 2.3.0.", "Closing as won't fix.", "Bye."):
        assert by_program(text).kind is OutcomeKind.UNKNOWN, text


def test_a_strangers_claim_of_a_fix_is_quoted_and_has_to_be_proven() -> None:
    def kind(role: str, author: str = "hubot", **fields: object) -> OutcomeKind:
        return outcome(closed(message("Fixed by #57 for all of us.", author=author, role=role), **fields)).kind

    result = outcome(closed(message("Fixed by #57 for all of us.", author="hubot", role="NONE")))
    assert (result.kind, result.fix, result.claimed) == (OutcomeKind.UNKNOWN, None, "#57")
    assert (result.quote, result.role) == ("Fixed by #57 for all of us.", "NONE")
    assert kind("FIRST_TIME_CONTRIBUTOR") is kind("NONE", "octocat", closed_by="octocat") is OutcomeKind.UNKNOWN
    for role in ("OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR", ""):
        assert kind(role) is OutcomeKind.FIXED
    assert kind("NONE", "hubot", closed_by="hubot") is OutcomeKind.FIXED, "who closes the issue of another belongs here"
    commit = TimelineEvent("closed", CLOSED, "monalisa", commit=SHA)
    assert kind("NONE", events=(commit,)) is OutcomeKind.FIXED
    assert outcome(closed(message("Dupe of #12", author="hubot", role="NONE"))).kind is OutcomeKind.DUPLICATE
    claim = message("Fixed by #57 for all of us.", author="hubot", role="NONE")
    back = message("It still happens here.", timedelta(days=-1), "octocat", "NONE")
    assert outcome(closed(claim, back)).claimed is None


def test_other_events_name_no_fix() -> None:
    cases = [
        TimelineEvent("referenced", CLOSED + timedelta(days=30), commit=SHA),
        TimelineEvent("cross-referenced", CLOSED - timedelta(days=2), source=57, source_kind=Kind.ISSUE),
        TimelineEvent("closed", CLOSED, "monalisa"),
    ]
    assert [event for event in cases if outcome(closed(events=(event,))) != Outcome()] == []


def test_words_and_events_that_agree_are_combined() -> None:
    event = TimelineEvent("closed", CLOSED, "monalisa", commit=SHA)
    result = outcome(closed(message("Done."), events=(event,)))
    assert (result.kind, result.fix) == (OutcomeKind.FIXED, SHA)
    assert result.evidence == ("last comment before closing", "closing commit", "said to be fixed")


def test_a_mark_as_duplicate_counts_until_it_is_removed() -> None:
    marked = TimelineEvent("marked_as_duplicate", CLOSED, source=12)
    taken_back = TimelineEvent("unmarked_as_duplicate", CLOSED + timedelta(seconds=1))
    result = outcome(closed(events=(marked,)))
    assert (result.kind, result.duplicate_of) == (OutcomeKind.DUPLICATE, 12)
    assert outcome(closed(events=(marked, taken_back))) == Outcome()


def test_the_state_reason_counts_where_people_choose_it() -> None:
    assert outcome(closed(state_reason="not_planned")).kind is OutcomeKind.NOT_PLANNED
    assert outcome(closed(state_reason="duplicate")).kind is OutcomeKind.DUPLICATE
    unclear = message("The cookie path changed. Clear it or upgrade.")
    assert outcome(closed(unclear, state_reason="not_planned")).kind is OutcomeKind.NOT_PLANNED
    assert outcome(closed(state_reason="completed")) == Outcome()
    assert outcome(closed(message("Dupe of #12"), state_reason="not_planned")).kind is OutcomeKind.DUPLICATE


def test_the_quote_is_the_sentence_that_states_the_ending() -> None:
    text = "I looked at this again. The path was wrong. Fixed by #57. " + "And more of the story. " * 30
    assert outcome(closed(message(text))).quote == "Fixed by #57. And more of the story."


def test_words_that_the_events_prove_wrong_are_not_quoted() -> None:
    merged = TimelineEvent("closed", CLOSED, source=57, source_kind=Kind.PULL)
    hours = timedelta(hours=3)
    for text in (
        "The first try was reverted.",
        "This is a duplicate, I think.",
        "It needs a test before it can go in.",
    ):
        result = outcome(closed(message(text, hours), events=(merged,)))
        assert (result.kind, result.fix, result.quote) == (OutcomeKind.FIXED, "#57", "")
    assert outcome(closed(message("Fixed by #57.", hours), events=(merged,))).quote == "Fixed by #57."


def test_a_comment_some_time_before_the_closing_is_quoted_only_if_it_concludes() -> None:
    hours = timedelta(hours=3)
    assert outcome(closed(message("The parser reads the file twice.", hours))).quote == ""
    assert outcome(closed(message("The parser reads the file twice."))).quote == "The parser reads the file twice."
    remedy = "Set `path` in the configuration to read it once."
    assert outcome(closed(message(remedy, hours))).quote == remedy.replace("`", "")
    assert outcome(closed(message("Il faut vider le cache du navigateur pour que cela marche.", hours))).quote


SAID = st.sampled_from(["Fixed by #57. ", "Set `path` to read it once. ", "very " * 100, "Closing. ", "> no\n\n"])


@given(st.lists(st.text(max_size=60) | st.lists(SAID, max_size=4).map("".join), max_size=4), st.integers(-300, 300))
def test_any_thread_gives_a_bounded_outcome(texts: list[str], seconds: int) -> None:
    thread = closed(*(message(text, timedelta(seconds=seconds)) for text in texts))
    result = outcome(thread)
    assert len(result.quote) <= MAX_QUOTE_CHARS
    assert 0 <= result.confidence <= 1
    assert result.comment is not None or not result.quote


@pytest.mark.slow
def test_hostile_comments_are_read_in_linear_time() -> None:
    phrases = ["fixed by ", "this is ", "not a ", "has been ", "closing ", "still ", "thanks for ", "never wontfix "]
    phrases += [
        "fixed by #1 if ",
        "is gone, ",
        "if obsolete ",
        "we ",
        "dup of ",
        "not ",
        "as of ",
        "now ",
        "is ",
        "ok ",
    ]
    marks = ["#1 ", "1.", "a/b#", "(", "https://a/", "[", ">", "*", "a."]
    assert_linear_time(lambda text: outcome(closed(message(text))), *phrases, *marks)


def test_many_fixes_that_one_sentence_takes_back_are_read_in_linear_time() -> None:
    def read(text: str) -> None:
        assert outcome(closed(message(f"{text}Then it was reverted."))).kind is OutcomeKind.UNKNOWN

    assert_linear_time(read, "Fixed.\n")


@pytest.mark.shared
def test_endings_that_a_reader_labelled_are_found_with_the_right_kinds(shared: Path) -> None:
    tally = endings.total(endings.load_cases(shared))
    assert tally["threads"] == 160
    assert tally["shown_right"] >= 0.95 * tally["shown"]
    assert tally["shown_right"] >= 0.90 * tally["endings"]
    assert tally["visible_asserted"] >= 0.60 * tally["visible"]
    assert tally["visible_right"] >= 0.95 * tally["visible_asserted"]
    assert tally["kind_right"] >= 0.95 * tally["asserted"]


@pytest.mark.slow
@pytest.mark.shared
def test_endings_are_still_found_without_the_phrases_that_only_the_judged_threads_have(shared: Path) -> None:
    cases = endings.load_cases(shared)
    folds = endings.held_out(cases, lambda case: case.fold)
    tally = sum(folds.values(), Counter())
    assert len(folds) == endings.FOLDS
    assert tally["shown_right"] >= 0.95 * tally["shown"]
    assert tally["shown_right"] >= 0.90 * tally["endings"]
    assert tally["visible_asserted"] >= 0.50 * tally["visible"]
    assert tally["visible_right"] >= 0.95 * tally["visible_asserted"]


@pytest.mark.slow
@pytest.mark.shared
def test_the_quick_test_rejects_no_real_sentence_that_a_phrase_matches(shared: Path) -> None:
    threads = endings.load_threads(shared, "ietf_mls-protocol").values()
    sentences = {line for thread in threads for comment in thread.comments for line in statements(comment.text)}
    for sentence in sorted(sentences)[::10]:
        for name, phrases in phrase_book().sets.items():
            assert phrases.may_be_in(fold_for_stems(sentence)) or not phrases.is_in(sentence), (name, sentence)


def discussion(*texts: str, marked: int | None = None, by: str = "octocat") -> Thread:
    comments = tuple(
        Message("monalisa", "MEMBER", CLOSED - timedelta(days=10 - at), text, id=100 + at)
        for at, text in enumerate(texts)
    )
    event = TimelineEvent("answered", CLOSED, by, comment=None if marked is None else 100 + marked)
    return closed(*comments, kind=Kind.DISCUSSION, state_reason="answered", closed_by=by, events=(event,))


def test_a_marked_answer_is_the_ending_whatever_follows_it() -> None:
    cases = ["Fixed by #57.", "Closing as a duplicate of #12.", "It still happens!", "We decided not to support this."]
    for after in cases:
        result = outcome(discussion("Is that so?", "Set `trust_proxy: true` in the settings.", after, marked=1))
        assert (result.kind, result.comment, result.comment_id) == (OutcomeKind.ANSWERED, 1, 101), after
        assert (result.quote, result.author, result.role) == (
            "Set trust_proxy: true in the settings.",
            "monalisa",
            "MEMBER",
        ), after
        assert result.at == CLOSED - timedelta(days=9), after
        assert (result.fix, result.duplicate_of, result.evidence) == (None, None, ("marked as the answer",)), after


def test_only_somebody_elses_words_are_an_answer() -> None:
    answered = discussion("Is that so?", "Fixed: set `trust_proxy: true` in the settings.", marked=1)
    own = replace(answered, author="monalisa")
    assert outcome(own) == Outcome()
    assert outcome(replace(own, state_reason="resolved")).evidence != ("marked as the answer",)
    assert outcome(answered).kind is OutcomeKind.ANSWERED


def test_an_answer_that_says_little_is_still_quoted() -> None:
    cases = [
        ("Yes.", "Yes."), ("```\ncode alone\n```", ""), ("See the wiki?", "See the wiki?"), ("", ""),
        ("a" * 1_000, "a" * (MAX_QUOTE_CHARS - 1) + "…"),
    ]  # fmt: skip
    for answer, quote in cases:
        result = outcome(discussion(answer, marked=0))
        assert (result.kind, result.quote) == (OutcomeKind.ANSWERED, quote), answer
        assert len(result.quote) <= MAX_QUOTE_CHARS, answer


def test_a_deleted_answer_leaves_only_the_fact_that_there_was_one() -> None:
    result = outcome(discussion("Set it.", marked=7))
    assert (result.kind, result.comment, result.quote, result.at) == (OutcomeKind.ANSWERED, None, "", CLOSED)


def test_a_discussion_was_open_until_it_was_answered() -> None:
    thread = discussion("Set `trust_proxy: true` in the settings.", marked=0)
    assert not thread.as_of(CLOSED - timedelta(hours=1)).is_closed
    assert outcome(thread.as_of(CLOSED - timedelta(hours=1))) == Outcome()
    assert outcome(thread.as_of(CLOSED)).kind is OutcomeKind.ANSWERED


def test_a_discussion_that_was_closed_without_an_answer_is_read_like_an_issue() -> None:
    thread = closed(message("This is expected behavior."), kind=Kind.DISCUSSION, state_reason="resolved")
    assert outcome(thread).kind is OutcomeKind.ANSWERED
    assert outcome(closed(kind=Kind.DISCUSSION, state_reason="duplicate")).kind is OutcomeKind.DUPLICATE
