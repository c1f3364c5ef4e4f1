# ruff: noqa: E501 - a rule is a row
"""The expected outcome of each fault at each call, written by hand as a table of rules.

A rule gives the reason, the calls, the faults and the outcome. Every pair of a call and a fault is in exactly one
rule; `tests/faults/test_matrix.py` plays those that have an outcome of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.fault_runs import Outcome

LIST = "list what changed"
SEVERAL = "comments of several issues"
OWN = "the event's own issue"
THREAD = "comments of one issue"
TIMELINE = "timeline of a closed issue"
MENTIONED = "an issue that is mentioned"
PROMISED = "whether a promised comment was posted"
THUMBS = "thumbs on our comment"
PERMISSION = "what an account may do"
LOCATION = "where the repository is"
PULL, FILES, RELEASES, IN_RELEASE = (
    "the pull request of a fix",
    "its files",
    "releases",
    "whether a release contains it",
)
COMMIT, TAGS = "the commit of a fix", "tags"
HISTORY = "history (GraphQL)"
CREATE, CHANGE, REPLY, REACT = "write a comment", "change a comment", "reply", "react"
OPEN = "open pull requests (GraphQL)"

FIXES = (PULL, FILES, RELEASES, IN_RELEASE, COMMIT, TAGS)
THREADS = (OWN, THREAD, TIMELINE)
FULLY_PLAYED = (LIST, THREAD)
"""Reads at which all faults are played. At the others, a fault stands for those that look the same to the one place in
the code that handles all answers."""
OTHER_READS = (SEVERAL, OWN, TIMELINE, MENTIONED, PROMISED, THUMBS, PERMISSION, LOCATION, *FIXES)
READS = (*FULLY_PLAYED, *OTHER_READS)
REST_WRITES = (CREATE, CHANGE, REPLY, REACT)
REST = (*READS, *REST_WRITES)

SECONDARY_KINDS = ("secondary limit without a time", "429")
LIMITS = ("primary limit", "secondary limit", *SECONDARY_KINDS)
LIMITS_200 = ("limit with status 200", "secondary limit with status 200")
REFUSALS = ("archived", "locked", "interaction limit", "2,500 comments")
GONE = ("410", "moved to another repository")
OUTAGES = ("5xx", "504", "dropped", "page of a proxy", "cut JSON")
SAME = "nothing wrong"
TOKEN, LIMIT, NO_PERMISSION = "refused the token", "limit is exhausted until", "may not do this"


@dataclass(frozen=True)
class Rule:
    """``why`` is the reason. With an ``outcome``, the pairs are played. With ``like``, they end as that fault does at
    the same call, or as without any fault (SAME). With neither, they cannot happen."""

    why: str
    calls: tuple[str, ...]
    faults: tuple[str, ...]
    outcome: Outcome | None = None
    like: str = ""

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        return ((call, fault) for call in self.calls for fault in self.faults)


@dataclass(frozen=True)
class Part:
    """Rules that belong together, under one heading."""

    title: str
    rules: tuple[Rule, ...]


def fine(says: str = "") -> Outcome:
    """As if nothing had happened."""
    return Outcome(0, says, "now", True)


def later(code: int, says: str, *, remembers: bool) -> Outcome:
    """The due work is done by the next run."""
    return Outcome(code, says, "later", remembers)


PARTS = (
    Part("Trouble on the way", (
        Rule("A read is repeated up to three times, after half a second, one and two, each a little more or less.",
             READS, ("dropped once",), fine()),
        Rule("So is one that a gateway refused.", FULLY_PLAYED, ("5xx once",), fine()),
        Rule("As dropped once.", OTHER_READS, ("5xx once",), like="dropped once"),
        Rule("A read whose answer is lost changed nothing: it is repeated.", READS, ("lost reply",), like="dropped once"),
        Rule("A late answer is an answer, up to 20 seconds without a word and 40 for all of it.",
             (*FULLY_PLAYED, HISTORY, CREATE), ("slow",), fine()),
        Rule("As there.", (*OTHER_READS, CHANGE, REPLY, REACT, OPEN), ("slow",), like=SAME),
        Rule("Without the list nothing is known: the run fails, and the cursor stays. The next one lists the same.",
             (LIST,), OUTAGES, later(1, "the next run catches up", remembers=False)),
        Rule("What a thread says cannot be read: the cursor stays before it, all others are read. No half of it is kept.",
             (THREAD,), OUTAGES, later(1, "the next run catches up", remembers=False)),
        Rule("The event's own issue is promised an answer, so that it is asked for again although no list shows it.",
             (OWN,), ("5xx",), later(1, "the next run catches up", remembers=False)),
        Rule("Another issue's ending waits for the next run; the event's own is answered.",
             (TIMELINE,), ("5xx",), Outcome(1, "the next run catches up", "now", True)),
        Rule("What several issues said is read from each of them instead.", (SEVERAL,), ("5xx",), fine()),
        Rule("The comment is written without what could not be read.", (MENTIONED,), ("5xx",), fine()),
        Rule("The same, however many fixes are asked for in vain: a day later they are looked for again.",
             FIXES, ("5xx",), fine()),
        Rule("Whether it stands must be known before anything is written.",
             (PROMISED,), ("5xx",), later(1, "the next run catches up", remembers=True)),
        Rule("Thumbs are counted by a later run; nobody waits for them.", (THUMBS,), ("5xx",), later(0, "", remembers=True)),
        Rule("Who may do what is not guessed: the command waits.",
             (PERMISSION,), ("5xx",), later(1, "the next run catches up", remembers=True)),
        Rule("Where it is now is not guessed either.",
             (LOCATION,), ("5xx",), later(1, "the next run catches up", remembers=False)),
        Rule("As 5xx: it outlasts all repeats.", OTHER_READS, OUTAGES[1:], like="5xx"),
        Rule("A write is not repeated. What was promised is looked for by the next run, and written where it is missing.",
             (CREATE,), OUTAGES[:-1], later(1, "the next run catches up", remembers=True)),
        Rule("The comment stands as it was; the next run changes it.",
             (CHANGE,), ("5xx",), later(1, "the next run catches up", remembers=True)),
        Rule("It was changed, and the run does not know: the next one sees it.",
             (CHANGE,), ("lost reply",), Outcome(1, "the next run catches up", "now", True)),
        Rule("The reply is promised; the next run looks whether it stands.",
             (REPLY,), ("5xx",), later(1, "the next run catches up", remembers=True)),
        Rule("A reaction is a nicety: a line in the log, and the reply all the same.", (REACT,), ("5xx",), fine()),
        Rule("As 5xx.", (CHANGE, REPLY, REACT), OUTAGES[1:-1], like="5xx"),
        Rule("The write was done and its answer lost: it is looked for before anything else, and found.",
             (CREATE, REPLY), ("lost reply", "cut JSON"), fine()),
        Rule("As lost reply.", (CHANGE,), ("cut JSON",), like="lost reply"),
        Rule("As 5xx; the same reaction twice is one.", (REACT,), ("lost reply", "cut JSON"), like="5xx"),
        Rule("A write is not repeated: once is as good as always.",
             REST_WRITES, ("5xx once", "dropped once"), like="5xx"),
    )),
    Part("The token", (
        Rule("The run ends with the remedy; nothing more is asked for. What was read until then is kept.",
             (LIST, *THREADS[:2], LOCATION), ("401",), later(1, TOKEN, remembers=False)),
        Rule("The event's own issue was read already.", (TIMELINE, MENTIONED, PROMISED, *FIXES, THUMBS, PERMISSION),
             ("401",), later(1, TOKEN, remembers=True)),
        Rule("The issues cannot be read one by one either.", (SEVERAL,), ("401",), later(1, TOKEN, remembers=False)),
        Rule("Memory is written before: only the comment waits.", (CREATE, CHANGE, REPLY), ("401",),
             later(1, TOKEN, remembers=True)),
        Rule("Neither is the reply written.", (REACT,), ("401",), later(1, TOKEN, remembers=True)),
        Rule("One line names the permission that is missing; the cursor stays.",
             (LIST, *THREADS[:2], LOCATION), ("permission",), later(1, NO_PERMISSION, remembers=False)),
        Rule("The event's own issue is answered; the other one waits for the permission.",
             (TIMELINE,), ("permission",), Outcome(1, NO_PERMISSION, "now", True)),
        Rule("Read one by one.", (SEVERAL,), ("permission",), fine()),
        Rule("Told without it; the summary names the permission.", (MENTIONED, *FIXES), ("permission",), fine()),
        Rule("Not known, not written.", (PROMISED, PERMISSION), ("permission",), later(1, NO_PERMISSION, remembers=True)),
        Rule("A later run counts them.", (THUMBS,), ("permission",), later(0, "", remembers=True)),
        Rule("Memory is written, the comment waits for the permission.", (CREATE, CHANGE, REPLY), ("permission",),
             later(1, NO_PERMISSION, remembers=True)),
        Rule("A line in the log.", (REACT,), ("permission",), fine()),
    )),
    Part("Limits", (
        Rule("The run ends well, with a notice of when it can go on. Nothing was read, the cursor stays.",
             (LIST, *THREADS[:2], SEVERAL), ("primary limit", "secondary limit"), later(0, LIMIT, remembers=False)),
        Rule("What was read is remembered, what is due is promised; nothing more is asked for.",
             (TIMELINE, MENTIONED, PROMISED, *FIXES, THUMBS, PERMISSION), ("primary limit", "secondary limit"),
             later(0, LIMIT, remembers=True)),
        Rule("The run ends well; the next one asks where the repository is.",
             (LOCATION,), ("primary limit", "secondary limit"), later(0, LIMIT, remembers=False)),
        Rule("Memory is written, the promise is kept by the next run.", REST_WRITES,
             ("primary limit", "secondary limit"), later(0, LIMIT, remembers=True)),
        Rule("A limit that names no time lasts a minute at least; none is waited for in a run for an event.",
             (LIST, THREAD), SECONDARY_KINDS, later(0, LIMIT, remembers=False)),
        Rule("The same, after memory.", (CREATE,), SECONDARY_KINDS, later(0, LIMIT, remembers=True)),
        Rule("As secondary limit.", (*OTHER_READS, CHANGE, REPLY, REACT), SECONDARY_KINDS, like="secondary limit"),
        Rule("Only GraphQL says so with a status of 200.", REST, LIMITS_200),
    )),
    Part("Gone, moved, hidden", (
        Rule("A list is empty before it is gone: the token cannot see the issues.",
             (LIST,), ("404",), later(1, "cannot see this repository's issues", remembers=False)),
        Rule("Seconds after it was opened GitHub may not show an issue: it is asked for again, for five seconds at most.",
             (OWN,), ("404 for a moment",), fine()),
        Rule("Out of sight, such as an author who is held for a spammer: nothing is removed, and a day long each run looks.",
             (OWN,), ("404",), later(0, "", remembers=False)),
        Rule("It was listed a moment ago: the cursor waits for it.", (THREAD,), ("404",), later(0, "", remembers=False)),
        Rule("The other issue waits, the event's own is answered.", (TIMELINE,), ("404",), fine()),
        Rule("Told without it.", (MENTIONED, *FIXES), ("404",), fine()),
        Rule("Left alone until it can be seen.", (PROMISED,), ("404",), later(0, "", remembers=True)),
        Rule("A comment that is not there was deleted by a person, and is not written again.",
             (THUMBS,), ("404", "410"), Outcome(0, "", "never", True)),
        Rule("There is no such account: it may do nothing, and is told so.", (PERMISSION,), ("404",), fine()),
        Rule("The repository is not there for this token.", (LOCATION,), ("404",), later(1, "cannot see", remembers=False)),
        Rule("Read one by one.", (SEVERAL,), ("404",), fine()),
        Rule("Only what is new is not shown for a moment; elsewhere as 404.",
             (*FULLY_PLAYED, SEVERAL, TIMELINE, MENTIONED, PROMISED, THUMBS, PERMISSION, LOCATION, *FIXES, *REST_WRITES),
             ("404 for a moment",), like="404"),
        Rule("Memory forgets the text and keeps a tombstone, which says where it went.",
             THREADS[:2], GONE, Outcome(0, "", "never", False, buried=True)),
        Rule("The same for the other issue.", (TIMELINE,), GONE, Outcome(0, "", "now", True, buried=True)),
        Rule("Told as gone, remembered as a tombstone.", (MENTIONED,), GONE, Outcome(0, "", "now", True, buried=True)),
        Rule("Gone since it was promised an answer: a tombstone, and no comment.",
             (PROMISED,), GONE, Outcome(0, "", "never", False, buried=True)),
        Rule("Lists, accounts, repositories, releases and comments elsewhere do not move or go so.",
             (LIST, SEVERAL, PERMISSION, LOCATION, *FIXES), GONE),
        Rule("A comment goes with its issue, which the list tells.", (THUMBS,), GONE[1:]),
        Rule("The issue cannot be seen now: the promise stands for the next run.",
             (CREATE, REPLY), ("404",), later(0, "", remembers=True)),
        Rule("No comment, never in another repository, and a tombstone.",
             (CREATE, REPLY), GONE, Outcome(0, "not there any more", "never", False, buried=True)),
        Rule("A person deleted the comment. Where that is not so, the next run finds it and changes it.",
             (CHANGE,), ("404", "410"), later(0, "", remembers=True)),
        Rule("As 410.", (CHANGE,), GONE[1:], like="410"),
        Rule("A line in the log.", (REACT,), ("404",), fine()),
        Rule("As 404.", (REACT,), GONE, like="404"),
        Rule("The run ends well and says so; when they are switched on again, the next one goes on.",
             (LIST,), ("issues switched off",), later(0, "switched off", remembers=False)),
        Rule("The list says so before.", (*OTHER_READS, THREAD, *REST_WRITES), ("issues switched off",)),
        Rule("A repository with a new name is followed by its number, with all that the request asked for; a write too.",
             (LIST, THREAD, OWN, TIMELINE, PROMISED, PULL, CREATE, CHANGE, REPLY), ("repository renamed",), fine()),
        Rule("Known by then.", (SEVERAL, MENTIONED, THUMBS, PERMISSION, LOCATION, *FIXES[1:], REACT), ("repository renamed",)),
    )),
    Part("Refused for good", (
        Rule("GitHub refuses only writing so.", READS, REFUSALS),
        Rule("Remembered, not said: a notice, and no second try.",
             (CREATE,), REFUSALS, Outcome(0, "GitHub accepts no comment here", "never", True)),
        Rule("What stands there stands.", (CHANGE,), ("locked",), Outcome(0, "GitHub accepts no comment here", "never", True)),
        Rule("As locked.", (CHANGE,), ("archived",), like="locked"),
        Rule("They are about new comments.", (CHANGE,), ("interaction limit", "2,500 comments")),
        Rule("No reply.", (REPLY,), ("locked",), Outcome(0, "GitHub accepts no comment here", "never", True)),
        Rule("As locked.", (REPLY,), ("archived", "interaction limit", "2,500 comments"), like="locked"),
        Rule("A line in the log.", (REACT,), ("locked", "422"), fine()),
        Rule("As locked.", (REACT,), ("archived", "interaction limit"), like="locked"),
        Rule("It is about comments.", (REACT,), ("2,500 comments",)),
        Rule("GitHub does not take the text, and would not take it later: a fault of ours, said once and not tried again.",
             (CREATE, CHANGE), ("422",), Outcome(1, "rejected the request", "never", True)),
        Rule("The same.", (REPLY,), ("422",), Outcome(1, "rejected the request", "never", True)),
        Rule("That is no commit of this repository: told without it.", (COMMIT,), ("422",), fine()),
        Rule("Nothing is sent that could be invalid.", tuple(call for call in READS if call != COMMIT), ("422",)),
    )),
    Part("GraphQL", (
        Rule("History is repeated like a read.", (HISTORY,), ("5xx once",), fine()),
        Rule("History is read on by the next run; the event is answered from what there is, read one by one.",
             (HISTORY,), ("5xx", "dropped"), fine()),
        Rule("Refused: the remedy, and nothing is lost.", (HISTORY,), ("401",), later(1, TOKEN, remembers=False)),
        Rule("The remedy.", (HISTORY,), ("permission",), later(1, "issues: write", remembers=False)),
        Rule("GraphQL has points of its own: the reading ends with a notice of when it can go on, the event is answered.",
             (HISTORY,), ("limit with status 200",), fine(LIMIT)),
        Rule("This one is for all requests: the run ends well, with a notice.",
             (HISTORY,), ("secondary limit", "secondary limit with status 200"), later(0, LIMIT, remembers=False)),
        Rule("As limit with status 200.", (HISTORY,), ("primary limit",), like="limit with status 200"),
        Rule("As secondary limit.", (HISTORY,), SECONDARY_KINDS, like="secondary limit"),
        Rule("A server without GraphQL is read by REST.", (HISTORY,), ("404",), fine()),
        Rule("As 404.", (HISTORY,), ("404 for a moment",), like="404"),
        Rule("As 5xx.", (HISTORY,), ("504", "page of a proxy", "cut JSON"), like="5xx"),
        Rule("As dropped once.", (HISTORY,), ("dropped once", "lost reply"), like="5xx once"),
        Rule("The comment is written without the open pull requests; it stands in the summary. It is not asked for twice.",
             (OPEN,), ("5xx", "404", "permission"), fine()),
        Rule("As 5xx.", (OPEN,),
             ("504", "dropped", "page of a proxy", "cut JSON", "lost reply", "5xx once", "dropped once"), like="5xx"),
        Rule("As 404.", (OPEN,), ("404 for a moment",), like="404"),
        Rule("The same; a notice says when the points of GraphQL are there again.",
             (OPEN,), ("limit with status 200",), fine(LIMIT)),
        Rule("As limit with status 200.", (OPEN,), ("primary limit",), like="limit with status 200"),
        Rule("This one is for all requests: the comment is promised, and the next run writes it.",
             (OPEN,), ("secondary limit", "secondary limit with status 200"), later(0, LIMIT, remembers=True)),
        Rule("As secondary limit.", (OPEN,), SECONDARY_KINDS, like="secondary limit"),
        Rule("Memory is written: only the comment waits.", (OPEN,), ("401",), later(1, TOKEN, remembers=True)),
        Rule("An empty list says nothing then: the run ends well, and nothing is taken for gone.",
             (HISTORY,), ("issues switched off",), later(0, "switched off", remembers=False)),
        Rule("The list says so before.", (OPEN,), ("issues switched off",)),
        Rule("GraphQL has no such answers.", (HISTORY, OPEN), (*GONE, "repository renamed", *REFUSALS, "422")),
    )),
)  # fmt: skip


def rules() -> Iterator[tuple[Part, Rule]]:
    """All rules, each with its part."""
    return ((part, rule) for part in PARTS for rule in part.rules)


def cells_to_play() -> dict[tuple[str, str], Rule]:
    """The pairs of a call and a fault that are played, with their rule."""
    return {pair: rule for _, rule in rules() if rule.outcome for pair in rule.pairs}
