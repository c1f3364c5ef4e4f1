"""What many threads share is neither evidence nor a reason; what only two reports share is both."""

from dataclasses import replace

from bot.domain.thread import Thread
from bot.memory.memory import Memory
from bot.ranking.features import SPECIFIC_THREADS_FLOOR
from bot.ranking.order import RankedCandidates
from bot.recall.comparison import Comparison, compare
from bot.recall.similar import Limits, find_candidates
from tests.recall.conftest import Remember
from tests.recall.samples import closed, similar, thread

EVERYTHING = Limits(floor=0.0, closed=9, open=9, budget=9_000)
CONFIGURE = """checking for gcc... /usr/bin/gcc
checking whether the C compiler works... yes
configure.ac:30: error: possibly undefined macro: AC_CONFIG_AUX_DIR
config.status: creating src/Makefile"""
SHARED_ERROR = "error: relay 7 closed the channel before the handshake"
NOUNS = ("tunnel", "mirror", "ledger", "beacon", "anchor", "quarry", "walrus", "marmot", "lantern", "canyon")


def build_logs(count: int) -> list[Thread]:
    """``count`` issues about different things, each with the same build output."""
    return [
        closed(n, f"The {noun} does not build", f"The {noun} stops here.\n\n```\n{CONFIGURE}\n```")
        for n, noun in enumerate(NOUNS[:count], start=1)
    ]


def compare_with(memory: Memory, question: Thread, *keys: int) -> list[Comparison]:
    ranked = find_candidates(question, memory, None, ())
    others = [record for key in keys if isinstance(record := memory.records([key])[key], Thread)]
    return list(compare(question, others, ranked.query, memory))


def reasons_by_id(memory: Memory, question: Thread) -> dict[object, tuple[str, ...]]:
    return {match.id: match.why for part in similar(question, memory, None, (), EVERYTHING) for match in part}


QUESTION = thread(500, "The falcon does not link", f"The falcon stops.\n\n```\n{CONFIGURE}\n{SHARED_ERROR}\n```")


def test_a_build_log_that_many_threads_have_is_no_evidence(remember: Remember) -> None:
    few, many = (
        compare_with(remember(*build_logs(count)), QUESTION, 1)[0]
        for count in (SPECIFIC_THREADS_FLOOR, SPECIFIC_THREADS_FLOOR + 1)
    )
    assert few.errors > 0
    assert (many.errors, many.shared.errors, many.shared.files, many.shared.names) == (0, (), (), ())
    assert "checking" in few.text
    assert "checking" not in many.text
    assert "falcon" in many.text


def test_an_error_in_only_two_reports_is_evidence_among_any_number_of_build_logs(remember: Remember) -> None:
    other = closed(90, "No link", f"It ends so:\n\n```\n{CONFIGURE}\n{SHARED_ERROR.replace('7', '12')}\n```")
    memory = remember(*build_logs(len(NOUNS)), other)
    (both,) = compare_with(memory, QUESTION, 90)
    assert both.errors == 6, "eight words side by side"
    assert both.shared.errors == (SHARED_ERROR,)
    reasons_for = reasons_by_id(memory, QUESTION)
    assert reasons_for[90][0] == "same error `error: relay … closed the channel before the handshake`"
    assert not any(
        "AC_CONFIG" in reason or "checking" in reason for reasons in reasons_for.values() for reason in reasons
    )


def test_a_macro_of_a_build_system_is_a_name_and_no_error(remember: Remember) -> None:
    memory = remember(*build_logs(1), *(thread(n, f"Row {n}", "It is slow.") for n in range(20, 30)))
    question = thread(500, "The tunnel needs AC_CONFIG_AUX_DIR", "autoconf: error in AC_CONFIG_AUX_DIR")
    assert reasons_by_id(memory, question)[1] == ("both name `AC_CONFIG_AUX_DIR`",)


def test_the_local_part_of_a_path_does_not_count(remember: Remember) -> None:
    def issue(n: int, home: str) -> Thread:
        return closed(n, f"The {NOUNS[n - 1]} stops", f"The {NOUNS[n - 1]} names {home}/core/option.rs here.")

    memory = remember(*(issue(n, f"/home/user{n}/src") for n in range(1, 10)))
    (both,) = compare_with(memory, thread(500, "A falcon", "At /home/user1/src/core/option.rs it stops."), 1)
    assert both.shared.files == ()


def test_terms_that_were_not_counted_are_common(remember: Remember) -> None:
    memory = remember(*build_logs(1))
    ranked: RankedCandidates = find_candidates(QUESTION, memory, None, ())
    query = replace(ranked.query, lines=frozenset())
    memory.joint_frequency = lambda _, **__: {}  # type: ignore[method-assign]
    (both,) = compare(QUESTION, [build_logs(1)[0]], query, memory)
    assert (both.errors, both.shared.errors) == (0, ())


def test_the_same_text_is_recognised_but_a_shared_form_alone_is_not(remember: Remember) -> None:
    text = "The relay closes its channel an hour after the last frame, and nobody opens another one until morning."
    text += " After that the queue is full of letters which were kept for it, and all of them are sent at once again."
    memory = remember(*build_logs(len(NOUNS)), closed(90, "The relay closes", text))
    (both,) = compare_with(memory, thread(500, "The relay closes", text.replace("hour", "minute")), 90)
    assert both.is_same
    (both,) = compare_with(memory, thread(501, "The relay closes", "The relay closes its channel."), 90)
    assert not both.is_same
    assert not compare_with(memory, thread(502, "The tunnel does not build", f"It stops.\n{CONFIGURE}"), 1)[0].is_same


def test_a_word_counts_only_if_prose_or_code_of_the_older_text_has_it(remember: Remember) -> None:
    older = closed(
        90, "The relay closes", "make: *** [falcon/install] Error 2\nat /home/falcon/relay/mirror.rs:7\nA walrus."
    )
    (both,) = compare_with(
        remember(older), thread(500, "The relay closes", "The falcon and the walrus install a mirror."), 90
    )
    assert both.prose_words >= {"walrus", "relay"}
    assert both.prose_words.isdisjoint({"falcon", "instal", "mirror"})


def test_two_copies_of_a_form_about_other_things_are_not_the_same_text(remember: Remember) -> None:
    form = " ".join(f"The {noun} is as the draft of the setting has it." for noun in NOUNS)
    memory = remember(
        closed(1, "Remove BANDWIDTH", form), *(thread(n, f"Row {n}", "It is slow.") for n in range(20, 90))
    )
    (copy,) = compare_with(memory, thread(500, "Remove BANDWIDTH", form), 1)
    (other,) = compare_with(memory, thread(500, "Keep RETRANS_RATE", form), 1)
    assert (copy.is_same, other.is_same) == (True, False)


def test_two_texts_with_different_errors_have_another_error(remember: Remember) -> None:
    def other_error(body: str, title: str = "The falcon does not link") -> bool:
        memory = remember(closed(90, title, body), *build_logs(3))
        return compare_with(memory, thread(500, "A falcon", f"It stops.\n{SHARED_ERROR}"), 90)[0].has_other_error

    assert other_error("It stops.\nerror: no licence found for the falcon")
    assert not other_error("It stops.")
    assert not other_error(f"It stops.\n{SHARED_ERROR}")
    assert not other_error("It stops.\nerror: the relay closed the channel before the handshake ended")
    assert not other_error("It mentions FALCON_ERROR.")


def test_another_error_makes_a_thread_less_similar(remember: Remember) -> None:
    title, question = "The falcon crashes while it lands", thread(500, "The falcon crashes while it lands on ice", "")
    errors = ("error: no runway found on the map", "error: battery of the rotor is empty")

    def similarity(ours: str, theirs: str) -> float:
        memory = remember(closed(90, title, theirs), *build_logs(3))
        matches = similar(thread(500, question.title, ours), memory, None, (), EVERYTHING)
        return max((match.similarity for part in matches for match in part), default=0.0)

    assert similarity(errors[0], errors[1]) < 0.65 < similarity(errors[0], "")


def test_what_else_the_line_of_a_common_message_names_is_no_reason(remember: Remember) -> None:
    line = 'pool.cpp:31: void net::Pool::close_all(): Assertion `is_idle() && "the pool must be empty here"\' failed.'
    question = thread(500, "The falcon lands on ice", f"Then:\n\n```\n{line}\n```")

    def reasons_for(count: int) -> str:
        threads = [closed(n, f"The {noun}", f"{noun}:\n```\n{line}\n```") for n, noun in enumerate(NOUNS[:count], 1)]
        return str(reasons_by_id(remember(*threads), question))

    assert "net::Pool::close_all" in reasons_for(SPECIFIC_THREADS_FLOOR)
    assert "net::Pool" not in reasons_for(SPECIFIC_THREADS_FLOOR + 1)


def test_a_title_that_only_repeats_a_common_message_gives_no_reason(remember: Remember) -> None:
    line = 'pool.cpp:31: void net::Pool::close_all(): Assertion `is_idle() && "the pool must be empty here"\' failed.'
    title = "Assertion the pool must be empty here"

    def reasons_for(count: int) -> str:
        threads = [
            closed(n, f"{title} failed", f"{noun}:\n```\n{line}\n```") for n, noun in enumerate(NOUNS[:count], 1)
        ]
        return str(reasons_by_id(remember(*threads), thread(500, title, f"Then:\n\n```\n{line}\n```")))

    assert "pool" in reasons_for(SPECIFIC_THREADS_FLOOR)
    assert "pool" not in reasons_for(SPECIFIC_THREADS_FLOOR + 1)
