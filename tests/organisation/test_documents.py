"""Documents of an organisation's index: what memory knows, bounded, and nothing that must not be shown elsewhere."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.changes import Changes, FixInfo
from bot.domain.thread import Kind, OutcomeKind, Record, Thread, Tombstone
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.organisation.documents import MAX_TERMS, MemorySource, all_threads, changed_threads
from bot.reading.analyzer import terms
from bot.recall.elsewhere import TITLE_REPEATS
from tests.recall.samples import at, closed, said, thread

SOURCE = MemorySource(7, "octo-org/sdk", 1_000)
TITLE = "Login loops after the upgrade"
BODY = "The cookie is refused: SessionError: path mismatch in auth/cookie.py, see `refresh_session`."
FIXED = closed(3, TITLE, BODY, comments=(said("Fixed in #9.", 3.4, "hubot", "MEMBER"),))

Remembered = Callable[..., Memory]


@pytest.fixture
def remembered(tmp_path: Path) -> Iterator[Remembered]:
    """A memory of these records and fixes, written and opened again."""
    memory = Memory(FolderStore(tmp_path / "store"))

    def put(*records: Record, fixes: tuple[FixInfo, ...] = (), unseen: tuple[Record, ...] = ()) -> Memory:
        memory.open()
        memory.stage(Changes(records=records, fixes=fixes))
        memory.stage(Changes(unseen=unseen))
        memory.commit("Remember")
        return memory.open()

    yield put
    memory.close()


def test_a_document_has_what_a_search_and_a_comment_need(remembered: Remembered) -> None:
    (one,) = all_threads(remembered(FIXED), SOURCE)
    assert (one.repository, one.id, one.name, one.revision) == (7, 3, "octo-org/sdk", 1_000)
    assert (one.title, one.author, one.closed_at) == (TITLE, "monalisa", FIXED.closed_at)
    assert one.url == "https://github.com/octo-org/sdk/issues/3"
    assert one.files == ("auth/cookie.py",)
    assert "refresh_session" in one.names
    assert any("path mismatch" in error for error in one.errors)
    assert one.terms.count(terms("loops")[0]) == TITLE_REPEATS
    assert terms("cookie")[0] in one.terms


def test_an_ending_is_told_as_far_as_it_is_proven(remembered: Remembered) -> None:
    fix = FixInfo(3, "#9", at(5), is_pull=True, commit="a" * 40, merged_at=at(4), release="v4.2", released_at=at(5))
    (known,) = all_threads(remembered(FIXED, fixes=(fix,)), SOURCE)
    assert (known.outcome.kind, known.outcome.fix, known.outcome.release) == (OutcomeKind.FIXED, "#9", "v4.2")
    (refuted,) = all_threads(remembered(fixes=(replace(fix, refuted=True, looked_at=at(6)),)), SOURCE)
    assert refuted.outcome.kind is not OutcomeKind.FIXED
    assert refuted.outcome.release is None


def test_a_discussion_is_one_and_pull_requests_and_pages_are_none(remembered: Remembered) -> None:
    talk = thread(4, "How do I log in?", kind=Kind.DISCUSSION, role="MEMBER")
    pull = thread(5, TITLE, BODY, kind=Kind.PULL, role="MEMBER")
    page = thread("wiki:Home", "Home", kind=Kind.PAGE)
    found = list(all_threads(remembered(talk, pull, page), SOURCE))
    assert [one.id for one in found] == [4]
    assert found[0].url.endswith("/discussions/4")


def test_what_is_gone_or_not_shown_is_written_as_gone_without_a_text(remembered: Remembered) -> None:
    memory = remembered(FIXED, Tombstone(8, at(9)), unseen=(FIXED,))
    found = {one.id: one for one in changed_threads([3, 8, 99], memory, SOURCE)}
    assert set(found) == {3, 8, 99}
    assert all(one.is_gone and not (one.title or one.terms or one.author or one.url) for one in found.values())
    assert [one.id for one in all_threads(memory, SOURCE)] == [8]


def test_the_words_of_people_who_are_not_quoted_are_left_out(remembered: Remembered) -> None:
    source = replace(SOURCE, people=("MonaLisa", "hubot"))
    (one,) = all_threads(remembered(FIXED), source)
    assert terms("cookie")[0] not in one.terms
    assert (one.errors, one.files, one.names, one.outcome.quote) == ((), (), (), "")
    assert one.title == TITLE


def test_an_issue_that_nobody_stands_behind_but_an_unknown_author_is_not_told_elsewhere(remembered: Remembered) -> None:
    lone = closed(5, TITLE, BODY, author="mona", closed_by="mona", role="NONE")
    answered = thread(6, TITLE, BODY, author="mona", comments=(said("Same here.", 7),))
    known = thread(7, TITLE, BODY, author="octocat", role="CONTRIBUTOR")
    found = {one.id: one.is_gone for one in all_threads(remembered(lone, answered, known), SOURCE)}
    assert found == {5: True, 6: False, 7: False}


@pytest.mark.parametrize("body", ["word " * 50_000, " ".join(f"w{n}" for n in range(20_000))])
def test_a_long_text_is_bounded(remembered: Remembered, body: str) -> None:
    one = next(all_threads(remembered(replace(FIXED, body=body)), SOURCE))
    assert len(set(one.terms)) <= MAX_TERMS + len(set(terms(TITLE)))
    assert len(one.terms) <= 5 * MAX_TERMS + TITLE_REPEATS * len(terms(TITLE))


def test_many_threads_come_in_batches_and_each_once(remembered: Remembered) -> None:
    some: list[Thread] = [thread(n, f"Thing {n} is odd", role="MEMBER") for n in range(1, 450)]
    memory = remembered(*some)
    assert [one.id for one in all_threads(memory, SOURCE)] == [one.id for one in some]
    assert len({one.id for one in changed_threads(range(1, 450), memory, SOURCE)}) == len(some)
