"""Documents of an organisation's index: what memory knows, bounded, and only what may be shown elsewhere."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.domain.changes import Changes, FixInfo
from bot.domain.hidden_people import HiddenPeople
from bot.domain.thread import Kind, OutcomeKind, Record, Thread, Tombstone
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.organisation.documents import BATCH_SIZE, MAX_BODY_TERMS, MemorySource, all_threads, changed_threads
from bot.reading.analyzer import terms
from bot.recall.other_repositories import TITLE_REPEATS
from tests.recall.samples import at, closed, message, thread

SOURCE = MemorySource(7, "octo-org/sdk", 1_000)
TITLE = "Login loops after the upgrade"
BODY = "The cookie is refused: SessionError: path mismatch in auth/cookie.py, see `refresh_session`."
FIXED = closed(3, TITLE, BODY, comments=(message("Fixed in #9.", 3.4, "hubot", "MEMBER"),))

StoreRecords = Callable[..., Memory]


@pytest.fixture
def store_records(tmp_path: Path) -> Iterator[StoreRecords]:
    """Return a function that stores records and fixes, and opens their memory again."""
    memory = Memory(FolderStore(tmp_path / "store"))

    def put(*records: Record, fixes: tuple[FixInfo, ...] = (), hidden_by_github: tuple[Record, ...] = ()) -> Memory:
        memory.open()
        memory.stage(Changes(records=records, fixes=fixes))
        memory.stage(Changes(hidden_by_github=hidden_by_github))
        memory.commit("Remember")
        return memory.open()

    yield put
    memory.close()


def test_a_document_has_what_a_search_and_a_comment_need(store_records: StoreRecords) -> None:
    (document,) = all_threads(store_records(FIXED), SOURCE)
    assert (document.repository, document.id, document.name, document.revision) == (7, 3, "octo-org/sdk", 1_000)
    assert (document.title, document.author, document.closed_at) == (TITLE, "monalisa", FIXED.closed_at)
    assert document.url == "https://github.com/octo-org/sdk/issues/3"
    assert document.files == ("auth/cookie.py",)
    assert "refresh_session" in document.names
    assert any("path mismatch" in error for error in document.errors)
    assert document.terms.count(terms("loops")[0]) == TITLE_REPEATS
    assert terms("cookie")[0] in document.terms


def test_a_document_shows_an_ending_only_as_far_as_it_is_proven(store_records: StoreRecords) -> None:
    fix = FixInfo(3, "#9", at(5), is_pull=True, commit="a" * 40, merged_at=at(4), release="v4.2", released_at=at(5))
    (fixed,) = all_threads(store_records(FIXED, fixes=(fix,)), SOURCE)
    assert (fixed.outcome.kind, fixed.outcome.fix, fixed.outcome.release) == (OutcomeKind.FIXED, "#9", "v4.2")
    (refuted,) = all_threads(store_records(fixes=(replace(fix, refuted=True, looked_at=at(6)),)), SOURCE)
    assert refuted.outcome.kind is not OutcomeKind.FIXED
    assert refuted.outcome.release is None


def test_discussions_become_documents_but_pull_requests_and_pages_do_not(store_records: StoreRecords) -> None:
    talk = thread(4, "How do I log in?", kind=Kind.DISCUSSION, role="MEMBER")
    pull = thread(5, TITLE, BODY, kind=Kind.PULL, role="MEMBER")
    page = thread("wiki:Home", "Home", kind=Kind.PAGE)
    documents = list(all_threads(store_records(talk, pull, page), SOURCE))
    assert [document.id for document in documents] == [4]
    assert documents[0].url.endswith("/discussions/4")


def test_deleted_or_hidden_threads_are_written_as_gone_without_text(store_records: StoreRecords) -> None:
    memory = store_records(FIXED, Tombstone(8, at(9)), hidden_by_github=(FIXED,))
    documents = {document.id: document for document in changed_threads([3, 8, 99], memory, SOURCE)}
    assert set(documents) == {3, 8, 99}
    assert all(
        document.is_gone and not (document.title or document.terms or document.author or document.url)
        for document in documents.values()
    )
    assert [document.id for document in all_threads(memory, SOURCE)] == [8]


def test_text_of_ignored_people_is_left_out(store_records: StoreRecords) -> None:
    memory = store_records(FIXED)
    memory.hidden = HiddenPeople(["MonaLisa", "hubot"])
    (document,) = all_threads(memory, SOURCE)
    assert terms("cookie")[0] not in document.terms
    assert (document.errors, document.files, document.names, document.outcome.quote) == ((), (), (), "")
    assert document.title == TITLE


def test_an_issue_vouched_for_by_nobody_but_its_unknown_author_is_not_shown_elsewhere(
    store_records: StoreRecords,
) -> None:
    unvouched = closed(5, TITLE, BODY, author="mona", closed_by="mona", role="NONE")
    answered = thread(6, TITLE, BODY, author="mona", comments=(message("Same here.", 7),))
    known = thread(7, TITLE, BODY, author="octocat", role="CONTRIBUTOR")
    gone = {
        document.id: document.is_gone for document in all_threads(store_records(unvouched, answered, known), SOURCE)
    }
    assert gone == {5: True, 6: False, 7: False}


@pytest.mark.slow
@pytest.mark.parametrize("body", ["word " * 50_000, " ".join(f"w{n}" for n in range(20_000))])
def test_a_long_text_is_bounded(store_records: StoreRecords, body: str) -> None:
    document = next(all_threads(store_records(replace(FIXED, body=body)), SOURCE))
    assert len(set(document.terms)) <= MAX_BODY_TERMS + len(set(terms(TITLE)))
    assert len(document.terms) <= 5 * MAX_BODY_TERMS + TITLE_REPEATS * len(terms(TITLE))


def test_many_threads_are_read_in_batches_and_each_once(store_records: StoreRecords) -> None:
    threads: list[Thread] = [thread(n, f"Thing {n} is odd", role="MEMBER") for n in range(1, BATCH_SIZE + 9)]
    memory = store_records(*threads)
    assert [document.id for document in all_threads(memory, SOURCE)] == [document.id for document in threads]
    assert len({document.id for document in changed_threads(range(1, BATCH_SIZE + 9), memory, SOURCE)}) == len(threads)
