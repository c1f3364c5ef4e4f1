"""The report holds every figure and every thread, loads nothing, and treats hostile input as text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.evaluation.metrics import calibration_bins, precision_coverage, summary
from bot.evaluation.plots import grade_bar, plot_calibration, plot_precision, plot_ranks, plot_times
from bot.evaluation.report import GRADES, MENTIONS_ONLY, PRECISION_NOTE, render_report
from bot.evaluation.results import Backtest, Grade, PassedOver, Relations
from bot.ranking.weights import shipped
from tests.evaluation.samples import backtest, generated, of_every_grade, replayed, shown
from tests.examples import examples
from tests.threats.published_places import answered

HOSTILE = [
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</pre></details></article><h1>not the page's heading</h1>",
    "<img src=https://evil.example/x.png onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' style='background:url(https://evil.example)",
    "{{ 7 * 7 }}{% for x in range(9) %}{{ x }}{% endfor %}{# gone #}",
    "<!-- ]]> --><![CDATA[",
    "&lt;b&gt; &amp;amp; &#0;",
    "\x00\x1b[31m\x7f",
    "\ud800 and \udfff",
    "\u202eright to left\u2066",
    "[" * 65_536,
    "",
]
VOID = {"meta", "input", "br", "line", "circle", "rect", "polyline"}
BACKTESTS = {
    "empty": backtest(wanted=300),
    "one thread": backtest(replayed(1, shown(11, 0.9, True), rank=1)),
    "one silent thread": backtest(replayed(1)),
    "each grade": of_every_grade(),
    "sixty threads": generated(60),
}


class Page(HTMLParser):
    """A strictly parsed page: every element is closed where it should be, and no attribute occurs twice."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def elements(html: str) -> list[str]:
    """The elements of a page without the shields of dollar signs, see `bot.comment.defang`."""
    return [tag for tag, attributes in Page(html).tags if tag != "span" or attributes]


def hostile(text: str) -> Backtest:
    """A replay with this text wherever strangers can write."""
    hit = shown(11, 0.9, True, title=text, why=(text, text))
    passed_over = PassedOver(12, text, False, None, text)
    markdown = answered(title=text)
    thread = replace(replayed(1, hit, title=text, markdown=markdown, passed_over=passed_over), id=text)
    return backtest(thread, repo=f"octocat/<{text}>", evidence={text: {text: [text]}})


@pytest.mark.parametrize("sample", BACKTESTS.values(), ids=BACKTESTS)
def test_the_page_is_well_formed_the_same_each_time_and_loads_nothing(sample: Backtest) -> None:
    html = render_report(sample)
    page = Page(html)
    assert html == render_report(sample)
    assert [page.tags[0][0], len(page.named("h1"))] == ["html", 1]
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert sorted(set(ids)) == sorted(ids)
    links = [attributes for attributes in page.named("a") if attributes["href"] != "#comments"]
    assert {attributes["rel"] for attributes in links} <= {"noopener noreferrer nofollow"}
    assert not [
        link for link in links if not str(link["href"]).startswith("https://github.com/octocat/linkbarn/issues/")
    ]
    without_links = re.sub(r'<a href="[^"]*"', "<a", html)
    assert re.findall(r"(?i)https?:|//\w|url\(|@import|@font-face|\bfetch\b|XMLHttp|\beval\b", without_links) == []
    assert {tag for tag, attributes in page.tags if "href" in attributes} == {"a"}
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "use"} & {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name == "src" or name.startswith("on")]


def test_only_our_own_style_and_script_are_allowed() -> None:
    page = Page(render_report(generated(3)))
    policy = next(meta["content"] for meta in page.named("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    for tag in ("style", "script"):
        (text,) = page.texts[tag]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert rules == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}
    assert not [tag for tag, attributes in page.tags if "style" in attributes]


@pytest.mark.slow
def test_text_by_strangers_stays_text() -> None:
    expected = elements(render_report(hostile("harmless")))
    for text in HOSTILE:
        html = render_report(hostile(text))
        html.encode("utf-8")
        assert elements(html) == expected, text[:24]
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", html)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=80))
def test_no_text_changes_the_elements_of_the_page(text: str) -> None:
    expected = elements(render_report(hostile("harmless")))
    assert elements(render_report(hostile(text))) == expected


def test_the_comment_is_shown_as_on_github() -> None:
    markdown = "<!-- precedent:v1 -->\n\n**Seen before** <now>\n\n- 3 & *more*\n  `x < y`\n\n<sub>A bot.</sub>\n"
    html = render_report(backtest(replayed(1, shown(11, 0.9), markdown=markdown)))
    comment = html.partition('class="comment"')[2].partition("data-find>")[2].partition("</div>")[0]
    assert "".join(comment.splitlines()) == (
        "<p><strong>Seen before</strong> &lt;now&gt;</p>"
        "<ul><li>3 &amp; <em>more</em><br><code>x &lt; y</code></li></ul>"
        "<p><sub>A bot.</sub></p>"
    )


def test_issues_and_hits_are_links_if_the_address_is_known() -> None:
    thread = replayed(1, shown(11, 0.9, True), shown(12, 0.5), relations=Relations(frozenset({11}), frozenset({9})))
    on_server = backtest(thread, repo="octo/cat", server="https://git.example.org")
    links = [link["href"] for link in Page(render_report(on_server)).named("a")][1:]
    assert links == [f"https://git.example.org/octo/cat/issues/{key}" for key in (1, 11, 9, 11, 12)]
    for unknown in (replace(on_server, repo=""), replace(on_server, repo="octo/<cat>")):
        assert len(Page(render_report(unknown)).named("a")) == 1


def test_the_related_thread_that_no_comment_lists_is_there_and_says_why() -> None:
    passed_over = PassedOver(9, "Worker stops", True, 0.4, "left out: no reason")
    thread = replayed(1, rank=1, relations=Relations(frozenset({9})), passed_over=passed_over)
    for one, score in ((passed_over, "0.40"), (replace(passed_over, similarity=None), "–")):
        (found,) = Page(render_report(backtest(replace(thread, passed_over=one)))).texts["ul"]
        assert " ".join(found.split()) == f"{score} Worker stops #9 · open then left out: no reason ✓ linked later"


def test_a_hit_far_below_the_threshold_is_left_out_unless_people_linked_it() -> None:
    hits = (shown(11, 0.33), shown(12, 0.32), shown(13, 0.1, True))
    html = render_report(backtest(replayed(1, *hits)))
    assert [f"#{key}" in html for key in (11, 12, 13)] == [True, False, True]
    assert "2 not shown" in html
    assert "not shown" not in render_report(backtest(replayed(1, shown(12, 0.32))))


def test_what_was_learned_from_other_archives_is_not_among_the_figures() -> None:
    evidence = {**shipped().provenance, "cut": "212 of these issues"}
    html = render_report(backtest(replayed(1), evidence=evidence))
    assert "evidence.cut" in html
    assert "evidence.order" not in html
    assert not [value for value in shipped().provenance.values() if str(value) in html]


def test_all_figures_of_the_summary_are_present() -> None:
    sample = generated(60)
    page = Page(render_report(sample))
    cells = set(page.texts["th"])
    for name, value in summary(sample).items():
        names = [f"{name}.{inner}" for inner in value] if isinstance(value, dict) else [name]
        assert set(names) <= cells
    for value in ("evidence.calibration", "this repository, 212 labels", "[0."):
        assert value in "".join(page.texts["table"])


def test_the_opening_sentences_count_what_was_replayed() -> None:
    (lead,) = (text for text in Page(render_report(of_every_grade())).texts["p"] if text.startswith("It would have"))
    assert lead.replace("\u00a0", " ") == (
        "It would have commented on 3 of the 5 newest issues (60.0 %). "
        "2 of the 3 with similar issues show a thread that people later linked to the issue themselves. "
        "People link few of the related issues, so this is a lower bound. "
        "Of the 3 issues that people linked to an older one, the search put the right thread first for 1, and "
        "among the first ten for 3. That is too little to tell how good it is in this repository. "
    )


def test_a_share_of_few_links_or_comments_has_no_tile() -> None:
    """And no tile is empty."""
    few, enough = Page(render_report(of_every_grade())), Page(render_report(generated(300)))
    assert few.texts["dt"][:3] == ["Comments", "Similar issues shown", "Time per issue"]
    assert enough.texts["dt"][:9] == [
        *("Comments", "Similar issues shown", "Precision", "Right thread first", "Among the first ten", "MRR"),
        *("AUC of confidence", "Calibration error", "Time per issue"),
    ]
    assert not [text for page in (few, enough) for text in page.texts["dd"] if text in ("", "–")]
    assert "too little to tell" not in "".join(enough.texts["p"])


def test_a_comment_on_mentioned_issues_counts_and_is_called_that() -> None:
    page = Page(
        render_report(backtest(replayed(1, mentions=2, markdown="#9"), replayed(2, shown(11, 0.9)), replayed(3)))
    )
    assert (
        "commented on 2 of the 3 newest issues (66.7\u00a0%): on 1 with similar issues, on 1 only about issues"
        in (page.texts["p"][0])
    )
    assert page.texts["dd"][0] == "66.7\u00a0%"
    badges = [text for text in page.texts["span"] if text in {MENTIONS_ONLY, *(name for name, _ in GRADES.values())}]
    kinds = [attributes["data-kinds"] for attributes in page.named("li") if "data-kinds" in attributes]
    assert list(zip(badges, kinds, strict=True)) == [
        ("Quiet", "quiet"),
        ("Shown, not linked by anyone", "noise comment"),
        (MENTIONS_ONLY, "quiet comment"),
    ]


def test_the_report_states_no_figures_of_other_repositories() -> None:
    texts = [PRECISION_NOTE, *(about for _, about in GRADES.values())]
    assert not [text for text in texts if re.search(r"\d", text)]


def test_small_replays_read_well() -> None:
    cases = [
        (backtest(), "There is no issue to replay yet."),
        (backtest(wanted=300), "Time ran out before the first of 300 issues was replayed."),
        (backtest(replayed(1)), "On the newest issue, it would have said nothing. That is too little"),
        (
            backtest(replayed(1, shown(11, 0.9))),
            "linked a thread that it showed to the issue later. People link few",
        ),
        (
            backtest(replayed(1, shown(11, 0.9)), replayed(2, shown(12, 0.9))),
            "None of them shows a thread that",
        ),
        (
            backtest(replayed(1, mentions=2, markdown="#9"), replayed(2)),
            "on 0 with similar issues, on 1 only about issues that they mention.",
        ),
        (backtest(replayed(1), replayed(2), wanted=300), "Time ran out after 2 of 300 issues."),
        (
            backtest(replayed(1, rank=None, relations=Relations(frozenset({9})))),
            "#9</bdi> (duplicate) · not found by",
        ),
    ]
    assert [expected for sample, expected in cases if expected not in render_report(sample)] == []


def test_every_page_says_that_precision_is_a_lower_bound_and_never_calls_a_hit_wrong() -> None:
    html = render_report(generated(60))
    assert PRECISION_NOTE in html
    shown = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL).replace(PRECISION_NOTE, "")
    assert re.findall(r"(?i)\bwrong\b|false positive|\bbad\b", shown) == []


@pytest.mark.slow
def test_each_thread_has_an_entry_with_its_grade_newest_first() -> None:
    sample = generated(60)
    page = Page(render_report(sample))
    grades = [str(attributes["data-kinds"]).split()[0] for attributes in page.named("li") if "data-kinds" in attributes]
    assert grades == [thread.grade.value for thread in reversed(sample.replayed)]
    badges = [text for text in page.texts["span"] if text in {name for name, _ in GRADES.values()}]
    assert badges == [GRADES[thread.grade][0] for thread in reversed(sample.replayed)]
    comments = [attributes for attributes in page.named("div") if attributes.get("class") == "comment"]
    assert len(comments) == sum(1 for thread in sample.replayed if thread.markdown)


def test_an_entry_says_what_was_shown_why_and_whether_it_was_linked() -> None:
    hit = shown(11, 0.734, True, title="Import stops", confidence=0.5, is_open=True, why=("same file: x.py", "title"))
    page = Page(render_report(backtest(replayed(1, hit, shown(12, 0.4, title="Not so similar")))))
    above, below = page.texts["ul"]
    assert " ".join(above.split()) == ("0.73 Import stops #11 · open then same file: x.py · title ✓ linked later")
    assert "Not so similar" in below
    assert "not linked by anyone" in below


def test_without_scripts_everything_but_the_controls_is_visible() -> None:
    page = Page(render_report(generated(30)))
    hidden = [attributes["id"] for _, attributes in page.tags if "hidden" in attributes]
    assert hidden == ["controls", "nothing"]


def test_the_plots_say_in_words_and_numbers_what_they_show() -> None:
    page = Page(render_report(generated(60)))
    plots = [attributes for attributes in page.named("svg") if attributes.get("role") == "img"]
    assert len(plots) == len(page.texts["figure"]) == 4
    for attributes, text in zip(plots, page.texts["figure"], strict=True):
        assert str(attributes["aria-label"]) in text
        assert "The numbers" in text
    decorative = [attributes for attributes in page.named("svg") if attributes.get("role") != "img"]
    assert all(attributes["aria-hidden"] == "true" for attributes in decorative)


def test_the_current_threshold_is_marked_and_in_the_table() -> None:
    cuts = precision_coverage(of_every_grade().replayed)
    plot = plot_precision(cuts, 0.65)
    assert ("0.65 (present)", "60.0\u00a0%", "66.7\u00a0%") in plot.rows
    assert plot.svg.count('class="mark"') == 1
    assert "threshold 0.65" in plot.svg
    assert "mark" not in plot_precision(cuts, 0.95).svg


def test_the_rank_plot_has_a_bar_for_each_range() -> None:
    plot = plot_ranks([1, 1, 2, 3, 5, 6, 10, 11, 20, 21, 999, None])
    counts = [("1", "2"), ("2–3", "2"), ("4–5", "1"), ("6–10", "2"), ("11–20", "2"), ("> 20", "2"), ("not found", "1")]
    assert [row[:2] for row in plot.rows] == counts
    assert plot.svg.count("<rect") == 7


def test_the_calibration_plot_has_a_point_for_each_bin_and_counts_every_hit() -> None:
    confidences = [index / 100 for index in range(100)]
    plot = plot_calibration(calibration_bins(confidences, [value > 0.5 for value in confidences]), confidences)
    assert plot.svg.count("<circle") == len(plot.rows) == 10
    assert [int(count) for count in re.findall(r'small"[^>]*>(\d+)<', plot.svg)] == [10] * 10


@settings(max_examples=examples(100))
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_every_time_is_in_a_bar_and_inside_the_drawing(times: list[float]) -> None:
    plot = plot_times(times)
    assert sum(int(row[1]) for row in plot.rows) == len(times)
    assert all(0 <= float(x) <= 360 for x in re.findall(r'\bx[12]?="(-?[\d.]+)"', plot.svg))


def test_a_time_far_beyond_the_others_does_not_squeeze_them() -> None:
    plot = plot_times([10.0] * 50 + [12.0] * 49 + [9_000.0])
    assert plot.rows[-1][0].endswith("and more")
    assert "The last bar holds all longer times." in plot.about


def test_an_empty_plot_is_replaced_by_words() -> None:
    plots = [plot_precision([], 0.65), plot_calibration([], []), plot_ranks([]), plot_times([])]
    assert [plot.svg for plot in plots] == [""] * 4
    assert all(plot.words for plot in plots)
    assert grade_bar({}) == grade_bar(dict.fromkeys(Grade, 0)) == ""
