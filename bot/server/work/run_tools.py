"""What a run works with: the settings of its repository, and the search in other repositories."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from bot.domain.kinds import Kind
from bot.errors import StoreError, UnreadableFile
from bot.github.budget import RequestBudget
from bot.github.client import GitHubClient
from bot.github.errors import CONTINUE_REMEDY, HISTORY, HISTORY_LIMITS, RateLimited
from bot.github.foreign_thread import ForeignRepository, read_repository
from bot.pipeline.setup import RepositorySettings, embedder, read_settings
from bot.pipeline.site import RepositorySite, fetch_settings
from bot.pipeline.tools import Tools
from bot.server.dependencies import RunDependencies, RunLog
from bot.server.model import Grant, RepositoryKey
from bot.server.organisation.register import OrganisationRegister
from bot.server.organisation.search import CheckedSearch
from bot.settings.yaml_file import CONFIG_PATH


def read_run_settings(
    site: RepositorySite, repository: RepositoryKey, run: RunDependencies, log: RunLog
) -> RepositorySettings:
    """Read the settings, and store them for other repositories. One whose files exist but cannot be read shares
    nothing, as nobody knows with whom."""
    register, fetched = OrganisationRegister(run.inbox), None
    try:
        fetched = fetch_settings(site, CONFIG_PATH)
        config = read_settings(site, fetched, log)
    except StoreError as error:
        if fetched or isinstance(error, UnreadableFile):
            register.store_settings(repository, None)
        raise
    settings = config.settings
    if run.options.scope.observes(site.repository) and settings.mode != "off":
        settings = replace(settings, mode="summary")
    shares = None if config.muted else settings.organisation.share_with
    register.store_settings(repository, shares, settings.ignore.people)
    return replace(config, settings=settings, embedder=embedder(settings, site, log))


def history_limit(installation: int, run: RunDependencies) -> RateLimited | None:
    """A limit on reading history that another run met and that lasts; None without one."""
    until = run.inbox.limits.paused_until(installation, HISTORY_LIMITS)
    if until <= run.inbox.now():
        return None
    limit_ends = datetime.fromtimestamp(until / 1000, UTC)
    message = f"the reading of history continues at {limit_ends:%H:%M} UTC, when GitHub's limit resets"
    return RateLimited(message, CONTINUE_REMEDY, until=limit_ends, resource=HISTORY)


def organisation_search(
    repository: RepositoryKey, bot: Tools, run: RunDependencies, budget: RequestBudget, log: RunLog
) -> CheckedSearch | None:
    """The search in other repositories; None if there is no index, or nothing of them is to be shown."""
    settings, inbox = bot.settings, run.inbox
    if run.ranking is None or not settings.organisation.results:
        return None

    def read(grant: Grant, number: int, kind: Kind) -> ForeignRepository:
        api = GitHubClient(run.options.api_url, grant.token, grant.name, budget=budget)
        try:
            return read_repository(api, grant.name, bot.own, number, kind)
        finally:
            log.reads += api.queries

    rank, register = run.ranking(repository.installation), OrganisationRegister(inbox)
    return CheckedSearch(repository, settings, register, run.tokens, inbox.now(), rank, read, run.options.scope)
