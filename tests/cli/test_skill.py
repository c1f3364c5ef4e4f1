"""The skill for coding agents: its recipes find what they say, and it is put where agents look."""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bot.cli.commands.skill import PAGE, PLACE, run_skill
from bot.cli.main import parser
from bot.cli.output import show
from bot.errors import PrecedentError
from tests.cli.console import Ended, Run
from tests.sources.session_lines import CODING, HOOKS, write

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "skills" / PAGE).read_text(encoding="utf-8")
DOCS = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
PARAGRAPH = re.compile(r"^([^\n]+)\n\n```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPES = dict(PARAGRAPH.findall(TEXT))
"""The line above each block of the page → the block."""

GET = next(body for body in RECIPES.values() if "fetch --quiet" in body)
CLOSED = "How closed issues with an error ended:"
MISSING = [tool for tool in ("jq", "rg") if shutil.which(tool) is None]
needs_tools = pytest.mark.skipif(bool(MISSING), reason=f"the recipes need {' and '.join(MISSING)}")


# -- the page ------------------------------------------------------------------------------------------------------


def test_the_front_matter_is_what_agents_take() -> None:
    _, front, body = TEXT.split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields.keys() == {"name", "description"}
    assert fields["name"] == PAGE.partition("/")[0]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 50 < len(fields["description"]) <= 1024
    assert body.startswith("\n# ")


def test_the_page_is_short() -> None:
    assert len(TEXT.splitlines()) < 165
    assert max(map(len, TEXT.splitlines())) <= 120


# -- the recipes ---------------------------------------------------------------------------------------------------

EXPECTED = {
    "Decisions about a topic:": [
        (
            "#14 2025-07-22 octocat (OWNER): We decided to go with PostgreSQL; Redis lost every session on restart and "
            "would be one more service to run."
        )
    ],
    CLOSED: [
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
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of a repository that has the branch, beside a server's bare one."""
    folder = tmp_path_factory.mktemp("recipes")
    store, server, clone = folder / "store", folder / "server.git", folder / "clone"
    imported = [sys.executable, "-m", "bot", "import", "sample/history.jsonl", "--store", str(store)]
    subprocess.run(imported, cwd=ROOT, check=True, capture_output=True)
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


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=hubot", "-c", "user.email=hubot@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def bash(folder: Path, script: str) -> list[str]:
    """What a script prints in a shell of its own, with the home folder next to the clone; what fails in it fails."""
    shell = ["bash", "-e", "-o", "pipefail", "-c", script]
    home = next(each / "home" for each in folder.resolve().parents if (each / "home").is_dir())
    environment = os.environ | {"HOME": str(home)}
    done = subprocess.run(shell, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def recipe(caption: str, folder: Path) -> list[str]:
    """What a recipe prints, each in a shell of its own that begins with the first line, as the page says."""
    return bash(folder, GET.splitlines()[0] + "\n" + RECIPES[caption])


@pytest.mark.slow
@needs_tools
@pytest.mark.parametrize("where", [".", "deep/er"])
def test_each_recipe_finds_in_a_clone_what_it_says(checkout: Path, where: str) -> None:
    folder = checkout / where
    for _ in range(2):
        bash(folder, GET)
    found = {caption: recipe(caption, folder) for caption in EXPECTED if caption in RECIPES}
    found["comments included:"] = recipe(
        next(caption for caption in RECIPES if caption.endswith("comments included:")), folder
    )
    assert found == EXPECTED


@needs_tools
@pytest.mark.parametrize("where", [".", "deep/er", "../tree"])
def test_the_memory_is_got_from_a_remote_that_is_named_from_here(checkout: Path, where: str) -> None:
    git(checkout, "remote", "set-url", "origin", "../server.git")
    git(checkout, "worktree", "add", "--quiet", "--detach", "../tree")
    try:
        bash(checkout / where, GET)
        assert recipe("Duplicates of #48:", checkout / where) == EXPECTED["Duplicates of #48:"]
    finally:
        git(checkout, "worktree", "remove", "../tree")
        git(checkout, "remote", "set-url", "origin", (checkout.parent / "server.git").as_uri())


@needs_tools
@pytest.mark.parametrize("caption", ["Open issues with a word:", "Threads that name a file:", "Duplicates of #48:"])
def test_a_recipe_lists_by_number(checkout: Path, caption: str) -> None:
    bash(checkout, GET)
    known = {"kind": "issue", "state": "open", "updated_at": "2026-08-14T00:00:00Z", "title": "A proxy"}
    for shard in range(1, 200):
        more = [known | {"id": 100 * shard + n, "files": ["cookie.py"], "duplicate_of": 48} for n in range(20)]
        file = checkout / f".git/precedent-memory/digests/{shard:04}.jsonl"
        file.write_text("".join(json.dumps(digest) + "\n" for digest in more), encoding="utf-8")
    numbers = [int(line.split()[0][1:]) for line in recipe(caption, checkout)]
    assert len(numbers) > 199 * 20
    assert numbers == sorted(numbers)


@needs_tools
def test_the_recipe_for_a_conversation_shows_all_of_it(checkout: Path) -> None:
    bash(checkout, GET)
    lines = recipe("One conversation:", checkout)
    assert lines[0] == "#48 Login loop after the upgrade to 2.2 (closed)"
    assert lines[1] == "2026-04-13 sample-user-2: ### What happened?"
    assert lines[-1] == "2026-05-15 sample-user-2: 2.3.0 works right away, without clearing anything. Thank you both!"


@needs_tools
def test_the_recipes_leave_the_checkout_as_it_was(checkout: Path) -> None:
    bash(checkout, GET)
    for caption, body in RECIPES.items():
        if body != GET:
            recipe(caption, checkout)
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "branch", "--all", "--format=%(refname)").split() == [
        "refs/heads/main", "refs/remotes/origin/HEAD", "refs/remotes/origin/main",
    ]  # fmt: skip


@needs_tools
def test_the_recipe_for_errors_cares_for_no_case_and_finds_nothing_where_nothing_is(checkout: Path) -> None:
    bash(checkout, GET)
    first = GET.splitlines()[0] + "\n"
    small = RECIPES[CLOSED].replace("SESSION_PATH_MISMATCH", "session_path_mismatch")
    assert bash(checkout, first + small) == EXPECTED[CLOSED]
    assert bash(checkout, first + RECIPES[CLOSED].replace("SESSION_PATH_MISMATCH", "NO_SUCH_THING")) == []


@pytest.mark.slow
@needs_tools
def test_numbers_of_other_repositories_and_bare_digests_disturb_no_recipe(checkout: Path) -> None:
    bash(checkout, GET)
    elsewhere = [{"number": 48, "owner": "octo-org", "repo": "other"}, {"number": 48, "kind": "external"}]
    digests = [{"id": 9001, "references": elsewhere}, {"id": "ABC-1"}, {"id": 9002, "decisions": [{"text": "Chosen."}]}]
    more = checkout / ".git/precedent-memory/digests/0090.jsonl"
    more.write_text("".join(json.dumps(digest) + "\n" for digest in digests), encoding="utf-8")
    known = {caption: lines for caption, lines in EXPECTED.items() if caption in RECIPES}
    assert {caption: recipe(caption, checkout) for caption in known} == known


def test_every_recipe_is_tried() -> None:
    tried = {caption for caption in RECIPES if caption in EXPECTED or caption.endswith("comments included:")}
    assert set(RECIPES) - tried == {
        next(caption for caption in RECIPES if RECIPES[caption] == GET),
        "One conversation:",
    }
    assert TEXT.count("```") == 2 * len(RECIPES)


# -- install -------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with nothing in it, which is the working folder; the home folder lies beside it."""
    for name in ("repo/.git", "home", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


@pytest.fixture
def skill(place: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Gives a function that runs the command there."""

    def run(*arguments: str) -> Ended:
        error = ""
        try:
            code = show(run_skill(parser("skill").parse_args(["skill", *arguments])))
        except PrecedentError as fault:
            code, error = fault.exit_code, str(fault)
        except SystemExit as end:
            code = int(end.code or 0)
        told = capsys.readouterr()
        return Ended(code, told.out, told.err + error)

    return run


def written(folder: Path) -> list[str]:
    """The files in a folder, links not followed, without the folder of git."""
    found = [Path(top, name).relative_to(folder).as_posix() for top, _, names in os.walk(folder) for name in names]
    return sorted(name for name in found if not name.startswith(".git/"))


@pytest.mark.parametrize("words", [("show",), ("install", "--print")])
def test_the_page_can_be_printed(skill: Run, place: Path, words: tuple[str, ...]) -> None:
    assert skill(*words) == Ended(0, TEXT, "")
    assert written(place) == []


@pytest.mark.parametrize("folder", [".", "src"])
def test_it_is_written_at_the_top_from_a_folder_inside(
    skill: Run, place: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (place / "src").mkdir()
    monkeypatch.chdir(place / folder)
    assert skill("install") == Ended(0, f"wrote {PLACE}\n", "")
    assert written(place) == [PLACE]
    assert (place / PLACE).read_text(encoding="utf-8").startswith(TEXT)
    assert (place / PLACE).stat().st_mode & 0o777 == 0o644


def test_outside_of_a_checkout_it_says_what_to_do(skill: Run, place: Path) -> None:
    (place / ".git").rmdir()
    told = skill("install")
    assert (told.code, told.out) == (2, "")
    assert "--print" in told.err


def test_a_second_time_nothing_changes(skill: Run, place: Path) -> None:
    skill("install")
    before = (place / PLACE).stat().st_mtime_ns
    assert skill("install") == Ended(0, f"unchanged {PLACE}\n", "")
    assert (place / PLACE).stat().st_mtime_ns == before


def test_a_copy_of_the_page_counts_as_unchanged(skill: Run, place: Path) -> None:
    put(place / PLACE, TEXT)
    assert skill("install") == Ended(0, f"unchanged {PLACE}\n", "")


def test_a_dry_run_writes_nothing(skill: Run, place: Path) -> None:
    assert skill("install", "--dry-run") == Ended(0, f"would write {PLACE}\n", "")
    assert written(place) == []


def test_what_was_changed_by_hand_is_kept_without_force(skill: Run, place: Path) -> None:
    skill("install")
    file = place / PLACE
    put(file, file.read_text(encoding="utf-8").replace("# Cross-reference", "# Our memory"))
    before = file.read_bytes()
    told = skill("install")
    assert (told.code, told.out) == (2, "")
    assert PLACE in told.err
    assert "--force" in told.err
    assert file.read_bytes() == before
    assert skill("install", "--force") == Ended(0, f"updated {PLACE}\n", "")
    assert file.read_text(encoding="utf-8").startswith(TEXT)


@pytest.mark.parametrize("text", ["", "x" * 100_000, "\0", "written by precedent skill install"])
def test_a_file_of_somebody_else_is_kept(skill: Run, place: Path, text: str) -> None:
    put(place / PLACE, text)
    assert skill("install").code == 2
    assert (place / PLACE).read_text(encoding="utf-8") == text


def test_the_page_of_an_older_version_is_replaced(skill: Run, place: Path) -> None:
    old = "an older page\n"
    seal = f"<!-- written by precedent skill install, sha256 {hashlib.sha256(old.encode()).hexdigest()} -->"
    put(place / PLACE, f"{old}\n{seal}\n")
    assert skill("install") == Ended(0, f"updated {PLACE}\n", "")
    assert (place / PLACE).read_text(encoding="utf-8").startswith(TEXT)


@pytest.mark.parametrize(
    "link",
    [
        lambda place: (place / ".agents").symlink_to(place.parent / "elsewhere"),
        lambda place: linked(place / ".agents/skills", place.parent / "elsewhere"),
        lambda place: linked(place / ".agents/skills/cross-reference", "../../../elsewhere"),
        lambda place: linked(place / PLACE, place.parent / "elsewhere/file"),
        lambda place: linked(place / PLACE, "../other.md"),
        lambda place: linked(place / ".agents/skills", "skills"),
    ],
    ids=["agent", "skills", "folder", "file", "file inside", "circle"],
)
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
def test_no_link_is_followed(skill: Run, place: Path, link: Callable[[Path], None], force: tuple[str, ...]) -> None:
    link(place)
    told = skill("install", *force)
    assert told.code == 2
    assert ".agents" in told.err
    assert "is a symlink" in told.err
    assert written(place.parent / "elsewhere") == []


def test_what_cannot_be_written_is_told(skill: Run, place: Path) -> None:
    put(place / ".agents", "a file")
    told = skill("install")
    assert (told.code, told.out) == (1, "")
    assert PLACE in told.err


def test_json_says_what_became_of_the_file(skill: Run, place: Path) -> None:
    told = skill("install", "--json")
    assert json.loads(told.out) == {
        "dry_run": False, "root": str(place), "files": [{"path": PLACE, "state": "written", "fault": ""}],
    }  # fmt: skip
    put(place / PLACE, "ours")
    told = skill("install", "--json")
    assert (told.code, json.loads(told.out)["files"][0]["state"]) == (2, "left")


# -- the documentation ---------------------------------------------------------------------------------------------


def test_the_page_for_agents_lists_every_option() -> None:
    listed = set(re.findall(r"^\| `(--[a-z-]+)", DOCS, re.MULTILINE))
    assert listed == options(parser("skill")) - {"--version"}


def test_the_configuration_that_is_shown_starts_the_tools() -> None:
    shown = re.findall(r"```json\n(.*?)```", (ROOT / "docs/mcp.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    assert json.loads(shown) == {"mcpServers": {"precedent": {"command": "precedent", "args": ["mcp"]}}}


def options(command: argparse.ArgumentParser) -> set[str]:
    """The long options of a command and of those below it, without ``--help``."""
    found: set[str] = set()
    for action in command._actions:
        found |= {name for name in action.option_strings if name.startswith("--")} - {"--help"}
        if isinstance(action, argparse._SubParsersAction):
            found |= {name for below in action.choices.values() for name in options(below)}
    return found


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def linked(at: Path, to: Path | str) -> None:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(to)
