"""An installed package has everything that it needs besides its code."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRINT_FOLDERS = (
    "from bot.comment.render import Renderer, SHIPPED_FOLDER; from bot.files import shipped_folder;"
    "Renderer(); print(SHIPPED_FOLDER); print(shipped_folder('skills'))"
)


@pytest.mark.slow
def test_a_wheel_has_the_templates_and_the_skill_inside_the_package(tmp_path: Path) -> None:
    make = (
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    )
    subprocess.run(make, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("precedent-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    result = subprocess.run(
        (sys.executable, "-c", PRINT_FOLDERS), cwd=tmp_path / "installed", capture_output=True, text=True, check=True
    )
    inside = tmp_path / "installed/bot"
    assert result.stdout.splitlines() == [str(inside / "templates"), str(inside / "skills")]
