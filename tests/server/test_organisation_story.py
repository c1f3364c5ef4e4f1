"""Three repositories of an organisation: what one has solved is shown in another, as long as it may be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.domain.answer import Context, Match, OrganisationKey, OrganisationMatch
from bot.domain.changes import StandingComment
from bot.domain.thread import Outcome, OutcomeKind, Thread
from bot.domain.thread_json import parse_time
from bot.github.events import Event
from bot.recall.candidates import OrganisationUnavailable
from bot.server.organisation_register import OrganisationRegister
from bot.settings.schema import Settings
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server.town import Town

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "others" not in StandingComment.__dataclass_fields__, reason="comments do not show other repositories yet"
    ),
]

TITLE = "The cookie is never sent"
SHARING = "organisation:\n  results: 2\n  share_with: ['octo-org/*']\n"
SHOWING = "organisation:\n  results: 2\n"


@dataclass
class Index:
    """An index that finds the same issue for every question, whatever became of it; down with a ``fault``."""

    found: list[OrganisationMatch] = field(default_factory=list)
    fault: OrganisationUnavailable | None = None

    def __call__(
        self, thread: Thread, context: Context, scope: Collection[int], kept: Collection[OrganisationKey], _: Settings
    ) -> Sequence[OrganisationMatch]:
        if self.fault:
            raise self.fault
        return self.found


class Organisation:
    """The repositories app, sdk and plugin in a town; an issue of the sdk tells how it was solved."""

    def __init__(self, town: Town) -> None:
        self.town, self.index = town, Index()
        town.dependencies = replace(town.dependencies, ranking=lambda _: self.index)
        self.app, self.sdk, self.plugin = (
            town.project(f"octo-org/{name}", "PostgreSQL", private=False) for name in ("app", "sdk", "plugin")
        )
        self.number = town.github.tenants.install("octo-org", ["octo-org/app", "octo-org/sdk", "octo-org/plugin"])
        town.git.commit("octo-org/app", ".github/precedent.yml", SHOWING)
        ago = from_epoch(town.github.clock.epoch - 90 * 24 * 3600)
        self.solved = self.sdk.open_issue("monalisa", TITLE, "Zyx wvu tsr.", at=ago)
        self.sdk.close(self.solved, "octo-org", at=ago)
        closed_at = self.sdk.issue(self.solved).closed_at
        assert closed_at is not None
        at = parse_time(closed_at)
        ending = Outcome(OutcomeKind.FIXED, quote="Set SameSite.", at=at, author="octo-org", fix="#57", release="v4.2")
        match = Match(self.solved, TITLE, 0.9, "closed", at, closed_at=at, outcome=ending, why=("same text",))
        self.key = OrganisationKey(self.sdk.repo.id, self.solved)
        self.index.found = [OrganisationMatch(self.key, "octo-org/sdk", match)]
        for each in (self.app, self.sdk, self.plugin):  # each is known from its first run on
            self.town.tell(each, 1)
        self.town.settle()

    def ask(self, project: EventfulProject | None = None, seconds_ago: int = 0) -> int:
        """Somebody asks in the app, and is answered; the number of the issue."""
        asked, at = project or self.app, from_epoch(self.town.github.clock.epoch - seconds_ago)
        number = asked.open_issue("monalisa", "Logged out at once", "Qpo nml kji, since Monday.", at=at)
        self.town.tell(asked, number)
        self.town.settle()
        return number

    def hear(self) -> None:
        """What GitHub told of last arrives, and all that comes of it is done."""
        self.town.add_results()
        self.town.settle()

    def text(self, number: int, project: EventfulProject | None = None) -> str:
        return "\n".join(self.town.comments(project or self.app, number))

    def shown(self) -> list[tuple[str, int]]:
        with self.town.here.inbox.database.transaction() as asking:
            rows = asking.rows("select * from organisation_shown")
        return [(row["thread"], row["other_repository"]) for row in rows]


@pytest.fixture
def organisation(tmp_path: Path) -> Iterator[Organisation]:
    made = Organisation(Town(tmp_path))
    yield made
    made.town.close()
    assert made.town.github.violations == []
    assert made.town.trespasses() == [], "a token was used elsewhere than in its repository"


def test_what_the_sdk_solved_is_shown_in_the_app(organisation: Organisation) -> None:
    number = organisation.ask()
    text = organisation.text(number)
    assert TITLE in text
    assert "octo-org/sdk" in text
    assert "v4.2" in text
    assert organisation.shown() == [(str(number), organisation.sdk.repo.id)]


def test_one_answer_asks_github_four_times_at_most(organisation: Organisation) -> None:
    (found,), organisation.index.found = organisation.index.found, []
    organisation.ask(seconds_ago=60)  # what is opened within one second does not count as older
    match, usual = found.match, queries(organisation)
    organisation.index.found = [
        replace(found, key=OrganisationKey(project.repo.id, number), match=replace(match, id=number))
        for project in (organisation.plugin, organisation.sdk)
        for number in (97, 98, 99)
    ]
    assert usual == 1
    assert queries(organisation) == 1 + 4


def queries(organisation: Organisation) -> int:
    """How often GitHub's GraphQL was asked for an answer."""
    organisation.town.github.mark()
    organisation.ask()
    return sum(one.path == "/graphql" for one in organisation.town.github.recent)


def test_what_became_private_leaves_the_comment(organisation: Organisation) -> None:
    number = organisation.ask()
    organisation.town.github.tenants.set_visibility(organisation.sdk, "private")
    organisation.hear()
    assert TITLE not in organisation.text(number)
    assert TITLE not in organisation.text(organisation.ask())


@pytest.mark.parametrize("mode", ["summary", "off", "observed", "invalid"])
def test_what_became_private_leaves_the_comment_in_every_mode(organisation: Organisation, mode: str) -> None:
    number, town = organisation.ask(), organisation.town
    if mode == "observed":
        options = replace(town.dependencies.options, observe=("octo-org/*",))
        town.dependencies = replace(town.dependencies, options=options)
    else:
        text = f"mode: {mode}\n{SHOWING}" if mode != "invalid" else "mode: 5\n"
        town.git.commit("octo-org/app", ".github/precedent.yml", text)
    town.tell(organisation.app, 1)
    town.settle()
    assert TITLE in organisation.text(number)
    town.github.tenants.set_visibility(organisation.sdk, "private")
    town.github.faults.add("PATCH */issues/comments/*", "500", times=None)
    organisation.hear()
    assert TITLE in organisation.text(number), "GitHub failed"
    town.github.faults.clear()
    town.pass_time(60)
    town.settle()
    assert TITLE not in organisation.text(number)
    other = organisation.ask()
    assert organisation.text(other) == ""


@pytest.mark.parametrize("kind", ["permission", "500"])
def test_a_comment_that_cannot_be_changed_keeps_no_other_delivery_waiting(
    organisation: Organisation, kind: str
) -> None:
    town, app = organisation.town, organisation.app
    first, second = organisation.ask(), organisation.ask()
    town.pass_time(300)
    (comment,) = app.comments_by("precedent[bot]", first)
    town.github.faults.add(f"PATCH */issues/comments/{comment.id}", kind)
    organisation.index.found = []
    register = OrganisationRegister(town.here.inbox)
    register.note_changed(town.repository(organisation.sdk), [organisation.solved], gone=[organisation.solved])
    new = app.open_issue("monalisa", "Which session store?", "What did we decide in #1 about sessions?")
    town.hear_of(app, Event("issues", "opened", new))
    town.run(town.repository(app))
    assert "PostgreSQL" in organisation.text(new)
    assert [town.row(app, number).state for number in (second, new)] == ["done", "done"]
    assert [TITLE in organisation.text(number) for number in (first, second)] == [True, False]
    assert town.row(app, first).state == "waiting"
    town.pass_time(3_600)
    town.settle()
    assert TITLE not in organisation.text(first)


def test_a_reply_that_cannot_be_changed_keeps_no_delivery_waiting(organisation: Organisation) -> None:
    town, app = organisation.town, organisation.app
    number = organisation.ask()
    said = app.comment(number, "monalisa", "/precedent search sessions")
    town.hear_of(app, Event("issue_comment", "created", number, comment_id=said, comment_author="monalisa"))
    town.settle()
    *_, reply = app.comments_by("precedent[bot]", number)
    assert "Where should sessions live?" in reply.body
    town.pass_time(300)
    app.edit_issue(1, title="Where do sessions live?")
    town.github.faults.add(f"PATCH */issues/comments/{reply.id}", "500", times=None)
    town.hear_of(app, Event("organisation", number=number))
    town.run(town.repository(app))
    assert [kind for kind, _ in town.github.faults.injected] == ["500"]
    assert town.row(app, number).state == "done"


def test_what_became_private_is_not_shown_before_anybody_heard_of_it(organisation: Organisation) -> None:
    organisation.town.github.tenants.lose = True
    organisation.town.github.tenants.set_visibility(organisation.sdk, "private")
    first = organisation.ask()
    assert organisation.text(first) == "", "not even for a moment: a comment that was withdrawn would stand there"
    known = OrganisationRegister(organisation.town.here.inbox).repositories(organisation.number)
    assert {each.id: each.visibility for each in known}[organisation.sdk.repo.id] == "private", "and it is known now"


def test_an_internal_one_is_shown_only_where_the_public_does_not_read(organisation: Organisation) -> None:
    tenants = organisation.town.github.tenants
    tenants.set_visibility(organisation.sdk, "internal")
    organisation.hear()
    assert TITLE not in organisation.text(organisation.ask())
    tenants.set_visibility(organisation.app, "private")
    organisation.hear()
    number = organisation.ask()
    assert TITLE in organisation.text(number)
    tenants.set_visibility(organisation.app, "public")
    organisation.hear()
    assert TITLE not in organisation.text(number), "everybody reads the app now"


def test_private_ones_are_shown_if_both_name_each_other_and_as_long_as_they_do(organisation: Organisation) -> None:
    town, tenants = organisation.town, organisation.town.github.tenants
    for each in (organisation.app, organisation.sdk):
        tenants.set_visibility(each, "private")
        organisation.hear()
    town.git.commit("octo-org/app", ".github/precedent.yml", SHARING)
    assert TITLE not in organisation.text(organisation.ask()), "only one side agrees"
    town.git.commit("octo-org/sdk", ".github/precedent.yml", SHARING)
    town.tell(organisation.sdk, 1)
    town.settle()
    number = organisation.ask()
    assert TITLE in organisation.text(number)
    town.git.commit("octo-org/sdk", ".github/precedent.yml", None)
    town.tell(organisation.sdk, 1)
    town.settle()
    assert TITLE not in organisation.text(number)


def test_a_deleted_issue_leaves_the_comment_and_is_shown_no_more(organisation: Organisation) -> None:
    number = organisation.ask()
    organisation.sdk.delete_issue(organisation.solved)
    assert TITLE not in organisation.text(organisation.ask())
    sdk = organisation.town.repository(organisation.sdk)
    OrganisationRegister(organisation.town.here.inbox).note_changed(sdk, [organisation.solved])
    organisation.town.settle()
    assert TITLE not in organisation.text(number)


def test_a_repository_that_went_to_another_account_is_shown_no_more_though_it_is_public(
    organisation: Organisation,
) -> None:
    town = organisation.town
    number = organisation.ask()
    town.transfer(organisation.sdk, "hubot")
    assert TITLE not in organisation.text(organisation.ask())
    town.here.arrive(
        replace(town.repository(organisation.app), number=0),
        "installation_repositories",
        "removed",
        removed=str(organisation.sdk.repo.id),
    )
    town.settle()
    assert TITLE not in organisation.text(number)


def test_a_server_with_an_empty_database_checks_what_the_comments_show(organisation: Organisation) -> None:
    """So does one where a repository comes to another installation, or back to a new one."""
    number, town = organisation.ask(), organisation.town
    with town.here.inbox.database.transaction() as losing:
        for table in ("organisation_shown", "repositories"):
            losing.change(f"delete from {table}")
    town.github.tenants.lose = True
    town.github.tenants.set_visibility(organisation.sdk, "private")
    town.tell(organisation.app, 1)
    town.settle()
    assert TITLE not in organisation.text(number)


def test_what_the_sdk_is_asked_to_forget_leaves_the_comment(organisation: Organisation) -> None:
    number, town = organisation.ask(), organisation.town
    organisation.index.found = []
    register = OrganisationRegister(town.here.inbox)
    register.note_changed(town.repository(organisation.sdk), [organisation.solved], gone=[organisation.solved])
    town.settle()
    assert TITLE not in organisation.text(number)


def test_a_title_that_changed_and_a_state_are_as_they_are_now(organisation: Organisation) -> None:
    organisation.sdk.edit_issue(organisation.solved, title="The cookie is lost")
    organisation.sdk.reopen(organisation.solved, "monalisa")
    text = organisation.text(organisation.ask())
    assert "The cookie is lost" in text
    assert "v4.2" not in text, "it is open again"


def test_while_the_index_is_down_answers_go_on_and_what_stands_there_stays(organisation: Organisation) -> None:
    number = organisation.ask()
    organisation.index.fault = OrganisationUnavailable("down")
    other = organisation.app.open_issue("monalisa", "Sessions", "What did we decide in #1 about sessions?")
    organisation.town.tell(organisation.app, other)
    organisation.town.settle()
    assert "PostgreSQL" in organisation.text(other)
    sdk = organisation.town.repository(organisation.sdk)
    OrganisationRegister(organisation.town.here.inbox).note_changed(sdk, [organisation.solved])
    organisation.town.settle()
    assert TITLE in organisation.text(number)
