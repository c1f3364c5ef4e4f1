"""Page ids and the addresses that they stand for."""

from __future__ import annotations

from bot.reading.pages import page_key, page_url, source_of

SERVER = "https://github.com"


def test_a_page_has_an_address() -> None:
    cases = [
        ("docs:docs/set up.md", "on-linux", "https://github.com/o/r/blob/HEAD/docs/set%20up.md#on-linux"),
        ("docs:README.md", "", "https://github.com/o/r/blob/HEAD/README.md"),
        ("wiki:How-to", "设置", "https://github.com/o/r/wiki/How-to#%E8%AE%BE%E7%BD%AE"),
        ("wiki:a/b?c#d", "", "https://github.com/o/r/wiki/a%2Fb%3Fc%23d"),
        ("releases:v2.3.0", "fixes", "https://github.com/o/r/releases/tag/v2.3.0"),
        ("docs:](javascript:x)", "", "https://github.com/o/r/blob/HEAD/%5D%28javascript%3Ax%29"),
        ("other:x", "", ""),
        ("ABC-1", "", ""),
        (42, "", ""),
    ]
    assert [key for key, anchor, url in cases if page_url(key, SERVER, "o/r", anchor) != url] == []


def test_without_a_repository_there_is_no_address() -> None:
    assert page_url("docs:README.md", SERVER, None) == ""


def test_a_name_that_cannot_be_stored_has_no_id() -> None:
    assert [
        name for name in ["", "a\nb", "a\0b", "\ud800", "\u202ex", "x" * 196] if page_key("docs", name) is not None
    ] == []


def test_a_page_id_names_the_source_of_the_page() -> None:
    assert page_key("docs", "a:b.md") == "docs:a:b.md"
    assert [source_of(key) for key in ("docs:a:b.md", "wiki:Home", "session:x", "docs:", 7)] == [
        "docs",
        "wiki",
        None,
        None,
        None,
    ]
