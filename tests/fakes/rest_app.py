"""The API of GitHub Apps: themselves, their installations, tokens and webhook deliveries."""

from __future__ import annotations

from tests.fakes.apps import App
from tests.fakes.exchange import Book, Call, Refusal, Reply, not_found
from tests.fakes.paging import page_reply, window_of
from tests.fakes.project_objects import installation_shape, repository_shape

BOOK = Book()


def calling_app(call: Call) -> App:
    """The app whose JSON web token came with the request."""
    if call.app is None:
        raise Refusal(401, "A JSON web token could not be decoded")
    return call.app


@BOOK.route("GET", "/app")
def get_app(call: Call) -> Reply:
    app = calling_app(call)
    return Reply(200, (call.shapes.app(app.slug) or {}) | {"permissions": app.permissions})


@BOOK.route("GET", "/app/installations")
def list_installations(call: Call) -> Reply:
    app = calling_app(call)
    return page_reply(call, sorted(app.installations), lambda number: _installation(call, app, number))


@BOOK.route("GET", "/repos/{owner}/{repo}/installation")
def get_repository_installation(call: Call) -> Reply:
    app, repo = calling_app(call), call.repository()
    for number, seen in app.installations.items():
        if repo.id in seen:
            return Reply(200, _installation(call, app, number))
    raise not_found()


def _installation(call: Call, app: App, number: int) -> object:
    first = call.world.repositories[app.installations[number][0]]
    return installation_shape(call.shapes, number, (app.id, app.slug), first, app.permissions)


@BOOK.route("POST", "/app/installations/{installation_id}/access_tokens")
def create_token(call: Call) -> Reply:
    """A token may ask for less than the app was given, never for more."""
    app, number, asked = calling_app(call), call.number("installation_id"), call.json().get("permissions")
    call.server.apps.installation(app, number)
    ranks = ("none", "read", "write", "admin")
    if any(
        ranks.index(level) > ranks.index(app.permissions.get(name, "none")) for name, level in (asked or {}).items()
    ):
        raise Refusal(422, "The permissions requested are not granted to this installation.")
    token = call.server.apps.mint(app, number, asked)
    body = {"token": token.value, "expires_at": token.expires_at, "permissions": token.permissions}
    return Reply(201, body | {"repository_selection": "selected"})


@BOOK.route("GET", "/installation/repositories")
def list_repositories(call: Call) -> Reply:
    if call.token is None or call.token.app is None:
        raise Refusal(403, "Resource not accessible by integration")
    ids = call.server.visible_repositories(call.token)
    reply = page_reply(call, ids, lambda i: repository_shape(call.shapes, call.world.repositories[i], call.account))
    reply.body = {"total_count": len(ids), "repository_selection": "selected", "repositories": reply.body}
    return reply


@BOOK.route("GET", "/app/hook/deliveries")
def list_deliveries(call: Call) -> Reply:
    """Newest first, with a cursor in place of page numbers."""
    calling_app(call)
    newest_first = sorted(call.server.hooks.deliveries, key=lambda delivery: -delivery.id)
    cursor = call.query.get("cursor")
    waiting = [delivery for delivery in newest_first if cursor is None or delivery.id < int(cursor)]
    size = window_of(call).size
    reply = Reply(200, [delivery.shape() for delivery in waiting[:size]])
    if len(waiting) > size:
        link = f"{call.base}/app/hook/deliveries?per_page={size}&cursor={waiting[size - 1].id}"
        reply.headers["Link"] = f'<{link}>; rel="next"'
    return reply


@BOOK.route("POST", "/app/hook/deliveries/{delivery_id}/attempts")
def redeliver(call: Call) -> Reply:
    calling_app(call)
    if not call.server.hooks.redeliver(call.number("delivery_id")):
        raise not_found()
    return Reply(202, {})
