"""Do the destinations get what they need, and do their limits fit together?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from treppe.config import Destination, Settings
from treppe.config.finding import Finding
from treppe.config.parse import say_duration, say_rate
from treppe.config.rules import address

DRAIN_BUDGET: Final = 50.0
"""Seconds that a scheduler usually gives a drain."""


def findings(settings: Settings) -> Iterator[Finding]:
    """What is to be said about destinations and their queues."""
    for destination in settings.destinations.values():
        where = f"destination.{destination.name}"
        yield from address.judge(f"{where}.url", destination.url, destination.allow_http, destination.allow_networks)
        yield from address.networks(f"{where}.allow_networks", destination.allow_networks)
        if destination.probe:
            probe = destination.probe.get
            yield from address.judge(f"{where}.probe", probe, destination.allow_http, destination.allow_networks)
        yield from _repeats(where, destination)
        yield from _times(where, destination, bool(settings.web.drain_secrets))
    yield from _unused(settings)
    yield from _bursts(settings)
    yield from _shared_hosts(settings)


def _repeats(where: str, destination: Destination) -> Iterator[Finding]:
    if destination.idempotency is None and destination.repeat is None:
        text = "after a time-out nobody knows whether it acted: such jobs become unclear, and a human decides"
        cure = "If the API documents a header for repeats, name it: idempotency = { header = … }"
        yield Finding("hint", f"{where}.repeat", text, cure)
    if destination.idempotency is None and destination.repeat == "safe" and destination.method == "POST":
        text = "a POST may be sent twice after a time-out"
        yield Finding(
            "hint", f"{where}.repeat", text, 'That is right if the API merges repeats by itself; else use "ask"'
        )


def _times(where: str, destination: Destination, drained: bool) -> Iterator[Finding]:
    timeout, deadline, expires = destination.timeout, destination.deadline, destination.expires
    if drained and timeout > DRAIN_BUDGET:
        text = f"a drain of {say_duration(DRAIN_BUDGET)} never starts a call that may take {say_duration(timeout)}"
        yield Finding("hint", f"{where}.timeout", text, "Shorten it, or give the drain a larger budget")
    if timeout >= expires:
        yield Finding(
            "error", f"{where}.expires", "one slow call takes longer than this", "Choose more than the timeout"
        )
    if deadline is not None and deadline <= timeout:
        yield Finding(
            "warning", f"{where}.deadline", "one slow call breaks this promise", "Choose more than the timeout"
        )
    if deadline is not None and deadline >= expires:
        yield Finding(
            "warning", f"{where}.deadline", "jobs are given up before they can be late", "Choose less than expires"
        )
    longest = _longest_wait(destination)
    if longest > expires:
        text = f"the waits between {destination.attempts} attempts add up to as much as {say_duration(longest)}"
        yield Finding("warning", f"{where}.expires", text, "Choose more, or fewer attempts")


def _longest_wait(destination: Destination) -> float:
    backoff, total, wait = destination.backoff, 0.0, destination.backoff.base
    for _ in range(destination.attempts - 1):
        total += min(wait, backoff.cap)
        wait = min(wait * backoff.factor, backoff.cap)
    return total


def _unused(settings: Settings) -> Iterator[Finding]:
    """Python tasks may use what no source does, so nothing is said where there is an app."""
    if settings.app is not None:
        return
    wanted = {name for source in settings.sources.values() for name in source.send_to}
    for name in settings.destinations.keys() - wanted:
        cure = f'Add "{name}" to the send_to of a source'
        yield Finding("warning", f"destination.{name}", "no source sends here", cure)
    used = {destination.pace_queue for destination in settings.destinations.values()}
    for name in settings.queues.keys() - used:
        if not name.endswith("*"):
            yield Finding(
                "warning", f"queue.{name}", "no destination uses it", f'Add queue = "{name}" to a destination'
            )


def _bursts(settings: Settings) -> Iterator[Finding]:
    for queue in settings.queues.values():
        if queue.rate and queue.burst > 1:
            lasting = queue.rate.n - queue.burst + 1
            text = (
                f"bursts of {queue.burst} leave a lasting pace of {lasting} per {say_duration(queue.rate.per)}, "
                f"so that {say_rate(queue.rate)} is never exceeded"
            )
            yield Finding("hint", f"queue.{queue.name}.burst", text)


def _shared_hosts(settings: Settings) -> Iterator[Finding]:
    hosts: dict[str, set[str]] = defaultdict(set)
    for destination in settings.destinations.values():
        if parts := address.parts_of(destination.url):
            hosts[parts.netloc.lower()].add(destination.pace_queue)
    for host, queues in hosts.items():
        if len(queues) > 1 and queues & settings.queues.keys():
            names = ", ".join(sorted(queues))
            text = f"{host} is called from several queues ({names}), each with a pace of its own"
            yield Finding(
                "hint", "destination", text, "If its limit holds for all calls together, let them share one queue"
            )
