"""The digest page: well formed, self-contained, everything escaped, and complete."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from bot.domain.card import Card, Passage
from bot.domain.kinds import Kind
from bot.questions.digest import (
    DECIDED,
    MANY_REPORTS,
    POSSIBLY_BACK,
    DigestItem,
    DigestSection,
    EvidenceIssue,
    MaintainerReport,
)
from bot.questions.digest_views import plot_weeks, report_page, weeks_in_words
from tests.evaluation.test_report import HOSTILE, Page
from tests.questions.digest_samples import DECIDED as DECISION
from tests.questions.digest_samples import HOME, NOW, PAGE, SINCE, THREADS, create_memory, report


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> MaintainerReport:
    """A report with something in each section, more decisions than are shown, and a note."""
    questions = [replace(DECISION, id=key, title=f"Question {key}") for key in range(300, 325)]
    threads = [thread for thread in (*THREADS, *questions) if thread is not PAGE]
    return report(create_memory(tmp_path_factory.mktemp("digest") / "store", threads))


EMPTY = MaintainerReport(
    "octo-org/linkbarn",
    SINCE,
    NOW,
    0,
    tuple(DigestSection(name, (), 0) for name in (POSSIBLY_BACK, MANY_REPORTS, DECIDED)),
)


def hostile(text: str) -> MaintainerReport:
    """A report with this text wherever strangers can write."""
    card = Card(text, Kind.ISSUE, text, text, "open", SINCE, NOW)
    quote = Passage(text, text, "NONE", NOW, text)
    item = DigestItem(card, NOW, (text, text), (EvidenceIssue(card, (text,)),), 3, quote, (1, 2))
    sections = tuple(DigestSection(name, (item,), 2) for name in (POSSIBLY_BACK, MANY_REPORTS, DECIDED))
    return MaintainerReport(f"octo-org/{text}", SINCE, NOW, 4, sections, (text,))


@pytest.mark.slow
def test_the_page_is_well_formed_and_the_same_each_time(sample: MaintainerReport) -> None:
    for digest in (sample, EMPTY):
        html = report_page(digest, HOME)
        page = Page(html)
        assert html == report_page(digest, HOME)
        assert [page.tags[0][0], len(page.named("h1"))] == ["html", 1]
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert sorted(set(ids)) == sorted(ids)


def test_nothing_is_loaded_and_there_is_no_script(sample: MaintainerReport) -> None:
    html = report_page(sample, HOME)
    page = Page(html)
    assert re.findall(r"(?i)url\(|@import|@font-face|\bfetch\b|XMLHttp|\beval\b", html) == []
    loading = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "use"}
    assert not loading & {tag for tag, _ in page.tags}
    assert not [
        name for _, attributes in page.tags for name in attributes if name in ("src", "style") or name[:2] == "on"
    ]
    targets = {str(attributes["href"]) for attributes in page.named("a")}
    assert all(target.startswith((f"{HOME}/issues/", f"{HOME}/pull/", "#")) for target in targets)
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert {target[1:] for target in targets if target[0] == "#"} <= ids


def test_only_our_own_style_is_allowed(sample: MaintainerReport) -> None:
    page = Page(report_page(sample, HOME))
    policy = next(meta["content"] for meta in page.named("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    (text,) = page.texts["style"]
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


@pytest.mark.slow
def test_hostile_texts_stay_text() -> None:
    tame = Page(report_page(hostile("tame"), "")).tags
    for text in filter(None, HOSTILE):
        wild = report_page(hostile(text), "")
        tags = Page(wild).tags
        assert [tag for tag, _ in tags] == [tag for tag, _ in tame], text[:24]
        assert {name for _, names in tags for name in names} == {name for _, names in tame for name in names}
        wild.encode()
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", wild)


def test_the_counts_link_to_their_sections(sample: MaintainerReport) -> None:
    page = Page(report_page(sample, HOME))
    values = [text.strip() for text in page.texts["dd"]]
    assert values == ["1", "2", "1", "26", "0", "1"]
    assert {"#possibly_back", "#decided_since"} <= {attributes["href"] for attributes in page.named("a")}
    assert "#asked_not_documented" not in {attributes["href"] for attributes in page.named("a")}


def test_the_page_says_how_many_items_are_left_out_and_which_sections_are_empty(sample: MaintainerReport) -> None:
    text = " ".join(" ".join(Page(report_page(sample, HOME)).texts["main"]).split())
    assert "and 16 others" in text
    assert "Nothing to look at These lists are empty: Asked often and not documented. No page is remembered" in text
    assert "and 3 more" in text


def test_a_report_without_empty_sections_ends_with_its_notes(sample: MaintainerReport) -> None:
    full = sample._replace(sections=tuple(section for section in sample.sections if section.total))
    page = Page(report_page(full, HOME))
    text = " ".join(" ".join(page.texts["main"]).split())
    assert "These lists are empty" not in text
    assert " . " not in text
    assert text.endswith("No page is remembered, so answered questions were not looked up.")
    assert "No page" not in " ".join(Page(report_page(full._replace(notes=()), HOME)).texts["main"])


def test_evidence_and_quotations_are_linked(sample: MaintainerReport) -> None:
    html = report_page(sample, HOME)
    assert f'<a href="{HOME}/issues/48">#48</a>' in html
    assert (
        f'<a href="{HOME}/issues/75#issuecomment-{DECISION.comments[0].id}">octocat (maintainer), 2026-11-16</a>'
        in html
    )
    assert "<a href" not in report_page(sample, "").replace('<a href="#', "")


def test_an_empty_report_says_so() -> None:
    text = " ".join(Page(report_page(EMPTY, HOME)).texts["body"][0].split())
    assert "26 October 2026 to 25 November 2026: 0 things to look at." in text
    assert "Look at these first" not in text


def test_weeks_are_drawn_in_proportion_and_described_in_words() -> None:
    svg = plot_weeks((0, 1, 2), NOW)
    assert re.findall(r'<rect [^>]*height="([\d.]+)"', svg) == ["18.0", "36.0"]
    assert weeks_in_words((0, 2, 1), NOW) == ("3 reports in the last 3 weeks, most in the week to 18 November 2026 (2)")
    assert 'aria-label="3 reports in the last 3 weeks' in svg
