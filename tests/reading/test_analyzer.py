"""The analyser, by example and by property."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reading import analyzer
from bot.reading.analyzer import ANALYSER_VERSION, MAX_TERM_CHARS, body_terms, terms
from tests.reading.linear_time import assert_linear_time


def test_words_are_stemmed_and_stop_words_dropped() -> None:
    assert terms("The sessions were crashing when we restarted") == ["session", "crash", "restart"]


def test_repetitions_and_order_are_kept() -> None:
    assert terms("crash, login, crash") == ["crash", "login", "crash"]


def test_an_identifier_gives_the_whole_and_its_parts_in_any_spelling() -> None:
    cases = ["fileName", "FileName", "file_name", "file-name", "__file_name__", "file.name"]
    assert [identifier for identifier in cases if terms(identifier) != ["filenam", "file", "name"]] == []


def test_a_path_of_names_gives_the_whole_each_component_and_each_part() -> None:
    assert terms("std::vec::IntoIter") == ["stdvecintoit", "std", "vec", "intoit", "iter"]


def test_code_and_versions_stay_searchable() -> None:
    expected = {
        "HTTPServer": ["httpserver", "server"],
        "parseURLs": ["parseurl", "pars", "url"],
        "auth/cookie.py": ["auth", "cookiepi", "cooki", "py"],
        "utf8 x86_64 i32": ["utf8", "utf", "x8664", "x86", "64", "i32"],
        "error[E0308] ENOSPC": ["error", "e0308", "enospc"],
        "0xC0000005": ["0xc0000005"],
        "v2.3.0 and 0.13.0-nightly": ["2.3.0", "0.13.0", "night"],
        "port 8080 took 12345678 ns": ["port8080", "port", "8080", "took", "ns"],
        "C++ or c#, not i++)": ["c++", "c#", "i++"],
        "don't user's won't": ["user"],
    }
    assert {text: terms(text) for text in expected} == expected


@pytest.mark.parametrize(
    "forms",
    [
        ("OAuth 2", "OAuth2", "oauth-2"),
        ("Qt 5", "Qt5", "qt5"),
        ("HTTP/2", "HTTP2", "HTTP 2", "http/2"),
        ("TLS 1.2", "TLS1.2", "TLSv1.2", "TLS v1.2"),
        ("RFC 7230", "RFC7230", "rfc-7230"),
        ("iPhone 15", "iPhone15"),
        ("Python 3.11", "python3.11"),
        ("UTF-8", "UTF 8", "utf8"),
        ("16,384", "16384"),
        ("Größe 7", "Größe7"),
    ],
)
def test_a_name_and_its_number_meet_written_together_or_apart(forms: tuple[str, ...]) -> None:
    whole = terms(forms[0])[0]
    assert [form for form in forms if whole not in terms(f"It fails with {form}.")] == []
    assert [form for form in forms if whole not in terms(form)] == []


def test_a_name_with_a_number_is_found_by_its_name() -> None:
    for text, name in (("python3", "python"), ("Windows 7", "window"), ("TLSv1.3", "tls"), ("sha256", "sha")):
        assert name in terms(text), text
    for text in ("the 3 files", "in 2019", "Node. 18", "a 7"):
        assert [term for term in terms(text) if term[0].isalpha() and term[-1].isdigit()] == [], text


def test_noise_gives_no_terms() -> None:
    cases = [
        "0x7fff5fbff8a0",
        "8b3a56dd0bd2d7e86021c485e27f8c31a6153bb9",
        "h8fb5bd4a3a3a3a33",
        "_ZN4core9panicking5panic17h0123456789abcdefE",
        "aGVsbG8gd29ybGQgdGhpcyBpcyBi",
        "2014-11-02 12:30:45",
        "deadbeef12",
        "x" * (MAX_TERM_CHARS + 1),
        "line 12",
    ]
    assert [noise for noise in cases if terms(noise) != []] == []


def test_a_position_after_a_file_is_dropped_and_a_number_after_a_word_is_kept() -> None:
    assert terms("main.rs:12:3") == terms("main.rs")
    assert "404" in terms("error:404")


def test_other_scripts_give_bigrams_or_words() -> None:
    expected = {
        "接続エラー": ["エラー", "接続", "続エ", "エラ", "ラー"],
        "한국어": ["한국어", "한국", "국어"],
        "字": ["字"],
        "エラーerror": ["エラー", "エラ", "ラー", "error"],
        "iOS and ios, macOS": ["ios", "ios", "maco"],
        "Привет мир": ["привет", "мир"],
        "हिन्दी": ["हिन्दी"],
        "café_noir": ["cafenoir", "cafe", "noir"],
    }
    assert {text: terms(text) for text in expected} == expected


def test_compatibility_forms_and_invisible_characters_make_no_difference() -> None:
    assert terms("ｐａｓｓ\u200bｗｏｒｄ") == terms("password")
    assert terms("don\u2019t crash") == terms("don't crash")


def test_template_words_do_not_make_bodies_alike() -> None:
    body = "### Steps to reproduce\n\n<!-- tell us -->\nopen the cart\n\n### Expected behavior\n\n_No response_\n"
    assert body_terms(body) == ["open", "cart"]


def test_the_version_names_the_stemmer_whose_changes_change_terms() -> None:
    assert "snowball" in ANALYSER_VERSION


@pytest.mark.slow
def test_the_cache_is_bounded() -> None:
    for start in range(0, 3 * (1 << 16), 1 << 14):
        terms(" ".join(f"w{number}x" for number in range(start, start + (1 << 14))))
    assert len(analyzer._ENGLISH_TERMS) <= 1 << 16


@given(st.text())
def test_any_text_gives_bounded_and_repeatable_terms(text: str) -> None:
    result = terms(text)
    assert all(1 <= len(term) <= MAX_TERM_CHARS and not term.isspace() for term in result)
    assert terms(text) == result


@given(st.lists(st.from_regex(r"[a-z]{1,12}", fullmatch=True), max_size=8))
def test_a_non_ascii_character_does_not_change_the_terms_of_an_ascii_text(plain: list[str]) -> None:
    text = " ".join(plain)
    assert terms(text + " …") == terms(text)


HOSTILE = [*"[*>A_'9é字\ufdfa\0\ud800", "a.", "a::", "aB", "a'", "0x", "1.", "e\u0301\u0327", "line 1"]


def test_hostile_text_takes_linear_time() -> None:
    assert_linear_time(body_terms, *HOSTILE)
