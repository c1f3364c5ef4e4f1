"""Which of the files that a thread names are shown."""

from bot.recall.mentions import telling_files


def test_each_file_is_shown_once_by_its_most_telling_path() -> None:
    cases = [
        (["auth/cookie.py", "cookie.py"], ["auth/cookie.py"]),
        (["cookie.py", "auth/cookie.py"], ["auth/cookie.py"]),
        (["/app/x/auth/cookie.py", "cookie.py"], ["/app/x/auth/cookie.py"]),
        (["/app/x/auth/cookie.py", "auth/cookie.py"], ["auth/cookie.py"]),
        (["C:\\src\\auth\\cookie.py", "auth/cookie.py"], ["auth/cookie.py"]),
        (["a/cookie.py", "b/cookie.py"], ["a/cookie.py", "b/cookie.py"]),
        (["cookie.py", "mycookie.py"], ["cookie.py", "mycookie.py"]),
        (["/usr/lib/site.py", "auth/cookie.py"], ["auth/cookie.py", "/usr/lib/site.py"]),
        (["x86_64/stage2/libstd.so", "lib.so.1.2", "a.o", "uv.lock", "poetry.lock", "build.log"], []),
        (["a/b.py", "a/b.py"], ["a/b.py"]),
        ([], []),
    ]
    assert [paths for paths, expected in cases if list(telling_files(paths)) != expected] == []


def test_two_spellings_of_one_path_do_not_drop_each_other() -> None:
    assert telling_files(["a/b.py", "a\\b.py"])
