"""Word vectors: what a text is near to, and the file in which they are kept, even if a stranger wrote it."""

import struct
import tracemalloc
from math import log

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.ranking.word_vectors import (
    MAX_DIMENSIONS,
    MAX_TERMS,
    MAX_WORDS,
    TITLE_WEIGHT,
    WordVectors,
    bag,
    decode_words,
    encode_words,
    quantise,
    rarities,
    text_counts,
)

HEADER = struct.Struct("<4sIIII")
NUMBERS = st.floats(-100, 100, width=32)


def vectors(matrix: list[list[float]], rarity: list[float] | None = None) -> WordVectors:
    """Vectors of the words w0, w1, …"""
    rows = np.array(matrix, np.float32)
    words = {f"w{number}": number for number in range(len(rows))}
    return WordVectors(words, np.array(rarity or [1.0] * len(rows), np.float32), rows, trained_on=60)


def packed(words: bytes = b"a\0b", numbers: tuple[float, ...] = (1, 1, 1, 1), **header: int) -> bytes:
    """A file of two words with three dimensions, or with whatever a stranger claims in its header."""
    claims = {"count": 2, "dimensions": 3, "size": len(words), **header}
    head = HEADER.pack(b"PWV1", claims["count"], claims["dimensions"], 50, claims["size"])
    return head + words + struct.pack(f"<{len(numbers)}f", *numbers) + bytes(range(1, 7))


def as_numbers(vector: bytes) -> list[int]:
    return np.frombuffer(vector, np.int8).tolist()


@given(
    st.integers(1, 5).flatmap(
        lambda width: st.lists(st.lists(NUMBERS, min_size=width, max_size=width), min_size=1, max_size=6)
    )
)
def test_written_vectors_are_read_again_up_to_rounding(matrix: list[list[float]]) -> None:
    original = vectors(matrix, [0.5 + number for number in range(len(matrix))])
    decoded = decode_words(encode_words(original))
    assert (decoded.words, decoded.trained_on, decoded.dimensions) == (original.words, 60, len(matrix[0]))
    assert decoded.rarity.tolist() == original.rarity.tolist()
    largest = np.abs(original.matrix).max(axis=1, keepdims=True)
    assert (np.abs(decoded.matrix - original.matrix) <= largest / 127 * 0.51 + 1e-30).all()
    assert encode_words(decode_words(encode_words(decoded))) == encode_words(decoded)


def test_words_of_all_scripts_are_kept() -> None:
    words = ("naïve", "ошибка", "錯誤", "\ud800", "")
    original = WordVectors(dict(zip(words, range(5), strict=True)), np.ones(5, np.float32), np.eye(5, dtype="f4"), 50)
    assert list(decode_words(encode_words(original)).words) == list(words)


def test_the_largest_file_is_read() -> None:
    words = {str(number): number for number in range(MAX_WORDS)}
    original = WordVectors(words, np.ones(MAX_WORDS, np.float32), np.ones((MAX_WORDS, 16), np.float32), 2**32 - 1)
    assert decode_words(encode_words(original)).trained_on == 2**32 - 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PWV1",
        packed()[:-1],
        packed() + b"\0",
        b"PWV2" + packed()[4:],
        packed(count=0),
        packed(count=3),
        packed(count=MAX_WORDS + 1),
        packed(count=2**32 - 1, dimensions=2**32 - 1, size=2**32 - 1),
        packed(dimensions=0),
        packed(dimensions=MAX_DIMENSIONS + 1),
        packed(size=2**32 - 1),
        packed(words=b"a\0a"),
        packed(words=b"a\0b\0c"),
        packed(words=b"abc"),
        packed(words=b"\xff\0b"),
        packed(numbers=(1, float("nan"), 1, 1)),
        packed(numbers=(1, 1, float("inf"), 1)),
        packed(numbers=(1, 1, 1, float("-inf"))),
        packed(numbers=(1, 1, 1, 1e30)),
        packed(numbers=(-1, 1, 1, 1)),
        packed(numbers=(1, 1, 1)),
    ],
)
def test_a_malformed_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"word vectors|decode"):
        decode_words(data)


def test_the_sample_file_itself_is_valid() -> None:
    assert decode_words(packed()).words == {"a": 0, "b": 1}


def overwrite(place: int, new: bytes) -> bytes:
    data = packed()
    return data[:place] + new + data[place + len(new) :]


@given(
    st.binary(max_size=80)
    | st.binary(max_size=80).map(lambda rest: b"PWV1" + rest)
    | st.builds(overwrite, st.integers(0, len(packed())), st.binary(max_size=4))
)
@example(packed())
@example(overwrite(4, b"\xff"))
def test_any_bytes_give_vectors_or_a_value_error(data: bytes) -> None:
    try:
        decoded = decode_words(data)
    except ValueError:
        return
    assert decode_words(encode_words(decoded)).words == decoded.words
    assert np.isfinite(decoded.matrix).all()
    for word in decoded.words:
        assert len(decoded.text([word], [])) in (0, decoded.dimensions)


def test_a_small_file_with_large_claims_takes_no_memory() -> None:
    nothing_but_separators = packed(words=b"\0" * 2_000_000)
    claims = [packed(count=MAX_WORDS, dimensions=MAX_DIMENSIONS), packed(size=2**32 - 1), nothing_but_separators]
    tracemalloc.start()
    try:
        for data in claims:
            with pytest.raises(ValueError, match="word vectors"):
                decode_words(data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_numbers_too_small_to_divide_by_do_no_harm() -> None:
    tiny = decode_words(packed(numbers=(1e-40, 1e-40, 1e-40, 1e-40)))
    assert len(tiny.text([], ["a"])) in (0, 3)
    assert as_numbers(quantise(np.array([1e-42, -1e-42], np.float32))) == [127, -127]


def test_a_text_without_a_known_word_has_no_direction() -> None:
    trained = vectors([[1, 0], [0, 1]])
    assert trained.text([], []) == trained.text(["other"], ["words"]) == trained.title([]) == b""
    assert vectors([[0, 0]]).text(["w0"], []) == b""


def test_a_text_points_where_its_words_do_and_rare_words_weigh_more() -> None:
    trained = vectors([[1, 0], [0, 1], [0, -1]], rarity=[1, 3, 1])
    assert as_numbers(trained.title(["w0"])) == [127, 0]
    assert as_numbers(trained.text([], ["w0", "w1"])) == [42, 127]
    assert as_numbers(trained.text([], ["w0", "w2"])) == [127, -127]


def test_a_title_counts_as_often_as_its_weight_says() -> None:
    assert text_counts(["disk", "full"], ["disk", "is"]) == {"disk": 1 + TITLE_WEIGHT, "full": TITLE_WEIGHT, "is": 1}


def test_only_the_heaviest_terms_of_a_long_text_count() -> None:
    total = MAX_TERMS + 50
    words = {f"w{number}": number for number in range(total)}
    rarity = np.arange(1, total + 1, dtype=np.float32)
    numbers, weights = bag(dict.fromkeys(words, 1), words, rarity)
    assert numbers.tolist() == list(range(50, total))
    assert float(np.linalg.norm(weights)) == pytest.approx(1, abs=1e-5)
    often = bag({**dict.fromkeys(words, 1), "w0": 10**9}, words, rarity + 100)[0]
    assert 0 in often.tolist()


def test_frequency_counts_by_its_logarithm() -> None:
    _, weights = bag({"w0": 1, "w1": 8}, {"w0": 0, "w1": 1}, np.ones(2, np.float32))
    assert weights[1] / weights[0] == pytest.approx(1 + log(8))


def test_words_in_too_few_texts_are_left_out() -> None:
    words, rarity = rarities([["a", "a", "b"], ["a", "c"], ["a", "c"]], least=2)
    assert words == {"a": 0, "c": 1}
    assert rarity.tolist() == pytest.approx([log(1 + 0.5 / 3.5), log(1 + 1.5 / 2.5)], rel=1e-6)


def test_there_are_never_more_words_than_a_file_may_hold() -> None:
    text = [str(number) for number in range(MAX_WORDS + 10)]
    words, rarity = rarities([text, text, ["frequent", "0"], ["frequent", "0"], ["frequent"]], least=2)
    assert len(words) == len(rarity) == MAX_WORDS
    assert list(words)[:2] == ["0", "frequent"]
