"""How much a file says about the threads that name it."""

import pytest

from bot.questions.named_files import NamedFile, named_files
from tests.questions.in_memory_cards import InMemoryCards, card


def shelf(count: int, size: int, spelling: str = "src/app.py") -> InMemoryCards:
    """So many threads, of which ``count`` name the file in this way."""
    return InMemoryCards(card(key, files=(spelling,) if key <= count else ()) for key in range(1, size + 1))


@pytest.mark.parametrize(
    ("count", "size", "telling"),
    [(1, 1, 1), (5, 10, 1), (6, 100, 5 / 6), (20, 100, 0.25), (50, 1000, 1), (100, 1000, 0.5)],
)
def test_a_file_is_the_less_telling_the_more_threads_name_it(count: int, size: int, telling: float) -> None:
    (file,) = named_files({"src/app.py": 1.0}, shelf(count, size))[1]
    assert file.telling == pytest.approx(telling)
    assert file.is_distinctive is (telling == 1)


@pytest.mark.parametrize(
    ("path", "spelling", "telling", "is_exact"),
    [
        ("src/app.py", "app.py", 1, False),
        ("src/app.py", "src\\app.py", 1, True),
        ("src/app.py", "/srv/src/app.py", 1, True),
        ("app.py", "app.py", 1, True),
        ("docs/README.md", "README.md", 0, False),
        ("docs/README.md", "docs/README.md", 1, True),
        ("README.md", "README.md", 0, True),
        ("README.md", "docs/README.md", 0, True),
    ],
)
def test_a_common_name_without_a_folder_may_be_another_file(
    path: str, spelling: str, telling: float, is_exact: bool
) -> None:
    found = named_files({path: 0.5}, shelf(1, 10, spelling))
    assert found == {1: (NamedFile(path, 0.5, telling, is_exact),)}
