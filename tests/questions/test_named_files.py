"""How much a file says about the threads that name it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.questions.named_files import NamedFile, files_in_folders, named_files, path_in
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


@pytest.mark.parametrize(
    ("folder", "spelling", "path"),
    [
        ("bot/git", "bot/git/checkout.py", "bot/git/checkout.py"),
        ("bot/git/", "bot/git/remote/url.py", "bot/git/remote/url.py"),
        ("./bot//git/.", "bot/git/checkout.py", "bot/git/checkout.py"),
        ("bot/cli/../git", "bot/git/checkout.py", "bot/git/checkout.py"),
        ("bot/git", "/app/precedent/bot/git/checkout.py", "bot/git/checkout.py"),
        ("bot/git", "C:\\work\\bot\\git\\checkout.py", "bot/git/checkout.py"),
        ("BOT/Git", "bot/GIT/Checkout.py", "BOT/Git/Checkout.py"),
        ("bot/git", "git/checkout.py", "bot/git/checkout.py"),
        ("src/bot/git", "./bot/git/checkout.py", "src/bot/git/checkout.py"),
        ("bot", "tests/bot/test.py", "bot/test.py"),
        ("./bot", "tests/bot/test.py", ""),
        ("./bot", "../bot/main.py", "bot/main.py"),
        ("./bot", "/app/bot/main.py", "bot/main.py"),
        ("./bot/git", "git/checkout.py", "bot/git/checkout.py"),
        ("./bot/git/", "./bot/git/checkout.py", "bot/git/checkout.py"),
        ("././", "bot/git/checkout.py", "bot/git/checkout.py"),
        ("bot/git", "bot/git", ""),
        ("bot/git", "checkout.py", ""),
        ("bot/git", "bot/gitlab/api.py", ""),
        ("bot/git", "robot/git/api.py", ""),
        ("bot/git", "bot/cli/main.py", ""),
        ("bot/git", "/git/checkout.py", ""),
        ("bot/git", "", ""),
        (".", "bot/git/checkout.py", "bot/git/checkout.py"),
        ("./", "checkout.py", "checkout.py"),
        (".", "/etc/hosts", ""),
        (".", "C:\\hosts", ""),
        ("..", "bot/git/checkout.py", ""),
        ("../bot", "bot/git/checkout.py", ""),
        ("/", "/etc/hosts", ""),
        ("//", "etc/hosts", ""),
        ("/etc", "/etc/linkbarn/hosts", "/etc/linkbarn/hosts"),
        ("/etc/", "/srv/etc/hosts", ""),
        ("/etc", "etc/hosts", ""),
    ],
)
def test_a_file_is_in_a_folder_as_a_thread_writes_it(folder: str, spelling: str, path: str) -> None:
    assert path_in(folder, spelling) == path


@given(st.text("aB/.\\", max_size=12), st.text("aB/.\\", max_size=20))
def test_a_file_found_in_a_folder_is_in_that_folder_again(folder: str, spelling: str) -> None:
    path = path_in(folder, spelling)
    assert not path or path_in(folder, path) == path
    assert path_in(folder.swapcase(), spelling.swapcase()).casefold() == path.casefold()


def test_a_path_of_a_million_parts_is_read_in_no_time() -> None:
    assert path_in("a/" * 50 + "b", "a/" * 1_000_000 + "x") == ""


def test_the_files_of_folders_are_listed_once_and_in_order() -> None:
    cards = InMemoryCards(
        [card(1, files=("bot/git/b.py", "git/B.py", "/app/bot/git/a.py", "README.md")), card(2, files=("docs/bot.md",))]
    )
    found = files_in_folders(["bot/git", "bot/git/", "", "nowhere"], cards)
    assert found == {1: (NamedFile("bot/git/a.py"), NamedFile("bot/git/b.py"))}
