"""The same Friday without a queue: the shop's webhook calls the four systems itself, and tries again at once.

Run as ``python -m treppe.demo.naive day.json``; prints its port, ends when its stdin is closed. It is not made
stupid: it checks the signature, calls all four at the same time, sends an idempotency key, gives up nothing at the
first failure, and tells the shop to send again what did not reach everybody.
"""

from __future__ import annotations

import asyncio
import hmac
import sys

import msgspec

from treppe.demo.child import the_day, until_told_to_stop
from treppe.demo.friday import DESTINATIONS, Day, signature
from treppe.demo.wire import Answer, Client, Request, Server

FINAL = {400, 401, 404, 405, 422}


class Naive:
    """A webhook handler as one writes it on a Thursday."""

    def __init__(self, day: Day) -> None:
        self._day = day
        self._key = next(iter(day.keys))
        self._remotes = [Client(day.ports[name]) for name in DESTINATIONS]

    async def handle(self, request: Request) -> Answer:
        """200 when everybody got the order, else 500, so that the shop sends it again."""
        given = request.headers.get("x-shopify-hmac-sha256", "")
        if not hmac.compare_digest(signature(self._day.secrets["shop"], request.body), given):
            return Answer(401)
        headers = {"x-api-key": self._key, "idempotency-key": request.headers["x-shopify-event-id"]}
        reached = await asyncio.gather(*(self._deliver(remote, headers, request.body) for remote in self._remotes))
        return Answer(200 if all(reached) else 500)

    async def _deliver(self, remote: Client, headers: dict[str, str], body: bytes) -> bool:
        for _ in range(self._day.friday.naive_tries):
            try:
                answer = await remote.call("POST", "/", headers, body, self._day.friday.naive_patience)
            except OSError:
                continue
            if answer.good or answer.status in FINAL:
                return answer.good
        return False


async def run(day: Day) -> None:
    """Listen, say where, and serve until told to stop."""
    port = await Server(Naive(day).handle).listen()
    sys.stdout.write(msgspec.json.encode({"door": port}).decode() + "\n")
    sys.stdout.flush()
    await until_told_to_stop()


if __name__ == "__main__":
    asyncio.run(run(the_day()))
