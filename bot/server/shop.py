"""What turns are made with, and what they are made into: the seam between the worker and its work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from bot.server.clock import machine_clock
from bot.server.nouns import Instant, Lane
from bot.server.options import Options
from bot.server.ports import Ledger, Tickets, Tokens
from bot.server.slots import Slots
from bot.server.worker import Guarded


@dataclass(frozen=True, slots=True)
class Shop:
    """What turns are made with. ``stop`` is set when the process ends; ``slots`` is how many may work at once."""

    options: Options
    ledger: Ledger
    tickets: Tickets
    tokens: Tokens
    own_login: str
    slots: Slots
    stop: threading.Event
    guarded: Guarded
    clock: Callable[[], Instant] = machine_clock


@dataclass(frozen=True, slots=True)
class Turning:
    """``turn`` does the turn of a ticket in a lane, and never raises; ``forget`` removes what is on disk of a lane."""

    turn: Callable[[str, Lane], None]
    forget: Callable[[Lane], None]


Turns = Callable[[Shop], Turning]
