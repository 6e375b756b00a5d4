"""Guessing passwords must be slow: a bound on failed logins per address and over all addresses."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

PER_ADDRESS: Final = 5
OVERALL: Final = 100
WINDOW: Final = 300.0
"""So many failures are let through in this many seconds."""

REMEMBERED: Final = 10_000
"""At most so many addresses are kept in mind."""


class Throttle:
    """Counts failures. An address that has logged in before is not held up by the failures of others.

    >>> throttle = Throttle(lambda: 0.0)
    >>> [throttle.admit("192.0.2.1") for _ in range(6)]
    [0.0, 0.0, 0.0, 0.0, 0.0, 300.0]
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._overall: deque[float] = deque()
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()

    def admit(self, address: str) -> float:
        """Let one try through and count it as failed until it is forgiven, or say how many seconds to wait.

        Counting first means that tries made at the same moment cannot slip through together.
        """
        now, address = self._clock(), _network(address)
        with self._lock:
            failures = self._failures.setdefault(address, deque())
            self._failures.move_to_end(address)
            _shorten(self._failures)
            wait = _wait(failures, PER_ADDRESS, now)
            if not wait and address not in self._known:
                wait = _wait(self._overall, OVERALL, now)
            if not wait:
                failures.append(now)
                self._overall.append(now)
            return wait

    def forgive(self, address: str) -> None:
        """The last try was right: nothing of this address counts any more."""
        address = _network(address)
        with self._lock:
            self._failures.pop(address, None)
            if self._overall:
                self._overall.pop()
            self._known[address] = None
            _shorten(self._known)


def _wait(failures: deque[float], most: int, now: float) -> float:
    while failures and failures[0] <= now - WINDOW:
        failures.popleft()
    return failures[-most] + WINDOW - now if len(failures) >= most else 0.0


def _shorten(remembered: OrderedDict[str, Any]) -> None:
    while len(remembered) > REMEMBERED:
        remembered.popitem(last=False)


def _network(address: str) -> str:
    """Whoever has one IPv6 address has a whole /64 of them.

    >>> _network("2001:db8::1") == _network("2001:db8::2"), _network("unix")
    (True, 'unix')
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
    return str(found)
