"""What is known of each sender, as data: how it signs, what makes an event the same, and what it does when unhappy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from treppe.config.rules.sources import HORIZON
from treppe.door import signature


class Preset(msgspec.Struct, frozen=True):
    """One kind of sender. Paths are those of ``treppe.door.fields``."""

    name: str
    verifier: Callable[[Sequence[bytes], str], signature.Verifier] | None  # None = the source says how
    ids: tuple[tuple[str, ...], ...]  # what makes two deliveries one event: the first list that is complete
    topic: str | None
    horizon: float  # seconds after which the sender has given up repeating
    patience: str  # for people
    penalty: str  # for people
    answer: int = 202
    max_body: int = 5 << 20


PRESETS: Final = {
    preset.name: preset
    for preset in (
        # shopify.dev, "Ignore duplicates": X-Shopify-Event-Id names the event; several subscriptions to it come with
        # the same one, so topic and shop belong to it. X-Shopify-Webhook-Id is per delivery and stable over retries.
        Preset(
            "shopify",
            signature.shopify,
            ids=(
                ("header:X-Shopify-Event-Id", "header:X-Shopify-Topic", "header:X-Shopify-Shop-Domain"),
                ("header:X-Shopify-Webhook-Id", "header:X-Shopify-Topic", "header:X-Shopify-Shop-Domain"),
            ),
            topic="header:X-Shopify-Topic",
            horizon=HORIZON["shopify"],
            patience="waits 1 s for the connection and 5 s for the answer",
            penalty="repeats 8 times in 4 hours; then deletes the subscription if the Admin API made it",
        ),
        # Standard Webhooks 1.0.0: the id stays the same over retries, the timestamp does not.
        Preset(
            "standard-webhooks",
            signature.standard_webhooks,
            ids=(("header:webhook-id",), ("header:svix-id",)),
            topic="body:type",
            horizon=HORIZON["standard-webhooks"],
            patience="waits 15 to 30 s for the answer",
            penalty="repeats for some days; after days of nothing but failures it may switch the endpoint off",
        ),
        Preset(
            "generic",
            None,
            ids=(),
            topic=None,
            horizon=HORIZON["generic"],
            patience="is not known",
            penalty="is not known: look into the sender's documentation",
        ),
    )
}
