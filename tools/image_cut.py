"""Takes out of installed libraries what an image has no use for; run while the image is built.

python -I image_cut.py SITE_PACKAGES

Whatever is taken out is whole modules that nothing of ours imports, tests, and what only a compiler or a type checker
reads. What stays has the bytes whose hashes were checked.
"""

import shutil
import sys
from itertools import chain
from pathlib import Path

UNUSED = (
    # Highlighting of 500 languages: rich writes our tables with it installed, and highlights nothing.
    *("pygments/lexers/[a-z]*.py", "pygments/lexers/_[a-z]*_builtins.py"),
    # A compiler's front end, and what numpy tests itself with.
    *("numpy/f2py", "numpy/_core/_simd.*.so", "numpy/_core/_*_tests.*.so"),
    *("numpy/_core/tests/test_*.py", "numpy/_core/tests/data", "numpy/_core/tests/examples"),
)
"""Patterns below SITE_PACKAGES; one that fits nothing any more fails the build."""

UNUSED_OF = {
    # Models of every answer of GitHub's API, 40 MB: answers are read by bot/github itself.
    "githubkit_schemas": (
        *("githubkit_schemas/v*/models", "githubkit_schemas/v*/rest", "githubkit_schemas/v*/types"),
        *("githubkit_schemas/latest/models.py", "githubkit_schemas/latest/types.py"),
    ),
    # Its way to other servers, and its own to S3: the organisation's index has another.
    "pyarrow": (
        *("pyarrow/libarrow_flight.so.*", "pyarrow/libarrow_python_flight*", "pyarrow/_flight*.so"),
        *("pyarrow/libarrow_s3.so.*", "pyarrow/_s3fs*.so"),
    ),
}
"""The same, where these are: some images do without them."""

KEPT = "numpy/_core/tests"
"""The one folder of tests that a library imports from: a file of it, for numpy.testing."""

FOR_COMPILERS = frozenset({".pyi", ".pyx", ".pxd", ".h", ".a"})


def cut(packages: Path) -> None:
    """Take it all out. Raises SystemExit for a pattern that fits nothing."""
    installed = (patterns for name, patterns in UNUSED_OF.items() if (packages / name).exists())
    for pattern in chain(UNUSED, *installed):
        found = sorted(packages.glob(pattern))
        if not found:
            raise SystemExit(f"{pattern} fits nothing: look where the library's new version has it")
        remove(*found)
    remove(*(each for each in packages.rglob("tests") if each.is_dir() and each != packages / KEPT))
    remove(*(each for each in packages.rglob("*") if each.suffix in FOR_COMPILERS and each.is_file()))


def remove(*places: Path) -> None:
    for place in places:
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


if __name__ == "__main__":
    cut(Path(sys.argv[1]))
