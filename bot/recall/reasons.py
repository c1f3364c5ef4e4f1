"""Says why a thread was found: the errors, files, names and distinctive words that two texts share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from bot.domain.reason import Reason
from bot.reading.analyzer import FUNCTION_CHARACTERS, matched_part, terms, token_terms, tokens, unspaced_pattern
from bot.reading.error_lines import (
    COMMON_EXCEPTIONS,
    FAILURE_VOCABULARY,
    LETTERS,
    error_lines,
    line_term,
    raised_message,
    says_what_failed,
    telling_words,
)
from bot.reading.signals import find_errors, find_files, find_identifiers, without_addresses
from bot.reading.simplified import simplify
from bot.reading.word_lists import COMMON_WORDS
from bot.recall.mentions import telling_files

_MACHINE_LINE = re.compile(
    r"[ \t>]*(?:#?\d{1,4}:?[ \t]+(?:0x[0-9a-f]|- |\w+(?:::|\.)\w)|at (?:\S+ ?[:(]|/)|File \"|make(?:\[\d+\])?: "
    r"|[^ \n]{0,200} recipe for target|note: (?:run with|the compiler|we would appreciate))",
    re.ASCII,
)
"""The beginnings of lines in stack traces and in the output of make, and a compiler's request for a bug report."""

_MACHINE_TEXT = re.compile(
    r"(?:task|thread) '[^'\n]{0,80}' (?:panicked|failed) at"
    r"|(?<![\w/\\])(?:[A-Za-z]:)?[\w.@+~-]{0,80}(?:[/\\][\w.@+~-]{1,80}){2,40}(?::\d+)*"
    r"|(?<![\w.-])[\w-]{1,80}(?:\.[A-Za-z]{1,4}(?::\d+)+|:\d+:\d+)"
    r"|\b[\w.-]{1,40}@[\w.-]{1,80}"
    r"|\[(?:[fb]g\d{1,3},\d{1,3},\d{1,3};|\d{1,3}(?:;\d{1,3}){0,4}m)"
    r"|\b(?i:maximum call stack size exceeded|(?:heap |ran )?out of memory|index out of (?:bounds|range)"
    r"|undefined is not an? \w{1,10}|cannot read propert(?:y|ies) of (?:undefined|null)|no such file or directory"
    r"|object reference not set to an instance of an object|connection (?:refused|reset by peer)|permission denied"
    r"|segmentation fault|division by zero)\b",
    re.ASCII,
)
"""Panics, paths, positions in files, prompts, e-mail addresses, codes for colours in a terminal, and the messages of
runtimes, which any program may end with."""


def strip_machine_output(text: str) -> str:
    """``text`` without stack frames, paths, positions, prompts and the output of make. Linear in its length."""
    lines = without_addresses(text).split("\n")
    return "\n".join(_MACHINE_TEXT.sub(" ", line) for line in lines if not _MACHINE_LINE.match(line))


MAX_REASONS = 3
MAX_TERMS = 4
MIN_ERROR_WORDS = 3
MIN_SHARED_WORDS = 2
"""A single word is no reason: any word is in many texts."""

MAX_WORD_CHARS = 40
"""Longest word that is shown, in characters; longer ones are generated."""

LONG_ERROR_CHARS = 60
"""A longer error, in characters, loses its beginning if that says only that it is an error."""

FAILURE_CONTEXT_CHARS = 24
"""A failure word within this many characters before a constant makes the constant an error."""

_PLAIN_WORDS = """
already answer answers available bit branch broken builds check checkout contains default different directory document
documents due empty exact exactly folder full general git github head higher home impossible internal left list longer
lower main making many mark master maybe method methods missing move moved multiple name named names needed none null
number numbers object objects option options parameter parameters part parts pass passed place places reached
regression remove removed replace right second several side similar simple single size sizes small specific step steps
string strings text thing things third times total type types unable unknown update updated useful valid value values
various warn word words zero zeros
"""
_STOP_WORDS = COMMON_WORDS | FAILURE_VOCABULARY | frozenset(_PLAIN_WORDS.split())
"""Words found in any text about software, which nobody would give as a reason."""

_TITLE_WORD = re.compile(r"\w+(?:['.-]\w+)*")
_COLON = re.compile(r": (?=.)|：(?=.)", re.DOTALL)
_ERROR_POSITION = re.compile(r"(?:(?:…|<[\w ]{1,40}>\S{0,40}|\S{0,160}:\d+(?::\d+)*:?|\d+:\d+)\s+)+", re.ASCII)
"""The position of an error, which compilers write before its message."""

_SEPARATOR = re.compile(r"[\\/]")
_ABSOLUTE_PATH = re.compile(r"(?:[A-Za-z]:)?[\\/]", re.ASCII)
_CALENDAR_WORDS = """
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
"""
_CALENDAR = frozenset(_CALENDAR_WORDS.split())
_POSITION = re.compile(r"(?::\d+)+$", re.ASCII)
_GENERATED = re.compile(
    r"^0x|\d{4}|::h[0-9a-f]|^_Z|[0-9a-f]{12}"
    r"|(?:^|[_-])(?i:x86|i\d86|x64|win(?:32|64)|amd64|arm\w{0,4}|aarch64)(?:[_-]|$)",
    re.ASCII,
)
"""Addresses, dates, mangled names, hashes, and build targets."""

_STANDARD_NAME = re.compile(r"(?:Option|Result)::(?:unwrap|expect)\w*|std::\w+|java\.(?:lang|util)(?:\.\w+)*", re.ASCII)
"""Names of standard libraries that are in any program's messages."""

_SCRATCH_FILE = re.compile(
    r"(?i:tmp|temp|tests?|foo|bar|baz|main|hello|example|[a-z]|\d{1,4})\d{0,4}\.\w{1,8}", re.ASCII
)

_CODE = re.compile(r"::|[a-z0-9][A-Z]|\w_\w|[a-z]\.[a-z]|[A-Za-z]\d[A-Za-z]", re.ASCII)
_FAILURE = re.compile(
    r"(?<![a-z])err(?![a-z])|error|abort|corrupt|crash|denied|exception|fail|illegal|invalid|mismatch|panic|raise|refus"
    r"|reject|throw|violat|warn",
    re.IGNORECASE,
)
_CONSTANT_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+", re.ASCII)
_FRAMEWORK_FRAME = re.compile(
    r"^[ \t]*at (?:java|javax|jdk|sun|com\.sun|android|androidx|com\.android|dalvik|kotlin|kotlinx|scala"
    r"|org\.(?:springframework|apache|junit|gradle|eclipse|jetbrains|hibernate)|io\.netty|System|Microsoft)\.[^\n]*$"
    r"|^[ \t]*at (?:[^\n(]*\()?"
    r"(?:node:|internal/|(?:vm|module|events|timers|net|fs|stream|bootstrap_node|_\w{1,40})\.js:)[^\n]*$",
    re.ASCII | re.MULTILINE,
)
"""A frame in a file of a framework or of the runtime, which says nothing about this project."""

_BUILD_MACRO = re.compile(r"(?:A[CMHSX]|LT|M4|PKG|CMAKE)_", re.ASCII)
"""Prefixes of build systems' macros, which occur in errors but are not errors."""


@dataclass(frozen=True, slots=True)
class SharedSignals:
    """The error lines (as the first text has them), file paths and identifiers that two texts share.

    ``quoted`` maps an error line that the other text words differently to the words in common, with … between them;
    ``lines`` maps each error to its term in the index.
    """

    errors: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    quoted: Mapping[str, str] = field(default_factory=dict, compare=False)
    lines: Mapping[str, str] = field(default_factory=dict, compare=False)

    def words(self) -> Iterator[frozenset[str]]:
        """The terms of each signal: for an error that of its line; for a path those of the file and its folder, as the
        rest is specific to a machine."""
        return map(self._terms, (*self.errors, *self.files, *self.names))

    def only(self, is_specific: Callable[[frozenset[str]], bool]) -> SharedSignals:
        """Only the signals whose terms are in few threads."""

        def select(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(value for value in values if is_specific(self._terms(value)))

        return replace(self, errors=select(self.errors), files=select(self.files), names=select(self.names))

    def stated_in(self, text: str) -> SharedSignals:
        """Only the files and identifiers that this part of the first text contains."""
        files, names = (tuple(value for value in values if value in text) for values in (self.files, self.names))
        return replace(self, files=files, names=names)

    def _terms(self, value: str) -> frozenset[str]:
        if value in self.files:
            return frozenset(terms("/".join(_SEPARATOR.split(value)[-2:])))
        return frozenset((self.lines[value],) if value in self.lines else terms(self.quoted.get(value, value)))


@dataclass(frozen=True, slots=True)
class OpeningSignals:
    """An opening text with its title, and its signals; errors are by a key that is the same in two people's reports."""

    text: str
    errors: Mapping[str, str]
    files: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def states_error(self) -> bool:
        """Whether it states an error in words: a mere name may only be mentioned."""
        return any(" " in key for key in self.errors)


def opening(title: str, body: str) -> OpeningSignals:
    """The signals of a thread's title and opening text."""
    text = f"{title}\n{body}"
    files = find_files(_FRAMEWORK_FRAME.sub("", text))
    return OpeningSignals(
        text, error_lines(find_errors(text), text), files, find_identifiers(strip_machine_output(text))
    )


def stored_signals(errors: Sequence[str], files: Sequence[str], names: Sequence[str]) -> OpeningSignals:
    """The signals of a text of which only these, found by `opening`, were stored."""
    text = "\n".join(errors)
    return OpeningSignals(text, error_lines(errors, text), tuple(files), tuple(names))


def shared_signals(ours: OpeningSignals, theirs: OpeningSignals) -> SharedSignals:
    """The signals that two opening texts share.

    Error lines match if they are equal with numbers, paths and quoted names masked, or word for word if masking leaves
    nothing distinctive. Lines that say only that something failed never match.
    """
    same = {ours.errors[key]: line for key, line in theirs.errors.items() if key in ours.errors}
    files, names = set(theirs.files), set(theirs.names)
    return SharedSignals(
        tuple(same),
        tuple(path for path in ours.files if path in files),
        tuple(name for name in ours.names if name in names),
        {line: _common_words(line, other) for line, other in same.items()},
        {line: line_term(key) for key, line in ours.errors.items() if line in same},
    )


def has_whole_error(shared: SharedSignals, line_terms: Collection[str]) -> bool:
    """Whether both texts state an error with one of these terms in the same words, names included, and in enough of
    them to be no coincidence."""
    return any(
        shared.lines[line] in line_terms
        and shared.quoted[line] == line
        and min(len(line.split()), len(telling_words(line))) >= MIN_ERROR_WORDS
        for line in shared.errors
    )


def reasons(
    text: str,
    shared: SharedSignals,
    words: Mapping[str, bool],
    theirs: Collection[str] = (),
    *,
    is_same: bool = False,
    titles: str = "",
) -> tuple[str, ...]:
    """The reasons, strongest first: the same title, error, file, shared identifiers, shared words.

    ``titles``: what `common_title` says of both. Words that stand together there are not named one by one.

    ``words`` maps terms of ``text`` to whether they are specific here; others count only if written as code. A single
    word is no reason, and a single name is one only if it is in the title: a function that everything calls is not the
    subject. ``theirs`` are all terms of the other text. For the same text (``is_same``) only that and the error are
    given. Code is between backticks. The values are strangers' text and not yet harmless.
    """
    lines = [line for line in shared.errors if _says_enough(shared.quoted.get(line, line))]
    errors = [line for line in lines if _is_error(line, text)]
    found: list[str] = [Reason.TEXT] if is_same else [Reason.TITLE] if titles == Reason.TITLE else []
    found += [f"{Reason.ERROR}`{_code_text(_telling_part(shared.quoted.get(errors[0], errors[0])))}`"] if errors else []
    if is_same:
        return tuple(found)
    if files := telling_files(path for path in shared.files if not _is_scratch_file(path)):
        found.append(f"{Reason.FILE}`{_code_text(_short_path(files[0]))}`")
    others = [line for line in lines if line not in errors]
    candidates = (name for name in dict.fromkeys((*others, *shared.names)) if not _is_everywhere(name))
    names = [name for name in candidates if not _is_contained(name, found)]
    names = [name for name in names if name.removesuffix("s") not in names or not name.endswith("s")]
    if names and len(found) < MAX_REASONS:
        found.append(Reason.NAMES + " and ".join(f"`{_code_text(name)}`" for name in names[:2]))
    is_lone = len(found) == len(names) == 1
    shared_words = _shared_words(text, words, theirs, found) if len(found) < MAX_REASONS else []
    if sum(map(_count_words, shared_words)) >= MIN_SHARED_WORDS:
        phrase = titles.removeprefix(Reason.PHRASE) if titles.startswith(Reason.PHRASE) else ""
        others = [word for word in shared_words if not _is_contained(word.strip("`"), [phrase])]
        found += [titles] if len(others) < len(shared_words) else []
        found += [Reason.WORDS + ", ".join(others)] if others else []
    elif is_lone and names[0].lower() not in text.partition("\n")[0].lower():
        return ()
    return tuple(found[:MAX_REASONS])


MIN_PHRASE_WORDS = 2


def common_title(one: str, other: str, *, is_same: bool) -> str:
    """The reason that is in the titles: that they are the same, or else words in a row that both have, singular or
    plural, without the marks between them; "" without at least two that say something."""
    if is_same:
        return Reason.TITLE
    ours, theirs = (_TITLE_WORD.findall(strip_machine_output(title)) for title in (one, other))
    matcher = SequenceMatcher(None, list(map(_stem, ours)), list(map(_stem, theirs)), autojunk=False)
    phrases = [_without_small_words(ours[at : at + size]) for at, _, size in matcher.get_matching_blocks()]
    longest = max(phrases, key=_telling_count)
    return Reason.PHRASE + " ".join(longest) if _telling_count(longest) >= MIN_PHRASE_WORDS else ""


def _stem(word: str) -> str:
    return next(iter(terms(word)), word.lower())


def _without_small_words(words: list[str]) -> list[str]:
    """The words without "the", "in" and the like at both ends."""
    searchable = [at for at, word in enumerate(words) if terms(word)]
    return words[searchable[0] : searchable[-1] + 1] if searchable else []


def _telling_count(words: Iterable[str]) -> int:
    return sum(1 for word in words if _is_telling(word) and terms(word))


def surface_forms(text: str, wanted_terms: Iterable[str], shared_terms: Collection[str] = ()) -> dict[str, str]:
    """The words of ``text`` behind ``wanted_terms``, by term, in the order of ``wanted_terms``.

    A word that also occurs without a capital letter is written without one. In scripts without spaces a word extends as
    far as ``shared_terms`` do.
    """
    forms: dict[str, str] = {}
    ordered_terms = list(wanted_terms)
    term_set = frozenset(ordered_terms)
    run_terms = term_set.union(shared_terms)
    for token in tokens(text):
        for term in term_set.intersection(token_terms(token)):
            form = forms.get(term) or forms.setdefault(term, matched_part(token, term, run_terms))
            if form.istitle() and token == form.lower():
                forms[term] = token
    return {term: forms[term] for term in ordered_terms if term in forms}


def _shared_words(
    text: str, words: Mapping[str, bool], theirs: Collection[str], earlier_reasons: Sequence[str]
) -> list[str]:
    plain = without_addresses(text)
    specific_by_form: dict[str, bool] = {}
    for term, form in surface_forms(plain, words, theirs).items():
        is_specific = words[term] and not _is_bridge(term, form, words)
        specific_by_form[form] = specific_by_form.get(form, False) or is_specific
    forms = [
        form
        for form, specific in specific_by_form.items()
        if (_is_whole(form, words) if _CODE.search(form) else specific)
    ]
    telling = [
        form for form in forms if _is_telling(form) and not _is_contained(_POSITION.sub("", form), earlier_reasons)
    ]
    longest = [form for form in telling if not _is_contained(form, (other for other in telling if other != form))]
    return [f"`{_code_text(form)}`" if _CODE.search(form) else form for form in longest[:MAX_TERMS]]


def _is_bridge(term: str, form: str, words: Mapping[str, bool]) -> bool:
    """Whether a pair of characters only joins two words of a run that are common (``现问`` in ``出现问题``)."""
    form = simplify(form)
    at = form.find(term) if len(term) < len(form) and unspaced_pattern().match(term) else 0
    before, after = form[max(0, at - 1) : at + 1], form[at + 1 : at + 3]
    return 0 < at < len(form) - 2 and not (words.get(before) or words.get(after))


CHARACTERS_PER_WORD = 2.5
"""Average length of a word in scripts without spaces."""


def _count_words(form: str) -> int:
    is_unspaced = not form.isascii() and unspaced_pattern().fullmatch(form)
    return max(1, round(len(form) / CHARACTERS_PER_WORD)) if is_unspaced else 1


def _is_whole(name: str, words: Mapping[str, bool]) -> bool:
    """Whether both texts contain the whole name, not only one of its words."""
    return any(term in words for term in terms(name)[:1])


def _is_telling(word: str) -> bool:
    plain = word.lower()
    if len(word) > MAX_WORD_CHARS or plain in _STOP_WORDS or plain in _CALENDAR or not LETTERS.search(word):
        return False
    return not (_is_everywhere(word) or word in FUNCTION_CHARACTERS or (word.isascii() and len(word) < 2))


def _is_everywhere(name: str) -> bool:
    """Whether a machine made the name, or any program's messages have it."""
    is_made = _GENERATED.search(name) or _STANDARD_NAME.fullmatch(name)
    return bool(is_made) or name in COMMON_EXCEPTIONS or _is_scratch_file(name)


def _is_scratch_file(path: str) -> bool:
    """Whether it is a file that people make to show a problem, on no path."""
    return bool(_SCRATCH_FILE.fullmatch(_POSITION.sub("", path)))


def _telling_part(line: str) -> str:
    """An error without its beginning: its position, and words that only say that there was an error."""
    message, lead = raised_message(line), _ERROR_POSITION.match(line)
    if message or not (lead or len(line) > LONG_ERROR_CHARS):
        return message or line
    rest = line[lead.end() :] if lead else line
    while (colon := _COLON.search(rest)) and not says_what_failed(rest[: colon.start()].lower()):
        rest = rest[colon.end() :]
    return rest


def _short_path(path: str) -> str:
    """The path; only the file and its folder if the path is on somebody's machine."""
    return "/".join(_SEPARATOR.split(path)[-2:]) if _ABSOLUTE_PATH.match(path) else path


def _common_words(line: str, other: str) -> str:
    """The words of ``line`` that ``other`` has too, in order, with … for the rest."""
    words, others = line.split(), other.split()
    if words == others or line.lower() == other.lower():
        return line
    matcher = SequenceMatcher(None, [word.lower() for word in words], [word.lower() for word in others], autojunk=False)
    parts = (words[i:j] if tag == "equal" else ["…"] for tag, i, j, *_ in matcher.get_opcodes())
    return " ".join(word for part in parts for word in part)


def _is_error(line: str, text: str) -> bool:
    """Whether to call it an error: a constant (``WINDOW_UPDATE``) only with a failure word in or before it."""
    if _BUILD_MACRO.match(line):
        return False
    if not _CONSTANT_NAME.fullmatch(line) or _FAILURE.search(line):
        return True
    before = (
        text[max(0, found.start() - FAILURE_CONTEXT_CHARS) : found.start()]
        for found in re.finditer(re.escape(line), text)
    )
    return any(_FAILURE.search(words.rpartition("\n")[2]) for words in before)


def _says_enough(quoted: str) -> bool:
    """Whether an error of which only a part is the same says what failed: often the names that differ do."""
    part = _telling_part(quoted)
    return "…" not in part or len(telling_words(part)) > MIN_ERROR_WORDS


def _is_contained(word: str, texts: Iterable[str]) -> bool:
    return any(word.lower() in text.lower() for text in texts)


def _code_text(text: str) -> str:
    return text.replace("`", "'").strip()
