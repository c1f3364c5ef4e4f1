"""A server that takes no push with a secret in it: one in somebody's issue stops nothing."""

import pytest

from bot.git.errors import RemoteRefused, SecretRefused, parse_error
from tests.acceptance.stage import Stage, with_mentions, with_past

TOKEN = "gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1fG3hJ5"
HOOK = """#!/bin/sh
while read -r old new ref; do
  if git rev-list --objects "$new" --not --all | cut -d " " -f 1 | git cat-file --batch | grep -aqiE "ghp_[a-z0-9]{36}"
  then
    printf "error: GH013: Repository rule violations found for %s.\\n\\n- GITHUB PUSH PROTECTION\\n" "$ref" >&2
    printf "  - Push cannot contain secrets\\n\\n  (?) Learn more: https://docs.example/push\\n" >&2
    exit 1
  fi
done
"""


@pytest.mark.slow
@pytest.mark.parametrize("reads_history", [True, False])
def test_a_token_in_an_issue_is_neither_stored_nor_stops_a_run(empty_stage: Stage, *, reads_history: bool) -> None:
    stage = empty_stage.begin(with_mentions, with_past)
    hook = stage.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK)
    hook.chmod(0o755)
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
    for part in ("Push cannot contain secrets", "path: issues/00/42.json:1", "unblock-secret/2abc", "run: forget"):
        assert part in str(leak)
