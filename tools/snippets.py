"""Writes the workflows that the pages show into a folder of their own, so that what checks workflows checks them too.

python -m tools.snippets FOLDER
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```ya?ml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
POLICY = """rules:
  unpinned-uses:
    config:
      policies:
        OWNER/precedent: ref-pin # a placeholder; docs/security.md tells how to pin the real one
        '*': hash-pin
"""
JOBS = re.compile(r"^jobs:", re.MULTILINE)
COMMENTS = re.compile(r"^  issue_comment:", re.MULTILINE)
"""What people write reaches the bot as data, by the event's file: tests.threats holds that no step expands it."""

ON = re.compile(r"^on:", re.MULTILINE)


def workflows() -> dict[str, str]:
    """The workflows of all pages by name (``README-1.yml``); parts of one are made whole with a harmless trigger."""
    found: dict[str, str] = {}
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("sample/*.md")]):
        shown = [body for body in FENCE.findall(page.read_text(encoding="utf-8")) if JOBS.search(body)]
        for at, body in enumerate(shown, 1):
            whole = body if ON.search(body) else f"on: workflow_dispatch\n{body}"
            found[f"{page.stem}-{at}.yml"] = COMMENTS.sub(r"\g<0> # zizmor: ignore[dangerous-triggers]", whole)
    return found


def main(folder: Path) -> None:
    """Write them below ``folder``, in the place where GitHub would look for them, in place of older ones."""
    place = folder / ".github" / "workflows"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.yml"):
        old.unlink()
    (folder / "zizmor.yml").write_text(POLICY, encoding="utf-8")
    for name, text in workflows().items():
        (place / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
