"""Adds the open pull requests for the open issues that a run's comments show, looked up in one request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bot.comment.marker import fingerprint, seal
from bot.domain.answer import Speak, open_issues
from bot.domain.changes import wrong_matches_for
from bot.domain.post import OpenPull
from bot.domain.thread import Thread
from bot.github.errors import ForgeError, RateLimited
from bot.github.history import LimitedHistory
from bot.github.open_pulls import MAX_ISSUES, find_open_pulls
from bot.pipeline.draft import Draft
from bot.pipeline.tools import Tools
from bot.questions.comment import comment_on
from bot.recall.open_pulls import still_open, with_pulls


def add_open_pulls(plans: Sequence[Draft], run: Tools) -> list[Draft]:
    """The plans with open pull requests for the open issues that they show. Without any such issue, asks nothing.

    Issues for which memory has an open pull request are not looked up. Without an answer the line is left out.
    """
    issues = dict.fromkeys(number for plan in plans if _will_be_posted(plan) for number in _issues_to_look_up(plan))
    numbers = list(issues)[:MAX_ISSUES]
    if not (numbers and run.address.repo) or run.forge.troubles or isinstance(run.history, LimitedHistory):
        return list(plans)
    try:
        pulls = find_open_pulls(run.forge, run.address.repo, numbers, run.now)
    except ForgeError as error:
        run.note(f"Open pull requests were not looked up: {error.cause}")
        if isinstance(error, RateLimited):  # it applies to reading history too
            run.report_fault(error)
        return list(plans)
    return [_update_plan(plan, pulls, numbers, run) if _will_be_posted(plan) else plan for plan in plans]


def visible_pulls(pulls: Iterable[OpenPull], thread: Thread, run: Tools) -> list[OpenPull]:
    """The pull requests that may be shown on this thread: still open as far as memory knows, visible on GitHub, and not
    called wrong here."""
    wrong = wrong_matches_for(run.memory.requests([thread.id]).get(thread.id, ()))
    hidden = wrong.union(run.memory.state.manifest.hidden_by_github)
    return still_open((pull for pull in pulls if pull.id not in hidden), run.memory)


def _will_be_posted(plan: Draft) -> bool:
    return bool(plan.text) and not (plan.is_skipped or plan.waits or plan.removed)


def _issues_to_look_up(plan: Draft) -> list[int]:
    covered = {pull.about for pull in plan.context.pulls if pull.seen_at is None}
    return [number for number in open_issues(plan.context) if number not in covered]


def _update_plan(plan: Draft, pulls: Iterable[OpenPull], asked: Iterable[int], run: Tools) -> Draft:
    """The plan with the current answer instead of what its comment said before."""
    before, looked_up = plan.context, set(asked)
    kept_pulls = tuple(pull for pull in before.pulls if pull.seen_at is None or pull.about not in looked_up)
    context = with_pulls(replace(before, pulls=kept_pulls), visible_pulls(pulls, plan.thread, run), plan.thread)
    if context == before:
        return plan
    rendered = comment_on(plan.thread, context, run.renderer, run.settings.mentions)
    text = seal(rendered.text, fingerprint(context))
    return replace(plan, answer=Speak(context), text=text)
