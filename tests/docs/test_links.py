"""Links lead somewhere, pictures say what they show, and the files that pages, helps and errors name are there."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.docs.pages import ALSO, CODE, PAGES, ROOT, anchors, code_of, links, prose, tracked

HOSTS = {"github.com", "docs.github.com", "modelcontextprotocol.io", "opentelemetry.io", "semver.org"}
"""The sites that pages lead to. A new one is added here, by somebody who has looked at it."""

CITED = {
    *("arxiv.org", "chromedevtools.github.io", "cldr.unicode.org", "cyclonedx.org", "developers.openai.com"),
    *("git-scm.com", "github.blog", "github.github.com", "html.spec.whatwg.org", "man7.org", "no-color.org", "onnx.ai"),
    *("opencode.ai", "pubs.opengroup.org", "spec.commonmark.org", "specifications.freedesktop.org", "sqlite.org"),
    *("www.w3.org", "yaml.org"),
}
"""The sites that code names as the source of a constant or a rule."""

REACHED = {"api.github.com", "redirect.github.com"}
"""What the program itself speaks to, or leads through."""

INVENTED = re.compile(r"(?:[\w-]+\.)*example(?:\.com)?|HOST|HOSTNAME|127\.0\.0\.1|localhost", re.ASCII)
"""Hosts of examples: names that belong to nobody, and this machine."""

OURS = re.compile(r"https://github\.com/[\w.-]+/precedent(?:[/#?].*)?")
"""An address of our own: a page links to files beside it instead, which move with it from branch to branch."""

FOR_US = {"report-phone.png", "status-phone.png"}
"""Pictures that `make picture` takes for who changes these pages."""

TOP = "bot|tests|tools|docs|sample|templates|skills|deploy|\\.ci"
NAMED = re.compile(
    rf"(?:{TOP})/[\w./-]*\w|[\w-]+\.example(?:\.yml)?|action\.yml|Makefile|Dockerfile|\w+\.toml|\w+\.lock"
)
MADE = {"deploy/.env", "deploy/secrets"}
"""What who runs a server makes there."""

TOLD = ("bot", "templates", "tools", "deploy", ".github", ".ci", "Makefile", "Dockerfile", "action.yml")
MENTION = re.compile(r"(?<![\w:/.-])docs/[\w-]+\.md(?:#([\w-]+))?")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=named)
def test_every_link_to_a_file_or_heading_leads_somewhere(page: Path) -> None:
    for target, _ in links(page):
        if "://" in target:
            continue
        name, _, fragment = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{named(page)} links to {target}, which is not there"
        assert file.is_relative_to(ROOT), target
        assert not fragment or fragment in anchors(file), f"{named(page)} links to {target}: no such heading"


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=named)
def test_links_that_lead_away_are_https_and_to_sites_that_are_known(page: Path) -> None:
    for target in (target for target, _ in links(page) if "://" in target or ":" in target.partition("/")[0]):
        parts = urlsplit(target)
        assert (parts.scheme, parts.hostname in HOSTS) == ("https", True), f"{named(page)} links to {target}"
        assert not OURS.fullmatch(target), f"{target} is a file or page of ours: link to it beside this page"


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=named)
def test_every_picture_is_there_and_says_what_it_shows(page: Path) -> None:
    for target, alt in links(page):
        if alt is not None:
            assert (page.parent / target).is_file(), target
            assert re.search(r"\w{4}", alt), f"{target} says nothing to who cannot see it"


def test_every_picture_of_the_documentation_is_shown_somewhere() -> None:
    shown = {(page.parent / target).resolve() for page in PAGES for target, _ in links(page) if "://" not in target}
    pictures = [path for path in tracked("docs") if path.suffix in (".png", ".svg")]
    assert pictures
    hidden = {path.name for path in pictures if path not in shown}
    assert hidden <= FOR_US, f"no page shows {sorted(hidden - FOR_US)}"


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


def test_the_pages_of_the_samples_wiki_lead_to_each_other() -> None:
    pages = {page.stem: page for page in (ROOT / "sample/wiki").glob("*.md")}
    targets = [target for page in pages.values() for target, _ in links(page)]
    assert targets
    assert [target for target in targets if target not in pages] == []


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=named)
def test_the_files_and_folders_that_a_page_names_are_there(page: Path) -> None:
    codes = [code.rstrip("/") for code in CODE.findall(prose(page))]
    missing = [code for code in codes if NAMED.fullmatch(code) and code not in MADE and not (ROOT / code).exists()]
    assert missing == [], f"{named(page)} names {missing}"


@pytest.mark.parametrize("page", [*PAGES, *ALSO], ids=named)
def test_the_modules_that_a_page_names_are_there(page: Path) -> None:
    for name in re.findall(r"-m (?:pytest )?((?:bot|tests|tools)(?:\.\w+)*)\b(?!/)", code_of(page)):
        path = ROOT / name.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), f"{named(page)} runs {name}"


def test_what_helps_errors_and_examples_say_of_pages_is_so() -> None:
    """A help text names ``docs/mcp.md``: it is there, with the heading that is named behind it."""
    met = 0
    for file in (*tracked(*TOLD, "config.example.yml"), *tracked("tests/faults", "tests/threats")):
        if file.suffix in (".md", ".pyc", ".png"):
            continue
        for found in MENTION.finditer(file.read_text(encoding="utf-8")):
            page = ROOT / found[0].partition("#")[0]
            met += 1
            assert page.is_file(), f"{named(file)} names {found[0]}, which is not there"
            assert not found[1] or found[1] in anchors(page), f"{named(file)} names {found[0]}: no such heading"
    assert met > 20


def test_addresses_in_code_and_templates_are_of_sites_that_are_known() -> None:
    unknown = []
    for file in tracked(*TOLD, "config.example.yml", "skills"):
        if file.suffix in (".pyc", ".png"):
            continue
        for scheme, host in re.findall(r"\b(https?)://([A-Za-z0-9.-]*\w)\b(?!\.?\{)", file.read_text(encoding="utf-8")):
            is_known = host in HOSTS | CITED | REACHED and scheme == "https"
            if not is_known and not INVENTED.fullmatch(host):
                unknown.append(f"{named(file)}: {scheme}://{host}")
    assert unknown == []


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# What's `new` in 2.0?\n", {"whats-new-in-20"}),
        ("# a_b – c\n## **Bold** [link](x.md)\n", {"a_b--c", "bold-link"}),
        ("# Same\n## Same\n### Same\n# Same-1\n", {"same", "same-1", "same-2", "same-1-1"}),
        ("```\n# no heading\n```\nSet off\n---\n", {"set-off"}),
        ('<a id="here"></a>\n\n# Größe\n', {"here", "größe"}),
    ],
)
def test_headings_get_the_fragments_that_github_gives_them(markdown: str, expected: set[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(markdown, encoding="utf-8")
    assert anchors(page) == expected


def test_links_are_found_wherever_they_stand(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "[over\nlines](a.md) ![seen](b.png) [by name][n] `[no](c.md)`\n\n[n]: d.md\n\n"
        '| [cell](e.md) |\n| --- |\n\n<img src="f.png" alt="told"> <a href="g.md">x</a>\n\n```\n[no](h.md)\n```\n'
    )
    assert links(page) == [
        *(("a.md", None), ("b.png", "seen"), ("d.md", None), ("e.md", None), ("f.png", "told"), ("g.md", None))
    ]
