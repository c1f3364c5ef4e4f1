"""What a hostile repository may hold: bombs, links, submodules and bad names, on the memory and the default branch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.files import MAX_CHECKOUT_BYTES, MAX_FILE_BYTES
from bot.git.errors import GitError
from bot.git.remote_files import open_head, read_head
from bot.git.repository import TreeTooLarge
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from tests.memory.remotes import HostedRepository, git, open_store
from tests.threats.git_objects import (
    FILE,
    FOLDER,
    LINK,
    SUBMODULE,
    blob,
    commit,
    nested,
    tree,
    tree_bomb,
    write_object,
    zeros,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SETTINGS_PATHS = [".github/precedent.yml", ".github/precedent/context.md.j2"]
LARGE = 200_000_000
MEMORY = 700_000_000
"""Bytes of address space for a program that opens a bomb; opening an honest branch takes half of it."""

PROGRAM = """
import resource, sys
sys.path.insert(0, {root!r})
from bot.memory.branch_store import BranchStore
from bot.git.remote_files import open_head, read_head
from bot.memory.memory import Memory
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
try:
    {does}
except Exception as error:
    print(type(error).__name__, error)
"""


def run_bounded(hosted: HostedRepository, statement: str, seconds: int) -> str:
    """The output of a process that runs ``statement`` with little memory, and so many seconds of processor time for it
    and for each of its git processes."""
    does = statement.format(url=hosted.url, token=hosted.token)
    script = PROGRAM.format(root=str(ROOT), memory=MEMORY, seconds=seconds, does=does)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.run(
        [sys.executable, "-I", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def refusal(action: Callable[[], object]) -> str:
    """The one-line error that ``action`` ends with; empty if it succeeds."""
    try:
        action()
    except StoreError as error:
        line = str(error)
    else:
        line = ""
    assert "\n" not in line
    return line


# -- trees that expand ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["", "records", "index"])
def test_a_memory_branch_that_expands_to_a_billion_files_is_refused(hosted: HostedRepository, where: str) -> None:
    bomb = tree_bomb(hosted.repository)
    commit(hosted.repository, nested(hosted.repository, where, FOLDER, bomb) if where else bomb, "precedent")
    output = run_bounded(hosted, "BranchStore({url!r}, 'precedent', {token!r}).open(['records'])", 60)
    assert output.startswith("TreeTooLarge there are more than 400,000 files")
    assert "rebuild" in output


def test_a_default_branch_that_expands_costs_no_more_than_reading_the_settings(hosted: HostedRepository) -> None:
    repository = hosted.repository
    bomb, settings = tree_bomb(repository), blob(repository, b"mode: off\n")
    github = tree(repository, [(FOLDER, "bomb", bomb), (FOLDER, "precedent", bomb), (FILE, "precedent.yml", settings)])
    commit(repository, tree(repository, [(FOLDER, ".github", github), (FOLDER, "src", bomb)]), "main")
    output = run_bounded(hosted, f"print(read_head({{url!r}}, {{token!r}}, {SETTINGS_PATHS!r})[1])", 20)
    assert output == "{'.github/precedent.yml': b'mode: off\\n'}\n"


def test_the_search_for_pages_is_bounded(hosted: HostedRepository) -> None:
    commit(hosted.repository, nested(hosted.repository, "docs", FOLDER, tree_bomb(hosted.repository)), "main")
    search = "files, notes = head.files(lambda _: True, lambda _: True); print(len(files) <= 100_000, notes)"
    output = run_bounded(hosted, f"with open_head({{url!r}}, {{token!r}}) as head: head.fetch(); {search}", 60)
    assert output == "True ['there are too many files: some were not checked']\n"


def test_a_folder_that_is_too_large_is_refused_without_reading_it(hosted: HostedRepository) -> None:
    oid = blob(hosted.repository, b"{}")
    entry = b"100644 %010d\0" + bytes.fromhex(oid)
    large = write_object(hosted.repository, "tree", b"".join(entry % at for at in range(430_000)))
    commit(hosted.repository, nested(hosted.repository, "records", FOLDER, large), "precedent")
    with pytest.raises(TreeTooLarge, match="too large to read"):
        open_store(hosted).open()


@pytest.mark.night
def test_large_folders_are_not_held_in_memory_at_once(hosted: HostedRepository) -> None:
    """Each has the largest allowed size and packs well; all of them together would exceed the memory."""
    git(hosted.repository, "config", "pack.window", "0")  # or the server spends minutes looking for similarities
    oid, folders = bytes.fromhex(blob(hosted.repository, b"{}")), []
    for at in range(30):
        rows = (b"100644 %02d%06d%s\0%s" % (at, row, b"a" * 240, oid) for row in range(55_000))
        folders.append((FOLDER, f"{at:02}", write_object(hosted.repository, "tree", b"".join(rows))))
    commit(hosted.repository, tree(hosted.repository, folders), "precedent")
    output = run_bounded(hosted, "BranchStore({url!r}, 'precedent', {token!r}).open(['records'])", 120)
    assert output.startswith("TreeTooLarge there are more than 400,000 files")


@pytest.mark.night
def test_folders_ten_thousand_deep_are_refused_or_cut(hosted: HostedRepository) -> None:
    oid, mode = blob(hosted.repository, b"{}"), FILE
    for _ in range(10_000):
        oid, mode = tree(hosted.repository, [(mode, "a", oid)]), FOLDER
    commit(hosted.repository, oid, "precedent")
    paths: list[str] = []
    error = refusal(lambda: paths.extend(open_store(hosted).open().paths("")))
    assert error or paths == []


# -- files that unpack ---------------------------------------------------------------------------------------------


@pytest.mark.night
@pytest.mark.parametrize("path", ["manifest.json", "records/0000/1.json", "posts/0000.json"])
def test_a_huge_file_on_the_branch_is_refused_by_its_size(hosted: HostedRepository, path: str) -> None:
    bomb = zeros(hosted.repository, 1 << 30 if path.startswith("records") else LARGE)
    commit(hosted.repository, nested(hosted.repository, path, FILE, bomb), "precedent")
    output = run_bounded(hosted, f"BranchStore({{url!r}}, 'precedent', {{token!r}}).open().read([{path!r}])", 90)
    assert output == f"UnreadableFile {path} on the branch has more than {MAX_FILE_BYTES:,} bytes; remove it there\n"


@pytest.mark.night
def test_a_huge_index_is_not_written_to_the_disk(hosted: HostedRepository, tmp_path: Path) -> None:
    large, small = zeros(hosted.repository, LARGE), zeros(hosted.repository, 90_000_000)
    index = tree(hosted.repository, [(FILE, "a.seg", large), *((FILE, f"b{at}.seg", small) for at in range(9))])
    commit(hosted.repository, tree(hosted.repository, [(FOLDER, "index", index)]), "precedent")
    with open_store(hosted) as store:
        folder = store.open().checkout("index")
        assert not (folder / "a.seg").exists()
        assert 0 < sum(file.stat().st_size for file in folder.iterdir()) <= MAX_CHECKOUT_BYTES


@pytest.mark.parametrize("filters", ["true", "false"])
@pytest.mark.parametrize("path", SETTINGS_PATHS)
def test_huge_settings_and_templates_are_refused_by_their_size(
    hosted: HostedRepository, path: str, filters: str
) -> None:
    subprocess.run(["git", "-C", str(hosted.repository), "config", "uploadpack.allowFilter", filters], check=True)
    commit(hosted.repository, nested(hosted.repository, path, FILE, zeros(hosted.repository, LARGE)), "main")
    output = run_bounded(hosted, f"read_head({{url!r}}, {{token!r}}, {SETTINGS_PATHS!r})[1]", 90)
    assert output == f"UnreadableFile {path} has more than 65,536 bytes; make it shorter\n"


def test_a_huge_page_is_left_out(hosted: HostedRepository) -> None:
    repository = hosted.repository
    large, small = zeros(repository, LARGE), blob(repository, b"# A\n")
    commit(repository, tree(repository, [(FILE, "a.md", small), (FILE, "b.md", large)]), "main")
    with open_head(hosted.url, hosted.token) as head:
        head.fetch()
        files, _ = head.files(lambda path: path.endswith(".md"), lambda _: False)
        assert head.contents([*files.values()], 1_000_000) == {files["a.md"]: b"# A\n"}


def test_a_commit_with_a_huge_message_is_refused(hosted: HostedRepository) -> None:
    root = nested(hosted.repository, "manifest.json", FILE, blob(hosted.repository, b"{}"))
    commit(hosted.repository, root, "precedent", b"x" * 100_000_000)
    output = run_bounded(hosted, "BranchStore({url!r}, 'precedent', {token!r}).open()", 90)
    assert "is not a commit" in output


def test_files_that_are_packed_as_deltas_of_each_other_are_refused_by_their_size(hosted: HostedRepository) -> None:
    repository = hosted.repository
    base = blob(repository, bytes(1 << 20))
    names = [(FILE, f"{at:04d}.json", zeros(repository, (1 << 20) * (at + 1))) for at in range(0, 48, 8)]
    folder = tree(repository, [(FILE, "0.json", base), *names])
    commit(repository, nested(repository, "records/0000", FOLDER, folder), "precedent")
    subprocess.run(["git", "-C", str(repository), "repack", "-adfq", "--window=50", "--depth=50"], check=True)
    paths = [f"records/0000/{name}" for _, name, _ in names]
    output = run_bounded(hosted, f"BranchStore({{url!r}}, 'precedent', {{token!r}}).open().read({paths!r})", 90)
    assert "has more than 16,000,000 bytes" in output


# -- non-files and bad names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["/etc/passwd", "/proc/self/environ", "../../../etc/passwd"])
@pytest.mark.parametrize("path", ["manifest.json", "records/0000/1.json", "index/_MAIN_1.toc"])
def test_a_link_on_the_branch_is_never_followed(hosted: HostedRepository, path: str, target: str) -> None:
    link = blob(hosted.repository, target.encode())
    commit(hosted.repository, nested(hosted.repository, path, LINK, link), "precedent")
    with open_store(hosted) as store:
        snapshot = store.open()
        with pytest.raises(StoreError, match="is a symlink"):
            snapshot.read([path])
        if path.startswith("index/"):
            with pytest.raises(StoreError, match="is a symlink"):
                snapshot.checkout("index")


@pytest.mark.parametrize("target", ["/etc/passwd", "/proc/self/environ"])
@pytest.mark.parametrize("path", SETTINGS_PATHS)
def test_a_link_in_place_of_settings_or_a_template_is_never_followed(
    hosted: HostedRepository, path: str, target: str
) -> None:
    link = blob(hosted.repository, target.encode())
    commit(hosted.repository, nested(hosted.repository, path, LINK, link), "main")
    with pytest.raises(StoreError, match="is a symlink or a submodule"):
        read_head(hosted.url, hosted.token, SETTINGS_PATHS)


NAMES = [
    "..",
    ".",
    ".git",
    ".GIT",
    "a/b",
    "",
    "x" * 4096,
    "x" * 300,
    "a\\b",
    "a\nb",
    b"\xff\xfe",
    "a.",
    "a ",
    "CON",
    "A",
    "a",
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name)[:20])
def test_a_bad_file_name_on_the_branch_stays_in_its_folder(hosted: HostedRepository, name: str | bytes) -> None:
    """Git refuses some on arrival; others are refused here, or name files inside the folder."""
    repository = hosted.repository
    evil, good = blob(repository, b"evil"), blob(repository, b"good")
    index = tree(repository, sorted([(FILE, name, evil), (FILE, "good", good)], key=lambda row: os.fsencode(row[1])))
    commit(repository, tree(repository, [(FOLDER, "index", index)]), "precedent")
    with open_store(hosted) as store:
        folders: list[Path] = []
        error = refusal(lambda: folders.append(store.open().checkout("index")))
        if error:
            assert len(error) < 500
            return
        (folder,) = folders
        assert {file.parent for file in folder.iterdir()} == {folder}
        assert (folder / "good").read_bytes() == b"good"
        assert [path for path in folder.parent.iterdir() if path != folder and path.name != "clone.git"] == []


def test_names_that_no_disk_accepts_count_as_damage_to_the_index(hosted: HostedRepository) -> None:
    repository = hosted.repository
    index = tree(repository, [(FILE, "x" * 300, blob(repository, b"evil"))])
    commit(repository, tree(repository, [(FOLDER, "index", index)]), "precedent")
    with open_store(hosted) as store:
        assert store.open().foreign_files("index") == ["index/" + "x" * 300]


@pytest.mark.parametrize("mode", ["100666", "104755", "777", "0100644", "140000", "060000", "20000"])
def test_a_mode_that_git_never_writes_is_refused_or_read_as_git_reads_it(hosted: HostedRepository, mode: str) -> None:
    root = tree(hosted.repository, [(mode, "manifest.json", blob(hosted.repository, b"{}"))])
    commit(hosted.repository, root, "precedent")
    contents: dict[str, bytes] = {}
    with open_store(hosted) as store:
        error = refusal(lambda: contents.update(store.open().read(["manifest.json"])))
        assert error or contents in ({}, {"manifest.json": b"{}"})


def test_a_broken_object_is_refused_as_it_arrives(hosted: HostedRepository) -> None:
    root = nested(hosted.repository, "manifest.json", FILE, blob(hosted.repository, b"{}"))
    broken = write_object(hosted.repository, "commit", b"tree %s\nauthor nobody\n\nx" % root.encode())
    (hosted.repository / "refs/heads/precedent").write_text(f"{broken}\n", encoding="utf-8")
    with pytest.raises(GitError, match="git fetch"):
        open_store(hosted).open()


def test_submodules_filters_and_attributes_of_the_branch_run_nothing(hosted: HostedRepository, tmp_path: Path) -> None:
    repository, canary = hosted.repository, tmp_path / "canary"
    command = f"touch {canary}"
    attributes = blob(repository, b"* filter=evil diff=evil merge=evil text eol=crlf working-tree-encoding=UTF-16\n")
    modules = f'[submodule "x"]\n\tpath = x\n\turl = "ext::sh -c {command}"\n\tupdate = !{command}\n'
    config = f'[filter "evil"]\n\tsmudge = {command}\n\tclean = {command}\n[core]\n\tfsmonitor = {command}\n'
    root = tree(
        repository,
        [
            (FILE, ".gitattributes", attributes),
            (FILE, ".gitconfig", blob(repository, config.encode())),
            (FILE, ".gitmodules", blob(repository, modules.encode())),
            (FILE, "manifest.json", blob(repository, b"{}\n")),
            (SUBMODULE, "x", "1" * 40),
        ],
    )
    commit(repository, root, "precedent")
    with open_store(hosted) as store:
        error = refusal(lambda: store.write(store.open([""]), {"a": b"b\n"}, "x"))
        assert "fsck" in error or store.open().read(["manifest.json"]) == {"manifest.json": b"{}\n"}
    assert not canary.exists()


def test_a_memory_full_of_garbage_opens_and_reports_it(hosted: HostedRepository) -> None:
    repository = hosted.repository
    rubbish = blob(repository, b"\x80\x04cposix\nsystem\n(S'id'\ntR.")
    parts = [(FILE, name, rubbish) for name in ("_MAIN_1.toc", "MAIN_WRITELOCK")]
    root = [
        (FOLDER, "index", tree(repository, sorted(parts, key=lambda part: part[1]))),
        (FILE, "manifest.json", rubbish),
    ]
    commit(repository, tree(repository, root), "precedent")
    memory = Memory(BranchStore(hosted.url, "precedent", hosted.token)).open()
    assert memory.state.manifest.threads == 0
    assert memory.notes
    memory.close()


@pytest.mark.parametrize("name", ["README.md", "src/a.py", "manifest.json"])
def test_a_branch_that_holds_something_else_is_not_written_to(hosted: HostedRepository, name: str) -> None:
    """Such as the default branch, which the setting ``branch`` may name by mistake: a squash would end its history."""
    repository = hosted.repository
    code = {"README.md": (FILE, b"# Hello\n"), name: (FILE, b'{"manifest_version": 3}\n')}
    entries = {path: blob(repository, content) for path, (_, content) in code.items()}
    git(repository, "read-tree", "--empty")
    for path, oid in entries.items():
        git(repository, "update-index", "--add", "--cacheinfo", f"{FILE},{oid},{path}")
    commit(repository, git(repository, "write-tree"), "precedent")
    with open_store(hosted) as store, pytest.raises(StoreError, match="choose another branch"):
        Memory(store).open().state  # noqa: B018 - it is read when it is opened
