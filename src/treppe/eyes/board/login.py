"""In and out: the login page, its cookies, the way on to the page that was asked for."""

from __future__ import annotations

import re
import secrets
from math import ceil
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import Response

from treppe.eyes.board.desk import Trouble, Visit
from treppe.eyes.board.gate import LASTS, same

SESSION_COOKIE: Final = "treppe_session"
FORM_COOKIE: Final = "treppe_form"

_PAGES: Final = re.compile(r"(?:jobs|job|dead|unclear|queues)?(?:\?[^\s\\#]*)?")


def form(visit: Visit) -> Response:
    """The login page; somebody who is logged in is sent on.

    A link in a mail leads here without the session's cookie, as it is ``SameSite=Strict``. The page then asks for
    itself once more, this time from our own site, and the cookie comes along. Without https browsers do not tell
    where a visit comes from, so there it asks each time.
    """
    wanted = _wanted(visit.ask("next"))
    if visit.session is not None:
        return visit.go("") if not wanted else _on(visit, wanted)
    site = visit.request.headers.get("sec-fetch-site", "cross-site")
    return _page(visit, wanted, again=site == "cross-site" and not visit.ask("again"))


def enter(visit: Visit) -> Response:
    """Check name and password, slowly for whoever guesses."""
    desk, wanted = visit.desk, _wanted(visit.said("next"))
    if desk.gate.closed:
        return _page(visit, wanted, status=403)
    given = visit.request.cookies.get(FORM_COOKIE, "")
    if not given or not same(given, visit.said("csrf")):
        return _page(visit, wanted, status=403, problem=visit.words("login.stale"))
    wait = desk.throttle.admit(visit.address)
    if wait > 0:
        return _slow(visit, wanted, wait)
    cookie = desk.gate.enter(visit.said("name"), visit.form.get("password", [""])[0])
    if cookie is None:
        return _page(visit, wanted, status=401, problem=visit.words("login.wrong"))
    desk.throttle.forgive(visit.address)
    response = _on(visit, wanted)
    _set(visit, response, SESSION_COOKIE, cookie, int(LASTS))
    return response


def leave(visit: Visit) -> Response:
    """End all sessions of this user."""
    session = visit.who
    if not same(session.csrf, visit.said("csrf")):
        raise Trouble(403, "csrf")
    visit.desk.gate.leave(session.user)
    response = visit.go("login")
    response.delete_cookie(SESSION_COOKIE, path=visit.root)
    return response


def _page(visit: Visit, wanted: str, status: int = 200, again: bool = False, problem: str = "") -> Response:
    csrf = visit.request.cookies.get(FORM_COOKIE, "")[:64] or secrets.token_urlsafe(24)
    response = visit.page(
        "login.html",
        status,
        csrf=csrf,
        wanted=wanted,
        again=visit.link("login", next=wanted, again=1) if again else None,
        problem=problem,
        closed=visit.desk.gate.closed,
    )
    _set(visit, response, FORM_COOKIE, csrf, 3600)
    return response


def _slow(visit: Visit, wanted: str, wait: float) -> Response:
    problem = visit.words("login.slow", in_=visit.words.span(wait))
    response = _page(visit, wanted, status=429, problem=problem)
    response.headers["retry-after"] = str(ceil(wait))
    return response


def _on(visit: Visit, wanted: str) -> Response:
    page, _, query = wanted.partition("?")
    response = visit.go(page)
    if query:
        response.headers["location"] = f"{page or './'}?{query}"
    return response


def _wanted(given: str) -> str:
    """Only pages of this board: the login must not send anybody elsewhere.

    >>> _wanted("job?id=a%2F1"), _wanted("//evil.example"), _wanted("jobs/../../x")
    ('job?id=a%2F1', '', '')
    """
    return given if given.isascii() and _PAGES.fullmatch(given) and len(given) < 2000 else ""


def _set(visit: Visit, response: Response, name: str, value: str, lasts: int) -> None:
    response.set_cookie(
        name, value, max_age=lasts, path=visit.root, secure=_encrypted(visit), httponly=True, samesite="strict"
    )


def _encrypted(visit: Visit) -> bool:
    """Does the visitor's browser speak https? A proxy in front may hide it; the public address then tells."""
    public = urlsplit(visit.desk.settings.web.public_url or "")
    behind_proxy = public.scheme == "https" and visit.request.headers.get("host") == public.netloc
    return visit.request.url.scheme == "https" or behind_proxy
