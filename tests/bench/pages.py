"""How often the right page is found, and how often one is shown to an issue that has nothing to do with it.

python -m tests.bench.pages [--docs FOLDER ...] [--history N] [--unrelated N]

Forty questions about this repository's own documentation (`pages_questions.jsonl`), written for this purpose: the odd
ones were looked at while the rule was made, the even ones were held out. Unrelated are the issues of other archives.
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

from bot.domain.changes import Changes
from bot.domain.thread import Kind, RepositoryAddress, Thread
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.reading.pages import page_title
from bot.recall.pages import find_pages
from bot.settings.schema import PageSettings
from bot.sources.archive_file import read_archive

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "../shared/data"
QUESTIONS = Path(__file__).with_name("pages_questions.jsonl")
ABOUT_PAGES = "docs/pages.md"
"""The page that describes this measurement; it is not asked about."""

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEED = 7


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--docs", type=Path, nargs="*", default=[], help="folders with more Markdown, each a library")
    options.add_argument("--history", type=int, default=1_000, help="older issues in memory, beside the pages")
    options.add_argument("--unrelated", type=int, default=1_000, help="issues of each kind that are asked")
    options.add_argument("--show", action="store_true", help="print what is shown")
    chosen = options.parse_args()
    rust, others = some_issues(SHARED)
    history, asked = rust[: chosen.history], rust[chosen.history :][: chosen.unrelated]
    own = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    pages = [page for page in read_pages(ROOT, own) if page.id != f"docs:{ABOUT_PAGES}"]
    for name, older in (("pages alone", []), (f"pages and {len(history):,} issues", history)):
        with remembered([*pages, *older]) as memory:
            print(f"this repository, {name}: {len(pages)} pages")
            ask_questions(memory, chosen.show)
            ask_issues("issues of rust", asked, memory, chosen.show)
            ask_issues("issues of four others", others[: chosen.unrelated], memory, chosen.show)
    sample = read_pages(ROOT / "sample", (ROOT / "sample").rglob("*.md"))
    threads = list(read_archive(ROOT / "sample/history.jsonl"))
    with remembered([*sample, *threads]) as memory:
        print(f"the sample: {len(sample)} pages")
        ask_issues("its own issues", threads, memory, chosen.show)
        ask_issues("issues of rust", asked, memory, chosen.show)
    for folder in chosen.docs:
        with remembered([*(found := read_pages(folder, folder.rglob("*.md"))), *history]) as memory:
            print(f"{folder}: {len(found)} pages")
            ask_issues("issues of rust", asked, memory, chosen.show)
            ask_issues("issues of four others", others[: chosen.unrelated], memory, chosen.show)


def some_issues(folder: Path) -> tuple[list[Thread], list[Thread]]:
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
def remembered(threads: Sequence[Thread]) -> Iterator[Memory]:
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(FolderStore(Path(folder) / "store")).open()
        memory.stage(Changes(records=tuple(threads)))
        yield memory
        memory.close()


def ask_questions(memory: Memory, show: bool) -> None:
    cases = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    for name, part in (("tuned on", cases[::2]), ("held out", cases[1::2])):
        right = shown = 0
        for case in part:
            thread = Thread(10**6 + case["id"], case["title"], case["body"], "octocat", NOW)
            hits = find_pages(thread, memory, PageSettings(), RepositoryAddress("o/r"))
            found = [hit.url.removeprefix("https://github.com/o/r/blob/HEAD/").partition("#")[0] for hit in hits]
            shown += bool(hits)
            right += bool({*found} & {*case["pages"]})
            if show:
                print(f"    {case['id']} {case['title']} → {[(h.title, h.similarity) for h in hits]}")
        print(f"  {len(part)} questions {name}: the right page for {right}, anything for {shown}")


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
