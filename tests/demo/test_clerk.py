import urllib.parse

import pytest

from tests.demo.support import within
from treppe.demo.clerk import Clerk, Row
from treppe.demo.processes import Failed
from treppe.demo.wire import Answer, Request, Server

EVENT = "0e4a6b7c-1d2e-5f30-8a9b-0c1d2e3f4a5b"
PAGE = (
    '<form><input type="hidden" name="csrf" value="t&amp;0"></form><table>'
    f'<tr data-id="shop:{EVENT}/orders/create:accounting" data-token="4"><td>…</td></tr>'
    f'<tr data-id="shop:{EVENT}/orders/create:mail" data-token="2"><td>…</td></tr></table>'
)


class Board:
    """Answers like the board's pages do: a form to log in, a cookie, a form token on every page."""

    def __init__(self, act: int = 303, login: int = 303) -> None:
        self.act, self.login = act, login
        self.forms: list[dict[str, str]] = []

    async def handle(self, request: Request) -> Answer:
        if request.method == "GET" and request.path == "/board/login":
            return Answer(200, b'<input name="csrf" value="first">', {"set-cookie": "visitor=1; Path=/"})
        if request.method == "POST":
            self.forms.append(dict(urllib.parse.parse_qsl(request.body.decode(), keep_blank_values=True)))
            headers = {"set-cookie": "session=s3; HttpOnly"} if self.login == 303 else {}
            return Answer(303, b"", headers) if "password" in self.forms[-1] else Answer(self.act)
        if request.headers.get("cookie") != "visitor=1; session=s3":
            return Answer(403)
        return Answer(200, PAGE.encode())


def with_board(board: Board, story) -> None:
    async def play() -> None:
        server = Server(board.handle)
        clerk = Clerk(await server.listen(), "clerk", "s3cret")
        try:
            await story(clerk)
        finally:
            await clerk.leave()
            await server.close()

    within(10, play)


def test_what_is_in_the_ledger_is_confirmed_and_the_rest_done_again():
    board = Board()

    async def story(clerk: Clerk) -> None:
        await clerk.log_in()
        pressed = await clerk.settle(lambda event, destination: (event, destination) == (EVENT, "accounting"))
        assert pressed == clerk.acts
        assert pressed == {
            Row(f"shop:{EVENT}/orders/create:accounting", "4"): "confirm",
            Row(f"shop:{EVENT}/orders/create:mail", "2"): "revive",
        }

    with_board(board, story)
    assert board.forms[0] == {"name": "clerk", "password": "s3cret", "csrf": "first"}
    assert [(form["event"], form["token"], form["csrf"]) for form in board.forms[1:]] == [
        ("confirm", "4", "t&0"),
        ("revive", "2", "t&0"),
    ]
    assert all(form["note"] for form in board.forms[1:])


def test_who_is_not_logged_in_is_told_so():
    async def story(clerk: Clerk) -> None:
        with pytest.raises(Failed, match="403 at /board/unclear"):
            await clerk.settle(lambda event, destination: True)

    with_board(Board(), story)


def test_a_button_that_does_nothing_ends_the_run():
    async def story(clerk: Clerk) -> None:
        await clerk.log_in()
        with pytest.raises(Failed, match=r"the board refused 'confirm' for .* with 409"):
            await clerk.settle(lambda event, destination: True)

    with_board(Board(act=409), story)
