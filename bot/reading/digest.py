"""Makes the digest of a thread, enough to find and show it, and tells whether a change is visible in it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from math import log1p

from bot.domain.digest import Digest
from bot.domain.thread import Record, Reference, Thread
from bot.reading.analyzer import (
    FOREIGN_STOP_WORDS,
    bigrams,
    fold_word,
    is_english,
    token_terms,
    tokens,
    unspaced_pattern,
)
from bot.reading.endings.decisions import decisions
from bot.reading.endings.outcome import outcome
from bot.reading.markdown import first_paragraph, statements
from bot.reading.references import closed_by_text, find_references, merge_references
from bot.reading.requests import without_requests
from bot.reading.signals import find_errors, find_files, strip_boilerplate, without_addresses
from bot.reading.text_edges import cut_at_edge
from bot.reading.word_lists import COMMON_WORDS, ENGLISH_HOMOGRAPHS

MAX_SUMMARY_CHARS = 500
MAX_KEYWORDS = 20

# A digest should take 500 bytes to 2 KB, so lists keep only their first entries and long lines are cut.
_MAX_ERRORS = 4
_MAX_ERROR_CHARS = 120
_MAX_FILES = 8
_MAX_REFERENCES = 12
_MAX_KEYWORD_CHARS = 40
_MAX_COMMENTS_CHARS = 20_000

_TITLE_WEIGHT = 4.0
_BODY_WEIGHT = 1.0
_COMMENT_WEIGHT = 0.5
_CODE_WEIGHT = 1.5

_MIN_WORDS = 3
"""A reply with fewer distinct words, not counting stop words, is no summary."""

_UNSPACED_WORD_CHARS = 3
"""This many characters of a script without spaces count as a word."""

_MENTION_OR_REF = re.compile(r"(?<!\w)@[\w./-]{1,140}|(?:[\w.-]{1,100}/[\w.-]{1,100})?#\d+|\bGH-\d+", re.ASCII)
_QUOTED_LINE = re.compile(r"^[ \t]{0,3}>[^\n]*\n?", re.MULTILINE)
_POSITION = re.compile(r"(?::\d+)+$", re.ASCII)
_GENERATED_PART = re.compile(r"\d{4}|::h[0-9a-f]", re.ASCII)
_HOST = re.compile(r"www\.|[\w.-]+\.(?:com|org|edu|gov)(?:'s)?$", re.ASCII)
_NON_ENGLISH_STOP_WORDS = FOREIGN_STOP_WORDS - frozenset(map(fold_word, ENGLISH_HOMOGRAPHS))


def digest(thread: Thread, *, repo: str | None = None) -> Digest:
    """The digest of ``thread``, made from its own texts alone: the same thread always gives the same digest.

    Lists are in order of appearance, the opening text first, and cut so that the JSON is 500 bytes to 2 KB. ``repo``
    (``owner/name``) is the repository of the thread: full references to it count as its own.
    """
    opening = strip_boilerplate(thread.body)
    texts = [thread.title, opening, *(comment.text for comment in thread.comments if not comment.is_bot)]
    ending = outcome(thread, repo)
    summary, summary_by = _summary(thread, opening)
    return Digest(
        id=thread.id,
        kind=thread.kind,
        title=thread.title,
        author=thread.author,
        created_at=thread.created_at,
        updated_at=thread.revised_at,
        closed_at=thread.closed_at,
        state=thread.state,
        state_reason=thread.state_reason,
        labels=thread.labels,
        turn_count=1 + len(thread.comments),
        summary=summary,
        keywords=_keywords(texts),
        files=_gather(map(find_files, texts), _MAX_FILES),
        decisions=decisions(thread, ending),
        errors=_gather((_shorten(find_errors(text)) for text in texts), _MAX_ERRORS),
        outcome=ending,
        references=_references(thread, texts, repo),
        duplicate_of=ending.duplicate_of,
        merged_at=thread.merged_at,
        summary_by=summary_by,
    )


def _summary(thread: Thread, opening: str) -> tuple[str, str]:
    """What the first informative reply by another person says, maintainers first; otherwise the first paragraph. Then
    who says so."""
    others = (comment for comment in thread.comments if not comment.is_bot and comment.author != thread.author)
    replies = [replace(other, text=text) for other in others if (text := without_requests(other.text).strip())]
    replies.sort(key=lambda reply: not reply.by_maintainer)
    for reply in replies:
        summary = _what_it_says(reply.text)[:MAX_SUMMARY_CHARS].strip()
        if _is_informative(summary):
            return summary, reply.author
    if summary := first_paragraph(opening)[:MAX_SUMMARY_CHARS].strip():
        return summary, thread.author
    return (_own_words(replies[0].text)[:MAX_SUMMARY_CHARS].strip(), replies[0].author) if replies else ("", "")


_NO_STATEMENT = re.compile(
    r"(?:cc|ping)\b|(?:(?:hi|hello|hey|many|ok|okay|oh|ah)[\s,!]{1,3})?(?:thanks?\b|thank you|thx\b|cheers\b)"
    r"|(?:love|like) (?:it|this)\b|\+1|lgtm\b|.{0,400}[?\uff1f][\"')\]]{0,3}\Z",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of a sentence that calls somebody or thanks, or a whole question."""

_ADDRESSEES = re.compile(r"(?:@[\w-]{1,40}[,:]?\s*)+")


def _what_it_says(text: str) -> str:
    """The statements of a comment: no questions, no thanks, nothing said to one person, no bare link."""
    says = (_ADDRESSEES.sub("", one) for one in statements(text))
    says = (one for one in says if not _NO_STATEMENT.match(one))
    return " ".join(one for one in says if without_addresses(one).strip())


def _own_words(text: str) -> str:
    """A comment without the lines it quotes, unless it has no others."""
    own = _QUOTED_LINE.sub("", text).strip() if ">" in text else ""
    return own or text.strip()


def _is_informative(text: str) -> bool:
    """Whether a reply has enough words to be understood by itself: not "cc @octocat", "Fixed in #12" or "+1"."""
    reply_tokens = tokens(_MENTION_OR_REF.sub(" ", without_addresses(text)))
    words = {fold_word(token) for token in reply_tokens if not token[0].isdigit() and token_terms(token)}
    return (
        sum(len(word) // _UNSPACED_WORD_CHARS if unspaced_pattern().match(word) else 1 for word in words) >= _MIN_WORDS
    )


def _keywords(texts: list[str]) -> tuple[str, ...]:
    """The heaviest terms, as most often written. Weights add up over the title, the opening text and the comments."""
    weights: dict[str, float] = {}
    spellings: dict[str, Counter[str]] = {}
    title, opening, *rest = map(without_addresses, texts)
    comments = "\n".join(rest)[:_MAX_COMMENTS_CHARS]
    parts = [tokens(text) for text in (title, opening, comments)]
    for part, weight in zip(parts, (_TITLE_WEIGHT, _BODY_WEIGHT, _COMMENT_WEIGHT), strict=True):
        counts: Counter[str] = Counter()
        for token, count in Counter(chain.from_iterable(map(_words, part))).items():
            terms = token_terms(token)
            if terms:
                counts[terms[0]] += count
                spellings.setdefault(terms[0], Counter())[token] += count
        for term, count in counts.items():
            weights[term] = weights.get(term, 0.0) + weight * log1p(count)
    for term, forms in spellings.items():
        if len(set(token_terms(next(iter(forms))))) > 1:
            weights[term] *= _CODE_WEIGHT
    heaviest = (_most_common_spelling(spellings[term]) for term in sorted(weights, key=lambda term: -weights[term]))
    all_tokens = list(chain.from_iterable(parts))
    stop_words = (
        _NON_ENGLISH_STOP_WORDS
        if is_english(all_tokens, ascii_only=all(map(str.isascii, all_tokens)))
        else FOREIGN_STOP_WORDS
    )
    keywords = (word for word in heaviest if _is_keyword(word) and fold_word(word) not in stop_words)
    return tuple(islice(keywords, MAX_KEYWORDS))


def _words(token: str) -> Iterable[str]:
    """The words in a token: pairs of characters in a script without spaces, where a token may be a sentence."""
    return (token,) if token.isascii() or not unspaced_pattern().match(token) else bigrams(token)


def _most_common_spelling(spellings: Counter[str]) -> str:
    """A term as most often written, without a position in a file or the capital that starts a sentence."""
    word = max(spellings, key=spellings.__getitem__)
    if ":" in word:
        word = _POSITION.sub("", word)
    return word.lower() if word.istitle() and word.isalpha() else word


def _is_keyword(word: str) -> bool:
    if not (2 < len(word) <= _MAX_KEYWORD_CHARS if word.isascii() else len(word) <= _MAX_KEYWORD_CHARS):
        return False
    if word.lower() in COMMON_WORDS or word[0].isdigit():
        return False
    return not _GENERATED_PART.search(word) and not _HOST.match(word)


def _gather(lists: Iterable[Iterable[str]], limit: int) -> tuple[str, ...]:
    """The first entries of all lists together, without repetitions. Reads only as many lists as it needs."""
    kept: dict[str, None] = {}
    for item in chain.from_iterable(lists):
        kept[item] = None
        if len(kept) == limit:
            break
    return tuple(kept)


def _shorten(lines: Iterable[str]) -> Iterator[str]:
    return (cut_at_edge(line, _MAX_ERROR_CHARS) for line in lines)


def _references(thread: Thread, texts: Iterable[str], repo: str | None) -> tuple[Reference, ...]:
    """The references of the thread in order, each once, with its strongest action.

    Only its title and opening text can say what it closes.
    """
    number = thread.id if isinstance(thread.id, int) else None
    closes = closed_by_text(f"{thread.title}\n\n{thread.body}", repo)
    references = chain.from_iterable(find_references(text, repo=repo, number=number) for text in texts)
    return tuple(
        replace(one, action=None) if one.action == "closes" and not one.owner and one.number not in closes else one
        for one in merge_references(references)[:_MAX_REFERENCES]
    )


def is_visible(old: Record | None, new: Record, repo: str | None) -> bool:
    """Whether a comment that shows ``old`` may look different for ``new``, or quotes a text that is gone.

    ``old`` is None if unknown. Additional messages are no visible change until they decide something.
    """
    if not isinstance(old, Thread) or not isinstance(new, Thread):
        return True
    return not _texts(old) <= _texts(new) or _facts(old, repo) != _facts(new, repo)


def _texts(thread: Thread) -> set[tuple[int | None, str]]:
    """Its texts, each with its comment's id: if one of two identical comments is deleted, our reply stays.

    Comments count by the ids of their texts, as growing shortens those in the middle, and nobody took anything back.
    """
    return {(None, thread.title), (None, thread.body), *((comment.id, comment.text_id) for comment in thread.comments)}


def _facts(thread: Thread, repo: str | None) -> tuple[object, ...]:
    state = (thread.kind, thread.state, thread.state_reason, thread.closed_by, thread.draft, thread.merged_at)
    shown = digest(thread, repo=repo)
    return *state, thread.state_changes, shown.outcome, shown.decisions, shown.files, shown.duplicate_of
