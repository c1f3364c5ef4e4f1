"""The shipped sample is sound: it parses, numbers and times are consistent, and issues end in every possible way."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).parents[2] / "sample"
Row = dict[str, Any]

ACCOUNTS = {
    "octocat": "OWNER",
    "monalisa": "MEMBER",
    "hubot": "COLLABORATOR",
    "sample-contributor": "CONTRIBUTOR",
    "sample-reporter": "NONE",
    "mergebot[bot]": "NONE",
    **{f"sample-user-{n}": "NONE" for n in range(1, 10)},
}
FIELDS = {"id", "title", "body", "state", "created_at", "author", "author_association", "labels", "comments"}
OPTIONAL = {"pull", "state_reason", "closed_at", "closed_by", "xrefs", "events"}
KINDS = {"fixed", "answered", "workaround", "not planned", "duplicate", "stale", "unknown"}

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
REFERENCE = re.compile(r"(?<!\w)#(\d+)", re.ASCII)
MENTION = re.compile(r"(?<![\w.])@([a-z0-9-]+)", re.ASCII | re.IGNORECASE)


def lines(name: str) -> list[Row]:
    return [json.loads(line) for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]


def at(stamp: str) -> datetime:
    return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S%z")


THREADS = lines("history.jsonl")
BY_ID = {thread["id"]: thread for thread in THREADS}
ISSUES = [thread for thread in THREADS if not thread.get("pull")]
PULLS = [thread for thread in THREADS if thread.get("pull")]
ENDINGS = lines("endings.jsonl")
EVENTS: Row = json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))
NEW = [EVENTS["issue"], *(more["issue"] for more in EVENTS["more"])]


def messages(thread: Row) -> Iterator[tuple[str, str, datetime, str]]:
    yield thread["author"], thread.get("author_association", "NONE"), at(thread["created_at"]), thread["body"]
    for comment in thread.get("comments", []):
        yield comment["author"], comment["association"], at(comment["created_at"]), comment["body"]


def prose(text: str) -> str:
    return CODE.sub("", text)


def test_threads_have_the_fields_of_the_archive_format_and_ascending_numbers() -> None:
    numbers = [thread["id"] for thread in THREADS]
    assert numbers == sorted(set(numbers))
    assert len(ISSUES) >= 55 > len(PULLS) >= 10
    assert sum(thread["state"] == "open" for thread in ISSUES) >= 5
    for thread in THREADS:
        assert set(thread) >= FIELDS
        assert set(thread) - FIELDS <= OPTIONAL
        closed = thread["state"] == "closed"
        assert thread["state"] in {"open", "closed"}
        assert ("closed_at" in thread, "closed_by" in thread) == (closed, closed)
        assert ("state_reason" in thread) == (closed and not thread.get("pull"))


def test_times_run_forward() -> None:
    opened = [at(thread["created_at"]) for thread in [*THREADS, *NEW]]
    assert opened == sorted(opened)
    for thread in THREADS:
        times = [when for _, _, when, _ in messages(thread)]
        assert times == sorted(times)
        if thread["state"] == "closed":
            assert at(thread["created_at"]) < at(thread["closed_at"])
        for name, key in (("xrefs", "date"), ("events", "at")):
            stamps = [at(event[key]) for event in thread.get(name, [])]
            assert stamps == sorted(stamps)
            assert all(stamp >= at(thread["created_at"]) for stamp in stamps)


def test_only_sample_accounts_write_and_are_mentioned() -> None:
    for thread in [*THREADS, *NEW]:
        for author, role, _, text in messages(thread):
            assert author in ACCOUNTS
            assert "comments" not in thread or role == ACCOUNTS[author]
            assert set(MENTION.findall(prose(text))) <= set(ACCOUNTS)
        actors = {event["actor"] for name in ("xrefs", "events") for event in thread.get(name, [])}
        assert actors | {thread.get("closed_by", "octocat")} <= set(ACCOUNTS)


def test_every_reference_points_to_a_thread_that_existed_then() -> None:
    for thread in [*THREADS, *NEW]:
        for _, _, when, text in messages(thread):
            for number in map(int, REFERENCE.findall(prose(text))):
                assert at(BY_ID[number]["created_at"]) <= when


def test_pages_refer_to_known_threads_only() -> None:
    pages = [*(SAMPLE / "wiki").glob("*.md"), *(SAMPLE / "docs").glob("*.md")]
    assert len(pages) >= 8
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# ")
        assert set(map(int, REFERENCE.findall(prose(text)))) <= set(BY_ID)


def test_cross_references_are_those_in_the_texts() -> None:
    referenced = {
        (number, thread["id"], "pull" if thread.get("pull") else "issue")
        for thread in THREADS
        for _, _, _, text in messages(thread)
        for number in map(int, REFERENCE.findall(prose(text)))
        if number != thread["id"]
    }
    stored = {(thread["id"], event["from"], event["type"]) for thread in THREADS for event in thread.get("xrefs", [])}
    assert stored == referenced


def test_every_closed_issue_has_a_labelled_ending_in_its_thread() -> None:
    assert [ending["id"] for ending in ENDINGS] == [issue["id"] for issue in ISSUES if issue["state"] == "closed"]
    for ending in ENDINGS:
        thread = BY_ID[ending["id"]]
        if ending["ending_comment"] is not None:
            assert ending["quote"] in thread["comments"][ending["ending_comment"]]["body"]
        if ending.get("by") == "pull":
            assert BY_ID[int(ending["fix_ref"].removeprefix("#"))]["pull"]
        if ending.get("by") == "commit":
            assert ending["fix_ref"] in {event.get("commit") for event in thread["events"]}
        if ending["kind"] == "duplicate":
            assert f"#{ending['duplicate_of']}" in ending["quote"]
        for decision in ending["decisions"]:
            assert any(decision in text for _, role, _, text in messages(thread) if role in {"OWNER", "MEMBER"})


def test_issues_end_in_many_ways_and_one_chain_of_duplicates_has_two_steps() -> None:
    endings = Counter((ending["kind"], ending.get("by")) for ending in ENDINGS)
    assert {kind for kind, _ in endings} == KINDS
    assert {by for kind, by in endings if kind == "fixed"} == {"pull", "commit", "release"}
    assert len(endings) >= 8
    assert sum(len(ending["decisions"]) for ending in ENDINGS) >= 4
    leads = {ending["id"]: ending["duplicate_of"] for ending in ENDINGS if ending["kind"] == "duplicate"}
    assert (leads[42], leads[37], 26 in leads) == (37, 26, False)


def test_the_story_points_back_in_other_words() -> None:
    issue, comment = EVENTS["issue"], EVENTS["comment"]
    match = BY_ID[48]
    assert REFERENCE.findall(prose(issue["body"])) == ["14"]
    assert REFERENCE.findall(prose(comment["body"])) == ["42"]
    assert "SESSION_PATH_MISMATCH" in issue["body"]
    assert "SESSION_PATH_MISMATCH" in match["body"]
    assert not {word for word in issue["title"].lower().split() if len(word) > 3} & set(match["title"].lower().split())
    assert "\n2.2.4\n" in issue["body"]
    assert "v2.3.0" in match["comments"][4]["body"]
    assert at(comment["created_at"]) > at(issue["created_at"])


def test_the_other_events_name_what_they_should_find() -> None:
    assert [more["expect"] for more in EVENTS["more"]] == ["open now", "silent", "from the docs"]
    about = [target for more in EVENTS["more"] for target in more["about"]]
    assert all(BY_ID[target]["state"] == "open" for target in about if isinstance(target, int))
    assert all((SAMPLE / "wiki" / target).is_file() for target in about if isinstance(target, str))
