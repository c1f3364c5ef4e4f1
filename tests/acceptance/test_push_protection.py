"""A server that takes no push with a secret in it: one in somebody's issue stops nothing."""

from hashlib import blake2b

import pytest

from bot.domain.thread import Thread
from bot.git.errors import RemoteRefused, SecretRefused, parse_error
from tests.acceptance.stage import REPOSITORY, Stage, summary, with_mentions, with_past
from tests.acceptance.test_forget import leaks

TOKEN = "gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3hJ5"
UNKNOWN = "ZZKEY-" + "A1B2C3D4E5" * 3
HOOK = """#!/bin/sh
while read -r old new ref; do
  found=$(git rev-list --objects "$new" --not --all | while read -r oid path; do
    [ "$path" ] && git cat-file -p "$oid" | grep -anE "ghp_[A-Za-z0-9]{36}|ZZKEY-[A-Z0-9]{30}" |
      sed "s|^\\([0-9]*\\):.*|      path: $path:\\1|"
  done)
  if [ "$found" ]; then
    printf "error: GH013: Repository rule violations found for %s.\\n\\n- GITHUB PUSH PROTECTION\\n" "$ref" >&2
    printf "  - Push cannot contain secrets\\n%s\\n  (?) Learn more: https://docs.example/push\\n" "$found" >&2
    exit 1
  fi
done
"""


def protected(empty_stage: Stage) -> Stage:
    stage = empty_stage.begin(with_mentions, with_past)
    hook = stage.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK)
    hook.chmod(0o755)
    return stage


@pytest.mark.slow
@pytest.mark.parametrize("reads_history", [True, False])
def test_a_token_in_an_issue_is_neither_stored_nor_stops_a_run(empty_stage: Stage, *, reads_history: bool) -> None:
    stage = protected(empty_stage)
    if not reads_history:
        stage.deliver("schedule")
    leak = stage.github.open_issue("hubot", f"It fails with {TOKEN}", f"As in #1, with {TOKEN}.\n\n```\n{TOKEN}\n```")
    comment = stage.github.comment(leak, "hubot", f"/precedent search {TOKEN}")
    stage.github.comment(1, "monalisa", f"Try {TOKEN}")
    stage.deliver("issues", "opened", leak)
    stage.deliver("issue_comment", "created", leak, comment)
    assert TOKEN not in "".join(stage.comments(leak))
    assert stage.comments(leak)
    number = stage.github.open_issue("hubot", "It fails again", f"As in #{leak}.")
    stage.deliver("issues", "opened", number)
    assert "It fails with \\[secret " in stage.comments(number)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reads_history", "leaking", "labels"),
    [
        (True, f"It fails with {UNKNOWN}", ()),
        (False, f"It fails with {UNKNOWN}", ()),
        (False, f"It fails with {UNKNOWN[:9]}\u200b{UNKNOWN[9:]}", ()),  # only in derived texts
        (False, "It fails", (UNKNOWN,)),
    ],
)
def test_a_secret_of_an_unknown_shape_costs_only_the_text_of_its_issue(
    empty_stage: Stage, capfd: pytest.CaptureFixture[str], *, reads_history: bool, leaking: str, labels: tuple[str, ...]
) -> None:
    stage = protected(empty_stage)
    if not reads_history:
        stage.deliver("schedule")
    leak = stage.github.open_issue("hubot", "Why?", leaking, labels=labels)
    stage.deliver("issues", "opened", leak)
    assert f"#{leak} is kept without its text" in summary(stage) + capfd.readouterr().out
    number = stage.github.open_issue("hubot", "Everybody is logged out", "As in #1.")
    stage.deliver("issues", "opened", number)
    assert len(stage.comments(number)) == 1
    records = stage.memory().records([1, leak, number])
    assert [bool(isinstance(record, Thread) and record.title) for record in records.values()] == [True, False, True]
    stage.github.unlabel(leak, *labels)
    stage.github.edit_issue(leak, title="It fails", body="Why? The key is revoked.")
    stage.deliver("issues", "edited", leak)
    (record,) = stage.memory().records([leak]).values()
    assert isinstance(record, Thread)
    assert record.title == "It fails"


def test_a_refused_push_tells_the_whole_rule_with_its_address_and_its_own_remedy() -> None:
    head = "remote: error: GH013: Repository rule violations found for refs/heads/precedent.\nremote: \n"
    end = "\n ! [remote rejected] abc -> precedent (push declined due to repository rule violations)"
    unsigned = parse_error(
        "push", f"{head}remote: - Commits must have verified signatures.\nremote:   Found 1 violation:{end}"
    )
    assert type(unsigned) is RemoteRefused
    assert "GH013: Repository rule violations" in str(unsigned)
    assert "Commits must have verified signatures" in str(unsigned)
    leak = parse_error(
        "push",
        f"{head}remote: - GITHUB PUSH PROTECTION\nremote:   \u2014\u2014\u2014\n"
        "remote:     - Push cannot contain secrets\n"
        "remote:       \u2014\u2014 GitHub Personal Access Token \u2014\u2014\nremote:        locations:\n"
        f"remote:          - commit: 9c1d2e3\nremote:            path: issues/00/42.json:1\n"
        f"remote:        https://github.com/o/r/security/secret-scanning/unblock-secret/2abc{end}",
    )
    assert type(leak) is SecretRefused
    for part in (
        "Push cannot contain secrets",
        "path: issues/00/42.json:1",
        "unblock-secret/2abc",
        "/precedent forget",
    ):
        assert part in str(leak)


class Leaks:
    """A secret of its own for each place."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def __getitem__(self, place: str) -> str:
        letters = "".join(chr(ord("a") + byte % 26) for byte in blake2b(place.encode(), digest_size=36).digest())
        self.places[letters] = place
        return f"ghp_{letters}"


@pytest.mark.slow
def test_no_text_of_a_repository_brings_a_secret_into_memory(empty_stage: Stage) -> None:
    stage, github, at = empty_stage, empty_stage.github, "2026-01-01T10:00:00Z"
    secret = Leaks()
    stage.configure("mentions:\n  speak: always\nreleases:\n  notify: comment\n")
    stage.configure(f"# Setup with {secret['heading']}\n\nUse {secret['docs']}.\n", f"docs/{secret['path']}.md")
    stage.git.create(f"{REPOSITORY}.wiki")
    stage.git.commit(f"{REPOSITORY}.wiki", f"{secret['page']}.md", f"Use {secret['wiki']}.\n")
    github.set_permission("octocat", "write")
    body = f"It is {secret['body']}.\n\n```\nLoginError: {secret['error']} in src/{secret['file']}.py\n```\n"
    github.open_issue(secret["author"], f"Login fails: {secret['title']}", body, at, labels=[secret["label"]])
    github.comment(1, secret["writer"], f"We decided to use {secret['decision']}.", at)
    github.add_commit(f"Log in {secret['message']}", "octocat", at, files=[f"src/{secret['change']}.py"], sha="c" * 40)
    github.reference(1, "c" * 40, "octocat", at)
    github.add_pull(
        secret["opener"], f"Log in: {secret['pull']}", f"Fixes #1: {secret['text']}", at,
        [f"src/{secret['changed']}.py"], [1],
    )  # fmt: skip
    github.merge_pull(2, "octocat", at)
    github.add_release(f"v2.0.0+{secret['tag']}", "2026-01-02T10:00:00Z", f"Fixed: {secret['notes']}")
    github.open_issue("hubot", "Sessions are lost", "On each restart.", at)
    github.add_pull(
        "octocat", f"Keep {secret['open']}", "Fixes #3.", at, [f"{secret['work']}/src/auth/session.py"], [3]
    )
    number = github.discuss(
        secret["asker"], secret["question"], secret["asked"], at, secret["category"], [secret["discussion label"]]
    )
    github.mark_answer(number, github.say(number, secret["helper"], f"Set {secret['answer']}.", at), "hubot", at)
    stage.deliver("schedule", after=3600)
    for text in ("As in #1 and #3, in src/auth/session.py.", f"/precedent search {secret['search']}"):
        asked = github.open_issue("hubot", f"Login fails with {secret['new']}", f"{text}\n\n{secret['new body']}")
        stage.deliver("issues", "opened", asked)
        stage.deliver("issue_comment", "created", asked, github.comment(asked, "hubot", text))
    stage.deliver("workflow_dispatch", run="digest")
    stage.deliver("workflow_dispatch", run="rebuild")
    found = {secret.places[leak.rpartition(" ")[2]]: leak for leak in leaks(stage, *secret.places)}
    assert found == {}
