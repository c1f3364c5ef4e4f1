"""The release that people name as having the fix: who is believed, when, and what takes it back."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bench.stated_releases import RELEASED, read_all
from bot.domain.thread import Message, TimelineEvent
from bot.reading.endings.quote import MAX_QUOTE_CHARS
from bot.reading.endings.stated_release import StatedRelease, stated_release
from bot.reading.versions import read_version
from tests.reading.linear_time import assert_linear_time
from tests.reading.samples import CLOSED, closed

DAY = timedelta(days=1)
REPOSITORY = "octocat/hello"
TADA = ":tada: This issue has been resolved in version 1.2.3 :tada:\n\nThe release is available on:\n- GitHub release"


def message(
    text: str, after: timedelta = timedelta(0), author: str = "monalisa", role: str = "MEMBER", *, is_bot: bool = False
) -> Message:
    return Message(author, role, CLOSED + after, text, is_bot=is_bot)


def release_of(*comments: Message, repo: str | None = None, **fields: object) -> str:
    release = stated_release(closed(*comments, **fields), repo)
    return release.text if release else ""


def test_a_maintainer_names_the_release_that_has_or_will_have_the_fix() -> None:
    cases = [
        ("Fixed in 2.3.0", "2.3.0"),
        ("released in v1.4", "v1.4"),
        ("this is in 0.9.1 now", "0.9.1"),
        ("It will be part of 1.2.", "1.2"),
        ("Available since 5.0.1.", "5.0.1"),
        ("Thanks! Fixed in v2.3.0, let me know if it is not.", "v2.3.0"),
        ("Fixed by #57 and released in 2.4.0.", "2.4.0"),
        ("Fixed in master, will go out with 2.5.", "2.5"),
        ("The fix for #42 is in v2.11.0.", "v2.11.0"),
        ("Fixed in `2.3.0`.", "2.3.0"),
        ("Fixed in **2.3.0**.", "2.3.0"),
        ("Released as [v0.6.1](https://github.com/octocat/hello/releases/tag/v0.6.1).", "v0.6.1"),
        ("Fixed https://github.com/octocat/hello/releases/tag/v2.0.11", "v2.0.11"),
        ("I just published 3.0.2 to npm.", "3.0.2"),
        ("@octocat just released 0.6.0!", "0.6.0"),
        ("We just pushed 3.0.21, which fixes it.", "3.0.21"),
        ("This is fixed now, please try version 0.32.1.", "0.32.1"),
        ("Fixed in 2.0.0-beta.3.", "2.0.0-beta.3"),
        ("Fixed in 2.0b1.", "2.0b1"),
        ("Fixed in 4.2.0.Final.", "4.2.0"),
        ("Backported to 2.2.5.", "2.2.5"),
        ("Fixed in 3.0, 3.1 and on master.", "3.0"),
    ]
    for text, version in cases:
        release = stated_release(closed(message(text)), REPOSITORY)
        assert release, text
        assert release.text == version, text
        assert release.version == read_version(version), text


def test_other_mentions_of_a_version_name_no_release_with_the_fix() -> None:
    texts = [
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
        "This should be fixed in 2.3.0.",
        "Hopefully fixed in 2.3.0.",
        "I think this was fixed in 2.3.0.",
        "It wasn’t fixed in 2.3.0.",
        "Fixed in 2.3.0 (libfoo).",
        "Fixed in 2.3.0 [libfoo].",
        "Fixed in 2.3.0 (the plugin, not the core).",
        "2.3.0, the libfoo release from yesterday, fixes this.",
        "2.13.2 was released a year ago.",
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
    ]
    assert [text for text in texts if release_of(message(text)) != ""] == []


def test_a_release_comes_with_its_sentence_author_and_time() -> None:
    thread = closed(message("Thanks for the report. Fixed in v2.3.0. Have fun.", DAY, "hubot"))
    version = read_version("2.3.0")
    assert version
    assert stated_release(thread) == StatedRelease("v2.3.0", version, CLOSED + DAY, "hubot", "Fixed in v2.3.0.", True)


def test_a_long_sentence_is_cut() -> None:
    release = stated_release(closed(message("Fixed in 2.3.0 and " + "on and " * 60)))
    assert release
    assert len(release.quote) <= MAX_QUOTE_CHARS
    assert release.quote.endswith("…")


# Who is believed


def test_a_stranger_a_contributor_and_the_reporter_are_not_believed() -> None:
    assert release_of(message("Fixed in 2.3.0.", author="hubot", role="NONE")) == ""
    assert release_of(message("Fixed in 2.3.0.", author="hubot", role="CONTRIBUTOR")) == ""
    assert release_of(message("Fixed in 2.3.0.", author="octocat", role="NONE")) == ""


def test_whoever_closed_the_issue_is_believed_even_the_reporter() -> None:
    assert release_of(message("Fixed in 2.3.0.", author="octocat", role="NONE"), closed_by="octocat") == "2.3.0"
    assert release_of(message("Fixed in 2.3.0.", author="hubot", role="CONTRIBUTOR"), closed_by="hubot") == "2.3.0"


def test_an_unknown_closer_is_whoever_wrote_at_that_moment() -> None:
    own = message("Fixed in 2.3.0.", -timedelta(seconds=5), "octocat", "NONE")
    assert release_of(own, closed_by=None) == "2.3.0"
    assert release_of(replace(own, created_at=CLOSED - timedelta(hours=1)), closed_by=None) == ""


APP = "github-actions[bot]"


def test_a_listed_bot_is_believed_in_the_words_of_release_bots() -> None:
    tada = message(TADA, DAY, APP, "NONE", is_bot=True)
    assert release_of(tada, release_bots=(APP,)) == "1.2.3"
    auto = "🚀 Issue was released in [`v9.1.1`](https://github.com/octocat/hello/releases/tag/v9.1.1) 🚀"
    said = message(auto, DAY, "auto", "NONE")
    assert release_of(said, repo=REPOSITORY, release_bots=("auto",)) == "v9.1.1"
    triage = message("This was fixed in 1.2.3 according to our triage.", DAY, APP, is_bot=True)
    assert release_of(triage, release_bots=(APP,)) == ""
    assert release_of(message(TADA, DAY, "semantic-release-bot", "NONE")) == "1.2.3"


@pytest.mark.parametrize("name", ["semantic-release-fan", "semantic-releasebot", "Semantic-Release-Bot-", "auto"])
def test_no_account_is_a_release_bot_by_the_look_of_its_name(name: str) -> None:
    assert release_of(message(TADA, DAY, name, "NONE")) == ""


@pytest.mark.parametrize("text", [TADA, f"octocat wrote:\n\n{TADA}", f"{TADA}\n\n(translated)"])
@pytest.mark.parametrize("name", [APP, "bridge[bot]", "translate[bot]"])
def test_what_a_bot_repeats_from_a_stranger_names_no_release(text: str, name: str) -> None:
    echo = message(text, DAY, name, "CONTRIBUTOR", is_bot=True)
    assert release_of(echo) == ""
    assert release_of(echo, closed_by=name) == ""


def test_only_a_maintainer_and_a_release_bot_are_trusted() -> None:
    def is_trusted(*comments: Message, **fields: object) -> bool:
        release = stated_release(closed(*comments, **fields))
        return release is not None and release.is_trusted

    own = message("Fixed in 2.3.0.", author="octocat", role="NONE")
    assert is_trusted(message("Fixed in 2.3.0."))
    assert is_trusted(message(TADA, DAY, "semantic-release-bot", "NONE"))
    assert is_trusted(message(TADA, DAY, APP, "NONE", is_bot=True), release_bots=(APP,))
    assert not is_trusted(message(TADA, DAY, APP, "NONE", is_bot=True))
    assert not is_trusted(own, closed_by="octocat")
    assert not is_trusted(message("Fixed in 2.3.0."), replace(own, created_at=CLOSED + DAY), closed_by="octocat")


# When it counts


def test_a_statement_counts_from_a_day_before_the_closing_to_any_time_after_it() -> None:
    assert release_of(message("Fixed in 2.3.0.", -timedelta(hours=23))) == "2.3.0"
    assert release_of(message("Fixed in 2.3.0.", -timedelta(hours=25))) == ""
    assert release_of(message("Fixed in 2.3.0.", 300 * DAY)) == "2.3.0"


def test_a_release_announcement_counts_only_at_the_closing() -> None:
    assert release_of(message("2.3.0 has been released.", timedelta(hours=2))) == "2.3.0"
    assert release_of(message("Version 2.4.0 was published today.", timedelta(hours=2))) == "2.4.0"
    assert release_of(message("Version 2.4.0 was published today.", 30 * DAY)) == ""


def test_open_and_reopened_issues_have_no_stated_release() -> None:
    fixed = message("Fixed in 2.3.0.")
    assert release_of(fixed, state="open", closed_at=None, closed_by=None) == ""
    reopened = (
        TimelineEvent("closed", CLOSED, "monalisa"),
        TimelineEvent("reopened", CLOSED + DAY, "octocat"),
        TimelineEvent("closed", CLOSED + 2 * DAY, "monalisa"),
    )
    assert release_of(fixed, closed_at=CLOSED + 2 * DAY, events=reopened) == ""
    again = message("Fixed in 2.3.1.", 2 * DAY)
    assert release_of(fixed, again, closed_at=CLOSED + 2 * DAY, events=reopened) == "2.3.1"


def test_a_statement_before_a_reopening_belongs_to_another_closing() -> None:
    hour = timedelta(hours=1)
    state_changes = (
        TimelineEvent("closed", CLOSED - 3 * hour, "monalisa"),
        TimelineEvent("reopened", CLOSED - 2 * hour, "octocat"),
        TimelineEvent("closed", CLOSED, "monalisa"),
    )
    assert release_of(message("Fixed in 2.3.0.", -3 * hour), events=state_changes) == ""
    assert release_of(message("Fixed in 2.3.0.", -hour), events=state_changes) == "2.3.0"


# What takes it back


def test_the_last_comment_counts_and_within_a_comment_the_first_statement() -> None:
    planned, late = message("This will be in 2.3.0."), message("It went out with 2.3.1.", 9 * DAY)
    assert release_of(planned, late) == "2.3.1"
    assert release_of(message("Fixed in 2.3.0. The next release (2.4.0) has the rest.")) == "2.3.0"


def test_a_revert_takes_the_release_back_until_it_is_stated_again() -> None:
    fixed, reverted = message("Fixed in 2.3.0."), message("I have reverted the fix, it broke the tests.", DAY)
    assert release_of(fixed, reverted) == ""
    assert release_of(fixed, reverted, message("Fixed again in 2.3.2.", 2 * DAY)) == "2.3.2"
    assert release_of(fixed, replace(reverted, author="hubot", role="NONE")) == "2.3.0"


def test_a_reporter_who_still_has_the_problem_takes_the_release_back() -> None:
    fixed, still = message("Fixed in 2.3.0."), message("It still happens in 2.3.0.", DAY, "octocat", "NONE")
    assert release_of(fixed, still) == ""
    assert release_of(fixed, still, message("Fixed in 2.3.1.", 2 * DAY)) == "2.3.1"


# Other products


def test_the_name_of_the_repository_is_not_another_product() -> None:
    fixed = message("It's fixed in Hello 0.9.")
    assert release_of(fixed, repo="octocat/hello") == "0.9"
    assert release_of(fixed, repo="octocat/spoon-knife") == ""


def test_the_address_of_another_repository_names_none_of_our_releases() -> None:
    texts = [
        "Fixed in [v2.3.0](https://github.com/other/thing/releases/tag/v2.3.0).",
        "Fixed in [v2.3.0][1].\n\n[1]: https://github.com/other/thing/releases",
        "Fixed in [version 2.3.0 of *Thing*](https://github.com/other/hello/releases).",
        "Fixed in <a href='https://github.com/other/thing/releases'>v2.3.0</a>.",
        "Fixed: https://github.com/other/thing/releases/tag/v2.3.0",
        "Fixed: https://github.com/octocat/hello-world/releases/tag/v2.3.0",
        "Fixed in <https://github.com/other/thing/releases/tag/v2.3.0>.",
        "Fixed in [v2.3.0](//github.com/other/thing/releases/tag/v2.3.0).",
    ]
    for text in texts:
        assert release_of(message(text), repo=REPOSITORY) == "", text
        assert release_of(message(text)) == "", text


def test_addresses_of_this_repository_or_beside_the_version_do_no_harm() -> None:
    texts = [
        "Fixed in [v2.3.0](https://github.com/Octocat/Hello/releases/tag/v2.3.0).",
        "Fixed in [v2.3.0](../releases/tag/v2.3.0).",
        "Fixed in v2.3.0, thanks to [their 1.0](https://github.com/other/thing).",
        "Fixed in v2.3.0 ([notes](https://other.example/notes/2.3.0)).",
    ]
    assert [text for text in texts if release_of(message(text), repo=REPOSITORY) != "v2.3.0"] == []


# Time


@pytest.mark.slow
def test_hostile_text_takes_linear_time() -> None:
    statements = ["`fixed in 1.2.3`. ", "Not fixed in 1.2.3. ", "released 1.2.3, ", "> fixed in 1.2.3\n\n"]
    statements += ["Fixed in [1.2.3](https://x.example/1.2.3). ", "<a href=x>1.2.3", "will be in 1.2.3 "]
    pieces = ["1.2.3 ", "fixed in ", "1.", "1.2.3-rc.1.2.3", ":tada: ", "www."]
    assert_linear_time(lambda text: stated_release(closed(message(text))), *statements, *pieces)


# Real threads


@pytest.mark.shared
@pytest.mark.slow
def test_on_real_threads_the_stated_release_is_the_one_that_a_reader_found(shared: Path) -> None:
    stated = [each for each in read_all(shared) if each.release]
    assert [each.thread.id for each in stated if not each.is_right] == []
    assert all(each.fits_the_dates for each in stated), RELEASED
    assert len(stated) >= 7  # one more says only "I believe"
