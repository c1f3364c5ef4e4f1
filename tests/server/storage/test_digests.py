"""The digests that a server stores: numbers only, made once a week in a scheduled run, and their page."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.kinds import Kind
from bot.github.events import Event
from bot.questions.digest import DECIDED, MaintainerReport
from bot.server.model import DAY, RepositoryKey
from bot.server.pages.status_page import server_digest_page, status_page
from bot.server.storage.installations import DIGEST_INTERVAL, Digests, SectionNumbers, StoredDigest
from tests.questions.digest_samples import SINCE, create_memory, report
from tests.server.client import request_once
from tests.server.harness import ServerHarness
from tests.server.pages.test_status_page import WELL, links, text_of
from tests.server.sample_inbox import NOW, SampleInbox, sample_inbox

KEY = RepositoryKey(1, 17)
HOME = "https://github.com/octo-org/compass"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> MaintainerReport:
    return report(create_memory(tmp_path_factory.mktemp("digest") / "store"))


def store_digest(inbox: SampleInbox, maintainer_report: MaintainerReport) -> Digests:
    digests = inbox.digests
    digests.store(KEY, maintainer_report)
    return digests


def stored_text(inbox: SampleInbox) -> str:
    row = inbox.database.row("select told from digests where repository = :key", key=KEY.text)
    assert row is not None
    return str(row["told"])


def test_only_numbers_and_our_own_titles_are_stored(sample: MaintainerReport) -> None:
    inbox = SampleInbox()
    digest = store_digest(inbox, sample).get(KEY)
    assert digest is not None
    assert (digest.made_at, digest.since) == (NOW, round(1000 * SINCE.timestamp()))
    assert digest.sections[:2] == (
        SectionNumbers("Possibly back", 1, ((90, Kind.ISSUE),)),
        SectionNumbers("Many reports of one thing", 2, ((60, Kind.ISSUE), (40, Kind.ISSUE))),
    )
    texts = [item.card.title for section in sample.sections for item in section.items]
    texts += [item.quote.text for section in sample.sections for item in section.items if item.quote]
    assert not [text for text in texts if text in stored_text(inbox)]


def test_two_items_of_one_thread_are_both_shown(sample: MaintainerReport) -> None:
    decided = next(section for section in sample.sections if section.name == DECIDED)
    discussion = decided.items[0]._replace(card=decided.items[0].card._replace(kind=Kind.DISCUSSION))
    section_with_both = decided._replace(items=(discussion, discussion), total=2)
    digest = store_digest(SampleInbox(), sample._replace(sections=(section_with_both,))).get(KEY)
    assert digest
    text = server_digest_page(digest, "octo-org/compass", HOME, NOW)
    assert links(text)[1:] == [f"{HOME}/discussions/75"] * 2
    assert "more" not in text_of(text)


def test_a_later_digest_replaces_the_first_and_old_ones_are_purged(sample: MaintainerReport) -> None:
    inbox = SampleInbox()
    digests = store_digest(inbox, sample)
    assert not digests.is_due(KEY)
    inbox.time += DIGEST_INTERVAL
    assert digests.is_due(KEY)
    assert digests.is_due(RepositoryKey(1, 18))
    store_digest(inbox, sample._replace(sections=sample.sections[:1]))
    digest = digests.get(KEY)
    assert digest
    assert (digest.made_at, len(digest.sections)) == (NOW + DIGEST_INTERVAL, 1)
    inbox.purge(NOW + DIGEST_INTERVAL)
    assert digests.repositories() == {KEY.text}
    inbox.purge(NOW + DIGEST_INTERVAL + 1)
    assert digests.repositories() == frozenset()


def test_the_page_shows_counts_and_links() -> None:
    sections = (
        SectionNumbers("Possibly back", 4, ((90, Kind.ISSUE), (91, Kind.DISCUSSION), (92, Kind.PULL))),
        SectionNumbers("Decided since", 0),
    )
    page = server_digest_page(StoredDigest(NOW - DAY, NOW - 31 * DAY, sections), "octo-org/compass", HOME, NOW)
    text = text_of(page)
    assert "Digest of octo-org/compass 4 things to look at, from " in text
    assert "Possibly back: 4 #90 , #91 , #92 and 1 more" in text
    assert "Decided since" not in text
    assert links(page)[1:] == [f"{HOME}/issues/90", f"{HOME}/discussions/91", f"{HOME}/pull/92"]


@given(st.text(max_size=50))
def test_hostile_names_are_escaped(name: str) -> None:
    page = server_digest_page(StoredDigest(NOW, NOW, ()), f"<script>{name}", "", NOW)
    assert "<script" not in page


def test_a_repository_without_a_digest_says_so_and_shows_the_command_for_the_full_one() -> None:
    page = server_digest_page(None, "octo-org/compass", HOME, NOW)
    assert "None was made yet." in text_of(page)
    assert "<code>precedent digest --repo octo-org/compass</code>" in page


def test_the_status_page_links_to_existing_digests_only(sample: MaintainerReport) -> None:
    inbox = sample_inbox()
    assert "/digests/" not in status_page(inbox, WELL, NOW)
    store_digest(inbox, sample)
    assert [link for link in links(status_page(inbox, WELL, NOW)) if "digest" in link] == [f"/digests/{KEY.text}"]


@pytest.mark.slow
def test_the_page_requires_a_password_and_is_404_for_unknown_repositories(web_server: tuple[int, int]) -> None:
    port = web_server[0]
    assert asyncio.run(request_once(port, "GET", "/digests/1-17", {"host": "localhost"})).status == 401
    for path in ("/digests/1-17", "/digests/x", "/digests/%2e%2e", "/digests/1-17/more"):
        assert asyncio.run(request_once(port, "GET", path)).status == 404


# -- when they are made ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_daily_check_makes_one_digest_a_week_and_an_issue_makes_none(harness: ServerHarness) -> None:
    project = harness.project("octo-org/app", "PostgreSQL")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    harness.ask(project)
    harness.settle()
    key, digests = harness.repository(project), harness.env.inbox.digests
    assert digests.get(key) is None
    harness.deliver_events(project, Event("schedule"))
    harness.settle()
    first = digests.get(key)
    assert first
    assert [section.title for section in first.sections][3] == "Decided since"
    assert "digest" in [name for run in harness.runs(key) for name, _ in run.stages]
    harness.pass_time(24 * 3600)
    harness.deliver_events(project, Event("schedule"))
    harness.settle()
    assert digests.get(key) == first
    harness.pass_time(7 * 24 * 3600)
    harness.deliver_events(project, Event("schedule"))
    harness.settle()
    second = digests.get(key)
    assert second
    assert second.made_at > first.made_at
    scheduled = [row for row in harness.env.rows(key) if row.event.name == "schedule"]
    assert {row.state for row in scheduled} == {"done"}
