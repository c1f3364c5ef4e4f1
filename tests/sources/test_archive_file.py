"""Archives are read thread by thread, whatever their size, and no thread takes more than its share."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UserError
from bot.sources import archive_file
from bot.sources.archive_file import MAX_THREAD_BYTES, read_archive
from tests.cli.program_result import Run

MB = 1024 * 1024


def line(number: int, body: str = "It loops.") -> bytes:
    return json.dumps({"id": number, "title": "Login", "created_at": "2024-01-01T09:00:00Z", "body": body}).encode()


def write_archive(folder: Path, *parts: bytes, packed: bool = True) -> Path:
    path = folder / f"history.jsonl{'.gz' if packed else ''}"
    with gzip.open(path, "wb", 1) if packed else path.open("wb") as file:
        for part in parts:
            file.write(part)
    return path


def ids(path: Path) -> list[object]:
    return [thread.id for thread in read_archive(path)]


class EndlessFile(BytesIO):
    """A file of ``blank`` without an end; it counts the bytes that are read."""

    def __init__(self, blank: bytes) -> None:
        super().__init__()
        self.blank, self.count = blank, 0

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        self.count += size
        return self.blank * (size // len(self.blank))


@pytest.mark.parametrize("blank", [b"\n", b" ", b"\r\n", b"\t \n"])
def test_an_endless_file_of_blanks_is_refused_with_its_line_and_the_limit(tmp_path: Path, blank: bytes) -> None:
    endless = EndlessFile(blank)
    with pytest.raises(UserError, match=r"history\.jsonl, line \d+: over 16 MB without the end of a thread"):
        list(archive_file._lines(endless, tmp_path / "history.jsonl"))
    assert endless.count <= MAX_THREAD_BYTES + 2 * MB


def test_an_endless_line_is_refused_with_the_number_of_the_line(tmp_path: Path, call: Run) -> None:
    bomb = write_archive(tmp_path, line(1), b"\n\n", b'{"body": "', *[b"a" * MB] * 20)
    result = call("import", "--store", tmp_path / "store", bomb)
    assert (result.code, result.out) == (2, "")
    assert "history.jsonl.gz, line 3: over 16 MB without the end of a thread" in result.err


@pytest.mark.slow
def test_there_may_be_megabytes_of_blank_lines_between_threads(tmp_path: Path) -> None:
    path = write_archive(tmp_path, *(part for number in range(1, 5) for part in (line(number), b"\n" * 15 * MB)))
    assert ids(path) == [1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.parametrize("packed", [pytest.param(True, marks=pytest.mark.slow), False])
def test_an_archive_may_have_any_size_and_a_thread_up_to_the_limit(tmp_path: Path, packed: bool) -> None:
    body_size = MAX_THREAD_BYTES - len(line(1, ""))
    path = write_archive(tmp_path, line(1, "a" * body_size), b"\n", line(2, "b" * (body_size - 1)), packed=packed)
    assert ids(path) == [1, 2]


@given(
    st.lists(st.sampled_from([b"", b" ", b"\t", line(1), line(2, "x" * 50), b"  " + line(3) + b" "]), max_size=12),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.sampled_from([b"", b"\n", b" "]),
)
def test_lines_are_numbered_as_an_editor_numbers_them(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], between: bytes, end: bytes
) -> None:
    data = between.join(lines) + end
    path = write_archive(tmp_path_factory.getbasetemp(), data, packed=False)
    with path.open("rb") as file:
        lines_read = [(number, text.strip()) for number, text in archive_file._lines(file, path)]
    assert lines_read == [(n, text.strip()) for n, text in enumerate(data.split(b"\n"), 1) if text.strip()]


def test_a_line_that_is_not_a_thread_is_reported_with_its_number(tmp_path: Path) -> None:
    path = write_archive(tmp_path, line(1), b"\n\n\n", b"{]\n", packed=False)
    with pytest.raises(UserError, match=r"history\.jsonl, line 4: not a thread \(not JSON"):
        ids(path)
