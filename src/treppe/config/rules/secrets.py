"""Can every secret be opened, and is it fit for its use? No value ever gets into a finding."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import Final

from treppe.config import Secret, Settings
from treppe.config.finding import Finding
from treppe.config.parse import open_secret
from treppe.errors import ConfigError

LEAST_DRAIN: Final = 16
LEAST_PASSWORD: Final = 8


def findings(settings: Settings) -> Iterator[Finding]:
    """Every secret of the settings, opened once."""
    for where, secret, use in _secrets(settings):
        if secret.ref.startswith("plain:"):
            cure = 'Write "env:NAME" or "file:/path", and keep the value out of the file'
            yield Finding("warning", where, "the secret itself stands in the settings", cure)
        try:
            value = open_secret(secret)
        except ConfigError as error:
            yield Finding("error", where, f"{error.where}: {error.problem}", error.cure)
        else:
            yield from _fitness(where, value, use)


def _secrets(settings: Settings) -> Iterator[tuple[str, Secret, str]]:
    """The place of each secret, and what it is for."""
    for source in settings.sources.values():
        yield from ((f"source.{source.name}.secret", secret, source.preset) for secret in source.secrets)
    for place, secret, use in _single(settings):
        if secret is not None:
            yield place, secret, use
    yield from (("web.drain_secret", secret, "drain") for secret in settings.web.drain_secrets)


def _single(settings: Settings) -> Iterator[tuple[str, Secret | None, str]]:
    for destination in settings.destinations.values():
        where, auth = f"destination.{destination.name}.auth", destination.auth
        yield f"{where}.token", auth.token, "header"
        yield f"{where}.password", auth.password, "login"
        yield f"{where}.value", auth.value, "header"
    for alert in settings.alerts.values():
        yield f"alert.{alert.name}.secret", alert.secret, "alert"
        yield f"alert.{alert.name}.smtp_password", alert.smtp_password, "login"
    for user in settings.web.users:
        yield f"user.{user.name}.password", user.password, "password"


def _fitness(where: str, value: bytes, use: str) -> Iterator[Finding]:
    standard = use == "standard-webhooks" or (use == "alert" and value.startswith(b"whsec_"))
    if standard and not _is_standard(value):
        cure = "Copy it as the sender shows it: whsec_ and letters, digits, +, / and ="
        yield Finding("error", where, "a Standard Webhooks secret is base64, and this is not", cure)
    if use in ("header", "drain") and not (value.isascii() and value.decode("ascii", "replace").isprintable()):
        yield Finding(
            "error", where, "this cannot be sent in a header", "Use printable ASCII characters only, in one line"
        )
    if use == "drain" and len(value) < LEAST_DRAIN:
        cure = 'Make a new one: python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        yield Finding("error", where, f"shorter than {LEAST_DRAIN} characters, so it can be guessed", cure)
    if use == "password" and len(value) < LEAST_PASSWORD:
        cure = f"Choose one of at least {LEAST_PASSWORD} characters"
        yield Finding("error", where, "this password is too short", cure)


def _is_standard(value: bytes) -> bool:
    """16 to 256 bytes in base64; the specification asks for 24 to 64."""
    try:
        return 16 <= len(binascii.a2b_base64(value.removeprefix(b"whsec_"), strict_mode=True)) <= 256
    except binascii.Error:
        return False
