"""What a repository's own templates can do, and that nothing they do can hurt."""

import re
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.comment.catalogue import TEMPLATE_TEXTS
from bot.comment.marker import marker
from bot.comment.render import SHIPPED_FOLDER, TEMPLATE_NAMES, Renderer, shipped_words
from bot.comment.template_sandbox import OutputTooLong, Sandbox, TemplateFault
from bot.comment.template_view import view_of
from bot.domain.answer import Context
from bot.domain.thread import OutcomeKind
from tests.comment.contexts import (
    CASES,
    GITHUB,
    LONG,
    MENTION,
    NOW,
    closed_match,
    context_of,
    day,
    quoted_outcome,
    turn,
)
from tests.examples import examples
from tests.marker import find_marker

SEEN = Context(seen_before=(closed_match(quoted_outcome(OutcomeKind.ANSWERED)),), mentioned=(MENTION,))


def render(overrides: dict[str, str], context: Context = SEEN) -> tuple[str, str | None]:
    rendered = Renderer(overrides=overrides, links=GITHUB).render(context, thread_id=1, now=NOW, searched=9)
    return rendered.text, rendered.problem


BASE_NAME = '"base.md.j2"'
SHIPPED_TEXT = render({})[0]
PIECES = [
    *"{}%#.|()[]'\"+-*~,=<1x",
    *("{{", "}}", "{%", "%}", "for", "in", "if", "else", "set", "block", "endfor", "endif", "endblock", "extends"),
    *("super()", "not", "and", "is", "defined", "join", "first"),
    *("marker", "words", "mentioned", "item", "link", BASE_NAME),
]
BASE = '{% extends "base.md.j2" %}'

HOSTILE = {
    "attribute walk from a string": "{{ ''.__class__.__mro__ }}",
    "attribute walk from a list": "{{ [].__class__ }}",
    "attribute walk from a value": "{{ marker.__class__.__base__.__subclasses__() }}",
    "attribute walk by key": "{{ marker['__class__'] }}",
    "attribute walk by filter": "{{ marker|attr('__class__') }}",
    "attribute walk by map": "{{ seen_before|map(attribute='__class__')|list }}",
    "method of a string": "{{ marker.upper() }}",
    "method of a dict": "{{ words.pop('why') }}",
    "method shown": "{{ words.items }}",
    "format": "{{ '{0.__class__}'.format(marker) }}",
    "format_map": "{{ '{a.__class__}'.format_map(words) }}",
    "format filter": "{{ '%s'|format(marker) }}",
    "percent": "{{ '%0999999999d' % 1 }}",
    "range": "{% for a in range(10**9) %}{% endfor %}",
    "cycler": "{{ cycler.__init__.__globals__.os }}",
    "joiner": "{{ joiner.__init__.__globals__ }}",
    "namespace": "{% set n = namespace() %}{% set n.x = 1 %}",
    "lipsum": "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "the template itself": "{{ self }}",
    "the template's internals": "{{ self._TemplateReference__context }}",
    "blocks calling each other": "{% block a %}{{ self.a() }}{% endblock %}",
    "the context's own key": "{{ _purse }}",
    "include a file": "{% include '/etc/passwd' %}",
    "include by steps": "{% include '../../etc/passwd' %}",
    "extends a file": "{% extends '/etc/passwd' %}",
    "extends by steps": "{% extends '../../../etc/passwd' %}",
    "extends a value": "{% extends marker %}",
    "extends itself": '{% extends "context.md.j2" %}',
    "import": "{% import 'base.md.j2' as base %}{{ base }}",
    "from import": "{% from 'base.md.j2' import x %}",
    "macro": "{% macro m(n) %}{{ m(n - 1) }}{{ m(n - 1) }}{% endmacro %}{{ m(60) }}",
    "recursive loop": "{% for a in seen_before recursive %}{{ loop(seen_before) }}{% endfor %}",
    "loops in loops": "{% for a in mentioned + mentioned %}{% endfor %}",
    "deep loops": "".join(f"{{% for x{n} in [1,2,3,4,5,6,7,8,9] %}}" for n in range(12)) + "{% endfor %}" * 12,
    "quiet loops in blocks": "{% block a %}"
    + "".join(f"{{% for x{n} in [1,2,3,4,5,6,7,8,9] %}}" for n in range(12))
    + "{% endfor %}" * 12
    + "{% endblock %}",
    "loop over letters": "{% for letter in marker %}{{ letter }}{% endfor %}",
    "loop over a dict": "{% for key in words %}{{ key }}{% endfor %}",
    "huge string": "{{ 'x' * 10**9 }}",
    "huge string at compile time": "{{ 'x' * 1000000000 }}",
    "huge list": "{{ [0] * 1000000000 }}",
    "huge number": "{{ 9 ** 9 ** 9 }}",
    "huge shift of squares": "{% set a = 99999 * 99999 %}{{ a * a }}",
    "long number": "{{ " + "9" * 9_000 + " }}",
    "doubling text": "{% set a = 'xx' %}" + "{% set a = a ~ a %}" * 60 + "{{ a }}",
    "doubling by capture": "{% set a %}xx{% endset %}" + "{% set a %}{{ a }}{{ a }}{% endset %}" * 60,
    "doubling by plus": "{% set a = 'xx' %}" + "{% set a = a + a %}" * 60,
    "doubling lists": "{% set a = [1] %}" + "{% set a = [a, a] %}" * 60 + "{{ a == a }}",
    "a list shown": "{{ seen_before }}",
    "a dict shown": "{{ words }}",
    "unknown name": "{{ nobody }}",
    "unknown key": "{{ words.nobody }}",
    "division by nothing": "{{ 1 // 0 }}",
    "slices": "{{ marker[1:] }}",
    "letters": "{{ marker[0] }}",
    "deep parentheses": "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    "deep negation": "{{ " + "not " * 5_000 + "1 }}",
    "deep ifs": "{% if 1 %}" * 500 + "{% endif %}" * 500,
    "unfinished": "{% if",
    "many open tags": "{% " * 20_000,
    "filter block": "{% filter upper %}{{ marker }}{% endfilter %}",
    "call block": "{% call marker() %}{% endcall %}",
    "autoescape": "{% autoescape true %}{% endautoescape %}",
    "debug": "{% debug %}",
    "nothing": "",
    "marker dropped": BASE + "{% block marker %}{% endblock %}",
    "marker moved": BASE + "{% block marker %}Hi{% endblock %}{% block lead %}{{ marker }}{% endblock %}",
    "marker of another": BASE + "{% block marker %}<!-- precedent:v1 id=other -->{% endblock %}",
    "marker twice": BASE + "{% block lead %}{{ marker }}{% endblock %}",
    "huge output": "{{ marker }}\n" + "x" * 61_000,
    "output without end": "{{ marker }}\n{% for a in [1,2,3] %}{% for b in [1,2,3] %}"
    + "x" * 9_000
    + "{% endfor %}{% endfor %}",
    "super without end": BASE + "{% block body %}" + "{{ super() }}" * 4_000 + "{% endblock %}",
    "marks a duplicate": BASE + "{% block lead %}Duplicate of #1{% endblock %}",
    "closes an issue": BASE + "{% block lead %}\n> **Fixes** octocat/hello-world#1{% endblock %}",
}


@pytest.mark.slow
def test_an_unusable_template_is_replaced_by_the_shipped_one_and_one_line_says_so() -> None:
    for name, template in HOSTILE.items():
        text, problem = render({"context.md.j2": template})
        assert text == SHIPPED_TEXT, name
        assert problem is not None, name
        assert problem.startswith(".github/precedent, for context.md.j2: "), name
        assert "\n" not in problem, name
        assert len(problem) < 500, name
        assert "0x" not in problem, name


def test_a_broken_base_is_replaced_too() -> None:
    text, problem = render({"base.md.j2": "{{ nobody }}"})
    assert text == SHIPPED_TEXT
    assert problem is not None
    assert "nobody" in problem


def test_a_broken_template_is_reported_with_its_place_or_its_cause() -> None:
    for broken, expected in (
        ({"base.md.j2": "\n{{ }}"}, "line 2 of base.md.j2: "),
        ({"context.md.j2": "{{ }}"}, ": line 1: "),
        ({"context.md.j2": "Hello,\n{{ nobody }}"}, ": line 2: 'nobody' is undefined"),
        ({"base.md.j2": "\n\n{{ words.nothing }}"}, "line 3 of base.md.j2: there is no 'nothing' here"),
        ({"base.md.j2": '\n{% include "x" %}'}, "line 2 of base.md.j2: include of this kind is not allowed"),
        ({"context.md.j2": '\n{% extends "elsewhere.md.j2" %}'}, "there is no template elsewhere.md.j2"),
        ({"context.md.j2": "{% for a in [] %}" * 25 + "{% endfor %}" * 25}, ": too many statically nested blocks"),
    ):
        problem = render(broken)[1]
        assert problem is not None
        assert expected in problem


def test_a_template_of_comparisons_in_nested_loops_ends_with_its_budget() -> None:
    body = "{% if words.why == words.decided and words.why != words.pages %}{% endif %}" * 40
    loops = "".join(f"{{% for x{n} in [1,2,3,4,5,6,7,8,9] %}}" for n in range(6)) + body + "{% endfor %}" * 6
    _, problem = render({"context.md.j2": "{% block a %}" + loops + "{% endblock %}"})
    assert problem is not None
    assert "too many steps" in problem


def test_memory_stays_small_while_supers_multiply() -> None:
    sources = {"a": "{% block x %}" + "y" * 20_000 + "{% endblock %}"}
    for child, parent in ("ba", "cb", "dc"):
        sources[child] = f'{{% extends "{parent}" %}}{{% block x %}}{"{{ super() }}" * 300}{{% endblock %}}'
    with pytest.raises(TemplateFault):
        Sandbox(sources).render("d", {}, 10**9)


def test_a_block_can_be_replaced() -> None:
    text, problem = render(
        {"context.md.j2": BASE + "{% block seen_before_heading %}**Bereits besprochen**{% endblock %}"}
    )
    assert problem is None
    assert text == SHIPPED_TEXT.replace("**Seen before**", "**Bereits besprochen**")


def test_a_replacement_can_keep_what_the_shipped_one_says() -> None:
    override = '{% extends "shipped/context.md.j2" %}{% block footer %}{{ super() }}\nHouse rules apply.{% endblock %}'
    text, problem = render({"context.md.j2": override})
    assert problem is None
    assert text == SHIPPED_TEXT + "\nHouse rules apply.\n"


def test_a_base_of_the_repository_is_the_base_of_the_shipped_templates() -> None:
    override = '{% extends "shipped/base.md.j2" %}{% block footer %}{{ words.provenance }}{% endblock %}'
    text, problem = render({"base.md.j2": override})
    assert problem is None
    assert "<sub>" not in text


def test_an_item_block_sees_the_item_and_the_loop() -> None:
    block = "{% block mentioned_item scoped %}{{ loop.index }}. {{ item.link }}\n{% endblock %}"
    text, problem = render({"context.md.j2": BASE + block})
    assert problem is None
    assert "1. [Use PostgreSQL for sessions](" in text


def test_the_documented_language_works() -> None:
    block = (
        "{% block lead %}{% set most = 2 %}"
        "{% for item in seen_before if item.why %}{% if loop.first and loop.length < most + 1 %}"
        "{{ seen_before | length }}: {{ (seen_before | first).link }} {{ item.facts | join(', ') }} "
        "{{ item.nothing | default('-') }} {{ 'one' if loop.last else 'more' }}{% endif %}{% else %}none{% endfor %}"
        "{% endblock %}"
    )
    text, problem = render({"context.md.j2": BASE + block})
    assert problem is None
    assert "1: [Login loops after upgrade](" in text
    assert "- one" in text


def test_one_broken_template_does_not_spoil_the_others() -> None:
    renderer = Renderer(overrides={"reply.md.j2": "{{", "context.md.j2": BASE}, links=GITHUB)
    assert renderer.render(SEEN, thread_id=1, now=NOW, searched=9).problem is None
    assert renderer.reply(SEEN, asked="?", reply_to=1, now=NOW, searched=9).problem is not None


def test_an_unknown_name_is_reported_and_the_known_ones_are_used() -> None:
    text, problem = render({"contxt.md.j2": BASE, "context.md.j2": BASE + "{% block footer %}F{% endblock %}"})
    assert problem is not None
    assert "contxt.md.j2" in problem
    assert text.endswith("F\n")


def test_too_much_source_is_refused_whole() -> None:
    text, problem = render({"context.md.j2": "{# " + "x" * 40_000 + " #}" + BASE, "base.md.j2": "y" * 30_000})
    assert text == SHIPPED_TEXT
    assert problem is not None
    assert "65,536" in problem


def test_text_that_people_quote_and_paste_does_not_count_against_a_template() -> None:
    pasted = f"Fixes #5\n\n```\nDuplicate of #6\n{marker()}\n```\n{marker()}\nDuplicate of #7\n"
    context = context_of(
        quoted_outcome(OutcomeKind.ANSWERED, pasted), conversation=(turn("octocat", day(1, 1), pasted),)
    )
    text, problem = render({"context.md.j2": BASE}, context)
    assert problem is None
    assert "Duplicate of #6" in text


def test_a_lone_surrogate_in_a_template_is_replaced() -> None:
    text, _ = render({"context.md.j2": BASE + "{% block footer %}\ud800{% endblock %}"})
    text.encode()


def test_peoples_words_are_never_read_as_a_template() -> None:
    text = Renderer(links=GITHUB).render(CASES["hostile"][0], thread_id=1, now=NOW, searched=9).text
    assert "49" not in text


def test_text_reaches_a_template_as_it_is_shown_never_raw() -> None:
    values = "{{ i.link }}{{ i.quote }}{{ i.why }}{{ i.conversation }}"
    block = "{% block seen_before %}{% for i in seen_before %}" + values + "{% endfor %}{% endblock %}"
    text, problem = render({"context.md.j2": BASE + block}, CASES["hostile"][0])
    assert problem is None
    assert "@octocat please" not in text
    assert "<img" not in MarkdownIt("commonmark").render(text)


@pytest.mark.slow
def test_a_comment_from_a_long_override_is_shrunk_like_the_shipped_one() -> None:
    text, problem = render({"context.md.j2": BASE + "{% block footer %}" + "f" * 20_000 + "{% endblock %}"}, LONG)
    assert problem is None
    assert len(text) <= 60_000
    assert text.count("<details>") == text.count("</details>")


def test_output_over_the_limit_is_refused() -> None:
    source = "{% for a in rows %}{{ a }}{% endfor %}"
    with pytest.raises(OutputTooLong):
        Sandbox({"t": source}).render("t", {"rows": ["x" * 100] * 1_000}, 1_000)


def test_the_shipped_templates_leave_most_of_the_budget_to_a_repository() -> None:
    nothing_much = "{% for a in [0,1,2,3,4,5,6,7,8,9] %}" * 3 + "{{ a }}" + "{% endfor %}" * 3
    _, problem = render({"context.md.j2": BASE + "{% block lead %}" + nothing_much + "{% endblock %}"}, LONG)
    assert problem is None


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_no_template_raises_or_loses_the_marker(pieces: list[str]) -> None:
    text, _ = render({"context.md.j2": " ".join(pieces)})
    assert find_marker(text)


def test_the_shipped_templates_are_the_four_that_are_named() -> None:
    assert {path.name for path in Path(SHIPPED_FOLDER).glob("*.md.j2")} == set(TEMPLATE_NAMES)
    assert marker() in SHIPPED_TEXT


DOCS = SHIPPED_FOLDER.parent / "docs" / "templates.md"


def test_every_block_is_documented_and_every_documented_block_exists() -> None:
    source = "".join((SHIPPED_FOLDER / name).read_text(encoding="utf-8") for name in TEMPLATE_NAMES)
    table = DOCS.read_text(encoding="utf-8").partition("| block | holds |")[2].partition("##")[0]
    documented = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.partition(" | ")[0])}
    assert documented == set(re.findall(r"{% block (\w+)", source))


def test_every_value_that_a_template_sees_is_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", DOCS.read_text(encoding="utf-8").partition("## What a template sees")[2]))
    view = view_of(CASES["all_sections"][0], GITHUB, NOW, shipped_words())
    items = [
        item for section in ("mentioned", "seen_before", "open_now", "pages") for item in cast("Any", view[section])
    ]
    assert items
    assert set(view) | {key for item in items for key in item} <= documented
    assert set(TEMPLATE_TEXTS) <= documented


def test_the_documented_words_work() -> None:
    example = DOCS.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    text, problem = render({"words.yml": example})
    assert problem is None
    assert "**Schon einmal da gewesen**" in text
    assert "3\\. Mai 2025" in text


def test_the_documented_example_works() -> None:
    example = DOCS.read_text(encoding="utf-8").partition("```jinja\n")[2].partition("```")[0]
    text, problem = render({"base.md.j2": example})
    assert problem is None
    assert "**This came up before**" in text
