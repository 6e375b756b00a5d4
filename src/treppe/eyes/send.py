"""The channels: ``mailto:`` goes by SMTP, ``https:`` as a signed webhook."""

from __future__ import annotations

import time

from treppe.config import Alert
from treppe.config.parse import open_secret
from treppe.errors import ConfigError
from treppe.eyes.episode import Message
from treppe.eyes.smtp import mail
from treppe.eyes.webhook import post


def send(alert: Alert, to: str, message: Message) -> None:
    """Deliver *message* to one address of *alert*, or raise what went wrong. Takes half a minute at most."""
    scheme, _, rest = to.partition(":")
    if scheme == "mailto":
        password = "" if alert.smtp_password is None else open_secret(alert.smtp_password).decode()
        mail(alert.smtp, alert.sender, rest.removeprefix("//"), message, password=password)
    elif scheme in ("http", "https"):
        post(alert, to, message, time.time())
    else:
        raise ConfigError(f"alert.{alert.name}.to", f"alerts cannot go by {scheme}", "Use mailto: or https:")
