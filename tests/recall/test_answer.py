"""Everything that memory has to say about a thread, and whether that is worth a comment."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.answer import Context, Match, Mention, PageHit, Silent, Speak
from bot.domain.changes import Changes, Request
from bot.domain.thread import Kind, RepositoryAddress
from bot.recall.answer import NOTHING_RELATED, NOTHING_YET, decide, recall
from bot.recall.mentions import NO_RECORD
from bot.settings.schema import Settings
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, duplicate, thread
from tests.recall.test_similar import BODY, FILLER, TITLE

PLACE = RepositoryAddress("octo-org/hello-world")
SETTINGS = Settings()
KNOWN, UNKNOWN = Mention(3, "Sessions"), Mention(4, missing=NO_RECORD)
MATCH = Match(5, TITLE, 0.8, "closed", at(1))


@pytest.mark.parametrize(
    "context",
    [
        Context(mentioned=(KNOWN,)),
        Context(mentioned=(UNKNOWN, KNOWN)),
        Context(seen_before=(MATCH,)),
        Context(open_now=(MATCH,)),
        Context(pages=(PageHit("Sessions", "https://example.com", "", 0.7),)),
        Context(mentioned=(UNKNOWN,), seen_before=(MATCH,)),
    ],
)
def test_it_speaks_when_there_is_something_to_tell(context: Context) -> None:
    assert decide(context) == Speak(context)


@pytest.mark.parametrize("context", [Context(), Context(searched=9), Context(mentioned=(UNKNOWN, UNKNOWN))])
def test_it_is_silent_when_there_is_nothing_or_a_reference_to_nothing_known(context: Context) -> None:
    assert decide(context) == Silent(NOTHING_RELATED)


def test_of_the_first_issue_it_says_that_there_is_none_before(remember: Remember) -> None:
    first, second, pull = thread(1, TITLE, BODY), thread(3, "Dark mode"), thread(2, TITLE, kind=Kind.PULL)
    page = thread("docs/a.md", "Cookies", "Other words.", kind=Kind.PAGE)
    assert decide(recall(first, remember(page), SETTINGS, PLACE)) == Silent(NOTHING_YET)
    assert decide(recall(second, remember(second, pull), SETTINGS, PLACE)) == Silent(NOTHING_YET)
    assert decide(recall(first, remember(first), SETTINGS, PLACE)) == Silent(NOTHING_YET)
    assert decide(recall(second, remember(first), SETTINGS, PLACE)) == Silent(NOTHING_RELATED)


def test_what_is_mentioned_is_not_shown_as_seen_before(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), closed(2, TITLE, BODY), *FILLER)
    context = recall(thread(500, TITLE, f"{BODY} Like #1?"), memory, SETTINGS, PLACE)
    assert [m.id for m in context.mentioned] == [1]
    assert [m.id for m in context.seen_before] == [2]


def test_the_canonical_issue_of_a_mentioned_duplicate_is_shown_once(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), duplicate(2, of=1, title=TITLE, body=BODY), *FILLER)
    context = recall(thread(500, TITLE, f"{BODY} Like #2?"), memory, SETTINGS, PLACE)
    assert [m.id for m in context.mentioned] == [1]
    assert context.seen_before == context.open_now == ()


def test_it_says_how_many_threads_were_looked_through_unless_it_looks_back(remember: Remember) -> None:
    memory = remember(*FILLER)
    one = thread(500, TITLE, BODY)
    assert recall(one, memory, SETTINGS, PLACE).searched == len(FILLER)
    assert recall(one, memory, SETTINGS, PLACE, one.created_at).searched == 0


def test_similar_threads_are_not_looked_for_when_that_is_switched_off(remember: Remember) -> None:
    off = replace(SETTINGS, troubleshooting=replace(SETTINGS.troubleshooting, enabled=False))
    memory = remember(closed(1, TITLE, BODY), closed(2, TITLE, BODY), *FILLER)
    context = recall(thread(500, TITLE, f"{BODY} Like #1?"), memory, off, PLACE)
    assert [m.id for m in context.mentioned] == [1]
    assert context.seen_before == context.open_now == ()


def test_an_empty_memory_has_nothing_to_say(remember: Remember) -> None:
    assert isinstance(decide(recall(thread(500, TITLE, BODY), remember(), SETTINGS, PLACE)), Silent)


@pytest.mark.parametrize(
    "text", ["", "[" * 65_536, "*" * 65_536, ">" * 65_536, "\x00\ud800" * 1_000, "#1 " * 20_000, "\u202e#1\u200b"]
)
def test_hostile_text_is_answered_like_any_other(remember: Remember, text: str) -> None:
    memory = remember(closed(1, TITLE, BODY), *FILLER)
    answer = decide(recall(thread(500, text[:1000], text), memory, SETTINGS, PLACE))
    assert isinstance(answer, Speak) == ("#1" in text)


def test_what_was_called_wrong_later_counts_for_today_only(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), *FILLER)
    one = thread(500, TITLE, "Like #1?")
    memory.stage(Changes(requests=(Request(500, 7, "wrong", "octocat", one.created_at + timedelta(days=1), (1,)),)))
    assert recall(one, memory, SETTINGS, PLACE, one.created_at).mentioned
    assert not recall(one, memory, SETTINGS, PLACE).mentioned


# The nearest


def test_the_nearest_are_told_also_where_it_is_silent(remember: Remember) -> None:
    strict = replace(SETTINGS, troubleshooting=replace(SETTINGS.troubleshooting, similarity_threshold=1.0))
    memory = remember(*(closed(n, TITLE, BODY) for n in range(1, 8)), *FILLER)
    answer = decide(recall(thread(500, TITLE, BODY), memory, strict, PLACE))
    assert isinstance(answer, Silent)
    assert len(answer.nearest) == 5
    found = [one.similarity for one in answer.nearest]
    assert found == sorted(found, reverse=True)
    assert all(0 < one.similarity < 1 and one.why for one in answer.nearest)


def test_what_is_shown_is_among_the_nearest(remember: Remember) -> None:
    context = recall(thread(500, TITLE, BODY), remember(closed(1, TITLE, BODY), *FILLER), SETTINGS, PLACE)
    assert [(m.id, m.similarity) for m in context.seen_before] == [(m.id, m.similarity) for m in context.nearest[:1]]
    assert decide(context) == Speak(context)


def test_what_somebody_called_wrong_is_not_among_the_nearest(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), closed(2, TITLE, BODY), *FILLER)
    memory.stage(Changes(requests=(Request(2, 77, "wrong", "octocat", at(2), about=(500,), state="done"),)))
    strict = replace(SETTINGS, troubleshooting=replace(SETTINGS.troubleshooting, similarity_threshold=1.0))
    assert [m.id for m in recall(thread(500, TITLE, BODY), memory, strict, PLACE).nearest] == [1]


def test_what_is_possibly_related_is_folded_in_only_when_the_settings_say_so(remember: Remember) -> None:
    limits = replace(SETTINGS.troubleshooting, similarity_threshold=0.999)
    memory = remember(closed(1, TITLE, BODY), *FILLER, closed(3, "Dark mode", "In the settings."))
    asked = thread(500, TITLE, f"{BODY} Unlike #3.")
    usual = recall(asked, memory, replace(SETTINGS, troubleshooting=limits), PLACE)
    assert (usual.possible, [m.id for m in usual.nearest]) == ((), [1])
    wanted = replace(SETTINGS, troubleshooting=replace(limits, possibly_related=True))
    assert [m.id for m in recall(asked, memory, wanted, PLACE).possible] == [1]
    alone = recall(thread(500, TITLE, BODY), memory, wanted, PLACE)
    assert [m.id for m in alone.possible] == [1]
    assert decide(alone) == Silent(NOTHING_RELATED)


def test_issues_alone_are_counted(remember: Remember) -> None:
    page = thread("docs/a.md", "Cookies", "Other words.", kind=Kind.PAGE)
    memory = remember(closed(1, TITLE, BODY), thread(2, TITLE, kind=Kind.PULL), page)
    assert (memory.state.manifest.threads, memory.issues) == (3, 1)
    assert recall(thread(500, TITLE, BODY), memory, SETTINGS, PLACE).searched == 1
