"""The API of GitHub Apps: the App itself, its installations, tokens and webhook deliveries."""

from __future__ import annotations

from tests.fakes.apps import App
from tests.fakes.exchange import Call, Refusal, Reply, RouteTable, not_found
from tests.fakes.objects import Json, Shapes
from tests.fakes.paging import page_reply, window_of
from tests.fakes.project_objects import repository_shape
from tests.fakes.state import Account

ROUTES = RouteTable()
INSTALLATION = "/app/installations/{installation_id}"
OUT_OF_REACH = "There is at least one repository that does not exist or is not accessible to the parent installation."


def calling_app(call: Call) -> App:
    """The app whose JSON web token came with the request."""
    if call.app is None:
        raise Refusal(401, "A JSON web token could not be decoded")
    return call.app


@ROUTES.route("GET", "/app")
def get_app(call: Call) -> Reply:
    app = calling_app(call)
    details = {"permissions": app.permissions, "events": list(app.events)}
    return Reply(200, (call.shapes.app(app.slug) or {}) | details)


@ROUTES.route("GET", "/app/installations")
def list_installations(call: Call) -> Reply:
    app = calling_app(call)
    return page_reply(call, sorted(app.installations), lambda number: _installation(call, app, number))


def installation_shape(shapes: Shapes, number: int, app: App, account: Account) -> Json:
    shape: Json = shapes.sample("installation")
    return shape | {
        "id": number,
        "account": shapes.account(account),
        "access_tokens_url": f"{shapes.base}/app/installations/{number}/access_tokens",
        "repositories_url": f"{shapes.base}/installation/repositories",
        "app_id": app.id,
        "app_slug": app.slug,
        "target_id": account.id,
        "target_type": "User",
        "permissions": dict(app.permissions),
        "events": list(app.events),
        "repository_selection": "selected",
        "suspended_at": app.suspended.get(number),
    }


def _installation(call: Call, app: App, number: int) -> Json:
    return installation_shape(call.shapes, number, app, call.server.apps.account(app, number))


def _find_installation(call: Call) -> tuple[App, int]:
    app, number = calling_app(call), call.number("installation_id")
    call.server.apps.installation(app, number)
    return app, number


@ROUTES.route("GET", INSTALLATION)
def get_installation(call: Call) -> Reply:
    return Reply(200, _installation(call, *_find_installation(call)))


@ROUTES.route("POST", f"{INSTALLATION}/access_tokens")
def create_token(call: Call) -> Reply:
    """A token for all repositories of the installation, or for those given by id."""
    app, number = _find_installation(call)
    only = call.json().get("repository_ids")
    if only is not None and (not only or not set(only) <= set(app.installations[number])):
        raise Refusal(422, OUT_OF_REACH)
    token = call.server.apps.create_token(app, number, call.json().get("permissions"), only)
    body = {"token": token.value, "expires_at": token.expires_at, "permissions": token.permissions}
    if only is not None:
        shown = [repository_shape(call.shapes, call.world.repositories[each], token.account) for each in only]
        body |= {"repositories": shown}
    return Reply(201, body | {"repository_selection": "selected"})


@ROUTES.route("GET", "/installation/repositories")
def list_repositories(call: Call) -> Reply:
    if call.token is None or call.token.app is None:
        raise Refusal(403, "Resource not accessible by integration")
    ids = call.server.visible_repositories(call.token)
    reply = page_reply(call, ids, lambda i: repository_shape(call.shapes, call.world.repositories[i], call.account))
    reply.body = {"total_count": len(ids), "repository_selection": "selected", "repositories": reply.body}
    return reply


@ROUTES.route("GET", "/app/hook/deliveries")
def list_deliveries(call: Call) -> Reply:
    """Newest first, with a cursor instead of page numbers."""
    calling_app(call)
    newest_first = sorted(call.server.hooks.recent(), key=lambda delivery: -delivery.id)
    cursor = call.query.get("cursor")
    remaining = [delivery for delivery in newest_first if cursor is None or delivery.id < int(cursor)]
    size = window_of(call).size
    reply = Reply(200, [delivery.shape() for delivery in remaining[:size]])
    if len(remaining) > size:
        link = f"{call.request.base}/app/hook/deliveries?per_page={size}&cursor={remaining[size - 1].id}"
        reply.headers["Link"] = f'<{link}>; rel="next"'
    return reply


@ROUTES.route("POST", "/app/hook/deliveries/{delivery_id}/attempts")
def redeliver(call: Call) -> Reply:
    calling_app(call)
    if not call.server.hooks.redeliver(call.number("delivery_id")):
        raise not_found()
    return Reply(202, {})
