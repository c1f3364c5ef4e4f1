"""A model in a folder becomes vectors that depend on nothing but the text, or one line that says what to do."""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.errors import UserError, WorldError
from bot.ranking.bert import MAX_TOKENS
from bot.ranking.embedder import (
    MAX_CHARS,
    BertEmbedder,
    EmbeddingsUnavailable,
    model_folder,
    open_embedder,
    quantised,
)
from tests.ranking.tiny_model import DIMENSIONS, TABLE, VOCABULARY, WORDS, tiny_model, tokenizer, write_folder

ZERO = bytes(DIMENSIONS)


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> BertEmbedder:
    return open_embedder(write_folder(tmp_path_factory.mktemp("model")))


@pytest.fixture
def plain(tmp_path: Path) -> BertEmbedder:
    return open_embedder(write_folder(tmp_path / "plain"))


def encode_one(embedder: BertEmbedder, text: str) -> bytes:
    (vector,) = embedder.encode([text])
    return vector


def mean_of(*words: str) -> bytes:
    """The expected vector: the mean over all tokens with the frame, scaled so that its largest part is ±127."""
    rows = np.array([TABLE[VOCABULARY.index(word)] for word in ("[CLS]", *words, "[SEP]")], dtype=np.float64)
    centred = rows - rows.mean(axis=1, keepdims=True)
    mean = (centred / centred.std(axis=1, keepdims=True)).mean(axis=0)
    return bytes(np.rint(mean / np.abs(mean).max() * 127).astype(np.int8).tobytes())


def refusal(folder: Path) -> str:
    with pytest.raises(EmbeddingsUnavailable) as caught:
        open_embedder(folder)
    message = str(caught.value)
    assert isinstance(caught.value, WorldError)
    assert message.isprintable()
    assert len(message.replace(str(folder), "")) < 260
    return message


def test_a_text_is_the_mean_of_its_tokens_in_signed_bytes(plain: BertEmbedder) -> None:
    assert plain.encode(["build fails", "Disk FULL", "zebra"]) == [
        mean_of("build", "fails"),
        mean_of("disk", "full"),
        mean_of("[UNK]"),
    ]
    assert plain.dimensions == DIMENSIONS


def test_bytes_keep_the_cosine() -> None:
    left, right = np.random.default_rng(1).normal(size=(2, 384)).astype(np.float32)
    near = left + 0.5 * right
    exact = float(left @ near / np.linalg.norm(left) / np.linalg.norm(near))
    a, b = (np.frombuffer(quantised(each), np.int8).astype(np.float64) for each in (left, near))
    assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) == pytest.approx(exact, abs=0.002)
    assert max(a.max(), -a.min()) == 127


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(st.sampled_from([*WORDS, "zebra", "", "\0"]), max_size=12).map(" ".join), max_size=8))
def test_the_same_text_has_the_same_bytes_in_any_batch(embedder: BertEmbedder, texts: list[str]) -> None:
    assert embedder.encode(texts) == [encode_one(embedder, text) for text in texts]


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\0", "\0 \0", "\ud800", "\u200b\ufeff"])
def test_a_text_without_a_word_has_the_zero_vector(embedder: BertEmbedder, text: str) -> None:
    assert encode_one(embedder, text) == ZERO


def test_only_the_first_tokens_are_read(plain: BertEmbedder) -> None:
    inside = ["build"] * (MAX_TOKENS - 2)
    assert encode_one(plain, " ".join([*inside, "loop"])) == mean_of(*inside)
    assert encode_one(plain, " ".join([*inside[1:], "loop"])) == mean_of(*inside[1:], "loop") != mean_of(*inside)


@pytest.mark.parametrize(
    "text",
    ["[" * 65_536, "a" * 1_000_000, "\0" * 1_000_000, "build " * 200_000, "\ud800\udc00" * 50_000, "\u202e" * 65_536],
    ids=["brackets", "one word", "NULs", "words", "surrogates", "directions"],
)
def test_of_a_hostile_text_only_the_first_characters_are_read(embedder: BertEmbedder, text: str) -> None:
    assert encode_one(embedder, text) == encode_one(embedder, text[:MAX_CHARS])
    blank = " " * (MAX_CHARS - 5)
    assert [encode_one(embedder, f"{start}build") == ZERO for start in (blank, f"{blank} ")] == [False, False]
    assert encode_one(embedder, f"{blank}     build") == ZERO


@given(st.text(max_size=60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_text_has_a_vector(embedder: BertEmbedder, text: str) -> None:
    vector = np.frombuffer(encode_one(embedder, text), np.int8)
    assert len(vector) == DIMENSIONS
    assert not vector.any() or np.abs(vector.astype(int)).max() == 127


def test_half_a_character_is_left_out_and_the_rest_is_read(plain: BertEmbedder) -> None:
    assert encode_one(plain, "build \ud800fails\0") == mean_of("build", "fails")


def test_a_control_token_that_a_text_spells_out_is_a_word_like_others(plain: BertEmbedder) -> None:
    assert encode_one(plain, "builds [PAD]") == mean_of("[UNK]", "[UNK]", "[UNK]", "[UNK]")


def test_truncation_and_padding_of_the_tokenizer_are_ignored(plain: BertEmbedder, tmp_path: Path) -> None:
    cut = {"direction": "Left", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    fill = {"strategy": {"Fixed": 64}, "direction": "Left", "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    fill["pad_to_multiple_of"] = None
    words = tokenizer(truncation=cut, padding=fill)
    other = open_embedder(write_folder(tmp_path / "own", words=words))
    assert other.encode(["why does the build fail", ""]) == plain.encode(["why does the build fail", ""])


def test_the_fingerprint_covers_the_model_and_the_tokenizer(tmp_path: Path) -> None:
    first = write_folder(tmp_path / "1")
    again = write_folder(tmp_path / "2")
    other_table = write_folder(tmp_path / "3", tiny_model(TABLE // 2))
    other_words = write_folder(tmp_path / "4", words=tokenizer((*VOCABULARY[:-1], "wait")))
    fingerprints = [open_embedder(folder).fingerprint for folder in (first, again, other_table, other_words)]
    assert fingerprints[0] == fingerprints[1]
    assert len({*fingerprints}) == 3
    assert all(len(each) == 16 and int(each, 16) >= 0 for each in fingerprints)


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert refusal(write_folder(tmp_path)) == (
        'embeddings need tokenizers: install Precedent\'s semantic extra, or set similar.model to ""'
    )


def drop(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def put(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def pipe(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


def sparse(folder: Path) -> None:
    with (folder / "tokenizer.json").open("wb") as file:
        file.truncate(2**40)


def deep() -> bytes:
    """A header of many nested lists."""
    return (500_000).to_bytes(8, "little") + b"[" * 500_000


WIDE = np.zeros((len(VOCABULARY), 1025), dtype=np.int8)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (shutil.rmtree, '{}: no such folder; put the model there, or set similar.model to ""'),
        (
            drop("model.safetensors"),
            '{}: no model.safetensors; put the model\'s there, or set similar.model to ""',
        ),
        (drop("tokenizer.json"), "{}: no tokenizer.json; put the model's there, or set"),
        (pipe, "{}/model.safetensors: not a file"),
        (sparse, "{}/tokenizer.json: larger than 65,536 KB; use a smaller model"),
        (put("model.safetensors", b""), "{}/model.safetensors: not a usable model ("),
        (
            put("model.safetensors", b"version https://git-lfs.example/spec/v1"),
            "{}/model.safetensors: not a usable model (",
        ),
        (put("model.safetensors", tiny_model()[:-20]), "{}/model.safetensors: not a usable model ("),
        (put("model.safetensors", tiny_model()[:-24]), "{}/model.safetensors: not a usable model ("),
        (put("model.safetensors", tiny_model().replace(b'"words"', b'"\xff\xfe"')), "not a usable model ("),
        (put("model.safetensors", tiny_model().replace(b'"words"', b'"verbs"')), "(it lacks 'words')"),
        (put("model.safetensors", tiny_model().replace(b'"I8"', b'"I9"')), "(it lacks 'I9')"),
        (
            put("model.safetensors", tiny_model().replace(b'"layers": "0"', b'"layers": "1"')),
            "(it lacks 'layer.0.joined.w",
        ),
        (
            put("model.safetensors", tiny_model().replace(b'"heads": "1"', b'"heads": "0"')),
            "(its tables do not fit tog",
        ),
        (put("model.safetensors", tiny_model().replace(b"[14, 6]", b"[84]   ")), "(its tables do not fit together)"),
        (put("model.safetensors", tiny_model().replace(b"[128, 6]", b"[768, 1]")), "(its tables do not fit together)"),
        (
            put("model.safetensors", (2**21).to_bytes(8, "little") + b" " * 2**21),
            "(it is cut off or no safetensors file)",
        ),
        (put("model.safetensors", deep()), "{}/model.safetensors: not a usable model ("),
        (put("tokenizer.json", b""), "{}/tokenizer.json: damaged ("),
        (put("tokenizer.json", b"\xff{"), "{}/tokenizer.json: damaged ("),
        (put("tokenizer.json", tokenizer()[:-50]), "{}/tokenizer.json: damaged ("),
        (put("model.safetensors", tiny_model(factor=np.nan)), "the model returns numbers that are not finite"),
        (put("model.safetensors", tiny_model(WIDE)), "vectors of 1025 numbers, at most 1024 can be used"),
        (put("model.safetensors", tiny_model(TABLE[:5])), "check that tokenizer.json belongs to it"),
    ],
)
def test_an_unusable_model_is_reported_in_one_line(
    tmp_path: Path, spoil: Callable[[Path], object], expected: str
) -> None:
    spoil(write_folder(tmp_path))
    assert expected.format(tmp_path) in refusal(tmp_path)


def test_a_failure_in_use_is_reported_in_one_line_too(tmp_path: Path) -> None:
    few = (*VOCABULARY[:4], "why", "does", "the", "build", "fail", "loop")
    opened = open_embedder(write_folder(tmp_path, tiny_model(TABLE[:9]), tokenizer(few)))
    with pytest.raises(EmbeddingsUnavailable, match=r"fails on a text .* check that tokenizer.json belongs to it$"):
        opened.encode(["loop"])


def write_manifest(folder: Path, **changed: str) -> None:
    names = ("model.safetensors", "tokenizer.json")
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    lines = [f"{changed.get(name.partition('.')[0], actual)}  {name}\n" for name, actual in hashes.items()]
    (folder / "model.sha256").write_text("".join(line for line in lines if not line.startswith(" ")), encoding="ascii")


def test_a_manifest_is_compared_with_both_files(tmp_path: Path) -> None:
    write_manifest(write_folder(tmp_path))
    assert open_embedder(tmp_path).dimensions == DIMENSIONS
    write_manifest(tmp_path, tokenizer="0" * 64)
    assert refusal(tmp_path) == f"{tmp_path}/tokenizer.json: does not match model.sha256; fetch the model again"
    write_manifest(tmp_path, model="0" * 64)
    assert refusal(tmp_path) == f"{tmp_path}/model.safetensors: does not match model.sha256; fetch the model again"
    write_manifest(tmp_path, model="")
    assert "model.sha256: does not list model.safetensors; recreate it" in refusal(tmp_path)


def test_the_settings_name_a_folder_of_the_image_or_below_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "deep/models").mkdir(parents=True)
    (tmp_path / "alias").symlink_to("deep/models")
    assert model_folder("deep/models", tmp_path) == tmp_path / "deep/models"
    assert model_folder("alias", tmp_path) == tmp_path / "deep/models"
    assert model_folder("/models/minilm", tmp_path) == Path("/models/minilm")


@pytest.mark.parametrize(
    "folder", ["", "/etc", "/modelsx", "../outside", "/models/../etc", "link", "link/deeper", "\ud800", "a\0b"]
)
def test_a_folder_elsewhere_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/link").symlink_to("../outside")
    (tmp_path / "workspace/circle").symlink_to("circle/deeper")
    with pytest.raises(UserError, match=r"^similar\.model must be a folder below the workspace or /models, not "):
        model_folder(folder, tmp_path / "workspace")


def test_the_repr_of_an_embedder_does_not_show_its_model(plain: BertEmbedder) -> None:
    assert (
        repr(replace(plain, fingerprint="0" * 16)) == f"BertEmbedder(dimensions={DIMENSIONS}, fingerprint='{'0' * 16}')"
    )
