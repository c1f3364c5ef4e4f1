"""Turns text in any language into index terms, the same way for stored texts and for queries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain

import Stemmer

from bot.reading.simplified import simplify
from bot.reading.text_edges import HANGUL, UNSPACED
from bot.reading.word_lists import ENGLISH_HOMOGRAPHS, FUNCTION_WORDS, RUSSIAN_STOP_WORDS, STOP_PAIRS, STOP_WORDS

_MIN_FOREIGN_WORDS = 2
_ENGLISH_PER_FOREIGN = 2

# Combining marks are dropped after Latin and Greek letters, where people leave them out when they type. In other
# scripts they make a different letter (Cyrillic short i, voiced kana, vowel signs), with two exceptions: the dots of
# the Cyrillic io, and stress marks on Cyrillic vowels.
_ACCENTED = re.compile(
    r"([A-Za-z\u00c0-\u02af\u0370-\u03ff\u1e00-\u1fff])[\u0300-\u036f]+"
    r"|([\u0435\u0415])\u0308|([\u0430\u0435\u0438\u043e\u0443\u044b\u044d-\u044f])[\u0300\u0301]"
)
# Latin letters that have no decomposition.
_SPECIAL_LETTERS = str.maketrans(
    dict(zip("øØđĐłŁħĦŧŦıðÐ", "oOdDlLhHtTidD", strict=True))
    | {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "TH"}
)
_FOREIGN_LETTER = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
_KOREAN_PARTICLES = frozenset("이가을를은는에의로도와과만")


@cache
def unspaced_pattern() -> re.Pattern[str]:
    """Matches a run of a script that is written without spaces: Thai, Lao, Myanmar, Khmer, Hangul, kana, Han."""
    return re.compile(f"([{UNSPACED}{HANGUL}]+)")


def remove_accents(word: str) -> str:
    """``word`` without accents (``Ação`` → ``Acao``, ``Straße`` → ``Strasse``, ``ё`` → ``е``), capitals kept.

    Marks that make a different letter stay: Cyrillic ``й``, voiced kana, Indic vowels. Idempotent. Time grows with the
    square of the longest run of combining marks, so pass words, not texts.
    """
    if word.isascii():
        return word
    plain = _ACCENTED.sub(lambda match: match[1] or match[2] or match[3], unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", plain).translate(_SPECIAL_LETTERS)


def fold_word(word: str) -> str:
    """``word`` in lower case and without accents, for comparison. Idempotent."""
    return word.lower() if word.isascii() else remove_accents(remove_accents(word).casefold())


def is_english(words: Sequence[str], *, ascii_only: bool) -> bool:
    """Whether the words in Latin script are English, or too few to tell.

    Counts distinct words: common function words of other languages and words with letters that English lacks, against
    the stop words of English. A text in another language is still recognised when it contains an English log.
    """
    if ascii_only and _FOREIGN_WORDS.isdisjoint(words):
        return True
    marked = () if ascii_only else (word for word in words if not word.isascii() and _FOREIGN_LETTER.search(word))
    evidence = len(_FOREIGN_WORDS.intersection(words)) + len(set(marked))
    return evidence < _MIN_FOREIGN_WORDS or _ENGLISH_PER_FOREIGN * evidence <= len(_ENGLISH_WORDS.intersection(words))


def bigrams(run: str) -> Iterator[str]:
    """The pairs of adjacent characters in a run without spaces, except those that every sentence contains.

    A single character is a term of its own, and so are a word in katakana, a Korean word without its particle, even of
    one syllable. A pair that is such a word counts twice, more than the same pair inside a longer word.
    """
    yield from _katakana_pattern().findall(run)
    yield from (stem for word in _hangul_pattern().findall(run) if len(stem := _particle_pattern().sub("", word)) > 1)
    if len(run) == 1 or (len(run) == 2 and run[1] in _KOREAN_PARTICLES):
        yield run[0]
    for at in range(len(run) - 1):
        pair = run[at : at + 2]
        if pair not in STOP_PAIRS:
            yield pair


@cache
def _katakana_pattern() -> re.Pattern[str]:
    return re.compile(r"[\u30a1-\u30fa\u30fc]{2,40}")


@cache
def _hangul_pattern() -> re.Pattern[str]:
    return re.compile(r"[\uac00-\ud7a3]{2,40}")


@cache
def _particle_pattern() -> re.Pattern[str]:
    return re.compile("(?:에서는|으로는|에게서|까지|부터|에서|에게|으로|하고|이나|에는|[이가을를은는에의로도와과만])$")


FUNCTION_CHARACTERS = frozenset(
    "的了在是和与及或就也都而但吗呢吧啊不我你他她它这那有被把给从向到对为以于时后中个のにはをがでともへや"
)
"""Characters that are words of grammar, and so neither begin nor end a word that tells something."""


def matched_part(token: str, term: str, query_terms: Container[str]) -> str:
    """The part of ``token`` to show for its ``term``: all of it, except a name that stands before a number (``Qt`` of
    ``Qt 5``), and in a script without spaces.

    There a token may be a whole sentence, so only the part around ``term`` is shown, as far as its pairs are in
    ``query_terms``, and without words of grammar at its ends. Linear in the length of the token.
    """
    if " " in token and term.isalpha():
        token = token.partition(" ")[0]
    if token.isascii() or term not in query_terms or not unspaced_pattern().match(token):
        return token
    folded = simplify(token)
    start = folded.find(term)
    end = start + len(term)
    while start > 0 and folded[start - 1 : start + 1] in query_terms:
        start -= 1
    while end < len(token) and folded[end - 1 : end + 1] in query_terms:
        end += 1
    while end - start > 1 and folded[start] in FUNCTION_CHARACTERS:
        start += 1
    while end - start > 1 and folded[end - 1] in FUNCTION_CHARACTERS:
        end -= 1
    return token[start:end]


def _case_variants(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        yield from (word, word.capitalize())


FOREIGN_STOP_WORDS = frozenset(map(fold_word, FUNCTION_WORDS))
"""Folded words in Latin script that carry no meaning outside English; in English they may."""

ALL_STOP_WORDS = STOP_WORDS.union(map(fold_word, RUSSIAN_STOP_WORDS))
"""Folded words that carry no meaning in any text."""

_FOREIGN_WORDS = frozenset(_case_variants((FUNCTION_WORDS | FOREIGN_STOP_WORDS) - STOP_WORDS - ENGLISH_HOMOGRAPHS))
_ENGLISH_WORDS = frozenset(_case_variants(STOP_WORDS)) - frozenset(_case_variants(FOREIGN_STOP_WORDS))


ANALYSER_VERSION = f"7+snowball{Stemmer.version()}"
"""Changes whenever the same text may give different terms: an index built with another value must be rebuilt."""

MAX_TERM_CHARS = 40
"""Longest term, in characters. Longer ones are machine-made: mangled symbols, keys, encoded data."""

_CACHE_TOKENS = 1 << 16
_CACHE_TOKEN_LENGTH = 64
_SLICE_CHARS = 4096
_MAX_WORD_CHARS = 4 * MAX_TERM_CHARS
_MIN_ENCODED_CHARS = 20
_ENCODED_PIECE_CHARS = 3.5

# A token is a run of word characters with single connectors inside (``std::vec``, ``file.py``, ``well-known``,
# ``don't``) and the line and column that compilers append, a word with its number (``Windows 7``, ``HTTP/2``), a number
# with separators (``16,384``), or a language such as ``C++``. Each repetition begins with a character that the previous
# one cannot match, or is bounded, so a scan never backtracks more than a few steps.
_WORD_SHAPE = (
    r"[Ll]ine \d+"
    r"|[A-Za-z](?:\+\+|#)(?!\w)"
    r"|\d{{1,3}}(?:,\d{{3}}){{1,4}}(?![\w,])"
    r"|{w}+(?:(?:::|[.'-]){w}+)*(?::\d+|(?<=[^\W\d_])[ /]v?[1-9]\d{{0,4}}(?:\.\d{{1,5}}){{0,3}}(?![\w,:/-]|\.\w))*"
)
_NUMBERED = re.compile(r"([^\W\d_]{2,30}?)(?:[ /]v?|(?<=[A-Z])v)?(\d{1,5}(?:\.\d{1,5}){0,3})")
"""A name and its number, written together or apart."""

_ASCII_TOKEN = re.compile(_WORD_SHAPE.format(w=r"\w"), re.ASCII)
_COMBINING_MARKS = (
    r"\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0df3\u0e31-\u109f\u1780-\u17d3"
)

_COMPONENT = re.compile(r"::|[.'-]")
_PIECE = re.compile(
    r"(?:i|mac|tv|watch)OS(?![A-Za-z0-9])|[A-Z]+s(?![A-Za-z0-9])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z][a-z0-9]*|[A-Z]+[0-9]*|[0-9]+[a-z]*"
)
_VERSION = re.compile(r"v?(\d{1,6}(?:\.\d{1,6}){1,3})(?:$|[-.]?(?=[a-z-]))", re.ASCII | re.IGNORECASE)
_FILE_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,4}$", re.ASCII)
_DATE_OR_TIME = re.compile(r"\d+(?:[-:]\d+)+", re.ASCII)
_STATUS_CODE = re.compile(r"0x(?:[0-9a-f]{1,4}|(?:c0|80)[0-9a-f]{6})", re.ASCII)
_HASH = re.compile(r"h?(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}", re.ASCII)

_CYRILLIC = re.compile(r"[\u0430-\u044f]+")
_PROTOCOLS = frozenset(("http", "https"))
"""Stop words, as every address has them, but names with a number."""

_UNSTEMMED = frozenset(("ios", "aws"))
"""Names that look like a plural."""

_ELISIONS = frozenset(("c", "d", "j", "l", "m", "n", "qu", "s", "t"))

_english_stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
_russian_stem: Callable[[str], str] = Stemmer.Stemmer("russian", 0).stemWord

_WordTerms = Callable[[str], Iterator[str]]


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order, with repetitions.

    Words are lower-cased and stemmed, stop words and noise (addresses, hashes, dates, line numbers, encoded data) are
    left out. An identifier gives one term for the whole of it, without separators so that ``fileName``,
    ``file_name`` and ``file-name`` agree, and one for each part. Scripts without spaces give bigrams, Chinese ones in
    Simplified characters. Time is linear in the length of the text; each term has 1 to 40 characters.

    Capitals and accents make no difference. English words are stemmed, and Russian ones by their own stemmer; other
    scripts are not. In a text of another language, words in Latin script also give a term as written, with their
    ending. So two texts with the same word share its stem even if one of them (a title, two words of a search) is too
    short to tell its language.
    """
    words = tokens(text)
    table = _ENGLISH_TERMS if is_english(words, ascii_only=text.isascii()) else _FOREIGN_TERMS
    return list(chain.from_iterable(map(table.__getitem__, words)))


def body_terms(text: str) -> list[str]:
    """The terms of an opening text without those of its issue template."""
    from bot.reading.signals import strip_boilerplate  # a search by words does not need it and starts faster without it

    return terms(strip_boilerplate(text))


def tokens(text: str) -> list[str]:
    """The pieces of ``text`` that terms are made from, as written (compatibility forms are unified)."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    runs = _any_token_pattern().findall(unify_forms(text))
    return [part for run in runs for part in ((run,) if run.isascii() else unspaced_pattern().split(run)) if part]


@cache
def _any_token_pattern() -> re.Pattern[str]:
    """Like `_ASCII_TOKEN`, plus the combining vowel signs that ``\\w`` leaves out: without them, words of Indic and
    South-East Asian scripts would fall apart."""
    return re.compile(_WORD_SHAPE.format(w=rf"[\w{_COMBINING_MARKS}]"))


@cache
def _invisible_pattern() -> re.Pattern[str]:
    return re.compile(r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")


def token_terms(token: str) -> tuple[str, ...]:
    """The terms of one element of ``tokens(text)``, the term for the whole first; empty for stop words and noise."""
    return _ENGLISH_TERMS[token]


def unify_forms(text: str) -> str:
    """The text with composed letters, without compatibility forms (full-width, ligatures) and invisible characters, and
    with a plain apostrophe."""
    if text.isascii():
        return text
    # The library sorts each run of combining marks, in time that grows with the square of its length: slices bound it.
    unify = partial(unicodedata.normalize, "NFKC")
    unified = "".join(unify(text[at : at + _SLICE_CHARS]) for at in range(0, len(text), _SLICE_CHARS))
    return _invisible_pattern().sub("", unified.replace("\u2019", "'"))


class _Terms(dict[str, tuple[str, ...]]):
    """A cache of the terms of tokens. It is emptied when full, which costs less than tracking the last use."""

    def __init__(self, word_terms: _WordTerms) -> None:
        super().__init__()
        self._word_terms = word_terms

    def __missing__(self, token: str) -> tuple[str, ...]:
        result = tuple(_analyse(token, self._word_terms))
        if len(token) <= _CACHE_TOKEN_LENGTH:
            if len(self) >= _CACHE_TOKENS:
                self.clear()
            self[token] = result
        return result


def _analyse(token: str, word_terms: _WordTerms) -> Iterator[str]:
    is_unspaced = not token.isascii() and unspaced_pattern().match(token)
    return bigrams(simplify(token)) if is_unspaced else _analyse_spaced(token, word_terms)


def _analyse_spaced(token: str, word_terms: _WordTerms) -> Iterator[str]:
    token = _without_position(token)
    if _is_noise(token):
        return
    if token.endswith(("+", "#")):
        yield token.lower()
        return
    token = token.strip("_").replace(",", "")
    numbered = _NUMBERED.fullmatch(token)
    if numbered and not _HASH.fullmatch(token.lower()):
        yield from _numbered_terms(numbered[1], numbered[2], word_terms)
        if "." in numbered[2] or numbered[0][len(numbered[1])] in " /":  # most names with a number are machine-made
            yield from _analyse_spaced(numbered[2], word_terms)
        return
    token, _, number = token.partition(" ")
    if number:
        yield from _analyse_spaced(number, word_terms)
    if token.startswith("0x"):
        yield token.lower()
        return
    version = _VERSION.match(token)
    if version:
        yield version[1]
        token = token[version.end() :]
    components = [_pieces(component) for component in _COMPONENT.split(_without_contraction(token))]
    if len(components) > 1:
        yield from _joined_terms([piece for pieces in components for piece in pieces], word_terms)
    for pieces in components:
        if len(pieces) > 1:
            yield from _joined_terms(pieces, word_terms)
        for piece in pieces:
            yield from word_terms(piece)


def _numbered_terms(name: str, number: str, word_terms: _WordTerms) -> Iterator[str]:
    """One term for the whole, so that ``OAuth 2`` and ``OAuth2`` agree, and the terms of the name."""
    folded = fold_word(name)
    if folded not in ALL_STOP_WORDS or folded in _PROTOCOLS:
        yield from word_terms(folded + number.replace(".", ""))
    yield from _analyse(name, word_terms)


def _pieces(component: str) -> list[str]:
    """The words inside an identifier; none if they are so short that the identifier must be encoded data."""
    if not component.isascii():
        return [piece for part in component.split("_") if len(part) <= _MAX_WORD_CHARS for piece in _plain_pieces(part)]
    pieces = _PIECE.findall(component)
    if len(component) >= _MIN_ENCODED_CHARS and len(component) < _ENCODED_PIECE_CHARS * len(pieces):
        return []
    return pieces


def _plain_pieces(part: str) -> list[str]:
    plain = remove_accents(part)
    return _pieces(plain) if plain.isascii() else [plain]


def _without_position(token: str) -> str:
    """Cuts ``:12:3`` after a file name, and all of ``line 12``; a number after a word stays (``error:404``)."""
    if token[1:5] == "ine " and token[0] in "Ll":
        return ""
    head, colon, number = token.partition(":")
    at_file = colon and not number.startswith(":") and _FILE_EXTENSION.search(head)
    return head if at_file else token


def _without_contraction(token: str) -> str:
    """Cuts English endings after an apostrophe, and French and Italian articles before one."""
    head, apostrophe, tail = token.rpartition("'")
    if not apostrophe:
        return token
    if tail.lower() in ("s", "t", "d", "m", "re", "ve", "ll"):
        return head
    return tail if head.lower() in _ELISIONS else token


def _is_noise(token: str) -> bool:
    if not token or token.isalpha():
        return False
    lowered = token.lower()
    if lowered.startswith("0x"):
        return not _STATUS_CODE.fullmatch(lowered)
    return bool(_DATE_OR_TIME.fullmatch(token)) or token.startswith("_ZN")


def _joined_terms(pieces: list[str], word_terms: _WordTerms) -> Iterator[str]:
    if sum(map(len, pieces)) <= MAX_TERM_CHARS and len(pieces) > 1:
        yield from word_terms("".join(pieces))


def _word_terms(piece: str) -> Iterator[str]:
    word = piece.lower() if piece.isascii() else fold_word(piece)
    if not 2 <= len(word) <= MAX_TERM_CHARS:
        return
    if word.isalpha():
        if word not in ALL_STOP_WORDS:
            yield _stem(word)
    elif word.isdigit():
        if len(word) <= 6:
            yield word
    elif not _HASH.fullmatch(word):
        yield word


def _foreign_word_terms(piece: str) -> Iterator[str]:
    """The stem, and the word itself where the script does not identify the language."""
    word = fold_word(piece)
    if word not in FOREIGN_STOP_WORDS:
        for term in _word_terms(word):
            yield term
            if term != word and word.isascii():
                yield word


def _stem(word: str) -> str:
    if word.isascii():
        return word if word in _UNSTEMMED else _english_stem(word)
    return _russian_stem(word) if _CYRILLIC.fullmatch(word) else word


_ENGLISH_TERMS = _Terms(_word_terms)
_FOREIGN_TERMS = _Terms(_foreign_word_terms)
