"""What texts name, and what templates put into them."""

from hypothesis import example, given
from hypothesis import strategies as st

from bot.reading.signals import (
    MAX_ERROR_CHARS,
    MAX_SIGNALS,
    find_errors,
    find_files,
    find_identifiers,
    normalise_error,
    strip_boilerplate,
)
from tests.examples import share
from tests.reading.linear_time import assert_linear_time

PYTHON_TRACE = """It dies:
Traceback (most recent call last):
  File "store/session.py", line 12, in load
    raise SessionError("gone")
store.SessionError: gone for user 42
"""


def test_errors_are_found() -> None:
    cases = [
        ("error[E0308]: mismatched types", "error[E0308]: mismatched types"),
        ("so:\n> ERROR: no space\nthen", "ERROR: no space"),
        ("thread 'main' panicked at 'oops'", "thread 'main' panicked at 'oops'"),
        ("fatal: not a git repository", "fatal: not a git repository"),
        ("test login ... FAILED", "test login ... FAILED"),
        ("killed by SIGSEGV", "killed by SIGSEGV"),
        ("HTTP/1.1 503 Service Unavailable", "HTTP/1.1 503 Service Unavailable"),
        (PYTHON_TRACE, "store.SessionError: gone for user 42"),
        ('I get an error saying "no route to host" here', "no route to host"),
        ("npm says ENOSPC again", "ENOSPC"),
        ("it shows SESSION_PATH_MISMATCH", "SESSION_PATH_MISMATCH"),
        ("see E0308 and TS2322", "TS2322"),
        ("a NullPointerException somewhere", "NullPointerException"),
    ]
    assert [text for text, error in cases if error not in find_errors(text)] == []


def test_text_that_only_looks_like_an_error_is_none() -> None:
    texts = ["EDIT: works now", "RFC1234 and UTF16", "RUST_LOG=debug ./run", "the error of my ways", ""]
    assert [text for text in texts if find_errors(text) != ()] == []


def test_the_same_error_of_two_people_is_equal_when_normalised() -> None:
    ours = normalise_error("src/a.rs:12:3: 12:9 error: cannot find `foo` at 0x7fff1234 (took 3.5 s)")
    theirs = normalise_error("error: cannot find `bar` at 0x1234abcd (took 17 s)")
    assert ours == theirs == "error: cannot find <name> at <n> (took <n> s)"


def test_different_errors_stay_different_when_normalised() -> None:
    assert normalise_error("error[E0308]: mismatched") != normalise_error("error[E0425]: mismatched")


def test_errors_that_differ_in_numbers_only_are_named_once() -> None:
    assert find_errors("error: line 1\nerror: line 2\n") == ("error: line 1",)


def test_files_are_found_without_positions() -> None:
    expected = {
        "in src/foo/bar.rs:12:3, and ./auth/cookie.py.": ("src/foo/bar.rs", "auth/cookie.py"),
        r"at C:\app\main.cs:4": (r"C:\app\main.cs",),
        'File "/srv/app/views.py", line 3': ("/srv/app/views.py",),
        "edit `Makefile` and setup.py": ("Makefile", "setup.py"),
        "+++ b/docs/index.md": ("b/docs/index.md",),
    }
    assert {text: find_files(text) for text in expected} == expected


def test_the_file_of_a_frame_is_found_without_its_function() -> None:
    frames = "createInstance@main.js:2:27667\ninit@src/pool.js:4:11484\nsee @relay/core.js and node_modules/x@1/a.js:3"
    assert find_files(frames) == ("main.js", "src/pool.js", "@relay/core.js", "node_modules/x@1/a.js")


def test_addresses_versions_and_names_are_no_files() -> None:
    texts = [
        "https://example.com/a/b.py",
        "github.com/octocat/hello.py",
        "and/or 1.2.3 e.g. a.m. TCP/IP",
        "Node.js and std.io",
        "self.rs()",
    ]
    assert [text for text in texts if [file for file in find_files(text) if file != "self.rs"] != []] == []


def test_identifiers_are_words_that_only_occur_in_code() -> None:
    text = "Call `parse_header` of HttpParser via std::io with --no-cache and X-Forwarded-Proto on GitHub. Plain words."
    assert find_identifiers(text) == ("parse_header", "HttpParser", "std::io", "--no-cache", "X-Forwarded-Proto")


TEMPLATE = """<!-- Thanks for the report! -->
**Describe the bug**
A clear and concise description of what the bug is.
The cart is empty after login.

### Steps to reproduce
1. log in

- [x] I have searched the existing issues
- [ ] Windows
- [x] Linux
- [ ] port the parser to the new tree format

Expected behavior: two items

### Environment
_No response_

For guidance on contributing, please read [CONTRIBUTING.md](x).

```
### Steps to reproduce
```
"""


def test_template_text_is_stripped_and_the_reporters_text_stays() -> None:
    lines = [line.strip() for line in strip_boilerplate(TEMPLATE).split("\n") if line.strip()]
    assert lines == [
        "The cart is empty after login.",
        "1. log in",
        "Linux",
        "port the parser to the new tree format",
        "two items",
        "```",
        "### Steps to reproduce",
        "```",
    ]


def test_an_unclosed_html_comment_is_kept() -> None:
    assert strip_boilerplate("a <!-- b") == "a <!-- b"


REPORTS = st.lists(st.sampled_from(["Error: ", "alpha ", "a/b.py ", "v1.2 ", "very " * 50, "\n", "\n\n"])).map("".join)


def test_failures_of_test_runners_are_errors() -> None:
    lines = [
        "--- FAIL: TestSessionPath (0.02s)",
        "FAILED tests/test_auth.py::test_login - AssertionError: no cookie",
        "FAIL src/auth/cookie.test.js",
        "● Cookies › keeps the base path",
        "✕ keeps the base path (12 ms)",
        "---- auth::keeps_the_path stdout ----",
        "test auth::keeps_the_path ... FAILED",
        "rspec ./spec/auth_spec.rb:12 # Auth keeps the base path",
        "1) App\\AuthTest::testKeepsThePath",
        "3/10 Test  #3: keeps_path .......***Failed    0.01 sec",
        "[ERROR] org.linkbarn.AuthTest.keepsThePath:42 expected: <1> but was: <2>",
        "AuthTest > keepsThePath() FAILED",
    ]
    for line in lines:
        found = find_errors(f"The build says:\n\n{line}\nDone.")
        assert any(line.startswith(error) or error == line for error in found), line
    assert find_errors("Two things - one (Two)\n1) First\n2) Tests are slow\n× 3 times") == ()


def test_an_error_as_programs_print_it_is_not_taken_for_a_label() -> None:
    text = "Error: no such cookie\n**Error**: it broke\nError:"
    assert strip_boilerplate(text) == "Error: no such cookie\n it broke\n"
    assert find_errors(strip_boilerplate("error: mismatched types")) == ("error: mismatched types",)


@given(st.text() | REPORTS)
@example("".join(f"Error: {chr(97 + n % 26) * (n + 9)} {'very ' * 50}\nFile a/b{n}.py of v1.{n}\n" for n in range(30)))
def test_any_text_gives_bounded_signals(text: str) -> None:
    errors = find_errors(text)
    for signals in (errors, find_files(text), find_identifiers(text)):
        assert len(signals) <= MAX_SIGNALS
        assert len(set(signals)) == len(signals)
    assert all(len(error) <= MAX_ERROR_CHARS for error in errors)
    assert len(strip_boilerplate(text)) <= len(text) + 1


PIECES = [*"[*>A`\\\0\ud800\u202e", "a/", "a.", "a::", "A_", "error:", "1.", "v1.", "<!--", "**", "--a-"]
PIECES += [
    "'a",
    "http://",
    "Error",
    "A-",
    "x.y:1",
    "error ",
    "- [ ] ",
    "error: \n",
    "  at a",
    "nightly ",
    "#1  a",
    "i have searched ",
]


def test_hostile_text_takes_linear_time() -> None:
    def read(text: str) -> None:
        for reader in (find_errors, find_files, find_identifiers, strip_boilerplate, normalise_error):
            reader(text)

    assert_linear_time(read, *share(PIECES))
