"""The board as an ASGI application: addresses, headers, and what happens when something goes wrong.

It may be mounted anywhere: addresses are relative, nothing waits for a lifespan, and store calls run in threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from treppe.errors import StoreError
from treppe.eyes.board import acts, login, pages
from treppe.eyes.board.desk import LANGUAGE_COOKIE, YEAR, Desk, Trouble, Visit, static
from treppe.eyes.board.gate import own_site
from treppe.eyes.words import LANGUAGES, Words

log = logging.getLogger(__name__)

View = Callable[[Visit], Response]

FORM_LIMIT: Final = 512 * 1024
"""Bytes of a form: 500 jobs with their tokens and a note."""

FORM_TIME: Final = 10.0
"""Seconds in which a form must have arrived."""

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

_READ: Final[dict[str, View]] = {
    "/": pages.overview,
    "/jobs": pages.jobs,
    "/job": pages.job,
    "/dead": pages.dead,
    "/unclear": pages.unclear,
    "/queues": pages.queues,
    "/stats.json": pages.stats,
    "/login": login.form,
}
_WRITE: Final[dict[str, View]] = {
    "/login": login.enter,
    "/logout": login.leave,
    "/act": acts.act,
    "/queue": acts.queue,
}
_OPEN: Final = frozenset({login.form, login.enter})
_FILES: Final = {"/board.css": "text/css", "/icon.svg": "image/svg+xml"}


def site(desk: Desk) -> Starlette:
    """The application for one desk."""
    routes = [
        *(Route(path, _reading(desk, view), methods=["GET"]) for path, view in _READ.items()),
        *(Route(path, _writing(desk, view), methods=["POST"]) for path, view in _WRITE.items()),
        *(Route(path, _file(path, kind), methods=["GET"]) for path, kind in _FILES.items()),
    ]

    async def lost(request: Request, error: Exception) -> Response:
        if request.url.path == request.scope.get("root_path"):
            return RedirectResponse(f"{request.url.path}/", 307)
        wrong_way = isinstance(error, HTTPException) and error.status_code == 405
        trouble = Trouble(405, "method") if wrong_way else Trouble(404, "not_found")
        return await run_in_threadpool(_answer, desk, trouble, request, {})

    app = Starlette(routes=routes, exception_handlers={404: lost, 405: lost})
    app.add_middleware(_Headers)
    app.router.redirect_slashes = False
    return app


class _Headers:
    """Puts the headers that keep a page to itself on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    given.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


def _reading(desk: Desk, view: View) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(_answer, desk, view, request, {})

    return endpoint


def _writing(desk: Desk, view: View) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        try:
            async with asyncio.timeout(FORM_TIME):
                body = await _body(request)
        except TimeoutError:
            return await run_in_threadpool(_answer, desk, Trouble(408, "too_slow"), request, {})
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return await run_in_threadpool(_answer, desk, Trouble(413, "too_large"), request, {})
        form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
        return await run_in_threadpool(_answer, desk, view, request, form)

    return endpoint


async def _body(request: Request) -> bytes | None:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > FORM_LIMIT:
            return None
    return bytes(body)


def _answer(desk: Desk, view: View | Trouble, request: Request, form: dict[str, list[str]]) -> Response:
    """One request from the cookie to the page, in a thread. A view that is a trouble already only has to be told."""
    visit = Visit(desk, request, Words(_language(desk, request)), None, form)
    try:
        session = desk.gate.session(request.cookies.get(login.SESSION_COOKIE, ""))
        visit = Visit(desk, request, visit.words, session, form)
        if isinstance(view, Trouble):
            raise view
        response = _checked(visit, view)
    except Trouble as trouble:
        response = _trouble(visit, trouble)
    except StoreError as error:
        log.warning("the board cannot reach the store: %s", error)
        response = _trouble(visit, Trouble(503, "no_store", {"retry-after": "5"}))
    except Exception:
        log.exception("the board failed at %s", request.url.path)
        response = _trouble(visit, Trouble(500, "internal"))
    return _keep_language(visit, response)


def _checked(visit: Visit, view: View) -> Response:
    request, headers = visit.request, visit.request.headers
    public_url = visit.desk.settings.web.public_url
    if request.method == "POST" and not own_site(
        headers.get("origin"), headers.get("sec-fetch-site"), headers.get("host", ""), public_url
    ):
        raise Trouble(403, "origin")
    if visit.session is None and view not in _OPEN:
        return _to_login(visit)
    return view(visit)


def _to_login(visit: Visit) -> Response:
    if visit.name == "stats.json":
        return PlainTextResponse("log in first", 401)
    query = visit.request.url.query
    wanted = f"{visit.name}?{query}" if query else visit.name
    return visit.go("login", next=wanted if visit.request.method == "GET" else None)


def _trouble(visit: Visit, trouble: Trouble) -> Response:
    text = visit.words(f"trouble.{trouble.key}", **trouble.values)
    response = visit.page("trouble.html", trouble.status, text=text)
    response.headers.update(trouble.headers)
    return response


def _language(desk: Desk, request: Request) -> str:
    wished = (request.query_params.get("lang"), request.cookies.get(LANGUAGE_COOKIE), desk.language)
    return next((language for language in wished if language in LANGUAGES), LANGUAGES[0])


def _keep_language(visit: Visit, response: Response) -> Response:
    if visit.request.query_params.get("lang") in LANGUAGES:
        response.set_cookie(
            LANGUAGE_COOKIE, visit.words.language, max_age=YEAR, path=visit.root, httponly=True, samesite="strict"
        )
    return response


def _file(path: str, kind: str) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        content, _ = static(path.removeprefix("/"))
        return Response(content, media_type=kind, headers={"cache-control": f"public, max-age={YEAR}, immutable"})

    return endpoint
