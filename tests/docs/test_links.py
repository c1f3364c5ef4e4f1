"""Links lead somewhere, pictures describe what they show, and files named in pages, help texts and errors exist."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import ALSO, CODE, PAGES, ROOT, anchors, code_of, links, prose, text, tracked

HOSTS = {
    *("github.com", "docs.github.com", "cldr.unicode.org", "modelcontextprotocol.io", "semver.org"),
}
"""The sites that pages link to. Whoever adds one here has looked at it."""

CITED = {
    *("arxiv.org", "chromedevtools.github.io", "cyclonedx.org", "developers.openai.com"),
    *("git-scm.com", "github.blog", "github.github.com", "html.spec.whatwg.org", "json-schema.org", "man7.org"),
    *("no-color.org", "onnx.ai"),
    *("opencode.ai", "pubs.opengroup.org", "spec.commonmark.org", "specifications.freedesktop.org", "sqlite.org"),
    *("www.w3.org", "yaml.org"),
}
"""The sites that code cites as the source of a constant or a rule."""

CONTACTED = {"api.github.com", "redirect.github.com"}
"""The sites that the program itself contacts or redirects through."""

INVENTED = re.compile(r"(?:[\w-]+\.)*example(?:\.com)?|HOST|HOSTNAME|127\.0\.0\.1|localhost", re.ASCII)
"""Hosts in examples: names that belong to nobody, and this machine."""

OURS = re.compile(r"https://github\.com/[\w.-]+/precedent(?:[/#?].*)?")
"""A URL of this repository: a page uses a relative link instead, which stays right on every branch."""

TOP = "bot|bench|tests|tools|docs|sample|templates|skills|deploy|\\.ci"
NAMED = re.compile(
    rf"(?:{TOP})/[\w./-]*\w|[\w-]+\.example(?:\.yml)?|action\.yml|Makefile|Dockerfile|\w+\.toml|\w+\.lock"
)
CREATED_BY_USERS = {"deploy/.env", "deploy/secrets"}
"""Files that somebody who runs a server creates."""

SOURCES = ("bot", "templates", "tools", "deploy", ".github", ".ci", "Makefile", "Dockerfile", "action.yml")
MENTION = re.compile(r"(?<![\w:/.-])docs/[\w-]+\.md(?:#([\w-]+))?")


def relative_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=relative_name)
def test_links_lead_to_files_headings_and_known_sites_and_pictures_have_an_alternative_text(page: Path) -> None:
    for target, alt in links(page):
        says = f"{relative_name(page)} links to {target}"
        if ":" in target.partition("/")[0]:
            parts = urlsplit(target)
            assert (parts.scheme, parts.hostname in HOSTS, alt) == ("https", True, None), says
            assert not OURS.fullmatch(target), f"{target} is a file or page of ours: link to it beside this page"
            continue
        name, _, fragment = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{says}, which is not there"
        assert file.is_relative_to(ROOT), target
        assert not fragment or fragment in anchors(file), f"{says}: no such heading"
        assert alt is None or re.search(r"\w{4}", alt), f"{target} says nothing to who cannot see it"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = (target.partition("#")[0] for target, _ in links(page))
        waiting += [(page.parent / t).resolve() for t in targets if t.endswith(".md") and "://" not in t]
    assert set(PAGES) <= reached


def test_every_page_is_on_the_map_once_in_a_line_of_its_own() -> None:
    entry = re.compile(r"- \[[^\]]+\]\(([\w-]+\.md)\): \S.*\.")
    lines = [line for line in text("docs/README.md").splitlines() if line.startswith(("-", " "))]
    entries, others = [entry.fullmatch(line) for line in lines], [line for line in lines if not entry.fullmatch(line)]
    pages = sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md")
    assert sorted(each[1] for each in entries if each) == pages
    assert ["CONTRIBUTING.md" in line for line in others] == [True]


def test_links_in_the_sample_wiki_lead_to_its_pages() -> None:
    pages = {page.stem: page for page in (ROOT / "sample/wiki").glob("*.md")}
    targets = [target for page in pages.values() for target, _ in links(page)]
    assert targets
    assert [target for target in targets if target not in pages] == []


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=relative_name)
def test_the_files_folders_and_modules_that_a_page_names_exist(page: Path) -> None:
    codes = {code.rstrip("/") for code in CODE.findall(prose(page))} - CREATED_BY_USERS
    missing = [code for code in codes if NAMED.fullmatch(code) and not (ROOT / code).exists()]
    for name in re.findall(r"-m (?:pytest )?((?:bot|bench|tests|tools)(?:\.\w+)*)\b(?!/)", code_of(page)):
        path = ROOT / name.replace(".", "/")
        missing += [] if path.with_suffix(".py").is_file() or (path / "__main__.py").is_file() else [name]
    assert missing == [], f"{relative_name(page)} names {missing}"


def test_pages_headings_and_sites_named_in_code_are_known() -> None:
    """A help text that names ``docs/mcp.md#tools`` needs that page and that heading."""
    sources, tables = tracked(*SOURCES, "config.example.yml"), tracked("tests/faults", "tests/threats")
    mentions, unknown = 0, []
    for file in (*sources, *tables, *tracked("skills")):
        if file.suffix in (".pyc", ".png"):
            continue
        content, name = file.read_text(encoding="utf-8"), relative_name(file)
        for mention in MENTION.finditer(content) if file.suffix != ".md" else ():
            page = ROOT / mention[0].partition("#")[0]
            mentions += 1
            assert page.is_file(), f"{name} names {mention[0]}, which is not there"
            assert not mention[1] or mention[1] in anchors(page), f"{name} names {mention[0]}: no such heading"
        for scheme, host in re.findall(r"\b(https?)://([A-Za-z0-9.-]*\w)\b(?!\.?\{)", content):
            is_known = host in HOSTS | CITED | CONTACTED and scheme == "https"
            if not is_known and not INVENTED.fullmatch(host) and file not in tables:
                unknown.append(f"{name}: {scheme}://{host}")
    assert mentions > 20
    assert unknown == []
