"""Sentences with which maintainers close threads, and the kinds of ending that a human reader accepts for each.

Each thread is read all the way to its digest. A sentence that may be "unknown" is too unclear to have a kind.
"""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.endings import load_threads
from bot.domain.thread import Kind, Message, Thread, TimelineEvent
from bot.reading.digest import digest

CLOSED = datetime(2024, 5, 3, 12, 0, tzinfo=UTC)
REFERENCED = TimelineEvent("cross-referenced", CLOSED - timedelta(days=1), source=12, source_kind=Kind.PULL)
CLOSING = TimelineEvent("closed", CLOSED, source=12, source_kind=Kind.PULL)
COMMITTED = TimelineEvent("referenced", CLOSED - timedelta(days=1), commit="4f2a91c8d3b7e6f5a4c3b2d1e0f9a8b7c6d5e4f3")


class Sentence(NamedTuple):
    text: str
    accepted_kinds: frozenset[str]

    @property
    def is_clear(self) -> bool:
        return "unknown" not in self.accepted_kinds


def sentences(path: Path) -> list[Sentence]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Sentence(row["text"], frozenset(row["may_be"])) for row in rows]


NO_ENDINGS = (
    "Das ist leider noch nicht behoben.",
    "Wird in der nächsten Version behoben werden.",
    "Ich glaube, das wurde behoben.",
    "Das sollte behoben sein.",
    "Ce n'est toujours pas corrigé.",
    "Il faudrait que ce soit corrigé rapidement.",
    "Ce sera corrigé dans la prochaine version.",
    "Todavía no está resuelto.",
    "Esto debería ser corregido pronto.",
    "Cuando esté corregido aviso.",
    "Ainda não foi resolvido.",
    "Isso precisa ser corrigido.",
    "Vai ser corrigido na próxima versão.",
    "Acho que já foi corrigido.",
    "Пока не исправлено.",
    "Будет исправлено в следующей версии.",
    "Вроде исправлено.",
    "Нужно, чтобы это исправили.",
    "まだ修正されていません。",
    "次回のリリースで修正予定です。",
    "修正されたはずです。",
    "修正をお願いします。",
    "아직 수정되지 않았습니다.",
    "다음 버전에서 수정할 예정입니다.",
    "수정된 것 같습니다.",
    "수정했는데도 안 됩니다.",
    "还没有修复。",
    "下个版本会修复。",
    "应该已经修复了吧。",
    "修复了吗？",
    "已修复，但是安卓上仍然会闪退",
    "请问什么时候可以修复",
    "希望尽快解决",
    "如果已经解决了请关闭",
    "有没有人解决了这个问题",
    "这个问题修复起来比较麻烦",
    "为什么不支持这个功能",
    "没有重复",
)
"""What is not done, or not for certain, in eight languages."""

OURS = sentences(Path(__file__).with_name("closing_sentences.jsonl"))


@cache
def kind_of(text: str, *events: TimelineEvent) -> str:
    """The kind of ending of a thread that a maintainer closes a minute after this comment."""
    comment = Message("monalisa", "MEMBER", CLOSED - timedelta(minutes=1), text, id=7)
    thread = Thread(
        id=42, title="Login loops", body="It loops.", author="octocat", created_at=CLOSED - timedelta(days=90),
        state="closed", closed_at=CLOSED, closed_by="monalisa", comments=(comment,), events=events,
    )  # fmt: skip
    return digest(thread).outcome.kind.value.replace(" ", "_")


def find_mistakes(examples: Iterable[Sentence]) -> list[tuple[str, str]]:
    kinds = ((each, kind_of(each.text)) for each in examples)
    return [(each.text, kind) for each, kind in kinds if kind not in each.accepted_kinds | {"unknown"}]


def share_recognised(examples: Iterable[Sentence]) -> float:
    recognised = [kind_of(each.text) in each.accepted_kinds for each in examples if each.is_clear]
    return sum(recognised) / len(recognised)


def test_no_sentence_gets_a_kind_that_a_reader_rejects() -> None:
    assert find_mistakes(OURS) == []


def test_nearly_every_clear_sentence_gets_its_kind() -> None:
    assert share_recognised(OURS) >= 0.95


@pytest.mark.shared
def test_sentences_labelled_by_another_reader_get_the_same_kinds(shared: Path) -> None:
    examples = sentences(shared / "closing_sentences.jsonl")
    mistakes = find_mistakes(examples)
    assert len(examples) == 30
    assert len(mistakes) <= 1
    assert "fixed" not in [kind for _, kind in mistakes]
    assert share_recognised(examples) >= 0.9


@pytest.mark.shared
def test_an_apostrophe_may_be_typographic(shared: Path) -> None:
    for example in (*OURS, *sentences(shared / "closing_sentences.jsonl")):
        assert kind_of(example.text.replace("'", "’")) == kind_of(example.text), example.text


@pytest.mark.shared
def test_closings_in_other_languages_get_no_wrong_kind(shared: Path) -> None:
    rows = map(json.loads, (shared / "closings_languages.jsonl").read_text(encoding="utf-8").splitlines())
    kinds = {row["quote"]: (kind_of(row["quote"]), row["kind"]) for row in rows}
    assert len(kinds) == 18
    assert {quote: kind for quote, (kind, right) in kinds.items() if kind not in ("unknown", right)} == {}
    assert sum(kind == right != "unknown" for kind, right in kinds.values()) >= 13


@pytest.mark.parametrize("text", NO_ENDINGS)
def test_what_is_not_done_is_no_ending_in_any_language(text: str) -> None:
    assert kind_of(text) == "unknown"


@pytest.mark.shared
def test_chinese_closings_are_quoted_and_get_no_wrong_kind(shared: Path) -> None:
    threads = load_threads(shared, "weex")
    rows = [json.loads(line) for line in (shared / "endings_zh.jsonl").read_text(encoding="utf-8").splitlines()]
    wrong, quoted, named = [], 0, 0
    for row in rows:
        ending = digest(threads[row["id"]]).outcome
        kind = ending.kind.value.replace(" ", "_")
        named += kind != "unknown"
        wrong += [row["id"]] * (kind not in ("unknown", row["kind"], *row["also_ok"]))
        spoken = re.sub(r"^@[\w-]+ ", "", row["quote"])  # names that a sentence is addressed to are not quoted
        label = "".join(spoken.replace("`", "").split())
        words = "".join(ending.quote.split())
        quoted += bool(words and label and (words in label or label in words or label[:12] in words))
    assert (len(rows), wrong) == (42, [])
    assert (quoted, named) >= (33, 25), "27 and 0 with English phrases alone"


def test_a_change_that_only_mentions_the_thread_is_no_fix_if_the_words_say_otherwise() -> None:
    texts = [
        "We rejected the fix in #12.",
        "Fixed by #12, then reverted in #13.",
        "Fixed in #12. Reverted in #13.",
        "#12 would have fixed this, but it was never merged.",
        "Added to the backlog.",
        "Moved to the new tracker.",
        "#12 introduced this.",
    ]
    for text in texts:
        assert kind_of(text, REFERENCED) == "unknown", text
        assert kind_of("Closing.", REFERENCED) == "unknown", "nobody says that it was merged"
        assert kind_of(text, CLOSING) == "fixed", "that is what GitHub says"


def test_words_that_take_back_a_fix_outweigh_a_commit_near_the_closing() -> None:
    assert kind_of("Fixed by 4f2a91c, then reverted.", COMMITTED) == "unknown"
    assert kind_of("See the commit.", COMMITTED) == "unknown", "a mention is no evidence"


def test_a_version_of_another_product_is_not_the_release_that_has_the_fix() -> None:
    def release(text: str, repo: str) -> str | None:
        comment = Message("monalisa", "MEMBER", CLOSED, text)
        thread = Thread(
            id=42, title="Login loops", body="", author="octocat", created_at=CLOSED - timedelta(days=90),
            state="closed", closed_at=CLOSED, closed_by="monalisa", comments=(comment,),
        )  # fmt: skip
        return digest(thread, repo=repo).outcome.release

    assert release("Fixed in libfoo 3.2.", "octocat/hello") is None
    assert release("Fixed in libfoo 3.2.", "octocat/libfoo") == "3.2"
    assert release("Fixed in release 3.2.", "octocat/hello") == "3.2"
