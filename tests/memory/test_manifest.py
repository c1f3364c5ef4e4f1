"""The manifest: what it says of the index files, and what is left when it is damaged."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import LARGEST, DiscussionProgress, HistoryProgress
from bot.memory.manifest import (
    FORMAT,
    MAX_PENDING,
    ForeignFormat,
    LinkProgress,
    Manifest,
    decode_manifest,
    encode_manifest,
    limit_pending,
    next_pending,
)
from bot.memory.stored_index import damaged_files, file_hash, file_hashes
from bot.settings.schema import CommentSettings
from tests.memory.samples import at

FULL = Manifest(
    "1+x",
    at(5),
    12,
    3,
    (7, "ABC-1"),
    index={"MAIN_1.seg": "ab", "_MAIN_1.toc": "cd"},
    written=(at(4), at(5)),
)


def folder_with(tmp_path: Path, **files: bytes) -> Path:
    folder = tmp_path / "index"
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


LINKED = [LinkProgress(0), LinkProgress(7, (9, "ABC-1")), LinkProgress("ABC-1"), LinkProgress(None, (5,))]


@pytest.mark.parametrize("manifest", [Manifest(), FULL, *(replace(FULL, links=links) for links in LINKED)])
def test_a_manifest_comes_back_from_its_bytes(manifest: Manifest) -> None:
    assert decode_manifest(encode_manifest(manifest)) == manifest
    assert encode_manifest(decode_manifest(encode_manifest(manifest))) == encode_manifest(manifest)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"null", b"[]", b"5", b"{}", b"{" * 100_000, b"[" * 100_000, b'{"format": 1', b"<<<<<<< HEAD"],
)
def test_bytes_that_are_no_manifest_are_damaged(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - half of the messages are the library's
        decode_manifest(data)


@pytest.mark.parametrize("written", [5, "x", {}, ["x", None, 5, [], "9999-99-99T00:00:00Z"]])
def test_moments_of_comments_that_cannot_be_read_cost_nothing_else(written: object) -> None:
    fields = json.loads(encode_manifest(FULL)) | {"written": written}
    assert decode_manifest(json.dumps(fields).encode()) == replace(FULL, written=())


@given(st.lists(st.integers(0, 40_000), max_size=30))
def test_comments_of_any_24_hours_are_counted_in_whatever_order_they_come(minutes: list[int]) -> None:
    moments = [at(0) + timedelta(minutes=minute) for minute in minutes]
    one, other = Manifest(), Manifest()
    for moment in moments:
        one = one.with_written([moment])
    assert one == other.with_written(reversed(moments))
    newest = max(moments, default=at(0))
    assert one.written == tuple(sorted(m for m in moments if m > newest - timedelta(hours=24)))


def test_a_comment_counts_for_24_hours_and_no_longer() -> None:
    one = Manifest().with_written([at(0)])
    assert one.promised_within_day(at(0) + timedelta(hours=24, microseconds=-1)) == 1
    assert one.promised_within_day(at(0) + timedelta(hours=24)) == 0


def test_as_many_comments_are_counted_as_the_greatest_daily_limit() -> None:
    (most,) = (one.metadata["rule"].high for one in fields(CommentSettings) if one.name == "daily_limit")
    one = Manifest().with_written(at(0) + timedelta(seconds=number) for number in range(most + 1))
    assert one.promised_within_day(at(0)) == most
    assert decode_manifest(encode_manifest(one)).promised_within_day(at(0)) == most


@pytest.mark.parametrize(
    "wrong",
    [
        {"threads": -1}, {"threads": 1e999}, {"threads": 10**30}, {"threads": "5"}, {"tombstones": None},
        {"cursor": "then"}, {"cursor": 5}, {"pending": 5}, {"pending": [0]}, {"pending": [None]}, {"index": []},
        {"index": 5}, {"learned_from": -1}, {"learned_from": "x"},
    ],
)  # fmt: skip
def test_a_field_of_another_shape_is_damage(wrong: dict[str, object]) -> None:
    fields = json.loads(encode_manifest(FULL)) | wrong
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        decode_manifest(json.dumps(fields).encode())
    assert len(str(caught.value)) <= 120


@given(st.binary(max_size=9), st.integers(0, 300), st.integers(0, 9))
def test_damage_is_found_or_gives_a_manifest(junk: bytes, start: int, cut: int) -> None:
    data = encode_manifest(FULL)
    try:
        manifest = decode_manifest(data[:start] + junk + data[start + cut :])
    except (ValueError, ForeignFormat):
        return
    assert manifest.cursor is None or manifest.cursor.tzinfo is UTC
    assert decode_manifest(encode_manifest(manifest)) == manifest


def test_of_a_later_format_nothing_but_its_number_is_read() -> None:
    later = {"format": FORMAT + 1, "threads": {"open": 5}, "cursor": ["x"], "index": "elsewhere", "pending": -1}
    with pytest.raises(ForeignFormat) as caught:
        decode_manifest(json.dumps(later).encode())
    assert str(caught.value) == (
        "the memory has format 2, which a newer Precedent wrote; this one reads up to 1; "
        "raise the version in `uses:`, or where it is installed from a checkout, `git pull` there and install it again"
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("told", "shown"),
    [("99", "format 99, which a newer"), ("9" * 18, f"format {'9' * 18}, which a newer"),
     ("9" * 5000, "format inf, which no"), ("-" + "9" * 5000, "format -inf, which no"),
     ("1e999", "format inf, which no"), ("0", "format 0, which no"), ("-1", "format -1, which no"),
     ("1.0", "format 1.0, which no"),
     ("true", "format True, which no"), ("null", "format None, which no"), ('"1"', "format '1', which no"),
     ('"\\u001b[2J"', "format '\\x1b[2J', which no"), ("[1]", "format [1], which no"),
     (f'"{"x" * 999}"', "format 'xxxxxxxxxxxxxxxx..., which no")],
)  # fmt: skip
def test_a_format_that_nobody_writes_is_refused_in_one_short_line(told: str, shown: str) -> None:
    with pytest.raises(ForeignFormat) as caught:
        decode_manifest(f'{{"format": {told}}}'.encode())
    line = str(caught.value)
    assert shown in line
    assert "reads up to 1" in line
    assert line.isprintable()
    assert len(line) < 230


def test_a_cursor_without_a_zone_is_read_as_utc() -> None:
    assert decode_manifest(b'{"format": 1, "cursor": "2020-01-01T05:00:00"}').cursor == at(5)


def test_every_difference_between_the_folder_and_the_manifest_is_found(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, a=b"1", b=b"2", c=b"3")
    hashes = file_hashes(folder, {})
    assert damaged_files(hashes, folder) == []
    (folder / "a").write_bytes(b"9")
    (folder / "b").unlink()
    (folder / "d").write_bytes(b"4")
    assert damaged_files(hashes, folder) == ["a", "b", "d"]


def test_files_that_are_known_are_not_read_again(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, known=b"1", new=b"2")
    known = {"known": "as it was", "gone": "x"}
    assert file_hashes(folder, known) == {"known": "as it was", "new": file_hash(folder / "new")}


def test_a_promise_stays_until_it_is_kept() -> None:
    assert next_pending([1, 2, 3], [4, 2], [3]) == (1, 2, 4)
    assert next_pending([1], [1, 1], []) == (1,)
    assert next_pending([], [], [5]) == ()


def test_of_too_many_promises_the_newest_are_given_up() -> None:
    everybody = next_pending(range(MAX_PENDING), [999], [])
    assert limit_pending(everybody, (), {}) == tuple(range(MAX_PENDING))
    assert limit_pending(everybody, {999}, {}) == (*range(MAX_PENDING - 1), 999)
    assert limit_pending(everybody[:-1], (), {}) == everybody[:-1]


def test_who_opens_many_issues_pushes_out_their_own_promises() -> None:
    flood = dict.fromkeys(range(300), "mona")
    kept = limit_pending([*flood, 900, 901], (), {**flood, 300: "Mona", 900: "octocat", 901: "hubot"})
    assert kept == (*range(MAX_PENDING - 2), 900, 901)


@given(st.lists(st.integers(0, 400), unique=True, max_size=400), st.frozensets(st.integers(0, 400), max_size=50))
def test_of_any_promises_so_many_are_kept_in_their_order(pending: list[int], first: frozenset[int]) -> None:
    kept = limit_pending(pending, first, {key: "abc"[key % 3] for key in pending})
    assert len(kept) == min(len(pending), MAX_PENDING)
    assert list(kept) == [key for key in pending if key in kept]
    assert first & set(pending) <= set(kept)


# A reading of the whole history


numbers = st.frozensets(st.integers(0, 3_000), max_size=40)
moments = st.integers(0, 10**9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
readings = st.builds(HistoryProgress, moments, st.none() | moments, numbers)


@given(readings)
def test_how_far_a_reading_has_come_is_read_as_it_was_written(reading: HistoryProgress) -> None:
    assert decode_manifest(encode_manifest(Manifest(reading=reading))).reading == reading


@given(readings, readings, readings)
def test_readings_are_put_together_in_any_order(
    one: HistoryProgress, two: HistoryProgress, three: HistoryProgress
) -> None:
    assert one.merge(two) == two.merge(one)
    assert one.merge(two).merge(three) == one.merge(two.merge(three))
    assert one.merge(one) == one


@given(readings, readings)
def test_a_reading_that_began_before_one_that_is_at_its_end_is_over(one: HistoryProgress, two: HistoryProgress) -> None:
    manifest = Manifest().with_reading(one, None).with_reading(None, two.began).with_reading(one, None)
    assert manifest.read_whole == two.began
    assert manifest.reading == (one if one.began > two.began else None)


@pytest.mark.parametrize(
    "reading",
    [0, "x", [], {}, {"began": "2026-01-01T00:00:00Z"}, {"began": "soon", "seen": ""}, {"began": None, "seen": "AA=="},
     {"began": "2026-01-01T00:00:00Z", "seen": "!"}, {"began": "2026-01-01T00:00:00Z", "upto": 5, "seen": "AA=="}],
)  # fmt: skip
def test_a_reading_that_makes_no_sense_is_begun_anew(reading: object) -> None:
    fields = json.loads(encode_manifest(Manifest(cursor=datetime(2026, 1, 1, tzinfo=UTC))))
    found = decode_manifest(json.dumps(fields | {"reading": reading}).encode())
    assert (found.reading, found.cursor) == (None, datetime(2026, 1, 1, tzinfo=UTC))


readings_of_discussions = st.builds(
    DiscussionProgress, moments, st.none() | moments, st.text("abc=", max_size=9), st.booleans()
)


@given(readings_of_discussions)
def test_how_far_discussions_were_read_is_read_as_it_was_written(read: DiscussionProgress) -> None:
    assert decode_manifest(encode_manifest(Manifest(discussions=read))).discussions == read


@given(readings_of_discussions, readings_of_discussions, readings_of_discussions)
def test_readings_of_discussions_are_put_together_in_any_order(
    one: DiscussionProgress, two: DiscussionProgress, three: DiscussionProgress
) -> None:
    manifests = [
        Manifest().with_discussions(first).with_discussions(second) for first, second in ((one, two), (two, one))
    ]
    assert manifests[0] == manifests[1]
    assert one.merge(two).merge(three) == one.merge(two.merge(three))


def test_a_finished_reading_of_discussions_wins_over_one_that_began_with_it_but_not_over_a_later_one() -> None:
    began, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    done, half = DiscussionProgress(began, began, is_done=True), DiscussionProgress(began, later, "abc")
    assert done.merge(half) == half.merge(done) == done
    assert done.merge(DiscussionProgress(later)) == DiscussionProgress(later)


@pytest.mark.parametrize(
    "read",
    [0, "x", [], {}, {"began": "2026-01-01T00:00:00Z"}, {"began": "soon", "after": "", "done": True},
     {"began": "2026-01-01T00:00:00Z", "after": "x" * 201, "done": False},
     {"began": "2026-01-01T00:00:00Z", "after": "", "done": True, "upto": 5}],
)  # fmt: skip
def test_a_reading_of_discussions_that_makes_no_sense_is_begun_anew(read: object) -> None:
    fields = json.loads(encode_manifest(Manifest(cursor=datetime(2026, 1, 1, tzinfo=UTC))))
    found = decode_manifest(json.dumps(fields | {"discussions": read}).encode())
    assert (found.discussions, found.cursor) == (None, datetime(2026, 1, 1, tzinfo=UTC))


def test_what_was_read_of_discussions_does_not_count_where_the_branch_went_back() -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    known, further = DiscussionProgress(began, began, "abc"), DiscussionProgress(began, began, is_done=True)
    went_on, went_back = Manifest(discussions=known), Manifest()
    assert went_on.valid_discussions(further, Manifest(discussions=known)) == further
    assert went_back.valid_discussions(further, Manifest(discussions=known)) is None
    assert went_back.valid_discussions(further, Manifest()) == further


def test_only_so_many_numbers_are_kept_of_a_reading() -> None:
    reading = HistoryProgress(datetime(2026, 1, 1, tzinfo=UTC), None, frozenset({1, LARGEST, 10**15}))
    found = decode_manifest(encode_manifest(Manifest(reading=reading))).reading
    assert found is not None
    assert found.seen == {1}


@pytest.mark.parametrize(
    "links",
    [5, "all", [], {}, {"down_to": -1}, {"down_to": True}, {"down_to": []}, {"down_to": 3, "behind": [None]}],
)
def test_where_the_progress_of_clusters_makes_no_sense_all_threads_are_compared_again(links: object) -> None:
    data = json.dumps(json.loads(encode_manifest(FULL)) | {"links": links}).encode()
    assert decode_manifest(data) == FULL


def test_only_a_change_of_a_thread_that_was_compared_is_noted() -> None:
    progress = LinkProgress(50).with_changed([49, 50, 51, "ABC-1", 51])
    assert progress == LinkProgress(50, (50, 51, "ABC-1"))
    assert progress.with_compared({51}, 20) == LinkProgress(20, (50, "ABC-1"))
    assert progress.with_compared({50, 51, "ABC-1"}, 90) == LinkProgress(50)
    assert LinkProgress().with_changed([1]) == LinkProgress()


def test_how_far_threads_were_compared_holds_only_where_nobody_else_began_or_went_on() -> None:
    known, further = Manifest(links=LinkProgress(50)), Manifest(links=LinkProgress(20))
    assert known.valid_link_progress(10, known) == 10
    assert further.valid_link_progress(10, known) is None
    assert Manifest().valid_link_progress(10, Manifest()) is None
