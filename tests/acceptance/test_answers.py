"""Threads of small archives, answered as on the day they were opened: harmless, within bounds, not too often."""

import gzip
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.cli.main import main
from bot.comment.links import CommentLinks
from bot.comment.render import MAX_CHARS, Renderer
from bot.domain.answer import Speak
from bot.domain.thread import RepositoryAddress, Thread
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.recall.answer import decide, recall
from bot.settings.schema import Settings
from tests.comment.detector import report
from tests.examples import THOROUGH, share
from tests.marker import find_marker

pytestmark = [pytest.mark.shared, pytest.mark.slow]

REPO = "octo-org/hello-world"
ALLOWED = f"https://redirect.github.com/{REPO}/"
SMALL = ["bitcoin_gui", "ietf_http2-spec", "ietf_mls-protocol", "ietf_qlog", "rust_endings"]
SECTIONS = ("mentioned", "also_mentioned", "seen_before", "open_now")
SETTINGS = Settings()


@dataclass
class Tally:
    """The comments on the threads of one archive; ``faults`` lists what they must not contain."""

    threads: int = 0
    spoke: int = 0
    longest: int = 0
    sections: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = ", ".join(f"{name.replace('_', ' ')} {self.sections[name]}" for name in SECTIONS)
        share = self.spoke / self.threads
        return f"spoke on {self.spoke} of {self.threads} ({share:.0%}): {parts}; longest {self.longest:,} characters"


def import_archive(archive: Path, folder: Path, capsys: pytest.CaptureFixture[str], *, learn: bool = False) -> Memory:
    options = [] if learn else ["--no-learn"]
    assert main(["import", str(archive), "--store", str(folder), "--json", *options]) == 0
    assert capsys.readouterr().err == ""
    return Memory(FolderStore(folder)).open()


def answer_threads(memory: Memory, threads: Iterable[Thread]) -> Tally:
    tally = Tally()
    renderer = Renderer(links=CommentLinks(repo=REPO))
    for thread in threads:
        opened = thread.as_of(thread.created_at)
        context = recall(opened, memory, SETTINGS, RepositoryAddress(REPO), thread.created_at)
        answer = decide(context, SETTINGS.mentions)
        tally.threads += 1
        if isinstance(answer, Speak):
            tally.spoke += 1
            tally.sections.update(name for name in SECTIONS if getattr(answer.context, name))
            rendered = renderer.render(answer.context, thread_id=thread.id, now=opened.revised_at, searched=0)
            tally.longest = max(tally.longest, len(rendered.text))
            tally.faults += [f"{thread.id}: {fault}" for fault in faults(rendered.text)]
    return tally


def faults(text: str) -> list[str]:
    """Everything in a comment that reaches beyond it, breaks its format or is too long."""
    detected = report(text)
    problems = [f"mentions {name}" for name in detected.mentions] + [
        f"refers to {reference}" for reference in detected.references
    ]
    problems += [f"links to {link}" for link in detected.links if not link.startswith(ALLOWED)]
    problems += [f"shows {image}" for image in detected.images] + [f"draws {formula}" for formula in detected.formulas]
    problems += ["has no marker"] * (not find_marker(text)) + ["is too long"] * (len(text) > MAX_CHARS)
    return problems


SCATTERED = ("rust_endings",)
"""Archives of threads that were picked from a large one: hardly any two of them are about the same thing."""

LEARNED = SMALL if THOROUGH else ("ietf_mls-protocol",)
"""Archives whose memory learns before it answers."""


@pytest.mark.parametrize("name", share(SMALL, 3, 1))
def test_threads_of_a_small_archive_are_answered_without_harm(
    name: str, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = shared / "threads" / f"{name}.jsonl.gz"
    memory = import_archive(archive, tmp_path / "store", capsys, learn=name in LEARNED)
    threads = share((record for record in memory.state.every_record() if isinstance(record, Thread)), one_in=3)
    tally = answer_threads(memory, threads)
    memory.close()
    with capsys.disabled():
        print(f"\n{name}: {tally}")
    assert tally.threads == len(threads) > 0
    assert tally.faults == []
    assert tally.spoke < tally.threads / 2
    assert tally.spoke or name in SCATTERED


@pytest.mark.night
def test_a_large_archive_is_imported_completely(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gzip.open(shared / "rust_pre2015" / "issues.jsonl.gz", "rt", encoding="utf-8") as lines:
        sample = share(lines)  # some for every folder of a hundred records
    archive = tmp_path / "issues.jsonl"
    archive.write_text("".join(sample), encoding="utf-8")
    memory = import_archive(archive, tmp_path / "store", capsys)
    assert memory.state.manifest.threads == len(sample) > 2_000
    assert sum(1 for _ in memory.state.every_record()) == len(sample)
    memory.close()


@pytest.mark.parametrize("text", ["@octocat", "see #4", "https://example.com", "![](https://example.com/a.png)"])
def test_the_check_for_faults_detects_what_must_not_be_posted(text: str) -> None:
    assert any("marker" not in fault for fault in faults(text))
