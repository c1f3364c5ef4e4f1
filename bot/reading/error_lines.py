"""Reads the lines of a text that state an error: a key that is the same in two people's reports, and index terms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice

from bot.reading.signals import find_errors, normalise_error

MAX_EXCEPTIONS = 20
MIN_MESSAGE_WORDS = 3
"""Minimum words of a panic's message: shorter ones are used for any failure."""

OPENING_WORDS = 4
"""Words at the beginning of a message that two texts must share. Prose may follow it."""

_FAILURE_WORDS = """
a abi abort aborted aborting an and assert assertion at build cannot cc clang code collect command compilation compiler
compiling completed core could crash crashed due dumped dylib err error errors exception exe exit exited fail failed
failing fails failure fatal fault for gcc has ignored in internal invocation is ld libc line link linker linking main
make measured message multiple not npm nsexception of on panic panicked passed previous process program received result
returned run runtime see segfault segmentation sigabrt signal sigsegv skipped stack status stopping task terminate
terminated terminating test tests the thread to type uncaught unexpected unnamed unwind use v waiting warning was with
xcode
"""
FAILURE_VOCABULARY = frozenset(_FAILURE_WORDS.split())
"""A line of nothing but these words says that something failed, but not what."""

_COMMON_EXCEPTION_NAMES = """
AssertionError AttributeError EOFError FileNotFoundException FileNotFoundError IOError IOException ImportError
IndexError IndexOutOfBoundsException IllegalArgumentException IllegalStateException InvalidOperationException KeyError
ModuleNotFoundError NameError NoMethodError NullPointerException NullReferenceException OSError ArgumentError
ArgumentException OutOfMemoryError ArrayIndexOutOfBoundsException ClassCastException ClassNotFoundException
ConcurrentModificationException NoSuchMethodError NumberFormatException PermissionError RangeError RecursionError
ReferenceError RuntimeError RuntimeException SQLException StackOverflowError StandardError SyntaxError SystemError
TimeoutError TimeoutException TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError
UnhandledPromiseRejectionWarning UnsupportedOperationException ValueError ZeroDivisionError
"""
COMMON_EXCEPTIONS = frozenset(_COMMON_EXCEPTION_NAMES.split())
"""Types that any program raises: without a message they say no more than that something failed."""

_BARE_MESSAGE = re.compile(
    r"(?:uncaught )?(?:[\w.:-]{1,60}: ){0,3}"
    r"(?:maximum call stack size exceeded|maximum recursion depth exceeded|stack overflow|broken pipe|bus error"
    r"|(?:javascript heap )?out of memory|(?:integer )?division by zero|segmentation fault|invalid syntax"
    r"|(?:list |string |array )?index out of (?:range|bounds)|unexpected end of (?:json )?input)\W{0,9}",
    re.ASCII | re.IGNORECASE,
)
"""What a language says of such a type, whatever the program."""

_BARE_TYPE = re.compile(r"(?:\w{1,60}(?:::|\.)){0,8}\w{0,60}(?:Error|Exception|Warning)", re.ASCII)
"""A type of errors without a message is a name like others: what failed, nobody says."""

_EXCEPTION = re.compile(
    r"(?<![\w.:/$@-])(?:[A-Za-z]\w{0,40}(?:::|\.)){0,4}[A-Z][a-z0-9]{1,30}(?:[A-Z][a-z0-9]{0,30}){1,8}: "
    r"[A-Za-z][\w'-]{0,30}(?: [^\s`\"]{1,40}){2,16}",
    re.ASCII,
)
"""``RelayBadGateway: upstream closed the connection``: a class name and at least three words."""

_PANIC = re.compile(r"\b(?:panicked|failed) at '(.+?)(?:'(?:,.*)?$|$)")
_ASSERTION = re.compile(
    r"\bAssertion (?:failed: (?P<bare>.+?)(?:, (?:function|file) [^\n]*)?$"
    r"|[`'\"\u2018](?P<quoted>.+)['\"\u2019] failed\b)"
)
_ASSERTED_TEXT = re.compile(r"&& ?\"([^\"\n]+)\"")
"""``assert(condition && "what went wrong")``."""

_CLAUSE_END = re.compile(r"[.,;!?]+(?:\s|\Z)")
_PLACEHOLDER = re.compile(r"<(?:n|name|path)>")
LETTERS = re.compile(r"[^\W\d_]+")
_LINE_MARK = "="
"""The first character of a line's term, which no word has."""


def error_lines(found_errors: Iterable[str], text: str) -> dict[str, str]:
    """The errors of a text in order, by a key that is the same in two people's reports.

    Anything that looks like an exception with its message counts too; its key is the beginning of the message.
    """
    errors: dict[str, str] = {}
    for line in found_errors:
        if _BARE_TYPE.fullmatch(line) or _BARE_MESSAGE.fullmatch(line.strip()):
            continue
        panic = _PANIC.search(line)
        errors.setdefault(_error_key(line), panic[1] if panic else line)
    for raised in islice(_EXCEPTION.finditer(text), MAX_EXCEPTIONS):
        line = _CLAUSE_END.split(raised[0], maxsplit=1)[0]
        if _BARE_MESSAGE.fullmatch(line):
            continue
        opening = normalise_error(line).split()[: 1 + OPENING_WORDS]
        errors.setdefault(" ".join(opening), line)
    errors.pop("", None)
    return errors


def raised_message(line: str) -> str | None:
    """The message of a panic or of a failed assertion, which says everything; None for other errors."""
    if panic := _PANIC.search(line):
        return panic[1]
    if assertion := _ASSERTION.search(line):
        claim = assertion["bare"] or assertion["quoted"]
        asserted = _ASSERTED_TEXT.search(claim)
        return asserted[1] if asserted else claim
    return None


def _error_key(line: str) -> str:
    """A key that lines about the same error share; "" for a line that does not say what failed.

    For a panic or a failed assertion it is the message including its names, which distinguish them.
    """
    message = raised_message(line)
    if message:
        form = normalise_error(message.replace("`", " ").replace("'", " "))
        return form if len(LETTERS.findall(form)) >= MIN_MESSAGE_WORDS else ""
    form = normalise_error(line)
    if says_what_failed(_PLACEHOLDER.sub(" ", form)):
        return form
    return line.strip().lower() if says_what_failed(line.lower()) else ""


def says_what_failed(line: str) -> bool:
    return bool(telling_words(line))


def telling_words(line: str) -> list[str]:
    """The words of an error in lower case that say what failed."""
    return [word for word in LETTERS.findall(line.lower()) if word not in FAILURE_VOCABULARY]


def line_terms(title: str, body: str) -> dict[str, bool]:
    """A term for each error that a text states, and whether the error is vague: threads that hold the same line have
    its term in common.

    Words alone cannot tell: many threads hold all words of a short line somewhere. A mere name is vague, and so is the
    assertion of a library, which anything that misuses the library runs into.
    """
    text = f"{title}\n{body}"
    return {line_term(key): _is_vague(key, line) for key, line in error_lines(find_errors(text), text).items()}


def _is_vague(key: str, line: str) -> bool:
    return len(key.split()) == 1 or bool(_ASSERTION.search(line))


def is_line(group: Iterable[str]) -> bool:
    """Whether these terms are the term of a line."""
    return [term[:1] for term in group] == [_LINE_MARK]


def line_term(key: str) -> str:
    return _LINE_MARK + blake2b(key.encode("utf-8", "replace"), digest_size=6).hexdigest()
