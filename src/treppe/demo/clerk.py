"""The human at the board: logs in, reads what is unclear, looks into the ledger of the remote system, and decides.

Everything goes through the pages that a browser would get, cookies and form tokens included.
"""

from __future__ import annotations

import http.cookies
import urllib.parse
from collections.abc import Callable
from html.parser import HTMLParser
from typing import NamedTuple

from treppe.demo.friday import event_in
from treppe.demo.processes import Failed
from treppe.demo.wire import Answer, Client

BUSY = 503
"""The board's store is away; a human tries again in a moment."""

Happened = Callable[[str, str], bool]
"""Did it take effect? Asked with the event's id and the destination."""


class Row(NamedTuple):
    """One job as a page of the board shows it."""

    id: str
    token: str


class Page(HTMLParser):
    """What a human needs of a page: the jobs on it, and the hidden form token.

    >>> page = Page('<input name=csrf value="t0"><tr data-id="shop:1:mail" data-token="4">')
    >>> page.csrf, page.rows
    ('t0', [Row(id='shop:1:mail', token='4')])
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.csrf = ""
        self.rows: list[Row] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of form tokens and of rows with a job."""
        found = {name: value or "" for name, value in attrs}
        if tag == "input" and found.get("name") == "csrf":
            self.csrf = found.get("value", "")
        if "data-id" in found and "data-token" in found:
            self.rows.append(Row(found["data-id"], found["data-token"]))


class Clerk:
    """One logged-in human. ``acts`` keeps, per job and token, what was decided."""

    def __init__(self, port: int, name: str, password: str) -> None:
        self._board = Client(port)
        self._login = {"name": name, "password": password}
        self._cookies: http.cookies.SimpleCookie = http.cookies.SimpleCookie()
        self.acts: dict[Row, str] = {}

    async def log_in(self) -> None:
        """Through the form, as everybody."""
        page = await self._page("/board/login")
        form = {**self._login, "csrf": page.csrf if page else ""}
        answer = await self._call("POST", "/board/login", form)
        if answer.status not in (200, 302, 303) or not self._cookies:
            raise Failed(f"the board let nobody in: {answer.status} {answer.body[:200].decode(errors='replace')}")

    async def settle(self, happened: Happened) -> dict[Row, str]:
        """Decide everything on the page of unclear jobs; returns what was pressed for which job."""
        page = await self._page("/board/unclear")
        if page is None:
            return {}
        true = {row for row in page.rows if happened(event_in(row.id), row.id.rpartition(":")[2])}
        pressed: dict[Row, str] = {}
        for row in page.rows:
            event = "confirm" if row in true else "revive"
            words = "it is in their ledger" if event == "confirm" else "their ledger knows nothing of it"
            form = {"csrf": page.csrf, "id": row.id, "token": row.token, "event": event, "note": words}
            answer = await self._call("POST", "/board/act", form)
            if answer.status == BUSY:
                break
            if answer.status not in (200, 302, 303):
                raise Failed(f"the board refused {event!r} for {row.id} with {answer.status}")
            pressed[row] = event
        self.acts |= pressed
        return pressed

    async def leave(self) -> None:
        """Close the browser."""
        await self._board.close()

    async def _page(self, path: str) -> Page | None:
        """A page of the board; None while its store is away."""
        answer = await self._call("GET", path)
        if answer.status == BUSY:
            return None
        if not answer.good:
            raise Failed(f"the board answers {answer.status} at {path}")
        return Page(answer.body.decode())

    async def _call(self, method: str, path: str, form: dict[str, str] | None = None) -> Answer:
        headers = {"cookie": "; ".join(f"{name}={one.value}" for name, one in self._cookies.items())}
        if form is not None:
            headers |= {
                "content-type": "application/x-www-form-urlencoded",
                "origin": f"http://127.0.0.1:{self._board.port}",
            }
        answer = await self._board.call(method, path, headers, urllib.parse.urlencode(form or {}).encode())
        for line in answer.headers.get("set-cookie", "").split("\n"):
            self._cookies.load(line)
        return answer
