"""What ``treppe.toml`` may hold, as data: every table, key, bound, and what is only in versions to come."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from treppe.config import (
    Alert,
    Auth,
    Backoff,
    Destination,
    Probe,
    Queue,
    Secret,
    Settings,
    Source,
    User,
    Verify,
    Web,
    parse,
)
from treppe.config.convert import HEADER_NAME, duration, flag, headers, list_of, number, one_of, text, whole
from treppe.config.shape import Convert, Named, Shape
from treppe.errors import ConfigError

DAY: Final = 86400.0


def grammar(folder: Path) -> Shape:
    """The whole file; relative paths in it start at *folder*."""
    secret = partial(parse.secret, folder=folder)
    return Shape(
        _settings,
        {
            "store": partial(_store, folder=folder),
            "app": text(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", 'Write "module:variable", e.g. "shop.tasks:app"'),
            "language": one_of("en", "de"),
            "keep": duration(3600, 3660 * DAY),
            "queue": Named(_QUEUE, r"[a-z0-9][a-z0-9_.:/-]{0,126}[a-z0-9_.:/*-]?", _QUEUE_NAMES),
            "source": Named(_source(secret), _NAME, _NAMES),
            "destination": Named(_destination(secret), _NAME, _NAMES),
            "alert": Named(_alert(secret), _NAME, _NAMES),
            "user": Named(_user(secret), _USER_NAME, "Use up to 64 letters, digits and . _ @ -"),
            "web": _web(secret),
        },
        fields={"queue": "queues", "source": "sources", "destination": "destinations", "alert": "alerts"},
        later=("schedule", "relay", "spool", "template", "sqs", "metrics", "otel", "four_eyes", "redact"),
    )


_NAME: Final = r"[a-z0-9][a-z0-9_.-]{0,63}"
_NAMES: Final = "Use up to 64 small letters, digits and . _ -"
_QUEUE_NAMES: Final = "Use up to 128 small letters, digits and . _ : / -"
_USER_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}"
_STEP: Final = r"[^\s.\[\]]+"
_INDEX: Final = r"\[[0-9]{1,6}\]"
_PATH: Final = f"body:(?:{_STEP}|{_INDEX})(?:\\.{_STEP}|{_INDEX})*|header:{HEADER_NAME}"


def _store(value: Any, folder: Path) -> str:
    if not isinstance(value, str):
        raise ConfigError("", f"{parse.shown(value)} names no store", 'Write "sqlite:///treppe.db"')
    if value.startswith(("env:", "file:")):  # a URL with a password
        value = parse.open_secret(parse.secret(value, folder)).decode(errors="replace").strip()
    file = parse.store_file(value)
    return value if file is None else f"sqlite:///{folder / file}"


_url: Final = text(r"[^\s\x00-\x1f\x7f]+", 'Write an address without spaces, e.g. "https://api.example.com/orders"')
_network: Final = text(r"[0-9A-Fa-f:./]{2,64}", 'Write networks, e.g. "127.0.0.0/8" or "10.1.0.0/16"')
_line: Final = text(r"[^\x00-\x1f\x7f]+", "Write a text of one line", 512)
_header_name: Final = text(HEADER_NAME, 'Write the name of a header, e.g. "Idempotency-Key"')
_name: Final = text(_NAME, _NAMES)
_path: Final = text(_PATH, 'Write "body:customer.id" or "header:X-Customer"')
_paths: Final = list_of(text(_PATH + "|body-hash", 'Write "header:X-Event-Id", "body:id" or "body-hash"'), 20)
_networks: Final = list_of(_network)
_when: Final = list_of(one_of("dead", "unclear", "late", "held", later=("silent", "quarantine", "blocked", "backlog")))


def _settings(user: dict[str, User] | None = None, web: Web | None = None, **fields: Any) -> Settings:
    listening = {name: getattr(web, name) for name in Web.__struct_fields__} if web else {}
    return Settings(web=Web(**listening | {"users": tuple((user or {}).values())}), **fields)


def _queue(name: str, **fields: Any) -> Queue:
    queue = Queue(name, **fields)
    if queue.burst > (queue.rate.n if queue.rate else 1):
        raise ConfigError("burst", "more than the rate allows", "Choose at most the rate's number of calls")
    return queue


_QUEUE: Final = Shape(
    _queue,
    {"rate": parse.rate, "burst": whole(1, 1_000_000), "concurrent": whole(1, 10_000)},
    later=("per_day", "lease", "max_claims", "order"),
)


def _source(secret: Callable[[Any], Secret]) -> Shape:
    verify = Shape(
        Verify,
        {
            "header": _header_name,
            "algo": one_of("hmac-sha1", "hmac-sha256", "hmac-sha512"),
            "encoding": one_of("hex", "base64"),
            "prefix": text(r"[\x20-\x7e]{0,64}", "Use up to 64 printable ASCII characters"),
            "signed": text(r"(?s).*\{body\}.*", "It must name {body}, and may name {timestamp} and {id}", 256),
            "timestamp_header": _header_name,
            "id_header": _header_name,
            "tolerance": duration(1, DAY),
        },
        required=("header",),
        words={"none": "none"},
    )
    return Shape(
        Source,
        {
            "preset": one_of("generic", "shopify", "standard-webhooks", later=_PRESETS_TO_COME),
            "secret": list_of(secret, 10),
            "verify": verify,
            "id": _paths,
            "send_to": list_of(_name),
            "key": _path,
            "only": list_of(_line),
            "where": _line,
            "max_body": partial(parse.size, least=1024, most=100 << 20),
            "keep": duration(3600, 3660 * DAY),
        },
        fields={"secret": "secrets"},
        later=("search", "split", "spool", "sqs", "silent", "quarantine", "dedupe", "template"),
    )


_PRESETS_TO_COME: Final = (
    "github",
    "hubspot",
    "lexware",
    "mollie",
    "mollie-classic",
    "paypal",
    "pipedrive",
    "stripe",
    "woocommerce",
)


def _destination(secret: Callable[[Any], Secret]) -> Shape:
    return Shape(
        Destination,
        {
            "url": _url,
            "queue": text(r"[a-z0-9][a-z0-9_.:/-]{0,127}", _QUEUE_NAMES),
            "method": one_of("POST", "PUT", "PATCH"),
            "auth": _auth(secret),
            "headers": headers,
            "timeout": duration(0.1, 3600),
            "idempotency": _IDEMPOTENCY,
            "repeat": one_of("safe", "ask", later=("look",)),
            "probe": Shape(Probe, {"get": _url}, required=("get",)),
            "not_acted": list_of(whole(400, 599)),
            "attempts": whole(1, 1000),
            "crashes": whole(1, 100),
            "backoff": _BACKOFF,
            "deadline": duration(1, 366 * DAY),
            "expires": duration(1, 366 * DAY),
            "on_dead": lambda value: one_of("block", "skip")(value) == "skip",
            "allow_networks": _networks,
            "allow_http": flag,
        },
        fields={"on_dead": "skip_dead"},
        required=("url",),
        later=("look", "success", "confirm_within", "pull", "lease", "preset", "body", "template", "proxy", "sqs"),
    )


_IDEMPOTENCY: Final = Shape(lambda header: header, {"header": _header_name}, required=("header",), words={"none": None})
_BACKOFF: Final = Shape(
    Backoff,
    {"base": duration(0.001, DAY), "factor": number(1.0, 10.0), "cap": duration(0.001, 7 * DAY), "jitter": flag},
)
_LOGIN: Final = {"none": (), "bearer": ("token",), "basic": ("user", "password"), "header": ("name", "value")}


def _auth(secret: Convert) -> Shape:
    kinds = one_of(*_LOGIN, later=("oauth2", "oauth2-client", "mtls", "hmac"))
    keys = {"kind": kinds, "token": secret, "user": _line, "password": secret, "name": _header_name, "value": secret}
    return Shape(_login, keys, required=("kind",))


def _login(kind: Literal["none", "bearer", "basic", "header"], **fields: Any) -> Auth:
    for key in _LOGIN[kind]:
        if key not in fields:
            raise ConfigError(key, f'this is missing: kind = "{kind}" needs it', f"Write {' and '.join(_LOGIN[kind])}")
    for key in fields:
        if key not in _LOGIN[kind]:
            raise ConfigError(key, f'kind = "{kind}" has no use for it', "Take it out, or choose another kind")
    return Auth(kind, **fields)


def _alert(secret: Convert) -> Shape:
    return Shape(
        lambda name, to=(), **fields: Alert(name, to, **fields),
        {
            "to": list_of(_url, 20),
            "when": _when,
            "secret": secret,
            "smtp": text(_SMTP, 'Write "smtp://host:25", "smtps://user@host:465" or "smtp+starttls://user@host:587"'),
            "smtp_password": secret,
            "sender": text(r"[^\s@<>]+@[^\s@<>]+", 'Write an address, e.g. "treppe@example.com"', 254),
            "allow_networks": _networks,
            "allow_http": flag,
            "held_after": duration(0, 7 * DAY),
            "digest": duration(1, 7 * DAY),
        },
        later=("email", "slack", "text", "over", "quiet"),
    )


_SMTP: Final = (
    r"smtp(?:s|\+starttls)?://(?:[^\s:@/]+(?:@[^\s:@/]+)?@)?(?:[A-Za-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?"
)


def _user(secret: Convert) -> Shape:
    return Shape(User, {"password": secret, "role": one_of("viewer", "operator", "admin")}, required=("password",))


def _web(secret: Convert) -> Shape:
    return Shape(
        Web,
        {
            "host": text(r"[A-Za-z0-9.:-]{1,253}", 'Write "127.0.0.1" for this machine only, "0.0.0.0" for all'),
            "port": whole(0, 65535),
            "public_url": _url,
            "drain_secret": list_of(secret, 10),
            "max_connections": whole(1, 100_000),
            "max_connections_per_ip": whole(1, 100_000),
            "header_timeout": duration(0.1, 300),
            "body_timeout": duration(0.1, 600),
        },
        fields={"drain_secret": "drain_secrets"},
        later=("drain_get", "tls", "unix", "base_path", "tokens"),
    )
