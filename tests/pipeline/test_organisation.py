"""Matches from other repositories in our comments: shown, renewed, and removed again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bot.domain.answer import Context, Match, OrganisationMatch
from bot.domain.changes import Changes
from bot.domain.post import OrganisationKey, Renewal
from bot.domain.thread import Outcome, OutcomeKind, Thread, ThreadId
from bot.github.errors import ForgeError, Gone, RateLimited
from bot.github.events import Event
from bot.memory.manifest import MAX_RENEWALS_DUE
from bot.pipeline.handle import handle_event
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.renewals import MAX_RENEWALS
from bot.settings.schema import CommentSettings, OrganisationSettings, Settings
from tests.comment.contexts import day
from tests.comment.detector import report
from tests.fakes.github import FakeGitHub
from tests.pipeline.sample_repository import BOT, DECISION, LATER, REPO, SampleRepository

HEADING = "**Elsewhere in this organisation**"
BOTH = Settings(organisation=OrganisationSettings(results=2))


SLOW_STEPS = [pytest.param(step, marks=pytest.mark.slow) for step in ("look", "remember", "plan", "say")]
"""Quick runs let two runs overlap only before the push, where the most depends on it."""


def make_match(number: int, title: str, repository: int = 7) -> OrganisationMatch:
    ending = Outcome(
        OutcomeKind.FIXED, quote="Set SameSite.", at=day(5, 3), author="octocat", fix="#57", release="v4.2"
    )
    match = Match(number, title, 0.9, "closed", day(4, 1), closed_at=day(5, 3), outcome=ending, why=("same text",))
    return OrganisationMatch(OrganisationKey(repository, number), f"octocat/sdk-{repository}", match)


COOKIE, PROXY, THIRD = (
    make_match(31, "The cookie is never sent"),
    make_match(8, "Lost behind a proxy", 8),
    make_match(9, "Third", 9),
)


@dataclass
class OtherRepositories:
    """An `OrganisationSearch` that finds ``visible``, or nothing for threads in ``hidden_on``, records its queries, and
    fails with ``fault``."""

    visible: tuple[OrganisationMatch, ...] = (COOKIE, PROXY)
    queries: list[tuple[ThreadId, tuple[OrganisationKey, ...]]] = field(default_factory=list)
    mentioned: list[ThreadId] = field(default_factory=list)
    fault: ForgeError | None = None
    hidden_on: frozenset[ThreadId] = frozenset()

    def find(
        self, thread: Thread, context: Context, kept: Collection[OrganisationKey] = ()
    ) -> tuple[OrganisationMatch, ...]:
        self.queries.append((thread.id, tuple(kept)))
        self.mentioned = [mention.id for mention in context.mentioned]
        if self.fault:
            raise self.fault
        return () if thread.id in self.hidden_on else self.visible


@dataclass
class RepositoryWithSearch:
    """A sample repository whose runs may search other repositories."""

    sample: SampleRepository
    others: OtherRepositories = field(default_factory=OtherRepositories)

    def open_issue(self, body: str = "Wvu tsr.", title: str = "Qpo nml") -> int:
        """Open an issue, and run for its event at once."""
        number = int(self.sample.github.open_issue("monalisa", title, body))
        self.run(Event("issues", "opened", number))
        return number

    def change(self, *numbers: int, **options: Any) -> list[CommentResult]:
        """Run for the server's own event: something that the comments on these issues show from elsewhere changed."""
        self.sample.github.clock.advance(LATER)
        return self.run(Event("organisation", numbers=numbers), **options)

    def run(
        self,
        event: Event,
        watch: Callable[[str], object] = lambda _: None,
        *,
        searches: bool = True,
        checks_others: bool = False,
        is_dry: bool = False,
    ) -> list[CommentResult]:
        self.sample.github.clock.advance(1)
        memory = self.sample.memory()
        search = self.others if searches else None
        run = replace(self.sample.tools(memory), on_stage=watch, organisation=search, checks_others=checks_others)
        memory.is_dry = is_dry
        try:
            return handle_event(event, run).results
        finally:
            memory.close()

    def texts(self, number: int) -> list[str]:
        return [str(comment.body) for comment in self.sample.github.comments_by(BOT, number)]

    def shown_others(self, number: int) -> tuple[OrganisationKey, ...]:
        """The threads of other repositories that our comment shows, according to memory."""
        memory = self.sample.memory().open()
        try:
            comments = memory.state.posts([number]).get(number)
            return comments.posts[0].others if comments and comments.posts else ()
        finally:
            memory.close()

    def stored(self) -> object:
        """A value that changes with every commit of memory."""
        return sorted((p.name, p.stat().st_mtime_ns) for p in (self.sample.folder / "store").rglob("manifest.json"))

    def pending_work(self) -> tuple[object, ...]:
        memory = self.sample.memory().open()
        try:
            return *memory.state.manifest.renewals_due, *memory.state.manifest.pending
        finally:
            memory.close()


@pytest.fixture
def repo(memory_folder: Path, tmp_path: Path) -> Iterator[RepositoryWithSearch]:
    with FakeGitHub(REPO, validate=False) as github:
        sample = SampleRepository(github, tmp_path, memory_folder)
        github.close(3, "monalisa")
        sample.settings = BOTH
        yield RepositoryWithSearch(sample)


def edit(repo: RepositoryWithSearch, number: int) -> None:
    """Let a person edit our comment."""
    (comment,) = repo.sample.github.comments_by(BOT, number)
    repo.sample.github.edit_comment(comment.id, f"{comment.body}\nI looked at it.")


def writes(repo: RepositoryWithSearch) -> list[str]:
    return [
        f"{request.method} {request.path}"
        for request in repo.sample.github.recent
        if request.method in ("POST", "PATCH")
    ]


# -- showing -------------------------------------------------------------------------------------------------------


def test_a_match_in_another_repository_alone_is_worth_a_comment_without_references(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue()
    (text,) = repo.texts(number)
    assert HEADING in text
    at = "https://redirect.github.com/octocat/sdk-7"
    assert f"- [The cookie is never sent]({at}/issues/31) · in `octocat/sdk-7`: **fixed in v4.2** by [" in text
    assert "“Set SameSite.”" in text
    detected = report(text)
    assert (detected.mentions, detected.references) == ([], [])
    assert all(link.startswith("https://redirect.github.com/octocat/sdk-") for link in detected.links)
    assert "Seen before" not in text
    assert repo.shown_others(number) == (COOKIE.key, PROXY.key)
    assert repo.others.queries == [(number, ())]


def test_other_repositories_come_below_what_this_repository_knows(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue("As in #1.")
    (text,) = repo.texts(number)
    assert text.index(DECISION) < text.index(HEADING) < text.index("Precedent, a bot")
    assert repo.others.mentioned == [1]


@pytest.mark.parametrize(("results", "expected"), [(0, ()), (1, (COOKIE.key,)), (2, (COOKIE.key, PROXY.key))])
def test_the_setting_limits_the_number_of_matches(
    repo: RepositoryWithSearch, results: int, expected: tuple[OrganisationKey, ...]
) -> None:
    repo.sample.settings = Settings(organisation=OrganisationSettings(results=results))
    number = repo.open_issue()
    assert repo.shown_others(number) == expected
    assert len(repo.others.queries) == bool(results)
    assert len(repo.texts(number)) == bool(results)


def test_a_run_without_an_organisation_search_shows_none(repo: RepositoryWithSearch) -> None:
    number = int(repo.sample.github.open_issue("monalisa", "Qpo nml", "Wvu."))
    results = repo.run(Event("issues", "opened", number), searches=False)
    assert [result.action for result in results if result.id == number] == ["silent"]
    assert repo.texts(number) == []


def test_in_summary_mode_nothing_is_posted(repo: RepositoryWithSearch) -> None:
    repo.sample.settings = replace(BOTH, mode="summary")
    number = int(repo.sample.github.open_issue("monalisa", "Qpo nml", "Wvu."))
    (result,) = (result for result in repo.run(Event("issues", "opened", number)) if result.id == number)
    assert result.action == "would say"
    assert HEADING in result.text
    assert (repo.texts(number), repo.shown_others(number)) == ([], ())


def test_such_a_comment_counts_for_the_daily_limit_but_its_renewal_does_not(repo: RepositoryWithSearch) -> None:
    repo.sample.settings = replace(BOTH, comment=CommentSettings(daily_limit=1))
    first, second = repo.open_issue(), repo.open_issue(title="Kji hgf")
    assert [len(repo.texts(each)) for each in (first, second)] == [1, 0]
    repo.others.visible = (PROXY,)
    repo.change(first)
    assert repo.shown_others(first) == (PROXY.key,)
    assert repo.texts(second) == []


# -- renewing ------------------------------------------------------------------------------------------------------


def test_a_match_that_became_invisible_is_removed_from_the_comment(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue("As in #1.")
    repo.others.visible = (PROXY,)
    (result,) = repo.change(number)
    (text,) = repo.texts(number)
    assert result.action == "updated"
    assert repo.others.queries[-1] == (number, (COOKIE.key, PROXY.key))
    assert ("cookie" in text, "Lost behind a proxy" in text, DECISION in text) == (False, True, True)
    assert (repo.shown_others(number), repo.pending_work()) == ((PROXY.key,), ())


def test_a_comment_is_withdrawn_with_its_last_match(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue()
    repo.others.visible = ()
    (result,) = repo.change(number)
    (text,) = repo.texts(number)
    assert result.action == "withdrawn"
    assert "it was withdrawn" in text
    assert HEADING not in text
    assert (repo.shown_others(number), repo.pending_work()) == ((), ())


@pytest.mark.parametrize("state", ["closed", "locked"])
def test_a_comment_on_a_closed_or_locked_issue_is_renewed_too(repo: RepositoryWithSearch, state: str) -> None:
    number = repo.open_issue()
    repo.sample.github.close(number, "monalisa") if state == "closed" else repo.sample.github.lock(number)
    repo.others.visible = ()
    repo.change(number)
    assert "it was withdrawn" in repo.texts(number)[0]


def test_an_invisible_match_is_removed_even_if_a_person_edited_the_comment(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue("As in #1.")
    edit(repo, number)
    repo.change(number)  # all are still visible
    assert HEADING in repo.texts(number)[0]
    repo.others.visible = (PROXY,)
    repo.change(number)
    (text,) = repo.texts(number)
    assert ("cookie" in text, "it was withdrawn" in text) == (False, True)


RESTRICTED = {
    "summary": replace(BOTH, mode="summary"),
    "off": replace(BOTH, mode="off"),
    "invalid": Settings(),  # nothing may be posted
}


@pytest.mark.parametrize("is_edited", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", RESTRICTED)
def test_an_invisible_match_is_removed_in_every_mode_and_nothing_else_is_written(
    repo: RepositoryWithSearch, mode: str, is_edited: bool
) -> None:
    first, second = repo.open_issue("As in #1."), repo.open_issue("As in #1.", "Kji hgf")
    if is_edited:
        edit(repo, first)
    repo.sample.settings = RESTRICTED[mode]
    muted = repo.sample.muted = "the settings cannot be used" if mode == "invalid" else ""
    if not muted:
        repo.others.visible = (make_match(31, "The cookie is sent twice"), PROXY)
        before = repo.texts(first)
        repo.sample.github.mark()
        repo.change(first, second)
        assert (repo.texts(first), writes(repo)) == (before, []), "a new title has to wait"
        repo.others.visible = (PROXY,)
    number = repo.sample.github.open_issue("monalisa", "Vut srq", "As in #1.")
    repo.change(first, second)
    for each in (first, second):
        (text,) = repo.texts(each)
        assert ("cookie" in text, HEADING in text) == (False, not muted and not (is_edited and each == first))
    assert (DECISION in repo.texts(first)[0], DECISION in repo.texts(second)[0]) == (not is_edited, True)
    assert (repo.shown_others(second), repo.texts(number)) == (() if muted else (PROXY.key,), [])
    repo.sample.github.mark()
    repo.change(first, second)
    assert writes(repo) == []


@pytest.mark.slow
def test_postponed_renewals_do_not_delay_removals(repo: RepositoryWithSearch) -> None:
    numbers = [repo.open_issue(title=f"Qpo nml {name}") for name in "abcdefghijklm"]
    repo.others.visible, before = (make_match(31, "The cookie is sent twice"), PROXY), repo.texts(numbers[0])
    repo.sample.settings = replace(BOTH, mode="off")
    repo.change(*numbers)
    hidden = repo.others.hidden_on = frozenset(numbers[-3:])
    for _ in range(2):
        repo.sample.github.clock.advance(LATER)
        repo.run(Event("schedule"))
    assert repo.texts(numbers[0]) == before
    assert [HEADING in repo.texts(number)[0] for number in hidden] == [False] * 3


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["off", "summary"])
def test_postponed_renewals_are_checked_only_in_runs_that_nobody_waits_for(
    repo: RepositoryWithSearch, mode: str
) -> None:
    numbers = [repo.open_issue(title=f"Qpo nml {name}") for name in "abcdefghijkl"]
    repo.others.visible = (make_match(31, "The cookie is sent twice"), PROXY)
    repo.sample.settings = replace(BOTH, mode=mode)
    repo.change(*numbers)
    before, queries, written = repo.pending_work(), len(repo.others.queries), repo.stored()
    for name in ("catch-up", "push"):
        repo.sample.github.clock.advance(LATER)
        repo.run(Event(name))
    assert (repo.pending_work(), len(repo.others.queries), repo.stored()) == (before, queries, written)
    repo.run(Event("schedule"))
    assert len(repo.others.queries) == queries + MAX_RENEWALS
    repo.run(Event("catch-up"), checks_others=True)
    assert len(repo.others.queries) == queries + 2 * MAX_RENEWALS


@pytest.mark.parametrize("mode", ["off", "summary"])
def test_an_answer_that_is_not_posted_does_not_renew_the_comment(repo: RepositoryWithSearch, mode: str) -> None:
    number = repo.open_issue("As in #1.")
    repo.sample.settings, repo.others.visible = replace(BOTH, mode=mode), (PROXY,)
    repo.sample.github.edit_issue(number, body="Wvu tsr, as in #1.")
    repo.sample.github.faults.add("PATCH */issues/comments/*", "500", times=None)
    results = repo.change(number)
    assert {result.renews for result in results if result.id == number} == {False, True}
    assert COOKIE.key in repo.shown_others(number), "it stands there still"
    repo.sample.github.faults.clear()
    repo.change()
    assert "cookie" in repo.texts(number)[0], "it waits for a run that nobody waits for"
    repo.run(Event("schedule"))
    assert ("cookie" in repo.texts(number)[0], repo.shown_others(number)) == (False, (PROXY.key,))


def test_the_renewal_of_a_skipped_thread_is_still_owed(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue("As in #1.")
    repo.others.visible = (PROXY,)
    repo.sample.github.edit_issue(number, body="Wvu tsr, as in #1.")
    repo.sample.github.close(number, "monalisa")
    repo.sample.github.faults.add("PATCH */issues/comments/*", "500", times=None)
    repo.change(number)
    assert COOKIE.key in repo.shown_others(number)
    repo.sample.github.faults.clear()
    repo.change()
    assert ("cookie" in repo.texts(number)[0], repo.shown_others(number)) == (False, (PROXY.key,))


@pytest.mark.slow
def test_a_match_named_by_an_event_is_removed_even_if_too_many_renewals_are_owed(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue()
    memory = repo.sample.memory().open()
    ago = datetime.fromisoformat("2025-01-01T00:00:00Z")
    memory.stage(
        Changes(renewals_due=tuple(Renewal(each, "", 1, ago) for each in range(1_000, 1_000 + MAX_RENEWALS_DUE)))
    )
    memory.commit("Owe")
    memory.close()
    repo.sample.settings, repo.others.visible = replace(BOTH, mode="off"), ()
    repo.change(number)
    assert HEADING not in repo.texts(number)[0]


def test_a_dry_run_removes_nothing(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue("As in #1.")
    before, repo.others.visible = repo.texts(number), ()
    repo.sample.settings = replace(BOTH, mode="summary")
    repo.change(number, is_dry=True)
    assert repo.texts(number) == before


@pytest.mark.slow
@pytest.mark.parametrize("checks_others", [pytest.param(False, marks=pytest.mark.slow), True])
def test_one_event_updates_all_its_comments_and_ten_others(repo: RepositoryWithSearch, checks_others: bool) -> None:
    numbers = [repo.open_issue(title=f"Qpo nml {name}") for name in "abcdefghijklmn"]
    repo.others.visible = ()
    repo.change(*numbers[:3], checks_others=checks_others)
    others = MAX_RENEWALS if checks_others else 0
    assert sum(HEADING not in repo.texts(number)[0] for number in numbers[:3]) == 3
    assert sum(HEADING not in repo.texts(number)[0] for number in numbers[3:]) == others
    repo.change(*numbers)
    assert [HEADING in repo.texts(number)[0] for number in numbers] == [False] * 14
    assert repo.pending_work() == ()


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("change", ["switched off", "no search", "setting"])
def test_matches_that_can_no_longer_be_checked_are_removed_at_the_next_renewal(
    repo: RepositoryWithSearch, change: str, is_edited: bool
) -> None:
    number = repo.open_issue("As in #1.")
    queries = len(repo.others.queries)
    if is_edited:
        edit(repo, number)
    if change == "setting":
        repo.sample.settings = Settings()
    if change == "switched off":
        repo.sample.say("/precedent off", by="hubot", on=number)
    repo.run(Event("organisation", numbers=(number,)), searches=change != "no search")
    assert HEADING not in repo.texts(number)[0]
    assert (DECISION in repo.texts(number)[0]) is (change != "switched off" and not is_edited)
    assert (len(repo.others.queries), repo.shown_others(number)) == (queries, ())


def test_if_changes_are_unknown_all_comments_with_other_repositories_are_checked(repo: RepositoryWithSearch) -> None:
    first, second = repo.open_issue(), repo.open_issue("As in #1.", "Kji hgf")
    repo.others.visible = ()
    third = repo.open_issue("As in #1.", "Edc baz")
    queries = len(repo.others.queries)
    repo.sample.github.clock.advance(LATER)
    repo.run(Event("catch-up"), checks_others=True)
    assert {thread for thread, _ in repo.others.queries[queries:]} == {first, second}
    assert "it was withdrawn" in repo.texts(first)[0]
    assert [HEADING in repo.texts(each)[0] for each in (second, third)] == [False, False]
    assert repo.pending_work() == ()


@pytest.mark.slow
def test_a_thread_that_the_event_names_is_renewed_before_a_backlog(repo: RepositoryWithSearch) -> None:
    numbers = [repo.open_issue(title=f"Qpo nml {name}") for name in "abcdefghijkl"]
    repo.others.fault = ForgeError("it is down")
    for number in numbers:
        repo.change(number)
    repo.others.fault, repo.others.visible = None, ()
    repo.change(numbers[-1])
    assert HEADING not in repo.texts(numbers[-1])[0]


def test_a_renewal_without_changes_writes_nothing(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue()
    before = repo.texts(number)
    repo.sample.github.mark()
    assert repo.change(number) == []
    assert (writes(repo), repo.texts(number), repo.pending_work()) == ([], before, ())


def test_a_changed_title_is_updated_in_the_comment(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue()
    repo.others.visible = (make_match(31, "The cookie is sent twice"), PROXY)
    repo.change(number)
    assert "The cookie is sent twice" in repo.texts(number)[0]


def test_other_renewals_search_only_if_the_comment_shows_other_repositories(repo: RepositoryWithSearch) -> None:
    repo.others.visible = ()
    number = repo.open_issue("As in #1.")
    repo.others.visible = (COOKIE,)
    repo.sample.github.reopen(1, "hubot")
    repo.run(Event("issues", "reopened", 1))
    (text,) = repo.texts(number)
    assert ("open again" in text, HEADING in text) == (True, False)
    assert [thread for thread, _ in repo.others.queries].count(number) == 1


def test_an_edited_issue_is_answered_keeping_the_matches_shown(repo: RepositoryWithSearch) -> None:
    number = repo.open_issue()
    repo.sample.github.clock.advance(LATER)
    repo.sample.github.edit_issue(number, body="Wvu tsr, as in #1.")
    repo.run(Event("issues", "edited", number))
    assert repo.others.queries[-1] == (number, (COOKIE.key, PROXY.key))
    assert DECISION in repo.texts(number)[0]


@pytest.mark.parametrize("number", [2, 404])
def test_an_event_about_an_issue_without_a_comment_does_nothing(repo: RepositoryWithSearch, number: int) -> None:
    repo.change(number)
    assert (writes(repo), repo.others.queries, repo.pending_work()) == ([], [], ())


# -- faults --------------------------------------------------------------------------------------------------------

FAULTS = [ForgeError("it is down"), RateLimited("the limit"), Gone("no such issue", certain=True)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_answer_waits_while_other_repositories_cannot_be_searched(
    repo: RepositoryWithSearch, fault: ForgeError
) -> None:
    repo.others.fault = fault
    number = repo.open_issue()
    assert repo.texts(number) == []
    repo.others.fault = None
    repo.sample.github.clock.advance(LATER)
    repo.run(Event("schedule"))
    assert HEADING in repo.texts(number)[0]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_a_renewal_is_owed_until_other_repositories_can_be_searched(
    repo: RepositoryWithSearch, fault: ForgeError
) -> None:
    number = repo.open_issue()
    repo.others.fault, repo.others.visible = fault, ()
    (result,) = repo.change(number)
    assert result.error
    assert HEADING in repo.texts(number)[0]
    repo.others.fault = None
    repo.sample.github.clock.advance(LATER)
    repo.run(Event("push"))
    assert "it was withdrawn" in repo.texts(number)[0]
    assert repo.pending_work() == ()


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("stage", ["push", "say"])
def test_a_run_that_dies_leaves_removals_to_the_next(repo: RepositoryWithSearch, stage: str, is_edited: bool) -> None:
    number = repo.open_issue("As in #1.")
    if is_edited:
        edit(repo, number)
    repo.others.visible = (PROXY, THIRD)

    def die(at: str) -> None:
        if at == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repo.change(number, watch=die)
    assert "cookie" in repo.texts(number)[0]
    if stage == "push":
        repo.change(number)
    else:
        repo.sample.github.clock.advance(LATER)
        repo.run(Event("push"))
    (text,) = repo.texts(number)
    assert ("cookie" in text, "Third" in text, "it was withdrawn" in text) == (False, not is_edited, is_edited)
    assert repo.pending_work() == ()


@pytest.mark.parametrize("step", ["push", *SLOW_STEPS])
def test_the_comment_stays_correct_when_two_runs_overlap(repo: RepositoryWithSearch, step: str) -> None:
    number = repo.open_issue("As in #1.")
    visible = repo.others.visible = (COOKIE,)

    def hide_at_step(at: str) -> None:
        nonlocal visible
        if at == step and visible:
            visible = repo.others.visible = ()
            repo.run(Event("organisation", numbers=(number,)))

    repo.change(number, watch=hide_at_step)
    for _ in range(2):
        repo.sample.github.clock.advance(LATER)
        repo.run(Event("schedule"))
    (text,) = repo.texts(number)
    assert (HEADING in text, DECISION in text) == (False, True)
    assert (repo.shown_others(number), repo.pending_work()) == ((), ())
