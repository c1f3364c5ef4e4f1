"""A picture is as wide as asked and as tall as the page; a missing browser is one line with the remedy."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "screenshot.py"
HTML = (
    "<!doctype html><meta name=color-scheme content='light dark'>"
    "<style>body{margin:0} @media (prefers-color-scheme: dark){body{background:#000}}</style>"
    "<div style='height:1234px'></div>"
)


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(TOOL), *map(str, arguments)],
        check=False,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_missing_browser_is_reported_with_what_to_install(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(HTML)
    result = run(page, tmp_path / "out.png", PATH=str(tmp_path), CHROMIUM="")
    assert result.returncode == 1
    assert result.stderr == (
        "screenshot: no Chromium found: install one (Debian: apt-get install chromium fonts-liberation"
        " fonts-noto-color-emoji), or name it in the variable CHROMIUM\n"
    )


def test_a_program_that_is_no_browser_gives_a_one_line_error(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(HTML)
    result = run(page, tmp_path / "out.png", CHROMIUM="true")
    assert result.returncode == 1
    assert result.stderr.startswith("screenshot: ")
    assert result.stderr.count("\n") == 1


def test_a_missing_page_is_named(tmp_path: Path) -> None:
    result = run(tmp_path / "none.html", tmp_path / "out.png")
    assert (result.returncode, result.stderr.count("none.html")) == (1, 1)


@pytest.mark.browser
def test_the_picture_is_as_tall_as_the_page(tmp_path: Path) -> None:
    page, light, dark = tmp_path / "page.html", tmp_path / "out" / "light.png", tmp_path / "dark.png"
    page.write_text(HTML)
    assert run(page, light, "--width", 500).stderr == ""
    assert run(page, dark, "--width", 500, "--dark", "--scale", 2).stderr == ""
    assert struct.unpack(">II", light.read_bytes()[16:24]) == (500, 1234)
    assert struct.unpack(">II", dark.read_bytes()[16:24]) == (1000, 2468)
