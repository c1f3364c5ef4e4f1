"""Pages follow the repository, its wiki and its releases, over real git."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.changes import Changes
from bot.domain.thread import Kind, Tombstone
from bot.sources.pages import MAX_FILE_BYTES, MAX_FILES
from tests.memory.remotes import git
from tests.sources.projects import NOW, Project
from tests.threats import git_objects as objects

README = "# Hello\n\nA greeting.\n"
SETUP = "# Setting up\n\nRun `make install`.\n"


def release(tag: str, body: str = "Fixes.", days: float = 1, **rest: object) -> dict[str, object]:
    at = (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"tag_name": tag, "name": "", "body": body, "draft": False, "published_at": at, **rest}


def test_markdown_files_named_by_the_settings_become_pages(project: Project) -> None:
    project.write(
        project.docs,
        {
            "Readme.md": README,
            "docs/a/setup.md": SETUP,
            "docs/logo.png": b"\x89PNG",
            "src/notes.md": "no",
            "x.md": "no",
        },
        days=2,
    )
    project.refresh()
    assert project.ids == ["docs:Readme.md", "docs:docs/a/setup.md"]
    page = project.page("docs:docs/a/setup.md")
    assert (page.title, page.body, page.kind, page.state) == ("Setting up", SETUP, Kind.PAGE, "open")
    assert page.created_at == page.updated_at == NOW - timedelta(days=2)
    assert project.notes == []


def test_the_wiki_is_read_without_its_sidebar(project: Project) -> None:
    project.write(
        project.wiki, {"Home.md": "Hi", "How-to-start.markdown": "# Begin\n", "_Sidebar.md": "x", "a.txt": "x"}
    )
    project.refresh()
    assert project.ids == ["wiki:Home", "wiki:How-to-start"]
    assert project.page("wiki:How-to-start").title == "How to start"


def test_published_releases_are_pages(project: Project) -> None:
    project.releases.items = [
        release("v2.3.0", name="Two three", author={"login": "hubot"}),
        release("v2.4.0-rc", draft=True, published_at=None),
        {"tag_name": None},
    ]
    project.refresh()
    assert project.ids == ["releases:v2.3.0"]
    page = project.page("releases:v2.3.0")
    assert (page.title, page.author, page.created_at) == ("Two three", "hubot", NOW - timedelta(days=1))
    assert project.releases.requested_paths == ["/repos/octocat/hello/releases"]


def test_an_empty_repository_without_a_wiki_is_no_error(project: Project) -> None:
    changes = project.refresh()
    assert (changes.records, project.notes) == ((), [])
    assert set(dict(changes.pages)) == {"docs", "wiki", "releases"}
    assert project.refresh() == Changes()


@pytest.mark.slow
def test_unchanged_sources_are_not_read_again(project: Project) -> None:
    project.write(project.docs, {"README.md": README, "docs/setup.md": SETUP})
    project.write(project.wiki, {"Home.md": "Hi"})
    project.refresh()
    project.server.mark()
    assert project.refresh() == Changes()
    assert not any("POST" in request.method and "receive" in request.path for request in project.server.requests)
    assert project.server.bytes_out < 2_000


@pytest.mark.slow
def test_one_changed_file_costs_one_record_and_one_fetched_file(project: Project) -> None:
    large = "".join(f"word{number} " for number in range(5_000))
    project.write(project.docs, {"README.md": README, "docs/large.md": large}, days=2)
    project.refresh()
    project.write(project.docs, {"README.md": README + "More.\n", "docs/large.md": large}, days=1)
    project.server.mark()
    changes = project.refresh()
    assert [record.id for record in changes.records] == ["docs:README.md"]
    assert project.page("docs:README.md").body == README + "More.\n"
    assert project.server.bytes_out < 5_000


@pytest.mark.slow
def test_pages_that_vanish_leave_a_tombstone_and_come_back(project: Project) -> None:
    project.write(project.docs, {"README.md": README, "docs/setup.md": SETUP}, days=3)
    project.refresh()
    project.write(project.docs, {"README.md": README}, days=2)
    project.refresh()
    assert project.ids == ["docs:README.md"]
    assert isinstance(project.record("docs:docs/setup.md"), Tombstone)
    project.write(project.docs, {"README.md": README, "docs/setup.md": SETUP}, days=1)
    project.refresh()
    assert project.ids == ["docs:README.md", "docs:docs/setup.md"]


@pytest.mark.slow
def test_the_newest_commit_counts_whatever_its_time(project: Project) -> None:
    project.write(project.docs, {"README.md": "# From the future\n"}, days=-30_000)
    project.refresh()
    assert project.page("docs:README.md").revised_at == NOW
    for days, title in ((5, "Older"), (9, "Older still")):
        project.write(project.docs, {"README.md": f"# {title}\n"}, days=days)
        project.refresh()
        assert project.page("docs:README.md").title == title


@pytest.mark.slow
@pytest.mark.parametrize("stamp", [0, 9_999_999_999_999])
def test_a_commit_with_an_odd_time_is_read(project: Project, stamp: int) -> None:
    project.write(project.docs, {"README.md": README})
    project.commit_tree(project.docs, git(project.docs, "rev-parse", "main^{tree}"), stamp)
    project.refresh()
    assert project.page("docs:README.md").revised_at in (datetime(1970, 1, 1, tzinfo=UTC), NOW)


@pytest.mark.slow
def test_a_source_that_is_switched_off_is_forgotten(project: Project) -> None:
    project.write(project.docs, {"README.md": README, "docs/setup.md": SETUP})
    project.write(project.wiki, {"Home.md": "Hi"})
    project.refresh()
    project.change_settings(wiki=False, docs=("docs/*.md",))
    project.refresh()
    assert project.ids == ["docs:docs/setup.md"]
    assert project.refresh() == Changes()
    project.change_settings(wiki=True, docs=())
    project.refresh()
    assert project.ids == ["wiki:Home"]


def test_a_wiki_that_was_removed_is_forgotten(project: Project) -> None:
    project.write(project.wiki, {"Home.md": "Hi"})
    project.refresh()
    project.wiki.rename(project.wiki.with_name("elsewhere"))
    project.refresh()
    assert (project.ids, project.notes) == ([], [])


@pytest.mark.slow
def test_reading_everything_again_changes_nothing(project: Project) -> None:
    project.write(project.docs, {"README.md": README, "docs/crlf.md": b"\xef\xbb\xbf# A\r\n\xff\r\n", "docs/e.md": ""})
    project.releases.items = [release("v1")]
    project.refresh()
    assert project.refresh(stored_states={}).records == ()
    assert project.page("docs:docs/crlf.md").title == "A"


@pytest.mark.slow
def test_an_unreadable_source_keeps_its_stored_pages(project: Project) -> None:
    project.write(project.docs, {"README.md": README})
    project.write(project.wiki, {"Home.md": "Hi"})
    project.refresh()
    project.server.tokens.clear()
    project.releases.items = [release("v1")]
    assert [key for key, _ in project.refresh().pages] == ["releases"]
    assert project.ids == ["docs:README.md", "releases:v1", "wiki:Home"]
    assert [note.partition(":")[0] for note in project.notes] == [
        f"The pages of {name} could not be read; the stored ones are kept" for name in ("docs", "wiki")
    ]


@pytest.mark.slow
def test_releases_that_fell_out_of_the_list_stay_deleted_ones_go_and_edited_ones_are_read_again(
    project: Project,
) -> None:
    project.releases.items = [release(f"v{number}", days=10 - number) for number in (3, 2, 1)]
    project.refresh()
    project.releases.items = [release("v4", days=1), release("v2", "New.", days=8)]
    project.releases.is_all = False
    project.refresh()
    assert project.ids == ["releases:v1", "releases:v2", "releases:v4"]
    assert project.page("releases:v2").body == "New."
    assert project.refresh() == Changes()


@pytest.mark.slow
def test_links_submodules_and_odd_names_are_left_out_with_a_note(project: Project) -> None:
    project.write(
        project.docs,
        {
            "README.md": ("120000", b"/etc/passwd"),
            "docs/sub.md": ("160000", b""),
            "docs/-rf.md": "# Option\n",
            "docs/a\nb.md": "# Break\n",
            "docs/\u202ex.md": "# Turned\n",
            f"docs/{'x' * 200}.md": "# Long\n",
        },
    )
    project.refresh()
    assert project.ids == ["docs:docs/-rf.md"]
    assert "Pages of docs: README.md was left out: it is a symlink or a submodule" in project.notes
    assert "Pages of docs: 1 files were left out because of their names" in project.notes


ODD_NAMES = {
    "slash": b"a/b.md",
    "leading slash": b"/b.md",
    "way out": b"../b.md",
    "backslash": b"a\\b.md",
    "parent": b"..",
    "folder itself": b".",
    "git": b".git",
    "git on Windows": b"git~1",
    "too long for a disk": b"x" * 300 + b".md",
    "too long for git": b"x" * 5_000 + b".md",
    "not UTF-8": b"\xff.md",
    "line break": b"a\nb.md",
    "repeated": b"Home.md",
}


@pytest.mark.parametrize("name", [pytest.param(name, id=what) for what, name in ODD_NAMES.items()])
def test_an_odd_name_in_a_wiki_loses_only_that_page(project: Project, name: bytes) -> None:
    text = objects.blob(project.wiki, b"Hi")
    rows = [(objects.FILE, each, text) for each in (b"Home.md", b"Zed.md", name)]
    project.commit_tree(project.wiki, objects.tree(project.wiki, rows), round(NOW.timestamp()))
    project.refresh()
    assert project.ids == ["wiki:Home", "wiki:Zed"]
    is_markdown = name.endswith(b".md")
    assert project.notes == ["Pages of wiki: 1 files were left out because of their names"] * is_markdown


@pytest.mark.parametrize("name", [b"a/b", b"/b", b"../b", b"..", b".", b".git", b"\xff", b"a\nb"])
def test_an_odd_name_of_a_folder_loses_only_its_pages(project: Project, name: bytes) -> None:
    text = objects.blob(project.wiki, b"Hi")
    below = objects.tree(project.wiki, [(objects.FILE, "x.md", text)])
    rows = [(objects.FILE, b"Home.md", text), (objects.FOLDER, name, below)]
    project.commit_tree(project.wiki, objects.tree(project.wiki, rows), round(NOW.timestamp()))
    project.refresh()
    assert project.ids == ["wiki:Home"]
    assert project.notes == ["Pages of wiki: 1 files were left out because of their names"]


def test_a_damaged_commit_of_a_wiki_leaves_the_stored_pages(project: Project) -> None:
    project.write(project.wiki, {"Home.md": "Hi"})
    project.refresh()
    damaged = objects.write_object(project.wiki, "commit", b"tree a\nb\n\nby hand\n")
    (project.wiki / "refs" / "heads" / "master").write_text(f"{damaged}\n")
    project.refresh()
    assert project.ids == ["wiki:Home"]


def test_an_odd_name_in_the_docs_loses_only_that_page(project: Project) -> None:
    text = objects.blob(project.docs, b"Hi")
    rows = [(objects.FILE, "README.md", text), (objects.FILE, b"docs/fake.md", text), (objects.FILE, b"..", text)]
    project.commit_tree(project.docs, objects.tree(project.docs, rows), round(NOW.timestamp()))
    project.refresh()
    assert project.ids == ["docs:README.md"]


def test_a_page_whose_name_cannot_be_an_id_is_left_out_with_a_note(project: Project) -> None:
    project.write(project.wiki, {"Home.md": "Hi", "Home.markdown": "x", "...md": "x", "\u202ex.md": "x"})
    project.releases.items = [release("v1"), release("v" * 200)]
    project.refresh()
    assert project.ids == ["releases:v1", "wiki:Home"]
    assert project.notes == [
        "Pages of wiki: 3 were left out; their names are too long, unprintable or taken",
        "Pages of releases: 1 were left out; their names are too long, unprintable or taken",
    ]


def test_a_file_over_the_size_limit_is_left_out_with_a_note(project: Project) -> None:
    long = b"x" * (MAX_FILE_BYTES + 1)
    project.write(project.docs, {"docs/long.md": long, "docs/fits.md": long[1:]})
    project.refresh()
    assert project.ids == ["docs:docs/fits.md"]
    assert project.notes == ["Pages of docs: docs/long.md was left out; it has more than 1,048,576 bytes"]


def test_a_long_changelog_keeps_its_newest_part(project: Project) -> None:
    entries = "".join(f"## {number}.0\n\n{'Fixed. ' * 200}\n\n" for number in range(90, 0, -1))
    project.write(project.docs, {"CHANGELOG.md": f"# Changes\n\n{entries}"})
    project.refresh()
    body = project.page("docs:CHANGELOG.md").body
    assert "## 90.0" in body
    assert "## 1.0" not in body
    assert 60_000 < len(body) <= 65_536
    assert body.endswith("\n")


@pytest.mark.slow
def test_files_over_the_number_limit_are_left_out_with_a_note(project: Project) -> None:
    blob = git(project.docs, "hash-object", "-w", "--stdin", stdin=b"# x\n")
    rows = "".join(f"100644 blob {blob}\t{number:03}.md\n" for number in range(MAX_FILES + 2))
    below = git(project.docs, "mktree", stdin=rows.encode())
    tree = git(project.docs, "mktree", stdin=f"040000 tree {below}\tdocs\n".encode())
    project.commit_tree(project.docs, tree, round(NOW.timestamp()))
    project.refresh()
    assert len(project.ids) == MAX_FILES
    assert project.notes == ["Pages of docs: 2 of 502 were left out; 500 are kept"]


@pytest.mark.slow
def test_bytes_over_the_limit_of_one_run_are_left_to_the_next(project: Project) -> None:
    line = b"word " * 200_000
    project.write(project.docs, {f"docs/{number:02}.md": b"%d " % number + line for number in range(12)})
    project.refresh()
    assert len(project.ids) == 10
    assert project.notes == ["Pages of docs: 10,485,760 bytes were read; the next run continues from there"]


@pytest.mark.slow
def test_reading_a_tree_that_expands_to_billions_of_files_ends(project: Project) -> None:
    blob = git(project.docs, "hash-object", "-w", "--stdin", stdin=b"# x\n")
    rows = "".join(f"100644 blob {blob}\t{number}.md\n" for number in range(10))
    tree = git(project.docs, "mktree", stdin=rows.encode())
    for _ in range(10):
        rows = "".join(f"040000 tree {tree}\tdocs{number or ''}\n" for number in range(10))
        tree = git(project.docs, "mktree", stdin=rows.encode())
    project.commit_tree(project.docs, tree, round(NOW.timestamp()))
    project.refresh()
    assert project.notes[0] == "Pages of docs: there are too many files: some were not checked"
