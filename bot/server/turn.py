"""A turn, from a ticket to its end: what waits in a lane is begun, worked on and written down. Read this first.

ticket → a push ago long enough → what waits → the repository (`bot.server.visit`) → what became of it
"""

from __future__ import annotations

import logging
import random
import time
from functools import partial

from bot.errors import WorldError
from bot.server import house
from bot.server.clones import Clones
from bot.server.logs import request_id
from bot.server.nouns import Lane, Result, Told, Work
from bot.server.pace import Pace
from bot.server.shop import Shop, Turning
from bot.server.verdicts import judge
from bot.server.visit import Desk, Visit, Where

TROUBLE = 15.0
"""Seconds after which a lane is looked at again whose turn could not be begun, or not be written down."""

PATIENCE = 1.0
"""Seconds between tries to have the lane looked at again, while the database is away."""

PAUSES = (0.2, 1.0, 5.0, 15.0, 30.0)
"""Seconds between tries to write down what a turn did: else it is all done once more. A database is back by then."""

log = logging.getLogger(__name__)


def turns(shop: Shop) -> Turning:
    """The turns of a worker."""
    options = shop.options
    where = Where(options.api_url, options.server_url, shop.own_login, options.instance, options.attempts)
    desk = Desk(
        ledger=shop.ledger,
        tokens=shop.tokens,
        clones=Clones(options.data / "clones", options.clones_mb),
        pace=Pace(options.pushes_per_minute, shop.clock),
        where=where,
        stop=shop.stop,
        now=shop.clock,
        guarded=shop.guarded,
    )
    return Turning(partial(turn, shop=shop, desk=desk), desk.clones.forget)


def turn(ticket: str, lane: Lane, shop: Shop, desk: Desk) -> None:
    """Do the turn of a ticket, alone in its lane. Never raises: a ticket that fails is one that nobody looks at."""
    line = desk.guarded(lambda: _turn(ticket, lane, shop, desk))
    if line:
        log.error("a turn was not begun, or not written down: %s", line, extra={"lane": lane.key})
        while desk.guarded(lambda: desk.ledger.put_off(ticket, lane, TROUBLE)):
            time.sleep(PATIENCE)  # who dies with a ticket in hand has it taken over, who gives it up leaves none


def _turn(ticket: str, lane: Lane, shop: Shop, desk: Desk) -> None:
    pushes = desk.ledger.register().lane(lane).pushes
    if not desk.pace.ready(pushes, desk.stop):
        desk.ledger.put_off(ticket, lane, 0.0)
        return
    with shop.slots.taken(lane.key):
        if desk.stop.is_set():
            desk.ledger.put_off(ticket, lane, 0.0)
            return
        work = desk.ledger.begin(ticket, lane, desk.now())
        if work is None:  # somebody did it along the way
            return
        with request_id(" ".join(dict.fromkeys(each.request for each in work.deliveries if each.request))):
            results, told = carry_out(work, desk)
            absorbed = _ended(work, results, told, desk)
            _log(work, results)
    if line := desk.guarded(lambda: shop.tickets.cancel(absorbed)):  # they are for turns with nothing to do
        log.warning("tickets that are not needed any more stay: %s", line, extra={"lane": lane.key})


def carry_out(work: Work, desk: Desk) -> tuple[list[Result], Told]:
    """Do what a turn has to do; what became of each delivery, and what else there is to tell. Raises nothing expected,
    nor bugs of the flow."""
    if work.lane.repository:
        return Visit(work, desk).make()
    try:
        return house.keep(work, desk.ledger, desk.tokens, desk.clones.forget), Told()
    except WorldError as error:
        now, most = desk.now(), desk.where.attempts
        chance = random.uniform(0.5, 1.5)
        return [judge(error, each, now, most, chance) for each in work.deliveries], Told(notes=(str(error),))


def _ended(work: Work, results: list[Result], told: Told, desk: Desk) -> list[str]:
    """Write it down, patiently, as it happened."""
    for pause in PAUSES:
        try:
            return desk.ledger.end(work, results, told)
        except WorldError as error:
            log.warning("what a turn did could not be written down yet: %s", error, extra={"lane": work.lane.key})
            desk.pace.wait(desk.stop, pause)
    return desk.ledger.end(work, results, told)


def _log(work: Work, results: list[Result]) -> None:
    for each in results:
        level = logging.WARNING if each.state == "dead" else logging.INFO
        told = {"lane": work.lane.key, "delivery": each.seq, "said": each.said, "reason": each.reason}
        log.log(level, "%s", each.state, extra=told)
