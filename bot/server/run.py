"""The processes of the server, put together: `serve` receives and keeps workers running, `work` is one of these."""

from __future__ import annotations

import logging
import os
import re
import resource
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

from bot.errors import WorldError
from bot.github.app import App
from bot.github.errors import ForgeError, Unauthorised
from bot.github.installed import AppInfo
from bot.server import health, listen, password, web
from bot.server.alive import Places
from bot.server.children import Child, Children, spawn
from bot.server.clock import DatabaseClock
from bot.server.database import Database
from bot.server.date import ahead
from bot.server.health import APP
from bot.server.identity import KeptTokens
from bot.server.ledger import DatabaseLedger
from bot.server.locks import Lead, locks
from bot.server.logs import write_logs
from bot.server.options import Options
from bot.server.ports import Ledger
from bot.server.receive import Rules
from bot.server.shop import Shop, Turns
from bot.server.slots import Slots
from bot.server.startup import Finding, Outside, examine, refuse
from bot.server.sweep import Sweep
from bot.server.tickets import DbosDispatch, DbosTickets, prepare
from bot.server.worker import Ended, Guarded, Post, Rounds, Worker
from bot.server.writer import Writer

HOLD = 8
"""Tickets that a worker holds for each that it works on: the others wait for a push, or for a slot."""

GENTLE = 10
"""How much more willingly than the web process a worker lets others have the processor."""

WRITTEN = 3.0
"""Seconds that what waits to be stored has, once no request is answered any more."""

TELLS = "metrics"
"""The lock of the web process that tells of all processes."""

LAST = 9.2
"""Seconds after the signal at which workers that still run are killed."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Queue:
    """The queue, opened by one process under a name of its own."""

    database: Database
    clock: DatabaseClock
    tickets: DbosTickets
    ledger: DatabaseLedger


@contextmanager
def opened(options: Options, name: str, *, hurry: bool = False) -> Iterator[Queue]:
    """The queue with its tables ready. ``hurry``: for who waits for an answer. Raises UserError, WorldError."""
    database = _database(options, hurry=hurry)
    try:
        prepare(database, _places(options))
        tickets, clock = DbosTickets(database), DatabaseClock(database)
        with clock.kept():
            yield Queue(database, clock, tickets, DatabaseLedger(database, tickets, name, clock))
    finally:
        database.close()


def check(options: Options, *, listens: bool) -> list[Finding]:
    """Look at everything that can be looked at before; ``listens``: at the port too."""

    def prepared() -> None:
        database = _database(options)
        try:
            prepare(database, _places(options))
        finally:
            database.close()

    def about() -> AppInfo:
        with _app(options) as app:
            return app.about()

    bind = (lambda: listen.bound(options.host, options.port).close()) if listens else None
    return examine(options, Outside(prepared, about, partial(ahead, options.api_url), bind))


def serve(options: Options, guarded: Guarded, start: Callable[[Options], Child] = spawn) -> int:
    """Receive, and keep the workers running, until SIGTERM or SIGINT; returns the exit code.

    ``start`` begins a worker process. Raises UserError, WorldError.
    """
    _begin(options)
    _look_around(options, listens=True)
    options = _with_password(options)
    stop = _stopped_by_signals()
    with opened(options, "web", hurry=True) as queue:
        writer = Writer(queue.ledger, guarded, lambda: health.shut(queue.ledger, options))
        rules = Rules(options.app_id, options.secrets, _login(options, queue.ledger))
        leads = Lead(locks(queue.database, _places(options)), TELLS)
        door = web.WebDoor(rules, writer, queue.ledger, options, queue.clock, leads)
        with _kept_running(Children(partial(start, options), options.workers), stop):
            writer.start()
            log.info("listening", extra={"host": options.host, "port": options.port, "workers": options.workers})
            listen.serve(web.app(door), options.host, options.port, stop.is_set)
            log.info("stopped", extra={"all_stored": writer.stop(WRITTEN)})
    return 0


@contextmanager
def _kept_running(children: Children, stop: threading.Event) -> Iterator[None]:
    """The children run within the block. They are told to end at once when ``stop`` is set, or the block ends."""

    def tell() -> None:
        stop.wait()
        children.ask_to_end()

    telling = threading.Thread(target=tell, name="telling", daemon=True)
    children.begin()
    telling.start()
    try:
        yield
    finally:
        stop.set()
        telling.join()
        if not children.wait(LAST):
            log.warning("a worker did not end in time and was killed: what it was at is begun anew")


def work(options: Options, guarded: Guarded, turns: Turns, parent: int = 0) -> NoReturn:
    """One worker, until SIGTERM, SIGINT or the end of ``parent``; then the process ends, with whatever runs in it.

    Threads of the queue's library would hold up an ordinary end.
    """
    _begin(options)
    os.nice(GENTLE)
    codes = [0]
    line = guarded(lambda: codes.append(_worked(options, guarded, turns, parent)))
    if line:
        log.error("this worker ends: %s", line)
    logging.shutdown()
    os._exit(1 if line else codes[-1])


def _worked(options: Options, guarded: Guarded, turns: Turns, parent: int) -> int:
    if not parent:
        _look_around(options, listens=False)
    stop, slots, name = _stopped_by_signals(), Slots(options.jobs), _own_name()
    with opened(options, name) as queue, _app(options) as app:
        login = _login(options, queue.ledger)
        if not login:
            raise WorldError("GitHub has not said yet who we are: see that its API can be reached")
        tokens = KeptTokens(app)
        turning = turns(Shop(options, queue.ledger, queue.tickets, tokens, login, slots, stop, guarded, queue.clock))
        sweep = Sweep(app, queue.ledger, queue.tickets, options, tokens, turning.forget)
        held = locks(queue.database, _places(options))
        guard = Places(name, queue.database, held, queue.clock)
        dispatch = DbosDispatch(queue.database, name, held, HOLD * options.jobs)
        post = Post(guard, dispatch, queue.ledger, turning.turn, slots, guarded)
        rounds = Rounds(lambda: sweep.once(queue.clock()), options.sweep_minutes, guarded)
        try:
            Worker(post, rounds, stop, parent).live()
        except Ended as error:
            return error.code
    return 0


def _login(options: Options, ledger: Ledger) -> str:
    """Ask GitHub who we are, and leave what it says for all processes to see; our login.

    While GitHub cannot be asked it is that of the last time, "" when there was none. Raises WorldError.
    """
    known = ledger.pulses().get(APP, (0, {}))[1]
    try:
        with _app(options) as app:
            info = app.about()
    except Unauthorised as error:
        ledger.pulse(APP, {**known, "fault": str(error)})
        raise
    except ForgeError as error:
        log.warning("GitHub was not asked who we are: %s", error)
        return f"{known['slug']}[bot]" if known.get("slug") else ""
    ledger.pulse(APP, {"slug": info.slug, "ahead": round(info.ahead), "fault": ""})
    return info.login


def _look_around(options: Options, *, listens: bool) -> None:
    findings = check(options, listens=listens)
    for each in findings:
        if each.level == "warning":
            log.warning("%s: %s", each.name, each.line)
    refuse(findings)


def _with_password(options: Options) -> Options:
    """With one for the status page, which is in no log either. Raises UserError, WorldError."""
    if options.status_password:
        return options
    found = replace(options, status_password=password.kept(options.data) or password.made(options.data))
    write_logs(found.log, found.hidden)
    log.info("the password of the status page is in %s", password.place(options.data))
    return found


def _begin(options: Options) -> None:
    """Once for a process: the log, and no picture of the secrets when it crashes."""
    write_logs(options.log, options.hidden)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _stopped_by_signals() -> threading.Event:
    """An event that is set by a thread: what a signal interrupts may hold the event's own lock, even to wait for it."""
    stop, heard = threading.Event(), SimpleQueue[int]()

    def hear() -> None:
        heard.get()
        stop.set()

    threading.Thread(target=hear, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: heard.put(number))  # the only queue that may be interrupted by itself
    return stop


def _database(options: Options, *, hurry: bool = False) -> Database:
    if options.database_url:
        return Database(options.database_url, hurry=hurry)
    return Database.within(options.data, hurry=hurry)


def _places(options: Options) -> Path:
    return options.data / "workers"


def _app(options: Options) -> App:
    return App(options.app_id, options.private_key, options.api_url)


def _own_name() -> str:
    """A name that no other start of a worker has, anywhere."""
    host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname()).strip("-")[:60] or "host"
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}"
