"""Is a human told, and can nobody else get in?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address

from treppe.config import Alert, Settings, Web
from treppe.config.finding import Finding
from treppe.config.rules import address


def findings(settings: Settings) -> Iterator[Finding]:
    """What is to be said about alerts, the board and the web."""
    if not settings.alerts:
        text = "nobody is told when a job dies or becomes unclear"
        yield Finding("hint", "alert", text, 'Add [alert.me] with to = ["mailto:you@example.com"]')
    for alert in settings.alerts.values():
        yield from _alert(f"alert.{alert.name}", alert)
    yield from _web(settings.web)


def _alert(where: str, alert: Alert) -> Iterator[Finding]:
    if not alert.to:
        cure = 'Add to = ["mailto:you@example.com"] or to = ["https://…"]'
        yield Finding("error", f"{where}.to", "this alert reaches nobody", cure)
    for target in alert.to:
        yield from _target(f"{where}.to", target, alert)
    yield from address.networks(f"{where}.allow_networks", alert.allow_networks)
    if "@" in alert.smtp and alert.smtp_password is None:
        yield Finding("error", f"{where}.smtp", "a login needs a password", 'Add smtp_password = "env:NAME"')
    if alert.smtp.startswith("smtp:") and alert.smtp_password is not None:
        text = "the password goes over the wire readable for all on the way"
        yield Finding("warning", f"{where}.smtp", text, 'Use "smtp+starttls://" or "smtps://"')


def _target(where: str, target: str, alert: Alert) -> Iterator[Finding]:
    scheme = target.partition(":")[0].lower()
    if scheme == "mailto":
        if not re.fullmatch(r"mailto:[^\s@,?]+@[^\s@,?]+", target, re.IGNORECASE):
            yield Finding("error", where, f'"{target}" names no mailbox', 'Write "mailto:you@example.com"')
    elif scheme in ("http", "https"):
        yield from address.judge(where, target, alert.allow_http, alert.allow_networks)
        if alert.secret is None:
            cure = 'Add secret = "env:NAME" to sign them'
            yield Finding("hint", where, "the receiver cannot tell whether these alerts come from here", cure)
    else:
        cure = 'Write "mailto:you@example.com" or "https://…"'
        yield Finding("error", where, f"not available in this version: alerts by {scheme}", cure)


def _web(web: Web) -> Iterator[Finding]:
    if not web.users:
        yield Finding("hint", "user", "nobody can log in to the board", 'Add [user.NAME] with password = "env:…"')
    public = address.parts_of(web.public_url or "")
    if web.public_url and public is None:
        cure = 'Write e.g. "https://hooks.example.com"'
        yield Finding("error", "web.public_url", f'"{web.public_url}" is not a web address', cure)
    if not _is_loopback(web.host) and not (public and public.scheme == "https"):
        text = "passwords and webhooks come in readable for all on the way"
        cure = "Put a proxy with https in front and name it in public_url, or listen on 127.0.0.1"
        yield Finding("warning", "web.host", text, cure)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
