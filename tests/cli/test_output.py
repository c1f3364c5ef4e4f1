"""The JSON that the commands print: it matches published schemas, and golden files to which fields are only added."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from bot.cli.colours import ACCENT, BAD, GOOD
from bot.cli.commands import check, search
from bot.cli.commands import show as showing
from bot.cli.output import show
from bot.cli.parser import parse
from bot.domain.card import Card, Ending, Ruling, SessionPassage
from bot.domain.kinds import Kind
from bot.questions.fields import (
    SEARCH_FIELDS,
    SESSION_PASSAGE_FIELDS,
    THREAD_FIELDS,
    Row,
    item_of,
    match_reasons,
    row_of,
    row_stamp,
)
from bot.questions.views import gist
from tests.cli.checkouts import ROOT, create_cookie_checkout
from tests.cli.program_result import Run
from tests.sources.session_lines import CODING, ISSUE_AGENT, write

GOLDEN = Path(__file__).parent / "golden"
SCHEMAS = ROOT / "docs/schemas"
NOW = datetime(2026, 8, 20, 12, tzinfo=UTC)
HOME = "https://github.com/octo-org/linkbarn"

COMMANDS = {
    "search": search.run_search,
    "ss": search.run_smart_search,
    "what": search.run_what,
    "related": search.run_related,
    "show": showing.run_show,
    "check": check.run_check,
}
CASES = {
    "search": ("search", ("search", "login", "loop", "cookie", "--limit", "2")),
    "search_expanded": ("search", ("search", "login", "loop", "--state", "closed", "--expand")),
    "search_nothing": ("search", ("search", "quantum", "zebra")),
    "search_with_sessions": ("search", ("search", "cookie", "path", "--logs", "logs", "--limit", "1")),
    "sessions": ("sessions", ("search", "cookie", "path", "--kind", "session", "--logs", "logs")),
    "smart_search_words": ("smart-search", ("ss", "session", "lost", "--limit", "3")),
    "smart_search_work": ("smart-search", ("ss", "--limit", "3")),
    "smart_search_nothing": ("smart-search", ("ss", "quantum", "zebra")),
    "what": ("what", ("what",)),
    "related": ("related", ("related", "linkbarn/auth/cookie.py", "linkbarn/search/query.py")),
    "related_nothing": ("related", ("related", "nowhere.py")),
    "show": ("show", ("show", "48", "--chars", "1000")),
    "show_full": ("show", ("show", "13", "--full")),
    "check": ("check", ("check", "logs/draft.md")),
    "check_nothing": ("check", ("check", "logs/zebra.md")),
}
"""A golden file → its schema and the command, which runs in a checkout with uncommitted work."""


@pytest.fixture(scope="module")
def store(sample_store: Path) -> Path:
    return sample_store


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = create_cookie_checkout(tmp_path_factory.mktemp("shapes") / "linkbarn")
    write(folder / "logs/a.jsonl", *ISSUE_AGENT)
    (folder / "logs/draft.md").write_text(
        "# Signed out again under /bm\n\nSee #13. The log says `SESSION_PATH_MISMATCH`.\n"
    )
    (folder / "logs/zebra.md").write_text("Quantum zebra\n")
    return folder


def parse_arguments(words: tuple[str, ...], store: Path) -> Any:
    """Parse a command with `NOW` as the current time."""
    source = () if "session" in words and "--logs" in words else ("--store", str(store))
    arguments = parse([*words, *source, "--json"])
    arguments.as_of = NOW
    return arguments


def load_schema(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SCHEMAS / f"{name}.v1.json").read_text(encoding="utf-8"))
    return document


KINDS: Registry[Any] = Registry().with_resource("kinds.v1.json", DRAFT202012.create_resource(load_schema("kinds")))
"""The schema that the others refer to."""


def validator(name: str, *, is_closed: bool = False) -> Draft202012Validator:
    return Draft202012Validator(close_schema(load_schema(name)) if is_closed else load_schema(name), registry=KINDS)


def close_schema(node: Any) -> Any:
    """The schema with additional fields forbidden."""
    if isinstance(node, list):
        return [close_schema(value) for value in node]
    if not isinstance(node, dict):
        return node
    closed = {name: close_schema(value) for name, value in node.items()}
    return closed | {"additionalProperties": False} if "properties" in node and node.get("type") == "object" else closed


def undescribed_fields(node: Any, name: str = "") -> Iterator[str]:
    """The fields of a schema that have no description."""
    if isinstance(node, dict):
        for field, value in node.get("properties", {}).items() if isinstance(node.get("properties"), dict) else ():
            if "description" not in value and "$ref" not in value:
                yield f"{name}.{field}"
        for field, value in node.items():
            yield from undescribed_fields(value, f"{name}.{field}")


@pytest.mark.parametrize("name", CASES)
def test_each_output_equals_its_golden_file_and_matches_its_schema(
    name: str, store: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, words = CASES[name]
    monkeypatch.chdir(checkout)
    assert show(COMMANDS[words[0]](parse_arguments(words, store))) == (3 if name == "check" else 0)
    printed = capsys.readouterr().out.replace(str(checkout), "CHECKOUT")
    validator(kind, is_closed=True).validate(json.loads(printed))
    path = GOLDEN / f"{name}.json"
    if os.environ.get("PRECEDENT_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")


def test_every_schema_is_valid_describes_its_fields_and_has_a_tested_output() -> None:
    names = sorted(path.name.removesuffix(".v1.json") for path in SCHEMAS.iterdir())
    assert names == sorted({"kinds", *(kind for kind, _ in CASES.values())})
    for name in names:
        Draft202012Validator.check_schema(load_schema(name))
        assert list(undescribed_fields(load_schema(name))) == []


def test_the_schema_allows_new_fields(store: Path, call: Run) -> None:
    hits = call("search", "login", "loop", "--store", store, "--json").data
    validator("search").validate([hit | {"news": 1} for hit in hits])


@pytest.mark.parametrize("words", [("cookie", "path"), ()])
def test_sessions_in_a_smart_search_match_its_schema(
    store: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(create_cookie_checkout(tmp_path / "linkbarn"))
    write(Path(".claude/logging/a.jsonl"), *({**line, "gitBranch": "fix/login-loop"} for line in CODING))
    write(Path(".claude/logging/b.jsonl"), *ISSUE_AGENT)
    answer = call("ss", *words, "--store", store, "--json").data
    validator("smart-search", is_closed=True).validate(answer)
    sessions = [hit["id"] for hit in answer["hits"] if hit["kind"] == "session"]
    assert sessions == (["5b1c"] if words else ["c-1"])


def test_a_missing_field_violates_the_schema(store: Path, call: Run) -> None:
    cases = ["id", "title", "score", "state", "kind", "created_at", "decisions", "outcome"]
    for field in cases:
        (hit, *_) = call("search", "login", "loop", "--store", store, "--json").data
        del hit[field]
        assert not validator("search").is_valid([hit]), field


# -- rows ----------------------------------------------------------------------------------------------------------


def card(**fields: Any) -> Card:
    return Card(**{"id": 7, "kind": Kind.ISSUE, "title": "Zebra", "author": "monalisa", "state": "open",
                   "created_at": NOW, "updated_at": NOW} | fields)  # fmt: skip


def row_for(thread_card: Card, home: str, *, agents: bool = False) -> Row:
    return row_of(THREAD_FIELDS, item_of(thread_card, home), home, agents=agents)


def test_a_decision_links_to_its_comment() -> None:
    decisions = tuple(Ruling("We decided.", "octocat", "OWNER", NOW, comment) for comment in (99, None))
    assert [decision["url"] for decision in row_for(card(decisions=decisions), HOME)["decisions"]] == [
        f"{HOME}/issues/7#issuecomment-99",
        f"{HOME}/issues/7",
    ]
    assert [decision["url"] for decision in row_for(card(decisions=decisions), "")["decisions"]] == ["", ""]


def test_a_superseded_decision_links_to_what_replaced_it() -> None:
    cases = [
        ("", HOME, ""),
        ("#51", HOME, f"{HOME}/issues/51"),
        ("#issuecomment-99", HOME, f"{HOME}/issues/7#issuecomment-99"),
        ("#issuecomment-99", "", "#issuecomment-99"),
        ("#51", "", "#51"),
        ("ABC-7", HOME, "ABC-7"),
        ('#issuecomment-99">', HOME, '#issuecomment-99">'),
    ]
    for superseded_by, home, expected in cases:
        thread_card = card(decisions=(Ruling("We decided.", "octocat", "OWNER", NOW, 98, superseded_by),))
        for agents in (False, True):
            row = row_for(thread_card, home, agents=agents)
            assert [decision["superseded_by"] for decision in row["decisions"]] == [expected], superseded_by


def test_a_terminal_quotes_no_superseded_decision() -> None:
    superseded = Ruling("We chose A.", "octocat", "OWNER", NOW, 98, "#51")
    current = Ruling("We chose B.", "octocat", "OWNER", NOW, 99)
    line = f"octocat (maintainer), {NOW:%Y-%m-%d}: “We chose B.”"
    assert gist(card(decisions=(current, superseded))) == line
    assert gist(card(decisions=(superseded,), ending=Ending(quote="Closing."))) == "“Closing.”"
    said = Ending(quote="Clear it.", author="hubot", role="MEMBER", at=NOW)
    assert gist(card(ending=said, summary="Which one?", summary_by="octocat")) == (
        f"hubot (maintainer), {NOW:%Y-%m-%d}: “Clear it.”"
    )
    assert gist(card(ending=Ending(), summary="Which one?", summary_by="octocat")) == "octocat: “Which one?”"


def test_only_issues_and_pull_requests_have_an_address() -> None:
    cases = [
        (7, Kind.ISSUE, f"{HOME}/issues/7"),
        (7, Kind.PULL, f"{HOME}/pull/7"),
        ("docs/a.md", Kind.PAGE, ""),
        ("5b1c", Kind.SESSION, ""),
    ]
    assert [key for key, kind, url in cases if row_for(card(id=key, kind=kind), HOME)["url"] != url] == []


def test_unknown_fields_are_empty_but_never_missing() -> None:
    row = row_for(card(), "")
    assert row["closed_at"] == row["state_reason"] == row["summary"] == row["url"] == ""
    assert (row["labels"], row["decisions"], row["files"]) == ([], [], [])
    assert row["outcome"] == {
        "kind": "unknown",
        "fix": "",
        "release": "",
        "duplicate_of": None,
        "quote": "",
        "author": "",
        "role": "",
        "at": "",
    }
    assert row_stamp(None) == ""


TEXT = st.text(max_size=100).map(lambda text: 50 * text)


@pytest.mark.slow
@given(TEXT, st.lists(TEXT, max_size=50), st.none() | st.integers(1, 2**53))
def test_a_row_keeps_its_shape_and_size_whatever_a_stranger_wrote(
    text: str, texts: list[str], comment: int | None
) -> None:
    decisions = tuple(Ruling(ruling_text, text, text, None, comment) for ruling_text in texts)
    hostile_card = card(
        title=text, author=text[:100], summary=text, labels=tuple(texts), files=tuple(texts), decisions=decisions,
        ending=Ending("fixed", text, text[:100], text[:100], text[:100], "NONE", NOW),
    )  # fmt: skip
    item = item_of(hostile_card, HOME)._replace(score=1.0, words=text, terms=("zebra",))
    row = row_of(SEARCH_FIELDS, item, HOME)
    validator("search", is_closed=True).validate([row])
    assert len(row["title"]) <= 300
    assert len(row["summary"]) <= 1_000
    assert max(len(row["labels"]), len(row["files"]), len(row["decisions"])) <= 20


def test_a_message_of_a_session_is_a_row_too() -> None:
    row = row_of(SESSION_PASSAGE_FIELDS, SessionPassage("5b1c", "user", "zebra", None, 1.239, "a.jsonl"))
    assert list(row) == ["score", "type", "content", "timestamp", "session_id", "path"]
    assert (row["score"], row["timestamp"]) == (1.24, "")


def test_matched_words_are_shown_as_they_were_typed() -> None:
    assert match_reasons(("login", "loop"), "Loops of LOGIN") == ["holds LOGIN, Loops"]
    assert match_reasons(("login",), "zebra") == []


def luminance(number: int) -> float:
    """The relative luminance of one of the 216 colours after the first 16 (WCAG 2.2)."""
    steps = [(0, 95, 135, 175, 215, 255)[(number - 16) // base % 6] / 255 for base in (36, 6, 1)]
    red, green, blue = (step / 12.92 if step <= 0.04045 else ((step + 0.055) / 1.055) ** 2.4 for step in steps)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_every_colour_can_be_read_on_black_and_on_white() -> None:
    for colour in (ACCENT, GOOD, BAD):
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5, colour
        assert (luminance(colour) + 0.05) / 0.05 >= 4.5, colour
