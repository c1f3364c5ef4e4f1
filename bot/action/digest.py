"""The digest for maintainers in a run: a page for an artifact, and Markdown for the job summary."""

from __future__ import annotations

from bot.action.environment import RunnerEnvironment, write_file
from bot.pipeline.digest import digest_of_memory
from bot.pipeline.tools import Tools
from bot.questions.digest import DigestRequest
from bot.questions.digest_views import report_markdown, report_page
from bot.reading.search_query import moment_of

DIGEST_FILE = "digest.html"


def write_digest(run: Tools, environment: RunnerEnvironment, since: str) -> list[str]:
    """Write the page for the next steps. Returns the digest as Markdown entries; it may be cut off after any."""
    request = DigestRequest(moment_of(since, run.started), run.started)  # nothing is asked of GitHub, nor stored
    report = digest_of_memory(run.memory.open(), run.settings, run.address, request, clock=run.clock.seconds)
    home = f"{run.address.server}/{run.address.repo}"
    path = write_file(environment, DIGEST_FILE, report_page(report, home))
    run.note(f"The digest page is {path}, which is lost when the job ends unless a step uploads it: docs/digest.md.")
    for note in (*report.notes, *run.memory.notes):
        run.note(note)
    return list(report_markdown(report, home))
