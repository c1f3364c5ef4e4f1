"""The web application of the server: which address is answered by what."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import Route

from bot.errors import WorldError
from bot.server.pages.parts import DEAD_PATH, DIGESTS_PATH
from bot.server.pages.routes import StatusRoutes, database_unavailable, healthz
from bot.server.receive.endpoint import Webhook
from bot.server.web_context import WebContext


def create_app(door: WebContext) -> Starlette:
    pages = StatusRoutes(door)
    routes = [
        Route("/webhook", endpoint=Webhook(door)),
        Route("/healthz", endpoint=healthz),
        Route("/readyz", endpoint=pages.readyz),
        Route("/status.json", endpoint=pages.state),
        Route("/metrics", endpoint=pages.for_readers(pages.metrics)),
        Route("/", endpoint=pages.for_readers(pages.status)),
        Route("/deliveries/{name}", endpoint=pages.for_readers(pages.delivery)),
        Route(f"{DIGESTS_PATH}/{{key}}", endpoint=pages.for_readers(pages.digest)),
        Route("/operate", endpoint=pages.operate),
        Route(DEAD_PATH, endpoint=pages.for_readers(pages.dead), methods=["GET"]),
        Route(DEAD_PATH, endpoint=pages.change_dead, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={WorldError: database_unavailable})
    app.router.redirect_slashes = False
    return app
