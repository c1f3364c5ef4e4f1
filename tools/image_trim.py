"""Removes files that the image does not need from installed libraries; run while the image is built.

python -I image_trim.py SITE_PACKAGES

It removes whole modules that none of our code imports, tests, and files that only a compiler or a type checker reads.
What stays has the bytes whose hashes were checked.
"""

import shutil
import sys
from itertools import chain
from pathlib import Path

UNUSED = (
    # Highlighting of 500 languages: rich needs the package for our tables but highlights nothing.
    *("pygments/lexers/[a-z]*.py", "pygments/lexers/_[a-z]*_builtins.py"),
    # A compiler's front end, and numpy's own tests.
    *("numpy/f2py", "numpy/_core/_simd.*.so", "numpy/_core/_*_tests.*.so"),
    *("numpy/_core/tests/test_*.py", "numpy/_core/tests/data", "numpy/_core/tests/examples"),
)
"""Patterns below SITE_PACKAGES; one that no longer matches anything fails the build."""

UNUSED_OF = {
    # Models of every answer of GitHub's API, 40 MB: answers are read by bot/github itself.
    "githubkit_schemas": (
        *("githubkit_schemas/v*/models", "githubkit_schemas/v*/rest", "githubkit_schemas/v*/types"),
        *("githubkit_schemas/latest/models.py", "githubkit_schemas/latest/types.py"),
    ),
    # Its clients for other servers and for S3: the organisation's index has its own.
    "pyarrow": (
        *("pyarrow/libarrow_flight.so.*", "pyarrow/libarrow_python_flight*", "pyarrow/_flight*.so"),
        *("pyarrow/libarrow_s3.so.*", "pyarrow/_s3fs*.so"),
    ),
}
"""The same for libraries that only some images have."""

KEPT = "numpy/_core/tests"
"""The one folder of tests that a library imports from: numpy.testing needs a file in it."""

FOR_COMPILERS = frozenset({".pyi", ".pyx", ".pxd", ".h", ".a"})


def cut(packages: Path) -> None:
    """Remove all of it. Raises SystemExit for a pattern that matches nothing."""
    installed = (patterns for name, patterns in UNUSED_OF.items() if (packages / name).exists())
    for pattern in chain(UNUSED, *installed):
        matches = sorted(packages.glob(pattern))
        if not matches:
            raise SystemExit(f"{pattern} fits nothing: look where the library's new version has it")
        remove(*matches)
    remove(*(each for each in packages.rglob("tests") if each.is_dir() and each != packages / KEPT))
    remove(*(each for each in packages.rglob("*") if each.suffix in FOR_COMPILERS and each.is_file()))


def remove(*paths: Path) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    cut(Path(sys.argv[1]))
