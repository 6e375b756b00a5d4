"""The settings as frozen values. ``config.load`` reads them from TOML, ``config.check`` judges them.

Nearest wins: call > task or destination > queue > defaults. Durations are seconds here; people write ``"15m"``.
Secrets are kept as references (``env:NAME``, ``file:/path``) and opened late, so that no ``repr`` shows one.
"""

from __future__ import annotations

from typing import Literal

import msgspec

DAY = 86400.0


class Rate(msgspec.Struct, frozen=True):
    """Never more than ``n`` starts in any window of ``per`` seconds. People write ``"300/15s"``."""

    n: int
    per: float


class Secret(msgspec.Struct, frozen=True):
    """A reference to a secret: ``env:NAME``, ``file:/path`` or, in tests, ``plain:text``.

    :func:`treppe.config.parse.open_secret` reads the value, when it is needed.

    >>> Secret("plain:s3cret")
    Secret(ref='plain:…')
    """

    ref: str

    def __repr__(self) -> str:
        """Never shows a value."""
        return f"Secret(ref={'plain:…' if self.ref.startswith('plain:') else self.ref!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        """Never shows a value either."""
        return [("ref", "plain:…" if self.ref.startswith("plain:") else self.ref)]


class Backoff(msgspec.Struct, frozen=True):
    """Wait ``base`` × ``factor``ⁿ seconds after the n-th failure (from 0), full jitter, never above ``cap``.

    ``jitter=False`` waits exactly that long.
    """

    base: float = 10.0
    factor: float = 3.0
    cap: float = 7200.0
    jitter: bool = True


class Queue(msgspec.Struct, frozen=True):
    """The unit of pace. ``rate`` and ``concurrent`` hold over all workers and machines."""

    name: str
    rate: Rate | None = None
    burst: int = 1
    concurrent: int | None = None


class Verify(msgspec.Struct, frozen=True):
    """How a ``generic`` source signs: HMAC over ``signed`` with the secret, in ``header``."""

    header: str
    algo: Literal["hmac-sha1", "hmac-sha256", "hmac-sha512"] = "hmac-sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: str = ""
    signed: str = "{body}"  # may name {timestamp} and {id}
    timestamp_header: str | None = None
    id_header: str | None = None
    tolerance: float = 300.0


class Source(msgspec.Struct, frozen=True):
    """A door for one sender's webhooks."""

    name: str
    preset: str = "generic"  # shopify | standard-webhooks | generic
    secrets: tuple[Secret, ...] = ()
    verify: Verify | Literal["none"] | None = None  # None = as the preset says
    id: tuple[str, ...] = ()  # where a generic sender's event id is: header:X-Id, body:id, body-hash
    send_to: tuple[str, ...] = ()
    key: str | None = None  # order key: body:customer.id, header:X-Customer
    only: tuple[str, ...] = ()  # topics; empty = all
    where: str | None = None  # a JMESPath-like test of the body; see door
    max_body: int | None = None  # bytes; None = as the preset says
    keep: float = 30 * DAY


class Auth(msgspec.Struct, frozen=True):
    """How we log in at a destination."""

    kind: Literal["none", "bearer", "basic", "header"] = "none"
    token: Secret | None = None  # bearer
    user: str = ""  # basic
    password: Secret | None = None  # basic
    name: str = ""  # header
    value: Secret | None = None  # header


class Probe(msgspec.Struct, frozen=True):
    """A harmless GET that tells whether a held destination answers again."""

    get: str


class Destination(msgspec.Struct, frozen=True):
    """An HTTP target; its handler is built in."""

    name: str
    url: str
    queue: str = ""  # "" = one of its own name
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    auth: Auth = Auth()
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 30.0  # for the whole exchange
    idempotency: str | None = None  # the header the API documents; None = it honours none
    repeat: Literal["safe", "ask"] | None = None  # None = safe with an idempotency header, else ask
    probe: Probe | None = None
    not_acted: tuple[int, ...] = (503,)  # failure codes that say: nothing happened
    attempts: int = 5
    crashes: int = 3
    backoff: Backoff = Backoff()
    deadline: float | None = None
    expires: float = 14 * DAY
    skip_dead: bool = False  # people write on_dead = "skip"
    allow_networks: tuple[str, ...] = ()  # e.g. 127.0.0.0/8 for a target on the same machine
    allow_http: bool = False  # https only by default

    @property
    def pace_queue(self) -> str:
        """The queue its jobs go to."""
        return self.queue or self.name

    @property
    def task(self) -> str:
        """The task name of its jobs; the colon keeps it apart from Python tasks.

        >>> Destination("crm", "https://crm.example/in").task
        'destination:crm'
        """
        return f"destination:{self.name}"


class Alert(msgspec.Struct, frozen=True):
    """Whom to tell what. ``mailto:`` goes by SMTP, ``https:`` as a signed webhook."""

    name: str
    to: tuple[str, ...]
    when: tuple[Literal["dead", "unclear", "late", "held"], ...] = ("dead", "unclear", "late", "held")
    secret: Secret | None = None  # signs webhooks by Standard Webhooks
    smtp: str = "smtp://localhost:25"  # smtp:// | smtps:// | smtp+starttls:// user@host:port
    smtp_password: Secret | None = None
    sender: str = "treppe@localhost"
    allow_networks: tuple[str, ...] = ()
    allow_http: bool = False
    held_after: float = 300.0  # seconds a queue must be held before it is told: a minute of throttling is daily life
    digest: float = 3600.0  # the first at once, then one digest per so many seconds


class User(msgspec.Struct, frozen=True):
    """Somebody who may log in to the board."""

    name: str
    password: Secret
    role: Literal["viewer", "operator", "admin"] = "operator"


class Web(msgspec.Struct, frozen=True):
    """Where ``treppe up`` listens, and who may do what there."""

    host: str = "127.0.0.1"
    port: int = 8080
    public_url: str | None = None
    users: tuple[User, ...] = ()
    drain_secrets: tuple[Secret, ...] = ()
    max_connections: int = 500
    max_connections_per_ip: int = 100
    header_timeout: float = 10.0  # for all headers together
    body_timeout: float = 30.0  # for the whole body


class Settings(msgspec.Struct, frozen=True):
    """All of ``treppe.toml``."""

    store: str = "sqlite:///treppe.db"
    app: str | None = None  # "module:variable" of a Treppe app with Python tasks
    language: Literal["en", "de"] = "en"
    keep: float = 30 * DAY
    queues: dict[str, Queue] = {}
    sources: dict[str, Source] = {}
    destinations: dict[str, Destination] = {}
    alerts: dict[str, Alert] = {}
    web: Web = Web()
