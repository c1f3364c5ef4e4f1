"""The manifest: index hashes, pending answers, reading progress, and what survives damage."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.changes import TRACKED_NUMBER_LIMIT, DiscussionProgress, HistoryProgress
from bot.memory.manifest import (
    FORMAT,
    MAX_PENDING,
    ForeignFormat,
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


@pytest.mark.parametrize("manifest", [Manifest(), FULL, FULL.with_remembered([(7, at(5)), ("ABC-1", at(6))])])
def test_a_manifest_round_trips_through_its_bytes(manifest: Manifest) -> None:
    assert decode_manifest(encode_manifest(manifest)) == manifest
    assert encode_manifest(decode_manifest(encode_manifest(manifest))) == encode_manifest(manifest)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"null", b"[]", b"5", b"{}", b"{" * 100_000, b"[" * 100_000, b'{"format": 1', b"<<<<<<< HEAD"],
)
def test_bytes_that_are_not_a_manifest_raise_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - half of the messages are the library's
        decode_manifest(data)


def changed(manifest: Manifest, **fields: object) -> bytes:
    """The bytes of a manifest with other fields."""
    return json.dumps(json.loads(encode_manifest(manifest)) | fields).encode()


AT = "2026-01-01T00:00:00Z"
WRONG_READING = ({"began": "soon"}, {"began": None}, {"seen": "!"}, {"upto": 5})
WRONG_DISCUSSIONS = ({"began": "soon"}, {"after": "x" * 201}, {"upto": 5})
MALFORMED: dict[str, list[object]] = {
    "written": [5, "x", {}, ["x", None, 5, [], "9999-99-99T00:00:00Z"]],
    "reading": [0, "x", [], {}, *({"began": AT, "seen": "AA=="} | wrong for wrong in WRONG_READING)],
    "discussions": [
        *(0, "x", [], {}),
        *({"began": AT, "after": "", "is_done": True} | wrong for wrong in WRONG_DISCUSSIONS),
    ],
    "remembered": [5, "x", {}, [5, [7], [7, "soon"]]],
}
"""A field that is read as nothing, so that this is read or compared again, instead of costing the whole manifest."""


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in MALFORMED.items() for value in values])
def test_a_malformed_progress_costs_nothing_else(name: str, value: object) -> None:
    manifest = replace(FULL, written=())
    assert decode_manifest(changed(manifest, **{name: value})) == manifest


@given(st.lists(st.integers(0, 1_439), max_size=30))
def test_comments_of_24_hours_are_counted_in_any_order(minutes: list[int]) -> None:
    times = [at(0) + timedelta(minutes=minute) for minute in minutes]
    manifest, other = Manifest(), Manifest()
    for moment in times:
        manifest = manifest.with_written([moment])
    assert manifest == other.with_written(reversed(times))
    assert manifest.written == tuple(sorted(times))


def test_a_comment_counts_for_24_hours_and_no_longer() -> None:
    by_a_wrong_clock = Manifest().with_written([at(9_000)])
    assert by_a_wrong_clock.promised_within_day(at(0)) == 0
    manifest = by_a_wrong_clock.with_written([at(0)])
    assert manifest.written == (at(0),)
    assert manifest.promised_within_day(at(0) + timedelta(hours=24, microseconds=-1)) == 1
    assert manifest.promised_within_day(at(0) + timedelta(hours=24)) == 0


def test_comments_are_counted_up_to_the_highest_daily_limit() -> None:
    (maximum,) = (one.metadata["rule"].high for one in fields(CommentSettings) if one.name == "daily_limit")
    one = Manifest().with_written(at(0) + timedelta(seconds=number) for number in range(maximum + 1))
    assert one.promised_within_day(at(0)) == maximum
    assert decode_manifest(encode_manifest(one)).promised_within_day(at(0)) == maximum


WRONG: dict[str, list[object]] = {
    "threads": [-1, 1e999, 10**30, "5"],
    "layout": [None],
    "cursor": ["then", 5],
    "pending": [5, [0], [None]],
    "index": [[], 5],
    "learned_from": [-1, "x"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_field_with_another_shape_counts_as_damage(name: str, value: object) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        decode_manifest(changed(FULL, **{name: value}))
    assert len(str(caught.value)) <= 120


@given(st.binary(max_size=9), st.integers(0, 300), st.integers(0, 9))
def test_damaged_bytes_are_refused_or_still_a_manifest(junk: bytes, start: int, cut: int) -> None:
    data = encode_manifest(FULL)
    try:
        manifest = decode_manifest(data[:start] + junk + data[start + cut :])
    except (ValueError, ForeignFormat):
        return
    assert manifest.cursor is None or manifest.cursor.tzinfo is UTC
    assert decode_manifest(encode_manifest(manifest)) == manifest


def test_only_the_number_of_a_later_format_is_read_and_the_error_is_as_documented() -> None:
    later = {"format": FORMAT + 1, "threads": {"open": 5}, "cursor": ["x"], "index": "elsewhere", "pending": -1}
    with pytest.raises(ForeignFormat) as caught:
        decode_manifest(json.dumps(later).encode())
    page = (Path(__file__).parents[2] / "docs/upgrades.md").read_text(encoding="utf-8")
    assert f"\n{caught.value}\n" in page
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("stored_format", "description"),
    [("99", "format 99, which a newer"), ("9" * 18, f"format {'9' * 18}, which a newer"),
     ("9" * 5000, "format inf, which this"), ("-" + "9" * 5000, "format -inf, which this"),
     ("1e999", "format inf, which this"), ("0", "format 0, which this"), ("-1", "format -1, which this"),
     ("1.0", "format 1.0, which this"),
     ("true", "format True, which this"), ("null", "format None, which this"), ('"1"', "format '1', which this"),
     ('"\\u001b[2J"', "format '\\x1b[2J', which this"), ("[1]", "format [1], which this"),
     (f'"{"x" * 999}"', "format 'xxxxxxxxxxxxxxxx..., which this")],
)  # fmt: skip
def test_another_format_is_refused_in_one_short_line_with_the_way_out(stored_format: str, description: str) -> None:
    with pytest.raises(ForeignFormat) as caught:
        decode_manifest(f'{{"format": {stored_format}}}'.encode())
    message = str(caught.value)
    assert description in message
    assert ("git pull" if "newer" in description else "this one reads only 2; delete the branch") in message
    assert message.isprintable()
    assert len(message) < 230


def test_a_cursor_without_a_zone_is_read_as_utc() -> None:
    assert decode_manifest(b'{"format": 2, "cursor": "2020-01-01T05:00:00"}').cursor == at(5)


def test_every_difference_between_the_folder_and_the_manifest_is_found(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, a=b"1", b=b"2", c=b"3")
    hashes = file_hashes(folder, {})
    assert damaged_files(hashes, folder) == []
    (folder / "a").write_bytes(b"9")
    (folder / "b").unlink()
    (folder / "d").write_bytes(b"4")
    assert damaged_files(hashes, folder) == ["a", "b", "d"]


def test_files_with_known_hashes_are_not_read_again(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, known=b"1", new=b"2")
    known_hashes = {"known": "as it was", "gone": "x"}
    assert file_hashes(folder, known_hashes) == {"known": "as it was", "new": file_hash(folder / "new")}


def test_an_answer_stays_pending_until_it_is_given() -> None:
    assert next_pending([1, 2, 3], [4, 2], [3]) == (1, 2, 4)
    assert next_pending([1], [1, 1], []) == (1,)
    assert next_pending([], [], [5]) == ()


def test_the_newest_of_too_many_pending_answers_are_dropped() -> None:
    pending = next_pending(range(MAX_PENDING), [999], [])
    assert limit_pending(pending, (), {}) == tuple(range(MAX_PENDING))
    assert limit_pending(pending, {999}, {}) == (*range(MAX_PENDING - 1), 999)
    assert limit_pending(pending[:-1], (), {}) == pending[:-1]


def test_an_author_of_many_issues_displaces_only_their_own_pending_answers() -> None:
    flood = dict.fromkeys(range(300), "mona")
    kept = limit_pending([*flood, 900, 901], (), {**flood, 300: "Mona", 900: "octocat", 901: "hubot"})
    assert kept == (*range(MAX_PENDING - 2), 900, 901)


@given(st.lists(st.integers(0, 400), unique=True, max_size=400), st.frozensets(st.integers(0, 400), max_size=50))
def test_pending_answers_are_limited_and_keep_their_order(pending: list[int], first: frozenset[int]) -> None:
    kept = limit_pending(pending, first, {key: "abc"[key % 3] for key in pending})
    assert len(kept) == min(len(pending), MAX_PENDING)
    assert list(kept) == [key for key in pending if key in kept]
    assert first & set(pending) <= set(kept)


# Progress of bulk reading


thread_numbers = st.frozensets(st.integers(0, 3_000), max_size=40)
times = st.integers(0, 10**9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
history_progress = st.builds(HistoryProgress, times, st.none() | times, thread_numbers)


@given(history_progress, history_progress, history_progress)
def test_history_progress_merges_the_same_in_any_order(
    one: HistoryProgress, two: HistoryProgress, three: HistoryProgress
) -> None:
    assert one.merge(two) == two.merge(one)
    assert one.merge(two).merge(three) == one.merge(two.merge(three))
    assert one.merge(one) == one


@given(history_progress, history_progress)
def test_a_reading_that_began_before_a_finished_one_is_over(one: HistoryProgress, two: HistoryProgress) -> None:
    manifest = Manifest().with_reading(one, None).with_reading(None, two.began).with_reading(one, None)
    assert manifest.read_whole == two.began
    assert manifest.reading == (one if one.began > two.began else None)


discussion_progress = st.builds(
    DiscussionProgress, times, st.none() | times, st.text("abc=", max_size=9), st.booleans()
)


@given(history_progress, discussion_progress)
def test_progress_round_trips(reading: HistoryProgress, read: DiscussionProgress) -> None:
    manifest = Manifest(reading=reading, discussions=read)
    assert decode_manifest(encode_manifest(manifest)) == manifest


@given(discussion_progress, discussion_progress, discussion_progress)
def test_discussion_progress_merges_the_same_in_any_order(
    one: DiscussionProgress, two: DiscussionProgress, three: DiscussionProgress
) -> None:
    manifests = [
        Manifest().with_discussions(earlier).with_discussions(later) for earlier, later in ((one, two), (two, one))
    ]
    assert manifests[0] == manifests[1]
    assert one.merge(two).merge(three) == one.merge(two.merge(three))


def test_finished_discussion_progress_wins_unless_the_other_began_later() -> None:
    done, half = DiscussionProgress(at(0), at(0), is_done=True), DiscussionProgress(at(0), at(1), "abc")
    assert done.merge(half) == half.merge(done) == done
    assert done.merge(DiscussionProgress(at(1))) == DiscussionProgress(at(1))


def test_discussion_progress_does_not_count_if_the_branch_was_set_back() -> None:
    known, further = DiscussionProgress(at(0), at(0), "abc"), DiscussionProgress(at(0), at(0), is_done=True)
    assert Manifest(discussions=known).valid_discussions(further, Manifest(discussions=known)) == further
    assert Manifest().valid_discussions(further, Manifest(discussions=known)) is None
    assert Manifest().valid_discussions(further, Manifest()) == further


def test_too_large_numbers_are_dropped_from_history_progress() -> None:
    reading = HistoryProgress(at(0), None, frozenset({1, TRACKED_NUMBER_LIMIT, 10**15}))
    assert decode_manifest(encode_manifest(Manifest(reading=reading))).reading == replace(reading, seen=frozenset({1}))
