"""Pages, configuration, templates and the code are in plain English: patterns of stilted phrases find none."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, tracked

STILTED = re.compile(
    r"\banew\b|\b(?:of|for|to|by) who\b|\bas which\b|\bthat is none\b|\b(?:is|are) told of\b|\bto be had\b"
    r"|\bmend(?:s|ed)?\b|\bbeside\b|\bin vain\b|\bof whom\b|\bof (?:ours|yours)\b(?!,)|\bit is said\b"
    r"|\bwhere (?:there is )?none\b|\bto its end\b|\bfor ever\b|(?:^|[.:] )(?-i:What) (?!to\b)[a-z][^?\n]*\.(?: |$)",
    re.IGNORECASE | re.MULTILINE,
)
EXCEPTIONS = {
    ("bench/README.md", "to its end"): "the name of a measure, as docs/benchmarks.json has it",
    ("docs/endings.md", "it is said"): "about what people say",
}
"""File and phrase → why it may stay; at most ten."""

FILES = [
    path
    for path in tracked("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "skills", "deploy", ".github", "bot",
                        "bench/README.md", "action.yml", "config.example.yml", "templates")
    if path.suffix in (".md", ".yml", ".example", ".service", ".py", ".j2")
]  # fmt: skip


@pytest.mark.slow
def test_no_file_has_a_stilted_phrase() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
    matches = [(file, phrase) for file, text in texts.items() for phrase in STILTED.findall(text)]
    assert [(file, phrase) for file, phrase in matches if (file, phrase.lower()) not in EXCEPTIONS] == []
