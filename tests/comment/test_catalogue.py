"""Our words: all in one file, all used; a repository's own words can change nothing but words."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.comment.catalogue import COMMAND_SYNTAX, MAX_CHARS, PLACEHOLDER, TEMPLATE_TEXTS, Words, find_problem, own_words
from bot.comment.links import CommentLinks
from bot.comment.outcome_text import CommentPhrases, ReleaseFacts, release_text
from bot.comment.plurals import plural_form
from bot.comment.render import SHIPPED_FOLDER, WORDS_FILE, Rendered, Renderer, shipped_words, withdrawal_text
from bot.comment.template_view import view_of
from bot.domain.answer import Context, Mention, PageHit
from bot.domain.card import Passage
from bot.domain.changes import FixInfo
from bot.domain.thread import Outcome, OutcomeKind, Thread
from bot.errors import UserError
from bot.pipeline.commands import sentence
from bot.reading.endings.outcome import CONTINUATION
from bot.reading.requests import Command
from bot.settings.schema import Language
from bot.settings.yaml_file import load_texts
from tests.comment.contexts import CASES, GITHUB, NOW, OPEN, closed_match, quoted_outcome
from tests.comment.detector import report
from tests.comment.gallery import GALLERY
from tests.comment.payloads import PAYLOADS
from tests.comment.test_outcome_text import DUPLICATE, PULL
from tests.comment.test_outcome_text import FIXED as FIX_OUTCOME
from tests.examples import examples

ENGLISH = shipped_words()
SOURCE = (SHIPPED_FOLDER / WORDS_FILE).read_text(encoding="utf-8")

EVERY_ENDING = (
    *(closed_match(quoted_outcome(kind, "")) for kind in OutcomeKind),
    *(closed_match(quoted_outcome(kind)) for kind in OutcomeKind),
    closed_match(Outcome(), state_reason=None),
    closed_match(replace(FIX_OUTCOME, fix="9750550")),
    closed_match(replace(FIX_OUTCOME, release="2.0"), title="\u3164"),
    closed_match(replace(FIX_OUTCOME, release="2.0", fix=None)),
    closed_match(FIX_OUTCOME, fix=FixInfo(7, "#30", NOW, commit="9" * 40, unreleased=True)),
    closed_match(
        replace(DUPLICATE, duplicate_of=None), why=("same title", "same file `z.py`", "both name `a` and `b`")
    ),
    closed_match(replace(DUPLICATE, evidence=(CONTINUATION,))),
)
EVERY_MENTION = (
    PULL,
    replace(PULL, state="open"),
    replace(PULL, outcome=FIX_OUTCOME),
    Mention(5, "\u3164", "open"),
    Mention(5, "x", "open", chain=(3, 4)),
    Mention(9, "x", "closed", outcome=quoted_outcome(OutcomeKind.ANSWERED, author="ghost", role="NONE")),
    Mention(9, "x", "closed", outcome=quoted_outcome(OutcomeKind.ANSWERED, role="CONTRIBUTOR")),
)
EVERY_AGE = tuple(
    replace(OPEN, created_at=NOW - timedelta(days=days), turn_count=days + 1) for days in (0, 1, 4, 20, 99, 999)
)
CONTEXTS = [
    *(context for name, (context, _) in CASES.items() if name not in ("hostile", "long")),
    *(shown.context for shown in GALLERY.values()),
    *(
        Context(seen_before=(replace(ending, asked_on=version, may_be_back=version == "3.0"),))
        for ending in EVERY_ENDING
        for version in ("", "1.0", "3.0")
    ),
    Context(open_now=(replace(OPEN, why=("same text",)), OPEN)),
    Context(open_now=(replace(OPEN, why=("same error `E1: a`",), similarity=0.9), OPEN)),
    Context(
        mentioned=EVERY_MENTION, also_mentioned=(Mention(9, missing="no record of this issue"),),
        seen_before=EVERY_ENDING, open_now=EVERY_AGE,
        pages=(PageHit("\u3164", "\u3164", "", 0.7),),
    ),
]  # fmt: skip

FORGETTING = ("forget", "forget_left", "forget_history", "forget_refused", "forget_unreached")
SENTENCES = ("admins", "nothing", "refused", "others_left", "unclear", "help_writers", "ask")


def reply_texts(words: Words, searched: str = "x") -> str:
    """Everything that a reply may say besides its findings, to somebody who searched for ``searched``."""
    texts = [sentence(name, Command("search", searched, line="/precedent serach"), words, 5) for name in SENTENCES]
    texts += [sentence("limited", None, words, often) for often in (1, 2)]
    texts += [words.say(f"reply_{name}") for name in FORGETTING]
    texts += [words.say(f"reply_{name}", threads="9", messages="9") for name in ("searched", "searched_threads")]
    return "\n\n".join([*texts, sentence("which", None, words, choices=("- `/precedent wrong 5`: αβγ",))])


class RecordingTexts(dict[str, str]):
    """Texts that record which of them were looked up."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__(texts)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


def test_every_text_is_used() -> None:
    texts = RecordingTexts(dict(ENGLISH.texts))
    words = Words(texts)
    for context in CONTEXTS:
        with_errors = tuple(
            replace(match, why=("same error `E1: a`", "both titles say a b c")) for match in context.open_now
        )
        for links in (GITHUB, CommentLinks()):
            view_of(context, links, NOW, words)
            view_of(replace(context, open_now=with_errors), links, NOW, words)
    assert (words.comma, words.colon) == (", ", ":")
    for searched, shown in ((0, ()), (1, ()), (2, ()), (2, (7, 8))):
        words.footer(searched, shown, commands=searched > 1)
    for off in (True, False):
        withdrawal_text("", words, off=off)
    reply_texts(words)
    for is_early in (True, False):
        facts = ReleaseFacts("v2.3.0", is_early, original=7, upgrade_note="Delete the old files.")
        release_text(facts, CommentPhrases(GITHUB, NOW, {}, words))
    sources = "".join(path.read_text(encoding="utf-8") for path in SHIPPED_FOLDER.glob("*.md.j2"))
    texts.used |= {name for name in TEMPLATE_TEXTS if f"words.{name}" in sources}
    texts.used |= {name.replace("_other", "_one") for name in texts.used}  # nothing is as old as one week
    assert set(texts) - texts.used == set()


FOREIGN = {"title", "quote", "author", "closed_by", "summary", "text", "excerpt", "release"}


def other_letters(text: str, start: int) -> str:
    return re.sub("[A-Za-z]", lambda letter: chr(start + ord(letter[0].lower()) - ord("a")), text)


def in_greek(value: Any, name: str = "") -> Any:
    """The same value, with everything that people wrote turned into Greek letters."""
    if isinstance(value, Passage):
        return value._replace(author=in_greek(value.author, "author"), text=in_greek(value.text, "text"))
    if isinstance(value, tuple):
        return tuple(in_greek(each, name) for each in value)
    if is_dataclass(value):
        return replace(value, **{f.name: in_greek(getattr(value, f.name), f.name) for f in fields(value)})  # type: ignore[type-var]
    if isinstance(value, str) and name == "why":
        start, what, rest = value.partition("words in common: ")
        return f"{start}{what}{other_letters(rest, 0x3B1)}" if what else value
    if isinstance(value, str) and name == "fix":
        return re.sub("[A-Fa-f]", "0", value)
    if isinstance(value, str) and (name in FOREIGN or name in ("id", "chain")):
        return other_letters(value, 0x3B1)
    return value


def in_cyrillic(text: str) -> str:
    return "".join(
        part if PLACEHOLDER.fullmatch(part) else other_letters(part, 0x430) for part in re.split(r"(\{[a-z_]+\})", text)
    )


CYRILLIC = "\n".join(f'{name}: "{in_cyrillic(text)}"' for name, text in ENGLISH.texts.items())
IN_CYRILLIC = Renderer(overrides={WORDS_FILE: CYRILLIC}, links=GITHUB)


def test_all_our_words_in_a_comment_are_in_the_catalogue() -> None:
    for context in CONTEXTS:
        rendered = IN_CYRILLIC.render(in_greek(context), thread_id=1, now=NOW, searched=9)
        assert rendered.problem is None, context
        visible = report(re.sub(r"`[^`\n]*`|https:\u200b//\S+", "", rendered.text)).text
        assert re.findall("[A-Za-z]{2,}", visible.replace("同じエラー", "")) == [], context


def test_all_our_words_in_a_reply_are_in_the_catalogue() -> None:
    answer = reply_texts(IN_CYRILLIC.words, "αβγ")
    rendered = IN_CYRILLIC.reply(Context(), asked="", reply_to=1, now=NOW, searched=9, answer=answer)
    assert rendered.problem is None
    assert re.findall("[A-Za-z]{2,}", report(re.sub(r"`[^`\n]*`", "", rendered.text)).text) == []
    assert all(command in rendered.text for command in COMMAND_SYNTAX.values())


def test_a_reply_names_counts() -> None:
    assert [sentence("limited", None, ENGLISH, often).split(" an hour")[0] for often in (1, 5)] == [
        "Each account may ask 1 time",
        "Each account may ask 5 times",
    ]


def test_the_shipped_words_pass_their_own_checks_and_hold_no_shouting() -> None:
    for name, text in ENGLISH.texts.items():
        assert find_problem(name, text, text) == "", name
        assert "!" not in text
    assert not re.search(r"(?i)please|sorry|you should|invalid|score|%", "".join(ENGLISH.texts.values()))
    assert len(load_texts(SOURCE, WORDS_FILE)) == len(ENGLISH.texts)


LANGUAGES = [language for language in get_args(Language) if language not in ("auto", "en")]
PLURALS = [name.removesuffix("_other") for name in ENGLISH.texts if name.endswith("_other")]


def expected_placeholders(language: str) -> Iterator[tuple[str, list[str]]]:
    """The names and placeholders that a language needs: those of English, with its own plural forms."""
    forms = [form for form in ("one", "few", "many", "other") if form in {plural_form(n, language) for n in range(200)}]
    for name, text in ENGLISH.texts.items():
        plural, _, form = name.rpartition("_")
        names = [f"{plural}_{each}" for each in forms] if plural in PLURALS and form == "other" else [name]
        if not (plural in PLURALS and form == "one"):
            yield from ((each, sorted(PLACEHOLDER.findall(text))) for each in names)


def test_each_language_is_a_file() -> None:
    assert sorted(LANGUAGES) == sorted(path.stem for path in (SHIPPED_FOLDER / "words").iterdir())


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_words_of_a_language_are_complete_and_pass_the_same_checks(language: str) -> None:
    own = shipped_words(language).texts
    assert {name: sorted(PLACEHOLDER.findall(text)) for name, text in own.items()} == dict(
        expected_placeholders(language)
    )
    assert {name: problem for name, text in own.items() if (problem := find_problem(name, text, text))} == {}
    assert [name for name in own if name not in SAME_IN_ENGLISH and own[name] == ENGLISH.texts.get(name)] == []


SAME_IN_ENGLISH = {
    "thousands", "in_repository", "in_brief", "numbered", "who_when", "who_role", "quote", "dated", "closed_by",
    "or_numbers", "as_of", "issue", "pull_request", "discussion", "commit", "and", "day", "maintainer", "contributor",
    "list", "label",
}  # fmt: skip


ENGLISH_RENDERER = Renderer(links=GITHUB, language="en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_comment_and_a_reply_in_each_language_hold_together(language: str) -> None:
    renderer = Renderer(links=GITHUB, language=language)
    for context in CONTEXTS:
        rendered = renderer.render(context, thread_id=1, now=NOW, searched=9)
        assert rendered.problem is None
        in_english = ENGLISH_RENDERER.render(context, thread_id=1, now=NOW, searched=9)
        assert report(rendered.text).text.count("*") == report(in_english.text).text.count("*"), rendered.text
    rendered = renderer.reply(Context(), asked="", reply_to=1, now=NOW, searched=9, answer=reply_texts(renderer.words))
    assert rendered.problem is None
    assert all(command in rendered.text for command in COMMAND_SYNTAX.values())


def test_plural_forms_follow_the_rule_of_the_language() -> None:
    comments = {
        "en": "0 comments|1 comment|2 comments|5 comments|11 comments|21 comments",
        "fr": "0 commentaire|1 commentaire|2 commentaires|5 commentaires|11 commentaires|21 commentaires",
        "pt": "0 comentário|1 comentário|2 comentários|5 comentários|11 comentários|21 comentários",
        "ru": "0 комментариев|1 комментарий|2 комментария|5 комментариев|11 комментариев|21 комментарий",
        "ja": "コメント 0 件|コメント 1 件|コメント 2 件|コメント 5 件|コメント 11 件|コメント 21 件",
    }
    for language, expected in comments.items():
        words = shipped_words(language)
        assert [words.count("comments", n) for n in (0, 1, 2, 5, 11, 21)] == expected.split("|")
    assert [plural_form(n, "ru") for n in (14, 101, 111, 112, 122)] == ["many", "one", "many", "many", "few"]


def test_days_and_numbers_have_the_form_of_the_language() -> None:
    shown = {
        "en": ("5 March 2024", "1,204"), "de": ("5. März 2024", "1.204"), "es": ("5 de marzo de 2024", "1\u00a0204"),
        "fr": ("5 mars 2024", "1\u202f204"), "ja": ("2024年3月5日", "1,204"), "ko": ("2024년 3월 5일", "1,204"),
        "pt": ("5 de março de 2024", "1.204"), "ru": ("5 марта 2024 г.", "1\u00a0204"), "zh": ("2024年3月5日", "1,204"),
    }  # fmt: skip
    assert {"en", *LANGUAGES} == set(shown)
    for language, expected in shown.items():
        words = shipped_words(language)
        assert (words.day(datetime(2024, 3, 5, tzinfo=UTC)), words.number(1204)) == expected


def test_a_comment_is_in_the_language_of_the_issue_unless_one_is_chosen() -> None:
    chinese, english = (Thread(1, title, "", "hubot", NOW) for title in ("升级后图片无法显示", "Images are lost"))
    cases = [
        (Renderer(), chinese, "过往的类似", "zh"), (Renderer(), english, "Seen before", "en"),
        (Renderer(language="en"), chinese, "Seen before", "en"), (Renderer(language="zh"), english, "过往的类似", "zh"),
        (Renderer(overrides={WORDS_FILE: 'why: "Grund"'}), chinese, "Seen before", "en"),
        (Renderer(overrides={WORDS_FILE: 'why: "缘由"'}, language="zh"), english, "过往的类似", "zh"),
    ]  # fmt: skip
    for renderer, thread, heading, language in cases:
        own = renderer.for_thread(thread)
        text = own.render(Context(seen_before=(closed_match(FIX_OUTCOME),)), thread_id=1, now=NOW, searched=9).text
        assert (heading in text, own.words.language) == (True, language)
    assert [Renderer(language="zh").words.count("comments", n) for n in (1, 2)] == ["1 条评论", "2 条评论"]


def test_texts_that_do_more_than_show_words_are_refused() -> None:
    cases = [
        ("sen_before: x", "words.yml:1: unknown name 'sen_before'; did you mean 'seen_before'?"),
        ("zzz: x", "unknown name 'zzz'; the names are those of templates/words.yml"),
        ('comments_other: "{number} mal"', "unknown placeholder {number}; known here: {count}"),
        ('since: "{whats} seit {day}"', "unknown placeholder {whats}; did you mean 'what'?"),
        ('seen_before: "{day}"', "unknown placeholder {day}; known here: none"),
        ('comments_other: "{count.__class__}"', "use curly brackets only around the name of a placeholder"),
        ('comments_other: "{count!r:>99}"', "curly brackets"),
        ('comments_other: "{{count}}"', "curly brackets"),
        ('seen_before: "@octo-org/team"', "seen_before: '@' would ping somebody"),
        ('who_when: "@{who}"', "would ping somebody"),
        ('seen_before: "see #12"', "'#' would refer to an issue"),
        ('issue: "#{number}"', "'#' would refer to an issue"),
        ('issue: "GH-{number}"', "would refer to an issue"),
        ('commit: "octo/hub@deadbeef1"', "would ping somebody"),
        ('seen_before: "deadbeef1"', "would refer to a commit"),
        ('seen_before: "<img src=x>"', "'<' is HTML"),
        ('seen_before: "https://evil.example"', "is an address"),
        ('seen_before: "[a](b)"', "has a meaning in Markdown"),
        ('seen_before: "**a**"', "has a meaning in Markdown"),
        ('ended_fixed: "**a"', "has a meaning in Markdown"),
        ('ended_fixed: "# a"', "has a meaning in Markdown"),
        ('age_days_other: "{count}. Tag"', "has a meaning in Markdown"),
        ('quote: "1{text}"', "has a meaning in Markdown"),
        ('seen_before: ":tada:"', "would draw an emoji"),
        ('also_mentioned: ":tada"', "would draw an emoji"),
        ('dated: "{what}, duplicate of#{day}"', "'#' would refer to an issue"),
        ('also_mentioned: "Duplicate of"', "as if a person had said them"),
        ('ended_fixed_by: "fixes {change}"', "as if a person had said them"),
        ('reply_which: "bis `/precedent on`"', "has a meaning in Markdown"),
        ('or_numbers: "closes {numbers}"', "as if a person had said them"),
        ('change: "#{number}"', "'#' would refer to an issue"),
        ('ended_duplicate: "**Duplicate of** {thread}"', "as if a person had said them"),
        ('seen_before: ""', "use one line of visible words"),
        ('seen_before: " a"', "use one line of visible words"),
        ('seen_before: "a\\nb"', "use one line of visible words"),
        ('seen_before: "a\\u202eb"', "use one line of visible words"),
        (f'seen_before: "{"a" * 301}"', "it has 301 characters; the most is 300"),
        ('months: "a, b"', "name all 12 months"),
        ('thousands: "abc"', "use one of"),
        ("seen_before: [a, b]", "must be one text, in quotes"),
        ("why: a\nwhy: b", "words.yml:2: 'why' is set twice"),
        ("- a", "the file must hold lines such as `name: text`"),
        ("{count} comments", "not valid YAML"),
        ("why: &a b", "anchors and aliases are not supported"),
        ("#" * 70_000, "larger than 64 KB"),
        ("why: \ud800", "not valid YAML"),
    ]
    for line, message in cases:
        with pytest.raises(UserError) as caught:
            own_words(ENGLISH, line)
        assert message in str(caught.value), line
        assert "\n" not in str(caught.value), line


def test_refused_words_are_replaced_by_the_shipped_ones_and_one_line_says_so() -> None:
    for line in ['why: "@team"', "wyh: x", "why: [", "why: \ud800"]:
        context = Context(seen_before=(closed_match(FIX_OUTCOME),))
        rendered = Renderer(overrides={WORDS_FILE: line}, links=GITHUB).render(
            context, thread_id=1, now=NOW, searched=9
        )
        assert rendered.problem is not None, line
        assert re.fullmatch(
            r"\.github/precedent/words\.yml(:[12])?: .*; the shipped words were used", rendered.problem
        ), line
        assert rendered.text == Renderer(links=GITHUB).render(context, thread_id=1, now=NOW, searched=9).text, line


def test_one_line_changes_one_text() -> None:
    words = own_words(ENGLISH, 'why: "Grund"\npages: ~\n')
    assert {name for name, text in words.texts.items() if text != ENGLISH.texts[name]} == {"why"}
    assert own_words(ENGLISH, "").texts == ENGLISH.texts


def test_words_and_templates_fail_independently() -> None:
    context = Context(open_now=(OPEN,))
    overrides = {WORDS_FILE: 'why: "Grund"', "troubleshooting.md.j2": "{{ nobody }}"}
    rendered = Renderer(overrides=overrides, links=GITHUB).render(context, thread_id=1, now=NOW, searched=9)
    assert "*Grund:*" in rendered.text
    assert rendered.problem is not None
    assert rendered.problem.startswith(".github/precedent, for troubleshooting.md.j2: ")
    overrides = {
        WORDS_FILE: 'why: "@a"',
        "troubleshooting.md.j2": '{% extends "base.md.j2" %}{% block lead %}Hi{% endblock %}',
    }
    rendered = Renderer(overrides=overrides, links=GITHUB).render(context, thread_id=1, now=NOW, searched=9)
    assert "\nHi\n" in rendered.text
    assert "*Why:*" in rendered.text
    assert rendered.problem is not None
    assert rendered.problem.startswith(".github/precedent/words.yml:1: why: ")


SEARCHED = "@octocat #1 octo/hub#5 of #6 `<img src=x> https://evil.example :tada:"


def render_both(renderer: Renderer) -> list[Rendered]:
    """A comment with every section, and a reply with every sentence."""
    answer = reply_texts(renderer.words, SEARCHED)
    return [
        renderer.render(CASES["all_sections"][0], thread_id=1, now=NOW, searched=9),
        renderer.reply(Context(), asked="", reply_to=1, now=NOW, searched=9, answer=answer),
    ]


PLAIN = [set(report(rendered.text).tags) for rendered in render_both(Renderer(links=GITHUB))]


def is_refused(name: str, text: str) -> bool:
    """Whether this text is refused. If not, checks that it changes nothing but words in whole comments."""
    if find_problem(name, text, ENGLISH.texts[name]):
        return True
    source = f"{name}: " + '"' + "".join(f"\\U{ord(letter):08x}" for letter in text) + '"'
    for rendered, tags in zip(render_both(Renderer(overrides={WORDS_FILE: source}, links=GITHUB)), PLAIN, strict=True):
        findings = report(rendered.text)
        assert rendered.problem is None
        assert (findings.mentions, findings.references, findings.images, findings.shortcodes) == ([], [], [], [])
        assert {tag for tag in findings.tags if not tag.endswith("strong")} <= tags
        assert all(
            address.startswith(("https://redirect.", "https://github.com/octo-org")) for address in findings.links
        )
    return False


def test_no_payload_gets_through_as_a_word() -> None:
    names = ["seen_before", "ended_fixed_by", "quote", "first_answered", "controls", "day", "reply_nothing"]
    for name in names:
        placeholders = PLACEHOLDER.findall(ENGLISH.texts[name])
        refusals = [
            is_refused(name, f"{payload}{''.join(f'{{{each}}}' for each in placeholders)}") for payload in PAYLOADS
        ]
        assert sum(refusals) > len(PAYLOADS) / 2, name


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(sorted(ENGLISH.texts)),
    st.lists(st.sampled_from([*"#@-+=>:_*`.1 <x", "{}", "GH-", "**", "www", "://", "fixes "]), min_size=1, max_size=6),
)
def test_no_text_around_a_placeholder_changes_more_than_words(name: str, pieces: list[str]) -> None:
    placeholders = (PLACEHOLDER.findall(ENGLISH.texts[name]) or ["count"]) * 6
    text = "".join(f"{{{placeholders[position]}}}" if piece == "{}" else piece for position, piece in enumerate(pieces))
    is_refused(name, text)


def test_a_value_is_never_read_as_a_placeholder() -> None:
    assert Words({"quote": "“{text}”"}).say("quote", text="{text} {quote}") == "“{text} {quote}”"


def test_the_longest_hostile_file_is_refused_at_once() -> None:
    for unit in ("[", "{", "*", "a: ", "{x}", "**a", "duplicate of "):
        with pytest.raises(UserError):
            own_words(ENGLISH, "why: '" + (unit * 60_000)[:60_000] + "'")


def test_days_are_in_utc_and_in_the_order_of_the_catalogue() -> None:
    cases = [
        ("", datetime(2025, 3, 12, tzinfo=UTC), "12 March 2025"),
        ("", datetime(2025, 3, 12, 1, tzinfo=timezone(timedelta(hours=3))), "11 March 2025"),
        ("", datetime(2025, 12, 31), "31 December 2025"),  # noqa: DTZ001 - naive on purpose
        ('day: "{day}. {month} {year}"', datetime(2025, 3, 1, tzinfo=UTC), "1. March 2025"),
        ('day: "{year}-{month}-{day}"\nmonths: "1,2,3,4,5,6,7,8,9,10,11,12"', datetime(2025, 3, 1), "2025-3-1"),  # noqa: DTZ001
    ]
    assert [words for words, moment, expected in cases if own_words(ENGLISH, words).day(moment) != expected] == []


def test_a_day_that_looks_like_a_list_item_is_not_one() -> None:
    words = 'day: "{day}. {month} {year}"\ndated: "{day} {what}"\nwho_when: "{day} {who}"'
    rendered = Renderer(overrides={WORDS_FILE: words}, links=GITHUB).render(
        CASES["answered"][0], thread_id=1, now=NOW, searched=9
    )
    assert rendered.problem is None
    assert not [tag for tag in report(rendered.text).tags if "ol" in tag.split("/")]


def test_counts_have_two_forms_and_the_separator_of_the_catalogue() -> None:
    german = own_words(ENGLISH, 'thousands: "."\ncomments_one: "ein Kommentar"\ncomments_other: "{count} Kommentare"')
    assert [german.count("comments", n) for n in (1, 2, 12_345)] == [
        "ein Kommentar",
        "2 Kommentare",
        "12.345 Kommentare",
    ]
    assert MAX_CHARS == 300
