"""Measures how often the right page is found, and how often one is shown on an unrelated issue.

python -m bench.pages [--docs FOLDER ...] [--history N] [--unrelated N] [--semantic FOLDER]

Needs the archives next to the checkout. Forty questions about this repository's documentation
(`pages_questions.jsonl`), written for this purpose: the rule was tuned on the odd ones, the even ones were held out.
Unrelated issues are those of other archives.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench.archives import DATA, ROOT, need_archives
from bot.domain.changes import Changes
from bot.domain.thread import Kind, RepositoryAddress, Thread
from bot.local_cache.sync import text_model
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.model_store import Embedder
from bot.reading.pages import page_title
from bot.recall.pages import find_pages
from bot.settings.schema import PageSettings
from bot.sources.archive_file import read_archive

QUESTIONS = Path(__file__).with_name("pages_questions.jsonl")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, nargs="*", default=[], help="folders with more Markdown, each a library")
    parser.add_argument("--history", type=int, default=1_000, help="older issues in memory, beside the pages")
    parser.add_argument("--unrelated", type=int, default=1_000, help="issues of each kind that are asked")
    parser.add_argument("--show", action="store_true", help="print what is shown")
    parser.add_argument("--semantic", type=Path, metavar="FOLDER", help="with this text model")
    options = parser.parse_args()
    embedder = text_model(options.semantic)
    need_archives()
    rust, others = shuffled_issues(DATA)
    history, issues = rust[: options.history], rust[options.history :][: options.unrelated]
    own_paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    pages = read_pages(ROOT, own_paths)
    for name, older in (("pages alone", []), (f"pages and {len(history):,} issues", history)):
        with memory_of([*pages, *older], embedder) as memory:
            print(f"this repository, {name}: {len(pages)} pages")
            ask_questions(memory, options.show)
            ask_issues("issues of rust", issues, memory, options.show)
            ask_issues("issues of four others", others[: options.unrelated], memory, options.show)
    sample = read_pages(ROOT / "sample", (ROOT / "sample").rglob("*.md"))
    threads = list(read_archive(ROOT / "sample/history.jsonl"))
    with memory_of([*sample, *threads], embedder) as memory:
        print(f"the sample: {len(sample)} pages")
        ask_issues("its own issues", threads, memory, options.show)
        ask_issues("issues of rust", issues, memory, options.show)
    for folder in options.docs:
        folder_pages = read_pages(folder, folder.rglob("*.md"))
        with memory_of([*folder_pages, *history], embedder) as memory:
            print(f"{folder}: {len(folder_pages)} pages")
            ask_issues("issues of rust", issues, memory, options.show)
            ask_issues("issues of four others", others[: options.unrelated], memory, options.show)


def shuffled_issues(folder: Path) -> tuple[list[Thread], list[Thread]]:
    """The issues of the large archive and those of the others, in random order."""
    large = list(read_archive(folder / "rust_pre2015/issues.jsonl.gz"))
    small = [
        thread
        for path in sorted((folder / "threads").glob("*.gz"))
        if "rust" not in path.name
        for thread in read_archive(path)
    ]
    return random.Random(SEED).sample(large, len(large)), random.Random(SEED).sample(small, len(small))


def read_pages(root: Path, paths: Iterable[Path]) -> list[Thread]:
    texts = {str(path.relative_to(root)): path.read_text(encoding="utf-8", errors="replace") for path in sorted(paths)}
    return [
        Thread(f"docs:{name}", page_title(text) or name, text[:65_536], "ghost", NOW, kind=Kind.PAGE)
        for name, text in texts.items()
    ]


@contextmanager
def memory_of(threads: Sequence[Thread], embedder: Embedder | None = None) -> Iterator[Memory]:
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(FolderStore(Path(folder) / "store"), embedder=embedder).open()
        memory.stage(Changes(records=tuple(threads)))
        yield memory
        memory.close()


def ask_questions(memory: Memory, show: bool) -> None:
    cases = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    for name, part in (("tuned on", cases[::2]), ("held out", cases[1::2])):
        right = shown = first = 0
        for case in part:
            thread = Thread(10**6 + case["id"], case["title"], case["body"], "octocat", NOW)
            hits = find_pages(thread, memory, PageSettings(), RepositoryAddress("o/r"))
            found_pages = [hit.url.removeprefix("https://github.com/o/r/blob/HEAD/").partition("#")[0] for hit in hits]
            shown += bool(hits)
            right += bool({*found_pages} & {*case["pages"]})
            first += bool({*found_pages[:1]} & {*case["pages"]})
            if show:
                print(f"    {case['id']} {case['title']} → {[(h.title, h.similarity) for h in hits]}")
        print(f"  {len(part)} questions {name}: the right page for {right}, first for {first}, anything for {shown}")


def ask_issues(name: str, threads: Sequence[Thread], memory: Memory, show: bool) -> None:
    started, shown = time.perf_counter(), 0
    for thread in threads:
        hits = find_pages(thread, memory, PageSettings(), RepositoryAddress("o/r"))
        shown += bool(hits)
        if show and hits:
            print(f"    {thread.id} {thread.title[:80]} → {[(h.title, h.similarity) for h in hits]}")
    each = (time.perf_counter() - started) / len(threads) * 1000
    print(f"  {len(threads):,} {name}: shown on {shown} ({shown / len(threads):.1%}), {each:.1f} ms each", flush=True)


if __name__ == "__main__":
    main()
