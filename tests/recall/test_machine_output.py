"""What people write in a text, without the output of machines."""

from bot.recall.reasons import strip_machine_output
from tests.examples import share
from tests.reading.linear_time import assert_linear_time


def test_lines_written_by_machines_are_left_out() -> None:
    lines = [
        "   1:     0x7f86a65479c0 - rt::backtrace::imp::write",
        "#3 0x0000 in relay::close ()",
        "    at Relay.close (relay.js:12:3)",
        '  File "/srv/app/relay.py", line 3, in close',
        "make[1]: *** [doc/rustc/index.html] Error 101",
        "/home/mona/rust/mk/docs.mk:306: recipe for target 'doc' failed",
        "note: run with `RUST_BACKTRACE=1` for a backtrace",
    ]
    assert [
        line
        for line in lines
        if strip_machine_output(f"The relay closes.\n{line}\nAgain.") != "The relay closes.\nAgain."
    ] == []


def test_paths_positions_prompts_and_the_prefix_of_a_panic_are_left_out() -> None:
    text = "mona@laptop:~$ run /home/mona/src/relay.rs and relay.rs:12:3\nthread 'main' panicked at 'no relay'"
    assert strip_machine_output(text).split() == [":~$", "run", "and", "'no", "relay'"]


def test_positions_without_a_file_and_the_codes_for_colours_are_left_out() -> None:
    text = "[fg255,0,0; <Relay>[error] [undefined:63:27] no relay [; \x1b[31mred\x1b[0m at 10:30"
    assert strip_machine_output(text).split() == [
        "<Relay>[error]",
        "[",
        "]",
        "no",
        "relay",
        "[;",
        "\x1b",
        "red\x1b",
        "at",
        "10:30",
    ]


def test_messages_that_any_program_may_end_with_are_left_out() -> None:
    text = "RangeError: Maximum call stack size exceeded in the relay; cannot read property of undefined"
    assert strip_machine_output(text).split() == ["RangeError:", "in", "the", "relay;"]


def test_prose_and_code_stay() -> None:
    text = "An and/or of `relay::close()`, see read_session in auth/cookie.py\n1. first\n2 more"
    assert strip_machine_output(text) == text


PIECES = ["a/", "/a", "a.", "a@", "1:", "thread '", " ", "\\", "x/y.", "make: ", "\n#1 "]


def test_hostile_text_takes_linear_time() -> None:
    assert_linear_time(strip_machine_output, *share(PIECES))
