"""The command line as scripts rely on it: data on stdout, messages on stderr, one line for each mistake."""

import argparse
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.cli.main import main
from bot.cli.parser import parser
from bot.domain.thread import Thread
from bot.local_cache.sync import open_store
from bot.recall.library import similar_query
from tests.cli.checkouts import run_on_terminal
from tests.cli.program_result import ProgramResult, Run
from tests.ranking.tiny_model import write_folder

ROOT = Path(__file__).resolve().parents[2]
BODY = "The session cookie is refused behind the proxy: SESSION_PATH_MISMATCH in auth/cookie.py, again and again."
ANSWER_KEYS = {"spoke", "reason", "mentioned", "seen_before", "open_now", "nearest", "pages", "markdown", "ms"}
HIT_KEYS = {"id", "title", "similarity", "state", "outcome", "why"}

Fields = dict[str, Any]


def run_program(*arguments: str | Path, text: str | bytes = "", **environment: str) -> ProgramResult:
    """Run the command as a program of its own."""
    process = subprocess.run(
        [sys.executable, "-m", "bot", *map(str, arguments)],
        input=text.encode() if isinstance(text, str) else text,
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    return ProgramResult(process.returncode, process.stdout.decode(), process.stderr.decode())


def issue(key: int | str, title: str, body: str | None = BODY, day: int = 1, **rest: Any) -> Fields:
    when = f"2024-01-{day:02}T09:00:00Z"
    return {"id": key, "title": title, "body": body, "created_at": when, "author": "monalisa", "state": "open", **rest}


def closed(key: int | str, title: str, body: str | None = BODY, day: int = 1, **rest: Any) -> Fields:
    return issue(key, title, body, day, **{"state": "closed", "closed_at": f"2024-01-{day + 1:02}T09:00:00Z", **rest})


def comment(body: str, day: int, author: str = "hubot", association: str = "MEMBER") -> Fields:
    return {"author": author, "association": association, "created_at": f"2024-01-{day:02}T08:59:00Z", "body": body}


FILLER = [
    issue(
        100 + n, f"{noun} is slow", f"When the {noun} grows, {verb} takes a minute; it was quick in the release before."
    )
    for n, (noun, verb) in enumerate(
        [("table", "sorting"), ("importer", "reading"), ("calendar", "scrolling"), ("map", "zooming")]
    )
]
FIX_COMMENT = comment("Fixed by #8. Clear the cookie or upgrade to 2.3.", 2)
HISTORY = [
    closed(1, "Login loops after the upgrade", comments=[FIX_COMMENT], state_reason="completed", closed_by="hubot"),
    issue(2, "Login loops after upgrading", day=3),
    closed("ABC-123", "Use PostgreSQL for the list of zebras", "Redis forgets zebras on restart.", day=2),
    issue(10, "After the upgrade: login loops", f"{BODY} Like #1? See also #7.", day=10),
    *FILLER,
]


def commands() -> dict[str, argparse.ArgumentParser]:
    """All commands with their parsers."""
    (group,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    return dict(group.choices)


def archive(path: Path, threads: list[Fields]) -> Path:
    text = "".join(json.dumps(thread) + "\n" for thread in threads).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.fixture
def store(tmp_path: Path, call: Run) -> Path:
    """A store with a small history."""
    folder = tmp_path / "store"
    assert call("import", archive(tmp_path / "history.jsonl", HISTORY), "--store", folder).code == 0
    return folder


# As a program


@pytest.mark.slow
def test_import_answer_and_search_work_from_the_shell(tmp_path: Path) -> None:
    archives = [archive(tmp_path / "a.jsonl", HISTORY[:3]), archive(tmp_path / "b.jsonl.gz", HISTORY[3:])]
    folder = tmp_path / "store"
    imported = run_program("import", *archives, "--store", folder, "--repo", "octo-org/hello-world", "--json")
    assert (imported.code, imported.err) == (0, "")
    assert imported.data["threads"] == imported.data["in_store"] == len(HISTORY)
    answered = run_program("answer", "10", "--store", folder, "--as-of", "created", "--json")
    assert (answered.code, answered.err, set(answered.data)) == (0, "", ANSWER_KEYS)
    hits = run_program("search", "zebras", "--store", folder, "--json")
    assert (hits.code, hits.err, [hit["id"] for hit in hits.data]) == (0, "", ["ABC-123"])


@pytest.mark.slow
def test_references_are_read_from_stdin() -> None:
    text = "Closes #4, octo-org/other#5, octo-org/hello-world#6, not `#7` nor #9."
    result = run_program("references", "--repo", "octo-org/hello-world", "--number", "9", text=text)
    assert (result.code, result.err) == (0, "")
    defaults = {"owner": None, "repo": None, "kind": None}
    assert result.data == [
        {**defaults, "number": 4, "action": "closes"},
        {"owner": "octo-org", "repo": "other", "number": 5, "action": None, "kind": None},
        {**defaults, "number": 6, "action": None},
    ]


@pytest.mark.slow
def test_references_to_a_configured_tracker_are_found() -> None:
    references = run_program("references", "--autolink", "JIRA-", "--autolink", "T", text="JIRA-5 and T6").data
    assert [(reference["kind"], reference["prefix"], reference["number"]) for reference in references] == [
        ("external", "JIRA-", 5),
        ("external", "T", 6),
    ]


@pytest.mark.night
@pytest.mark.slow
def test_any_bytes_on_stdin_give_a_list_of_references() -> None:
    for text in ["", "\n", b"\xff\xfe\x00 #4", "#" * 65_536]:
        result = run_program("references", text=text)
        assert (result.code, result.err) == (0, ""), text
        assert isinstance(result.data, list), text


def test_a_misspelled_argument_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        (("serach", "cookie"), "invalid choice: 'serach'; did you mean 'search'?; see `precedent --help`"),
        (
            ("answer", "1", "--store", "x", "--as-of", "create"),
            "'create'; did you mean 'created'?; see `precedent answer",
        ),
        (("search", "x", "--jsn"), "precedent search: unknown argument '--jsn'; did you mean --json?; see"),
        (("zzzzzz",), "invalid choice: 'zzzzzz' (choose from "),
    ]
    for words, message in cases:
        with pytest.raises(SystemExit, match="2"):
            main(words)
        assert message in capsys.readouterr().err, words


@pytest.mark.slow
def test_output_is_utf_8_whatever_the_encoding_of_the_terminal(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.jsonl", [issue(1, "Größe der Zebras 猫")])
    assert run_program("import", file, "--store", tmp_path / "s").code == 0
    result = run_program("search", "zebras", "--store", tmp_path / "s", PYTHONIOENCODING="ascii")
    assert (result.code, result.out.split("\t")[3]) == (0, "Größe der Zebras 猫\n")


@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_causes_no_error_message(tmp_path: Path) -> None:
    many = [issue(n, f"Zebra {n} " + "x" * 900) for n in range(1, 300)]
    assert run_program("import", archive(tmp_path / "a.jsonl", many), "--store", tmp_path / "s", "--no-learn").code == 0
    command = [
        sys.executable,
        "-m",
        "bot",
        "search",
        "zebra",
        "--limit",
        "1000",
        "--store",
        str(tmp_path / "s"),
        "--json",
    ]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(command, cwd=ROOT, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.read(1)
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait() == 1


def test_without_arguments_every_command_is_listed_with_an_example_that_parses(call: Run) -> None:
    result, whole_parser = call(), parser()
    assert result == call("--help") == call("-h")
    assert (result.code, result.err) == (0, "")
    listed = re.findall(r"^  (\S+) +\S.*\n +precedent (.+)$", result.out, re.MULTILINE)
    assert [name for name, _ in listed] == [name for name in commands() if name != "ss"]
    for name, example in listed:
        assert whole_parser.parse_args(shlex.split(example.partition(" < ")[0])).command == name


def test_every_command_has_help(call: Run) -> None:
    for command in commands():
        result = call(command, "--help")
        assert (result.code, result.err) == (0, ""), command
        assert result.out.startswith(f"usage: precedent {'smart-search' if command == 'ss' else command}"), command


@pytest.mark.slow
def test_help_fits_a_hundred_columns_however_wide_the_terminal_is() -> None:
    for columns in ["40", "300"]:
        code = "from tests.cli.test_main import commands; [print(one.format_help()) for one in commands().values()]"
        program = [sys.executable, "-c", code]
        process = subprocess.run(
            program, cwd=ROOT, env=os.environ | {"COLUMNS": columns}, capture_output=True, check=True
        )
        lines = process.stdout.decode().splitlines()
        assert len(lines) > 100, columns
        assert [line for line in lines if len(line) > 100] == [], columns


def test_every_argument_has_a_help_text() -> None:
    for name, command in commands().items():
        actions = [action for action in command._actions if not isinstance(action, argparse._SubParsersAction)]
        assert [action.dest for action in actions if not action.help] == [], name


def test_the_version_is_printed(call: Run) -> None:
    assert call("--version").out.startswith("precedent ")


INVALID = [
    *("nonsense", "import", "import a.jsonl", "references --number x", "references --repo https://github.com/o/hello"),
    *("answer 1", "answer 1 --store s --as-of yesterday", "answer 1 --store s --repo hello-world"),
    *("search", "search x --store s --limit many", "search x --limit 0", "search x --kind wiki", "search x --repo h"),
    *("search x --since yesterday", "search x --since 2026-13-01", "search x --since 0d", "search x --since 9999y"),
    *("search x --store s --repo octo-org/linkbarn", "search x --refresh --offline", "ss --limit 51", "what words"),
    *("related", "show", "show 1 --chars 10", "show 1 --chars 2000 --full"),
    *("eval --threads t", "eval --threads t --queries q --ranking best", "eval --threads t --queries q --folds 1"),
    *("eval --threads t --queries q --limit 0", "eval --threads t --queries q --window-days -3"),
    *("backtest", "backtest --store s --last all", "backtest --store s --seconds 1e9", "calibrate --store s --share 0"),
    *("calibrate --store s --share 1.5", "calibrate --store s --precision nan"),
    *("calibrate --store s --share 0.1 --precision 0.5", "digest --store s --since yesterday"),
    *("digest --store s --limit 0", "digest --store s --limit 101", "completion csh"),
    *("outcomes --store s --sample 0", "outcomes --store s --sample x", "outcomes --store s --ids 1 --sample 1"),
    *("outcomes --store s --seed", "try a/b --history many", "try a/b --last 0", "try a/b --fresh --offline"),
]


def test_invalid_arguments_are_reported_in_one_line_before_anything_is_read(call: Run) -> None:
    for arguments in [*map(str.split, INVALID), ["search", "x", "--since", "7 d"], ["digest", "--store=s", "--since="]]:
        result = call(*arguments)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), arguments
        assert "; see `precedent" in result.err, arguments


# Import


def test_plain_and_gzipped_archives_are_read(tmp_path: Path, call: Run) -> None:
    for name in ["a.jsonl", "a.jsonl.gz"]:
        counts = call("import", archive(tmp_path / name, HISTORY), "--store", tmp_path / "s", "--json").data
        assert counts.pop("seconds") >= 0, name
        assert counts == {"threads": len(HISTORY), "comments": 1, "in_store": len(HISTORY), "learned_from": 0}, name


def test_without_json_the_counts_are_printed_as_text(tmp_path: Path, call: Run) -> None:
    output = call("import", archive(tmp_path / "a.jsonl", HISTORY), "--store", tmp_path / "s").out
    assert output.startswith(f"{len(HISTORY)} threads with 1 comments read in ")


def test_importing_twice_changes_nothing(tmp_path: Path, call: Run) -> None:
    file = archive(tmp_path / "a.jsonl", HISTORY)
    first = [call("import", file, "--store", tmp_path / "s", "--json").data["in_store"], record_files(tmp_path / "s")]
    assert [
        call("import", file, "--store", tmp_path / "s", "--json").data["in_store"],
        record_files(tmp_path / "s"),
    ] == first


def record_files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted((folder / "records").rglob("*")) if p.is_file()}


def test_a_later_import_adds_and_updates_threads(tmp_path: Path, call: Run) -> None:
    call("import", archive(tmp_path / "a.jsonl", HISTORY), "--store", tmp_path / "s")
    updates = [
        issue(300, "Giraffes"),
        closed(2, "Login loops after upgrading", day=3, updated_at="2024-01-09T00:00:00Z"),
    ]
    counts = call("import", archive(tmp_path / "b.jsonl", updates), "--store", tmp_path / "s", "--json").data
    assert (counts["threads"], counts["in_store"]) == (2, len(HISTORY) + 1)
    states = {h["id"]: h["state"] for h in call("search", "upgrading", "--store", tmp_path / "s", "--json").data}
    assert states[2] == "closed"


def test_an_import_with_a_text_model_stores_its_vectors(tmp_path: Path, call: Run) -> None:
    store, model = tmp_path / "store", write_folder(tmp_path / "model")
    threads = archive(tmp_path / "threads.jsonl", [issue(1, "Disk full"), issue(2, "Login loop")])
    assert call("import", threads, "--store", store, "--semantic", model).code == 0
    memory = open_store(store, semantic=model)
    thread = memory.records([1])[1]
    assert isinstance(thread, Thread)
    (hit,) = memory.search(similar_query(thread, memory.vector(thread)), keep=lambda entry: entry.id == 1)
    assert hit.cosine == pytest.approx(1.0)
    memory.close()
    result = call("answer", "2", "--store", store, "--semantic", model)
    assert (result.code, result.err.count("vectors of the model")) == (0, 0)


def test_an_import_reads_again_what_was_imported_without_the_model(store: Path, tmp_path: Path, call: Run) -> None:
    model, threads = write_folder(tmp_path / "model"), archive(tmp_path / "one.jsonl", [issue(99, "Disk full")])
    by_words = call("answer", "2", "--store", store).out
    assert call("answer", "2", "--store", store, "--semantic", model).out == by_words
    assert call("import", threads, "--store", store, "--semantic", model).code == 0
    memory = open_store(store, semantic=model)
    assert (memory.index.unread(), len(memory.index.stored_vectors())) == ([], len(HISTORY) + 1)
    memory.close()


def test_a_missing_text_model_is_reported(
    store: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [("import", "history.jsonl"), ("answer", "1"), ("learn",), ("backtest",), ("calibrate",)]
    for command in commands:
        monkeypatch.chdir(tmp_path)  # the folder with the archive that the store was made from
        result = call(*command, "--store", store, "--semantic", tmp_path / "nothing")
        assert result.code == 1, command
        assert f"{tmp_path}/nothing: no such folder" in result.err, command


def test_empty_lines_and_a_byte_order_mark_are_not_errors(tmp_path: Path, call: Run) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(
        b"\xef\xbb\xbf" + json.dumps(HISTORY[0]).encode() + b"\r\n\n  \n" + json.dumps(HISTORY[1]).encode()
    )
    assert call("import", file, "--store", tmp_path / "s", "--json").data["threads"] == 2


def test_missing_titles_bodies_and_authors_are_not_errors(tmp_path: Path, call: Run) -> None:
    threads = [
        {"id": 1, "title": None, "body": None, "author": None, "created_at": "2024-01-01T00:00:00Z", "comments": None}
    ]
    assert call("import", archive(tmp_path / "a.jsonl", threads), "--store", tmp_path / "s").code == 0
    assert call("answer", "1", "--store", tmp_path / "s").code == 0


def test_a_bad_line_is_reported_with_its_file_and_number(tmp_path: Path, call: Run) -> None:
    cases = [
        (b'{"id": 1', "not JSON: Expecting ',' delimiter at column 9"),
        (b"nonsense", "not JSON: Expecting value at column 1"),
        (b"[1, 2]", "each line must be one JSON object"),
        (b'"text"', "each line must be one JSON object"),
        (b'{"title": "x", "created_at": "2024-01-01T00:00:00Z"}', "'id' is missing"),
        (b'{"id": 1, "title": "x"}', "'created_at' is missing"),
        (b'{"id": 1, "title": "x", "created_at": "yesterday"}', "yesterday"),
        (b'{"id": 0, "title": "x", "created_at": "2024-01-01T00:00:00Z"}', "an id is"),
        (b'{"id": true, "title": "x", "created_at": "2024-01-01T00:00:00Z"}', "an id is"),
        (b'{"id": 1, "title": "x", "created_at": "2024-01-01T00:00:00Z", "comments": 5}', "comments"),
        (b'{"id": 1, "title": "\xff"}', "not UTF-8 at byte 20"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"id": ' + b"9" * 5_000 + b"}", "4300"),
    ]
    for line, fault in cases:
        file = tmp_path / "a.jsonl"
        file.write_bytes(json.dumps(HISTORY[0]).encode() + b"\n\n" + line + b"\n")
        result = call("import", file, "--store", tmp_path / "s")
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), line
        assert result.err.startswith(f"precedent import: {file}, line 3: not a thread ("), line
        assert fault in result.err, line
        assert len(result.err) < len(str(file)) + 250, line


def test_a_bad_line_leaves_the_store_as_it_was(store: Path, tmp_path: Path, call: Run) -> None:
    before = record_files(store)
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps(issue(300, "Giraffes")) + "\nnonsense\n")
    assert call("import", bad, "--store", store).code == 2
    assert record_files(store) == before


def test_a_broken_gzip_file_is_reported(tmp_path: Path, call: Run) -> None:
    packed = archive(tmp_path / "a.jsonl.gz", HISTORY).read_bytes()
    for number, broken in enumerate([packed[:60], b"not packed", packed[:40] + b"\x00\x01" * 20 + packed[80:]]):
        file = tmp_path / f"{number}.jsonl.gz"
        file.write_bytes(broken)
        result = call("import", file, "--store", tmp_path / "s")
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert result.err.startswith(f"precedent import: {file} cannot be read as an archive: ")


def test_a_missing_file_or_a_folder_is_reported(tmp_path: Path, call: Run) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        result = call("import", path, "--store", tmp_path / "s")
        assert result.code == 2
        assert f"{path} cannot be read as an archive" in result.err


def test_a_store_that_is_a_file_is_reported(tmp_path: Path, call: Run) -> None:
    file = archive(tmp_path / "a.jsonl", HISTORY)
    result = call("import", file, "--store", file)
    assert (result.code, result.err) == (2, f"precedent import: {file} is a file: --store takes a folder\n")


@pytest.mark.slow
def test_a_progress_bar_is_drawn_only_on_a_terminal(tmp_path: Path) -> None:
    file = archive(tmp_path / "a.jsonl", HISTORY)
    output = run_on_terminal(ROOT, "import", file, "--store", tmp_path / "s", stream="stderr")
    assert "Checking the archives" in output
    assert "Reading threads" in output
    assert "Checking" in run_on_terminal(ROOT, "doctor", "--store", tmp_path / "s", stream="stderr")
    assert run_program("import", file, "--store", tmp_path / "t").err == ""


# Answer


def test_an_answer_is_printed_as_json(store: Path, call: Run) -> None:
    answer = call("answer", "10", "--store", store, "--repo", "octo-org/hello-world", "--json").data
    assert set(answer) == ANSWER_KEYS
    assert (answer["spoke"], answer["reason"], answer["pages"]) == (True, "", [])
    assert answer["ms"] > 0
    assert all(set(hit) >= HIT_KEYS for part in ("mentioned", "seen_before", "open_now") for hit in answer[part])
    known, unknown = answer["mentioned"]
    assert (known["id"], known["state"], known["outcome"]["kind"], known["missing"]) == (1, "closed", "fixed", False)
    assert (known["outcome"]["fix_ref"], known["outcome"]["closed_at"]) == ("#8", "2024-01-02T09:00:00Z")
    assert (unknown["id"], unknown["missing"]) == (7, True)
    assert answer["seen_before"] == []
    (match,) = answer["open_now"]
    assert match["id"] == 2
    assert 0.65 <= match["similarity"] <= 1
    assert match["why"]
    assert answer["markdown"].startswith("<!-- precedent:v1")


def test_without_json_it_prints_the_comment(store: Path, call: Run) -> None:
    result = call("answer", "10", "--store", store, "--repo", "octo-org/hello-world")
    assert result.code == 0
    assert result.err.startswith("The nearest issues, with their similarity:\n")
    assert "**Mentioned here**" in result.out
    assert "https://redirect.github.com/octo-org/hello-world/issues/1" in result.out
    assert (
        result.out
        == call("answer", "10", "--store", store, "--repo", "octo-org/hello-world", "--json").data["markdown"]
    )


def test_a_nearby_issue_without_a_reason_ends_with_its_title(sample_store: Path, call: Run) -> None:
    _, *lines = call("answer", "42", "--store", sample_store).err.splitlines()
    assert any(" · " not in line for line in lines)
    assert [line for line in lines if line.endswith("·")] == []


def test_silence_is_explained_on_stderr_and_is_not_an_error(store: Path, call: Run) -> None:
    result = call("answer", "ABC-123", "--store", store)
    assert (result.code, result.out, result.err) == (0, "", "Silent: nothing in memory is close enough.\n")
    answer = call("answer", "ABC-123", "--store", store, "--json").data
    assert (answer["spoke"], answer["reason"], answer["markdown"]) == (False, "nothing in memory is close enough", "")


def test_a_thread_with_a_name_is_answered_and_cited_like_one_with_a_number(tmp_path: Path, call: Run) -> None:
    title = "Login loops after the upgrade"
    named = [closed("ABC-123", title, comments=[FIX_COMMENT]), issue("ABC-124", title, day=5), *FILLER]
    call("import", archive(tmp_path / "a.jsonl", named), "--store", tmp_path / "s")
    answer = call("answer", "ABC-124", "--store", tmp_path / "s", "--as-of", "created", "--json").data
    assert [hit["id"] for hit in answer["seen_before"]] == ["ABC-123"]
    assert "ABC-123" in answer["markdown"]


def test_a_name_that_looks_like_a_number_is_found(tmp_path: Path, call: Run) -> None:
    call("import", archive(tmp_path / "a.jsonl", [issue("007", "Bond")]), "--store", tmp_path / "s")
    assert call("answer", "007", "--store", tmp_path / "s").code == 0


def test_an_unknown_id_is_reported(store: Path, call: Run) -> None:
    keys = ["99", "0", "-5", "007", "ABC", "", "9" * 5_000, "x" * 5_000, "../../etc", "\udcff", "\x00", "²"]
    for key in keys:
        result = call("answer", key, "--store", store)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), key
        assert result.err.startswith("precedent answer: no thread "), key
        assert len(result.err) < 300, key


def test_an_empty_store_is_reported(tmp_path: Path, call: Run) -> None:
    for command in (("answer", "1"), ("search", "x")):
        result = call(*command, "--store", tmp_path)
        assert (result.code, result.out) == (2, "")
        assert "holds no threads" in result.err


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path, call: Run) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    result = call("search", "x", "--store", tmp_path)
    assert (result.code, result.out) == (1, "")
    assert "but no memory: choose another branch or folder" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_only_required_arguments_are_asked_for(call: Run) -> None:
    for command in ["org", "deliveries"]:
        message = (
            f"precedent {command}: the following arguments are required: ACTION; see `precedent {command} --help`\n"
        )
        assert call(command).err == message, command


def test_a_closed_output_does_not_crash_the_program(sample_store: Path) -> None:
    for stream in ["1", "2"]:
        script = f'exec "$0" -m bot search login --store "$1" {stream}>&-'
        process = subprocess.run(
            ["sh", "-c", script, sys.executable, sample_store], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (process.returncode, process.stderr) == (0, ""), stream
        assert bool(process.stdout) is (stream == "2"), stream


# Answers as of the thread's creation


def alter_later_events(threads: list[Fields]) -> list[Fields]:
    """The same history with everything changed that happened after 10 January."""
    before = "2024-01-10T09:00:00Z"
    changed = []
    for thread in threads:
        if thread["created_at"] > before:
            continue
        rest = {
            "comments": [earlier for earlier in thread.get("comments", []) if earlier["created_at"] <= before]
            + [comment(f"Later word {thread['id']}: duplicate of #1, fixed by #3.", 20)],
            "updated_at": "2024-02-02T00:00:00Z",
            "labels": ["later"],
            "reactions": {"+1": 7},
            "locked": True,
            "events": [{"event": "closed", "at": "2024-01-21T00:00:00Z", "actor": "octocat", "commit": "0123abc"}],
        }
        if not thread.get("closed_at") or thread["closed_at"] > before:
            rest |= {
                "state": "closed",
                "state_reason": "not_planned",
                "closed_at": "2024-01-21T00:00:00Z",
                "closed_by": "x",
            }
        changed.append({**thread, **rest})
    later = [
        closed(key, thread["title"], thread["body"], day=15)
        for key, thread in zip(range(400, 450), threads, strict=False)
    ]
    return [*changed, *later, closed(7, "Seven, at last", day=16), issue(451, "proxy cookie upgrade login", day=11)]


LONGER_HISTORY = [
    *HISTORY,
    closed(
        3,
        "Login loops since the upgrade",
        day=8,
        closed_at="2024-01-12T09:00:00Z",
        comments=[comment("Duplicate of #1.", 11)],
    ),
    issue(4, "Why login loops", day=9, comments=[comment("Does it loop?", 9), comment("Yes, it was the proxy.", 12)]),
]


def test_an_answer_as_of_creation_uses_nothing_that_happened_later(tmp_path: Path, call: Run) -> None:
    options = "--as-of", "created", "--repo", "octo-org/hello-world"
    call("import", archive(tmp_path / "a.jsonl", LONGER_HISTORY), "--store", tmp_path / "a")
    call("import", archive(tmp_path / "b.jsonl", alter_later_events(LONGER_HISTORY)), "--store", tmp_path / "b")
    result = call("answer", "10", "--store", tmp_path / "a", *options)
    assert result == call("answer", "10", "--store", tmp_path / "b", *options)
    assert "**Mentioned here**" in result.out
    assert "**Open now**" in result.out
    answers = [call("answer", "10", "--store", tmp_path / name, *options, "--json").data for name in "ab"]
    assert [answer.pop("ms") > 0 for answer in answers] == [True, True]
    assert answers[0] == answers[1]
    assert {hit["id"] for hit in answers[0]["open_now"]} <= {2, 3, 4}
    today = [call("answer", "10", "--store", tmp_path / name) for name in "ab"]
    assert today[0] != today[1]


def test_an_answer_as_of_creation_ignores_later_comments_on_the_thread(tmp_path: Path, call: Run) -> None:
    thread = issue(
        10, "Unlike all others", "Giraffes.", day=10, comments=[comment("See #1.", 12) | {"author": "octocat"}]
    )
    call("import", archive(tmp_path / "a.jsonl", [*HISTORY[:3], thread]), "--store", tmp_path / "s")
    assert call("answer", "10", "--store", tmp_path / "s", "--as-of", "created").out == ""
    assert "**Mentioned here**" in call("answer", "10", "--store", tmp_path / "s").out


# Search


def test_a_search_without_hits_says_how_much_was_searched(store: Path, call: Run) -> None:
    for words in ["***", "the", "giraffes", "\udcff", "\x00", "x" * 10_000]:
        result = call("search", words, "--store", store)
        assert (result.code, result.out) == (0, ""), words
        assert result.err == "Nothing relevant. 8 threads and 9 messages searched.\n", words
        assert call("search", words, "--store", store, "--json").data == [], words


def test_a_title_on_two_lines_is_printed_on_one(tmp_path: Path, call: Run) -> None:
    call("import", archive(tmp_path / "a.jsonl", [issue(1, "Zebra\tin\ntwo lines")]), "--store", tmp_path / "s")
    assert call("search", "zebra", "--store", tmp_path / "s").out.endswith("\tZebra in two lines\n")
