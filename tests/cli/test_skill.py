"""The skill for coding agents: its recipes find what they promise, and it is installed where agents look."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bot.cli.commands.skill import INSTALL_PATH, SKILL_FILE, run_skill
from bot.cli.output import show
from bot.cli.parser import parse
from bot.errors import PrecedentError
from tests.cli.checkouts import git
from tests.cli.program_result import ProgramResult, Run
from tests.sources.session_lines import CODING, HOOKS, write

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "skills" / SKILL_FILE).read_text(encoding="utf-8")


PARAGRAPH = re.compile(r"^([^\n]+)\n\n```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPES = dict(PARAGRAPH.findall(TEXT))
"""The line above each code block of the page → the code."""

FETCH_RECIPE = next(body for body in RECIPES.values() if "fetch --quiet" in body)
OUTCOMES = "How closed issues with an error ended:"
MISSING = [tool for tool in ("jq", "rg") if shutil.which(tool) is None]
needs_tools = pytest.mark.skipif(bool(MISSING), reason=f"the recipes need {' and '.join(MISSING)}")


# -- the page ------------------------------------------------------------------------------------------------------


def test_the_front_matter_is_valid_for_agents() -> None:
    _, front, body = TEXT.split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields.keys() == {"name", "description"}
    assert fields["name"] == SKILL_FILE.partition("/")[0]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 50 < len(fields["description"]) <= 1024
    assert body.startswith("\n# ")


# -- the recipes ---------------------------------------------------------------------------------------------------

EXPECTED = {
    "Decisions about a topic:": [
        (
            "#14 2025-07-22 octocat (OWNER): We decided to go with PostgreSQL; Redis lost every session on restart and "
            "would be one more service to run."
        )
    ],
    OUTCOMES: [
        (
            "#48 2026-05-14 fixed #50 v2.3.0: Fixed by #50, released today in v2.3.0. If you cannot upgrade yet, "
            "delete the cookie lb_session with the path / in the browser."
        ),
        "#49 2026-04-16 duplicate  : Duplicate of #48.",
        "#50 2026-05-04 unknown  : Added, with the section of the RFC.",
    ],
    "Threads that name a file:": [
        "#48 closed 2026-05-15 Login loop after the upgrade to 2.2",
        "#50 closed 2026-05-04 Expire session cookies that were written at another path",
    ],
    "What links to #48:": [
        "#49 closed Can't stay logged in under /bm",
        "#50 closed Expire session cookies that were written at another path",
        "#51 open Session lost behind a proxy that ends TLS",
    ],
    "Duplicates of #48:": ["#49 Can't stay logged in under /bm"],
    "Open issues with a word:": ["#51 2026-08-14 Session lost behind a proxy that ends TLS"],
    "comments included:": ["#48", "#50"],
    "Messages with a word in transcripts of this checkout:": ["2026-03-03 c-1 assistant: I retry with jitter."],
    "Prompts and answers with a word in hook logs:": [
        "2026-03-02 h-1: How do we rotate the webhook secret?",
        "2026-03-02 h-1: Two secrets are accepted while one is replaced.",
    ],
}


@pytest.fixture(scope="module")
def checkout(sample_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of a repository with a memory branch, next to the bare repository of a server."""
    folder = tmp_path_factory.mktemp("recipes")
    store, server, clone = folder / "store", folder / "server.git", folder / "clone"
    shutil.copytree(sample_store, store)
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(server))
    for branch, tree in (("precedent", store), ("main", folder / "code")):
        tree.mkdir(exist_ok=True)
        git(tree, "init", "--quiet", f"--initial-branch={branch}")
        (tree / ".gitignore").write_text("*.json\n*.jsonl\n" if branch == "main" else "", encoding="utf-8")
        git(tree, "add", "--force", ".")
        git(tree, "commit", "--quiet", "--message", "as it is")
        git(tree, "push", "--quiet", str(server), branch)
    git(folder, "clone", "--quiet", "--single-branch", server.as_uri(), str(clone))
    (clone / "deep" / "er").mkdir(parents=True)
    write(folder / "home/.claude/projects" / re.sub("[^A-Za-z0-9]", "-", str(clone)) / "c-1.jsonl", *CODING)
    write(clone / ".claude/logging/log.jsonl", *HOOKS)
    (clone / ".git/info/exclude").write_text(".claude\n", encoding="utf-8")
    return clone


def bash(folder: Path, script: str) -> list[str]:
    """Run a script in a new shell, with the home folder next to the clone; any failing command fails the test."""
    shell = ["bash", "-e", "-o", "pipefail", "-c", script]
    home = next(parent / "home" for parent in folder.resolve().parents if (parent / "home").is_dir())
    environment = os.environ | {"HOME": str(home)}
    process = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout.splitlines()


def recipe(caption: str, folder: Path) -> list[str]:
    """Run a recipe in a new shell that begins with the first line, as the page says."""
    return bash(folder, FETCH_RECIPE.splitlines()[0] + "\n" + RECIPES[caption])


@pytest.mark.slow
@needs_tools
@pytest.mark.parametrize("where", [".", "deep/er"])
def test_each_recipe_finds_in_a_clone_what_it_promises(checkout: Path, where: str) -> None:
    folder = checkout / where
    for _ in range(2):
        bash(folder, FETCH_RECIPE)
    output = {caption: recipe(caption, folder) for caption in EXPECTED if caption in RECIPES}
    output["comments included:"] = recipe(
        next(caption for caption in RECIPES if caption.endswith("comments included:")), folder
    )
    assert output == EXPECTED


@pytest.mark.slow
@needs_tools
@pytest.mark.parametrize("where", [".", "deep/er", "../tree"])
def test_the_memory_is_fetched_from_a_remote_with_a_relative_path(checkout: Path, where: str) -> None:
    git(checkout, "remote", "set-url", "origin", "../server.git")
    git(checkout, "worktree", "add", "--quiet", "--detach", "../tree")
    try:
        bash(checkout / where, FETCH_RECIPE)
        assert recipe("Duplicates of #48:", checkout / where) == EXPECTED["Duplicates of #48:"]
    finally:
        git(checkout, "worktree", "remove", "../tree")
        git(checkout, "remote", "set-url", "origin", (checkout.parent / "server.git").as_uri())


@needs_tools
@pytest.mark.parametrize("caption", ["Open issues with a word:", "Threads that name a file:", "Duplicates of #48:"])
def test_a_recipe_lists_threads_in_the_order_of_their_numbers(checkout: Path, caption: str) -> None:
    bash(checkout, FETCH_RECIPE)
    fields = {"kind": "issue", "state": "open", "updated_at": "2026-08-14T00:00:00Z", "title": "A proxy"}
    for shard in range(1, 200):
        digests = [fields | {"id": 100 * shard + n, "files": ["cookie.py"], "duplicate_of": 48} for n in range(20)]
        file = checkout / f".git/precedent-memory/digests/{shard:04}.jsonl"
        file.write_text("".join(json.dumps(digest) + "\n" for digest in digests), encoding="utf-8")
    numbers = [int(line.split()[0][1:]) for line in recipe(caption, checkout)]
    assert len(numbers) > 199 * 20
    assert numbers == sorted(numbers)


@needs_tools
def test_the_recipe_for_a_conversation_shows_all_of_it(checkout: Path) -> None:
    bash(checkout, FETCH_RECIPE)
    lines = recipe("One conversation:", checkout)
    assert lines[0] == "#48 Login loop after the upgrade to 2.2 (closed)"
    assert lines[1] == "2026-04-13 sample-user-2: ### What happened?"
    assert lines[-1] == "2026-05-15 sample-user-2: 2.3.0 works right away, without clearing anything. Thank you both!"


@pytest.mark.slow
@needs_tools
def test_the_recipes_leave_the_checkout_as_it_was(checkout: Path) -> None:
    bash(checkout, FETCH_RECIPE)
    for caption, body in RECIPES.items():
        if body != FETCH_RECIPE:
            recipe(caption, checkout)
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "branch", "--all", "--format=%(refname)").split() == [
        "refs/heads/main", "refs/remotes/origin/HEAD", "refs/remotes/origin/main",
    ]  # fmt: skip


@needs_tools
def test_the_recipe_for_errors_ignores_case_and_finds_nothing_for_an_unknown_error(checkout: Path) -> None:
    bash(checkout, FETCH_RECIPE)
    first_line = FETCH_RECIPE.splitlines()[0] + "\n"
    lower_case = RECIPES[OUTCOMES].replace("SESSION_PATH_MISMATCH", "session_path_mismatch")
    assert bash(checkout, first_line + lower_case) == EXPECTED[OUTCOMES]
    assert bash(checkout, first_line + RECIPES[OUTCOMES].replace("SESSION_PATH_MISMATCH", "NO_SUCH_THING")) == []


@pytest.mark.slow
@needs_tools
def test_numbers_of_other_repositories_and_bare_digests_do_not_disturb_a_recipe(checkout: Path) -> None:
    bash(checkout, FETCH_RECIPE)
    elsewhere = [{"number": 48, "owner": "octo-org", "repo": "other"}, {"number": 48, "kind": "external"}]
    digests = [{"id": 9001, "references": elsewhere}, {"id": "ABC-1"}, {"id": 9002, "decisions": [{"text": "Chosen."}]}]
    shard = checkout / ".git/precedent-memory/digests/0090.jsonl"
    shard.write_text("".join(json.dumps(digest) + "\n" for digest in digests), encoding="utf-8")
    expected = {caption: lines for caption, lines in EXPECTED.items() if caption in RECIPES}
    assert {caption: recipe(caption, checkout) for caption in expected} == expected


def test_every_recipe_is_tested() -> None:
    tested = {caption for caption in RECIPES if caption in EXPECTED or caption.endswith("comments included:")}
    assert set(RECIPES) - tested == {
        next(caption for caption in RECIPES if RECIPES[caption] == FETCH_RECIPE),
        "One conversation:",
    }
    assert TEXT.count("```") == 2 * len(RECIPES)


# -- install -------------------------------------------------------------------------------------------------------


@pytest.fixture
def empty_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout as the working folder, with the home folder next to it."""
    for name in ("repo/.git", "home", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


@pytest.fixture
def skill(empty_checkout: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Gives a function that runs the command in the empty checkout."""

    def run(*arguments: str) -> ProgramResult:
        error = ""
        try:
            code = show(run_skill(parse(["skill", *arguments])))
        except PrecedentError as fault:
            code, error = fault.exit_code, str(fault)
        except SystemExit as end:
            code = int(end.code or 0)
        output = capsys.readouterr()
        return ProgramResult(code, output.out, output.err + error)

    return run


def files_in(folder: Path) -> list[str]:
    """The files in a folder, without git's own; links are not followed."""
    files = [Path(top, name).relative_to(folder).as_posix() for top, _, names in os.walk(folder) for name in names]
    return sorted(name for name in files if not name.startswith(".git/"))


@pytest.mark.parametrize("words", [("show",), ("install", "--print")])
def test_the_page_can_be_printed(skill: Run, empty_checkout: Path, words: tuple[str, ...]) -> None:
    assert skill(*words) == ProgramResult(0, TEXT, "")
    assert files_in(empty_checkout) == []


@pytest.mark.parametrize("folder", [".", "src"])
def test_it_is_written_to_the_top_folder_of_the_checkout(
    skill: Run, empty_checkout: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (empty_checkout / "src").mkdir()
    monkeypatch.chdir(empty_checkout / folder)
    assert skill("install") == ProgramResult(0, f"wrote {INSTALL_PATH}\n", "")
    assert files_in(empty_checkout) == [INSTALL_PATH]
    assert (empty_checkout / INSTALL_PATH).read_text(encoding="utf-8").startswith(TEXT)
    assert (empty_checkout / INSTALL_PATH).stat().st_mode & 0o777 == 0o644


def test_outside_a_checkout_it_says_what_to_do(skill: Run, empty_checkout: Path) -> None:
    (empty_checkout / ".git").rmdir()
    result = skill("install")
    assert (result.code, result.out) == (2, "")
    assert "--print" in result.err


def test_a_second_install_changes_nothing(skill: Run, empty_checkout: Path) -> None:
    skill("install")
    before = (empty_checkout / INSTALL_PATH).stat().st_mtime_ns
    assert skill("install") == ProgramResult(0, f"unchanged {INSTALL_PATH}\n", "")
    assert (empty_checkout / INSTALL_PATH).stat().st_mtime_ns == before


def test_a_copy_of_the_page_counts_as_unchanged(skill: Run, empty_checkout: Path) -> None:
    write_file(empty_checkout / INSTALL_PATH, TEXT)
    assert skill("install") == ProgramResult(0, f"unchanged {INSTALL_PATH}\n", "")


def test_a_dry_run_writes_nothing(skill: Run, empty_checkout: Path) -> None:
    assert skill("install", "--dry-run") == ProgramResult(0, f"would write {INSTALL_PATH}\n", "")
    assert files_in(empty_checkout) == []


def test_a_page_changed_by_hand_is_replaced_only_with_force(skill: Run, empty_checkout: Path) -> None:
    skill("install")
    file = empty_checkout / INSTALL_PATH
    write_file(file, file.read_text(encoding="utf-8").replace("# Cross-reference", "# Our memory"))
    before = file.read_bytes()
    result = skill("install")
    assert (result.code, result.out) == (2, "")
    assert INSTALL_PATH in result.err
    assert "--force" in result.err
    assert file.read_bytes() == before
    assert skill("install", "--force") == ProgramResult(0, f"updated {INSTALL_PATH}\n", "")
    assert file.read_text(encoding="utf-8").startswith(TEXT)


@pytest.mark.parametrize("text", ["", "x" * 100_000, "\0", "written by precedent skill install"])
def test_a_file_that_precedent_did_not_write_is_kept(skill: Run, empty_checkout: Path, text: str) -> None:
    write_file(empty_checkout / INSTALL_PATH, text)
    assert skill("install").code == 2
    assert (empty_checkout / INSTALL_PATH).read_text(encoding="utf-8") == text


def test_the_page_of_an_older_version_is_replaced(skill: Run, empty_checkout: Path) -> None:
    old = "an older page\n"
    fingerprint = f"<!-- written by precedent skill install, sha256 {hashlib.sha256(old.encode()).hexdigest()} -->"
    write_file(empty_checkout / INSTALL_PATH, f"{old}\n{fingerprint}\n")
    assert skill("install") == ProgramResult(0, f"updated {INSTALL_PATH}\n", "")
    assert (empty_checkout / INSTALL_PATH).read_text(encoding="utf-8").startswith(TEXT)


@pytest.mark.parametrize(
    "link",
    [
        lambda empty_checkout: (empty_checkout / ".agents").symlink_to(empty_checkout.parent / "elsewhere"),
        lambda empty_checkout: make_link(empty_checkout / ".agents/skills", empty_checkout.parent / "elsewhere"),
        lambda empty_checkout: make_link(empty_checkout / ".agents/skills/cross-reference", "../../../elsewhere"),
        lambda empty_checkout: make_link(empty_checkout / INSTALL_PATH, empty_checkout.parent / "elsewhere/file"),
        lambda empty_checkout: make_link(empty_checkout / INSTALL_PATH, "../other.md"),
        lambda empty_checkout: make_link(empty_checkout / ".agents/skills", "skills"),
    ],
    ids=["agent", "skills", "folder", "file", "file inside", "circle"],
)
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
def test_no_link_is_followed(
    skill: Run, empty_checkout: Path, link: Callable[[Path], None], force: tuple[str, ...]
) -> None:
    link(empty_checkout)
    result = skill("install", *force)
    assert result.code == 2
    assert ".agents" in result.err
    assert "is a symlink" in result.err
    assert files_in(empty_checkout.parent / "elsewhere") == []


def test_an_unwritable_file_is_reported_and_exits_with_1(skill: Run, empty_checkout: Path) -> None:
    write_file(empty_checkout / ".agents", "a file")
    result = skill("install")
    assert (result.code, result.out) == (1, "")
    assert INSTALL_PATH in result.err


def test_the_json_says_what_happened_to_the_file(skill: Run, empty_checkout: Path) -> None:
    result = skill("install", "--json")
    assert json.loads(result.out) == {
        "dry_run": False,
        "root": str(empty_checkout),
        "files": [{"path": INSTALL_PATH, "state": "written", "fault": ""}],
    }
    write_file(empty_checkout / INSTALL_PATH, "ours")
    result = skill("install", "--json")
    assert (result.code, json.loads(result.out)["files"][0]["state"]) == (2, "left")


# -- the documentation ---------------------------------------------------------------------------------------------


def test_the_documented_configuration_starts_the_tools() -> None:
    configuration = re.findall(r"```json\n(.*?)```", (ROOT / "docs/agents.md").read_text(encoding="utf-8"), re.DOTALL)[
        0
    ]
    assert json.loads(configuration) == {"mcpServers": {"precedent": {"command": "precedent", "args": ["mcp"]}}}


def write_file(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def make_link(at: Path, to: Path | str) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(to)
