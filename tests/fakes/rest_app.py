"""The API of GitHub Apps: themselves, their installations, tokens and webhook deliveries."""

from __future__ import annotations

from tests.fakes.apps import App
from tests.fakes.exchange import Book, Call, Refusal, Reply, not_found
from tests.fakes.objects import Json, Shapes
from tests.fakes.paging import page_reply, window_of
from tests.fakes.project_objects import repository_shape
from tests.fakes.state import Account

BOOK = Book()
INSTALLATION = "/app/installations/{installation_id}"
OUT_OF_REACH = "There is at least one repository that does not exist or is not accessible to the parent installation."


def calling_app(call: Call) -> App:
    """The app whose JSON web token came with the request."""
    if call.app is None:
        raise Refusal(401, "A JSON web token could not be decoded")
    return call.app


@BOOK.route("GET", "/app")
def get_app(call: Call) -> Reply:
    app = calling_app(call)
    told = {"permissions": app.permissions, "events": list(app.events)}
    return Reply(200, (call.shapes.app(app.slug) or {}) | told)


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


def _asked_for(call: Call) -> tuple[App, int]:
    app, number = calling_app(call), call.number("installation_id")
    call.server.apps.installation(app, number)
    return app, number


@BOOK.route("GET", INSTALLATION)
def get_installation(call: Call) -> Reply:
    return Reply(200, _installation(call, *_asked_for(call)))


@BOOK.route("DELETE", INSTALLATION)
def delete_installation(call: Call) -> Reply:
    call.server.tenants.uninstall(_asked_for(call)[1], aside=True)
    return Reply(204)


@BOOK.route("PUT", f"{INSTALLATION}/suspended")
def suspend_installation(call: Call) -> Reply:
    call.server.tenants.suspend(_asked_for(call)[1], aside=True)
    return Reply(204)


@BOOK.route("DELETE", f"{INSTALLATION}/suspended")
def unsuspend_installation(call: Call) -> Reply:
    call.server.tenants.unsuspend(_asked_for(call)[1], aside=True)
    return Reply(204)


@BOOK.route("POST", f"{INSTALLATION}/access_tokens")
def create_token(call: Call) -> Reply:
    """For all repositories of the installation, or for those that are named, by number or by name alone."""
    app, number = _asked_for(call)
    only = _repositories(call, app.installations[number])
    token = call.server.apps.create_token(app, number, call.json().get("permissions"), only)
    body = {"token": token.value, "expires_at": token.expires_at, "permissions": token.permissions}
    if only is not None:
        shown = [repository_shape(call.shapes, call.world.repositories[each], token.account) for each in only]
        body |= {"repositories": shown}
    return Reply(201, body | {"repository_selection": "selected"})


def _repositories(call: Call, seen: list[int]) -> list[int] | None:
    asked = call.json()
    if "repository_ids" not in asked and "repositories" not in asked:
        return None
    named = {call.world.repositories[each].name: each for each in seen}
    found = [*asked.get("repository_ids", ()), *(named.get(each, 0) for each in asked.get("repositories", ()))]
    if not found or not set(found) <= set(seen):
        raise Refusal(422, OUT_OF_REACH)
    return found


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
    newest_first = sorted(call.server.hooks.recent(), key=lambda delivery: -delivery.id)
    cursor = call.query.get("cursor")
    waiting = [delivery for delivery in newest_first if cursor is None or delivery.id < int(cursor)]
    size = window_of(call).size
    reply = Reply(200, [delivery.shape() for delivery in waiting[:size]])
    if len(waiting) > size:
        link = f"{call.base}/app/hook/deliveries?per_page={size}&cursor={waiting[size - 1].id}"
        reply.headers["Link"] = f'<{link}>; rel="next"'
    return reply


@BOOK.route("GET", "/app/hook/deliveries/{delivery_id}")
def get_delivery(call: Call) -> Reply:
    """With the payload, which the list has not."""
    calling_app(call)
    found = call.server.hooks.find(call.number("delivery_id"))
    if found is None:
        raise not_found()
    return Reply(200, call.shapes.sample("hook-delivery") | found.shape() | call.server.hooks.exchanged(found))


@BOOK.route("POST", "/app/hook/deliveries/{delivery_id}/attempts")
def redeliver(call: Call) -> Reply:
    calling_app(call)
    if not call.server.hooks.redeliver(call.number("delivery_id")):
        raise not_found()
    return Reply(202, {})
