"""Similar threads: closed and open ones apart, duplicates folded, nothing shown twice."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from bot.domain.answer import Match
from bot.domain.thread import Kind, Thread, Tombstone
from bot.index.document import entry_of
from bot.memory.memory import Memory
from bot.reading.digest import digest
from bot.recall.similar import Limits, SimilarThreads, find_candidates, find_similar, is_next_in_series
from bot.sources.archive_file import read_archive
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, duplicate, message, similar, thread

SAMPLE = Path(__file__).resolve().parents[2] / "sample" / "history.jsonl"
TITLE = "Login loops after the upgrade"
BODY = "The session cookie is refused behind the proxy: SESSION_PATH_MISMATCH in auth/cookie.py, again and again."
LOG = " ".join(f"unit{n} compiled part{n % 7} of module{n % 13};" for n in range(300))
LIMITS = Limits(floor=0.65, closed=3, open=2, budget=12_000)
EVERYTHING = Limits(floor=0.0, closed=3, open=2, budget=12_000)

FILLER = tuple(
    thread(n, f"{noun} is slow", f"When the {noun} grows, {verb} takes a minute; it was quick in the release before.")
    for n, (noun, verb) in enumerate(
        [
            ("table", "sorting"),
            ("importer", "reading"),
            ("calendar", "scrolling"),
            ("search", "typing"),
            ("map", "zooming"),
        ],
        start=101,
    )
)


def ask(
    memory: Memory, question: Thread | None = None, limits: Limits = LIMITS, skip: tuple[int, ...] = ()
) -> list[list[Match]]:
    question = question or thread(500, TITLE, BODY)
    return [list(part) for part in similar(question, memory, None, skip, limits)]


def ids(matches: list[list[Match]]) -> list[list[int | str]]:
    return [[match.id for match in part] for part in matches]


def test_closed_and_open_threads_are_shown_apart(remember: Remember) -> None:
    matches = ask(remember(closed(1, TITLE, BODY), thread(2, TITLE, BODY, author="hubot"), *FILLER))
    assert ids(matches) == [[1], [2]]
    assert matches[0][0].conversation[0].author == "monalisa"
    assert matches[1][0].conversation == ()


def test_threads_shown_before_stay_even_below_the_floor_and_within_the_limit(remember: Remember) -> None:
    memory = remember(*(closed(n, f"{TITLE} {n}", BODY) for n in range(1, 5)), *FILLER)
    (shown, _) = ids(ask(memory))
    (hidden,) = {1, 2, 3, 4} - set(shown)
    strict = Limits(floor=1.0, closed=3, open=2, budget=12_000)
    assert ids(ask(memory, limits=strict)) == [[], []]
    assert ids(ask(memory, limits=replace(strict, kept=frozenset({hidden})))) == [[hidden], []]
    (again, _) = ids(ask(memory, limits=replace(LIMITS, kept=frozenset({hidden, shown[0]}))))
    assert {hidden, shown[0]} < set(again)
    assert len(again) == 3


def test_a_thread_that_is_not_similar_is_not_shown(remember: Remember) -> None:
    assert ids(ask(remember(*FILLER))) == [[], []]


def test_every_match_reaches_the_floor_and_better_ones_come_first(remember: Remember) -> None:
    near = closed(2, "Login fails", "The session cookie is refused after the upgrade, behind the proxy.")
    alike = closed(1, TITLE, "The session cookie is refused behind the proxy.")
    memory = remember(alike, near, *FILLER)
    matches, _ = ask(memory, limits=EVERYTHING)
    assert [match.id for match in matches][:2] == [1, 2]
    assert all(a.similarity >= b.similarity for a, b in pairwise(matches))
    floor = matches[1].similarity + 0.001
    assert ids(ask(memory, limits=Limits(floor, 3, 2, 12_000))) == [[1], []]


def test_no_more_threads_are_shown_than_the_settings_allow(remember: Remember) -> None:
    alike = [
        *(closed(n, TITLE, BODY) for n in range(1, 6)),
        *(thread(n, TITLE, BODY, role="MEMBER") for n in range(7, 11)),
    ]
    memory = remember(*alike, *FILLER)
    assert [len(part) for part in ask(memory)] == [3, 2]
    assert [len(part) for part in ask(memory, limits=Limits(0.0, 1, 0, 12_000))] == [1, 0]


def test_among_copies_the_oldest_comes_first_and_then_the_smaller_id(remember: Remember) -> None:
    memory = remember(
        closed(7, TITLE, BODY, days=3), closed(6, TITLE, BODY, days=4), closed(5, TITLE, BODY, days=4), *FILLER
    )
    assert ids(ask(memory)) == [[7, 5, 6], []]


def test_among_copies_one_with_an_ending_comes_before_an_older_open_one(remember: Remember) -> None:
    memory = remember(thread(5, TITLE, BODY, days=3), closed(6, TITLE, BODY, days=4), *FILLER)
    seen, still_open = ask(memory)
    assert seen[0].similarity == still_open[0].similarity
    assert find_similar(thread(500, TITLE, BODY), memory, None, (), LIMITS).nearest[0].id == 6


def test_an_issue_that_nobody_answered_is_shown_only_if_it_is_the_same(remember: Remember) -> None:
    somewhat = "The session cookie is refused after the upgrade, behind the proxy."
    for text, is_shown in (
        ("No response for months, closing.", False),
        ("Obsolete since the new proxy, closing.", True),
    ):
        word = message(text, 3.5, "hubot", "MEMBER")
        silent = closed(3, "Login fails", somewhat, comments=(word,))
        assert ids(ask(remember(silent, *FILLER))) == [[3] if is_shown else [], []], text
        same = closed(3, TITLE, BODY, comments=(word,))
        assert ids(ask(remember(same, *FILLER))) == [[3], []], text


def test_next_to_a_copy_nothing_is_shown_that_is_only_somewhat_alike(remember: Remember) -> None:
    somewhat = closed(5, "Login fails", "The session cookie is refused after the upgrade, behind the proxy.", days=4)
    assert ids(ask(remember(somewhat, *FILLER))) == [[5], []]
    assert ids(ask(remember(somewhat, thread(6, TITLE, BODY, days=3), *FILLER))) == [[], [6]]


UMBRELLA = "All requests that wait:\n\n" + "\n".join(f"- #{number} something" for number in range(2, 12))


def test_a_thread_that_was_closed_in_favour_of_a_list_is_shown_itself(remember: Remember) -> None:
    collected = duplicate(7, 6, TITLE, BODY)
    (single,) = ask(remember(thread(6, "Sessions and proxies", "Sessions get lost."), collected, *FILLER))[1]
    assert (single.id, "same title" in single.why) == (6, False)
    ((shown,), _) = ask(remember(thread(6, "Wishes", UMBRELLA), collected, *FILLER))
    assert (shown.id, shown.title, shown.why[0]) == (7, TITLE, "same text")


def test_an_answer_of_years_ago_is_found_as_well_as_one_of_last_month(remember: Remember) -> None:
    old, fresh = closed(1, TITLE, BODY, days=1), closed(2, TITLE, BODY, days=1450)
    for answer in (old, fresh):
        seen, _ = ask(remember(answer, *FILLER), thread(5000, TITLE, BODY, days=1500))
        assert seen[0].similarity >= LIMITS.floor


def test_without_an_index_there_are_no_matches_and_no_error(remember: Remember) -> None:
    library = remember(closed(1, TITLE, BODY), *FILLER)
    library.search, library.rarity = lambda _, **__: [], lambda _, **__: {}  # type: ignore[method-assign]
    assert similar(thread(500, TITLE, BODY), library, None, (), LIMITS) == ((), ())


def test_the_same_question_has_the_same_answer(remember: Remember) -> None:
    memory = remember(*(closed(n, TITLE, BODY) for n in range(1, 7)), *FILLER)
    assert ask(memory) == ask(memory)


# Which threads take part


def test_the_thread_itself_and_younger_ones_are_left_out(remember: Remember) -> None:
    memory = remember(thread(500, TITLE, BODY), closed(501, TITLE, BODY), *FILLER)
    assert ids(ask(memory)) == [[], []]


def test_pull_requests_are_dropped(remember: Remember) -> None:
    assert ids(ask(remember(closed(1, TITLE, BODY, kind=Kind.PULL), *FILLER))) == [[], []]


def test_a_deleted_thread_is_not_shown(remember: Remember) -> None:
    remember(closed(1, TITLE, BODY), *FILLER)
    assert ids(ask(remember(Tombstone(1, at(90))))) == [[], []]


def test_a_thread_that_is_referenced_already_is_dropped(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), closed(2, TITLE, BODY), *FILLER)
    assert ids(ask(memory, skip=(1,))) == [[2], []]


def test_a_duplicate_of_a_referenced_thread_is_dropped_with_it(remember: Remember) -> None:
    memory = remember(closed(1, "Sessions", "Something else."), duplicate(2, of=1, title=TITLE, body=BODY), *FILLER)
    assert ids(ask(memory, skip=(1,))) == [[], []]


@pytest.mark.parametrize("title", [".", "\U0001f41b", "???", "Same thing again"])
def test_a_title_without_a_word_leaves_the_text_to_be_compared(remember: Remember, title: str) -> None:
    memory = remember(closed(2, TITLE, BODY), *FILLER)
    assert ids(ask(memory, thread(500, title, BODY))) == [[2], []]
    assert ids(ask(memory, thread(500, title, "### Steps to reproduce\n\n### Expected behavior\n"))) == [[], []]


def test_an_identical_title_is_a_candidate_however_long_the_log(remember: Remember) -> None:
    logs = [closed(n, f"Build {n}", f"{LOG} step {n} of {n + 1}", author=f"user{n}") for n in range(10, 300)]
    memory = remember(closed(1, "Thumbnails are upside down", "Photos too."), *logs)
    question = thread(500, "Thumbnails are upside down", LOG)
    assert 1 in {each.entry.id for each in find_candidates(question, memory, None, ()).candidates}


@pytest.mark.parametrize(
    ("title", "author", "days", "is_shown"),
    [
        (f"{TITLE}: the other cookie", "hubot", 2.9, False),
        (f"{TITLE}: the other cookie", "monalisa", 2.9, True),
        (f"{TITLE}: the other cookie", "hubot", 9, True),
        (TITLE, "hubot", 2.9, True),
    ],
)
def test_parts_of_one_thing_that_one_person_reports_in_a_day_are_not_shown_on_each_other(
    remember: Remember, title: str, author: str, days: float, *, is_shown: bool
) -> None:
    memory = remember(closed(2, TITLE, BODY, author="hubot", closed_by="octocat"), *FILLER)
    question = thread(500, title, BODY, days=days, author=author)
    assert (2 in ids(ask(memory, question, EVERYTHING))[0]) is is_shown


@pytest.mark.parametrize("count", [1, 3, 10, 30])
def test_open_repeats_of_an_error_do_not_hide_its_known_fix(remember: Remember, count: int) -> None:
    log = "```\nauth WARNING SESSION_PATH_MISMATCH cookie path '/' but base path '/links'\n```"
    words = ["Nothing works", "It stopped", "Please help", "All of a sudden", "No idea why", "Since today"]
    repeats = [
        thread(300 + n, f"{words[n % 6]} {n}", f"{words[n % 5]}.\n\n{log}", author=f"user{n}", days=300 + n / 50)
        for n in range(count)
    ]
    fixed = closed(2, "Login loop after the upgrade", f"Again and again.\n\n{log}")
    question = thread(500, "Logged out all the time", f"Cannot stay in.\n\n{log}", days=301)
    others = [thread(n, f"Topic {n}", f"Word{n} and thing{n} are odd.") for n in range(10, 80)]
    alone, crowded = (
        ask(memory, question, EVERYTHING)[0][0]
        for memory in (remember(fixed, *others), remember(fixed, *others, *repeats))
    )
    assert (alone.id, crowded.id) == (2, 2)
    assert crowded.similarity > alone.similarity - 0.05


def test_a_rare_error_in_the_same_words_is_shown_however_much_else_differs(remember: Remember) -> None:
    """A bare exception, or the same words around another name, is not enough."""
    error = "linkbarn: no cookie left in the jar of `{}`"
    old = closed(1, "Nightly build stops", f"{LOG}\n\n```\nfatal: {error.format('monalisa')}\n```\n\n{LOG}")
    memory = remember(old, *FILLER)
    body = "I followed the tutorial, and all I get is this:\n\n```\n{}\n```"
    lines = {f"fatal: {error.format('monalisa')}": [1], f"fatal: {error.format('hubot')}": [], "TypeError": []}
    for line, shown in lines.items():
        assert ids(ask(memory, thread(500, "What can I do?", body.format(line))))[0] == shown, line


def test_a_line_that_many_threads_were_closed_with_is_boilerplate(remember: Remember) -> None:
    line = "error: the widget exporter returned code 7"
    memory = remember(*(closed(n, f"Topic {n} is odd", line) for n in range(10, 40)), *FILLER)
    assert ids(ask(memory, thread(500, "Another thing altogether", line))) == [[], []]


def test_a_thread_that_shares_no_more_than_a_link_is_not_shown(remember: Remember) -> None:
    link = "https://lists.example.org/archives/public/sessions/0925.html"
    assert ids(ask(remember(closed(1, "Flow control", link), *FILLER), thread(500, "Header compression", link))) == [
        [],
        [],
    ]


def test_reports_of_one_author_that_differ_in_numbers_only_are_a_series() -> None:
    cases = [
        ("Weekly Digest (2 June, 2019 - 9 June, 2019)", "Weekly Digest (26 May, 2019 - 2 June, 2019)", True),
        ("Release 2.3.0 checklist", "Release 2.10.1 checklist", True),
        ("Section 8.4", "Section 15.1", True),
        ("Section 8.4", "Section 8.4", False),
        ("Crash on start", "Crash at the end", False),
        ("Marching ants", "Maybe ants", False),
    ]
    for ours, theirs, is_series in cases:
        older = thread(1, theirs)
        entry = entry_of(older, digest(older))
        assert is_next_in_series(thread(2, ours), entry) is is_series, ours
        assert not is_next_in_series(thread(2, ours, author="octocat"), entry), ours


def test_the_reports_of_a_series_are_not_shown_to_each_other(remember: Remember) -> None:
    body = "Here is the digest of last week: one issue was opened, none was closed, nobody contributed."
    memory = remember(closed(1, "Digest of 2 June 2019", body), *FILLER)
    assert 1 not in ids(ask(memory, thread(500, "Digest of 9 June 2019", body), EVERYTHING))[0]
    assert 1 in ids(ask(memory, thread(500, "Digest of 9 June 2019", body, author="octocat"), EVERYTHING))[0]


# Duplicates


def test_a_hit_on_a_duplicate_counts_for_its_canonical_issue(remember: Remember) -> None:
    canonical = closed(
        1, "Cookies of 2.1", "Two cookies with one name.", comments=(message("Fixed in 2.3.", 1.4, "hubot", "MEMBER"),)
    )
    (match,), still_open = ask(remember(canonical, duplicate(2, of=1, title=TITLE, body=BODY), *FILLER))
    assert (match.id, match.title, still_open) == (1, "Cookies of 2.1", [])
    assert "Two cookies with one name." in match.conversation[0].text
    assert match.why


def test_several_duplicates_of_one_issue_are_one_match(remember: Remember) -> None:
    twins = [duplicate(n, of=1, title=TITLE, body=BODY) for n in (2, 3, 4)]
    assert ids(ask(remember(closed(1, TITLE, BODY), *twins, *FILLER))) == [[1], []]


def test_a_chain_of_duplicates_is_folded_into_its_end(remember: Remember) -> None:
    chain = [duplicate(3, of=2, title=TITLE, body=BODY), duplicate(2, of=1, title="Other words", body="Entirely.")]
    assert ids(ask(remember(thread(1, "Cookies of 2.1"), *chain, *FILLER))) == [[], [1]]


def test_a_cycle_of_duplicates_is_one_match(remember: Remember) -> None:
    memory = remember(duplicate(2, of=3, title=TITLE, body=BODY), duplicate(3, of=2, title=TITLE, body=BODY), *FILLER)
    matches, still_open = ids(ask(memory))
    assert still_open == []
    assert len(matches) in (1, 2)
    assert set(matches) <= {2, 3}


def test_a_duplicate_of_something_unknown_stands_for_itself(remember: Remember) -> None:
    assert ids(ask(remember(duplicate(2, of=77, title=TITLE, body=BODY), *FILLER))) == [[2], []]


# As of an earlier time


def test_a_thread_that_was_open_at_the_time_is_shown_as_open(remember: Remember) -> None:
    late = message("Fixed by #8.", 30, "hubot", "MEMBER")
    memory = remember(closed(1, TITLE, BODY, after=29, comments=(late,)), *FILLER)
    question = thread(500, TITLE, BODY, days=20)
    seen, still_open = similar(question, memory, question.created_at, (), LIMITS)
    assert (seen, [m.id for m in still_open]) == ((), [1])
    assert still_open[0].turn_count == 1
    assert still_open[0].closed_at is None


def test_a_thread_that_became_a_duplicate_later_stands_for_itself(remember: Remember) -> None:
    twin = closed(2, TITLE, BODY, after=28, comments=(message("Duplicate of #1.", 29, "hubot", "MEMBER"),))
    memory = remember(thread(1, "Cookies of 2.1"), twin, *FILLER)
    question = thread(500, TITLE, BODY, days=20)
    assert [m.id for m in similar(question, memory, question.created_at, (), LIMITS)[1]] == [2]


# Budgets


def conversation_length(match: Match) -> int:
    return sum(turn.length for turn in match.conversation)


def test_the_budget_is_shared_in_proportion_and_never_exceeded(remember: Remember) -> None:
    talk = tuple(message(f"{n} " + "word " * 80, 30 + n) for n in range(60))
    memory = remember(*(closed(n, TITLE, BODY, comments=talk) for n in (1, 2, 3)), *FILLER)
    matches, _ = ask(memory)
    assert len(matches) == 3
    assert sum(map(conversation_length, matches)) <= 12_000
    assert all(3_000 < conversation_length(match) <= 4_000 for match in matches)
    assert 11_000 < conversation_length(ask(memory, limits=Limits(0.65, 1, 0, 12_000))[0][0]) <= 12_000


def test_a_thread_that_shares_nothing_specific_is_among_the_nearest_but_not_shown(remember: Remember) -> None:
    def search(*words: str) -> SimilarThreads:
        memory = remember(closed(1, f"Walrus {words[0]}", f"A walrus. {words[1]}"), *FILLER)
        return find_similar(thread(500, f"Walrus {words[2]}", f"The walrus. {words[3]}"), memory, None, (), EVERYTHING)

    unspecific = search("fails", "It failed to build: size unknown.", "fails", "The build failed: unknown size.")
    assert (unspecific.seen, [match.id for match in unspecific.nearest]) == ((), [1])
    specific = search("swims", "It failed to build: size unknown.", "swims", "The build failed: unknown size.")
    assert [match.id for match in specific.seen] == [1]
    assert specific.seen[0].why == ("both titles say Walrus swims",)


TITLES = (
    "自定义组件能不能这样定义和使用", "升级后图片无法显示", "列表滑动时偶尔卡顿", "ログイン後に白い画面になる",
    "ブックマークの同期が終わらない", "印刷プレビューで文字化けする", "เปิดแอปแล้วหน้าจอค้าง", "นำเข้าบุ๊กมาร์กไม่ได้",
)  # fmt: skip


@pytest.mark.slow
def test_a_title_in_a_script_without_spaces_that_is_filed_again_word_for_word_is_shown(remember: Remember) -> None:
    history = list(read_archive(SAMPLE))
    last = max(issue.created_at for issue in history)
    older = [
        thread(1000 + n, title, "", author=f"user-{n}", created_at=last + timedelta(hours=n))
        for n, title in enumerate(TITLES)
    ]
    memory = remember(*history, *older)
    for earlier in older:
        again = replace(earlier, id=1050, author="hubot", created_at=last + timedelta(days=9))
        (match,) = similar(again, memory, None, (), LIMITS)[1]
        assert (match.id, match.why[0] in ("same text", "same title")) == (earlier.id, True)
