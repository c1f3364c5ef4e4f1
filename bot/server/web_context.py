"""The parts that answer requests: shared by the webhook and the pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bot.server.model import Instant
from bot.server.options import ServerOptions
from bot.server.pages.metrics import ReceiveHistogram
from bot.server.receive.webhook import WebhookRules
from bot.server.receive.writer import GroupCommitWriter
from bot.server.storage.inbox import Inbox


@dataclass(slots=True)
class WebContext:
    """The parts of the web server. ``clock`` gives milliseconds since 1970.

    ``is_leader``: whether this is the one web process per database that exports the metrics of all.
    """

    rules: WebhookRules
    writer: GroupCommitWriter
    inbox: Inbox
    options: ServerOptions
    clock: Callable[[], Instant]
    is_leader: Callable[[], bool] = lambda: True
    answered: ReceiveHistogram = field(default_factory=ReceiveHistogram)

    def use_secrets(self, options: ServerOptions) -> None:
        """Use the secrets of these options, from the next request on."""
        self.options = options
        self.rules = replace(self.rules, secrets=options.secrets)
