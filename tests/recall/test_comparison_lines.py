"""Words side by side in two texts: what counts as one run, what it is about, and what is left without it."""

from hypothesis import given
from hypothesis import strategies as st

from bot.recall.comparison import MAX_LINE, SharedRun, read_lines, shared_runs, trigrams, without_lines


def runs(ours: str, theirs: str) -> list[SharedRun]:
    return shared_runs(read_lines(ours), read_lines(theirs))


def words(ours: str, theirs: str) -> list[str]:
    return [" ".join(run.words) for run in runs(ours, theirs)]


def test_three_words_side_by_side_are_shared_whatever_surrounds_them() -> None:
    assert words("it could not sign any inputs today", "wallet: could not sign any inputs!") == [
        "could not sign any inputs"
    ]
    assert words("could not sign", "could never sign") == []
    assert words("could not", "could not") == [], "two words are found anywhere"


def test_numbers_and_addresses_do_not_split_a_run() -> None:
    ours, theirs = "slot 17 at 0x7f3a is taken (http://a.example/b)", "slot 4 at 0x99 is taken"
    assert words(ours, theirs) == ["slot at is taken"]


def test_a_line_ends_a_run_and_one_line_may_have_several() -> None:
    assert words("one two\nthree four", "one two three four") == []
    assert words("one two three x four five six", "one two three\nfour five six") == ["one two three", "four five six"]


def test_a_failing_line_is_compared_only_with_failing_lines_and_others_with_all() -> None:
    line = "error: the frame was lost"
    assert [run.line.fails for run in runs(line, line)] == [True]
    assert words("error: the frame was lost", "yes the frame was lost") == []
    assert words("yes the frame was lost", "error: the frame was lost") == ["the frame was lost"]


def test_a_run_says_whether_it_is_most_of_its_line() -> None:
    shared = runs("checking for gcc\nwe were checking for gcc in all those places", "checking for gcc")
    assert [(run.line.position, run.is_most) for run in shared] == [(0, True), (1, False)]
    assert shared[0].terms == frozenset({"check", "gcc"})


def test_trigrams_are_counted_once() -> None:
    text = "a fatal error here\na fatal error here now"
    assert trigrams(runs(text, text)) == {("fatal", "error", "here"), ("error", "here", "now")}


def test_lines_are_removed_by_their_positions() -> None:
    assert without_lines("a\nb\nc", {1}) == "a\nc"
    assert without_lines("a\nb\nc", ()) == "a\nb\nc"


def test_only_the_beginning_of_a_long_line_is_compared() -> None:
    assert words("x" * MAX_LINE + " one two three", "one two three") == []


WORDS = st.lists(st.sampled_from(["one", "two", "three", "error:", "17", "\n"]), max_size=20).map(" ".join)


@given(WORDS, WORDS)
def test_each_run_is_in_a_line_of_both_texts(ours: str, theirs: str) -> None:
    lines = [" ".join(line.words) for line in read_lines(theirs).lines]
    for run in runs(ours, theirs):
        assert " ".join(run.words) in " ".join(run.line.words)
        assert all(any(" ".join(trigram) in line for line in lines) for trigram in trigrams([run]))
