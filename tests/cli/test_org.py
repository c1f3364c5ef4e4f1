"""Many repositories on one machine: their list, what an update fetches, and what a search across them finds."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.domain.thread import FORGOTTEN, Tombstone
from bot.domain.thread_json import archive_fields
from bot.local_cache.local_memory import cache_folder
from bot.local_cache.organisation import LIST_FILE, MAX_SOURCES, organisation_folder
from tests.cli.checkouts import show_on_terminal, strip_codes
from tests.cli.fixtures import built_once
from tests.cli.organisations import THEN, Organisation, build_organisation, issue, solved_issue, work_at
from tests.cli.program_result import Run
from tests.cli.test_output import validator
from tests.memory.remotes import commit, git


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repositories, and a home folder with both in the default list. Tests only read and copy it."""
    return built_once(tmp_path_factory, "organisation", build_organisation)


@pytest.fixture
def organisation(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Organisation:
    shutil.copytree(saved / "github", tmp_path / "github")
    return work_at(tmp_path, monkeypatch)


@pytest.fixture
def listed(saved: Path, organisation: Organisation) -> Organisation:
    """The organisation with both repositories added to the default folder."""
    shutil.copytree(saved / "home", organisation.folder / "home", ignore=lambda *_: [".gitconfig"], dirs_exist_ok=True)
    return organisation


def cites(call: Run, *words: str) -> list[str]:
    result = call("search", *words, "--org", "--json")
    assert result.code == 0, result.err
    validator("search", is_closed=True).validate(result.data)
    return [row["cite"] for row in result.data]


def count_threads(call: Run, *words: str | Path) -> dict[str, int]:
    result = call("org", *words, "--json")
    assert result.code == 0, result.err
    return {row["repository"]: row["threads"] for row in result.data["repositories"]}


def test_a_problem_that_another_repository_solved_is_found_with_its_outcome(listed: Organisation, call: Run) -> None:
    result = call("search", "token", "refresh", "proxy", "--org", "--json")
    (row,) = [row for row in result.data if row["repository"] == "octo-org/sdk"]
    assert (row["id"], row["cite"], row["state"], row["messages"]) == (12, "octo-org/sdk#12", "closed", 2)
    assert row["url"] == "https://github.com/octo-org/sdk/issues/12"
    assert (row["outcome"]["kind"], row["outcome"]["fix"]) == ("fixed", "octo-org/sdk#13")
    assert row["outcome"]["release"] == "v4.2"
    assert {*row["why"][0].removeprefix("holds ").split(", ")} == {"token", "refresh", "proxy"}
    line = call("search", "token", "refresh", "--org").out
    assert line.startswith("octo-org/sdk#12\tclosed\t")
    assert line.endswith("\tToken refresh loops behind a proxy\n")


def test_what_was_said_and_decided_elsewhere_is_cited_in_full(listed: Organisation, call: Run) -> None:
    said = "We decided to drop zebrafinch."
    listed.remember("octo-org/sdk", issue(20, "Caching", "Which one?", said), issue(21, "Later", "See #20."))
    assert call("org", "update").code == 0
    (row,) = call("search", "zebrafinch", "--org", "--json").data
    (decision,) = row["decisions"]
    assert (row["cite"], decision["text"]) == ("octo-org/sdk#20", said)
    assert decision["url"] == row["passages"][0]["url"] == "https://github.com/octo-org/sdk/issues/20"


def test_an_update_fetches_what_changed_and_what_is_gone(listed: Organisation, call: Run) -> None:
    listed.remember("octo-org/sdk", issue(15, "Zebrafinch colours are wrong"))
    assert cites(call, "zebrafinch") == []
    assert count_threads(call, "update", "octo-org/app") == {"octo-org/app": 1}
    assert cites(call, "zebrafinch") == []
    assert count_threads(call, "update", "OCTO-ORG/SDK") == {"octo-org/sdk": 3}
    assert cites(call, "zebrafinch") == ["octo-org/sdk#15"]
    tombstone = Tombstone(15, THEN + timedelta(days=2), FORGOTTEN)
    listed.remember("octo-org/sdk", tombstone, issue(7, "Colours are not told", updated_at=THEN + timedelta(days=3)))
    assert count_threads(call, "update") == {"octo-org/sdk": 3, "octo-org/app": 1}
    assert (cites(call, "zebrafinch"), cites(call, "colours")) == ([], ["octo-org/sdk#7"])


def test_a_term_counts_as_much_in_a_small_repository_as_in_a_large_one(organisation: Organisation, call: Run) -> None:
    filler = [issue(number, f"Something else {number}") for number in range(2, 40)]
    text = "The zebrafinch loops"
    organisation.remember("octo-org/large", issue(1, text), *filler)
    organisation.remember("octo-org/small", issue(1, text), issue(2, "The zebrafinch crashes"))
    assert call("org", "add", "octo-org/large", "octo-org/small").code == 0
    scores = {row["cite"]: row["score"] for row in call("search", "zebrafinch", "loops", "--org", "--json").data}
    assert scores["octo-org/small#1"] == pytest.approx(scores["octo-org/large#1"], rel=0.05)


def test_newly_ignored_people_are_no_longer_found_with_their_words(organisation: Organisation, call: Run) -> None:
    top = organisation.checkout("octo-org/app", "branch: precedent\n")
    assert call("org", "add", top).code == 0
    assert "octocat" in call("search", "upgrade", "--org", "--json").out
    (top / ".github/precedent.yml").write_text("ignore:\n  people: [octocat]\n")
    assert "octocat" not in call("search", "upgrade", "--org", "--json").out


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
    assert count_threads(call, "add", top / ".github") == {"octo-org/sdk": 2}
    assert "in the list with another branch" in call("org", "add", top, "--memory-branch", "precedent").err
    assert len(call("org", "list", "--json").data["repositories"]) == 2


def test_a_removed_repository_is_no_longer_found(listed: Organisation, call: Run) -> None:
    assert cites(call, "token") == ["octo-org/sdk#12"]
    assert call("org", "remove", "octo-org/sdk").code == 0
    assert cites(call, "token") == []
    assert call("org", "list").out.startswith("octo-org/app\t1\t20")
    assert call("org", "remove", "octo-org/sdk").err == (
        "precedent org: 'octo-org/sdk' is not in the list: see precedent org list\n"
    )


def test_a_full_list_refuses_more_repositories_and_loses_none(listed: Organisation, call: Run) -> None:
    names = ["octo-org/sdk", *(f"o/{n}" for n in range(2, MAX_SOURCES + 1))]
    entries = [{"name": name} for name in names]
    file = organisation_folder(None) / LIST_FILE
    file.write_text(json.dumps({"format": 1, "repositories": entries}))
    assert f"at most {MAX_SOURCES} repositories" in call("org", "add", "octo-org/app").err
    assert json.loads(file.read_text())["repositories"] == entries
    assert count_threads(call, "add", "octo-org/sdk") == {"octo-org/sdk": 2}


def test_an_unreadable_repository_is_reported_and_the_rest_is_updated(listed: Organisation, call: Run) -> None:
    listed.remote("octo-org/sdk").rename(listed.folder / "away")
    listed.remember("octo-org/app", issue(8, "Zebrafinch colours are wrong"))
    result = call("org", "update")
    assert result.code == 1
    assert result.err.startswith("octo-org/sdk could not be read: Using the memory as last fetched: ")
    assert (cites(call, "zebrafinch"), cites(call, "token")) == (["octo-org/app#8"], ["octo-org/sdk#12"])
    rows = call("org", "list", "--json").data["repositories"]
    assert [bool(row["fault"]) for row in rows] == [True, False]
    shutil.rmtree(cache_folder())
    searched = call("search", "zebrafinch", "--org")
    assert searched.err.startswith("octo-org/sdk could not be read: the memory of ")
    assert "; or run precedent org update\n" in searched.err
    (listed.folder / "away").rename(listed.remote("octo-org/sdk"))
    assert count_threads(call, "update") == {"octo-org/sdk": 2, "octo-org/app": 2}


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
        (("search", "login", "--org", "--kind", "session"), "HOME/.local/share/precedent/organisation has no rep"),
        (("org", "add"), "name the repositories to add: OWNER/NAME, or the path of a checkout"),
        (("org", "list", "octo-org/sdk"), "list takes no repository: it is for all of them"),
        (("org", "update", "--memory-branch", "x"), "--memory-branch is for add"),
        (("org", "rebuild", "octo-org/sdk", "--data", "x"), "rebuild takes no repository: it is for all of them"),
        (("org", "rebuild"), "rebuild is for the index of a server"),
        (("org", "rebuild", "--org", "x", "--installation", "7"), "rebuild is for the index of a server"),
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
    assert count_threads(call, "add", tmp_path / "quantum") == {"quantum": 1}
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


def test_the_filters_of_a_search_hold_in_all_repositories(listed: Organisation, call: Run) -> None:
    listed.remember("octo-org/app", issue(10, "Proxy again", labels=("bug",)))
    assert call("org", "update").code == 0
    expected = {
        ("proxy",): {"octo-org/sdk#12", "octo-org/app#7", "octo-org/app#10"},
        ("proxy", "is:open"): {"octo-org/app#7", "octo-org/app#10"},
        ("proxy", "--state", "closed"): {"octo-org/sdk#12"},
        ("proxy", "--kind", "discussion"): set(),
        ("proxy", "author:nobody"): set(),
        ("proxy", "before:2026-03-01"): set(),
        ("proxy", "is:closed", "--since", "2026-03-02"): {"octo-org/sdk#12"},
        ("proxy", "--label", "bug"): {"octo-org/app#10"},
        ("released", "role:maintainer"): {"octo-org/sdk#12"},
        ('"behind a  Proxy"',): {"octo-org/sdk#12"},
        ('"empty page"',): {"octo-org/app#7"},
        ("is:closed",): {"octo-org/sdk#12"},
        ("#7",): {"octo-org/app#7"},
        ("proxy", "quantum", "zebra", "entanglement"): set(),
    }
    assert {words: {*cites(call, *words)} for words in expected} == expected
    refused = call("search", "proxy", "is:session", "--org")
    assert (refused.code, refused.out) == (2, "")
    assert "sessions belong to one checkout" in refused.err


def test_a_search_without_a_hit_says_what_was_searched(listed: Organisation, call: Run) -> None:
    result = call("search", "quantum", "--org", "--exit-code")
    assert (result.code, result.out) == (1, "")
    assert result.err == "Nothing relevant. 3 threads of 2 repositories searched.\n"


def test_a_terminal_shows_the_repository_and_the_outcome(listed: Organisation) -> None:
    here = Path.cwd()
    shown = show_on_terminal(here, "search", "token", "refresh", "--org", XDG_CACHE_HOME=str(cache_folder().parent))
    output = strip_codes(shown)
    assert output.startswith("octo-org/sdk#12  Token refresh loops behind a proxy\n")
    assert "closed, fixed by octo-org/sdk#13 in v4.2" in output


def test_an_outdated_memory_is_reported(listed: Organisation, call: Run) -> None:
    assert call("search", "token", "--org").err == ""
    for file in (cache_folder() / "repositories").glob("*sdk*/glance-*.db"):
        with closing(sqlite3.connect(file, isolation_level=None)) as database:
            fetched = (datetime.now(UTC) - timedelta(days=3, hours=1)).isoformat()
            database.execute("UPDATE facts SET value = ? WHERE name = 'fetched'", (fetched,))
    assert call("search", "token", "--org").err == "updated 3 days ago: run precedent org update\n"


def test_people_who_are_never_quoted_are_not_quoted_elsewhere(organisation: Organisation, call: Run) -> None:
    top = organisation.checkout("octo-org/sdk", "ignore:\n  people: [monalisa]\n")
    assert call("org", "add", top).code == 0
    (row,) = call("search", "token", "refresh", "--org", "--json").data
    assert "Fixed by" not in json.dumps(row)


# -- hostile sources -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_branch_with_damaged_records_still_provides_the_intact_ones(listed: Organisation, call: Run) -> None:
    listed.remember("octo-org/sdk", *(issue(number, f"Zebrafinch {number}") for number in (201, 202)))
    put_on_branch(listed.remote("octo-org/sdk"), "records/0002/201.json", b'{"id": 201, "title": [')
    put_on_branch(listed.remote("octo-org/sdk"), "records/0002/203.json", b"\xff\x00")
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
    assert all(line.count("\t") == 4 for line in call("org", "list").out.splitlines())


def test_a_link_in_place_of_the_list_is_not_followed(listed: Organisation, call: Run) -> None:
    folder = organisation_folder(None)
    (folder / LIST_FILE).rename(listed.folder / "list.json")
    (folder / LIST_FILE).symlink_to(listed.folder / "list.json")
    assert call("org", "list").code == 1


def test_an_unreadable_list_is_reported_and_kept(listed: Organisation, call: Run) -> None:
    file = organisation_folder(None) / LIST_FILE
    damaged, newer = "delete it and add the repositories again", "by another version of Precedent; use the newer one"
    cases = {b"\xff\xfe": damaged, b"[1]": damaged, b'{"format": 2, "repositories": []}': newer}
    for content, message in cases.items():
        file.write_bytes(content)
        for command in (("org", "list"), ("org", "add", "octo-org/app"), ("search", "x", "--org")):
            result = call(*command)
            assert (result.code, message in result.err) == (1, True), result.err
        assert file.read_bytes() == content


def test_a_damaged_entry_does_not_affect_the_others(listed: Organisation, call: Run) -> None:
    file = organisation_folder(None) / LIST_FILE
    stored = json.loads(file.read_text())
    sdk, app = stored["repositories"]
    for damage in ({"name": 7}, {"name": ""}, {"name": None}):
        entries = [sdk | damage, app, None, [], {"path": "x"}]
        file.write_text(json.dumps(stored | {"repositories": entries}))
        assert [row["repository"] for row in call("org", "list", "--json").data["repositories"]] == ["octo-org/app"]
        assert cites(call, "login") == ["octo-org/app#7"]
        assert cites(call, "token") == []
