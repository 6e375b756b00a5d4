"""May we call this address at all? The connection itself is judged again, by the resolved address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from treppe.config.finding import Finding
from treppe.config.parse import without_password

Network = IPv4Network | IPv6Network


def judge(where: str, url: str, allow_http: bool, allowed: Sequence[str]) -> Iterator[Finding]:
    """A URL we call: well-formed, https unless allowed otherwise, and no private address by accident."""
    parts = parts_of(url)
    if parts is None:
        cure = 'Write a whole one, e.g. "https://api.example.com/orders"'
        yield Finding("error", where, f'"{without_password(url)}" is not a web address', cure)
        return
    if parts.scheme == "http" and not allow_http:
        cure = "Use https, or add allow_http = true if everything between is yours"
        yield Finding("error", where, "http sends everything readable for all on the way", cure)
    if parts.username is not None:
        yield Finding("error", where, "a login does not belong into the address", 'Write auth = { kind = "basic", … }')
    yield from _of_host(where, parts.hostname or "", allowed)


def parts_of(url: str) -> SplitResult | None:
    """A web address in parts, or None where it is none: no http or https, no host, an impossible port.

    >>> parts_of("https://api.example.com:8443/x").netloc, parts_of("https://[::1"), parts_of("https://a:99999")
    ('api.example.com:8443', None, None)
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if fine else None


def networks(where: str, texts: Sequence[str]) -> Iterator[Finding]:
    """The networks that are allowed on top: readable, and no more than meant."""
    for text in texts:
        network = _network(text)
        if network is None:
            cure = 'Write e.g. "127.0.0.0/8", or "10.1.2.3/32" for one address'
            yield Finding("error", where, f'"{text}" is not a network', cure)
        elif network.prefixlen == 0:
            yield Finding(
                "warning", where, f"{text} allows every address, also those inside", "Name only what is needed"
            )


def _of_host(where: str, host: str, allowed: Sequence[str]) -> Iterator[Finding]:
    local = host == "localhost" or host.endswith(".localhost")
    try:
        address = ip_address("127.0.0.1" if local else host)
    except ValueError:
        return
    inside = any(address in network for network in map(_network, allowed) if network)
    if (not address.is_global or address.is_multicast) and not inside:
        example = (
            "127.0.0.0/8" if address.is_loopback and address.version == 4 else f"{address}/{address.max_prefixlen}"
        )
        cure = f'If that is meant, add allow_networks = ["{example}"]'
        yield Finding("error", where, f"{host} is an address inside, where we send nothing by default", cure)


def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None
