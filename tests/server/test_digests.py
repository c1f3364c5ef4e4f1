"""The digests that a server keeps: numbers only, made once a week in a run that nobody waits for, and their page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.kinds import Kind
from bot.github.events import Event
from bot.questions.digest import DECIDED, MaintainerReport
from bot.server.digests import OFTEN, Digests, SectionNumbers, StoredDigest
from bot.server.model import DAY, RepositoryKey
from bot.server.status_page import server_digest_page, status_page
from tests.questions.digest_samples import SINCE, remembering, report
from tests.server.client import knowing, once
from tests.server.doorway import running
from tests.server.gallery import NOW, Days, a_day
from tests.server.test_status_page import WELL, links, text_of
from tests.server.town import Town

KEY = RepositoryKey(1, 17)
HOME = "https://github.com/octo-org/compass"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> MaintainerReport:
    return report(remembering(tmp_path_factory.mktemp("digest") / "store"))


def kept(ledger: Days, found: MaintainerReport) -> Digests:
    digests = ledger.digests()
    digests.store(KEY, found)
    return digests


def raw(ledger: Days) -> str:
    with ledger.database.transaction() as asking:
        row = asking.row("select told from digests where repository = :key", key=KEY.text)
    assert row is not None
    return str(row["told"])


def test_only_numbers_and_our_own_titles_are_stored(sample: MaintainerReport) -> None:
    ledger = Days()
    found = kept(ledger, sample).get(KEY)
    assert found is not None
    assert (found.made_at, found.since) == (NOW, round(1000 * SINCE.timestamp()))
    assert found.sections[:2] == (
        SectionNumbers("Possibly back", 1, ((90, Kind.ISSUE),)),
        SectionNumbers("Many reports of one thing", 2, ((60, Kind.ISSUE), (40, Kind.ISSUE))),
    )
    texts = [item.card.title for one in sample.sections for item in one.items]
    texts += [item.quote.text for one in sample.sections for item in one.items if item.quote]
    assert not [text for text in texts if text in raw(ledger)]


def test_two_items_of_one_thread_are_both_there(sample: MaintainerReport) -> None:
    decided = next(one for one in sample.sections if one.name == DECIDED)
    discussion = decided.items[0]._replace(card=decided.items[0].card._replace(kind=Kind.DISCUSSION))
    twice = decided._replace(items=(discussion, discussion), total=2)
    found = kept(Days(), sample._replace(sections=(twice,))).get(KEY)
    assert found
    text = server_digest_page(found, "octo-org/compass", HOME, NOW)
    assert links(text)[1:] == [f"{HOME}/discussions/75"] * 2
    assert "more" not in text_of(text)


def test_a_later_digest_replaces_the_first_and_old_ones_are_purged(sample: MaintainerReport) -> None:
    ledger = Days()
    digests = kept(ledger, sample)
    assert not digests.is_due(KEY)
    ledger.time += OFTEN
    assert digests.is_due(KEY)
    assert digests.is_due(RepositoryKey(1, 18))
    kept(ledger, sample._replace(sections=sample.sections[:1]))
    found = digests.get(KEY)
    assert found
    assert (found.made_at, len(found.sections)) == (NOW + OFTEN, 1)
    ledger.purge(NOW + OFTEN)
    assert digests.repositories() == {KEY.text}
    ledger.purge(NOW + OFTEN + 1)
    assert digests.repositories() == frozenset()


@pytest.mark.parametrize(
    "damaged",
    [
        *("", "[]", "{", '{"since": 1}', '{"since": true, "sections": []}', "[" * 100_000),
        *(
            f'{{"since": 1, "sections": [{one}]}}'
            for one in ('["x", "1", []]', '["x", 1, 7]', '["x", 1, [7]]', '["x", 1, [[7, "door"]]]', "[1]", "7")
        ),
    ],
)
def test_a_damaged_row_is_none(sample: MaintainerReport, damaged: str) -> None:
    ledger = Days()
    digests = kept(ledger, sample)
    with ledger.database.transaction() as changing:
        changing.change("update digests set told = :told", told=damaged)
    assert digests.get(KEY) is None
    assert digests.is_due(KEY)


def test_the_page_has_counts_and_links() -> None:
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
def test_names_are_text_whatever_is_in_them(name: str) -> None:
    page = server_digest_page(StoredDigest(NOW, NOW, ()), f"<script>{name}", "", NOW)
    assert "<script" not in page


def test_a_repository_without_a_digest_says_so() -> None:
    assert "None was made yet." in text_of(server_digest_page(None, "octo-org/compass", HOME, NOW))


def test_the_status_page_links_to_the_digests_that_there_are(sample: MaintainerReport) -> None:
    ledger = a_day()
    assert "/digests/" not in status_page(ledger, WELL, NOW)
    kept(ledger, sample)
    assert [link for link in links(status_page(ledger, WELL, NOW)) if "digest" in link] == [f"/digests/{KEY.text}"]


@pytest.fixture
def door(tmp_path: Path) -> Iterator[int]:
    with running(tmp_path) as (port, _):
        yield port


@pytest.mark.slow
def test_the_page_asks_for_a_password_and_knows_no_other_repository(door: int) -> None:
    def asked(path: str, **headers: str) -> tuple[int, str]:
        found = asyncio.run(once(door, "GET", path, headers))
        return found.status, found.body.decode()

    assert asked("/digests/1-17", host="localhost")[0] == 401
    for path in ("/digests/1-17", "/digests/x", "/digests/%2e%2e", "/digests/1-17/more"):
        assert asked(path, **knowing())[0] == 404


# -- when one is made ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_daily_look_makes_one_a_week_and_an_issue_makes_none(town: Town) -> None:
    project = town.project("octo-org/app", "PostgreSQL")
    town.github.tenants.install("octo-org", ["octo-org/app"])
    town.ask(project)
    town.settle()
    key, digests = town.repository(project), town.here.inbox.digests()
    assert digests.get(key) is None
    town.hear_of(project, Event("schedule"))
    town.settle()
    first = digests.get(key)
    assert first
    assert [one.title for one in first.sections][3] == "Decided since"
    assert "digest" in [name for run in town.done(key) for name, _ in run.stages]
    town.pass_time(24 * 3600)
    town.hear_of(project, Event("schedule"))
    town.settle()
    assert digests.get(key) == first
    town.pass_time(7 * 24 * 3600)
    town.hear_of(project, Event("schedule"))
    town.settle()
    second = digests.get(key)
    assert second
    assert second.made_at > first.made_at
    told = [row for row in town.here.rows(key) if row.event.name == "schedule"]
    assert {row.state for row in told} == {"done"}


def test_the_page_says_what_to_run_for_the_rest() -> None:
    page = server_digest_page(None, "octo-org/compass", HOME, NOW)
    assert re.search(r"<code>precedent digest --repo octo-org/compass</code>", page)
