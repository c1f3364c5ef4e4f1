"""Memory branches made by somebody who may push to them and wants to stop the program that reads them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bot.memory.paths import record_path
from bot.memory.shards import SCHEMAS
from tests.memory.remotes import git
from tests.threats.git_objects import AUTHOR, FILE

LARGE = 15_900_000
"""Bytes just within the limit of a file in a store."""

START = b'"created_at":"2020-01-01T00:00:00Z"'
BRANCH = "refs/heads/precedent"

Files = Iterator[tuple[str, bytes]]
"""Path and content; equal contents become one object."""


def tiny_comments() -> Files:
    """Four hundred thousand comments under a hundred names."""
    comments = b",".join([b"{%s}" % START] * 400_000)
    record = b'{"id":1,%s,"state":"closed","comments":[%s]}' % (START, comments)
    yield from ((record_path(number), record) for number in range(1, 101))


def many_names() -> Files:
    """One small record under hundreds of thousands of names."""
    yield from ((record_path(number), b'{"id":1,%s}' % START) for number in range(1, 390_001))


def large_records() -> Files:
    """Records that claim to be what they are, each as large as a file may be."""
    for number in range(1, 221):
        yield record_path(number), b'{"id":%d,%s,"body":"%s"}' % (number, START, b"a" * LARGE)


def record_lists() -> Files:
    """Records of millions of empty lists."""
    for number in range(1, 41):
        yield record_path(number), b'{"id":%d,%s,"x":[%s[]]}' % (number, START, b"[]," * (LARGE // 3 - 30))


def deep_records() -> Files:
    for number in range(1, 41):
        yield record_path(number), b'{"id":%d,"x":%s' % (number, b"[" * LARGE)


def tiny_files() -> Files:
    """Many small files, none of them a record."""
    yield from ((record_path(number), b"{%d" % number) for number in range(1, 30_001))


def long_shards() -> Files:
    """Shards with millions of lines."""
    lines = b'{"id":5}\n' * (LARGE // 9)
    for folder in (schema.folder for schema in SCHEMAS):
        for number in range(20):
            yield f"{folder}/{number:04d}.jsonl", b"%s%d\n" % (lines, number)


def empty_lines() -> Files:
    for folder in (schema.folder for schema in SCHEMAS):
        for number in range(20):
            yield f"{folder}/{number:04d}.jsonl", b"\n" * (LARGE + number)


def long_manifest() -> Files:
    names = ",".join(f'"{number:x}":""' for number in range(1_000_000))
    yield "manifest.json", f'{{"format":2,"index":{{{names}}}}}'.encode()[:LARGE]


def large_index() -> Files:
    for number in range(5):
        yield f"index/{number}.seg", bytes(90_000_000 + number)


def many_index_files() -> Files:
    yield from ((f"index/{number}.seg", b"x") for number in range(100_000))


def large_messages() -> Files:
    for number in range(5):
        yield f"messages/{number}.seg", bytes(80_000_000 + number)


def large_settings() -> Files:
    yield "settings.yml", b"a: [" * (LARGE // 4)


def large_model() -> Files:
    yield "model/ranking.json", bytes(LARGE)
    yield "model/ranking.json", b"[" * LARGE


BOMBS: Mapping[str, Callable[[], Files]] = {
    make.__name__: make
    for make in (
        *(tiny_comments, many_names, large_records, record_lists, deep_records, tiny_files, long_shards, empty_lines),
        *(long_manifest, large_index, many_index_files, large_messages, large_settings, large_model),
    )
}


def lay(repository: Path, bomb: Callable[[], Files]) -> None:
    """Put the files of a bomb on top of the memory in this repository."""
    stream = subprocess.Popen(
        ["git", "-C", str(repository), "fast-import", "--quiet", "--force", "--done"], stdin=subprocess.PIPE
    )
    assert stream.stdin
    marks: dict[int, int] = {}
    rows: list[bytes] = []
    for path, content in bomb():
        key = hash(content)
        if key not in marks:
            marks[key] = len(marks) + 1
            stream.stdin.write(b"blob\nmark :%d\ndata %d\n%s\n" % (marks[key], len(content), content))
        rows.append(b"M %s :%d %s\n" % (FILE.encode(), marks[key], path.encode()))
    parent = git(repository, "for-each-ref", "--format=%(objectname)", BRANCH)
    start = b"from %s\n" % parent.encode() if parent else b""
    stream.stdin.write(b"commit %s\ncommitter %s\ndata 1\nx\n%s" % (BRANCH.encode(), AUTHOR, start))
    stream.stdin.write(b"".join(rows) + b"\ndone\n")
    stream.stdin.close()
    assert stream.wait() == 0
