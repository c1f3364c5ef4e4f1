"""A question in a comment, on the command line or from an agent gets the same threads and the same words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli.main import main
from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import ToolContext
from tests.fakes.github import FakeGitHub
from tests.pipeline.sample_repository import DECISION, REPO, SampleRepository

TOKENS = "We decided to keep authentication tokens in the keyring."
CACHING = "We discussed caching of thumbnails and decided to leave it to the proxy."


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleRepository]:
    """A repository in which three things were decided: the database, where tokens live, and who caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with FakeGitHub(REPO, validate=False) as github:
        new_office = SampleRepository(github, tmp_path / "office")
        for number, title, comment in ((4, "Where do tokens live?", TOKENS), (5, "Pictures load slowly", CACHING)):
            github.open_issue("octocat", title, "Who knows?", at=f"2025-09-0{number}T10:00:00Z")
            github.comment(number, "hubot", comment, at=f"2025-09-1{number}T10:00:00Z")
            github.close(number, "hubot", at=f"2025-09-2{number}T10:00:00Z")
        new_office.read_history()
        yield new_office


@pytest.mark.parametrize(
    ("question", "words", "thread", "quote"),
    [
        ("What database did we choose in #1?", "database #1", 1, DECISION),
        ("Search all past conversations for mentions of authentication", "authentication", 4, TOKENS),
        ("Did we discuss caching before?", "caching", 5, CACHING),
        ("remember when we discussed caching?", "caching", 5, CACHING),
    ],
)
def test_people_and_agents_get_the_same_answer(
    office: SampleRepository, question: str, words: str, thread: int, quote: str, capsys: pytest.CaptureFixture[str]
) -> None:
    comment = office.say(question)
    (reply,) = office.replies(to=comment)
    assert f"issues/{thread})" in reply
    assert quote in reply
    assert not any(f"issues/{other})" in reply for other in {1, 2, 4, 5} - {thread})
    store = office.folder / "store"
    tool = ToolContext(MemoryOptions(office.folder, store=store))
    for name in ("search_memories", "memory_smart_search"):
        hits = answer(tool, name, {"query": words}).data["hits"]
        assert (hits[0]["id"], hits[0]["decisions"][0]["text"]) == (thread, quote)
        assert thread in [hit["id"] for hit in hits]
    capsys.readouterr()
    for command in ("search", "ss"):
        assert main([command, words, "--store", str(store)]) == 0
        assert capsys.readouterr().out.split("\t")[0] == str(thread)
