"""Adds the open pull requests for the open issues that a run's comments show, looked up in one request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.comment.marker import fingerprint, seal
from bot.domain.answer import Speak, open_issues
from bot.domain.changes import OpenPull, wrong_matches_for
from bot.domain.thread import Thread
from bot.github.errors import ForgeError, RateLimited
from bot.github.history import RestingHistory
from bot.github.open_pulls import MAX_ASKED, find_open_pulls
from bot.pipeline.outbox import CommentPlan
from bot.pipeline.run_context import RunContext
from bot.questions.comment import comment_on
from bot.recall.open_pulls import still_open, with_pulls


def tell_open_pulls(plans: Sequence[CommentPlan], run: RunContext) -> list[CommentPlan]:
    """The plans with what GitHub says of the open issues that they show. Without any, nothing is asked.

    Issues for which memory has an open pull request are not asked for. Without an answer the line is left out.
    """
    every = dict.fromkeys(number for plan in plans if _is_to_come(plan) for number in _unknown(plan))
    numbers = list(every)[:MAX_ASKED]
    if not (numbers and run.place.repo) or run.forge.troubles or isinstance(run.history, RestingHistory):
        return list(plans)
    try:
        found = find_open_pulls(run.forge, run.place.repo, numbers, run.now)
    except ForgeError as error:
        run.note(f"Open pull requests were not looked for: {error.cause}")
        if isinstance(error, RateLimited):  # it holds for the reading of history too
            run.report_fault(error)
        return list(plans)
    return [_told(plan, found, numbers, run) if _is_to_come(plan) else plan for plan in plans]


def visible_pulls(pulls: Iterable[OpenPull], thread: Thread, run: RunContext) -> list[OpenPull]:
    """Those of these pull requests that may be shown on this thread: memory knows nothing to the contrary, GitHub shows
    them, and nobody called them wrong here."""
    wrong = wrong_matches_for(run.memory.requests([thread.id]).get(thread.id, ()))
    hidden = wrong.union(run.memory.state.manifest.unseen)
    return still_open((pull for pull in pulls if pull.id not in hidden), run.memory)


def _is_to_come(plan: CommentPlan) -> bool:
    return bool(plan.text) and not (plan.passed or plan.waits or plan.removed)


def _unknown(plan: CommentPlan) -> list[int]:
    held = {pull.about for pull in plan.context.pulls if pull.seen_at is None}
    return [number for number in open_issues(plan.context) if number not in held]


def _told(plan: CommentPlan, found: Iterable[OpenPull], asked: Iterable[int], run: RunContext) -> CommentPlan:
    """The plan with the answer of now instead of what its comment said before."""
    known, now_asked = plan.context, set(asked)
    kept = tuple(pull for pull in known.pulls if pull.seen_at is None or pull.about not in now_asked)
    context = with_pulls(replace(known, pulls=kept), visible_pulls(found, plan.thread, run), plan.thread)
    if context == known:
        return plan
    text = seal(comment_on(plan.thread, context, run.renderer).text, fingerprint(context))
    return replace(plan, answer=Speak(context), text=text)
