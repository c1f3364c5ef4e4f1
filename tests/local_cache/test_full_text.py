"""Sessions and logs are searched where they lie: refreshed when files change, silent when nothing is like the words."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot.domain import card as logs_ranking
from bot.domain.card import LEAST_PART, SessionOutline, SessionPassage
from bot.domain.thread import Thread
from bot.errors import WorldError
from bot.local_cache import session_sync as logs_feed
from bot.local_cache.session_excerpts import MAX_EXCERPT, excerpt
from bot.local_cache.sessions import SessionIndex
from bot.reading.analyzer import terms
from bot.sources.session_files import find_sessions
from tests.sources.session_lines import CODING, HOOKS, ISSUE_AGENT, prompt, response, write

ROOT = Path(__file__).resolve().parents[2]


class Place:
    """A folder of logs and what is kept of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder / "logs", folder / "cache" / "logs.sqlite"
        self.folder.mkdir(exist_ok=True)
        self.logs = SessionIndex(self.path)

    def refresh(self) -> list[int]:
        """Read what has changed; how many lines each portion had."""
        told: list[int] = []
        self.notes = self.logs.refresh(find_sessions(["."], str(self.folder)), told.append)
        return told

    def search(self, words: str, limit: int = 10, since: datetime | None = None) -> list[str]:
        self.refresh()
        return [passage.text for passage in self.logs.search(words, limit, since)]

    @contextmanager
    def limited(self, pages: int) -> Iterator[None]:
        """A file that cannot grow beyond so many pages, as on a full disk."""
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
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.logs.close()


def test_what_was_said_is_found_with_its_session(place: Place) -> None:
    path = write(place.folder / "hooks.log", *HOOKS)
    place.refresh()
    (found,) = place.logs.search("rotating webhook secrets")
    assert found == SessionPassage(
        "h-1",
        "user",
        "How do we rotate the webhook secret?",
        datetime(2026, 3, 2, 7, 0, 1, tzinfo=UTC),
        found.score,
        str(path),
    )
    assert found.score > 0


def test_tool_output_and_thinking_are_not_found(place: Place) -> None:
    write(place.folder / "a.jsonl", *ISSUE_AGENT, *CODING)
    assert place.search("cookie") == ["The cookie path changed."]
    assert place.search("giraffe") == place.search("zebras") == place.search("caveat") == []


def test_files_that_tools_touched_are_found_and_named(place: Place) -> None:
    write(place.folder / "a.jsonl", *CODING)
    assert place.search("client.py") == ["I retry with jitter.\n\nFiles: net/client.py"]
    assert place.search("jitter") == ["I retry with jitter."]


def test_a_message_that_holds_less_than_half_of_the_words_is_not_shown(place: Place) -> None:
    write(place.folder / "a.log", *(prompt(f"the common word number {number}") for number in range(30)))
    write(place.folder / "b.log", prompt("the rare quagmire"), prompt("a quagmire of common words"))
    assert place.search("common quagmire") == ["a quagmire of common words", "the rare quagmire"]
    assert place.search("common zyzzogeton") == []
    assert place.search("the of and") == place.search("") == place.search("!? …") == []
    assert logs_ranking.LEAST_PART == LEAST_PART


def test_more_of_the_words_and_fewer_others_come_first_and_of_equal_ones_the_newest(place: Place) -> None:
    write(
        place.folder / "a.log",
        prompt("a retry", at="2026-01-01T00:00:00Z"),
        prompt("a retry", "h-2", at="2026-01-03T00:00:00Z"),
        prompt("a retry", "h-3", at="2026-01-02T00:00:00Z"),
        prompt("a retry " + "widget " * 50, at=None),
        prompt("a retry with backoff", at=None),
    )
    place.refresh()
    found = place.logs.search("retry backoff", 9)
    assert found[0].text == "a retry with backoff"
    assert [each.session for each in place.logs.search("retry", 3)] == ["h-2", "h-3", "h-1"]
    assert len(place.logs.search("retry", 2)) == 2
    assert place.logs.search("retry", 0) == []


def test_since_leaves_out_what_is_older_or_has_no_time(place: Place) -> None:
    days = ("2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z", None)
    write(place.folder / "a.log", *(prompt(f"retry {day}", f"s-{day}", day) for day in days))
    since = datetime(2026, 1, 5, tzinfo=UTC)
    assert place.search("retry", since=since) == ["retry 2026-01-05T00:00:00Z"]
    assert place.search("retry", since=since + timedelta(microseconds=1)) == []
    assert [each.id for each in place.logs.sessions(since)] == [f"s-{days[1]}"]
    assert len(place.logs.sessions()) == 3


def test_the_same_words_told_by_two_files_are_shown_once(place: Place) -> None:
    write(place.folder / "hooks.log", prompt("Add retries to the client", "c-1"))
    write(place.folder / "c.jsonl", *CODING)
    assert sorted(place.search("retries")) == ["Add retries to the client", "I retry with jitter."]
    thread = place.logs.session("c-1")
    assert isinstance(thread, Thread)
    assert (thread.title, len(thread.comments)) == ("Add retries to the client", 1)


def test_other_scripts_and_accents_are_found(place: Place) -> None:
    write(place.folder / "a.log", prompt("Größe der Schriftart"), prompt("认证失败的原因"), prompt("ошибка входа 🚀"))
    assert place.search("schriftart grosse") == ["Größe der Schriftart"]
    assert place.search("认证失败") == ["认证失败的原因"]
    assert place.search("входа") == ["ошибка входа 🚀"]


# Refreshing


def test_only_what_is_new_is_read(place: Place) -> None:
    path = write(place.folder / "a.log", prompt("first widget"))
    assert place.refresh() == [1]
    assert place.refresh() == []
    write(place.folder / "b.log", prompt("second widget"), prompt("third widget"))
    assert place.refresh() == [2]
    with path.open("ab") as handle:
        handle.write(prompt("fourth widget") + b"\n")
    assert place.refresh() == [1]
    assert sorted(place.search("widget")) == ["first widget", "fourth widget", "second widget", "third widget"]


def test_what_was_rewritten_or_removed_is_forgotten(place: Place) -> None:
    path = write(place.folder / "a.log", prompt("first widget"), prompt("second widget"))
    other = write(place.folder / "b.log", prompt("third widget", "h-9"))
    assert len(place.search("widget")) == 3
    write(path, prompt("fourth widget"), prompt("fifth widget of another length"))
    other.unlink()
    assert sorted(place.search("widget")) == ["fifth widget of another length", "fourth widget"]
    assert [each.id for each in place.logs.sessions()] == ["h-1"]
    path.unlink()
    assert place.search("widget") == []
    for table in ("files", "passages", "texts", "occurrences", "sessions"):
        assert place.rows(f"SELECT * FROM {table}") == []


def test_a_file_that_was_replaced_by_another_of_its_ends_is_read_anew(place: Place) -> None:
    path = write(place.folder / "a.log", prompt("x" * 5_000), prompt("apple"), prompt("x" * 5_000))
    place.refresh()
    fresh = write(place.folder / "fresh", prompt("x" * 5_000), prompt("grape"), prompt("x" * 5_000), prompt("more"))
    fresh.rename(path)
    assert (place.search("apple"), place.search("grape")) == ([], ["grape"])


def test_half_a_line_is_broken_until_it_is_whole(place: Place) -> None:
    path = place.folder / "a.log"
    path.write_bytes(b"not json\n" + prompt("first widget") + b"\n" + prompt("second widget")[:30])
    place.refresh()
    assert place.logs.broken_lines() == {str(path): 2}
    with path.open("ab") as handle:
        handle.write(prompt("second widget")[30:])
    assert sorted(place.search("widget")) == ["first widget", "second widget"]
    assert place.logs.broken_lines() == {str(path): 1}


def test_a_large_file_is_read_in_portions(place: Place) -> None:
    count = 2 * logs_feed.BATCH + 10
    write(place.folder / "a.log", *(prompt(f"word{number} widget", f"s-{number // 50}") for number in range(count)))
    assert place.refresh() == [logs_feed.BATCH, logs_feed.BATCH, 10]
    assert place.search(f"word{count - 1}") == [f"word{count - 1} widget"]
    assert place.rows("SELECT count(*) FROM passages") == [(count,)]


def test_what_was_forgotten_is_not_found_and_leaves_the_file(place: Place) -> None:
    for number in range(40):
        write(
            place.folder / f"{number}.log",
            prompt(f"word{number} widget zyzzogeton{number} here"),
            prompt("another widget"),
        )
        place.refresh()
        if number % 3 == 0:
            (place.folder / f"{number}.log").unlink()
    place.refresh()
    kept = [number % 3 != 0 for number in range(40)]
    assert [bool(place.search(f"word{number}")) for number in range(40)] == kept
    assert [b"zyzzogeton%d " % number in place.path.read_bytes() for number in range(40)] == kept
    assert place.rows("SELECT count(DISTINCT doc) FROM occurrences WHERE term = 'widget'") == [(2 * sum(kept),)]


def test_every_term_is_indexed_as_it_is(place: Place) -> None:
    said = "0x1F:2 v1.2.3-rc std::vec don't _name File.py:12 naïve 认证 входа a|b" + "".join(map(chr, range(33, 127)))
    write(place.folder / "a.log", prompt(said))
    place.refresh()
    assert {term for (term,) in place.rows("SELECT term FROM occurrences")} == set(terms(said))


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([(0, "append", 0), (1, "append", 0), (0, "append", 0), (1, "append", 0), (0, "write", 1)])
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["append", "write", "delete"]), st.integers(0, 5)), max_size=12
    )
)
def test_after_any_changes_the_logs_are_as_if_they_were_new(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, str, int]]
) -> None:
    place = Place(tmp_path_factory.mktemp("place"))
    for step, (file, change, word) in enumerate(changes):
        path = place.folder / f"{file}.log"
        if change == "delete":
            path.unlink(missing_ok=True)
        else:
            with path.open("ab" if change == "append" else "wb") as handle:
                handle.write(prompt(f"word{word} widget{step} common", f"s-{file}") + b"\n" + b"broken\n" * word)
        place.refresh()
    fresh = SessionIndex(place.path.with_name("fresh"))
    fresh.refresh(find_sessions(["."], str(place.folder)))
    with closing(fresh), closing(place.logs):
        assert place.logs.broken_lines() == fresh.broken_lines()
        assert place.logs.sessions() == fresh.sessions()
        for words in ("common", "word3", "widget2 word1"):
            found, expected = ({each.text for each in logs.search(words, 99)} for logs in (place.logs, fresh))
            assert found == expected


def test_a_file_that_cannot_be_read_costs_a_note(place: Place) -> None:
    path = write(place.folder / "a.log", prompt("first widget"))
    files = find_sessions(["."], str(place.folder))
    path.unlink()
    os.mkfifo(path)
    assert place.logs.refresh(files) == (f"{path} cannot be read: {path} is not a regular file",)
    assert place.logs.search("widget") == []


def test_hostile_files_cost_nothing_but_their_lines(place: Place, tmp_path: Path) -> None:
    path = write(place.folder / "a.log", prompt("x" * 10_000_000), b"[" * 500_000, b"\xff\0\n\0", prompt("good widget"))
    outside = write(tmp_path / "outside.log", prompt("outside widget"))
    (place.folder / "link.log").symlink_to(outside)
    os.mkfifo(place.folder / "pipe.log")
    assert place.search("widget") == ["good widget"]
    assert place.logs.broken_lines() == {str(path): 4}


def test_control_characters_do_not_come_out(place: Place) -> None:
    write(place.folder / "a.log", prompt("\x1b[2Jwipe\x07 the \u202escreen\x9b31m"))
    assert place.search("wipe screen") == ["wipe the screen"]


# Issues and sessions


def test_a_session_is_told_with_its_issue_and_files(place: Place) -> None:
    path = write(place.folder / "sessions" / "a.jsonl", *ISSUE_AGENT)
    write(place.folder / "issues" / "12.json", {"issueNumber": 12, "sessionPath": "sessions/a.jsonl"})
    place.refresh()
    (outline,) = place.logs.sessions()
    begun = datetime(2026, 3, 1, 10, 0, 1, tzinfo=UTC)
    assert outline == SessionOutline(
        "5b1c",
        "Login loops after upgrade",
        begun,
        begun + timedelta(seconds=8),
        2,
        str(path),
        12,
        ("auth/cookie.py", "tests/test_cookie.py"),
    )
    thread = place.logs.session("5b1c")
    assert isinstance(thread, Thread)
    assert [event.source for event in thread.events] == [12]
    write(place.folder / "issues" / "12.json", {"issueNumber": 13, "sessionPath": "sessions/a.jsonl", "x": 1})
    assert place.refresh() == []
    assert [each.issue for each in place.logs.sessions()] == [13]
    (place.folder / "issues" / "12.json").unlink()
    place.refresh()
    assert [each.issue for each in place.logs.sessions()] == [None]


def test_a_session_that_is_not_there_is_none(place: Place) -> None:
    assert place.logs.session("h-1") is None


def test_a_session_in_several_files_is_told_in_order_of_time(place: Place) -> None:
    write(
        place.folder / "b.log",
        response("second", at="2026-01-02T00:00:00Z"),
        response("fourth", at="2026-01-04T00:00:00Z"),
    )
    write(
        place.folder / "a.log", prompt("first", at="2026-01-01T00:00:00Z"), prompt("third", at="2026-01-03T00:00:00Z")
    )
    place.refresh()
    thread = place.logs.session("h-1")
    assert isinstance(thread, Thread)
    assert [thread.title, *(each.text for each in thread.comments)] == ["first", "second", "third", "fourth"]


# Excerpts


def test_a_long_message_is_cut_to_where_the_words_are() -> None:
    text = "padding " * 200 + "the rare quagmire of retries " + "padding " * 200
    wanted = dict.fromkeys(terms("quagmire retries"), 1.0)
    shown = excerpt(text, "", wanted)
    assert len(shown) <= MAX_EXCERPT
    assert "rare quagmire of retries" in shown
    assert shown[0] == shown[-1] == "…"


@settings(max_examples=100, deadline=None)
@given(
    st.text(max_size=3_000),
    st.lists(st.text(max_size=60), max_size=8),
    st.lists(st.sampled_from(["word", "widget", "认证"]), max_size=3),
)
def test_an_excerpt_is_never_longer_than_it_may_be(text: str, files: list[str], wanted: list[str]) -> None:
    weights = {term: 1.0 for word in wanted for term in terms(word)}
    for words in (text, f"{text} word {text} widget", "x" * 400 + text * 3 + "认证"):
        assert len(excerpt(words, "\n".join(files), weights)) <= MAX_EXCERPT


def test_an_excerpt_of_a_whole_page_takes_no_long() -> None:
    begun = time.perf_counter()
    shown = excerpt("word widget " * 6_000, "", {"word": 1.0, "widget": 2.0})
    assert "word widget" in shown
    assert time.perf_counter() - begun < 2


# The file


def test_only_the_owner_may_read_the_file(place: Place) -> None:
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "damage", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4_000, "middle", "foreign", "older"]
)
def test_a_file_that_is_no_use_is_made_anew(tmp_path: Path, damage: bytes | str) -> None:
    place = Place(tmp_path)
    write(place.folder / "a.log", *(prompt(f"widget number{number} " + "x " * 100) for number in range(200)))
    place.refresh()
    place.logs.close()
    if isinstance(damage, bytes):
        place.path.write_bytes(damage)
    elif damage == "middle":
        data = bytearray(place.path.read_bytes())
        data[8_192:-4_096] = b"\xa5" * len(data[8_192:-4_096])
        place.path.write_bytes(data)
    elif damage == "foreign":
        place.path.unlink()
        sqlite3.connect(place.path).execute('CREATE TABLE "a ""table" (x)').connection.close()
    else:
        database = sqlite3.connect(place.path)
        database.execute("UPDATE facts SET value = '0' WHERE name = 'format'")
        database.execute("DROP TABLE texts")
        database.commit()
        database.close()
    place = Place(tmp_path)
    assert len(place.search("widget", 300)) == 200
    place.logs.close()


def test_damage_that_only_a_search_sees_is_told_and_mended(place: Place) -> None:
    write(place.folder / "a.log", prompt("first widget"))
    place.refresh()
    place.rows("DROP TABLE words")
    with pytest.raises(WorldError, match="was damaged and has been emptied; try again"):
        place.logs.search("widget")
    assert place.search("widget") == ["first widget"]


def test_a_disk_without_room_is_told_and_what_was_written_stays(place: Place) -> None:
    write(place.folder / "a.log", prompt("first widget"))
    place.refresh()
    write(place.folder / "b.log", *(prompt(f"another widget {number} " + "x" * 500) for number in range(900)))
    tiny = place.rows("PRAGMA page_count")[0][0]
    with place.limited(int(str(tiny)) + 5), pytest.raises(WorldError, match="cannot be used: database or disk is full"):
        place.refresh()
    assert [each.text for each in place.logs.search("widget", 1_000)] == ["first widget"]
    assert len(place.search("widget", 1_000)) == 901


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldError, match=r"cannot be used: .*; set XDG_CACHE_HOME to another folder"):
        SessionIndex(tmp_path / "file" / "logs.sqlite")


SEARCH = """
import sys
from pathlib import Path
from bot.local_cache.sessions import SessionIndex
from bot.sources.session_files import find_sessions
logs = SessionIndex(Path(sys.argv[1]))
def tell(_):
    print("portion", flush=True)
    sys.stdin.readline()
logs.refresh(find_sessions(["."], sys.argv[2]), tell)
print(len(logs.search("widget", 100_000)))
unwanted = {"numpy", "whoosh", "rich", "dataclasses", "bot.domain.thread", "bot.sources.session"}
print(sorted(unwanted & set(sys.modules)))
"""


def process(place: Place, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """A search as a process, which waits for a line after each portion that it has read, if it has an input."""
    command = [sys.executable, "-c", SEARCH, str(place.path), str(place.folder)]
    return subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(place: Place) -> tuple[list[str], str]:
    one = process(place)
    said, complaint = one.communicate(timeout=60)
    assert one.returncode == 0, complaint
    return said.splitlines(), complaint


def test_a_search_imports_nothing_that_it_has_no_use_for(place: Place) -> None:
    write(place.folder / "a.log", prompt("first widget"))
    place.refresh()
    assert run(place) == (["1", "[]"], "")


@pytest.mark.slow
def test_two_processes_at_once_read_everything_once(place: Place) -> None:
    count = 7_000
    write(place.folder / "a.log", *(prompt(f"widget word{number}") for number in range(count)))
    place.logs.close()
    place.path.unlink()
    with ThreadPoolExecutor(3) as pool:
        outcomes = list(pool.map(lambda _: run(place), range(3)))
    assert [said[-2] for said, _ in outcomes] == [str(count)] * 3
    assert place.rows("SELECT count(*), count(DISTINCT number) FROM passages") == [(count, count)]


@pytest.mark.slow
def test_a_process_that_is_killed_costs_at_most_a_portion(place: Place) -> None:
    count = 3 * logs_feed.BATCH
    write(place.folder / "a.log", *(prompt(f"widget word{number}") for number in range(count)))
    one = process(place, subprocess.PIPE)
    assert one.stdout is not None
    assert one.stdin is not None
    assert one.stdout.readline() == "portion\n"
    one.stdin.write("\n")
    one.stdin.flush()
    assert one.stdout.readline() == "portion\n"  # the first portion is written, the second only read
    one.send_signal(signal.SIGKILL)
    one.communicate()
    assert place.rows("SELECT count(*) >= 5000 FROM passages") == [(1,)]
    assert sum(place.refresh()) == count - logs_feed.BATCH
    assert len(place.search("widget", count + 1)) == count


def test_a_tick_that_raises_leaves_the_file_as_it_was(place: Place) -> None:
    write(place.folder / "a.log", prompt("first widget"))

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.logs.refresh(find_sessions(["."], str(place.folder)), stop)
    assert place.logs.search("widget") == []
    assert place.search("widget") == ["first widget"]
