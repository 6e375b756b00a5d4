"""The built-in handler of destinations: claim in, outcome out."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping

from treppe.config import Destination
from treppe.config.parse import open_secret
from treppe.delivery import request as build
from treppe.delivery.guard import LookUp, Unsendable, look_up
from treppe.delivery.verdict import judge, not_sent
from treppe.delivery.wire import Wire
from treppe.errors import ConfigError
from treppe.job import Claim, Kind, Outcome


class Delivery:
    """Delivers the jobs of tasks ``destination:<name>``; safe to call many times at once in one event loop.

    ``open_secret`` opens references to secrets, anew for each call, so a rotated one counts at once.
    ``tls`` and ``look_up`` replace the system's trusted certificates and resolver. Close it with :meth:`aclose`.

    >>> crm = Destination("crm", "https://crm.example/contacts")
    >>> sorted(Delivery({"crm": crm}).tasks)
    ['destination:crm']
    """

    def __init__(
        self,
        destinations: Mapping[str, Destination],
        open_secret: build.OpenSecret = open_secret,
        tls: ssl.SSLContext | None = None,
        look_up: LookUp = look_up,
    ) -> None:
        self._destinations = {destination.task: destination for destination in destinations.values()}
        self._open_secret = open_secret
        self._wire = Wire(tls, look_up)

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks it handles."""
        return frozenset(self._destinations)

    async def run(self, claim: Claim) -> Outcome:
        """Send the claim's bytes to its destination once, and say what came of it.

        A cancel goes through, unless the target's status is already known: then that is the outcome.
        """
        destination = self._destinations[claim.task]
        came = build.hops(claim.headers)
        if came > build.MOST_HOPS:
            return Outcome(Kind.REFUSED, f"loop: it came back to our own door {came} times", acted=False)
        try:
            request = build.delivery(claim, destination, self._open_secret)
        except (Unsendable, ConfigError) as problem:
            return not_sent(str(problem), destination.url)
        return await self._send(request, destination)

    async def probe(self, destination: Destination) -> Outcome:
        """Ask a held destination by its harmless GET whether it answers again."""
        if destination.probe is None:
            where = f"destination.{destination.name}.probe"
            raise ConfigError(where, "this is not set", 'Write probe = { get = "https://…" }')
        try:
            request = build.probe(destination, destination.probe.get, self._open_secret)
        except (Unsendable, ConfigError) as problem:
            return not_sent(str(problem), destination.probe.get)
        return await self._send(request, destination)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._wire.aclose()

    async def _send(self, request: build.Request, destination: Destination) -> Outcome:
        return judge(await self._wire.exchange(request), destination, time.time())
