"""Pages that answer a question, and silence where none does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from bot.domain.answer import PageHit
from bot.domain.changes import Changes
from bot.domain.thread import Kind, RepositoryAddress, Thread
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.reading.pages import page_title
from bot.recall.pages import MAX_PAGES, find_pages
from bot.recall.similar import Limits
from bot.sources.archive_file import read_archive
from tests.reading.linear_time import assert_linear_time
from tests.recall.conftest import Remember
from tests.recall.samples import at, similar, thread

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample"
REPOSITORY = RepositoryAddress("octo-org/linkbarn")


def page(key: str, body: str, days: float = 0, title: str = "") -> Thread:
    name = title or page_title(body) or key.partition(":")[2]
    return Thread(key, name, body, "ghost", at(days), kind=Kind.PAGE, updated_at=at(days))


def sample_pages() -> list[Thread]:
    docs = [page(f"docs:docs/{path.name}", path.read_text("utf-8")) for path in sorted((SAMPLE / "docs").glob("*.md"))]
    wiki = sorted((SAMPLE / "wiki").glob("*.md"))
    return docs + [page(f"wiki:{path.stem}", path.read_text("utf-8"), 0, path.stem.replace("-", " ")) for path in wiki]


def search_pages(question: Thread, memory: Memory, limit: int = MAX_PAGES) -> tuple[PageHit, ...]:
    return find_pages(question, memory, REPOSITORY, limit=limit)


@pytest.fixture
def memory(remember: Remember) -> Memory:
    return remember(*sample_pages())


def test_a_question_is_answered_by_the_section_that_covers_it(memory: Memory) -> None:
    events = json.loads((SAMPLE / "events.json").read_text("utf-8"))
    question = next(one["issue"] for one in events["more"] if one["expect"] == "from the docs")
    (hit,) = search_pages(thread(77, question["title"], question["body"]), memory)
    assert hit.title == "Keyboard shortcuts: In a list"
    assert hit.url == "https://github.com/octo-org/linkbarn/wiki/Keyboard-shortcuts#in-a-list"
    assert hit.excerpt
    assert 0.65 <= hit.similarity <= 1


def test_a_question_that_no_page_covers_finds_none(memory: Memory) -> None:
    events = json.loads((SAMPLE / "events.json").read_text("utf-8"))
    silent = next(one["issue"] for one in events["more"] if one["expect"] == "silent")
    assert search_pages(thread(76, silent["title"], silent["body"]), memory) == ()


@pytest.mark.slow
def test_most_of_the_samples_issues_get_the_page_that_is_about_them(remember: Remember) -> None:
    issues = list(read_archive(SAMPLE / "history.jsonl"))
    memory = remember(*sample_pages(), *issues)
    expected = {
        2: "Home: Where to start",
        4: "Import and export: Import",
        11: "Backups",
        22: "Troubleshooting: invalid redirect_uri from the identity provider",
        38: "Import and export: Export",
        46: "Configuration: Server",
        73: "Configuration: Serving under a path with Caddy",
    }
    titles = {issue.id: [hit.title for hit in search_pages(issue, memory)] for issue in issues if issue.id in expected}
    assert all(expected[key] in shown for key, shown in titles.items()), titles


@pytest.mark.slow
def test_the_best_section_stands_for_its_page_and_the_best_pages_come_first(remember: Remember) -> None:
    text = "Saving a large gallery needs the {} worker: restart the gallery worker and save the gallery again."
    memory = remember(
        page("docs:docs/a.md", f"# Galleries\n\nNothing here.\n\n## Slow ones\n\n{text.format('blue')}\n"),
        page("docs:docs/b.md", "# Workers\n\nA gallery has workers that restart.\n"),
        *(page(f"docs:docs/{n}.md", f"# Page {n}\n\nSomething about chairs, tables and lamps.\n") for n in range(6)),
    )
    hits = search_pages(
        thread(1, "Saving a large gallery fails", "I had to restart the blue worker to save it again."), memory
    )
    assert hits[0].title == "Galleries: Slow ones"
    assert hits[0].url.endswith("/blob/HEAD/docs/a.md#slow-ones")
    assert [hit.similarity for hit in hits] == sorted((hit.similarity for hit in hits), reverse=True)


class RestoreModel:
    """A text model for which everything means one of two things: restoring, or anything else."""

    fingerprint = "restore"

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        return [bytes([1, 0] if "restore" in text or "bring back" in text else [0, 1]) for text in texts]


def test_of_passages_that_cover_the_question_a_text_model_prefers_the_one_that_means_the_same(tmp_path: Path) -> None:
    making = page("docs:making.md", "# Making\n\nMake a nightly backup of the bookmark database to a folder or bucket.")
    restoring = page("docs:restoring.md", "# Restoring\n\nHow to restore a nightly backup of the bookmark database.")
    question = thread(
        9, "Bring back nightly backup of the bookmark database", "I want to make it from a folder, bring back."
    )
    for model, first in ((None, "Making"), (RestoreModel(), "Restoring")):
        with closing(Memory(FolderStore(tmp_path / str(model is None)), embedder=model).open()) as memory:
            memory.stage(Changes(records=(making, restoring)))
            hits = search_pages(question, memory)
            assert [hit.title for hit in hits][:1] == [first]
            assert len(hits) == 2


def test_a_quotation_from_a_page_finds_that_page(remember: Remember) -> None:
    memory = remember(
        page("docs:docs/odd.md", "# Oddities\n\n| message | is |\n|---|---|\n| `queue is blocked` | wait |\n"),
        *(page(f"docs:docs/{n}.md", f"# Page {n}\n\nChairs, tables, lamps.\n") for n in range(6)),
    )
    hits = search_pages(thread(1, "What does this mean", 'It only says "Queue is  blocked"'), memory)
    assert [hit.title for hit in hits] == ["Oddities"]


IN_OTHER_SCRIPTS = {
    "zh": ("升级后无法登录", "升级到 2.3 之后，每次登录都会提示错误 `{}`，请问应该如何解决？谢谢。"),
    "zh-Hant": ("升級後無法登入", "升級之後，每次登入都出現「`{}`」的錯誤訊息，請問要怎麼處理？"),
    "ja": ("ログインできません", "アップグレード後、ログインしようとすると `{}` というエラーが表示されます。"),
    "ko": ("로그인이 안 됩니다", "업그레이드 후 로그인하면 `{}` 오류가 발생합니다. 어떻게 해결하나요?"),
    "th": ("เข้าสู่ระบบไม่ได้", "หลังจากอัปเกรดแล้วเกิดข้อผิดพลาด `{}` ทุกครั้งที่เข้าสู่ระบบ"),
    "ru": ("Не могу войти", "После обновления при входе появляется ошибка `{}`. Что делать?"),
}
CODES = ["E_SESSION_EXPIRED", "ERR_TOKEN_LOST", "ECONNREFUSED", "TS2345", "E1042", "ORA-00942", "0x80070005"]


@pytest.mark.slow
def test_an_error_code_finds_its_page_from_a_question_in_another_script(remember: Remember) -> None:
    text = "# Error codes\n\n## Signing in\n\nThe server answers {} when the cookie has another path. Set it.\n"
    heading = "# Failures\n\n## `{}`\n\nThe cookie has another path than the server.\n"

    def titles(code: str, memory: Memory) -> list[list[str]]:
        questions = (thread(900, title, body.format(code)) for title, body in IN_OTHER_SCRIPTS.values())
        return [[hit.title for hit in search_pages(question, memory)] for question in questions]

    memory = remember(*sample_pages())
    assert [titles(code, memory) for code in CODES] == [[[]] * len(IN_OTHER_SCRIPTS)] * len(CODES)
    for day, code in enumerate(CODES):
        memory = remember(page("docs:docs/errors.md", text.format(code), day + 0.1))
        assert titles(code, memory) == [["Error codes: Signing in"]] * len(IN_OTHER_SCRIPTS), code
        memory = remember(page("docs:docs/errors.md", heading.format(code), day + 0.2))
        assert titles(code, memory) == [[f"Failures: {code}"]] * len(IN_OTHER_SCRIPTS), code


def test_a_page_in_the_same_language_with_the_code_is_found(remember: Remember) -> None:
    title, body = IN_OTHER_SCRIPTS["zh"]
    text = "# 错误代码\n\n## 会话过期\n\n错误 `ERR_TOKEN_LOST` 表示会话已过期，请重新登录并检查服务器时间设置。\n"
    memory = remember(*sample_pages(), page("docs:docs/zh.md", text))
    assert [hit.title for hit in search_pages(thread(900, title, body.format("ERR_TOKEN_LOST")), memory)] == [
        "错误代码: 会话过期"
    ]
    assert search_pages(thread(900, title, body.format("ERR_TOKEN_GONE")), memory) == ()


def test_a_name_alone_is_no_answer_to_a_report_in_another_script(remember: Remember) -> None:
    text = "# Notes\n\nThe cookie is UTF-8, a TypeError is E1042, ORA-00942 in Linkbarn, and it is odd.\n"
    memory = remember(*sample_pages(), page("docs:docs/notes.md", text))
    title, body = IN_OTHER_SCRIPTS["ja"]
    names = ["cookie", "UTF-8", "TypeError", "Linkbarn", "E104", "ORA-0094"]
    assert [name for name in names if search_pages(thread(900, title, body.format(name)), memory)] == []


def test_words_that_are_scattered_over_a_long_list_are_no_answer(remember: Remember) -> None:
    words = ("gallery", "worker", "restart", "blocked", "snapshot", "queue")
    item = "- Some {} among other matters of no weight, which go on and on until the line is rather long indeed."
    scattered = "\n".join(item.format(word) for word in words for _ in range(9))
    together = f"{item.format('chair')}\n" * 40 + item.format(" ".join(words))
    others = [page(f"docs:docs/{n}.md", f"# Page {n}\n\nChairs, tables, lamps.\n") for n in range(6)]
    question = thread(1, "Gallery blocks the snapshot queue", "The worker is blocked until I restart it.")
    assert search_pages(question, remember(page("docs:docs/long.md", f"# Long\n\n{scattered}\n"), *others)) == ()
    assert search_pages(question, remember(page("docs:docs/long.md", f"# Long\n\n{together}\n", days=1), *others)) != ()


def test_some_shared_words_are_no_answer(memory: Memory) -> None:
    assert search_pages(thread(1, "Server", "archive"), memory) == ()


def test_at_most_two_pages_are_found_or_as_many_as_are_wanted(remember: Remember) -> None:
    text = "Sessions live in the database after the move from SQLite to PostgreSQL.\n"
    others = [page(f"docs:docs/{n}.md", f"# Page {n}\n\nChairs, tables, lamps.\n") for n in range(6)]
    memory = remember(*(page(f"docs:docs/move-{n}.md", f"# Move {n}\n\n{text}") for n in range(3)), *others)
    question = thread(1, "Where do sessions live after the move", "from SQLite to PostgreSQL, in the database?")
    shown = search_pages(question, memory, limit=5)
    assert len(shown) == 3
    assert search_pages(question, memory) == shown[:2]
    assert search_pages(question, memory, limit=1) == shown[:1]


def test_a_title_without_a_word_finds_no_pages(memory: Memory) -> None:
    assert [
        title
        for title in ["", "???", "the and of", "\0\ud800"]
        if search_pages(thread(1, title, "Export a shelf as Markdown files"), memory) != ()
    ] == []


def test_a_page_is_not_found_before_it_existed(remember: Remember) -> None:
    memory = remember(page("wiki:Export", "# Export\n\nExport a shelf as Markdown files with front matter.\n", days=5))
    question = thread(1, "Export a shelf as Markdown files", "with front matter")
    assert find_pages(question, memory, REPOSITORY, at(4)) == ()
    assert find_pages(question, memory, REPOSITORY, at(6)) == find_pages(question, memory, REPOSITORY) != ()


def test_pages_and_threads_are_never_taken_for_each_other(remember: Remember) -> None:
    words = "Export a shelf as Markdown files with front matter"
    memory = remember(
        page("wiki:Export", f"# Export\n\n{words}.\n"),
        thread(1, words, "with front matter", days=1),
        *(thread(number, f"Chair number {number}", "and a lamp", days=1) for number in range(2, 9)),
    )
    question = thread(20, words, "with front matter")
    seen, still_open = similar(question, memory, None, (), Limits(0.0, 3, 2, 12_000))
    assert [match.id for match in (*seen, *still_open)] == [1]
    assert [hit.title for hit in search_pages(question, memory)] == ["Export"]


def test_the_same_question_finds_the_same_pages(memory: Memory) -> None:
    question = thread(1, "Trusted proxies", "X-Forwarded-For is not believed behind a proxy; which networks do I set?")
    assert search_pages(question, memory) == search_pages(question, memory) != ()


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[", "*", ">", "# a\n", "\u202e", "export ", '"', "`a b` "])
def test_a_hostile_question_takes_linear_time_even_among_hostile_pages(remember: Remember, piece: str) -> None:
    memory = remember(*(page(f"wiki:{n}", piece * (60_000 // len(piece)), title="Export a shelf") for n in range(2)))
    assert_linear_time(lambda text: search_pages(thread(1, f"Export {piece}", text), memory), piece)
