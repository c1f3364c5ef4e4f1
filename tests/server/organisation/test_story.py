"""Three repositories of an organisation: one shows what another has solved, as long as that is permitted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from bot.domain.answer import Context, Match, OrganisationMatch
from bot.domain.post import OrganisationKey
from bot.domain.thread import Outcome, OutcomeKind, Thread
from bot.domain.thread_json import parse_time
from bot.github.events import Event
from bot.recall.candidates import OrganisationUnavailable
from bot.server.organisation.register import OrganisationRegister
from bot.settings.schema import Settings
from tests.fakes.payloads import EventfulProject
from tests.fakes.state import from_epoch
from tests.server.harness import ServerHarness

pytestmark = pytest.mark.slow

TITLE = "The cookie is never sent"
SHARING = "organisation:\n  results: 2\n  share_with: ['octo-org/*']\n"
SHOWING = "organisation:\n  results: 2\n"


@dataclass
class Index:
    """An index that finds the same issue for every question, even if it is gone; down with a ``fault``."""

    matches: list[OrganisationMatch] = field(default_factory=list)
    fault: OrganisationUnavailable | None = None

    def __call__(
        self, thread: Thread, context: Context, scope: Collection[int], kept: Collection[OrganisationKey], _: Settings
    ) -> Sequence[OrganisationMatch]:
        if self.fault:
            raise self.fault
        return self.matches


class Organisation:
    """The repositories app, sdk and plugin on a server; an issue of the sdk tells how it was solved."""

    def __init__(self, harness: ServerHarness) -> None:
        self.harness, self.index = harness, Index()
        harness.dependencies = replace(harness.dependencies, ranking=lambda _: self.index)
        self.app, self.sdk, self.plugin = (
            harness.project(f"octo-org/{name}", "PostgreSQL", private=False) for name in ("app", "sdk", "plugin")
        )
        self.number = harness.github.tenants.install("octo-org", ["octo-org/app", "octo-org/sdk", "octo-org/plugin"])
        harness.git.commit("octo-org/app", ".github/precedent.yml", SHOWING)
        ago = from_epoch(harness.github.clock.epoch - 90 * 24 * 3600)
        self.solved = self.sdk.open_issue("monalisa", TITLE, "Zyx wvu tsr.", at=ago)
        self.sdk.comment(self.solved, "octo-org", "Fixed in v4.2 by setting SameSite on the cookie.", at=ago)
        self.sdk.close(self.solved, "octo-org", at=ago)
        closed_at = self.sdk.issue(self.solved).closed_at
        assert closed_at is not None
        at = parse_time(closed_at)
        outcome = Outcome(OutcomeKind.FIXED, quote="Forged.", at=at, author="octo-org", fix="#57", release="v6.6")
        match = Match(self.solved, TITLE, 0.9, "closed", at, closed_at=at, outcome=outcome, why=("same text",))
        self.key = OrganisationKey(self.sdk.repo.id, self.solved)
        self.match = OrganisationMatch(self.key, "octo-org/sdk", match)
        self.index.matches = [self.match]
        for each in (self.app, self.sdk, self.plugin):  # each is known from its first run on
            self.harness.deliver_opened(each, 1)
        self.harness.settle()
        self.harness.save()

    def restore(self) -> None:
        """Return to the state after the first runs."""
        self.harness.restore()
        self.index = Index([self.match])
        self.app, self.sdk, self.plugin = (self.harness.known(f"octo-org/{name}") for name in ("app", "sdk", "plugin"))

    def ask(self, project: EventfulProject | None = None, seconds_ago: int = 0) -> int:
        """Open an issue in the app and have it answered; return its number."""
        asked_project, at = project or self.app, from_epoch(self.harness.github.clock.epoch - seconds_ago)
        number = asked_project.open_issue("monalisa", "Logged out at once", "Qpo nml kji, since Monday.", at=at)
        self.harness.deliver_opened(asked_project, number)
        self.harness.settle()
        return number

    def deliver_events(self) -> None:
        """Deliver the latest events of GitHub and do all work that follows."""
        self.harness.deliver_last()
        self.harness.settle()

    def text(self, number: int, project: EventfulProject | None = None) -> str:
        return "\n".join(self.harness.comments(project or self.app, number))

    def shown(self) -> list[tuple[str, int]]:
        rows = self.harness.env.inbox.database.rows("select * from organisation_shown")
        return [(row["thread"], row["other_repository"]) for row in rows]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    new_organisation = Organisation(ServerHarness(tmp_path_factory.mktemp("server")))
    yield new_organisation
    new_organisation.harness.close()


@pytest.fixture
def organisation(saved: Organisation) -> Iterator[Organisation]:
    saved.restore()
    yield saved
    assert saved.harness.github.violations == []
    assert saved.harness.token_misuses() == [], "a token was used elsewhere than in its repository"


def test_a_solution_in_the_sdk_is_shown_in_the_app(organisation: Organisation) -> None:
    number = organisation.ask()
    text = organisation.text(number)
    assert TITLE in text
    assert "octo-org/sdk" in text
    assert "v4.2" in text
    assert "v6.6" not in text, "it is what GitHub says that is shown, not what the index says"
    assert "#57" not in text
    assert organisation.shown() == [(str(number), organisation.sdk.repo.id)]


def test_an_answer_queries_github_at_most_four_times_more(organisation: Organisation) -> None:
    (first,), organisation.index.matches = organisation.index.matches, []
    organisation.ask(seconds_ago=60)  # what is opened within one second does not count as older
    match, queries_before = first.match, count_queries(organisation)
    organisation.index.matches = [
        replace(first, key=OrganisationKey(project.repo.id, number), match=replace(match, id=number))
        for project in (organisation.plugin, organisation.sdk)
        for number in (97, 98, 99)
    ]
    assert queries_before == 1
    assert count_queries(organisation) == 1 + 4


def count_queries(organisation: Organisation) -> int:
    """Count the GraphQL queries of one answer."""
    organisation.harness.github.mark()
    organisation.ask()
    return sum(request.path == "/graphql" for request in organisation.harness.github.recent)


def test_a_thread_that_becomes_private_leaves_the_comment(organisation: Organisation) -> None:
    number = organisation.ask()
    organisation.harness.github.tenants.set_visibility(organisation.sdk, "private")
    organisation.deliver_events()
    assert TITLE not in organisation.text(number)
    assert TITLE not in organisation.text(organisation.ask())


@pytest.mark.night
@pytest.mark.parametrize("mode", ["summary", "off", "observed", "invalid"])
def test_a_thread_that_becomes_private_leaves_the_comment_in_every_mode(organisation: Organisation, mode: str) -> None:
    number, harness = organisation.ask(), organisation.harness
    if mode == "observed":
        options = replace(harness.dependencies.options, observe=("octo-org/*",))
        harness.dependencies = replace(harness.dependencies, options=options)
    else:
        text = f"mode: {mode}\n{SHOWING}" if mode != "invalid" else "mode: 5\n"
        harness.git.commit("octo-org/app", ".github/precedent.yml", text)
    harness.deliver_opened(organisation.app, 1)
    harness.settle()
    assert TITLE in organisation.text(number)
    harness.github.tenants.set_visibility(organisation.sdk, "private")
    harness.github.faults.add("PATCH */issues/comments/*", "500", times=None)
    organisation.deliver_events()
    assert TITLE in organisation.text(number), "GitHub failed"
    harness.github.faults.clear()
    harness.pass_time(60)
    harness.settle()
    assert TITLE not in organisation.text(number)
    other = organisation.ask()
    assert organisation.text(other) == ""


@pytest.mark.parametrize("kind", ["permission", "500"])
def test_a_comment_that_cannot_be_edited_does_not_hold_up_other_deliveries(
    organisation: Organisation, kind: str
) -> None:
    harness, app = organisation.harness, organisation.app
    first, second = organisation.ask(), organisation.ask()
    harness.pass_time(300)
    (comment,) = app.comments_by("precedent[bot]", first)
    harness.github.faults.add(f"PATCH */issues/comments/{comment.id}", kind)
    organisation.index.matches = []
    register = OrganisationRegister(harness.env.inbox)
    register.note_changed(harness.repository(organisation.sdk), [organisation.solved], gone=[organisation.solved])
    new = app.open_issue("monalisa", "Which session store?", "What did we decide in #1 about sessions?")
    harness.deliver_events(app, Event("issues", "opened", new))
    harness.run(harness.repository(app))
    assert "PostgreSQL" in organisation.text(new)
    assert [harness.row(app, number).state for number in (second, new)] == ["done", "done"]
    assert [TITLE in organisation.text(number) for number in (first, second)] == [True, False]
    assert harness.row(app, first).state == "waiting"
    harness.pass_time(3_600)
    harness.settle()
    assert TITLE not in organisation.text(first)


def test_a_reply_that_cannot_be_edited_does_not_hold_up_deliveries(organisation: Organisation) -> None:
    harness, app = organisation.harness, organisation.app
    number = organisation.ask()
    comment_id = app.comment(number, "monalisa", "/precedent search sessions")
    harness.deliver_events(
        app, Event("issue_comment", "created", number, comment_id=comment_id, comment_author="monalisa")
    )
    harness.settle()
    *_, reply = app.comments_by("precedent[bot]", number)
    assert "Where should sessions live?" in reply.body
    harness.pass_time(300)
    app.edit_issue(1, title="Where do sessions live?")
    harness.github.faults.add(f"PATCH */issues/comments/{reply.id}", "500", times=None)
    harness.deliver_events(app, Event("organisation", number=number))
    harness.run(harness.repository(app))
    assert [kind for kind, _ in harness.github.faults.injected] == ["500"]
    assert harness.row(app, number).state == "done"


def test_a_private_thread_is_not_shown_even_if_its_event_was_lost(organisation: Organisation) -> None:
    organisation.harness.github.tenants.lose = True
    organisation.harness.github.tenants.set_visibility(organisation.sdk, "private")
    first = organisation.ask()
    assert organisation.text(first) == "", "not even for a moment: a comment that was withdrawn would stand there"
    repositories = OrganisationRegister(organisation.harness.env.inbox).repositories(organisation.number)
    assert {each.id: each.visibility for each in repositories}[organisation.sdk.repo.id] == "private", (
        "and it is known now"
    )


def test_an_internal_thread_is_shown_only_where_the_public_cannot_read(organisation: Organisation) -> None:
    tenants = organisation.harness.github.tenants
    tenants.set_visibility(organisation.sdk, "internal")
    organisation.deliver_events()
    assert TITLE not in organisation.text(organisation.ask())
    tenants.set_visibility(organisation.app, "private")
    organisation.deliver_events()
    number = organisation.ask()
    assert TITLE in organisation.text(number)
    tenants.set_visibility(organisation.app, "public")
    organisation.deliver_events()
    assert TITLE not in organisation.text(number), "everybody reads the app now"


def test_private_threads_are_shown_while_both_repositories_share_with_each_other(organisation: Organisation) -> None:
    harness, tenants = organisation.harness, organisation.harness.github.tenants
    for each in (organisation.app, organisation.sdk):
        tenants.set_visibility(each, "private")
        organisation.deliver_events()
    harness.git.commit("octo-org/app", ".github/precedent.yml", SHARING)
    assert TITLE not in organisation.text(organisation.ask()), "only one side agrees"
    harness.git.commit("octo-org/sdk", ".github/precedent.yml", SHARING)
    harness.deliver_opened(organisation.sdk, 1)
    harness.settle()
    number = organisation.ask()
    assert TITLE in organisation.text(number)
    harness.git.commit("octo-org/sdk", ".github/precedent.yml", None)
    harness.deliver_opened(organisation.sdk, 1)
    harness.settle()
    assert TITLE not in organisation.text(number)


BROKEN_SETTINGS: dict[str, str | bytes] = {
    "oversized": SHARING + "#" * 65_536,
    "not YAML": SHARING + "mode: [comment\n",
    "not UTF-8": SHARING.encode() + b"# \xff\n",
    "a misspelt name": SHARING.replace("share_with", "share_wth"),
    "a wrong value elsewhere": SHARING + "mode: 5\n",
    "a symlink": "other.yml",
    "a template that is a symlink": "other.md.j2",
}


def break_settings(organisation: Organisation, name: str, fault: str) -> None:
    """Commit settings with this fault to a repository, and let it run."""
    harness, mode = organisation.harness, "120000" if "symlink" in fault else "100644"
    path = ".github/precedent/base.md.j2" if "template" in fault else ".github/precedent.yml"
    harness.git.commit(name, path, BROKEN_SETTINGS[fault], mode=mode)
    harness.deliver_opened(harness.known(name), 1)
    harness.settle()


@pytest.mark.parametrize("fault", BROKEN_SETTINGS)
@pytest.mark.parametrize("broken", ["octo-org/app", "octo-org/sdk"])
def test_settings_that_cannot_be_read_share_nothing_private(
    organisation: Organisation, broken: str, fault: str
) -> None:
    harness = organisation.harness
    for each in (organisation.app, organisation.sdk):
        harness.github.tenants.set_visibility(each, "private")
        organisation.deliver_events()
        harness.git.commit(each.repo.full_name, ".github/precedent.yml", SHARING)
    harness.deliver_opened(organisation.sdk, 1)
    harness.settle()
    number = organisation.ask()
    assert TITLE in organisation.text(number)
    break_settings(organisation, broken, fault)
    repositories = OrganisationRegister(harness.env.inbox).repositories(organisation.number)
    assert {each.name: each.shares for each in repositories}[broken] == ()
    if "template" not in fault or "app" not in broken:  # no run of the app comes as far as its comments
        assert TITLE not in organisation.text(number)


def test_a_deleted_issue_leaves_the_comment_and_is_not_shown_again(organisation: Organisation) -> None:
    number = organisation.ask()
    organisation.sdk.delete_issue(organisation.solved)
    assert TITLE not in organisation.text(organisation.ask())
    sdk = organisation.harness.repository(organisation.sdk)
    OrganisationRegister(organisation.harness.env.inbox).note_changed(sdk, [organisation.solved])
    organisation.harness.settle()
    assert TITLE not in organisation.text(number)


def test_a_repository_transferred_to_another_account_is_not_shown_even_if_public(
    organisation: Organisation,
) -> None:
    harness = organisation.harness
    number = organisation.ask()
    harness.transfer(organisation.sdk, "hubot")
    assert TITLE not in organisation.text(organisation.ask())
    harness.env.arrive(
        replace(harness.repository(organisation.app), number=0),
        "installation_repositories",
        "removed",
        removed=str(organisation.sdk.repo.id),
    )
    harness.settle()
    assert TITLE not in organisation.text(number)


def test_a_server_with_an_empty_database_checks_what_the_comments_show(organisation: Organisation) -> None:
    """As happens when a repository moves to another installation, or returns to a new one."""
    number, harness = organisation.ask(), organisation.harness
    with harness.env.inbox.database.transaction() as losing:
        for table in ("organisation_shown", "repositories"):
            losing.change(f"delete from {table}")
    harness.github.tenants.lose = True
    harness.github.tenants.set_visibility(organisation.sdk, "private")
    harness.deliver_opened(organisation.app, 1)
    harness.settle()
    assert TITLE not in organisation.text(number)


def test_a_forgotten_thread_leaves_the_comment(organisation: Organisation) -> None:
    number, harness = organisation.ask(), organisation.harness
    organisation.index.matches = []
    register = OrganisationRegister(harness.env.inbox)
    register.note_changed(harness.repository(organisation.sdk), [organisation.solved], gone=[organisation.solved])
    harness.settle()
    assert TITLE not in organisation.text(number)


def test_the_current_title_and_state_are_shown(organisation: Organisation) -> None:
    organisation.sdk.edit_issue(organisation.solved, title="The cookie is lost")
    organisation.sdk.reopen(organisation.solved, "monalisa")
    text = organisation.text(organisation.ask())
    assert "The cookie is lost" in text
    assert "v4.2" not in text, "it is open again"


def test_while_the_index_is_down_answers_continue_and_shown_threads_remain(organisation: Organisation) -> None:
    number = organisation.ask()
    organisation.index.fault = OrganisationUnavailable("down")
    other = organisation.app.open_issue("monalisa", "Sessions", "What did we decide in #1 about sessions?")
    organisation.harness.deliver_opened(organisation.app, other)
    organisation.harness.settle()
    assert "PostgreSQL" in organisation.text(other)
    sdk = organisation.harness.repository(organisation.sdk)
    OrganisationRegister(organisation.harness.env.inbox).note_changed(sdk, [organisation.solved])
    organisation.harness.settle()
    assert TITLE in organisation.text(number)
