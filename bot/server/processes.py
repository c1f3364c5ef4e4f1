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
from bot.server.dependencies import Run, RunDependencies, open_index, run_dependencies
from bot.server.log import catch_error, run_guarded, write_logs
from bot.server.options import WORKER_NAME_KEY, ServerOptions, worker_environment
from bot.server.organisation.guard import INDEX_UP
from bot.server.pages import health
from bot.server.receive.webhook import WebhookRules
from bot.server.receive.writer import GroupCommitWriter
from bot.server.secret_files import SecretFiles, new_password, password_file, stored_password
from bot.server.startup_check import OutsideChecks, StartupProblem, examine, raise_problems
from bot.server.storage.database import Database, DatabaseClock
from bot.server.storage.heartbeats import APP_HEARTBEAT
from bot.server.storage.inbox import Inbox
from bot.server.web import WebContext, create_app, open_listener, serve_http
from bot.server.work.resync import Resync
from bot.server.work.worker import Task, Worker, WorkerExit

CHECK_INTERVAL = 0.1
"""Seconds between two checks of the children."""

FIRST_RESTART_PAUSE, MAX_RESTART_PAUSE = 1.0, 15.0
"""Seconds before a restart. Interrupted work has to continue within a minute, whatever the cause."""

HEALTHY_UPTIME = 30.0
"""Seconds after which a child counts as healthy: its successor starts after the first, short pause."""

Child = subprocess.Popen[bytes]

log = logging.getLogger(__name__)


def spawn(options: ServerOptions, name: str, module: str = "bot") -> Child:
    """Start a worker with the same options, sent through its stdin: process lists show arguments to everybody."""
    isolated = ["-I"] if sys.flags.isolated else []
    command = [sys.executable, *isolated, "-m", module, "worker", "--parent", str(os.getpid())]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError), child.stdin:  # the end of the child is noticed later
        child.stdin.write(json.dumps({WORKER_NAME_KEY: name, **worker_environment(options)}).encode())
    return child


@dataclass(slots=True)
class _WorkerSlot:
    """One process, or the pause before its successor starts."""

    child: Child | None = None
    name: str = ""
    began: float = 0.0
    pause: float = 0.0
    next_at: float = 0.0

    def wait(self, now: float, pause: float) -> None:
        """Start the next process after this pause, within the bounds."""
        self.pause = min(MAX_RESTART_PAUSE, max(FIRST_RESTART_PAUSE, pause))
        self.next_at, self.child = now + self.pause, None


class Children:
    """Keeps ``count`` processes running; ``start`` starts one, and ``ended`` gets the name of one that ended."""

    def __init__(self, start: Callable[[str], Child], count: int, ended: Callable[[str], object] = str) -> None:
        self._start = start
        self._ended = ended
        self._slots = [_WorkerSlot() for _ in range(count)]
        self._stopping = threading.Event()
        self._stop_asked_at = 0.0
        self._thread = threading.Thread(target=self._run, name="children", daemon=True)

    def begin(self) -> None:
        """Start them, and watch them from now on."""
        self._thread.start()

    def ask_to_end(self) -> None:
        """Start no more, and send SIGTERM to those that run. May be repeated."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._stop_asked_at = time.monotonic()
        for slot in self._slots:
            if slot.child is not None:
                slot.child.terminate()

    def wait(self, seconds: float) -> bool:
        """Wait until all have ended, and kill the others. Returns whether all ended by themselves."""
        deadline = self._stop_asked_at + seconds
        in_time = True
        for child in (slot.child for slot in self._slots):
            if child is None:
                continue
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                in_time = False
                child.kill()
                child.wait()
        return in_time

    def _run(self) -> None:
        while not self._stopping.is_set():
            for slot in self._slots:
                self._supervise(slot, time.monotonic())
            self._stopping.wait(CHECK_INTERVAL)

    def _supervise(self, slot: _WorkerSlot, now: float) -> None:
        """Note the end of a slot's process, and start a new one once the pause is over."""
        if slot.child is not None and (code := slot.child.poll()) is not None:
            uptime = now - slot.began
            slot.wait(now, FIRST_RESTART_PAUSE if uptime >= HEALTHY_UPTIME else 2 * slot.pause)
            details = {"code": code, "lived": round(uptime), "again_in": slot.pause}
            log.warning("a worker ended; another one will be started", extra=details)
            if line := run_guarded(lambda: self._ended(slot.name)):
                log.warning("its leases could not be released; they will expire: %s", line)
        if slot.child is None and now >= slot.next_at:
            try:
                slot.name = own_name()
                slot.child, slot.began = self._start(slot.name), now
            except OSError as error:
                slot.wait(now, 2 * slot.pause)
                log.warning("a worker cannot be started: %s", error.strerror)


MAX_OPEN_FILES = 65_536
"""The limit of open files and connections that a process sets itself, if it may have as many."""

NICENESS = 10
"""Niceness of workers, so that the web process comes first."""

STORE_SECONDS = 3.0
"""Seconds to store waiting deliveries after the last request was answered."""

EXPORTER_ROLE, EXPORTER_SECONDS = "exporter", 15.0
"""The role of the one web process per database that exports everybody's metrics, and the seconds it keeps the role."""

RESYNC_TASK, RESYNC_DELAY = "resync", 90_000
"""The task that looks for missed changes, and milliseconds after a start until it does."""

KILL_AFTER = 9.2
"""Seconds after the signal until running workers are killed."""


@contextmanager
def open_inbox(options: ServerOptions, name: str, *, hurry: bool = False) -> Iterator[Inbox]:
    """Open the inbox with its tables ready, for one process with a name of its own.

    ``hurry``: a caller waits for answers. Raises UserError, WorldError.
    """
    with closing(_database(options, hurry=hurry)) as database:
        database.make_tables()
        clock = DatabaseClock(database)
        with clock.keep_current():
            yield Inbox(database, name, clock, options.histories)


def check(options: ServerOptions, *, listens: bool) -> list[StartupProblem]:
    """Run all startup checks; with ``listens`` also that of the port."""

    def prepare_tables() -> None:
        with closing(_database(options)) as database:
            database.make_tables()

    def ask_about_app() -> AppInfo:
        with _app(options) as app:
            return app.about()

    bind = (lambda: open_listener(options.host, options.port).close()) if listens else None
    needs_index = options.workers or not listens
    ask_index = partial(_ask_index, options) if options.organisation and needs_index else None
    return examine(options, OutsideChecks(prepare_tables, ask_about_app, bind, ask_index))


def serve(options: ServerOptions, start: Callable[[ServerOptions, str], Child] = spawn) -> int:
    """Receive deliveries and keep the workers running until SIGTERM or SIGINT; returns the exit code.

    ``start`` starts a worker process. If it cannot start, the reason is logged.
    """
    _set_up_process(options)
    error = catch_error(lambda: _serve(options, start))
    if error:
        log.error("the server stops: %s", error)
    return error.exit_code if error else 0


def _serve(options: ServerOptions, start: Callable[[ServerOptions, str], Child]) -> None:
    _check_startup(options, listens=True)
    options = _with_password(options)
    stop = _stop_on_signals()
    with open_inbox(options, own_name(), hurry=True) as inbox:

        def is_leader() -> bool:
            return inbox.heartbeats.try_lead(EXPORTER_ROLE, inbox.worker, EXPORTER_SECONDS)

        def closing_reason() -> str:
            is_leader()
            return health.refusal_reason(inbox, options)

        writer = GroupCommitWriter(inbox, closing_reason)
        rules = WebhookRules(options.app_id, options.secrets, _fetch_login(options, inbox), options.scope)
        door = WebContext(rules, writer, inbox, options, is_leader)

        def use_secrets(new: ServerOptions) -> None:
            _app(new).close()  # a key that cannot sign is refused
            door.use_secrets(new)

        SecretFiles(options, os.environ, use_secrets).watch()
        children = Children(lambda name: start(door.options, name), options.workers, inbox.queue.release)
        inbox.queue.hasten(RESYNC_TASK, inbox.now() + RESYNC_DELAY)
        with _keep_running(children, stop):
            writer.start()
            log.info("listening", extra={"host": options.host, "port": options.port, "workers": options.workers})
            serve_http(create_app(door), open_listener(options.host, options.port), stop, options.trusted_proxies)
            log.info("stopped", extra={"all_stored": writer.stop(STORE_SECONDS)})


@contextmanager
def _keep_running(children: Children, stop: threading.Event) -> Iterator[None]:
    """Run the children within the block. They are told to end when ``stop`` is set or the block ends."""

    def stop_children() -> None:
        stop.wait()
        children.ask_to_end()

    thread = threading.Thread(target=stop_children, name="telling", daemon=True)
    children.begin()
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if not children.wait(KILL_AFTER):
            log.warning("a worker did not end in time and was killed; its runs will be repeated")


def work(options: ServerOptions, run: Run, parent: int = 0, name: str = "", alive: Path | None = None) -> NoReturn:
    """Run one worker until SIGTERM, SIGINT or the end of ``parent``. The process then exits at once.

    ``name`` is unique to this start, and known to the parent. Runs that did not end in time would delay a normal exit.
    ``alive`` is the `Worker`'s file; one left by an earlier process is removed.
    """
    _set_up_process(options)
    os.nice(NICENESS)
    codes = [0]
    line = run_guarded(lambda: codes.append(_run_worker(options, run, parent, name, alive)))
    if line:
        log.error("this worker exits: %s", line)
    logging.shutdown()
    os._exit(1 if line else codes[-1])


def _run_worker(options: ServerOptions, run: Run, parent: int, name: str, alive: Path | None) -> int:
    if alive:
        alive.unlink(missing_ok=True)
    if not parent:
        _check_startup(options, listens=False)
    stop = _stop_on_signals()
    with open_inbox(options, name or own_name()) as inbox, _app(options) as app:
        login = _fetch_login(options, inbox)
        if not login:
            raise WorldError("GitHub has not confirmed the App yet: check that its API can be reached")
        SecretFiles(options, os.environ, lambda new: app.use_key(new.private_key), warns=not parent).watch()
        dependencies = run_dependencies(options, inbox, app, login, stop)
        guard = dependencies.organisation
        resync = Resync(app, inbox, options, dependencies.tokens, dependencies.clones.forget)
        tasks = {RESYNC_TASK: Task(lambda: resync.run(inbox.now()), options.sweep_minutes)}
        worker = Worker(
            inbox,
            lambda lease: run(lease, dependencies),
            stop,
            options.jobs,
            tasks,
            parent,
            alive=alive,
            tells=lambda: {INDEX_UP: int(guard.is_up)} if guard else {},
            obstacle=dependencies.disk.obstacle,
        )
        try:
            worker.run_until_stopped()
        except WorkerExit as error:
            return error.code
    return 0


@contextmanager
def rebuild_dependencies(options: ServerOptions, inbox: Inbox, stop: threading.Event) -> Iterator[RunDependencies]:
    with _app(options) as app:
        yield run_dependencies(options, inbox, app, "", stop)


def _ask_index(options: ServerOptions) -> None:
    """Raises WorldError if the place of the index does not answer."""
    open_index(options.organisation, 0).search(["precedent"], {0})


def _fetch_login(options: ServerOptions, inbox: Inbox) -> str:
    """Ask GitHub about the App, store the answer for all processes, and return our login.

    If GitHub does not answer, it is the last known login, or "". Raises WorldError.
    """
    try:
        with _app(options) as app:
            return inbox.heartbeats.refresh_app(app).login
    except Unauthorised:
        raise
    except ForgeError as error:
        log.warning("could not ask GitHub about the App: %s", error)
        slug = inbox.heartbeats.get(APP_HEARTBEAT)[1].get("slug")
        return f"{slug}[bot]" if slug else ""


def _check_startup(options: ServerOptions, *, listens: bool) -> None:
    problems = check(options, listens=listens)
    for problem in problems:
        if problem.level == "warning":
            log.warning("%s: %s", problem.name, problem.line)
    raise_problems(problems)


def _with_password(options: ServerOptions) -> ServerOptions:
    """Add a password for the status page, which is also kept out of the log. Raises UserError, WorldError."""
    if options.status_password:
        return options
    updated = replace(options, status_password=stored_password(options.data) or new_password(options.data))
    write_logs(updated.log, updated.hidden)
    log.info("the password of the status page is in %s", password_file(options.data))
    return updated


def _set_up_process(options: ServerOptions) -> None:
    """Set up a process: its log, as many open files as it may have, and no core dump, which would contain secrets."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the secrets are watched; it would end the process
    write_logs(options.log, options.hidden)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(MAX_OPEN_FILES, most), most))


def _stop_on_signals() -> threading.Event:
    """An event set by signals, through a thread: the code that a signal interrupts may hold the event's lock."""
    stop, signals = threading.Event(), SimpleQueue[int]()

    def wait_for_signal() -> None:
        signals.get()
        stop.set()

    threading.Thread(target=wait_for_signal, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: signals.put(number))  # the only queue that is safe in a signal handler
    return stop


def _database(options: ServerOptions, *, hurry: bool = False) -> Database:
    if options.database_url:
        return Database(options.database_url, hurry=hurry)
    return Database.in_folder(options.data, hurry=hurry)


def _app(options: ServerOptions) -> App:
    return App(options.app_id, options.private_key, options.api_url)


def own_name() -> str:
    """A name for this start of a process."""
    host = re.sub(r"[^A-Za-z0-9]+", "-", socket.gethostname()).strip("-")[:60] or "host"
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}"
