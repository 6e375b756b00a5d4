"""Does every door check who knocks, and lead somewhere?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from treppe.config import DAY, Settings, Source, Verify
from treppe.config.finding import Finding
from treppe.config.parse import say_duration

HORIZON: Final = {
    "shopify": 4 * 3600.0,  # shopify.dev: 8 times within 4 hours
    "standard-webhooks": 76 * 3600.0,  # the schedule the specification recommends ends after 75 h 35 min
    "generic": 3 * DAY,  # most senders give up by then (Stripe: 3 days)
}
"""For how long a sender may repeat a webhook, in seconds."""


def findings(settings: Settings) -> Iterator[Finding]:
    """What is to be said about each source."""
    for source in settings.sources.values():
        where = f"source.{source.name}"
        yield from _verification(where, source)
        if not source.send_to:
            yield Finding(
                "warning", f"{where}.send_to", "what comes in here is kept, and sent nowhere", 'Add send_to = ["…"]'
            )
        if not _knows_repeats(source):
            text = "nothing says what makes an event the same one, so a repeat is carried out again"
            yield Finding("warning", f"{where}.id", text, 'Add id = ["header:X-Event-Id"], "body:…" or "body-hash"')
        if source.keep < HORIZON[source.preset]:
            text = (
                f"the sender may repeat a webhook for {say_duration(HORIZON[source.preset])}, and ids are kept for less"
            )
            yield Finding("warning", f"{where}.keep", text, "Choose a longer keep, or the repeat is carried out again")


def _knows_repeats(source: Source) -> bool:
    by_header = isinstance(source.verify, Verify) and source.verify.id_header is not None
    return bool(source.id) or by_header or source.preset != "generic"


def _verification(where: str, source: Source) -> Iterator[Finding]:
    if source.verify == "none":
        yield Finding("warning", f"{where}.verify", "anybody who knows the address can send here", "Verify a signature")
        return
    if source.verify is None and source.preset == "generic":
        cure = 'Add verify = { header = "X-Signature" }, or verify = "none" if it cannot sign'
        yield Finding("error", f"{where}.verify", "nothing says how this sender signs", cure)
    if not source.secrets:
        yield Finding(
            "error", f"{where}.secret", "no signature can be checked without a secret", 'Add secret = "env:NAME"'
        )
    if isinstance(source.verify, Verify):
        yield from _signed_parts(f"{where}.verify", source.verify)


def _signed_parts(where: str, verify: Verify) -> Iterator[Finding]:
    signed = set(re.findall(r"\{(\w+)\}", verify.signed))
    for part in sorted(signed - {"body", "timestamp", "id"}):
        yield Finding("error", where, f"signed names {{{part}}}", "Known are {body}, {timestamp} and {id}")
    for part, header in (("timestamp", verify.timestamp_header), ("id", verify.id_header)):
        if part in signed and header is None:
            cure = f'Add {part}_header = "…"'
            yield Finding("error", where, f"{{{part}}} is signed, but nothing says which header holds it", cure)
    if verify.timestamp_header and "timestamp" not in signed:
        cure = 'Name it, as in signed = "{timestamp}.{body}", or leave timestamp_header out'
        yield Finding("error", where, "the timestamp is not signed, so anybody can change it", cure)
