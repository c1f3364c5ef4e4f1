"""The seal: the same facts have the same fingerprint, and it breaks when a person edits the text."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from bot.comment.marker import fingerprint, read_seal, seal
from bot.domain.answer import CondensedTurn, Context, Match, Mention, OrganisationMatch, PageHit
from bot.domain.changes import FixInfo
from bot.domain.post import OrganisationKey
from bot.domain.thread import Outcome, OutcomeKind
from tests.reading.linear_time import assert_linear_time

AT = datetime(2026, 1, 5, tzinfo=UTC)
CONVERSATION = (CondensedTurn("octocat", "NONE", AT, "long"),)
MENTION = Mention(1, "Sessions", "closed", summary="In the database.", conversation=CONVERSATION, created_at=AT)
MATCH = Match(2, "Login loop", 0.8, "closed", AT, outcome=Outcome(OutcomeKind.FIXED, fix="#3"), why=("same error",))
FIX = FixInfo(2, "#3", AT)
PAGE = PageHit("Install", "https://docs.example", "Run it.", 0.7)
CONTEXT = Context((MENTION,), (), (MATCH,), (replace(MATCH, id=5, state="open"),), (PAGE,), searched=100)
CONTENT = fingerprint(CONTEXT)
OTHER = OrganisationMatch(OrganisationKey(7, 5), "octo-org/sdk", MATCH)


def test_scores_counts_and_conversations_do_not_change_the_fingerprint() -> None:
    cases = [
        replace(CONTEXT, searched=2_000),
        replace(CONTEXT, seen_before=(replace(MATCH, similarity=0.7),)),
        replace(CONTEXT, seen_before=(replace(MATCH, turn_count=9, conversation=CONVERSATION * 2),)),
        replace(CONTEXT, mentioned=(replace(MENTION, conversation=CONVERSATION * 2),)),
        replace(CONTEXT, pages=(replace(PAGE, similarity=0.9),)),
    ]
    assert [other for other in cases if fingerprint(other) != CONTENT] == []


def test_every_fact_changes_the_fingerprint() -> None:
    cases = [
        Context(),
        replace(CONTEXT, mentioned=()),
        replace(CONTEXT, mentioned=(replace(MENTION, title="Cookies"),)),
        replace(CONTEXT, mentioned=(replace(MENTION, state="open"),)),
        replace(CONTEXT, also_mentioned=(Mention(9, "Another"),)),
        replace(CONTEXT, seen_before=(replace(MATCH, outcome=Outcome()),)),
        replace(CONTEXT, seen_before=CONTEXT.open_now, open_now=CONTEXT.seen_before),
        replace(CONTEXT, seen_before=(replace(MATCH, why=("same file",)),)),
        replace(CONTEXT, pages=(replace(PAGE, excerpt="Stop it."),)),
        replace(CONTEXT, mentioned=(replace(MENTION, merged_at=AT),)),
        replace(CONTEXT, mentioned=(replace(MENTION, draft=True),)),
        replace(CONTEXT, mentioned=(replace(MENTION, chain=(7,)),)),
        replace(CONTEXT, seen_before=(replace(MATCH, asked_on="2.4"),)),
        replace(CONTEXT, seen_before=(replace(MATCH, asked_on="2.4", may_be_back=True),)),
        replace(CONTEXT, seen_before=(replace(MATCH, fix=FIX),)),
        replace(CONTEXT, mentioned=(replace(MENTION, fix=replace(FIX, release="v2")),)),
        replace(CONTEXT, organisation=(OTHER,)),
    ]
    assert [other for other in cases if fingerprint(other) == CONTENT] == []


def test_facts_of_a_fix_count_but_the_time_of_the_lookup_does_not() -> None:
    def fingerprint_with(fix: FixInfo) -> str:
        return fingerprint(replace(CONTEXT, seen_before=(replace(MATCH, fix=fix),)))

    assert fingerprint_with(FIX) == fingerprint_with(replace(FIX, looked_at=datetime(2027, 1, 1, tzinfo=UTC)))
    assert fingerprint_with(replace(FIX, commit="abc")) == fingerprint_with(replace(FIX, commit="def"))
    changed = [
        replace(FIX, release="v2"),
        replace(FIX, files=("a",)),
        replace(FIX, commit="abc"),
        replace(FIX, ref="#4"),
    ]
    assert len({fingerprint_with(fix) for fix in [FIX, *changed]}) == 5


def test_facts_of_another_repositorys_issue_count_too() -> None:
    changed = [
        OTHER,
        replace(OTHER, key=OrganisationKey(8, 5)),
        replace(OTHER, repository="octo-org/client"),
        replace(OTHER, match=replace(MATCH, title="Cookies")),
        replace(OTHER, match=replace(MATCH, outcome=Outcome())),
    ]
    fingerprints = {fingerprint(replace(CONTEXT, organisation=(other,))) for other in changed}
    assert len(fingerprints) == len(changed)
    similar = replace(OTHER, match=replace(MATCH, similarity=0.7))
    assert fingerprint(replace(CONTEXT, organisation=(similar,))) in fingerprints


def test_a_fingerprint_is_sixteen_hexadecimal_digits() -> None:
    assert len(CONTENT) == 16
    int(CONTENT, 16)


@given(st.text())
def test_a_sealed_text_is_untouched(text: str) -> None:
    parsed = read_seal(seal(text, CONTENT))
    assert parsed is not None
    assert (parsed.content, parsed.untouched) == (CONTENT, True)


@given(st.text())
def test_sealing_is_stable_and_survives_the_line_ends_of_a_web_form(text: str) -> None:
    sealed = seal(text, CONTENT)
    assert seal(text, CONTENT) == sealed
    parsed = read_seal(sealed.replace("\r\n", "\n").replace("\n", "\r\n") + "\r\n")
    assert parsed is not None
    assert parsed.untouched


@given(st.text(min_size=1), st.integers(min_value=0), st.text(min_size=1))
def test_any_other_text_before_the_seal_breaks_it(text: str, place: int, inserted: str) -> None:
    sealed = seal(text, CONTENT)
    end = sealed.rindex("\n<!-- precedent-seal")
    at = place % (end + 1)
    edited = sealed[:at] + inserted + sealed[at:]
    parsed = read_seal(edited)
    same = edited[: edited.rindex("\n<!-- precedent-seal")].replace("\r\n", "\n").strip()
    if same != text.replace("\r\n", "\n").strip():
        assert parsed is None or not parsed.untouched


def test_a_text_without_a_seal_at_the_end_has_none() -> None:
    texts = [
        "", "Plain words", "<!-- precedent-seal 0123456789abcdef 0123456789abcdef -->", "\n<!-- precedent-seal x y -->",
        seal("a", CONTENT) + "more", seal("a", CONTENT).replace("<!--", "< !--"), seal("a", CONTENT)[:-10],
    ]  # fmt: skip
    assert [text for text in texts if read_seal(text) is not None] == []


def test_a_seal_of_another_text_is_broken() -> None:
    line = seal("one", CONTENT).splitlines()[-1]
    parsed = read_seal(f"two\n{line}")
    assert parsed is not None
    assert not parsed.untouched


def test_many_seals_cost_linear_time_and_the_last_one_counts() -> None:
    line = "\n<!-- precedent-seal 0123456789abcdef 0123456789abcdef -->"
    parsed = read_seal(seal(line * 1_000, CONTENT))
    assert parsed is not None
    assert (parsed.content, parsed.untouched) == (CONTENT, True)
    assert_linear_time(lambda text: read_seal(seal(text, CONTENT)), line)
