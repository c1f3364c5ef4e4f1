"""Sessions and logs are searched in place: refreshed when files change, silent when nothing matches the words."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot.domain.card import SessionOutline, SessionPassage
from bot.domain.thread import Thread
from bot.errors import WorldError
from bot.local_cache import session_sync as sync_module
from bot.local_cache.session_index import MAX_EXCERPT, SessionIndex, excerpt
from bot.reading.analyzer import terms
from bot.sources.sessions.files import find_sessions
from tests.local_cache.outlines import all_outlines
from tests.reading.linear_time import assert_linear_time
from tests.sources.session_lines import CODING, HOOKS, ISSUE_AGENT, prompt, response, write

ROOT = Path(__file__).resolve().parents[2]


class LogFolder:
    """A folder of logs and its index."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder / "logs", folder / "cache" / "logs.sqlite"
        self.folder.mkdir(exist_ok=True)
        self.logs = SessionIndex(self.path)

    def refresh(self) -> list[int]:
        """Read what has changed; returns the number of lines in each portion."""
        portions: list[int] = []
        self.notes = self.logs.refresh(find_sessions(["."], str(self.folder)), portions.append)
        return portions

    def search(self, words: str, limit: int = 10, since: datetime | None = None) -> list[str]:
        self.refresh()
        return [passage.text for passage in self.logs.search(words, limit, since)]

    @contextmanager
    def limited(self, pages: int) -> Iterator[None]:
        """Let the file grow to at most so many pages, as on a full disk."""
        database = self.logs._database
        database.execute(f"PRAGMA max_page_count = {pages}")
        yield
        database.execute("PRAGMA max_page_count = 1000000")

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        database = sqlite3.connect(self.path)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()


@pytest.fixture
def log_folder(tmp_path: Path) -> Iterator[LogFolder]:
    opened = LogFolder(tmp_path)
    yield opened
    opened.logs.close()


def test_a_message_is_found_with_its_session(log_folder: LogFolder) -> None:
    path = write(log_folder.folder / "hooks.log", *HOOKS)
    log_folder.refresh()
    (passage,) = log_folder.logs.search("rotating webhook secrets")
    assert passage == SessionPassage(
        "h-1",
        "user",
        "How do we rotate the webhook secret?",
        datetime(2026, 3, 2, 7, 0, 1, tzinfo=UTC),
        passage.score,
        str(path),
    )
    assert passage.score > 0


def test_tool_output_and_thinking_are_not_found(log_folder: LogFolder) -> None:
    write(log_folder.folder / "a.jsonl", *ISSUE_AGENT, *CODING)
    assert log_folder.search("cookie") == ["The cookie path changed."]
    assert log_folder.search("giraffe") == log_folder.search("zebras") == log_folder.search("caveat") == []


def test_files_that_tools_touched_are_found_and_named(log_folder: LogFolder) -> None:
    write(log_folder.folder / "a.jsonl", *CODING)
    assert log_folder.search("client.py") == ["I retry with jitter.\n\nFiles: net/client.py"]
    assert log_folder.search("jitter") == ["I retry with jitter."]


def test_a_message_with_less_than_half_of_the_words_is_not_found(log_folder: LogFolder) -> None:
    write(log_folder.folder / "a.log", *(prompt(f"the common word number {number}") for number in range(30)))
    write(log_folder.folder / "b.log", prompt("the rare quagmire"), prompt("a quagmire of common words"))
    assert log_folder.search("common quagmire") == ["a quagmire of common words", "the rare quagmire"]
    assert log_folder.search("common zyzzogeton") == []
    assert log_folder.search("the of and") == log_folder.search("") == log_folder.search("!? …") == []


def test_messages_are_ranked_by_matching_and_other_words_and_then_newest_first(log_folder: LogFolder) -> None:
    write(
        log_folder.folder / "a.log",
        prompt("a retry", at="2026-01-01T00:00:00Z"),
        prompt("a retry", "h-2", at="2026-01-03T00:00:00Z"),
        prompt("a retry", "h-3", at="2026-01-02T00:00:00Z"),
        prompt("a retry " + "widget " * 50, at=None),
        prompt("a retry with backoff", at=None),
    )
    log_folder.refresh()
    passages = log_folder.logs.search("retry backoff", 9)
    assert passages[0].text == "a retry with backoff"
    assert [each.session for each in log_folder.logs.search("retry", 3)] == ["h-2", "h-3", "h-1"]
    assert len(log_folder.logs.search("retry", 2)) == 2
    assert log_folder.logs.search("retry", 0) == []


def test_among_many_equal_messages_the_newest_come_first(log_folder: LogFolder) -> None:
    days = [f"2026-01-{day:02}T{hour:02}:00:00Z" for day in range(1, 11) for hour in range(24)]
    prompts = [prompt(f"retry n{n}", f"h-{n // 100}", at) for n, at in enumerate(days)]
    write(log_folder.folder / "a.log", prompt("retry timeless", at=None), *prompts)
    log_folder.refresh()
    newest_first = [f"retry n{n}" for n in reversed(range(len(days)))] + ["retry timeless"]
    assert [each.text for each in log_folder.logs.search("retry", 500)] == newest_first
    assert [each.text for each in log_folder.logs.search("retry", 3)] == newest_first[:3]
    best = [(each.session, each.text) for each in log_folder.logs.search_each("retry", 5)]
    assert best == [("h-2", "retry n239"), ("h-1", "retry n199"), ("h-0", "retry n99")]


def test_since_leaves_out_older_messages_and_those_without_a_time(log_folder: LogFolder) -> None:
    days = ("2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z", None)
    write(log_folder.folder / "a.log", *(prompt(f"retry {day}", f"s-{day}", day) for day in days))
    since = datetime(2026, 1, 5, tzinfo=UTC)
    assert log_folder.search("retry", since=since) == ["retry 2026-01-05T00:00:00Z"]
    assert log_folder.search("retry", since=since + timedelta(microseconds=1)) == []


def test_a_message_in_two_files_is_found_once(log_folder: LogFolder) -> None:
    write(log_folder.folder / "hooks.log", prompt("Add retries to the client", "c-1"))
    write(log_folder.folder / "c.jsonl", *CODING)
    assert sorted(log_folder.search("retries")) == ["Add retries to the client", "I retry with jitter."]
    thread = log_folder.logs.session("c-1")
    assert isinstance(thread, Thread)
    assert (thread.title, len(thread.comments)) == ("Add retries to the client", 1)


def test_other_scripts_and_accents_are_found(log_folder: LogFolder) -> None:
    write(
        log_folder.folder / "a.log", prompt("Größe der Schriftart"), prompt("认证失败的原因"), prompt("ошибка входа 🚀")
    )
    assert log_folder.search("schriftart grosse") == ["Größe der Schriftart"]
    assert log_folder.search("认证失败") == ["认证失败的原因"]
    assert log_folder.search("входа") == ["ошибка входа 🚀"]


# Refreshing


def test_only_new_lines_are_read(log_folder: LogFolder) -> None:
    path = write(log_folder.folder / "a.log", prompt("first widget"))
    assert log_folder.refresh() == [1]
    assert log_folder.refresh() == []
    write(log_folder.folder / "b.log", prompt("second widget"), prompt("third widget"))
    assert log_folder.refresh() == [2]
    with path.open("ab") as handle:
        handle.write(prompt("fourth widget") + b"\n")
    assert log_folder.refresh() == [1]
    assert sorted(log_folder.search("widget")) == ["first widget", "fourth widget", "second widget", "third widget"]


def test_rewritten_and_removed_lines_are_forgotten(log_folder: LogFolder) -> None:
    path = write(log_folder.folder / "a.log", prompt("first widget"), prompt("second widget"))
    other = write(log_folder.folder / "b.log", prompt("third widget", "h-9"))
    assert len(log_folder.search("widget")) == 3
    write(path, prompt("fourth widget"), prompt("fifth widget of another length"))
    other.unlink()
    assert sorted(log_folder.search("widget")) == ["fifth widget of another length", "fourth widget"]
    assert [each.id for each in all_outlines(log_folder.logs)] == ["h-1"]
    path.unlink()
    assert log_folder.search("widget") == []
    for table in ("files", "passages", "texts", "occurrences", "sessions"):
        assert log_folder.rows(f"SELECT * FROM {table}") == []


def test_a_file_replaced_by_one_with_the_same_beginning_is_read_again(log_folder: LogFolder) -> None:
    path = write(log_folder.folder / "a.log", prompt("x" * 5_000), prompt("apple"), prompt("x" * 5_000))
    log_folder.refresh()
    fresh = write(
        log_folder.folder / "fresh", prompt("x" * 5_000), prompt("grape"), prompt("x" * 5_000), prompt("more")
    )
    fresh.rename(path)
    assert (log_folder.search("apple"), log_folder.search("grape")) == ([], ["grape"])


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("lines_around", [0, 3_000])
def test_a_line_edited_in_place_is_read_again(log_folder: LogFolder, lines_around: int, grows: bool) -> None:
    around = [prompt("x" * 300, f"h-{n}") for n in range(lines_around)]
    path = write(log_folder.folder / "a.log", *around, prompt("my token apple"), *around)
    before = path.stat()
    assert log_folder.search("apple") == ["my token apple"]
    with path.open("r+b") as handle:
        handle.seek(path.read_bytes().index(b"apple"))
        handle.write(b"grape")
        handle.seek(0, os.SEEK_END)
        handle.write(prompt("more apple") + b"\n" if grows else b"")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if not grows:
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert log_folder.search("apple") == ["more apple"] * grows
    assert log_folder.search("grape") == ["my token grape"]
    assert b"my token apple" not in log_folder.path.read_bytes()


def test_a_file_that_was_only_touched_is_not_read_again(log_folder: LogFolder) -> None:
    path = write(log_folder.folder / "a.log", prompt("first widget"), prompt("second widget"))
    log_folder.refresh()
    numbers = log_folder.rows("SELECT number FROM passages")
    path.touch()
    assert log_folder.refresh() == []
    assert log_folder.rows("SELECT number FROM passages") == numbers
    (mark,) = log_folder.rows("SELECT mark FROM files")
    assert mark == (find_sessions(["."], str(log_folder.folder)).sessions[0].mark,), "it is not compared again"


def test_half_a_line_is_broken_until_it_is_complete(log_folder: LogFolder) -> None:
    path = log_folder.folder / "a.log"
    path.write_bytes(b"not json\n" + prompt("first widget") + b"\n" + prompt("second widget")[:30])
    log_folder.refresh()
    assert log_folder.logs.broken_lines() == {str(path): 2}
    with path.open("ab") as handle:
        handle.write(prompt("second widget")[30:])
    assert sorted(log_folder.search("widget")) == ["first widget", "second widget"]
    assert log_folder.logs.broken_lines() == {str(path): 1}


@pytest.mark.slow
def test_a_large_file_is_read_in_portions(log_folder: LogFolder) -> None:
    count = 2 * sync_module.BATCH_SIZE + 10
    write(
        log_folder.folder / "a.log", *(prompt(f"word{number} widget", f"s-{number // 50}") for number in range(count))
    )
    assert log_folder.refresh() == [sync_module.BATCH_SIZE, sync_module.BATCH_SIZE, 10]
    assert log_folder.search(f"word{count - 1}") == [f"word{count - 1} widget"]
    assert log_folder.rows("SELECT count(*) FROM passages") == [(count,)]


def test_forgotten_text_is_not_found_and_is_erased_from_the_file(log_folder: LogFolder) -> None:
    for number in range(40):
        write(
            log_folder.folder / f"{number}.log",
            prompt(f"word{number} widget zyzzogeton{number} here"),
            prompt("another widget"),
        )
        log_folder.refresh()
        if number % 3 == 0:
            (log_folder.folder / f"{number}.log").unlink()
    log_folder.refresh()
    is_kept = [number % 3 != 0 for number in range(40)]
    assert [bool(log_folder.search(f"word{number}")) for number in range(40)] == is_kept
    assert [b"zyzzogeton%d " % number in log_folder.path.read_bytes() for number in range(40)] == is_kept
    assert log_folder.rows("SELECT count(DISTINCT doc) FROM occurrences WHERE term = 'widget'") == [(2 * sum(is_kept),)]


def test_every_term_is_indexed_unchanged(log_folder: LogFolder) -> None:
    text = "0x1F:2 v1.2.3-rc std::vec don't _name File.py:12 naïve 认证 входа a|b" + "".join(map(chr, range(33, 127)))
    write(log_folder.folder / "a.log", prompt(text))
    log_folder.refresh()
    assert {term for (term,) in log_folder.rows("SELECT term FROM occurrences")} == set(terms(text))


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([(0, "append", 0), (1, "append", 0), (0, "append", 0), (1, "append", 0), (0, "write", 1)])
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["append", "write", "delete"]), st.integers(0, 5)), max_size=12
    )
)
def test_after_any_changes_the_index_equals_a_fresh_one(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, str, int]]
) -> None:
    log_folder = LogFolder(tmp_path_factory.mktemp("place"))
    for step, (file, change, word) in enumerate(changes):
        path = log_folder.folder / f"{file}.log"
        if change == "delete":
            path.unlink(missing_ok=True)
        else:
            with path.open("ab" if change == "append" else "wb") as handle:
                handle.write(prompt(f"word{word} widget{step} common", f"s-{file}") + b"\n" + b"broken\n" * word)
        log_folder.refresh()
    fresh = SessionIndex(log_folder.path.with_name("fresh"))
    fresh.refresh(find_sessions(["."], str(log_folder.folder)))
    with closing(fresh), closing(log_folder.logs):
        assert log_folder.logs.broken_lines() == fresh.broken_lines()
        assert all_outlines(log_folder.logs) == all_outlines(fresh)
        for words in ("common", "word3", "widget2 word1"):
            actual, expected = ({each.text for each in logs.search(words, 99)} for logs in (log_folder.logs, fresh))
            assert actual == expected


def test_a_file_that_cannot_be_read_costs_a_note(log_folder: LogFolder) -> None:
    path = write(log_folder.folder / "a.log", prompt("first widget"))
    files = find_sessions(["."], str(log_folder.folder))
    path.unlink()
    os.mkfifo(path)
    assert log_folder.logs.refresh(files) == (f"{path} cannot be read: {path} is not a regular file",)
    assert log_folder.logs.search("widget") == []


def test_hostile_files_cost_only_their_own_lines(log_folder: LogFolder, tmp_path: Path) -> None:
    path = write(
        log_folder.folder / "a.log", prompt("x" * 10_000_000), b"[" * 500_000, b"\xff\0\n\0", prompt("good widget")
    )
    outside = write(tmp_path / "outside.log", prompt("outside widget"))
    (log_folder.folder / "link.log").symlink_to(outside)
    os.mkfifo(log_folder.folder / "pipe.log")
    assert log_folder.search("widget") == ["good widget"]
    assert log_folder.logs.broken_lines() == {str(path): 4}


def test_control_characters_are_removed(log_folder: LogFolder) -> None:
    write(log_folder.folder / "a.log", prompt("\x1b[2Jwipe\x07 the \u202escreen\x9b31m"))
    assert log_folder.search("wipe screen") == ["wipe the screen"]


# Issues and sessions


def test_a_session_is_listed_with_its_issue_and_files(log_folder: LogFolder) -> None:
    path = write(log_folder.folder / "sessions" / "a.jsonl", *ISSUE_AGENT)
    write(log_folder.folder / "issues" / "12.json", {"issueNumber": 12, "sessionPath": "sessions/a.jsonl"})
    log_folder.refresh()
    (outline,) = all_outlines(log_folder.logs)
    started = datetime(2026, 3, 1, 10, 0, 1, tzinfo=UTC)
    assert outline == SessionOutline(
        "5b1c",
        "Login loops after upgrade",
        started,
        started + timedelta(seconds=8),
        2,
        str(path),
        12,
        ("auth/cookie.py", "tests/test_cookie.py"),
    )
    thread = log_folder.logs.session("5b1c")
    assert isinstance(thread, Thread)
    assert [event.source for event in thread.events] == [12]
    write(log_folder.folder / "issues" / "12.json", {"issueNumber": 13, "sessionPath": "sessions/a.jsonl", "x": 1})
    assert log_folder.refresh() == []
    assert [each.issue for each in all_outlines(log_folder.logs)] == [13]
    (log_folder.folder / "issues" / "12.json").unlink()
    log_folder.refresh()
    assert [each.issue for each in all_outlines(log_folder.logs)] == [None]


def test_an_unknown_session_is_none(log_folder: LogFolder) -> None:
    assert log_folder.logs.session("h-1") is None


def test_a_session_in_several_files_is_put_in_order_of_time(log_folder: LogFolder) -> None:
    write(
        log_folder.folder / "b.log",
        response("second", at="2026-01-02T00:00:00Z"),
        response("fourth", at="2026-01-04T00:00:00Z"),
    )
    write(
        log_folder.folder / "a.log",
        prompt("first", at="2026-01-01T00:00:00Z"),
        prompt("third", at="2026-01-03T00:00:00Z"),
    )
    log_folder.refresh()
    thread = log_folder.logs.session("h-1")
    assert isinstance(thread, Thread)
    assert [thread.title, *(each.text for each in thread.comments)] == ["first", "second", "third", "fourth"]


# Excerpts


def test_a_long_message_is_cut_to_the_part_with_the_words() -> None:
    text = "padding " * 200 + "the rare quagmire of retries " + "padding " * 200
    shortened = excerpt(text, "", terms("quagmire retries"))
    assert len(shortened) <= MAX_EXCERPT
    assert "rare quagmire of retries" in shortened
    assert shortened[0] == shortened[-1] == "…"


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.text(max_size=3_000),
    st.lists(st.text(max_size=60), max_size=8),
    st.lists(st.sampled_from(["word", "widget", "认证"]), max_size=3),
)
def test_an_excerpt_is_never_longer_than_the_limit(text: str, files: list[str], query_words: list[str]) -> None:
    query_terms = {term for word in query_words for term in terms(word)}
    for words in (text, f"{text} word {text} widget", "x" * 400 + text * 3 + "认证"):
        assert len(excerpt(words, "\n".join(files), query_terms)) <= MAX_EXCERPT


def test_an_excerpt_of_a_long_text_takes_linear_time() -> None:
    def read(text: str) -> None:
        assert "word widget" in excerpt(text, "", ["word", "widget"])

    assert_linear_time(read, "word widget ")


# The file


def test_only_the_owner_may_read_the_file(log_folder: LogFolder) -> None:
    assert stat.S_IMODE(log_folder.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(log_folder.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4_000, "foreign", "older"])
def test_an_unusable_file_is_recreated(tmp_path: Path, damage: bytes | str) -> None:
    log_folder = LogFolder(tmp_path)
    write(log_folder.folder / "a.log", *(prompt(f"widget number{number} " + "x " * 100) for number in range(200)))
    log_folder.refresh()
    log_folder.logs.close()
    if isinstance(damage, bytes):
        log_folder.path.write_bytes(damage)
    elif damage == "foreign":
        log_folder.path.unlink()
        sqlite3.connect(log_folder.path).execute('CREATE TABLE "a ""table" (x)').connection.close()
    else:
        database = sqlite3.connect(log_folder.path)
        database.execute("UPDATE facts SET value = '0' WHERE name = 'format'")
        database.execute("DROP TABLE texts")
        database.commit()
        database.close()
    log_folder = LogFolder(tmp_path)
    assert len(log_folder.search("widget", 300)) == 200
    log_folder.logs.close()


@pytest.mark.slow
def test_a_full_disk_is_reported_and_the_index_keeps_what_it_has(log_folder: LogFolder) -> None:
    write(log_folder.folder / "a.log", prompt("first widget"))
    log_folder.refresh()
    write(log_folder.folder / "b.log", *(prompt(f"another widget {number} " + "x" * 500) for number in range(900)))
    page_count = log_folder.rows("PRAGMA page_count")[0][0]
    with log_folder.limited(int(str(page_count)) + 5):
        log_folder.refresh()
    note = "The index of agents' sessions was not updated, so the newest may be missing: database or disk is full"
    assert log_folder.notes == (note,)
    assert log_folder.search("widget", 1_000) == ["first widget"]
    log_folder.logs.close()
    log_folder.logs = SessionIndex(log_folder.path)
    assert len(log_folder.search("widget", 1_000)) == 901


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldError, match=r"cannot be used: .*; set XDG_CACHE_HOME to another folder"):
        SessionIndex(tmp_path / "file" / "logs.sqlite")


SEARCH = """
import sys
from pathlib import Path
from bot.local_cache.session_index import SessionIndex
from bot.sources.sessions.files import find_sessions
logs = SessionIndex(Path(sys.argv[1]))
def tell(_):
    print("portion", flush=True)
    sys.stdin.readline()
logs.refresh(find_sessions(["."], sys.argv[2]), tell)
print(len(logs.search("widget", 100_000)))
unwanted = {"numpy", "whoosh", "rich", "dataclasses", "bot.domain.thread", "bot.sources.sessions.session"}
print(sorted(unwanted & set(sys.modules)))
"""


def start_search(log_folder: LogFolder, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """Start a search as a process; if it has an input, it waits for a line after each portion."""
    command = [sys.executable, "-c", SEARCH, str(log_folder.path), str(log_folder.folder)]
    return subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_search(log_folder: LogFolder) -> tuple[list[str], str]:
    process = start_search(log_folder)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output.splitlines(), errors


def test_a_search_imports_no_module_that_it_does_not_need(log_folder: LogFolder) -> None:
    write(log_folder.folder / "a.log", prompt("first widget"))
    log_folder.refresh()
    assert run_search(log_folder) == (["1", "[]"], "")


@pytest.mark.slow
def test_several_processes_at_once_read_everything_once_and_none_waits_for_the_others(log_folder: LogFolder) -> None:
    count = 7_000
    write(log_folder.folder / "a.log", *(prompt(f"widget word{number}") for number in range(count)))
    log_folder.logs.close()
    log_folder.path.unlink()
    with ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(lambda _: run_search(log_folder), range(3)))
    assert str(count) in [output[-2] for output, _ in outcomes], "one has read all of it"
    assert log_folder.rows("SELECT count(*), count(DISTINCT number) FROM passages") == [(count, count)]


@pytest.mark.slow
def test_a_killed_process_loses_at_most_one_portion(log_folder: LogFolder) -> None:
    count = 3 * sync_module.BATCH_SIZE
    write(log_folder.folder / "a.log", *(prompt(f"widget word{number}") for number in range(count)))
    process = start_search(log_folder, subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "portion\n"
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "portion\n"  # the first portion is written, the second only read
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert log_folder.rows("SELECT count(*) >= 5000 FROM passages") == [(1,)]
    assert sum(log_folder.refresh()) == count - sync_module.BATCH_SIZE
    assert len(log_folder.search("widget", count + 1)) == count


def test_a_progress_callback_that_raises_leaves_the_file_unchanged(log_folder: LogFolder) -> None:
    write(log_folder.folder / "a.log", prompt("first widget"))

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log_folder.logs.refresh(find_sessions(["."], str(log_folder.folder)), stop)
    assert log_folder.logs.search("widget") == []
    assert log_folder.search("widget") == ["first widget"]
