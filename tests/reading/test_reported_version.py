"""Which version of the project a report is about."""

from dataclasses import replace
from datetime import UTC, datetime

from bot.domain.thread import Message, Thread
from bot.reading.versions import reported_version
from tests.reading.linear_time import assert_linear_time

AT = datetime(2026, 1, 1, tzinfo=UTC)
REPO = "octocat/hello-world"


def report(body: str = "", title: str = "It is slow", *comments: Message) -> Thread:
    return Thread(1, title, body, "octocat", AT, comments=comments)


def test_a_version_that_is_labelled_or_follows_the_name_counts() -> None:
    expected = {
        "### Version\n\n2.2.4": "2.2.4",
        "**Version:** v2.2.4": "2.2.4",
        "| Version | 2.2.4 |": "2.2.4",
        "Which version of hello-world are you using?\n\n2.2.4-rc.1": "2.2.4-rc.1",
        "Node version: 18.2.0\nhello-world version: 2.2.4": "2.2.4",
        "Environment: Python 3.11, hello-world 2.2.4, Ubuntu 22.04": "2.2.4",
        "$ pip freeze\nhello_world==2.2.4": "2.2.4",
        "`npm i hello-world@2.2.4`": "2.2.4",
        "Hello World 2.4 crashes": "2.4",
        "hello-world-cli v2.2.4": "",
        "hello-world cli v2.2.4": "2.2.4",
        "After upgrading to version 2.2.4 it loops": "2.2.4",
        "the latest version, 2.2.4, loops": "2.2.4",
        "It is broken on v2.2.4.": "2.2.4",
        "Version 2024.10.1": "2024.10.1",
        "It fails with nightly 2014-11-02.": "nightly 2014-11-02",
        "Since yesterday it loops. I use 2.2.4.": "2.2.4",
        "I'm on 2.2.4 and it loops": "2.2.4",
        "we are still running 2.2.4": "2.2.4",
    }
    assert {body: reported_version(report(body), REPO) for body in expected} == expected


def test_versions_of_other_things_and_those_that_work_do_not_count() -> None:
    bodies = [
        "I use Node 18.2.0 on Ubuntu 22.04 with Python 3.11.2",
        "Python version 3.11.2",
        "version 18.2 of Node",
        "Node.js (version 18.2.0)",
        "broken on Node v18.2.4",
        "Using Node in version 18.2.0",
        "- Browser: chrome\n- Version: 118.0",
        "### Node version\n\n18.2.0",
        "### Browser and version\n\n118.0",
        "It worked in version 2.2.4",
        "This did not happen in version 2.2.4",
        "upgraded from version 2.2.4",
        "It was introduced in v2.2.4",
        "requires version 2.2.4",
        '"hello-world": "^2.2.4"',
        "> version 2.2.4",
        "see https://example.org/hello-world-2.2.4.zip",
        "/usr/lib/hello-world/2.2.4/x.so: current version 0.0.0",
        "Section 2.2.4 and 127.0.0.1",
        "we run 127.0.0.1 there, and I am on 10.15",
        "I use 2.2.4 of Node",
        "rustup toolchain install nightly-2024-01-01",
        "rustc 1.77.0-nightly (abcdefabc 2024-01-01)",
        "",
    ]
    assert [body for body in bodies if reported_version(report(body), REPO) != ""] == []


def test_a_compiler_is_named_like_its_project_plus_a_letter() -> None:
    nightly = report("rustc 0.13.0-nightly (abcdefabc 2014-11-02 20:23:10 +0000)")
    assert reported_version(nightly, "octocat/rust") == "nightly 2014-11-02"
    assert reported_version(report("rustc 0.12.0-pre (5ad7afc2d 2014-08-24)"), "octocat/rust") == "nightly 2014-08-24"
    assert reported_version(report("rustc 0.9"), "octocat/rust") == "0.9"
    assert reported_version(report("Next 13.2.1"), "octocat/next.js") == "13.2.1"


def test_the_title_comes_first_and_the_authors_own_comments_last() -> None:
    stranger = Message("hubot", "NONE", AT, "Which version? I am on version 1.0.0")
    own = Message("octocat", "NONE", AT, "It is version 2.2.4.")
    assert reported_version(report("Version: 2.3.0", "hello-world 2.2.0 is slow"), REPO) == "2.2.0"
    assert reported_version(report("", "Slow", stranger, own), REPO) == "2.2.4"
    assert reported_version(report("", "Slow", stranger), REPO) == ""
    assert reported_version(report("", "Slow", replace(own, is_bot=True)), REPO) == ""


def test_without_a_repository_only_a_labelled_version_counts() -> None:
    assert reported_version(report("Version: 2.2.4")) == "2.2.4"
    assert reported_version(report("hello-world 2.2.4")) == ""


def test_hostile_text_takes_linear_time() -> None:
    pieces = [
        "[",
        "1.",
        "version ",
        "v1.2 ",
        "nightly (",
        "not ",
        "a-",
        "\n",
        "\ud800\x00\u202e version ",
        "1.2 work in ",
    ]
    for end in ("", "1.2.3", "Version\n1.2"):
        assert_linear_time(lambda text, end=end: reported_version(report(text + end, text[:1024]), REPO), *pieces)
