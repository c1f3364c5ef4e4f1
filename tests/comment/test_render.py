"""Whole comments as readers see them, compared with snapshots. ``UPDATE_SNAPSHOTS=1`` rewrites them."""

import os
import re
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.comment.links import CommentLinks
from bot.comment.marker import marker
from bot.comment.render import MAX_BYTES, MAX_CHARS, Renderer, smaller_contexts, withdrawal_text
from bot.comment.template_view import MAX_FOLDED_CHARS
from bot.domain.answer import CondensedTurn, Context, Match, Mention
from bot.domain.post import COMMENT, reply_slot
from bot.domain.thread import Decision, Kind, Outcome, OutcomeKind
from bot.errors import UserError, WorldError
from tests.comment.contexts import (
    CASES,
    GITHUB,
    HOSTILE,
    LONG,
    MENTION,
    NOW,
    OPEN,
    ORGANISATION,
    PAGE,
    closed_match,
    day,
    organisation_match,
    quoted_outcome,
    turn,
)
from tests.examples import examples
from tests.marker import find_marker

SNAPSHOTS = Path(__file__).parent / "snapshots"
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def comment(context: Context, links: CommentLinks = GITHUB, searched: int = 1204) -> str:
    rendered = Renderer(links=links).render(context, thread_id=1000, now=NOW, searched=searched)
    assert rendered.problem is None
    return rendered.text


def test_an_issue_is_called_seen_before_only_if_one_is_nearly_the_same() -> None:
    near = closed_match(Outcome(), why=("same title",), similarity=0.7)
    far = replace(near, id=8, why=("words in common: a, b",))
    for hits, heading in (((near,), "Seen before"), ((near, far), "Seen before"), ((far,), "Perhaps related")):
        text = comment(Context(seen_before=hits))
        assert [line for line in text.split("\n") if line.startswith("**")] == [f"**{heading}**"]


@cache
def comment_of(name: str) -> str:
    return comment(*CASES[name])


def prose(text: str) -> str:
    """The text that GitHub looks for references and mentions: outside code and links."""
    shown: list[str] = []
    for block in MARKDOWN.parse(text):
        inside = 0
        for token in block.children or ():
            inside += {"link_open": 1, "link_close": -1}.get(token.type, 0)
            if token.type == "text" and not inside:
                shown.append(token.content)
            elif token.type in ("softbreak", "hardbreak"):
                shown.append("\n")
        shown.append("\n")
    return "".join(shown)


def test_the_comment_is_the_one_in_the_snapshot() -> None:
    for name in CASES:
        text = comment_of(name)
        snapshot = SNAPSHOTS / f"{name}.md"
        if os.environ.get("UPDATE_SNAPSHOTS"):
            snapshot.write_text(text, encoding="utf-8")
        assert text == snapshot.read_text(encoding="utf-8"), name


def test_our_words_have_no_verdict_no_score_and_no_shouting() -> None:
    for name in CASES:
        ours = re.sub(
            r"“[^”]*”|^ *>.*$|\[[^\]]*\]\([^)]*\)", "", comment_of(name).partition("\n")[2], flags=re.MULTILINE
        )
        assert "0.8" not in ours, name
        assert "80 %" not in ours, name
        assert name == "hostile" or "!" not in ours, name


def test_a_comment_pings_nobody_and_refers_to_nothing() -> None:
    for name in CASES:
        shown = prose(comment_of(name))
        assert not re.search(r"(?<![A-Za-z0-9_])@[A-Za-z0-9]", shown), name
        assert not re.search(r"(?i)(?<![A-Za-z0-9_])(?:#|gh-)[0-9]", shown), name
        assert not re.search(r"(?i)github\.com/[^/\s]+/[^/\s]+/(?:issues|pull)/[0-9]", shown), name


def test_no_line_makes_github_act() -> None:
    for name in CASES:
        for line in prose(comment_of(name)).splitlines():
            assert not re.match(r"(?i)[\s“\"-]*(duplicate of|(close|fix|resolve)\w*:?) *(#[0-9]|https?:/)", line), name


def test_a_decision_that_the_ending_states_is_shown_once() -> None:
    ending = Outcome(OutcomeKind.ANSWERED, quote="We agreed. We go with PostgreSQL; Redis lost sessions on restart.")
    text = comment(Context(mentioned=(replace(MENTION, outcome=ending),)))
    assert text.count("We go with PostgreSQL; Redis lost sessions on restart.") == 1
    assert "Let us try Redis first." in text


def test_code_among_reasons_is_set_off_from_words_only() -> None:
    text = comment(Context(open_now=(replace(OPEN, why=("words in common: `group_id`, usage, `a::b`, `c_d`",)),)))
    assert "*Why:* words in common: `group_id`, usage, `a::b`, `c_d`\n" in text


def test_a_comment_never_shows_its_own_thread() -> None:
    context = Context(mentioned=(MENTION,), open_now=(OPEN,))
    text = Renderer(links=GITHUB).render(context, thread_id=OPEN.id, now=NOW, searched=0).text
    assert OPEN.title not in text
    assert MENTION.title in text


def test_the_number_of_threads_is_left_out_when_it_is_not_known() -> None:
    assert "looked through" not in comment(Context(open_now=(OPEN,)), searched=0)
    assert "through 1 issue." in comment(Context(open_now=(OPEN,)), searched=1)


def test_the_footer_names_commands_only_where_there_are_commands() -> None:
    quiet = Renderer(commands=False).render(Context(open_now=(OPEN,)), thread_id=1, now=NOW, searched=9).text
    assert "/precedent" not in quiet
    assert "👎" in quiet


def test_at_most_two_issues_of_other_repositories_are_shown_without_a_wrong_command() -> None:
    text = comment(Context(organisation=ORGANISATION * 2))
    assert text.count("· in `octo-org/") == 2
    assert "/precedent wrong" not in text


def test_titles_of_this_repository_name_no_issue_of_another() -> None:
    duplicate = organisation_match(closed_match(quoted_outcome(OutcomeKind.DUPLICATE, "", duplicate_of=MENTION.id)))
    text = comment(Context(mentioned=(MENTION,), organisation=(duplicate,)))
    assert "closed as a duplicate of [issue 12](https://redirect.github.com/octo-org/sdk/issues/12)" in text


def test_pages_are_cut_first_then_other_repositories_then_our_own_issues() -> None:
    parts = list(smaller_contexts(replace(CASES["all_sections"][0], organisation=ORGANISATION)))
    left = [(bool(part.pages), len(part.organisation), bool(part.open_now)) for part in parts]
    assert list(dict.fromkeys(left))[:5] == [
        (True, 2, True), (False, 2, True), (False, 1, True), (False, 0, True), (False, 0, False),
    ]  # fmt: skip


def test_the_footer_can_be_obeyed_as_it_is() -> None:
    assert f"`/precedent wrong {OPEN.id}` ·" in comment(Context(open_now=(OPEN,)))
    assert f"`/precedent wrong {MENTION.id}` (or {OPEN.id}) ·" in comment(Context((MENTION,), open_now=(OPEN,)))
    assert "/precedent wrong" not in comment(Context(pages=(PAGE,)))


def test_ages_are_counted_up_to_now() -> None:
    cases = [
        (0, "opened today"),
        (1, "1 day old"),
        (13, "13 days old"),
        (14, "2 weeks old"),
        (60, "2 months old"),
        (800, "2 years old"),
    ]
    assert [
        days
        for days, words in cases
        if words not in comment(Context(open_now=(replace(OPEN, created_at=NOW - timedelta(days=days)),)))
    ] == []


def test_a_thread_from_the_future_was_opened_today() -> None:
    assert "opened today" in comment(Context(open_now=(replace(OPEN, created_at=day(7, 1)),)))


def test_the_marker_is_the_first_line_and_is_found_again() -> None:
    text = Renderer(instance="app.one").render(Context(open_now=(OPEN,)), thread_id=1, now=NOW, searched=9).text
    assert text.startswith(marker("app.one") + "\n")
    assert find_marker(text, "app.one")
    assert find_marker("\ufeff" + text.replace("\n", "\r\n"), "app.one")
    assert not find_marker(text, "app")
    assert not find_marker(text)


def test_a_quoted_marker_is_no_marker() -> None:
    assert not find_marker(f"> {marker()}\n\nHa")
    assert not find_marker(f"Ha\n{marker()}")
    assert not find_marker("")


def test_an_instance_name_that_could_leave_the_marker_is_refused() -> None:
    for name in ["", "a -->", "a--b", "a-", "é", "a" * 65, "a\n"]:
        with pytest.raises(UserError, match="instance name"):
            Renderer(instance=name)


def test_a_reply_has_a_marker_of_its_own_and_says_when_there_is_nothing() -> None:
    text = (
        Renderer(links=GITHUB).reply(Context(), asked="what about @octocat?\n#5", reply_to=77, now=NOW, searched=9).text
    )
    assert find_marker(text, reply_to=77)
    assert not find_marker(text)
    assert "Nothing in this repository's memory answers this." in text
    assert "#5" not in prose(text)


def test_a_reply_with_findings_does_not_say_that_there_are_none() -> None:
    context = Context(mentioned=(MENTION,))
    text = Renderer(links=GITHUB).reply(context, asked="which store?", reply_to=77, now=NOW, searched=9).text
    assert "> which store?" in text
    assert "Use PostgreSQL for sessions" in text
    assert "answers this" not in text


def test_a_withdrawn_comment_is_one_line_under_the_marker() -> None:
    for reply_to in (None, 77):
        text = withdrawal_text(marker("one", COMMENT if reply_to is None else reply_slot(reply_to)))
        assert find_marker(text, "one", reply_to)
        assert len(text.splitlines()) == 2


def test_missing_templates_are_a_world_error(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="reinstall Precedent"):
        Renderer(tmp_path)


def test_a_comment_that_is_too_long_loses_whole_conversations_last_ones_first() -> None:
    text = comment_of("long")
    assert len(text) <= MAX_CHARS
    assert 20 < len(re.findall("<details>", text)) == len(re.findall("</details>", text)) < 40
    assert "Similar 40" in text
    assert "**octocat**, 2025-01-01" in text
    assert "**octocat**, 2025-02-20" not in text


def one_turn(text: str) -> tuple[CondensedTurn, ...]:
    return (turn("octocat", day(1, 1), text),)


@pytest.mark.slow
def test_bytes_count_as_well_as_characters() -> None:
    wide = Context(
        seen_before=tuple(
            closed_match(h.outcome, id=h.id, conversation=one_turn("忆" * 9_000)) for h in LONG.seen_before
        )
    )
    text = comment(wide)
    assert len(text.encode()) <= MAX_BYTES
    assert 0 < text.count("Show 1 message") < 20


def test_shrinking_ends_with_nothing_and_never_grows() -> None:
    sizes = [len(repr(part)) for part in smaller_contexts(CASES["all_sections"][0])]
    assert sizes == sorted(sizes, reverse=True)
    assert list(smaller_contexts(CASES["all_sections"][0]))[-1].is_empty


texts = st.text(st.characters(codec=None), max_size=60) | st.sampled_from(
    ["]" * 3_000, "忆" * 20_000, "<" * 9_000, "`\n" * 500]
)


turns = st.builds(turn, texts, st.just(day(1, 2)), texts, st.sampled_from(["NONE", "OWNER"]))
talks = st.lists(turns, max_size=3).map(tuple)
states = st.sampled_from(["open", "closed"])


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    mentions = st.builds(
        Mention,
        st.integers(1, 99),
        title=texts,
        state=states,
        created_at=st.just(day(1, 1)),
        kind=st.sampled_from([Kind.ISSUE, Kind.PULL]),
        summary=texts,
        conversation=talks,
    )
    matches = st.builds(
        Match,
        st.integers(1, 99) | texts,
        title=texts,
        similarity=st.just(0.9),
        state=states,
        created_at=st.just(day(1, 1)),
        why=st.tuples(texts),
        files=st.tuples(texts),
        conversation=talks,
    )
    return Context(
        mentioned=tuple(draw(st.lists(mentions, max_size=3))),
        seen_before=tuple(draw(st.lists(matches, max_size=5))),
        open_now=tuple(draw(st.lists(matches, max_size=2))),
    )


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(contexts())
def test_whatever_people_write_the_comment_fits_and_is_harmless_and_repeatable(context: Context) -> None:
    text = comment(context)
    assert len(text) <= MAX_CHARS
    assert len(text.encode()) <= MAX_BYTES
    assert find_marker(text)
    assert text == comment(context)
    assert len(re.findall(r"(?m)^  <details>", text)) == len(re.findall(r"(?m)^  </details>", text))
    assert not re.search(r"(?<![A-Za-z0-9_])@[A-Za-z0-9]", prose(text))


def test_how_it_went_takes_two_thousand_characters_at_most() -> None:
    for word in ["word ", "@a ", "`", "#1 ", "\n", "忆", "```\nx\n```\n"]:
        talk = tuple(turn("octocat", day(1, n), word * 200_000) for n in (1, 2, 3))
        text = comment(Context(seen_before=(closed_match(LONG.seen_before[0].outcome, conversation=talk),)))
        folded = "".join(re.findall(r"(?s)<summary>Show \d messages?</summary>(.*?)</details>", text))
        assert len(folded.strip()) <= MAX_FOLDED_CHARS == 2_000, word


def test_a_long_conversation_shows_its_opening_and_its_latest_turns() -> None:
    talk = tuple(turn("octocat", day(1, n), f"Turn {n}. " + "word " * 80) for n in range(1, 9))
    text = comment(Context(seen_before=(closed_match(LONG.seen_before[0].outcome, conversation=talk),)))
    assert [int(n) for n in re.findall(r"Turn (\d)\.", text)] == [1, 5, 6, 7, 8]
    assert text.count("  > […]") == 1
    first, second = talk[:2]
    short = comment(Context(seen_before=(closed_match(LONG.seen_before[0].outcome, conversation=(first, second)),)))
    assert "[…]" not in short


def test_decisions_that_are_folded_count_as_part_of_how_it_went() -> None:
    decided = tuple(
        Decision(f"We decided {n}. " + "and so on " * 25, "monalisa", "MEMBER", day(1, n)) for n in range(1, 7)
    )
    talk = tuple(turn("octocat", day(1, n), "word " * 2_000) for n in (1, 2))
    text = comment(Context(mentioned=(Mention(1, "Login", "closed", decisions=decided, conversation=talk),)))
    folded = "".join(re.findall(r"(?s)<summary>Show 2 messages</summary>(.*?)</details>", text))
    assert len(folded.strip()) <= MAX_FOLDED_CHARS
    assert "**octocat**" in folded


def test_a_hostile_thread_cannot_leave_its_quotation() -> None:
    tokens = MARKDOWN.parse(comment(HOSTILE))
    assert not [token.type for token in tokens if token.type in ("heading_open", "table_open")]
    code = [token for token in tokens if token.type == "fence"]
    assert code
    assert all("never closed" in token.content and token.level > 2 for token in code)
    hidden = [token.content for token in tokens if token.type == "html_block" and "precedent:v1" in token.content]
    assert hidden == [marker() + "\n"]
    assert (tokens[-3].type, tokens[-3].level) == ("paragraph_open", 0)
    assert "looked through" in tokens[-2].content
