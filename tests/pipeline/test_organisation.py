"""What other repositories have, in our comments: shown, kept true, and taken out again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bot.domain.answer import Context, Match, OrganisationKey, OrganisationMatch
from bot.domain.changes import Changes, Renewal
from bot.domain.thread import Outcome, OutcomeKind, Thread, ThreadId
from bot.github.errors import ForgeError, Gone, RateLimited
from bot.github.events import Event
from bot.memory.manifest import MAX_OWED
from bot.pipeline.handle import handle_event
from bot.pipeline.publish import CommentResult
from bot.pipeline.renewal import MAX_RENEWALS
from bot.settings.schema import CommentSettings, OrganisationSettings, Settings
from tests.comment.contexts import day
from tests.comment.detector import report
from tests.fakes.github import FakeGitHub
from tests.pipeline.test_replies import BOT, DECISION, LATER, REPO, Office, opened

__all__ = ["opened"]

HEADING = "**Elsewhere in this organisation**"
BOTH = Settings(organisation=OrganisationSettings(results=2))


def other(number: int, title: str, repository: int = 7) -> OrganisationMatch:
    ending = Outcome(
        OutcomeKind.FIXED, quote="Set SameSite.", at=day(5, 3), author="octocat", fix="#57", release="v4.2"
    )
    match = Match(number, title, 0.9, "closed", day(4, 1), closed_at=day(5, 3), outcome=ending, why=("same text",))
    return OrganisationMatch(OrganisationKey(repository, number), f"octocat/sdk-{repository}", match)


COOKIE, PROXY, THIRD = other(31, "The cookie is never sent"), other(8, "Lost behind a proxy", 8), other(9, "Third", 9)


@dataclass
class OtherRepositories:
    """An `OrganisationSearch`: it finds what is ``visible``, nothing for threads in ``hidden_on``, notes what it was
    asked, and fails with ``fault``."""

    visible: tuple[OrganisationMatch, ...] = (COOKIE, PROXY)
    asked: list[tuple[ThreadId, tuple[OrganisationKey, ...]]] = field(default_factory=list)
    seen: list[ThreadId] = field(default_factory=list)
    fault: ForgeError | None = None
    hidden_on: frozenset[ThreadId] = frozenset()

    def find(
        self, thread: Thread, context: Context, kept: Collection[OrganisationKey] = ()
    ) -> tuple[OrganisationMatch, ...]:
        self.asked.append((thread.id, tuple(kept)))
        self.seen = [mention.id for mention in context.mentioned]
        if self.fault:
            raise self.fault
        return () if thread.id in self.hidden_on else self.visible


@dataclass
class Desk:
    """The office, whose runs may search other repositories."""

    office: Office
    others: OtherRepositories = field(default_factory=OtherRepositories)

    def ask(self, body: str = "Wvu tsr.", title: str = "Qpo nml") -> int:
        """Somebody opens an issue, and the run that this starts comes at once."""
        number = int(self.office.github.open_issue("monalisa", title, body))
        self.run(Event("issues", "opened", number))
        return number

    def change(self, *numbers: int, **rest: Any) -> list[CommentResult]:
        """The server's own event: something of another repository that the comments on these issues show changed."""
        self.office.github.clock.advance(LATER)
        return self.run(Event("organisation", numbers=numbers), **rest)

    def run(
        self,
        event: Event,
        watch: Callable[[str], object] = lambda _: None,
        *,
        searches: bool = True,
        checks_others: bool = False,
        is_dry: bool = False,
    ) -> list[CommentResult]:
        self.office.github.clock.advance(1)
        memory = self.office.memory()
        search = self.others if searches else None
        bot = replace(self.office.bot(memory), on_stage=watch, organisation=search, checks_others=checks_others)
        bot = replace(bot, is_dry=is_dry)
        try:
            return handle_event(event, bot)
        finally:
            memory.close()

    def texts(self, number: int) -> list[str]:
        return [str(comment.body) for comment in self.office.github.comments_by(BOT, number)]

    def known(self, number: int) -> tuple[OrganisationKey, ...]:
        """The threads of other repositories that memory has our comment show."""
        memory = self.office.memory().open()
        try:
            linked = memory.state.thread_comments([number]).get(number)
            return linked.comments[0].others if linked and linked.comments else ()
        finally:
            memory.close()

    def stored(self) -> object:
        """What changes with every commit of memory."""
        return sorted((p.name, p.stat().st_mtime_ns) for p in (self.office.folder / "store").rglob("manifest.json"))

    def owed(self) -> tuple[object, ...]:
        memory = self.office.memory().open()
        try:
            return *memory.state.manifest.owed, *memory.state.manifest.pending
        finally:
            memory.close()


@pytest.fixture
def desk(opened: Path, tmp_path: Path) -> Iterator[Desk]:
    with FakeGitHub(REPO, validate=False) as github:
        office = Office(github, tmp_path, opened)
        github.close(3, "monalisa")
        office.settings = BOTH
        yield Desk(office)


def edit(desk: Desk, number: int) -> None:
    """A person writes something into our comment."""
    (comment,) = desk.office.github.comments_by(BOT, number)
    desk.office.github.edit_comment(comment.id, f"{comment.body}\nI looked at it.")


def writes(desk: Desk) -> list[str]:
    return [f"{one.method} {one.path}" for one in desk.office.github.recent if one.method in ("POST", "PATCH")]


# -- shown ---------------------------------------------------------------------------------------------------------


def test_what_another_repository_solved_is_worth_a_comment_alone_and_refers_to_nothing(desk: Desk) -> None:
    number = desk.ask()
    (text,) = desk.texts(number)
    assert HEADING in text
    at = "https://redirect.github.com/octocat/sdk-7"
    assert f"- [The cookie is never sent]({at}/issues/31) · in `octocat/sdk-7`: **fixed in v4.2** by [" in text
    assert "“Set SameSite.”" in text
    found = report(text)
    assert (found.mentions, found.references) == ([], [])
    assert all(link.startswith("https://redirect.github.com/octocat/sdk-") for link in found.links)
    assert "Seen before" not in text
    assert desk.known(number) == (COOKIE.key, PROXY.key)
    assert desk.others.asked == [(number, ())]


def test_it_stands_below_what_this_repository_knows(desk: Desk) -> None:
    number = desk.ask("As in #1.")
    (text,) = desk.texts(number)
    assert text.index(DECISION) < text.index(HEADING) < text.index("Precedent, a bot")
    assert desk.others.seen == [1]


@pytest.mark.parametrize(("results", "shown"), [(0, ()), (1, (COOKIE.key,)), (2, (COOKIE.key, PROXY.key))])
def test_the_setting_says_how_many(desk: Desk, results: int, shown: tuple[OrganisationKey, ...]) -> None:
    desk.office.settings = Settings(organisation=OrganisationSettings(results=results))
    number = desk.ask()
    assert desk.known(number) == shown
    assert len(desk.others.asked) == bool(results)
    assert len(desk.texts(number)) == bool(results)


def test_a_run_without_such_a_search_shows_none(desk: Desk) -> None:
    number = int(desk.office.github.open_issue("monalisa", "Qpo nml", "Wvu."))
    results = desk.run(Event("issues", "opened", number), searches=False)
    assert [result.action for result in results if result.id == number] == ["silent"]
    assert desk.texts(number) == []


def test_in_the_mode_of_summaries_nothing_is_posted(desk: Desk) -> None:
    desk.office.settings = replace(BOTH, mode="summary")
    number = int(desk.office.github.open_issue("monalisa", "Qpo nml", "Wvu."))
    (result,) = (result for result in desk.run(Event("issues", "opened", number)) if result.id == number)
    assert result.action == "would say"
    assert HEADING in result.text
    assert (desk.texts(number), desk.known(number)) == ([], ())


def test_such_a_comment_counts_like_others_and_its_renewal_does_not(desk: Desk) -> None:
    desk.office.settings = replace(BOTH, comment=CommentSettings(daily_limit=1))
    first, second = desk.ask(), desk.ask(title="Kji hgf")
    assert [len(desk.texts(each)) for each in (first, second)] == [1, 0]
    desk.others.visible = (PROXY,)
    desk.change(first)
    assert desk.known(first) == (PROXY.key,)
    assert desk.texts(second) == []


# -- kept true -----------------------------------------------------------------------------------------------------


def test_one_that_may_not_be_shown_any_more_leaves_the_comment(desk: Desk) -> None:
    number = desk.ask("As in #1.")
    desk.others.visible = (PROXY,)
    (result,) = desk.change(number)
    (text,) = desk.texts(number)
    assert result.action == "updated"
    assert desk.others.asked[-1] == (number, (COOKIE.key, PROXY.key))
    assert ("cookie" in text, "Lost behind a proxy" in text, DECISION in text) == (False, True, True)
    assert (desk.known(number), desk.owed()) == ((PROXY.key,), ())


def test_the_last_one_takes_the_comment_with_it(desk: Desk) -> None:
    number = desk.ask()
    desk.others.visible = ()
    (result,) = desk.change(number)
    (text,) = desk.texts(number)
    assert result.action == "withdrawn"
    assert "it was withdrawn" in text
    assert HEADING not in text
    assert (desk.known(number), desk.owed()) == ((), ())


def test_a_comment_of_an_issue_that_is_closed_or_locked_by_now_is_renewed_too(desk: Desk) -> None:
    number = desk.ask()
    desk.office.github.close(number, "monalisa")
    desk.others.visible = ()
    desk.change(number)
    assert "it was withdrawn" in desk.texts(number)[0]


def test_what_may_not_be_seen_goes_even_if_a_person_edited_the_comment(desk: Desk) -> None:
    number = desk.ask("As in #1.")
    edit(desk, number)
    desk.change(number)  # all are still visible
    assert HEADING in desk.texts(number)[0]
    desk.others.visible = (PROXY,)
    desk.change(number)
    (text,) = desk.texts(number)
    assert ("cookie" in text, "it was withdrawn" in text) == (False, True)


OTHERWISE = {
    "summary": replace(BOTH, mode="summary"),
    "off": replace(BOTH, mode="off"),
    "invalid": Settings(),  # and nothing may be posted
}


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("mode", OTHERWISE)
def test_what_may_not_be_seen_goes_in_every_mode_and_nothing_else_is_written(
    desk: Desk, mode: str, is_edited: bool
) -> None:
    first, second = desk.ask("As in #1."), desk.ask("As in #1.", "Kji hgf")
    if is_edited:
        edit(desk, first)
    desk.office.settings = OTHERWISE[mode]
    muted = desk.office.muted = "the settings cannot be used" if mode == "invalid" else ""
    if not muted:
        desk.others.visible = (other(31, "The cookie is sent twice"), PROXY)
        before = desk.texts(first)
        desk.office.github.mark()
        desk.change(first, second)
        assert (desk.texts(first), writes(desk)) == (before, []), "a new title has to wait"
        desk.others.visible = (PROXY,)
    number = desk.office.github.open_issue("monalisa", "Vut srq", "As in #1.")
    desk.change(first, second)
    for each in (first, second):
        (text,) = desk.texts(each)
        assert ("cookie" in text, HEADING in text) == (False, not muted and not (is_edited and each == first))
    assert (DECISION in desk.texts(first)[0], DECISION in desk.texts(second)[0]) == (not is_edited, True)
    assert (desk.known(second), desk.texts(number)) == (() if muted else (PROXY.key,), [])
    desk.office.github.mark()
    desk.change(first, second)
    assert writes(desk) == []


def test_what_has_to_wait_keeps_nothing_from_being_taken_out(desk: Desk) -> None:
    numbers = [desk.ask(title=f"Qpo nml {name}") for name in "abcdefghijklm"]
    desk.others.visible, before = (other(31, "The cookie is sent twice"), PROXY), desk.texts(numbers[0])
    desk.office.settings = replace(BOTH, mode="off")
    desk.change(*numbers)
    hidden = desk.others.hidden_on = frozenset(numbers[-3:])
    for _ in range(2):
        desk.office.github.clock.advance(LATER)
        desk.run(Event("schedule"))
    assert desk.texts(numbers[0]) == before
    assert [HEADING in desk.texts(number)[0] for number in hidden] == [False] * 3


@pytest.mark.parametrize("mode", ["off", "summary"])
def test_what_has_to_wait_is_looked_at_again_only_while_nobody_waits(desk: Desk, mode: str) -> None:
    numbers = [desk.ask(title=f"Qpo nml {name}") for name in "abcdefghijkl"]
    desk.others.visible = (other(31, "The cookie is sent twice"), PROXY)
    desk.office.settings = replace(BOTH, mode=mode)
    desk.change(*numbers)
    before, asked, written = desk.owed(), len(desk.others.asked), desk.stored()
    for name in ("catch-up", "push"):
        desk.office.github.clock.advance(LATER)
        desk.run(Event(name))
    assert (desk.owed(), len(desk.others.asked), desk.stored()) == (before, asked, written)
    desk.run(Event("schedule"))
    assert len(desk.others.asked) == asked + MAX_RENEWALS
    desk.run(Event("catch-up"), checks_others=True)
    assert len(desk.others.asked) == asked + 2 * MAX_RENEWALS


@pytest.mark.parametrize("mode", ["off", "summary"])
def test_an_answer_that_is_not_posted_renews_no_comment(desk: Desk, mode: str) -> None:
    number = desk.ask("As in #1.")
    desk.office.settings, desk.others.visible = replace(BOTH, mode=mode), (PROXY,)
    desk.office.github.edit_issue(number, body="Wvu tsr, as in #1.")
    desk.office.github.faults.add("PATCH */issues/comments/*", "500", times=None)
    results = desk.change(number)
    assert {result.renews for result in results if result.id == number} == {False, True}
    assert COOKIE.key in desk.known(number), "it stands there still"
    desk.office.github.faults.clear()
    desk.change()
    assert "cookie" in desk.texts(number)[0], "it waits for a run that nobody waits for"
    desk.run(Event("schedule"))
    assert ("cookie" in desk.texts(number)[0], desk.known(number)) == (False, (PROXY.key,))


def test_a_thread_that_is_left_alone_is_still_owed_its_renewal(desk: Desk) -> None:
    number = desk.ask("As in #1.")
    desk.others.visible = (PROXY,)
    desk.office.github.edit_issue(number, body="Wvu tsr, as in #1.")
    desk.office.github.close(number, "monalisa")
    desk.office.github.faults.add("PATCH */issues/comments/*", "500", times=None)
    desk.change(number)
    assert COOKIE.key in desk.known(number)
    desk.office.github.faults.clear()
    desk.change()
    assert ("cookie" in desk.texts(number)[0], desk.known(number)) == (False, (PROXY.key,))


def test_what_an_event_names_is_taken_out_though_memory_has_no_room_for_it(desk: Desk) -> None:
    number = desk.ask()
    memory = desk.office.memory().open()
    ago = datetime.fromisoformat("2025-01-01T00:00:00Z")
    memory.stage(Changes(owed=tuple(Renewal(each, 0, 1, ago) for each in range(1_000, 1_000 + MAX_OWED))))
    memory.commit("Owe")
    memory.close()
    desk.office.settings, desk.others.visible = replace(BOTH, mode="off"), ()
    desk.change(number)
    assert HEADING not in desk.texts(number)[0]


def test_a_trial_run_takes_nothing_out(desk: Desk) -> None:
    number = desk.ask("As in #1.")
    before, desk.others.visible = desk.texts(number), ()
    desk.office.settings = replace(BOTH, mode="summary")
    desk.change(number, is_dry=True)
    assert desk.texts(number) == before


@pytest.mark.parametrize("checks_others", [False, True])
def test_one_event_takes_out_of_all_its_comments_and_of_ten_others(desk: Desk, checks_others: bool) -> None:
    numbers = [desk.ask(title=f"Qpo nml {name}") for name in "abcdefghijklmn"]
    desk.others.visible = ()
    desk.change(*numbers[:3], checks_others=checks_others)
    others = MAX_RENEWALS if checks_others else 0
    assert sum(HEADING not in desk.texts(number)[0] for number in numbers[:3]) == 3
    assert sum(HEADING not in desk.texts(number)[0] for number in numbers[3:]) == others
    desk.change(*numbers)
    assert [HEADING in desk.texts(number)[0] for number in numbers] == [False] * 14
    assert desk.owed() == ()


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("change", ["switched off", "no search", "setting"])
def test_what_cannot_be_looked_at_any_more_leaves_the_comment_at_its_next_renewal(
    desk: Desk, change: str, is_edited: bool
) -> None:
    number = desk.ask("As in #1.")
    asked = len(desk.others.asked)
    if is_edited:
        edit(desk, number)
    if change == "setting":
        desk.office.settings = Settings()
    if change == "switched off":
        desk.office.say("/precedent off", by="hubot", on=number)
    desk.run(Event("organisation", numbers=(number,)), searches=change != "no search")
    assert HEADING not in desk.texts(number)[0]
    assert (DECISION in desk.texts(number)[0]) is (change != "switched off" and not is_edited)
    assert (len(desk.others.asked), desk.known(number)) == (asked, ())


def test_where_nobody_knows_what_changed_all_that_show_others_are_looked_at(desk: Desk) -> None:
    first, second = desk.ask(), desk.ask("As in #1.", "Kji hgf")
    desk.others.visible = ()
    third = desk.ask("As in #1.", "Edc baz")
    asked = len(desk.others.asked)
    desk.office.github.clock.advance(LATER)
    desk.run(Event("catch-up"), checks_others=True)
    assert {thread for thread, _ in desk.others.asked[asked:]} == {first, second}
    assert "it was withdrawn" in desk.texts(first)[0]
    assert [HEADING in desk.texts(each)[0] for each in (second, third)] == [False, False]
    assert desk.owed() == ()


def test_what_became_invisible_goes_before_other_renewals(desk: Desk) -> None:
    numbers = [desk.ask(title=f"Qpo nml {name}") for name in "abcdefghijkl"]
    desk.others.fault = ForgeError("it is down")
    for number in numbers:
        desk.change(number)
    desk.others.fault, desk.others.visible = None, ()
    desk.change(numbers[-1])
    assert HEADING not in desk.texts(numbers[-1])[0]


def test_while_nothing_changed_a_renewal_writes_nothing(desk: Desk) -> None:
    number = desk.ask()
    before = desk.texts(number)
    desk.office.github.mark()
    assert desk.change(number) == []
    assert (writes(desk), desk.texts(number), desk.owed()) == ([], before, ())


def test_a_title_that_changed_is_changed_in_the_comment(desk: Desk) -> None:
    number = desk.ask()
    desk.others.visible = (other(31, "The cookie is sent twice"), PROXY)
    desk.change(number)
    assert "The cookie is sent twice" in desk.texts(number)[0]


def test_a_renewal_for_another_reason_searches_only_where_the_comment_shows_others(desk: Desk) -> None:
    desk.others.visible = ()
    number = desk.ask("As in #1.")
    desk.others.visible = (COOKIE,)
    desk.office.github.reopen(1, "hubot")
    desk.run(Event("issues", "reopened", 1))
    (text,) = desk.texts(number)
    assert ("open again" in text, HEADING in text) == (True, False)
    assert [thread for thread, _ in desk.others.asked].count(number) == 1


def test_an_edited_issue_is_answered_with_what_stands_there_kept(desk: Desk) -> None:
    number = desk.ask()
    desk.office.github.clock.advance(LATER)
    desk.office.github.edit_issue(number, body="Wvu tsr, as in #1.")
    desk.run(Event("issues", "edited", number))
    assert desk.others.asked[-1] == (number, (COOKIE.key, PROXY.key))
    assert DECISION in desk.texts(number)[0]


@pytest.mark.parametrize("number", [2, 404])
def test_an_event_about_an_issue_without_a_comment_does_nothing(desk: Desk, number: int) -> None:
    desk.change(number)
    assert (writes(desk), desk.others.asked, desk.owed()) == ([], [], ())


# -- trouble -------------------------------------------------------------------------------------------------------

FAULTS = [ForgeError("it is down"), RateLimited("the limit"), Gone("no such issue", certain=True)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_answer_waits_while_others_cannot_be_read(desk: Desk, fault: ForgeError) -> None:
    desk.others.fault = fault
    number = desk.ask()
    assert desk.texts(number) == []
    desk.others.fault = None
    desk.office.github.clock.advance(LATER)
    desk.run(Event("schedule"))
    assert HEADING in desk.texts(number)[0]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_renewal_is_owed_until_others_can_be_read(desk: Desk, fault: ForgeError) -> None:
    number = desk.ask()
    desk.others.fault, desk.others.visible = fault, ()
    (result,) = desk.change(number)
    assert result.error
    assert HEADING in desk.texts(number)[0]
    desk.others.fault = None
    desk.office.github.clock.advance(LATER)
    desk.run(Event("push"))
    assert "it was withdrawn" in desk.texts(number)[0]
    assert desk.owed() == ()


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("stage", ["push", "say"])
def test_a_run_that_dies_leaves_the_next_one_what_is_to_go(desk: Desk, stage: str, is_edited: bool) -> None:
    number = desk.ask("As in #1.")
    if is_edited:
        edit(desk, number)
    desk.others.visible = (PROXY, THIRD)

    def die(at: str) -> None:
        if at == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.change(number, watch=die)
    assert "cookie" in desk.texts(number)[0]
    if stage == "push":
        desk.change(number)
    else:
        desk.office.github.clock.advance(LATER)
        desk.run(Event("push"))
    (text,) = desk.texts(number)
    assert ("cookie" in text, "Third" in text, "it was withdrawn" in text) == (False, not is_edited, is_edited)
    assert desk.owed() == ()


@pytest.mark.parametrize("step", ["look", "remember", "plan", "push", "say", "reply"])
def test_of_two_runs_at_once_one_keeps_the_comment_true(desk: Desk, step: str) -> None:
    number = desk.ask("As in #1.")
    visible = desk.others.visible = (COOKIE,)

    def narrow(at: str) -> None:
        nonlocal visible
        if at == step and visible:
            visible = desk.others.visible = ()
            desk.run(Event("organisation", numbers=(number,)))

    desk.change(number, watch=narrow)
    for _ in range(2):
        desk.office.github.clock.advance(LATER)
        desk.run(Event("schedule"))
    (text,) = desk.texts(number)
    assert (HEADING in text, DECISION in text) == (False, True)
    assert (desk.known(number), desk.owed()) == ((), ())
