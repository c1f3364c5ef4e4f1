"""Everything that memory has to say about a thread, and whether that is worth a comment."""

from dataclasses import replace
from datetime import timedelta

from bot.domain.answer import Context, EarlierClosing, Match, Mention, PageHit, Silent, Speak
from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.thread import Decision, Kind, Outcome, OutcomeKind, RepositoryAddress
from bot.recall.answer import NOTHING_RELATED, NOTHING_YET, decide, recall
from bot.recall.mentions import NO_RECORD
from bot.settings.schema import Settings
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, duplicate, thread
from tests.recall.test_similar import BODY, FILLER, TITLE

REPOSITORY = RepositoryAddress("octo-org/hello-world")
SETTINGS = Settings()
MENTIONS = SETTINGS.mentions
FIXED = Outcome(OutcomeKind.FIXED, fix="#8")
NEWS, UNKNOWN = Mention(3, "Sessions", outcome=FIXED), Mention(4, missing=NO_RECORD)
MATCH = Match(5, TITLE, 0.8, "closed", at(1))


def test_the_bot_speaks_when_there_is_something_to_show() -> None:
    cases = [
        Context(mentioned=(NEWS,)),
        Context(mentioned=(NEWS,), also_mentioned=(UNKNOWN,)),
        Context(seen_before=(MATCH,)),
        Context(open_now=(MATCH,)),
        Context(pages=(PageHit("Sessions", "https://example.com", "", 0.7),)),
        Context(also_mentioned=(UNKNOWN,), seen_before=(MATCH,)),
    ]
    assert [context for context in cases if decide(context, MENTIONS) != Speak(context)] == []


def test_the_bot_is_silent_without_findings_or_with_only_unknown_references() -> None:
    cases = [Context(), Context(searched=9), Context(also_mentioned=(UNKNOWN, UNKNOWN))]
    assert [context for context in cases if decide(context, MENTIONS) != Silent(NOTHING_RELATED)] == []


DECIDED = Mention(3, "Sessions", decisions=(Decision("We keep them.", "octocat", "OWNER", at(1)),))
ENDED = [
    NEWS, DECIDED, Mention(3, outcome=Outcome(OutcomeKind.ANSWERED)), Mention(3, chain=(2,)), Mention(3, is_asked=True),
    Mention(3, outcome=Outcome(OutcomeKind.NOT_PLANNED, quote="It belongs elsewhere.")),
    Mention(3, kind=Kind.PULL, merged_at=at(1), fix=FixInfo(3, "#3", at(2), True, "abc", release="v2.3.0")),
    Mention(3, earlier=EarlierClosing(at(1), at(2), FIXED)),
]  # fmt: skip
NOT_ENDED = [
    Mention(3, "Sessions"), Mention(3, state="closed", state_reason="completed"),
    Mention(3, kind=Kind.PULL, merged_at=at(1)),
    Mention(3, outcome=Outcome(OutcomeKind.NOT_PLANNED)), Mention(3, outcome=Outcome(OutcomeKind.STALE)), UNKNOWN,
]  # fmt: skip


def test_a_mention_alone_is_worth_a_comment_if_its_ending_is_news_to_the_writer() -> None:
    known = [replace(mention, is_known=True) for mention in ENDED if not mention.is_asked]
    for mention in ENDED:
        assert decide(Context((mention,)), MENTIONS) == Speak(Context((mention,)))
    for mention in (*NOT_ENDED, *known):
        assert isinstance(decide(Context((mention,)), MENTIONS), Silent), mention


def test_a_fix_that_the_text_names_too_is_no_news_unless_its_release_is() -> None:
    fixed = Mention(3, outcome=Outcome(OutcomeKind.FIXED, fix="#12", quote="Resolved by #12"))
    fix = FixInfo(3, "#12", at(2), True, "abc", release="v2.3.0")
    for change in (Mention(12, kind=Kind.PULL, merged_at=at(1)), Mention(12, missing="no record of this issue")):
        assert isinstance(decide(Context((fixed,), (change,)), MENTIONS), Silent)
        assert isinstance(decide(Context((replace(fixed, fix=fix, merged_at=at(1)),), (change,)), MENTIONS), Speak)
    assert isinstance(decide(Context((fixed,), (replace(UNKNOWN, id=13),)), MENTIONS), Speak)


def test_what_is_no_news_is_named_in_brief_in_a_comment_for_another_reason() -> None:
    known = replace(DECIDED, is_known=True)
    answer = decide(Context((known, NEWS), (UNKNOWN,), (MATCH,)), MENTIONS)
    assert isinstance(answer, Speak)
    assert (answer.context.mentioned, answer.context.also_mentioned) == (
        (NEWS,),
        (replace(known, decisions=()), UNKNOWN),
    )
    assert decide(answer.context, MENTIONS) == answer, "deciding twice changes nothing"


def test_the_settings_say_when_mentions_speak() -> None:
    always, never = replace(MENTIONS, speak="always"), replace(MENTIONS, speak="never")
    known = replace(DECIDED, is_known=True)
    assert decide(Context((known,)), always) == Speak(Context((known,)))
    assert isinstance(decide(Context((NEWS,)), never), Silent)
    assert decide(Context((NEWS,), seen_before=(MATCH,)), never) == Speak(Context((NEWS,), seen_before=(MATCH,)))


def test_the_first_issue_has_its_own_reason_for_silence(remember: Remember) -> None:
    first, second, pull = thread(1, TITLE, BODY), thread(3, "Dark mode"), thread(2, TITLE, kind=Kind.PULL)
    page = thread("docs/a.md", "Cookies", "Other words.", kind=Kind.PAGE)
    assert decide(recall(first, remember(page), SETTINGS, REPOSITORY), MENTIONS) == Silent(NOTHING_YET)
    assert decide(recall(second, remember(second, pull), SETTINGS, REPOSITORY), MENTIONS) == Silent(NOTHING_YET)
    assert decide(recall(first, remember(first), SETTINGS, REPOSITORY), MENTIONS) == Silent(NOTHING_YET)
    assert decide(recall(second, remember(first), SETTINGS, REPOSITORY), MENTIONS) == Silent(NOTHING_RELATED)


def test_a_mentioned_thread_is_not_also_shown_as_seen_before(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), closed(2, TITLE, BODY), *FILLER)
    context = recall(thread(500, TITLE, f"{BODY} Like #1?"), memory, SETTINGS, REPOSITORY)
    assert [m.id for m in context.mentioned] == [1]
    assert [m.id for m in context.seen_before] == [2]


def test_the_canonical_issue_of_a_mentioned_duplicate_is_shown_once(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), duplicate(2, of=1, title=TITLE, body=BODY), *FILLER)
    context = recall(thread(500, TITLE, f"{BODY} Like #2?"), memory, SETTINGS, REPOSITORY)
    assert [m.id for m in context.mentioned] == [1]
    assert context.seen_before == context.open_now == ()


def test_the_number_of_searched_threads_is_given_except_for_the_past(remember: Remember) -> None:
    memory = remember(*FILLER)
    question = thread(500, TITLE, BODY)
    assert recall(question, memory, SETTINGS, REPOSITORY).searched == len(FILLER)
    assert recall(question, memory, SETTINGS, REPOSITORY, question.created_at).searched == 0


def test_similar_threads_are_not_searched_for_if_none_may_be_shown(remember: Remember) -> None:
    off = replace(SETTINGS, similar=replace(SETTINGS.similar, max=0, open=0))
    memory = remember(closed(1, TITLE, BODY), closed(2, TITLE, BODY), *FILLER)
    context = recall(thread(500, TITLE, f"{BODY} Like #1?"), memory, off, REPOSITORY)
    assert [m.id for m in context.mentioned] == [1]
    assert context.seen_before == context.open_now == ()


def test_an_empty_memory_has_nothing_to_say(remember: Remember) -> None:
    assert isinstance(decide(recall(thread(500, TITLE, BODY), remember(), SETTINGS, REPOSITORY), MENTIONS), Silent)


def test_hostile_text_is_answered_like_any_other(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), *FILLER)
    for text in ("", "[" * 65_536, "*" * 65_536, ">" * 65_536, "\x00\ud800" * 1_000, "#1 " * 5_000, "\u202e#1\u200b"):
        answer = decide(recall(thread(500, text[:1000], text), memory, SETTINGS, REPOSITORY), MENTIONS)
        assert isinstance(answer, Silent), text[:9]


def test_a_match_called_wrong_later_is_wrong_only_from_then_on(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), *FILLER)
    question = thread(500, TITLE, "Like #1?")
    memory.stage(
        Changes(requests=(Request(500, 7, "wrong", "octocat", question.created_at + timedelta(days=1), (1,)),))
    )
    assert recall(question, memory, SETTINGS, REPOSITORY, question.created_at).mentioned
    assert not recall(question, memory, SETTINGS, REPOSITORY).mentioned


# The nearest


def test_a_silent_answer_still_names_the_nearest_threads(remember: Remember) -> None:
    strict = replace(SETTINGS, similar=replace(SETTINGS.similar, threshold=1.0))
    memory = remember(*(closed(n, TITLE, BODY) for n in range(1, 8)), *FILLER)
    answer = decide(recall(thread(500, TITLE, BODY), memory, strict, REPOSITORY), MENTIONS)
    assert isinstance(answer, Silent)
    assert len(answer.nearest) == 5
    similarities = [match.similarity for match in answer.nearest]
    assert similarities == sorted(similarities, reverse=True)
    assert all(0 < match.similarity < 1 and match.why for match in answer.nearest)


def test_a_shown_thread_is_among_the_nearest(remember: Remember) -> None:
    context = recall(thread(500, TITLE, BODY), remember(closed(1, TITLE, BODY), *FILLER), SETTINGS, REPOSITORY)
    assert [(m.id, m.similarity) for m in context.seen_before] == [(m.id, m.similarity) for m in context.nearest[:1]]
    assert decide(context, MENTIONS) == Speak(context)


def test_a_thread_that_somebody_called_wrong_is_not_among_the_nearest(remember: Remember) -> None:
    memory = remember(closed(1, TITLE, BODY), closed(2, TITLE, BODY), *FILLER)
    memory.stage(Changes(requests=(Request(2, 77, "wrong", "octocat", at(2), about=(500,), state="done"),)))
    strict = replace(SETTINGS, similar=replace(SETTINGS.similar, threshold=1.0))
    assert [m.id for m in recall(thread(500, TITLE, BODY), memory, strict, REPOSITORY).nearest] == [1]


def test_only_issues_are_counted(remember: Remember) -> None:
    page = thread("docs/a.md", "Cookies", "Other words.", kind=Kind.PAGE)
    memory = remember(closed(1, TITLE, BODY), thread(2, TITLE, kind=Kind.PULL), page)
    assert (memory.state.manifest.threads, memory.issues) == (3, 1)
    assert recall(thread(500, TITLE, BODY), memory, SETTINGS, REPOSITORY).searched == 1
