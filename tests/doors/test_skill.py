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

from bot.doors.output import show
from bot.doors.skill import AGENTS, PAGE, add_skill, run_skill
from bot.errors import PrecedentError
from tests.doors.console import Ended, Run

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
    assert fields["name"] == PAGE.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 50 < len(fields["description"]) <= 1024
    assert body.startswith("\n# ")


def test_the_page_is_short() -> None:
    assert len(TEXT.splitlines()) < 150
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
    return clone


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=hubot", "-c", "user.email=hubot@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def bash(folder: Path, script: str) -> list[str]:
    """What a script prints in a shell of its own; whatever fails in it fails here."""
    shell = ["bash", "-e", "-o", "pipefail", "-c", script]
    done = subprocess.run(shell, cwd=folder, capture_output=True, text=True, check=False)
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
        top = argparse.ArgumentParser(prog="precedent")
        add_skill(top.add_subparsers(dest="command"))
        error = ""
        try:
            code = show(run_skill(top.parse_args(["skill", *arguments])))
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


HERE = {name: f"{agent.here}/{PAGE}" for name, agent in AGENTS.items()}


def test_show_prints_the_page(skill: Run) -> None:
    assert skill("show") == Ended(0, TEXT, "")


def test_without_a_sign_of_any_agent_it_is_written_where_most_look(skill: Run, place: Path) -> None:
    assert skill("install") == Ended(0, f"wrote {HERE['agents']}\nwrote {HERE['claude']}\n", "")
    assert written(place) == [HERE["agents"], HERE["claude"]]
    assert (place / HERE["claude"]).read_text(encoding="utf-8").startswith(TEXT)
    assert (place / HERE["claude"]).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("sign", "names"),
    [
        (".claude", ["claude"]),
        (".codex", ["agents"]),
        (".cursor", ["cursor"]),
        (".gemini", ["gemini"]),
        (".opencode", ["opencode"]),
        (".github/skills", ["copilot"]),
        (".github/workflows", ["agents", "claude"]),
    ],
)
def test_the_agents_that_are_used_in_a_checkout_get_it(skill: Run, place: Path, sign: str, names: list[str]) -> None:
    (place / sign).mkdir(parents=True)
    assert skill("install").code == 0
    assert written(place) == [HERE[name] for name in names]


def test_agents_can_be_named_and_one_folder_is_written_once(skill: Run, place: Path) -> None:
    told = skill("install", "--agent", "codex", "--agent", "gemini", "--agent", "agents")
    assert told == Ended(0, f"wrote {HERE['agents']}\nwrote {HERE['gemini']}\n", "")


def test_an_agent_that_nobody_knows_is_refused(skill: Run, place: Path) -> None:
    told = skill("install", "--agent", "hal")
    assert told.code == 2
    assert "claude" in told.err
    assert written(place) == []


def test_it_is_written_at_the_top_from_a_folder_inside(
    skill: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "src").mkdir()
    monkeypatch.chdir(place / "src")
    assert skill("install", "--agent", "claude").code == 0
    assert written(place) == [HERE["claude"]]


def test_outside_of_a_checkout_it_says_what_to_do(skill: Run, place: Path) -> None:
    (place / ".git").rmdir()
    told = skill("install")
    assert (told.code, told.out) == (2, "")
    assert "--global" in told.err


def test_global_writes_to_the_home_folder(skill: Run, place: Path) -> None:
    home = place.parent / "home"
    (home / ".config/opencode").mkdir(parents=True)
    (home / ".copilot").mkdir()
    told = skill("install", "--global")
    assert told.code == 0
    assert written(home) == [f".config/opencode/skills/{PAGE}", f".copilot/skills/{PAGE}"]
    assert written(place) == []


def test_a_second_time_nothing_changes(skill: Run, place: Path) -> None:
    skill("install", "--agent", "claude")
    before = (place / HERE["claude"]).stat().st_mtime_ns
    assert skill("install", "--agent", "claude") == Ended(0, f"unchanged {HERE['claude']}\n", "")
    assert (place / HERE["claude"]).stat().st_mtime_ns == before


def test_a_copy_of_the_page_counts_as_unchanged(skill: Run, place: Path) -> None:
    put(place / HERE["claude"], TEXT)
    assert skill("install") == Ended(0, f"unchanged {HERE['claude']}\n", "")


def test_a_dry_run_writes_nothing(skill: Run, place: Path) -> None:
    assert skill("install", "--dry-run", "--agent", "claude") == Ended(0, f"would write {HERE['claude']}\n", "")
    assert written(place) == []


def test_what_was_changed_by_hand_is_kept_and_the_others_are_written(skill: Run, place: Path) -> None:
    skill("install", "--agent", "claude")
    file = place / HERE["claude"]
    put(file, file.read_text(encoding="utf-8").replace("# Cross-reference", "# Our memory"))
    before = file.read_bytes()
    told = skill("install", "--agent", "claude", "--agent", "gemini")
    assert (told.code, told.out) == (2, f"wrote {HERE['gemini']}\n")
    assert HERE["claude"] in told.err
    assert "--force" in told.err
    assert file.read_bytes() == before
    assert skill("install", "--agent", "claude", "--force") == Ended(0, f"updated {HERE['claude']}\n", "")
    assert file.read_text(encoding="utf-8").startswith(TEXT)


@pytest.mark.parametrize("text", ["", "x" * 100_000, "\0", "written by precedent skill install"])
def test_a_file_of_somebody_else_is_kept(skill: Run, place: Path, text: str) -> None:
    put(place / HERE["claude"], text)
    assert skill("install").code == 2
    assert (place / HERE["claude"]).read_text(encoding="utf-8") == text


def test_the_page_of_an_older_version_is_replaced(skill: Run, place: Path) -> None:
    old = "an older page\n"
    seal = f"<!-- written by precedent skill install, sha256 {hashlib.sha256(old.encode()).hexdigest()} -->"
    put(place / HERE["claude"], f"{old}\n{seal}\n")
    assert skill("install") == Ended(0, f"updated {HERE['claude']}\n", "")
    assert (place / HERE["claude"]).read_text(encoding="utf-8").startswith(TEXT)


@pytest.mark.parametrize(
    "link",
    [
        lambda place: (place / ".claude").symlink_to(place.parent / "elsewhere"),
        lambda place: linked(place / ".claude/skills", place.parent / "elsewhere"),
        lambda place: linked(place / ".claude/skills/cross-reference", "../../../elsewhere"),
        lambda place: linked(place / HERE["claude"], place.parent / "elsewhere/file"),
        lambda place: linked(place / HERE["claude"], "../other.md"),
        lambda place: linked(place / ".claude/skills", "skills"),
    ],
    ids=["agent", "skills", "folder", "file", "file inside", "circle"],
)
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
def test_no_link_is_followed_out_of_the_checkout(
    skill: Run, place: Path, link: Callable[[Path], None], force: tuple[str, ...]
) -> None:
    link(place)
    told = skill("install", "--agent", "claude", *force)
    assert told.code in (1, 2)
    assert HERE["claude"] in told.err
    assert written(place.parent / "elsewhere") == []


def test_a_link_to_a_folder_inside_is_followed_and_written_once(skill: Run, place: Path) -> None:
    linked(place / ".claude/skills", "../.agents/skills")
    (place / ".agents/skills").mkdir(parents=True)
    assert skill("install") == Ended(0, f"wrote {HERE['agents']}\n", "")
    assert (place / HERE["claude"]).read_text(encoding="utf-8").startswith(TEXT)


def test_what_cannot_be_written_is_told(skill: Run, place: Path) -> None:
    put(place / ".claude", "a file")
    told = skill("install", "--agent", "claude")
    assert (told.code, told.out) == (1, "")
    assert HERE["claude"] in told.err


def test_json_says_what_became_of_each_file(skill: Run, place: Path) -> None:
    put(place / HERE["claude"], "ours")
    told = skill("install", "--agent", "claude", "--agent", "cursor", "--json")
    assert told.code == 2
    kept, new = json.loads(told.out)["files"]
    assert (kept["path"], kept["state"]) == (HERE["claude"], "left")
    assert new == {"path": HERE["cursor"], "state": "written", "fault": ""}
    assert json.loads(told.out)["root"] == str(place)


# -- the documentation ---------------------------------------------------------------------------------------------


def test_the_page_for_agents_names_each_agent_with_its_folders() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\S+)` \| (.+?) \| (.+) \|$", DOCS, re.MULTILINE)
    shown = {name: (here, here if home == "the same" else home.strip("`")) for name, here, home, _ in rows}
    assert shown == {name: (agent.here, agent.home) for name, agent in AGENTS.items()}
    signs = {name: set(re.findall(r"`([^`]+)`", cell)) for name, _, _, cell in rows}
    assert signs == {name: {*agent.signs, agent.home_sign} for name, agent in AGENTS.items()}


def test_the_page_for_agents_lists_every_option() -> None:
    top = argparse.ArgumentParser()
    add_skill(top.add_subparsers())
    listed = set(re.findall(r"^\| `(--[a-z-]+)", DOCS, re.MULTILINE))
    assert listed == options(top)


def test_the_configuration_that_is_shown_starts_the_tools() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)
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
