"""Runs the processes of the server: `serve` receives and keeps workers running; `work` is one worker."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import resource
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

from bot.errors import WorldError
from bot.github.app import App, AppInfo
from bot.github.errors import ForgeError, Unauthorised
from bot.recall.candidates import Candidates
from bot.recall.elsewhere import elsewhere_to_show
from bot.server import health, web
from bot.server.clone_cache import CloneCache
from bot.server.database import Database, DatabaseClock
from bot.server.health import APP, ask_who_we_are
from bot.server.inbox import Inbox
from bot.server.installations import TokenCache
from bot.server.log import guarded, write_logs
from bot.server.options import WORKER_NAME, ServerOptions, new_password, packed, password_file, stored_password
from bot.server.organisation_guard import INDEX_UP, OrganisationGuard
from bot.server.organisation_register import OrganisationRegister
from bot.server.rate_limiter import RateLimiter
from bot.server.resync import Resync
from bot.server.secret_files import SecretFiles
from bot.server.spans import start_tracing, stop_tracing
from bot.server.startup_check import Outside, StartupProblem, examine, refuse
from bot.server.webhook import WebhookRules
from bot.server.worker import Ended, Run, RunDependencies, Task, Worker
from bot.server.writer import GroupCommitWriter

LOOK = 0.1
"""Seconds between two checks of the children."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 15.0
"""Seconds before a restart. Interrupted work has to continue within a minute, whatever the cause."""

HEALTHY = 30.0
"""Seconds after which a child counts as healthy: its successor starts after the first, short pause."""

Child = subprocess.Popen[bytes]
Start = Callable[[str], Child]
"""Starts a worker of this name."""

log = logging.getLogger(__name__)


def spawn(options: ServerOptions, name: str, module: str = "bot") -> Child:
    """Start a worker with the same options, sent through its stdin: process lists show arguments to everybody."""
    isolated = ["-I"] if sys.flags.isolated else []
    command = [sys.executable, *isolated, "-m", module, "worker", "--parent", str(os.getpid())]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin:  # the end of the child is noticed later
        child.stdin.write(json.dumps({WORKER_NAME: name, **packed(options)}).encode())
    return child


@dataclass(slots=True)
class _WorkerSlot:
    """The place of one process."""

    child: Child | None = None
    name: str = ""
    began: float = 0.0
    pause: float = 0.0
    next_at: float = 0.0


class Children:
    """Keeps ``count`` processes running; ``start`` starts one, and ``ended`` gets the name of one that ended."""

    def __init__(self, start: Start, count: int, ended: Callable[[str], object] = str) -> None:
        self._start = start
        self._ended = ended
        self._places = [_WorkerSlot() for _ in range(count)]
        self._stops = threading.Event()
        self._asked_at = 0.0
        self._thread = threading.Thread(target=self._run, name="children", daemon=True)

    def begin(self) -> None:
        """Start them, and watch them from now on."""
        self._thread.start()

    @property
    def living(self) -> list[int]:
        """Return the ids of running processes."""
        children = [place.child for place in self._places]
        return [child.pid for child in children if child is not None and child.poll() is None]

    def ask_to_end(self) -> None:
        """Start no more, and send SIGTERM to those that run. May be repeated."""
        if self._stops.is_set():
            return
        self._stops.set()
        if self._thread.is_alive():
            self._thread.join()
        self._asked_at = time.monotonic()
        for place in self._places:
            if place.child is not None:
                place.child.terminate()

    def wait(self, seconds: float) -> bool:
        """Wait until all have ended, and kill the others. Returns whether all ended by themselves."""
        until = self._asked_at + seconds
        in_time = True
        for child in (place.child for place in self._places):
            if child is None:
                continue
            try:
                child.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                in_time = False
                child.kill()
                child.wait()
        return in_time

    def _run(self) -> None:
        while not self._stops.is_set():
            for place in self._places:
                self._tend(place, time.monotonic())
            self._stops.wait(LOOK)

    def _tend(self, place: _WorkerSlot, now: float) -> None:
        """Start the process of a place if it has none and the pause is over; note the end of one."""
        if place.child is not None and (code := place.child.poll()) is not None:
            lived = now - place.began
            place.pause = FIRST_PAUSE if lived >= HEALTHY else min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * place.pause))
            place.next_at, place.child = now + place.pause, None
            told = {"code": code, "lived": round(lived), "again_in": place.pause}
            log.warning("a worker ended; another one will be started", extra=told)
            if line := guarded(lambda: self._ended(place.name)):
                log.warning("its leases could not be cleared, and run out: %s", line)
        if place.child is None and now >= place.next_at:
            try:
                place.name = own_name()
                place.child, place.began = self._start(place.name), now
            except OSError as error:
                place.pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * place.pause))
                place.next_at = now + place.pause
                log.warning("a worker cannot be started: %s", error.strerror)


GENTLE = 10
"""Niceness of workers, so that the web process comes first."""

WRITTEN = 3.0
"""Seconds to store waiting deliveries after the last request was answered."""

TELLS, TOLD = "exporter", 15.0
"""The one web process per database that exports the metrics of all, and for how many seconds it stays that."""

RESYNC, SETTLED = "resync", 90_000
"""The task that looks for what was missed, and milliseconds after a start until it does."""

LAST = 9.2
"""Seconds after the signal until running workers are killed."""


@contextmanager
def opened(options: ServerOptions, name: str, *, hurry: bool = False) -> Iterator[Inbox]:
    """Open the inbox with its tables ready, for one process with a name of its own.

    ``hurry``: a caller waits for answers. Raises UserError, WorldError.
    """
    with closing(_database(options, hurry=hurry)) as database:
        database.make_tables()
        clock = DatabaseClock(database)
        with clock.kept():
            yield Inbox(database, name, clock, options.histories)


def check(options: ServerOptions, *, listens: bool) -> list[StartupProblem]:
    """Run all startup checks; with ``listens`` also that of the port."""

    def prepared() -> None:
        with closing(_database(options)) as database:
            database.make_tables()

    def about() -> AppInfo:
        with _app(options) as app:
            return app.about()

    bind = (lambda: web.bound(options.host, options.port).close()) if listens else None
    works = options.workers or not listens
    ask_index = partial(_ask_index, options) if options.organisation and works else None
    return examine(options, Outside(prepared, about, bind, ask_index))


def serve(options: ServerOptions, start: Callable[[ServerOptions, str], Child] = spawn) -> int:
    """Receive deliveries and keep the workers running until SIGTERM or SIGINT; returns the exit code.

    ``start`` starts a worker process. Raises UserError, WorldError.
    """
    _begin(options)
    _look_around(options, listens=True)
    options = _with_password(options)
    stop = _stopped_by_signals()
    with opened(options, own_name(), hurry=True) as inbox:

        def leads() -> bool:
            return inbox.lead(TELLS, TOLD)

        def shut() -> str:
            leads()
            return health.close_checks(inbox, options)

        writer = GroupCommitWriter(inbox, shut)
        rules = WebhookRules(options.app_id, options.secrets, _login(options, inbox), options.scope)
        door = web.WebDoor(rules, writer, inbox, options, inbox.now, leads)

        def use(new: ServerOptions) -> None:
            _app(new).close()  # a key that cannot sign is refused
            door.renew(new)

        SecretFiles(options, os.environ, use).watch()
        children = Children(lambda name: start(door.options, name), options.workers, inbox.queue.release)
        inbox.queue.hasten(RESYNC, inbox.now() + SETTLED)
        with _kept_running(children, stop):
            writer.start()
            log.info("listening", extra={"host": options.host, "port": options.port, "workers": options.workers})
            web.serve_http(web.create_app(door), options.host, options.port, stop.is_set)
            log.info("stopped", extra={"all_stored": writer.stop(WRITTEN)})
            stop_tracing()
    return 0


@contextmanager
def _kept_running(children: Children, stop: threading.Event) -> Iterator[None]:
    """Run the children within the block. They are told to end when ``stop`` is set or the block ends."""

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
            log.warning("a worker did not end in time and was killed; its runs will be repeated")


def work(options: ServerOptions, run: Run, parent: int = 0, name: str = "", alive: Path | None = None) -> NoReturn:
    """Run one worker until SIGTERM, SIGINT or the end of ``parent``. The process then exits at once.

    ``name`` is unique to this start, and known to the parent. Runs that did not end in time would delay a normal exit.
    ``alive`` is the `Worker`'s; one that another process left would tell nothing.
    """
    _begin(options)
    os.nice(GENTLE)
    codes = [0]
    line = guarded(lambda: codes.append(_worked(options, run, parent, name, alive)))
    if line:
        log.error("this worker ends: %s", line)
    stop_tracing()
    logging.shutdown()
    os._exit(1 if line else codes[-1])


def _worked(options: ServerOptions, run: Run, parent: int, name: str, alive: Path | None) -> int:
    if alive:
        alive.unlink(missing_ok=True)
    if not parent:
        _look_around(options, listens=False)
    stop = _stopped_by_signals()
    with opened(options, name or own_name()) as inbox, _app(options) as app:
        login = _login(options, inbox)
        if not login:
            raise WorldError("GitHub has not said yet who we are: see that its API can be reached")
        SecretFiles(options, os.environ, lambda new: app.use_key(new.private_key), tells=not parent).watch()
        dependencies = run_dependencies(options, inbox, app, login, stop)
        clock, guard = dependencies.now, dependencies.organisation
        resync = Resync(app, inbox, options, dependencies.tokens, dependencies.clones.forget)
        tasks = {RESYNC: Task(lambda: resync.once(clock()), options.sweep_minutes)}
        worker = Worker(
            inbox,
            lambda lease: run(lease, dependencies),
            stop,
            options.jobs,
            tasks,
            parent,
            alive=alive,
            tells=lambda: {INDEX_UP: int(guard.is_up)} if guard else {},
        )
        try:
            worker.live()
        except Ended as error:
            return error.code
    return 0


def run_dependencies(
    options: ServerOptions, inbox: Inbox, app: App, login: str, stop: threading.Event
) -> RunDependencies:
    """What the runs of a process need; ``login`` is ours at GitHub."""
    guard = None
    if options.organisation:
        guard = OrganisationGuard(partial(_open_index, options.organisation), inbox.count_up)
    return RunDependencies(
        options=options,
        inbox=inbox,
        tokens=TokenCache(app),
        clones=CloneCache(options.data / "clones", options.clones_mb),
        pace=RateLimiter(options.pushes_per_minute, inbox.now),
        own_login=login,
        stop=stop,
        now=inbox.now,
        organisation=guard,
        ranking=(lambda installation: partial(elsewhere_to_show, guard.index(installation))) if guard else None,
        indexed=OrganisationRegister(inbox).changed,
    )


@contextmanager
def rebuilding(options: ServerOptions, inbox: Inbox, stop: threading.Event) -> Iterator[RunDependencies]:
    with _app(options) as app:
        yield run_dependencies(options, inbox, app, "", stop)


def _open_index(place: str, installation: int) -> Candidates:
    from bot.organisation.lance import open_candidates

    return open_candidates(place, str(installation))


def _ask_index(options: ServerOptions) -> None:
    """Raises WorldError if the place of the index does not answer."""
    _open_index(options.organisation, 0).search(["precedent"], {0})


def _login(options: ServerOptions, inbox: Inbox) -> str:
    """Ask GitHub about the App, store the answer for all processes, and return our login.

    If GitHub does not answer, it is the last known login, or "". Raises WorldError.
    """
    try:
        with _app(options) as app:
            return ask_who_we_are(app, inbox).login
    except Unauthorised:
        raise
    except ForgeError as error:
        log.warning("GitHub could not be asked about the App: %s", error)
        slug = inbox.heartbeats().get(APP, (0, {}))[1].get("slug")
        return f"{slug}[bot]" if slug else ""


def _look_around(options: ServerOptions, *, listens: bool) -> None:
    findings = check(options, listens=listens)
    for each in findings:
        if each.level == "warning":
            log.warning("%s: %s", each.name, each.line)
    refuse(findings)


def _with_password(options: ServerOptions) -> ServerOptions:
    """Add a password for the status page, which is also kept out of the log. Raises UserError, WorldError."""
    if options.status_password:
        return options
    found = replace(options, status_password=stored_password(options.data) or new_password(options.data))
    write_logs(found.log, found.hidden)
    log.info("the password of the status page is in %s", password_file(options.data))
    return found


def _begin(options: ServerOptions) -> None:
    """Set up a process: its log, its traces, and no core dump, which would contain secrets."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the secrets are watched; it would end the process
    write_logs(options.log, options.hidden)
    start_tracing(os.environ)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _stopped_by_signals() -> threading.Event:
    """An event set by signals, through a thread: the code that a signal interrupts may hold the event's lock."""
    stop, heard = threading.Event(), SimpleQueue[int]()

    def hear() -> None:
        heard.get()
        stop.set()

    threading.Thread(target=hear, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: heard.put(number))  # the only queue that is safe in a signal handler
    return stop


def _database(options: ServerOptions, *, hurry: bool = False) -> Database:
    if options.database_url:
        return Database(options.database_url, hurry=hurry)
    return Database.within(options.data, hurry=hurry)


def _app(options: ServerOptions) -> App:
    return App(options.app_id, options.private_key, options.api_url)


def own_name() -> str:
    """A name for this start of a process."""
    host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname()).strip("-")[:60] or "host"
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}"
