"""In which release a closed issue is fixed, in people's words: who is believed, when, and what takes it back."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.domain.thread import Message, Thread, TimelineEvent
from bot.reading.endings.quote import MAX_QUOTE
from bot.reading.endings.stated_release import StatedRelease, stated_release
from bot.reading.versions import read_version
from tests.bench.stated_releases import RELEASED, read_all
from tests.reading.linear import takes_linear_time

CLOSED = datetime(2024, 5, 3, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
REPOSITORY = "octocat/hello"
TADA = ":tada: This issue has been resolved in version 1.2.3 :tada:\n\nThe release is available on:\n- GitHub release"


def said(
    text: str, after: timedelta = timedelta(0), author: str = "monalisa", role: str = "MEMBER", *, is_bot: bool = False
) -> Message:
    return Message(author, role, CLOSED + after, text, is_bot=is_bot)


def closed(*comments: Message, **fields: object) -> Thread:
    thread = Thread(
        id=42,
        title="Login loops",
        body="It loops.",
        author="octocat",
        created_at=CLOSED - 90 * DAY,
        state="closed",
        closed_at=CLOSED,
        closed_by="monalisa",
        comments=comments,
    )
    return replace(thread, **fields)  # type: ignore[arg-type]


def told(*comments: Message, repo: str | None = None, **fields: object) -> str:
    found = stated_release(closed(*comments, **fields), repo)
    return found.text if found else ""


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Fixed in 2.3.0", "2.3.0"),
        ("released in v1.4", "v1.4"),
        ("this is in 0.9.1 now", "0.9.1"),
        ("It will be part of 1.2.", "1.2"),
        ("Available since 5.0.1.", "5.0.1"),
        ("Thanks! Fixed in v2.3.0, let me know if it is not.", "v2.3.0"),
        ("Should be fixed in 2.3.0.", "2.3.0"),
        ("Fixed by #57 and released in 2.4.0.", "2.4.0"),
        ("Fixed in master, will go out with 2.5.", "2.5"),
        ("The fix for #42 is in v2.11.0.", "v2.11.0"),
        ("Fixed in `2.3.0`.", "2.3.0"),
        ("Fixed in **2.3.0**.", "2.3.0"),
        ("Released as [v0.6.1](https://github.com/octocat/hello/releases/tag/v0.6.1).", "v0.6.1"),
        ("Fixed https://github.com/octocat/hello/releases/tag/v2.0.11", "v2.0.11"),
        ("I just published 3.0.2 to npm.", "3.0.2"),
        ("@octocat just released 0.6.0!", "0.6.0"),
        ("We just pushed 3.0.21, which should fix it.", "3.0.21"),
        ("This should be fixed now, please try version 0.32.1.", "0.32.1"),
        ("Closing, it should be working now with v0.5.1.", "v0.5.1"),
        ("Fixed in 2.0.0-beta.3.", "2.0.0-beta.3"),
        ("Fixed in 2.0b1.", "2.0b1"),
        ("Fixed in 4.2.0.Final.", "4.2.0"),
        ("Backported to 2.2.5.", "2.2.5"),
        ("Fixed in 3.0, 3.1 and on master.", "3.0"),
    ],
)
def test_a_maintainer_says_which_release_has_or_will_have_the_fix(text: str, version: str) -> None:
    found = stated_release(closed(said(text)), REPOSITORY)
    assert found
    assert found.text == version
    assert found.version == read_version(version)


@pytest.mark.parametrize(
    "text",
    [
        "Not fixed in 2.3.",
        "It isn't in 2.3.0.",
        "Is it fixed in 2.3?",
        "It will be part of 2.4?",
        "Could you try whether it is fixed in 2.3?",
        "Broken in 2.3.",
        "Since 2.2 this fails.",
        "This was introduced in 2.3.0.",
        "I can reproduce it in 2.3.0.",
        "It works for me in 2.3.0.",
        "Fixed in master.",
        "Fixed in 2.3.x.",
        "Fixed in 20240503a.",
        "Fixed in release 1.3.0e.",
        "Fixed in 0.12.0-pre-nightly.",
        "> Fixed in 2.3.0\n\nThat was for the other one.",
        "`fixed in 2.3.0` is what the tool prints.",
        "`fixed  in 2.3.0` is what the tool prints.",
        "```\nFixed in 2.3.0\n```",
        "~~Fixed in 2.3.0~~",
        "Let's get this fixed in 2.4.",
        "We hope to have this in 2.4.",
        "It should be done for 2.0.",
        "It might be fixed in 2.4.",
        "If nobody objects, it will be in 2.4.",
        "Added to the 2.4 milestone.",
        "It won't be in 2.4.",
        "Several critical bugs have been fixed since 0.9.0.",
        "It was fixed in 1.2 but broke again in 1.3.",
        "Fixed in 2.3.0, then reverted in 2.3.1.",
        "The fix did not make it into 2.3.0.",
        "This was fixed in glibc 2.38.",
        "Python 3.8 is now available.",
        "Resolved with the 5.0.1 Command Line Tools.",
        "Solved by downgrading to 1.2.3.",
        "Fixed in section 3.2.",
        "Since version 2.0 was released it crashes.",
        "Feel free to reopen if it still happens with 0.9.6.",
    ],
)
def test_other_words_with_a_version_say_of_no_release_that_it_has_the_fix(text: str) -> None:
    assert told(said(text)) == ""


def test_it_is_told_with_its_sentence_its_author_and_its_time() -> None:
    thread = closed(said("Thanks for the report. Fixed in v2.3.0. Have fun.", DAY, "hubot"))
    version = read_version("2.3.0")
    assert version
    assert stated_release(thread) == StatedRelease("v2.3.0", version, CLOSED + DAY, "hubot", "Fixed in v2.3.0.", True)


def test_a_long_sentence_is_cut() -> None:
    found = stated_release(closed(said("Fixed in 2.3.0 and " + "on and " * 60)))
    assert found
    assert len(found.quote) <= MAX_QUOTE
    assert found.quote.endswith("…")


# Who


def test_a_stranger_a_contributor_and_the_reporter_are_not_believed() -> None:
    assert told(said("Fixed in 2.3.0.", author="hubot", role="NONE")) == ""
    assert told(said("Fixed in 2.3.0.", author="hubot", role="CONTRIBUTOR")) == ""
    assert told(said("Fixed in 2.3.0.", author="octocat", role="NONE")) == ""


def test_whoever_closed_the_issue_is_believed_the_reporter_too() -> None:
    assert told(said("Fixed in 2.3.0.", author="octocat", role="NONE"), closed_by="octocat") == "2.3.0"
    assert told(said("Fixed in 2.3.0.", author="hubot", role="CONTRIBUTOR"), closed_by="hubot") == "2.3.0"


def test_where_nobody_knows_who_closed_it_it_was_whoever_wrote_at_that_moment() -> None:
    own = said("Fixed in 2.3.0.", -timedelta(seconds=5), "octocat", "NONE")
    assert told(own, closed_by=None) == "2.3.0"
    assert told(replace(own, created_at=CLOSED - timedelta(hours=1)), closed_by=None) == ""


def test_a_bot_is_believed_only_in_the_words_of_release_bots() -> None:
    assert told(said(TADA, DAY, "github-actions[bot]", "NONE", is_bot=True)) == "1.2.3"
    auto = "🚀 Issue was released in [`v9.1.1`](https://github.com/octocat/hello/releases/tag/v9.1.1) 🚀"
    assert told(said(auto, DAY, "auto[bot]", is_bot=True), repo=REPOSITORY) == "v9.1.1"
    assert told(said("This was fixed in 1.2.3 according to our triage.", DAY, "triage[bot]", is_bot=True)) == ""
    assert told(said(TADA, DAY, "semantic-release-bot", "NONE")) == "1.2.3"
    for name in ("semantic-release-fan", "semantic-releasebot", "semantic-release", "Semantic-Release-Bot-"):
        assert told(said(TADA, DAY, name, "NONE")) == ""


def test_only_a_maintainer_and_a_release_bot_are_trusted() -> None:
    def is_trusted(*comments: Message, **fields: object) -> bool:
        found = stated_release(closed(*comments, **fields))
        return found is not None and found.is_trusted

    own = said("Fixed in 2.3.0.", author="octocat", role="NONE")
    assert is_trusted(said("Fixed in 2.3.0."))
    assert is_trusted(said(TADA, DAY, "semantic-release-bot", "NONE"))
    assert is_trusted(said(TADA, DAY, "auto[bot]", "NONE", is_bot=True))
    assert not is_trusted(own, closed_by="octocat")
    assert not is_trusted(said("Fixed in 2.3.0."), replace(own, created_at=CLOSED + DAY), closed_by="octocat")


# When


def test_it_may_be_said_a_day_before_the_closing_and_at_any_time_after_it() -> None:
    assert told(said("Fixed in 2.3.0.", -timedelta(hours=23))) == "2.3.0"
    assert told(said("Fixed in 2.3.0.", -timedelta(hours=25))) == ""
    assert told(said("Fixed in 2.3.0.", 300 * DAY)) == "2.3.0"


def test_that_a_release_is_out_counts_only_at_the_closing() -> None:
    assert told(said("2.3.0 has been released.", timedelta(hours=2))) == "2.3.0"
    assert told(said("Version 2.4.0 was published today.", timedelta(hours=2))) == "2.4.0"
    assert told(said("Version 2.4.0 was published today.", 30 * DAY)) == ""


def test_an_open_issue_and_one_that_was_reopened_have_none() -> None:
    fixed = said("Fixed in 2.3.0.")
    assert told(fixed, state="open", closed_at=None, closed_by=None) == ""
    reopened = (
        TimelineEvent("closed", CLOSED, "monalisa"),
        TimelineEvent("reopened", CLOSED + DAY, "octocat"),
        TimelineEvent("closed", CLOSED + 2 * DAY, "monalisa"),
    )
    assert told(fixed, closed_at=CLOSED + 2 * DAY, events=reopened) == ""
    again = said("Fixed in 2.3.1.", 2 * DAY)
    assert told(fixed, again, closed_at=CLOSED + 2 * DAY, events=reopened) == "2.3.1"


def test_what_was_said_before_a_reopening_belongs_to_another_closing() -> None:
    hour = timedelta(hours=1)
    flips = (
        TimelineEvent("closed", CLOSED - 3 * hour, "monalisa"),
        TimelineEvent("reopened", CLOSED - 2 * hour, "octocat"),
        TimelineEvent("closed", CLOSED, "monalisa"),
    )
    assert told(said("Fixed in 2.3.0.", -3 * hour), events=flips) == ""
    assert told(said("Fixed in 2.3.0.", -hour), events=flips) == "2.3.0"


# What takes it back


def test_the_last_statement_counts_and_in_one_comment_the_first() -> None:
    planned, late = said("This will be in 2.3.0."), said("It went out with 2.3.1.", 9 * DAY)
    assert told(planned, late) == "2.3.1"
    assert told(said("Fixed in 2.3.0. The next release (2.4.0) has the rest.")) == "2.3.0"


def test_a_revert_takes_it_back_until_it_is_stated_again() -> None:
    fixed, reverted = said("Fixed in 2.3.0."), said("I have reverted the fix, it broke the tests.", DAY)
    assert told(fixed, reverted) == ""
    assert told(fixed, reverted, said("Fixed again in 2.3.2.", 2 * DAY)) == "2.3.2"
    assert told(fixed, replace(reverted, author="hubot", role="NONE")) == "2.3.0"


def test_a_reporter_for_whom_it_still_happens_takes_it_back() -> None:
    fixed, still = said("Fixed in 2.3.0."), said("It still happens in 2.3.0.", DAY, "octocat", "NONE")
    assert told(fixed, still) == ""
    assert told(fixed, still, said("Fixed in 2.3.1.", 2 * DAY)) == "2.3.1"


# Products


def test_the_name_of_the_repository_is_no_other_product() -> None:
    fixed = said("It's fixed in Hello 0.9.")
    assert told(fixed, repo="octocat/hello") == "0.9"
    assert told(fixed, repo="octocat/spoon-knife") == ""


@pytest.mark.parametrize(
    "text",
    [
        "Fixed in [v2.3.0](https://github.com/other/thing/releases/tag/v2.3.0).",
        "Fixed in [v2.3.0][1].\n\n[1]: https://github.com/other/thing/releases",
        "Fixed in [version 2.3.0 of *Thing*](https://github.com/other/hello/releases).",
        "Fixed in <a href='https://github.com/other/thing/releases'>v2.3.0</a>.",
        "Fixed: https://github.com/other/thing/releases/tag/v2.3.0",
        "Fixed: https://github.com/octocat/hello-world/releases/tag/v2.3.0",
        "Fixed in <https://github.com/other/thing/releases/tag/v2.3.0>.",
        "Fixed in [v2.3.0](//github.com/other/thing/releases/tag/v2.3.0).",
    ],
)
def test_the_address_of_another_repository_names_none_of_our_releases(text: str) -> None:
    assert told(said(text), repo=REPOSITORY) == ""
    assert told(said(text)) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Fixed in [v2.3.0](https://github.com/Octocat/Hello/releases/tag/v2.3.0).",
        "Fixed in [v2.3.0](../releases/tag/v2.3.0).",
        "Fixed in v2.3.0, thanks to [their 1.0](https://github.com/other/thing).",
        "Fixed in v2.3.0 ([notes](https://other.example/notes/2.3.0)).",
    ],
)
def test_an_address_of_this_repository_and_one_beside_the_version_are_no_obstacle(text: str) -> None:
    assert told(said(text), repo=REPOSITORY) == "v2.3.0"


# Time


@pytest.mark.parametrize(
    "piece",
    [
        "`fixed in 1.2.3`. ",
        "Not fixed in 1.2.3. ",
        "1.2.3 ",
        "fixed in ",
        "released 1.2.3, ",
        "will be in 1.2.3 ",
        "1.",
        "1.2.3-rc.1.2.3",
        "> fixed in 1.2.3\n\n",
        ":tada: ",
        "Fixed in [1.2.3](https://x.example/1.2.3). ",
        "<a href=x>1.2.3",
        "www.",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    takes_linear_time(lambda text: stated_release(closed(said(text))), piece)


# Real threads


@pytest.mark.shared
@pytest.mark.slow
def test_on_real_threads_what_is_told_is_what_a_reader_found(shared: Path) -> None:
    found = [each for each in read_all(shared) if each.release]
    assert [each.thread.id for each in found if not each.is_right] == []
    assert all(each.fits_the_dates for each in found), RELEASED
    assert len(found) >= 8
