"""Many repositories on one machine: their list, what an update reads, and what a search across them finds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.domain.thread import FORGOTTEN, Tombstone
from bot.domain.thread_json import archive_fields
from bot.local_cache.local_memory import no_progress
from bot.local_cache.organisation import INDEX_FOLDER, LIST_FILE, open_index, organisation_folder
from bot.local_cache.organisation_update import OrganisationUpdate, remove_sources, update_sources
from bot.recall.candidates import Candidates, OrganisationUnavailable
from tests.cli.checkouts import show_on_terminal, strip_codes
from tests.cli.fixtures import built_once
from tests.cli.organisations import THEN, Organisation, build_organisation, issue, solved_issue, work_at
from tests.cli.program_result import Run
from tests.cli.test_output import validator
from tests.memory.remotes import commit, git

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repositories, and a home folder with both in the default index. Tests only read and copy it."""
    return built_once(tmp_path_factory, "organisation", build_organisation)


@pytest.fixture
def organisation(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Organisation:
    shutil.copytree(saved / "github", tmp_path / "github")
    return work_at(tmp_path, monkeypatch)


@pytest.fixture
def indexed(saved: Path, organisation: Organisation) -> Organisation:
    """The organisation with both repositories added to the default folder."""
    shutil.copytree(saved / "home", organisation.folder / "home", ignore=lambda *_: [".gitconfig"], dirs_exist_ok=True)
    return organisation


@pytest.fixture
def shared_folder(saved: Path) -> Path:
    """The index of both repositories. Tests only read it."""
    return saved / "home/.local/share/precedent/organisation"


def cites(call: Run, *words: str, folder: Path | str = "") -> list[str]:
    result = call("search", *words, f"--org={folder}", "--json")
    assert result.code == 0, result.err
    validator("search", is_closed=True).validate(result.data)
    return [row["cite"] for row in result.data]


def count_changes(call: Run, *words: str | Path) -> dict[str, int]:
    result = call("org", *words, "--json")
    assert result.code == 0, result.err
    return {row["repository"]: row["changed"] for row in result.data["repositories"]}


@pytest.mark.slow
def test_a_problem_that_another_repository_solved_is_found_with_its_outcome(shared_folder: Path, call: Run) -> None:
    result = call("search", "token", "refresh", "proxy", "--org", shared_folder, "--json")
    (row,) = [row for row in result.data if row["repository"] == "octo-org/sdk"]
    assert (row["id"], row["cite"], row["state"]) == (12, "octo-org/sdk#12", "closed")
    assert row["url"] == "https://github.com/octo-org/sdk/issues/12"
    assert (row["outcome"]["kind"], row["outcome"]["fix"]) == ("fixed", "octo-org/sdk#13")
    assert row["outcome"]["release"] == "v4.2"
    assert {*row["why"][0].removeprefix("holds ").split(", ")} == {"token", "refresh", "proxy"}
    line = call("search", "token", "refresh", "--org", shared_folder).out
    assert line.startswith("octo-org/sdk#12\tclosed\t")
    assert line.endswith("\tToken refresh loops behind a proxy\n")


@pytest.mark.slow
def test_an_update_reads_only_what_changed_and_removes_what_is_gone(indexed: Organisation, call: Run) -> None:
    assert count_changes(call, "update") == {"octo-org/sdk": 0, "octo-org/app": 0}
    indexed.remember("octo-org/sdk", issue(15, "Zebrafinch colours are wrong"))
    assert cites(call, "zebrafinch") == []
    assert count_changes(call, "update", "octo-org/app") == {"octo-org/app": 0}
    assert count_changes(call, "update", "OCTO-ORG/SDK") == {"octo-org/sdk": 1}
    assert cites(call, "zebrafinch") == ["octo-org/sdk#15"]
    tombstone = Tombstone(15, THEN + timedelta(days=2), FORGOTTEN)
    indexed.remember("octo-org/sdk", tombstone, issue(7, "Colours are not told", updated_at=THEN + timedelta(days=3)))
    assert count_changes(call, "update") == {"octo-org/sdk": 2, "octo-org/app": 0}
    assert (cites(call, "zebrafinch"), cites(call, "colours")) == ([], ["octo-org/sdk#7"])


@pytest.mark.slow
def test_forgotten_threads_are_removed_even_if_the_record_of_indexed_threads_is_damaged(
    indexed: Organisation, call: Run
) -> None:
    """As after an update that was killed, or one by another version of Precedent."""
    indexed.remember("octo-org/sdk", Tombstone(12, THEN + timedelta(days=2), FORGOTTEN))
    for file in organisation_folder(None).glob("threads-*.json"):
        file.write_text("damaged")
    assert count_changes(call, "update", "octo-org/sdk") == {"octo-org/sdk": 1}
    assert (cites(call, "token"), cites(call, "retry")) == ([], ["octo-org/sdk#14"])


@contextmanager
def open_unanswering_index(folder: Path) -> Iterator[Candidates]:
    """An index whose files cannot be rewritten within the time allowed."""

    class UnansweringIndex:
        def __getattr__(self, name: str) -> Any:
            return getattr(index, name)

        def compact(self, *, purges: bool = False) -> None:
            raise OrganisationUnavailable("the index did not answer")

    with open_index(folder) as index:
        yield UnansweringIndex()


@pytest.mark.slow
@pytest.mark.parametrize("change", ["forgotten", "removed"])
def test_forgotten_or_removed_text_leaves_the_files_with_the_following_update(
    indexed: Organisation, change: str
) -> None:
    """Also if a removal could not rewrite the files at first, and is repeated."""
    open_impatiently = partial(open_index, retention=timedelta(milliseconds=1))
    update = OrganisationUpdate(organisation_folder(None), no_progress, index_at=open_impatiently)
    secret = "zqxjkvbp"
    indexed.remember("octo-org/sdk", issue(15, secret * 20))
    update_sources([1, 2], update)
    assert is_in_index(secret)
    if change == "forgotten":
        indexed.remember("octo-org/sdk", Tombstone(15, THEN + timedelta(days=2), FORGOTTEN))
        update_sources([1, 2], update)
    else:
        with pytest.raises(OrganisationUnavailable):
            remove_sources([1], update._replace(index_at=open_unanswering_index))
        remove_sources([1], update)
    update_sources([1, 2], update)
    assert not is_in_index(secret)


def is_in_index(words: str) -> bool:
    files = [file for file in (organisation_folder(None) / INDEX_FOLDER).rglob("*") if file.is_file()]
    return any(words.encode() in file.read_bytes() for file in files)


@pytest.mark.slow
def test_an_update_heals_an_index_whose_catalogue_was_deleted(indexed: Organisation, call: Run) -> None:
    shutil.rmtree(organisation_folder(None) / INDEX_FOLDER / "here" / "catalogue.lance")
    assert cites(call, "token") == []
    assert count_changes(call, "update") == {"octo-org/sdk": 2, "octo-org/app": 1}
    assert cites(call, "token") == ["octo-org/sdk#12"]


@pytest.mark.slow
def test_newly_ignored_people_are_removed_from_the_index_with_their_words(
    organisation: Organisation, call: Run
) -> None:
    top = organisation.checkout("octo-org/app", "branch: precedent\n")
    assert call("org", "add", top).code == 0
    assert cites(call, "upgrade") == ["octo-org/app#7"]
    (top / ".github/precedent.yml").write_text("ignore:\n  people: [octocat]\n")
    assert count_changes(call, "update") == {"octo-org/app": 1}
    assert (cites(call, "upgrade"), cites(call, "login")) == ([], ["octo-org/app#7"])


@pytest.mark.slow
def test_a_checkout_is_added_by_its_path_with_its_settings(organisation: Organisation, call: Run) -> None:
    organisation.remember("octo-org/hush", issue(1, "Zebrafinch"))
    top = organisation.checkout("octo-org/sdk", "branch: precedent\n")
    result = call("org", "add", top, "octo-org/sdk", "octo-org/hush", "--json")
    assert result.code == 0, result.err
    rows = result.data["repositories"]
    assert [(row["repository"], row["path"], row["threads"]) for row in rows] == [
        ("octo-org/sdk", str(top), 2),
        ("octo-org/hush", "", 1),
    ]
    again = call("org", "add", top / ".github", "--json").data["repositories"]
    assert [(row["repository"], row["changed"]) for row in again] == [("octo-org/sdk", 0)]
    assert len(call("org", "list", "--json").data["repositories"]) == 2


@pytest.mark.slow
def test_a_removed_repository_is_no_longer_found_and_its_number_is_not_reused(indexed: Organisation, call: Run) -> None:
    assert cites(call, "token") == ["octo-org/sdk#12"]
    assert call("org", "remove", "octo-org/sdk").code == 0
    assert cites(call, "token") == []
    assert call("org", "list").out.startswith("octo-org/app\t1\t0\t")
    stored = json.loads((organisation_folder(None) / LIST_FILE).read_text())
    assert ([entry["number"] for entry in stored["repositories"]], stored["next"]) == ([2], 3)
    assert call("org", "remove", "octo-org/sdk").err == (
        "precedent org: 'octo-org/sdk' is not in the list: see precedent org list\n"
    )
    assert count_changes(call, "add", "octo-org/sdk") == {"octo-org/sdk": 2}
    assert cites(call, "token") == ["octo-org/sdk#12"]


def test_a_full_list_refuses_more_repositories_and_loses_none(indexed: Organisation, call: Run) -> None:
    stored = json.loads((organisation_folder(None) / LIST_FILE).read_text())
    sdk = stored["repositories"][0]
    stored["repositories"] = [sdk, *(sdk | {"number": n, "name": f"o/{n}", "key": str(n)} for n in range(2, 1_001))]
    (organisation_folder(None) / LIST_FILE).write_text(json.dumps(stored | {"next": 1_001}))
    assert "at most 1,000 repositories" in call("org", "add", "octo-org/app").err
    names = [row["repository"] for row in call("org", "list", "--json").data["repositories"]]
    assert names == ["octo-org/sdk", *(f"o/{n}" for n in range(2, 1_001))]
    assert count_changes(call, "add", "octo-org/sdk") == {"octo-org/sdk": 0}


@pytest.mark.slow
def test_an_unreadable_repository_is_reported_and_the_rest_is_updated(indexed: Organisation, call: Run) -> None:
    indexed.remote("octo-org/sdk").rename(indexed.folder / "away")
    indexed.remember("octo-org/app", issue(8, "Zebrafinch colours are wrong"))
    result = call("org", "update")
    assert result.code == 1
    assert result.err.startswith("octo-org/sdk could not be read: Using the memory as last fetched: ")
    assert (cites(call, "zebrafinch"), cites(call, "token")) == (["octo-org/app#8"], ["octo-org/sdk#12"])
    rows = call("org", "list", "--json").data["repositories"]
    assert [bool(row["fault"]) for row in rows] == [True, False]
    (indexed.folder / "away").rename(indexed.remote("octo-org/sdk"))
    assert count_changes(call, "update") == {"octo-org/sdk": 0, "octo-org/app": 0}


def test_a_mistake_gets_one_line_that_says_what_to_do(organisation: Organisation, call: Run) -> None:
    cases = [
        (
            ("search", "--org", "login", "loop"),
            "'login' is not a folder: put --org after the words, or name its folder",
        ),
        (("search", "login", "--org"), "HOME/.local/share/precedent/organisation has no repository yet: "),
        (("search", "login", "--org", "--repo", "a/b"), "--repo is for a search in one repository: "),
        (("search", "login", "--org", "--expand"), "--expand is for a search in one repository: "),
        (("org", "update"), "HOME/.local/share/precedent/organisation has no repository yet: "),
        (("org", "add"), "name the repositories to add: OWNER/NAME, or the path of a checkout"),
        (("org", "list", "octo-org/sdk"), "list takes no repository: it is for all of them"),
        (("org", "update", "--memory-branch", "x"), "--memory-branch is for add"),
        (("org", "rebuild", "octo-org/sdk", "--data", "x"), "rebuild takes no repository: it is for all of them"),
        (("org", "rebuild", "--org", "x", "--installation", "7"), "--data, --database-url, --organisation and "),
        (("org", "list", "--database-url", "sqlite:///x"), "--data, --database-url, --organisation and "),
        (("org", "add", "../nowhere"), "'../nowhere' is neither a folder nor OWNER/NAME"),
        (("org", "add", "."), "this is not a git checkout: "),
        (("org", "add", "octo-org/sdk", "octo-org/none"), "the memory could not be fetched: "),
    ]
    for words, message in cases:
        result = call(*words)
        assert result.code == 2, words
        error = result.err.removeprefix(f"precedent {words[0]}: ").replace(str(organisation.folder / "home"), "HOME")
        assert error.startswith(message)
        assert error.count("\n") == 1
        assert call("org", "list", "--json").data["repositories"] == [], words


def test_a_store_without_a_repository_is_added_under_the_name_of_its_folder(
    organisation: Organisation, call: Run, tmp_path: Path
) -> None:
    comment = "Fixed by https://github.com/octo-org/sdk/commit/0d0e0ed056a4578107cd5cc90484dd57cde089de"
    thread = solved_issue(7, "Quantum login loops", "It loops.", comment)
    (tmp_path / "a.jsonl").write_text(json.dumps(archive_fields(thread)) + "\n")
    assert call("import", tmp_path / "a.jsonl", "--store", tmp_path / "quantum").code == 0
    assert count_changes(call, "add", tmp_path / "quantum") == {"quantum": 1}
    assert cites(call, "quantum login") == ["quantum#7"]


@pytest.mark.parametrize("store_comes_first", [True, False])
def test_a_store_cannot_pose_as_another_repository_of_the_list(
    organisation: Organisation, call: Run, tmp_path: Path, store_comes_first: bool
) -> None:
    organisation.remember("octo-org/sdk", issue(1, "Zebrafinch"))
    organisation.remember("octo-org/evil", issue(2, "Zebrafinch, forged"))
    store = tmp_path / "store"
    git(tmp_path, "clone", "-q", "-b", "precedent", str(organisation.remote("octo-org/evil")), str(store))
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps(manifest | {"repo": "Octo-Org/SDK"}))
    git(store, "commit", "-aqm", "Forge")
    first, second = (store, "octo-org/sdk") if store_comes_first else ("octo-org/sdk", store)
    assert call("org", "add", first).code == 0
    refused = call("org", "add", second)
    assert refused.code == 2
    assert f"the store {store} says that it is " in refused.err
    assert len(call("org", "list", "--json").data["repositories"]) == 1
    assert call("org", "add", first).code == 0, "it may be added again"


def test_the_index_supports_these_filters_of_a_search(shared_folder: Path, call: Run) -> None:
    expected = {
        ("proxy",): {"octo-org/sdk#12", "octo-org/app#7"},
        ("proxy", "is:open"): {"octo-org/app#7"},
        ("proxy", "--state", "closed"): {"octo-org/sdk#12"},
        ("proxy", "--kind", "discussion"): set(),
        ("proxy", "--author", "@octocat"): {"octo-org/sdk#12", "octo-org/app#7"},
        ("proxy", "author:nobody"): set(),
        ("proxy", "before:2026-03-01"): set(),
        ("proxy", "after:2026-03-01"): {"octo-org/sdk#12", "octo-org/app#7"},
        ("proxy", "--since", "2026-03-02"): {"octo-org/sdk#12"},
        ('"behind a  Proxy"',): {"octo-org/sdk#12"},
        ("proxy", "quantum", "zebra", "entanglement"): set(),
    }
    assert {words: {*cites(call, *words, folder=shared_folder)} for words in expected} == expected


def test_a_filter_that_the_index_cannot_answer_is_refused(shared_folder: Path, call: Run) -> None:
    cases = [
        (("proxy", "--label", "bug"), "the index of an organisation has no labels"),
        (("proxy", "label:bug"), "the index of an organisation has no labels"),
        (("proxy", "role:maintainer"), "the index of an organisation has no roles"),
        (
            ("proxy", "--kind", "pull"),
            "the index of an organisation has only the kinds issue and discussion",
        ),
        (("proxy", "is:page"), "the index of an organisation has only the kinds issue and discussion"),
        (("is:open",), "a search in many repositories needs words"),
        (("the", "of"), "a search in many repositories needs words"),
    ]
    for words, message in cases:
        result = call("search", *words, "--org", shared_folder)
        assert (result.code, result.out) == (2, ""), words
        assert result.err.startswith(f"precedent search: {message}"), words


def test_a_phrase_is_matched_in_titles_only_and_a_note_says_so(shared_folder: Path, call: Run) -> None:
    result = call("search", '"empty page"', "--org", shared_folder, "--exit-code")
    assert (result.code, result.out) == (1, "")
    assert result.err.splitlines() == [
        "Phrases are matched in titles only: the index of an organisation has no texts.",
        "Nothing relevant. 3 threads of 2 repositories searched.",
    ]


def test_a_terminal_shows_the_repository_and_the_outcome(shared_folder: Path) -> None:
    output = strip_codes(show_on_terminal(shared_folder, "search", "token", "refresh", "--org", shared_folder))
    assert output.startswith("octo-org/sdk#12  Token refresh loops behind a proxy\n")
    assert "closed, fixed by octo-org/sdk#13 in v4.2" in output


def test_an_outdated_index_is_reported(indexed: Organisation, call: Run) -> None:
    assert call("search", "token", "--org").err == ""
    file = organisation_folder(None) / LIST_FILE
    stored = json.loads(file.read_text())
    stored["repositories"][1]["updated"] = (datetime.now(UTC) - timedelta(days=3, hours=1)).isoformat()
    file.write_text(json.dumps(stored))
    assert call("search", "token", "--org").err == "updated 3 days ago: run precedent org update\n"


@pytest.mark.slow
def test_a_rebuild_heals_a_damaged_index(indexed: Organisation, call: Run) -> None:
    for file in (organisation_folder(None) / INDEX_FOLDER).rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xff" * 100)
    result = call("search", "token", "--org")
    assert (result.code, result.out) == (1, "")
    assert "precedent org rebuild" in result.err
    assert count_changes(call, "rebuild") == {"octo-org/sdk": 2, "octo-org/app": 1}
    assert cites(call, "token") == ["octo-org/sdk#12"]
    assert count_changes(call, "update") == {"octo-org/sdk": 0, "octo-org/app": 0}


def test_people_who_are_never_quoted_are_not_in_the_index(organisation: Organisation, call: Run) -> None:
    top = organisation.checkout("octo-org/sdk", "ignore:\n  people: [monalisa]\n")
    assert call("org", "add", top).code == 0
    (row,) = call("search", "token", "refresh", "--org", "--json").data
    assert "Fixed by" not in json.dumps(row)


# -- hostile sources -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_branch_with_damaged_records_still_provides_the_intact_ones(indexed: Organisation, call: Run) -> None:
    indexed.remember("octo-org/sdk", *(issue(number, f"Zebrafinch {number}") for number in (201, 202)))
    put_on_branch(indexed.remote("octo-org/sdk"), "records/0002/201.json", b'{"id": 201, "title": [')
    put_on_branch(indexed.remote("octo-org/sdk"), "records/0002/203.json", b"\xff\x00")
    assert call("org", "update").code in (0, 1)
    assert "octo-org/sdk#202" in cites(call, "zebrafinch")
    assert cites(call, "login") == ["octo-org/app#7"]


def put_on_branch(remote: Path, path: str, content: bytes) -> None:
    """Add one file to the memory branch."""
    tree = subprocess.run(
        ["git", "-C", str(remote), "ls-tree", "-r", "precedent"], check=True, capture_output=True, text=True
    ).stdout
    entries: dict[str, tuple[str, bytes]] = {}
    for line in tree.splitlines():
        (mode, _, oid), name = line.partition("\t")[0].split(), line.partition("\t")[2]
        blob = subprocess.run(["git", "-C", str(remote), "cat-file", "blob", oid], check=True, capture_output=True)
        entries[name] = mode, blob.stdout
    commit(remote, entries | {path: ("100644", content)})


@pytest.mark.slow
def test_names_and_titles_cannot_control_a_terminal(organisation: Organisation, call: Run) -> None:
    evil = "Zebrafinch \x1b[31m\u202e\r\n\tred"
    organisation.remember("octo-org/sdk", issue(30, evil))
    folder = organisation.folder / "home" / "bad\x1b[2J\tname"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    subprocess.run(["git", "-C", folder, "remote", "add", "origin", organisation.remote("octo-org/app")], check=True)
    assert call("org", "add", "octo-org/sdk", folder).code == 0
    for result in (call("org", "list"), call("search", "zebrafinch", "--org"), call("search", "login", "--org")):
        assert result.code == 0
        assert not {"\x1b", "\u202e", "\r"} & {*result.out, *result.err}
        assert result.out
    assert all(line.count("\t") == 5 for line in call("org", "list").out.splitlines())


def test_links_are_not_followed_in_the_folder(indexed: Organisation, call: Run) -> None:
    folder = organisation_folder(None)
    (folder / INDEX_FOLDER).rename(indexed.folder / "elsewhere")
    (folder / INDEX_FOLDER).symlink_to(indexed.folder / "elsewhere")
    assert "is a link: put a real folder in its place" in call("search", "token", "--org").err
    (folder / INDEX_FOLDER).unlink()
    (folder / LIST_FILE).rename(indexed.folder / "list.json")
    (folder / LIST_FILE).symlink_to(indexed.folder / "list.json")
    assert call("org", "list").code == 1


def test_an_unreadable_list_is_reported_and_kept(indexed: Organisation, call: Run) -> None:
    file = organisation_folder(None) / LIST_FILE
    damaged, newer = "delete it and add the repositories again", "by another version of Precedent; use the newer one"
    cases = {b"\xff\xfe": damaged, b"[1]": damaged, b'{"format": 2, "repositories": []}': newer}
    for content, message in cases.items():
        file.write_bytes(content)
        for command in (("org", "list"), ("org", "add", "octo-org/app"), ("search", "x", "--org")):
            result = call(*command)
            assert (result.code, message in result.err) == (1, True), result.err
        assert file.read_bytes() == content


def test_a_damaged_entry_does_not_affect_the_others(indexed: Organisation, call: Run) -> None:
    file = organisation_folder(None) / LIST_FILE
    stored = json.loads(file.read_text())
    sdk, app = stored["repositories"]
    for damage in ({"number": "1"}, {"name": 7}, {"name": ""}):
        entries = [sdk | damage, app, None, [], {"number": True, "name": "x"}]
        file.write_text(json.dumps(stored | {"repositories": entries}))
        assert [row["repository"] for row in call("org", "list", "--json").data["repositories"]] == ["octo-org/app"]
        assert cites(call, "login") == ["octo-org/app#7"]
        assert cites(call, "token") == []


# -- several processes ---------------------------------------------------------------------------------------------


def start_command(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bot", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.night
@pytest.mark.slow
def test_two_updates_at_once_do_the_work_once(indexed: Organisation, call: Run) -> None:
    indexed.remember("octo-org/sdk", *(issue(100 + n, f"Zebrafinch {n}") for n in range(40)))
    running = [start_command("org", "update", "--json") for _ in range(2)]
    reports = [json.loads(process.communicate(timeout=120)[0]) for process in running]
    assert sorted(sum(row["changed"] for row in report["repositories"]) for report in reports) == [0, 40]
    assert len(cites(call, "zebrafinch", "--limit", "100")) == 40


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    ["index/**/*", *(pytest.param(each, marks=pytest.mark.night) for each in ("threads-1.json", "repositories.json"))],
)
def test_the_next_update_completes_one_that_was_killed(indexed: Organisation, call: Run, pattern: str) -> None:
    """Killed once it wrote a matching file: the index, the record of one repository, or the list."""
    indexed.remember("octo-org/sdk", *(issue(100 + n, f"Zebrafinch {n}", "x " * 500) for n in range(600)))
    indexed.remember("octo-org/app", issue(9, "Zebrafinch in the app"))
    folder = organisation_folder(None)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    running = start_command("org", "update")
    while running.poll() is None:
        if any(before.get(file) != mtime(file) for file in folder.glob(pattern)):
            running.send_signal(signal.SIGKILL)
            break
        time.sleep(0.002)
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    assert cites(call, "token") == ["octo-org/sdk#12"]
    assert call("org", "update").code == 0
    assert len(cites(call, "zebrafinch", "--limit", "1000")) == 601
    assert count_changes(call, "update") == {"octo-org/sdk": 0, "octo-org/app": 0}


def mtime(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


@pytest.mark.slow
def test_no_other_command_loads_the_engine(sample_store: Path) -> None:
    code = "import sys; from bot.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    for words in (("search", "login", "--store", str(sample_store)), ("org", "list"), ("--help",)):
        process = subprocess.run(
            [sys.executable, "-c", code, *words], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert not {"lancedb", "pyarrow"} & {*process.stderr.split()}


def test_without_the_extra_one_line_says_what_to_install(shared_folder: Path) -> None:
    code = "import sys; sys.modules['lancedb'] = None; from bot.cli.main import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.run(
        [sys.executable, "-c", code, "search", "token", "--org", shared_folder],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr == (
        "precedent search: its engine is not installed: in the checkout that Precedent is installed from, "
        "run pip install '.[org]'\n"
    )
