"""Many repositories on one machine: their list, what an update reads, and what a search in all of them finds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.domain.thread import FORGOTTEN, Tombstone
from bot.domain.thread_json import archive_fields
from bot.local_cache.organisation import INDEX_FOLDER, LIST_FILE, organisation_folder
from tests.cli.asked import bare, on_a_terminal
from tests.cli.console import Run
from tests.cli.test_output import validator
from tests.cli.town import THEN, Organisation, organisation_at, report, solved
from tests.memory.remotes import commit

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Organisation:
    return organisation_at(tmp_path, monkeypatch)


@pytest.fixture
def both(town: Organisation, call: Run) -> Organisation:
    """Two repositories in the default folder."""
    assert call("org", "add", "octo-org/sdk", "octo-org/app").code == 0
    return town


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the same two, which is only read."""
    from bot.cli.main import main

    with pytest.MonkeyPatch.context() as patch:
        organisation_at(tmp_path_factory.mktemp("standing"), patch)
        assert main(["org", "add", "octo-org/sdk", "octo-org/app"]) == 0
        yield organisation_folder(None)


def cites(call: Run, *words: str, folder: Path | str = "") -> list[str]:
    ended = call("search", *words, f"--org={folder}", "--json")
    assert ended.code == 0, ended.err
    validator("search", is_closed=True).validate(ended.data)
    return [row["cite"] for row in ended.data]


def changed(call: Run, *words: str | Path) -> dict[str, int]:
    ended = call("org", *words, "--json")
    assert ended.code == 0, ended.err
    return {row["repository"]: row["changed"] for row in ended.data["repositories"]}


def test_a_problem_that_another_repository_solved_is_found_with_its_ending(standing: Path, call: Run) -> None:
    ended = call("search", "token", "refresh", "proxy", "--org", standing, "--json")
    (row,) = [one for one in ended.data if one["repository"] == "octo-org/sdk"]
    assert (row["id"], row["cite"], row["state"]) == (12, "octo-org/sdk#12", "closed")
    assert row["url"] == "https://github.com/octo-org/sdk/issues/12"
    assert (row["outcome"]["kind"], row["outcome"]["fix"]) == ("fixed", "octo-org/sdk#13")
    assert row["outcome"]["release"] == "v4.2"
    assert {*row["why"][0].removeprefix("holds ").split(", ")} == {"token", "refresh", "proxy"}
    line = call("search", "token", "refresh", "--org", standing).out
    assert line.startswith("octo-org/sdk#12\tclosed\t")
    assert line.endswith("\tToken refresh loops behind a proxy\n")


def test_an_update_reads_only_what_changed_and_takes_out_what_is_gone(both: Organisation, call: Run) -> None:
    assert changed(call, "update") == {"octo-org/sdk": 0, "octo-org/app": 0}
    both.remember("octo-org/sdk", report(15, "Zebrafinch colours are wrong"))
    assert cites(call, "zebrafinch") == []
    assert changed(call, "update", "octo-org/app") == {"octo-org/app": 0}
    assert changed(call, "update", "OCTO-ORG/SDK") == {"octo-org/sdk": 1}
    assert cites(call, "zebrafinch") == ["octo-org/sdk#15"]
    gone = Tombstone(15, THEN + timedelta(days=2), FORGOTTEN)
    both.remember("octo-org/sdk", gone, report(7, "Colours are not told", updated_at=THEN + timedelta(days=3)))
    assert changed(call, "update") == {"octo-org/sdk": 2, "octo-org/app": 0}
    assert (cites(call, "zebrafinch"), cites(call, "colours")) == ([], ["octo-org/sdk#7"])


def test_what_was_forgotten_goes_also_where_nobody_knows_what_the_index_has(both: Organisation, call: Run) -> None:
    """As after an update that was killed, or with another version of Precedent."""
    both.remember("octo-org/sdk", Tombstone(12, THEN + timedelta(days=2), FORGOTTEN))
    for file in organisation_folder(None).glob("threads-*.json"):
        file.write_text("damaged")
    assert changed(call, "update", "octo-org/sdk") == {"octo-org/sdk": 1}
    assert (cites(call, "token"), cites(call, "retry")) == ([], ["octo-org/sdk#14"])


@pytest.mark.parametrize("way", ["forgotten", "removed"])
def test_what_is_forgotten_or_removed_leaves_the_files_with_the_update_after_that(
    both: Organisation, call: Run, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr("bot.organisation.lance.READERS_LEAVE", timedelta(milliseconds=1))
    secret = "zqxjkvbp"
    both.remember("octo-org/sdk", report(15, secret * 20))
    assert changed(call, "update") == {"octo-org/sdk": 1, "octo-org/app": 0}
    assert holds(secret)
    if way == "removed":
        assert call("org", "remove", "octo-org/sdk").code == 0
    else:
        both.remember("octo-org/sdk", Tombstone(15, THEN + timedelta(days=2), FORGOTTEN))
        changed(call, "update")
    changed(call, "update")
    assert not holds(secret)


def test_a_removal_that_cannot_write_the_files_again_is_repeated(
    both: Organisation, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.organisation.lance.READERS_LEAVE", timedelta(milliseconds=1))
    secret = "zqxjkvbp"
    both.remember("octo-org/sdk", report(15, secret * 20))
    changed(call, "update")
    with monkeypatch.context() as slow:
        slow.setattr("bot.organisation.lance.COMPACT_SECONDS", 0)
        assert "did not answer" in call("org", "remove", "octo-org/sdk").err
    assert call("org", "remove", "octo-org/sdk").code == 0
    changed(call, "update")
    assert not holds(secret)


def holds(words: str) -> bool:
    files = [file for file in (organisation_folder(None) / INDEX_FOLDER).rglob("*") if file.is_file()]
    return any(words.encode() in file.read_bytes() for file in files)


def test_an_update_heals_an_index_whose_catalogue_was_deleted(both: Organisation, call: Run) -> None:
    shutil.rmtree(organisation_folder(None) / INDEX_FOLDER / "here" / "catalogue.lance")
    assert cites(call, "token") == []
    assert changed(call, "update") == {"octo-org/sdk": 2, "octo-org/app": 1}
    assert cites(call, "token") == ["octo-org/sdk#12"]


def test_people_who_are_ignored_from_now_on_leave_the_index_with_their_words(town: Organisation, call: Run) -> None:
    top = town.checkout("octo-org/app", "branch: precedent\n")
    assert call("org", "add", top).code == 0
    assert cites(call, "upgrade") == ["octo-org/app#7"]
    (top / ".github/precedent.yml").write_text("ignore:\n  people: [octocat]\n")
    assert changed(call, "update") == {"octo-org/app": 1}
    assert (cites(call, "upgrade"), cites(call, "login")) == ([], ["octo-org/app#7"])


def test_a_checkout_is_added_by_its_path_with_its_settings(town: Organisation, call: Run) -> None:
    town.remember("octo-org/hush", report(1, "Zebrafinch"))
    top = town.checkout("octo-org/sdk", "branch: precedent\n")
    ended = call("org", "add", top, "octo-org/sdk", "octo-org/hush", "--json")
    assert ended.code == 0, ended.err
    rows = ended.data["repositories"]
    assert [(row["repository"], row["path"], row["threads"]) for row in rows] == [
        ("octo-org/sdk", str(top), 2),
        ("octo-org/hush", "", 1),
    ]
    again = call("org", "add", top / ".github", "--json").data["repositories"]
    assert [(row["repository"], row["changed"]) for row in again] == [("octo-org/sdk", 0)]
    assert len(call("org", "list", "--json").data["repositories"]) == 2


def test_a_removed_repository_is_found_no_more_and_its_number_never_again(both: Organisation, call: Run) -> None:
    assert cites(call, "token") == ["octo-org/sdk#12"]
    assert call("org", "remove", "octo-org/sdk").code == 0
    assert cites(call, "token") == []
    assert call("org", "list").out.startswith("octo-org/app\t1\t0\t")
    listed = json.loads((organisation_folder(None) / LIST_FILE).read_text())
    assert ([one["number"] for one in listed["repositories"]], listed["next"]) == ([2], 3)
    assert call("org", "remove", "octo-org/sdk").err == (
        "precedent org: 'octo-org/sdk' is not in the list: see precedent org list\n"
    )
    assert changed(call, "add", "octo-org/sdk") == {"octo-org/sdk": 2}
    assert cites(call, "token") == ["octo-org/sdk#12"]


def test_more_than_a_list_holds_are_refused_and_none_is_lost(
    town: Organisation, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.local_cache.organisation_update.MAX_SOURCES", 1)
    assert call("org", "add", "octo-org/sdk").code == 0
    assert "at most 1 repositories" in call("org", "add", "octo-org/app").err
    assert [row["repository"] for row in call("org", "list", "--json").data["repositories"]] == ["octo-org/sdk"]
    assert changed(call, "add", "octo-org/sdk") == {"octo-org/sdk": 0}


def test_one_that_cannot_be_read_is_told_and_the_rest_is_updated(both: Organisation, call: Run) -> None:
    both.remote("octo-org/sdk").rename(both.folder / "away")
    both.remember("octo-org/app", report(8, "Zebrafinch colours are wrong"))
    ended = call("org", "update")
    assert ended.code == 1
    assert ended.err.startswith("octo-org/sdk could not be read: Using the memory as last fetched: ")
    assert (cites(call, "zebrafinch"), cites(call, "token")) == (["octo-org/app#8"], ["octo-org/sdk#12"])
    rows = call("org", "list", "--json").data["repositories"]
    assert [bool(row["fault"]) for row in rows] == [True, False]
    (both.folder / "away").rename(both.remote("octo-org/sdk"))
    assert changed(call, "update") == {"octo-org/sdk": 0, "octo-org/app": 0}


@pytest.mark.parametrize(
    ("words", "told"),
    [
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
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    town: Organisation, call: Run, words: tuple[str, ...], told: str
) -> None:
    ended = call(*words)
    assert ended.code == 2
    said = ended.err.removeprefix(f"precedent {words[0]}: ").replace(str(town.folder / "home"), "HOME")
    assert said.startswith(told)
    assert said.count("\n") == 1
    assert call("org", "list", "--json").data["repositories"] == []


def test_a_store_that_knows_no_repository_is_added_under_the_name_of_its_folder(
    town: Organisation, call: Run, tmp_path: Path
) -> None:
    said = "Fixed by https://github.com/octo-org/sdk/commit/0d0e0ed056a4578107cd5cc90484dd57cde089de"
    ended = solved(7, "Quantum login loops", "It loops.", said)
    (tmp_path / "a.jsonl").write_text(json.dumps(archive_fields(ended)) + "\n")
    assert call("import", tmp_path / "a.jsonl", "--store", tmp_path / "quantum").code == 0
    assert changed(call, "add", tmp_path / "quantum") == {"quantum": 1}
    assert cites(call, "quantum login") == ["quantum#7"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("proxy",), {"octo-org/sdk#12", "octo-org/app#7"}),
        (("proxy", "is:open"), {"octo-org/app#7"}),
        (("proxy", "--state", "closed"), {"octo-org/sdk#12"}),
        (("proxy", "--kind", "discussion"), set()),
        (("proxy", "--author", "@octocat"), {"octo-org/sdk#12", "octo-org/app#7"}),
        (("proxy", "author:nobody"), set()),
        (("proxy", "before:2026-03-01"), set()),
        (("proxy", "after:2026-03-01"), {"octo-org/sdk#12", "octo-org/app#7"}),
        (("proxy", "--since", "2026-03-02"), {"octo-org/sdk#12"}),
        (('"behind a  Proxy"',), {"octo-org/sdk#12"}),
        (("proxy", "quantum", "zebra", "entanglement"), set()),
    ],
)
def test_the_filters_of_a_search_that_the_index_knows(
    standing: Path, call: Run, words: tuple[str, ...], expected: set[str]
) -> None:
    assert {*cites(call, *words, folder=standing)} == expected


@pytest.mark.parametrize(
    ("words", "told"),
    [
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
    ],
)
def test_a_filter_that_the_index_cannot_answer_is_refused(
    standing: Path, call: Run, words: tuple[str, ...], told: str
) -> None:
    ended = call("search", *words, "--org", standing)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"precedent search: {told}")


def test_a_phrase_is_looked_for_in_titles_and_that_is_told(standing: Path, call: Run) -> None:
    ended = call("search", '"empty page"', "--org", standing, "--exit-code")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.splitlines() == [
        "Phrases are matched in titles only: the index of an organisation has no texts.",
        "Nothing relevant. 3 threads of 2 repositories searched.",
    ]


def test_a_person_sees_the_repository_and_the_ending(standing: Path) -> None:
    shown = bare(on_a_terminal(standing, "search", "token", "refresh", "--org", standing))
    assert shown.startswith("octo-org/sdk#12  Token refresh loops behind a proxy ")
    assert "closed, fixed by octo-org/sdk#13 in v4.2" in shown


def test_an_old_index_is_told(both: Organisation, call: Run) -> None:
    assert call("search", "token", "--org").err == ""
    file = organisation_folder(None) / LIST_FILE
    listed = json.loads(file.read_text())
    listed["repositories"][1]["updated"] = (datetime.now(UTC) - timedelta(days=3, hours=1)).isoformat()
    file.write_text(json.dumps(listed))
    assert call("search", "token", "--org").err == "updated 3 days ago: run precedent org update\n"


def test_a_rebuild_heals_a_damaged_index(both: Organisation, call: Run) -> None:
    for file in (organisation_folder(None) / INDEX_FOLDER).rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xff" * 100)
    ended = call("search", "token", "--org")
    assert (ended.code, ended.out) == (1, "")
    assert "precedent org rebuild" in ended.err
    assert changed(call, "rebuild") == {"octo-org/sdk": 2, "octo-org/app": 1}
    assert cites(call, "token") == ["octo-org/sdk#12"]
    assert changed(call, "update") == {"octo-org/sdk": 0, "octo-org/app": 0}


def test_an_index_that_somebody_deleted_is_read_again(both: Organisation, call: Run) -> None:
    index = organisation_folder(None) / INDEX_FOLDER
    index.rename(both.folder / "deleted")
    assert changed(call, "update") == {"octo-org/sdk": 2, "octo-org/app": 1}
    assert cites(call, "token") == ["octo-org/sdk#12"]


def test_people_who_are_never_quoted_are_not_in_the_index(town: Organisation, call: Run) -> None:
    top = town.checkout("octo-org/sdk", "ignore:\n  people: [monalisa]\n")
    assert call("org", "add", top).code == 0
    (row,) = call("search", "token", "refresh", "--org", "--json").data
    assert "Fixed by" not in json.dumps(row)


# -- hostile sources -----------------------------------------------------------------------------------------------


def test_a_branch_with_damaged_records_gives_what_is_whole(both: Organisation, call: Run) -> None:
    both.remember("octo-org/sdk", *(report(number, f"Zebrafinch {number}") for number in (201, 202)))
    git_tree(both.remote("octo-org/sdk"), "records/0002/201.json", b'{"id": 201, "title": [')
    git_tree(both.remote("octo-org/sdk"), "records/0002/203.json", b"\xff\x00")
    assert call("org", "update").code in (0, 1)
    assert "octo-org/sdk#202" in cites(call, "zebrafinch")
    assert cites(call, "login") == ["octo-org/app#7"]


def git_tree(remote: Path, path: str, content: bytes) -> None:
    """Put one file on the memory branch, beside what is there."""
    listed = subprocess.run(
        ["git", "-C", str(remote), "ls-tree", "-r", "precedent"], check=True, capture_output=True, text=True
    ).stdout
    entries: dict[str, tuple[str, bytes]] = {}
    for line in listed.splitlines():
        (mode, _, oid), name = line.partition("\t")[0].split(), line.partition("\t")[2]
        shown = subprocess.run(["git", "-C", str(remote), "cat-file", "blob", oid], check=True, capture_output=True)
        entries[name] = mode, shown.stdout
    commit(remote, entries | {path: ("100644", content)})


def test_names_and_titles_cannot_drive_a_terminal(town: Organisation, call: Run) -> None:
    evil = "Zebrafinch \x1b[31m\u202e\r\n\tred"
    town.remember("octo-org/sdk", report(30, evil))
    folder = town.folder / "home" / "bad\x1b[2J\tname"
    folder.mkdir()
    git_init(folder, town.remote("octo-org/app"))
    assert call("org", "add", "octo-org/sdk", folder).code == 0
    for ended in (call("org", "list"), call("search", "zebrafinch", "--org"), call("search", "login", "--org")):
        assert ended.code == 0
        assert not {"\x1b", "\u202e", "\r"} & {*ended.out, *ended.err}
        assert ended.out
    assert all(line.count("\t") == 5 for line in call("org", "list").out.splitlines())


def git_init(folder: Path, remote: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", str(remote)], check=True)


def test_links_are_not_followed_in_the_folder(both: Organisation, call: Run) -> None:
    folder = organisation_folder(None)
    (folder / INDEX_FOLDER).rename(both.folder / "elsewhere")
    (folder / INDEX_FOLDER).symlink_to(both.folder / "elsewhere")
    assert "is a link: put a real folder in its place" in call("search", "token", "--org").err
    (folder / INDEX_FOLDER).unlink()
    (folder / LIST_FILE).rename(both.folder / "list.json")
    (folder / LIST_FILE).symlink_to(both.folder / "list.json")
    assert call("org", "list").code == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xff\xfe", "is damaged; delete it and add the repositories again"),
        (b"[1]", "is damaged; delete it and add the repositories again"),
        (b'{"format": 2, "repositories": []}', "was written by another version of Precedent; use the newer one"),
    ],
)
def test_a_list_that_cannot_be_read_is_told_and_kept(both: Organisation, call: Run, content: bytes, told: str) -> None:
    file = organisation_folder(None) / LIST_FILE
    file.write_bytes(content)
    for command in (("org", "list"), ("org", "add", "octo-org/app"), ("search", "x", "--org")):
        ended = call(*command)
        assert (ended.code, told in ended.err) == (1, True), ended.err
    assert file.read_bytes() == content


@pytest.mark.parametrize("damage", [{"number": "1"}, {"name": 7}, {"name": ""}])
def test_a_damaged_entry_costs_only_itself(both: Organisation, call: Run, damage: dict[str, Any]) -> None:
    file = organisation_folder(None) / LIST_FILE
    listed = json.loads(file.read_text())
    listed["repositories"][0] |= damage
    listed["repositories"] += [None, [], {"number": True, "name": "x"}]
    file.write_text(json.dumps(listed))
    assert [row["repository"] for row in call("org", "list", "--json").data["repositories"]] == ["octo-org/app"]
    assert cites(call, "login") == ["octo-org/app#7"]
    assert cites(call, "token") == []


# -- several processes ---------------------------------------------------------------------------------------------


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bot", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_two_updates_at_once_do_the_work_once(both: Organisation, call: Run) -> None:
    both.remember("octo-org/sdk", *(report(100 + n, f"Zebrafinch {n}") for n in range(40)))
    running = [started("org", "update", "--json") for _ in range(2)]
    told = [json.loads(one.communicate(timeout=120)[0]) for one in running]
    assert sorted(sum(row["changed"] for row in one["repositories"]) for one in told) == [0, 40]
    assert len(cites(call, "zebrafinch", "--limit", "100")) == 40


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["index/**/*", "threads-1.json", "repositories.json"])
def test_an_update_that_is_killed_is_made_up_by_the_next(both: Organisation, call: Run, moment: str) -> None:
    """Killed once it wrote a file of this name: into the index, what it has of one repository, the list."""
    both.remember("octo-org/sdk", *(report(100 + n, f"Zebrafinch {n}", "x " * 500) for n in range(600)))
    both.remember("octo-org/app", report(9, "Zebrafinch in the app"))
    folder = organisation_folder(None)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    running = started("org", "update")
    while running.poll() is None:
        if any(before.get(file) != mtime(file) for file in folder.glob(moment)):
            running.send_signal(signal.SIGKILL)
            break
        time.sleep(0.002)
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    assert cites(call, "token") == ["octo-org/sdk#12"]
    assert call("org", "update").code == 0
    assert len(cites(call, "zebrafinch", "--limit", "1000")) == 601
    assert changed(call, "update") == {"octo-org/sdk": 0, "octo-org/app": 0}


def mtime(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


@pytest.mark.slow
def test_no_other_command_loads_the_engine(sample_store: Path) -> None:
    code = "import sys; from bot.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    for words in (("search", "login", "--store", str(sample_store)), ("org", "list"), ("--help",)):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert not {"lancedb", "pyarrow"} & {*done.stderr.split()}


@pytest.mark.parametrize("words", [("search", "token", "--org"), ("org", "update")], ids=" ".join)
def test_without_the_extra_one_line_says_what_to_install(standing: Path, words: tuple[str, ...]) -> None:
    code = "import sys; sys.modules['lancedb'] = None; from bot.cli.main import main; sys.exit(main(sys.argv[1:]))"
    here = {**os.environ, "PYTHONPATH": str(ROOT), "PRECEDENT_ORG": str(standing)}
    done = subprocess.run([sys.executable, "-c", code, *words], env=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"precedent {words[0]}: its engine is not installed: in the checkout that Precedent is installed from, "
        "run pip install '.[org]'\n"
    )
