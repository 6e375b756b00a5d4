"""The reconciliation as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from treppe.demo.friday import DESTINATIONS, Friday
from treppe.demo.reconcile import Repeat, Result
from treppe.demo.screen import Paint

SCENARIO = """\
The promotion Friday: {orders:,} orders of {customers:,} customers, each to {destinations}.
  accounting   allows {allowed:,} calls per {window:.0f} s, then is shut for the rest, and for {penalty:.0f} s more
               with each call while it is shut (up to {most_penalty:.0f}); honours no idempotency key
  CRM          well for {healthy:.0f} s, then for {outage:.0f} s it answers 500, hangs, acts without a word, refuses
               connections; upserts by idempotency key
  broken       order {refused} is refused for ever at accounting, order {failing} always fails at stock
"""

SCALED = """\
  scaled       accounting from {usual.allowed} calls per window to {day.allowed:,}, the CRM from {usual.crm_desks} desks
               to {day.crm_desks}, the shop after its burst from {usual.trickle:.0f} orders/s to {day.trickle:.0f}
"""

SETTINGS = """\
  treppe.toml  accounting: rate = "{rate}" ({too_fast:.0%} too fast), repeat = "ask"; CRM: an idempotency header;
               stock: repeat = "safe", attempts = {attempts}, backoff {backoff} s × 2ⁿ; everything else at its defaults
"""

NAIVE = """\
  no queue     the webhook calls all four itself and tries again at once, {tries} times each
"""


def scenario(day: Friday, naive: bool) -> str:
    """What is about to happen, with every setting that is not a default."""
    fields = msgspec.structs.asdict(day)
    customers = len({order.customer for order in day.burst()})
    more = {"refused": day.refused, "failing": day.failing, "customers": customers}
    text = SCENARIO.format(**fields, **more, destinations=", ".join(DESTINATIONS))
    if day.allowed != Friday().allowed:
        text += SCALED.format(usual=Friday(), day=day)
    if naive:
        return text + NAIVE.format(tries=day.naive_tries)
    return text + SETTINGS.format(**{**fields, "rate": day.rate, "too_fast": day.too_fast - 1})


def table(result: Result, paint: Paint) -> str:
    """The promises with their colour, then the figures, then every repeated call that had a reason."""
    return "\n".join((*_promises(result, paint), "", *_figures(result), *_excused(result.excused)))


def _promises(result: Result, paint: Paint) -> Iterator[str]:
    yield paint.bold("The reconciliation, against the ledgers of the others")
    width = max(len(promise.text) for promise in result.promises)
    for promise in result.promises:
        mark = paint.green("kept  ") if promise.kept else paint.red("BROKEN")
        yield f"  {mark}  {promise.text:<{width}}  {promise.detail}"


def _figures(result: Result) -> Iterator[str]:
    figures = result.figures
    yield f"  accepted {figures.accepted:,}: {result.accept_p50_ms} ms at the median, {figures.accept_p99_ms} ms at p99"
    yield "  delivered " + ", ".join(f"{name} {n:,}" for name, n in figures.delivered.items())
    yield f"  lost {figures.lost:,}, doubled {figures.duplicates_at_remote:,}, overtaken {figures.order_violations:,}"
    yield f"  peak: {figures.peak_backlog:,} jobs waiting, the oldest for {figures.peak_age_s} s"
    yield f"  accounting shut {result.holds} time{'s' * (result.holds != 1)}"
    if figures.restart_after_kill_s is not None:
        yield f"  {figures.restart_after_kill_s} s after the kill -9 the last of its jobs was found again"


def _excused(repeats: Iterable[Repeat]) -> Iterator[str]:
    for repeat in repeats:
        yield f"  called again: order {repeat.order} at {repeat.destination}, because {repeat.why}"
