"""Archives can be loaded into the fake and exported again."""

from pathlib import Path

from tests.fakes.archive import read_archive
from tests.fakes.github import FakeGitHub

SAMPLE = Path(__file__).parents[2] / "sample" / "history.jsonl"
LISTED = ("comments", "events", "xrefs", "pull")


def test_an_export_holds_what_was_loaded_and_loads_into_the_same_state_again(github: FakeGitHub) -> None:
    threads = {thread["id"]: thread for thread in read_archive(SAMPLE)}
    numbers = github.load_archive(threads.values())
    for exported in github.export_archive():
        thread = threads[exported["id"]]
        loaded = {name: value for name, value in thread.items() if name not in LISTED}
        assert {name: exported.get(name) for name in loaded} == loaded
        assert [event["at"] for event in exported["events"]] == [event["at"] for event in thread.get("events", ())]
    new, original = github.open_issue("octocat", "New", at="2026-01-02T00:00:00Z"), numbers[0]
    assert new == max(numbers) + 1
    edited = github.comment(new, "hubot", "first", at="2026-01-02T01:00:00Z")
    github.edit_comment(edited, "second", at="2026-01-03T00:00:00Z")
    github.mark_duplicate(new, original, "octocat", at="2026-01-04T00:00:00Z")
    github.close(new, "octocat", "duplicate", at="2026-01-04T00:00:00Z")
    github.add_pull("octocat", "A pull")
    changed = github.export_archive()
    with FakeGitHub() as second:
        second.load_archive(changed)
        assert second.export_archive() == changed
