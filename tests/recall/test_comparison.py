"""What many threads have is neither evidence nor a reason, and what two people met is both."""

from bot.domain.thread import Thread
from bot.memory.memory import Memory
from bot.ranking.features import LEAST_FEW
from bot.ranking.order import RankedCandidates
from bot.recall.comparison import Comparison, compare
from bot.recall.library import Library, RedactedLibrary
from bot.recall.similar import Limits, find_candidates
from tests.recall.conftest import Remember
from tests.recall.samples import closed, similar, thread

EVERYTHING = Limits(floor=0.0, closed=9, open=9, budget=9_000)
CONFIGURE = """checking for gcc... /usr/bin/gcc
checking whether the C compiler works... yes
configure.ac:30: error: possibly undefined macro: AC_CONFIG_AUX_DIR
config.status: creating src/Makefile"""
MET = "error: relay 7 closed the channel before the handshake"
NOUNS = ("tunnel", "mirror", "ledger", "beacon", "anchor", "quarry", "walrus", "marmot", "lantern", "canyon")


def build_logs(count: int) -> list[Thread]:
    """Issues about as many things, each with the same output of its build."""
    return [
        closed(n, f"The {noun} does not build", f"The {noun} stops here.\n\n```\n{CONFIGURE}\n```")
        for n, noun in enumerate(NOUNS[:count], start=1)
    ]


def beside(memory: Memory, asked: Thread, *keys: int) -> list[Comparison]:
    found = find_candidates(asked, memory, None, ())
    others = [one for key in keys if isinstance(one := memory.records([key])[key], Thread)]
    return list(compare(asked, others, found.query, memory))


def whys(memory: Memory, asked: Thread) -> dict[object, tuple[str, ...]]:
    return {match.id: match.why for part in similar(asked, memory, None, (), EVERYTHING) for match in part}


ASKED = thread(500, "The falcon does not link", f"The falcon stops.\n\n```\n{CONFIGURE}\n{MET}\n```")


def test_a_build_log_that_many_have_is_no_evidence(remember: Remember) -> None:
    few, many = (beside(remember(*build_logs(count)), ASKED, 1)[0] for count in (LEAST_FEW, LEAST_FEW + 1))
    assert few.errors > 0
    assert (many.errors, many.shared.errors, many.shared.files, many.shared.names) == (0, (), (), ())
    assert "checking" in few.text
    assert "checking" not in many.text
    assert "falcon" in many.text


def test_an_error_that_two_people_met_is_evidence_among_any_number_of_build_logs(remember: Remember) -> None:
    other = closed(90, "No link", f"It ends so:\n\n```\n{CONFIGURE}\n{MET.replace('7', '12')}\n```")
    memory = remember(*build_logs(len(NOUNS)), other)
    (both,) = beside(memory, ASKED, 90)
    assert both.errors == 6, "eight words side by side"
    assert both.shared.errors == (MET,)
    told = whys(memory, ASKED)
    assert told[90][0] == "same error `error: relay … closed the channel before the handshake`"
    assert not any("AC_CONFIG" in reason or "checking" in reason for reasons in told.values() for reason in reasons)


def test_a_macro_of_a_build_system_is_a_name_and_no_error(remember: Remember) -> None:
    memory = remember(*build_logs(1), *(thread(n, f"Row {n}", "It is slow.") for n in range(20, 30)))
    told = whys(memory, thread(500, "No build", "configure.ac: error: possibly undefined macro: AC_CONFIG_AUX_DIR"))
    assert not any(reason.startswith("same error `AC_") for reason in told.get(1, ()))


def test_of_a_path_the_place_on_a_machine_does_not_count(remember: Remember) -> None:
    def one(n: int, home: str) -> Thread:
        return closed(n, f"The {NOUNS[n - 1]} stops", f"The {NOUNS[n - 1]} names {home}/core/option.rs here.")

    memory = remember(*(one(n, f"/home/user{n}/src") for n in range(1, 10)))
    (both,) = beside(memory, thread(500, "A falcon", "At /home/user1/src/core/option.rs it stops."), 1)
    assert both.shared.files == ()


class Uncounted(RedactedLibrary):
    """A library whose index cannot count."""

    def __init__(self, library: Library) -> None:
        super().__init__(library, ())
        self.joint_frequency = lambda groups, *, before=None: {}


def test_what_nobody_counted_is_common(remember: Remember) -> None:
    memory = remember(*build_logs(1))
    found: RankedCandidates = find_candidates(ASKED, memory, None, ())
    (both,) = compare(ASKED, [build_logs(1)[0]], found.query, Uncounted(memory))
    assert (both.errors, both.shared.errors) == (0, ())


def test_the_same_text_is_known_but_not_where_a_form_is_all_that_is_the_same(remember: Remember) -> None:
    text = "The relay closes its channel an hour after the last frame, and nobody opens another one until morning."
    text += " After that the queue is full of letters which were kept for it, and all of them are sent at once again."
    memory = remember(*build_logs(len(NOUNS)), closed(90, "The relay closes", text))
    (both,) = beside(memory, thread(500, "The relay closes", text.replace("hour", "minute")), 90)
    assert both.is_same
    (both,) = beside(memory, thread(501, "The relay closes", "The relay closes its channel."), 90)
    assert not both.is_same
    assert not beside(memory, thread(502, "The tunnel does not build", f"It stops.\n{CONFIGURE}"), 1)[0].is_same


def test_a_word_counts_as_said_only_where_prose_or_code_of_the_older_text_has_it(remember: Remember) -> None:
    older = closed(
        90, "The relay closes", "make: *** [falcon/install] Error 2\nat /home/falcon/relay/mirror.rs:7\nA walrus."
    )
    (both,) = beside(
        remember(older), thread(500, "The relay closes", "The falcon and the walrus install a mirror."), 90
    )
    assert both.prose_words >= {"walrus", "relay"}
    assert both.prose_words.isdisjoint({"falcon", "instal", "mirror"})


def test_two_copies_of_a_form_about_other_things_are_not_the_same_text(remember: Remember) -> None:
    form = " ".join(f"The {noun} is as the draft of the setting has it." for noun in NOUNS)
    memory = remember(
        closed(1, "Remove BANDWIDTH", form), *(thread(n, f"Row {n}", "It is slow.") for n in range(20, 90))
    )
    (copy,) = beside(memory, thread(500, "Remove BANDWIDTH", form), 1)
    (other,) = beside(memory, thread(500, "Keep RETRANS_RATE", form), 1)
    assert (copy.is_same, other.is_same) == (True, False)
