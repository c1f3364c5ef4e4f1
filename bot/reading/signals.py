"""Finds the exact names in a text (errors, files, versions, identifiers, quotations) and removes template text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from bot.reading.word_lists import PRODUCT_NAMES, TEMPLATE_HEADINGS

MAX_KEYWORDS = 40
MAX_KEYWORD_CHARS = 160

_QUOTATION = re.compile(
    r"`([^`\n]{2,160})`|\"([^\"\n]{2,160})\"|\u201c([^\u201d\n]{2,160})\u201d|\u00ab([^\u00bb\n]{2,160})\u00bb"
)
_SYMPTOM = re.compile(
    r"\b(?:error|exception|crash(?:e[sd])?|fails? with|says|panic(?:ked)?)\b:? ?([^\n]{3,80})", re.IGNORECASE
)


def quotations(text: str) -> tuple[str, ...]:
    """The texts in quotation marks or code spans, in order, without repetitions, at most MAX_KEYWORDS."""
    texts = (next(filter(None, match.groups())).strip() for match in _QUOTATION.finditer(text))
    return tuple(dict.fromkeys(one for one in texts if one))[:MAX_KEYWORDS]


def keywords(text: str) -> tuple[str, ...]:
    """The parts of a text that are worth searching for, strongest first.

    Quotations, error messages, words after "error" or "crash", names of files and identifiers: at most MAX_KEYWORDS,
    each at most MAX_KEYWORD_CHARS characters.
    """
    prose = without_addresses(strip_boilerplate(text))
    symptoms = (match[1].strip() for match in _SYMPTOM.finditer(prose))
    parts = dict.fromkeys(
        (*find_errors(prose), *quotations(prose), *symptoms, *find_identifiers(prose), *find_files(prose))
    )
    return tuple(one[:MAX_KEYWORD_CHARS] for one in parts if one)[:MAX_KEYWORDS]


MAX_SIGNALS = 20
"""Maximum number of signals of one kind kept for a text."""

MAX_ERROR_CHARS = 200
"""Longest error, in characters."""

_MAX_PATH_CHARS = 160
_MAX_IDENTIFIER_CHARS = 60

_URL = re.compile(r"(?:https?|ftp|file)://\S+", re.ASCII)
_ERROR_MARK = re.compile(
    r"\b(?:[Ee]rror|ERROR)(?:\[\w{1,12}\])?\s?:|\bpanicked at\b|\b(?:[Ff]atal|FATAL)(?: error)?:|\bFAILED\b"
    r"|\bSIG(?:SEGV|ABRT|ILL|BUS|FPE|KILL|TERM|PIPE|TRAP)\b|\b[Ss]egmentation fault\b|\binternal compiler error\b"
    r"|\bHTTP(?:/[\d.]{1,3})? [45]\d\d\b|\b[Ss]tatus(?: code)?:? [45]\d\d\b|\b[Uu]ncaught \w"
    r"|\bAssertion (?:failed: |[`'\"\u2018])"
    r"|^[ \t>]*[A-Za-z_][\w.]{0,80}(?:Error|Exception|Warning|Exit|Interrupt)\b(?=:|$)",
    re.ASCII | re.MULTILINE,
)
_QUOTED_ERROR = re.compile(r"\b[Ee]rrors?\b[^\n\"`\u201c]{0,40}[\"`\u201c]([^\n\"`\u201d]{8,200})[\"`\u201d]")
_TEST_FAILURE = re.compile(
    r"^[ \t>]*("
    r"--- FAIL: \S{1,120}"  # Go
    r"|(?:FAIL|ERROR) +[\w./\\-]{1,120}\.\w{1,10}(?:::\S{1,120})?"  # Jest, pytest
    r"|[●✕✗×] +[^\W\d][^\n]{3,150}"  # Jest, Mocha
    r"|---- \S{1,120} stdout ----"  # cargo test
    r"|rspec \S{1,120}:\d{1,6} # [^\n]{3,150}"
    r"|\d{1,4}\) [\w\\]{0,100}Test\w*::\w{1,80}"  # PHPUnit
    r"|(?:\d{1,5}/\d{1,5} )?Test +#\d{1,5}: \S{1,100} [. ]*\*\*\*[^\n]{1,40}"  # CTest
    r"|\d{1,5} - \S{1,100} \([A-Z]\w{1,20}\)"  # CTest's summary
    r"|\[ERROR\] +[\w.$]{1,100}\.\w{1,80}:\d{1,6} [^\n]{3,150}"  # JUnit, by Maven
    r")",
    re.ASCII | re.MULTILINE,
)
"""The line by which a runner of tests names one that failed; ``FAILED`` marks an error anyway."""

_TEST_MARKS = ("FAIL", "ERROR", "●", "✕", "✗", "×", " stdout ----", "rspec ", ") ", "***", " - ")
_ERROR_STEMS = ("error", "exception", "panicked", "fatal", "status", "warning", "interrupt", "uncaught", "segmentation")
_ERROR_CAPITALS = ("FAILED", "SIG", "HTTP", "Exit", "Assertion")
# The common ones of https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/errno.h.html, and npm's own.
_ERRNO = (
    "E(?:ACCES|ADDRINUSE|ADDRNOTAVAIL|AGAIN|AI_AGAIN|BADF|BUSY|CONNABORTED|CONNREFUSED|CONNRESET|DEADLK|EXIST|FAULT"
    "|HOSTUNREACH|INTEGRITY|INTR|INVAL|IO|ISDIR|LOOP|MFILE|NAMETOOLONG|NETUNREACH|NFILE|NOENT|NOEXEC|NOMEM|NOSPC"
    "|NOSYS|NOTDIR|NOTEMPTY|NOTFOUND|NOTSUP|PERM|PIPE|PROTO|RESOLVE|ROFS|TIMEDOUT|XDEV)"
)
# The first character is tested before the lookbehind, so that the scan skips to the next capital.
_ERROR_NAME = re.compile(
    rf"[A-Z](?<![\w.$-][A-Z])(?:(?<=E)(?:{_ERRNO[1:]}|\d{{3,5}})|(?!FC|SO|HA|VE|TF|ES|SA)[A-Z]{{0,4}}-?\d{{4,5}}"
    r"|[A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){1,8}(?! ?=)|\w{2,60}(?:Error|Exception))(?![\w/-])",
    re.ASCII,
)
_LINE_PREFIX = re.compile(r"[\s>*#|-]{0,20}")

_MAY_NAME_FILE = re.compile(r"\.[A-Za-z]|file\b", re.ASCII)
_PATH_RUN = re.compile(r"[\w.@+~\\/:%-]{3,300}")
_POSITION = re.compile(r"(?::\d{1,7}){1,3}[:.]?$|[.:]+$", re.ASCII)
_FRAME_FUNCTION = re.compile(r"^[\w.]{1,60}@", re.ASCII)
_KNOWN_EXTENSIONS = """
asm bash bat bazel bib bzl c cabal cc cfg clj cljs cmake cmd cpp cs csproj css csv cu cxx dart diff dll dylib el erl
ex exe exs fs fsx go gradle groovy gyp h hbs hh hpp hs htm html hxx in inc ini ipynb ipp java jinja jl js json jsonc
json5 jsx kt kts less lhs ll lock log lua m mak md mjs cjs mk ml mli mm mod nim nix patch php pl plist pm po pony
pp properties proto ps1 py pyi pyx qml r rake rb rc rkt rs rst s sass scala scm scss sh sln so sol sql styl sum svg
svelte swift tcl tex tf thrift toml ts tsx txt ui v vb vcxproj vim vue wat wasm xaml xhtml xml xsd yaml yml zig zsh
"""
_EXTENSIONS = frozenset(_KNOWN_EXTENSIONS.split())
_AMBIGUOUS_EXTENSIONS = frozenset({"ex", "in", "lock", "log", "m", "mod", "po", "pp", "r", "rc", "s", "so", "sum", "v"})
_PRODUCTS = frozenset(name.lower() for name in PRODUCT_NAMES)
_FILE_NAMES = frozenset({"Makefile", "Dockerfile", "Gemfile", "Rakefile", "Procfile", "Jenkinsfile", "Vagrantfile"})
_HOST = re.compile(r"[\w.-]+\.(?:com|org|net|io|dev|co|edu|gov|me|app|rs|ly)$", re.ASCII)

_IDENTIFIER_RUN = re.compile(
    r"(?<![\w/\\.-])(?:--[a-z]\w+(?:-\w+)*|[A-Za-z_]\w*(?:(?:::|[.-])[A-Za-z_]\w*)*)", re.ASCII
)
_INNER_CAPITAL = re.compile(r"[a-z0-9][A-Z]", re.ASCII)
_HEADER_NAME = re.compile(r"[A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)+", re.ASCII)

_MASK_NAME = re.compile(
    r"`[^`\n]*`|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|\u2018[^\u2019\n]*\u2019|\u201c[^\u201d\n]*\u201d"
)
_MASK_PATH = re.compile(r"(?:\b[a-z]:)?[\w.~@+-]*[\\/][\w.\\/~@+-]*|<anon>|\b\w+\.[a-z]\w{0,3}(?=:\d)", re.ASCII)
_MASK_NUMBER = re.compile(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{12,}\b|\b\d[\d.,]*\b", re.ASCII)
_POSITION_PREFIX = re.compile(r"^(?:<path>|<n>|[:,() ]|line)+(?=error|fatal|warning)", re.ASCII)

_MAY_BE_TEMPLATE = re.compile(
    r"^[ \t]*(?:#|\*\*|[-*+] \[|_?[Nn]o resp|\w[^:\n]{0,80}:)|contribut|A clear and", re.MULTILINE
)
_CHECKBOX = re.compile(r"[-*+] \[([ xX])\] ?")
_PLEDGE_WORDS = (
    "search|existing|already|duplicate|read|agree|follow|latest|guidelines?|docs?|documentation|code of conduct"
    "|template|contribut|willing|aware|checked|confirm|understand|relevant|faq|readme"
)
_TEMPLATE_SENTENCE = re.compile(
    (
        r"(?:[-*+] \[[ xX]\] )?(?:"
        r"_?no response_?$|a clear and concise description |if applicable, add |add any other (?:context"
        r"|information) "
        r"|steps to reproduce the behaviou?r|explain the problem|ex\. i'm always frustrated |describe (?:the"
        r"|any) \w+ you"
        r"|please (?:read|search|make sure|ensure|check|fill|complete|provide|include|describe|use the|do not"
        r"|follow) "
        r"|before (?:opening|submitting|filing|posting|creating|you) |for (?:guidance|more information) on "
        r"|thank(?:s| you) for (?:taking|reporting|filing|opening|contributing|your) |by (?:submitting|opening"
        r"|filing) "
        r"|i(?: have|'ve| am|'m| agree| confirm| acknowledge| understand| searched| checked| read| will)\b"
        rf".{{0,80}}\b(?:{_PLEDGE_WORDS}))"
    ),
    re.IGNORECASE,
)
"""The beginning of a line of template text that the reporter left in. Matched at the start of a line."""
_LABEL_EDGES = "#*_: ?.!\t-"


def find_errors(text: str) -> tuple[str, ...]:
    """Lines that state an error, messages quoted after "error", failed tests, then exception types and error codes.

    Each is one line of at most 200 characters, as written. Compare them with ``normalise_error``.
    """
    return _distinct(_errors(text), normalise_error)


def find_files(text: str) -> tuple[str, ...]:
    """Paths and names of files with a known extension, as written but without line and column. URLs do not count."""
    return _distinct(_files(text))


def find_identifiers(text: str) -> tuple[str, ...]:
    """Words that occur only in code: ``snake_case``, ``camelCase``, ``a::b``, ``X-Forwarded-Proto``, ``--flag``."""
    return _distinct(run for run in _IDENTIFIER_RUN.findall(without_addresses(text)) if _is_identifier(run))


def normalise_error(line: str) -> str:
    """The error with paths, numbers, addresses and quoted names masked, so that two reports of it are equal."""
    masked = _MASK_NAME.sub("<name>", line.strip().lower()[:MAX_ERROR_CHARS])
    masked = _MASK_PATH.sub("<path>", masked)
    masked = _MASK_NUMBER.sub("<n>", masked)
    return " ".join(_POSITION_PREFIX.sub("", masked).split())


def without_addresses(text: str) -> str:
    """``text`` with every URL replaced by a space."""
    return _URL.sub(" ", text) if "://" in text else text


def strip_boilerplate(text: str) -> str:
    """``text`` without the parts of an issue template: hidden comments, headings, checklists, instructions.

    The reporter's own words stay, even after a label on the same line. Code fences are left alone.
    """
    if "<!--" in text:
        text = _without_comments(text)
    if not _MAY_BE_TEMPLATE.search(text):
        return text
    kept = []
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if fence or mark in ("```", "~~~"):
            fence = "" if mark == fence else fence or mark
            kept.append(line)
        else:
            kept.append(_without_label(line))
    return "\n".join(kept)


def _without_comments(text: str) -> str:
    kept = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return " ".join((*kept, text[at:]))


def _without_label(line: str) -> str:
    bare = line.strip()
    if not bare or _TEMPLATE_SENTENCE.match(bare) or _is_label(bare):
        return ""
    box = _CHECKBOX.match(bare)
    if box:
        rest = bare[box.end() :]
        return "" if box[1] == " " and len(rest.split()) <= 4 else rest
    label, colon, rest = bare.partition(":")
    if label.lower() == "error" and rest.strip():  # as programs print it
        return line
    return rest if colon and _is_label(label) else line


def _is_label(line: str) -> bool:
    return len(line) <= 80 and line.strip(_LABEL_EDGES).removesuffix(" (optional)").lower() in TEMPLATE_HEADINGS


def _distinct(items: Iterable[str], key: Callable[[str], str] = str) -> tuple[str, ...]:
    kept: dict[str, str] = {}
    for item in items:
        kept.setdefault(key(item), item)
        if len(kept) == MAX_SIGNALS:
            break
    return tuple(kept.values())


def _errors(text: str) -> Iterator[str]:
    lowered = text.lower()
    if any(stem in lowered for stem in _ERROR_STEMS) or any(stem in text for stem in _ERROR_CAPITALS):
        seen = -1
        for mark in _ERROR_MARK.finditer(text):
            if mark.start() > seen:
                start, seen = _line_around(text, mark)
                if mark[0][-1] != ":" or text[mark.end() : seen].strip():  # "I get this error:" states none
                    yield _LINE_PREFIX.sub("", text[start:seen].strip(), count=1)
        for quoted in _QUOTED_ERROR.finditer(text):
            if " " in quoted[1].strip():
                yield quoted[1].strip()
    if any(mark in text for mark in _TEST_MARKS):
        yield from (failure[1].strip() for failure in _TEST_FAILURE.finditer(text))
    for name in _ERROR_NAME.finditer(text):
        yield name[0]


def _line_around(text: str, mark: re.Match[str]) -> tuple[int, int]:
    """The span of the line around the mark of an error; of a very long line, the part that starts just before the mark.

    An assertion starts the part, as the signature of a function before it may fill the line.
    """
    at = mark.start()
    before = 0 if mark[0].startswith("Assertion") else MAX_ERROR_CHARS // 2
    start = text.rfind("\n", max(0, at - before), at) + 1 or max(0, at - before)
    end = text.find("\n", at, start + MAX_ERROR_CHARS)
    return start, end if end >= 0 else min(len(text), start + MAX_ERROR_CHARS)


def _files(text: str) -> Iterator[str]:
    for run in _PATH_RUN.findall(without_addresses(text)) if _MAY_NAME_FILE.search(text) else ():
        if "." in run or "/" in run or run in _FILE_NAMES:
            path = _POSITION.sub("", run)
            if path != run:  # a frame of Safari or Firefox: init@main.js:4:11484
                path = _FRAME_FUNCTION.sub("", path)
            path = path.removeprefix("./").rstrip(".:")
            if len(path) <= _MAX_PATH_CHARS and _is_file(path):
                yield path


def _is_file(path: str) -> bool:
    first, *rest = re.split(r"[\\/]", path)
    name = rest[-1] if rest else first
    stem, _, extension = name.rpartition(".")
    if not stem.strip(".") or extension.lower() not in _EXTENSIONS:
        return name in _FILE_NAMES
    if rest:
        return not _HOST.match(first) and "//" not in path
    return (
        extension not in _AMBIGUOUS_EXTENSIONS and ":" not in path and name.lower() not in _PRODUCTS and len(name) > 3
    )


def _is_identifier(run: str) -> bool:
    if len(run) > _MAX_IDENTIFIER_CHARS or run in PRODUCT_NAMES:
        return False
    if run.startswith("--") or "::" in run:
        return True
    if "-" in run:
        return bool(_HEADER_NAME.fullmatch(run))
    return "_" in run.strip("_") or bool(_INNER_CAPITAL.search(run))
