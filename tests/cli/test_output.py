"""The shapes of what the commands print as JSON: promised by schemas, and whole outputs that only grow."""

from __future__ import annotations

import argparse
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

from bot.cli.commands import check, search
from bot.cli.commands import show as showing
from bot.cli.main import parser
from bot.cli.output import show
from bot.domain.card import Card, Ending, Ruling, SessionPassage
from bot.domain.kinds import Kind
from bot.questions.views import full_row, gist, match_reasons, passage_row, row_stamp, short_row
from tests.cli.asked import ROOT, working_on_cookies
from tests.cli.console import Run
from tests.sources.session_lines import ISSUE_AGENT, write

GOLDEN = Path(__file__).parent / "golden"
SCHEMAS = ROOT / "docs/schemas"
NOW = datetime(2026, 8, 20, 12, tzinfo=UTC)
HOME = "https://github.com/octo-org/linkbarn"

RUN = {
    "search": search.run_search,
    "ss": search.run_smart_search,
    "what": search.run_what,
    "related": search.run_related,
    "show": showing.run_show,
    "check": check.run_check,
}
ASKED = {
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
"""A golden file → the schema that promises its shape, and what was asked in a checkout where somebody works."""


@pytest.fixture(scope="module")
def store(sample_store: Path) -> Path:
    return sample_store


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = working_on_cookies(tmp_path_factory.mktemp("shapes") / "linkbarn")
    write(folder / "logs/a.jsonl", *ISSUE_AGENT)
    (folder / "logs/draft.md").write_text(
        "# Signed out again under /bm\n\nSee #13. The log says `SESSION_PATH_MISMATCH`.\n"
    )
    (folder / "logs/zebra.md").write_text("Quantum zebra\n")
    return folder


def asked(words: tuple[str, ...], store: Path) -> argparse.Namespace:
    """What somebody gave, as if it were `NOW`."""
    there = () if "session" in words and "--logs" in words else ("--store", str(store))
    given = parser().parse_args([*words, *there, "--json"])
    given.as_of = NOW
    return given


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.v1.json").read_text(encoding="utf-8"))
    return found


KINDS: Registry[Any] = Registry().with_resource("kinds.v1.json", DRAFT202012.create_resource(schema("kinds")))
"""The schema to which the others refer."""


def validator(name: str, *, is_closed: bool = False) -> Draft202012Validator:
    return Draft202012Validator(closed(schema(name)) if is_closed else schema(name), registry=KINDS)


def closed(node: Any) -> Any:
    """The schema with nothing allowed that it does not tell of."""
    if isinstance(node, list):
        return [closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    shut = {name: closed(each) for name, each in node.items()}
    return shut | {"additionalProperties": False} if "properties" in node and node.get("type") == "object" else shut


def told(node: Any, name: str = "") -> Iterator[str]:
    """The fields of a schema that nothing explains."""
    if isinstance(node, dict):
        for field, each in node.get("properties", {}).items() if isinstance(node.get("properties"), dict) else ():
            if "description" not in each and "$ref" not in each:
                yield f"{name}.{field}"
        for field, each in node.items():
            yield from told(each, f"{name}.{field}")


@pytest.mark.parametrize("name", ASKED)
def test_an_output_is_the_one_that_was_agreed_and_keeps_to_its_schema(
    name: str, store: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, words = ASKED[name]
    monkeypatch.chdir(checkout)
    assert show(RUN[words[0]](asked(words, store))) == (3 if name == "check" else 0)
    printed = capsys.readouterr().out.replace(str(checkout), "CHECKOUT")
    validator(kind, is_closed=True).validate(json.loads(printed))
    path = GOLDEN / f"{name}.json"
    if os.environ.get("PRECEDENT_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")


def test_every_schema_is_one_and_explains_its_fields_and_is_held_to_an_output() -> None:
    names = sorted(path.name.removesuffix(".v1.json") for path in SCHEMAS.iterdir())
    assert names == sorted({"kinds", *(kind for kind, _ in ASKED.values())})
    for name in names:
        Draft202012Validator.check_schema(schema(name))
        assert list(told(schema(name))) == []


def test_a_field_that_is_new_breaks_no_promise(store: Path, call: Run) -> None:
    hits = call("search", "login", "loop", "--store", store, "--json").data
    validator("search").validate([hit | {"news": 1} for hit in hits])


@pytest.mark.parametrize("field", ["id", "title", "score", "state", "kind", "created_at", "decisions", "outcome"])
def test_a_field_that_is_gone_is_seen(store: Path, call: Run, field: str) -> None:
    (hit, *_) = call("search", "login", "loop", "--store", store, "--json").data
    del hit[field]
    assert not validator("search").is_valid([hit])


# -- rows ----------------------------------------------------------------------------------------------------------


def card(**fields: Any) -> Card:
    return Card(**{"id": 7, "kind": Kind.ISSUE, "title": "Zebra", "author": "monalisa", "state": "open",
                   "created_at": NOW, "updated_at": NOW} | fields)  # fmt: skip


def test_a_decision_leads_to_the_comment_that_says_it() -> None:
    said = tuple(Ruling("We decided.", "octocat", "OWNER", NOW, comment) for comment in (99, None))
    assert [one["url"] for one in full_row(card(decisions=said), HOME)["decisions"]] == [
        f"{HOME}/issues/7#issuecomment-99",
        f"{HOME}/issues/7",
    ]
    assert [one["url"] for one in full_row(card(decisions=said), "")["decisions"]] == ["", ""]


@pytest.mark.parametrize(
    ("later", "home", "shown"),
    [
        ("", HOME, ""),
        ("#51", HOME, f"{HOME}/issues/51"),
        ("#issuecomment-99", HOME, f"{HOME}/issues/7#issuecomment-99"),
        ("#issuecomment-99", "", "#issuecomment-99"),
        ("#51", "", "#51"),
        ("ABC-7", HOME, "ABC-7"),
        ('#issuecomment-99">', HOME, '#issuecomment-99">'),
    ],
)
def test_a_superseded_decision_leads_to_what_holds_instead(later: str, home: str, shown: str) -> None:
    one = card(decisions=(Ruling("We decided.", "octocat", "OWNER", NOW, 98, later),))
    for shape in (short_row, full_row):
        assert [each["superseded_by"] for each in shape(one, home)["decisions"]] == [shown]


def test_a_terminal_quotes_no_superseded_decision() -> None:
    old = Ruling("We chose A.", "octocat", "OWNER", NOW, 98, "#51")
    new = Ruling("We chose B.", "octocat", "OWNER", NOW, 99)
    assert gist(card(decisions=(new, old))) == "We chose B."
    assert gist(card(decisions=(old,), ending=Ending(quote="Closing."))) == "Closing."


@pytest.mark.parametrize(
    ("key", "kind", "url"),
    [
        (7, Kind.ISSUE, f"{HOME}/issues/7"),
        (7, Kind.PULL, f"{HOME}/pull/7"),
        ("docs/a.md", Kind.PAGE, ""),
        ("5b1c", Kind.SESSION, ""),
    ],
)
def test_only_what_has_a_number_has_an_address(key: int | str, kind: str, url: str) -> None:
    assert short_row(card(id=key, kind=kind), HOME)["url"] == url


def test_what_is_not_known_is_empty_and_never_missing() -> None:
    bare = short_row(card(), "")
    assert bare["closed_at"] == bare["state_reason"] == bare["summary"] == bare["url"] == ""
    assert (bare["labels"], bare["decisions"], bare["files"]) == ([], [], [])
    assert bare["outcome"] == {
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


TEXT = st.text(max_size=5_000)


@given(TEXT, st.lists(TEXT, max_size=50), st.none() | st.integers(1, 2**53))
def test_whatever_a_stranger_wrote_a_row_keeps_its_shape_and_its_size(
    text: str, texts: list[str], comment: int | None
) -> None:
    said = tuple(Ruling(each, text, text, None, comment) for each in texts)
    strange = card(
        title=text, author=text[:100], summary=text, labels=tuple(texts), files=tuple(texts), decisions=said,
        ending=Ending("fixed", text, text[:100], text[:100], text[:100], "NONE", NOW),
    )  # fmt: skip
    found = full_row(strange, HOME, score=1.0, part=1.0, why=match_reasons(("zebra",), text))
    validator("search", is_closed=True).validate([found])
    assert len(found["title"]) <= 300
    assert len(found["summary"]) <= 1_000
    assert max(len(found["labels"]), len(found["files"]), len(found["decisions"])) <= 20


def test_a_message_of_a_session_is_a_row_too() -> None:
    found = passage_row(SessionPassage("5b1c", "user", "zebra", None, 1.239, "a.jsonl"))
    assert list(found) == ["score", "type", "content", "timestamp", "session_id", "path"]
    assert (found["score"], found["timestamp"]) == (1.24, "")


def test_what_a_thread_holds_is_told_as_it_was_typed() -> None:
    assert match_reasons(("login", "loop"), "Loops of LOGIN") == ["holds LOGIN, Loops"]
    assert match_reasons(("login",), "zebra") == []
