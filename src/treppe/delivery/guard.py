"""Where we may send: only to public addresses, unless a destination allows a network by name.

A URL that someone else can influence must not reach the machines behind our firewall (SSRF, OWASP A10).
So every address a name resolves to is checked, and the socket opens only for an address that passed:
a name that answers differently a moment later (DNS rebinding) finds the same check again at connect.

The list below does not rely on ``ipaddress.is_global`` alone, whose answer for NAT64, 6to4, ::/96,
fec0::/10 and multicast differs between Python versions. Sources: the IANA special-purpose address registries.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

from yarl import URL

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
LookUp = Callable[[str, int], Awaitable[Sequence[str]]]


class Unsendable(OSError):
    """Nothing was sent and nothing can be until a setting changes; the text names the cure.

    An ``OSError``, because that is what an HTTP client lets through from its resolver and its sockets.
    """


_NAT64: Final = IPv6Network("64:ff9b::/96")

NEVER: Final[tuple[Network, ...]] = tuple(
    ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        *("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32"),
        *("2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    )
)
"""Networks no destination reaches unless it allows them."""

_UNICAST: Final = IPv6Network("2000::/3")  # the only part of IPv6 that is given out
_URL_LIMIT: Final = 8000


def check_address(address: str, allowed: Sequence[Network] = ()) -> None:
    """Raise :class:`Unsendable` unless *address* is public or lies in an *allowed* network.

    IPv4 that is carried inside IPv6 (mapped, NAT64, 6to4, Teredo) must pass too.

    >>> check_address("9.9.9.9")
    >>> check_address("10.0.0.5", [ip_network("10.0.0.0/24")])
    >>> check_address("::ffff:169.254.169.254")
    Traceback (most recent call last):
    treppe.delivery.guard.Unsendable: the address ::ffff:169.254.169.254 is not public and not allowed; ...
    """
    try:
        if _may_reach(ip_address(address), allowed):
            return
    except ValueError:
        raise Unsendable(f'"{address}" is not written like an address; write the usual four numbers') from None
    raise Unsendable(
        f"the address {address} is not public and not allowed; "
        f'if it is meant, add allow_networks = ["{address}"] or its whole network to the destination'
    )


def check_url(text: str, allow_http: bool = False) -> URL:
    """The URL, if it is one we call: https (or http where allowed), no user name, no password, a real port.

    >>> check_url("https://api.example.com/v1?x=%2F").raw_path_qs
    '/v1?x=%2F'
    >>> check_url("http://api.example.com/v1")
    Traceback (most recent call last):
    treppe.delivery.guard.Unsendable: the url is not encrypted; write https://, or set allow_http = true
    """
    if len(text) > _URL_LIMIT or re.search(r"[\x00-\x20\x7f\\]", text):
        raise Unsendable(f"the url is longer than {_URL_LIMIT} characters or holds blanks, which no url does")
    try:
        url = URL(text, encoded=text.isascii())  # exactly as it was written; other alphabets become ASCII
        port = url.port  # read now: it is only looked at when it is asked for
    except ValueError:
        raise Unsendable("the url cannot be read; write it like https://host/path") from None
    if url.scheme not in ("https", "http") or not url.raw_host:
        raise Unsendable("the url names no web server; write it like https://host/path")
    if url.scheme == "http" and not allow_http:
        raise Unsendable("the url is not encrypted; write https://, or set allow_http = true")
    if url.raw_user is not None or url.raw_password is not None:
        raise Unsendable("the url holds a user name or a password; move them to auth = { … }")
    if not port:
        raise Unsendable("the url names port 0, where nothing can listen")
    return url


class Guard:
    """The check for one list of allowed networks, at the two places where addresses appear."""

    def __init__(self, allow_networks: Sequence[str], look_up: LookUp) -> None:
        self._allowed = tuple(_network(text) for text in allow_networks)
        self._look_up = look_up

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """What the name resolves to, if every single answer may be reached; ``OSError`` if there is none."""
        found = await self._look_up(host, port)
        for address in found:
            check_address(address, self._allowed)
        return found

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for this ``getaddrinfo`` row, if its address may be reached. The last word."""
        family, kind, protocol, _, (address, *_) = info
        check_address(address, self._allowed)
        return socket.socket(family, kind, protocol)


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, asked in a thread of its own; ``OSError`` when there are none.

    Not in the loop's shared pool: its few threads would fill up with one name whose server does not answer,
    and then no other name could be asked.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[str]] = loop.create_future()

    def ask() -> None:
        answer = _ask(host, port)
        with contextlib.suppress(RuntimeError):  # the loop may be gone by now
            loop.call_soon_threadsafe(_tell, found, answer)

    threading.Thread(target=ask, name=f"treppe-look-up-{host}", daemon=True).start()
    return await found


def _ask(host: str, port: int) -> Sequence[str] | OSError:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except OSError as error:
        return error
    except UnicodeError:
        return OSError("not a possible name")
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


def _tell(found: asyncio.Future[Sequence[str]], answer: Sequence[str] | OSError) -> None:
    if found.done():
        return
    if isinstance(answer, OSError):
        found.set_exception(answer)
    else:
        found.set_result(answer)


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise Unsendable(f'allow_networks: "{text}" is not a network; write it like 10.0.5.0/24') from None


def _may_reach(address: Address, allowed: Sequence[Network]) -> bool:
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return _may_reach(address.ipv4_mapped, allowed)
    if any(address in network for network in allowed):
        carried = _carried(address)
        return carried is None or _may_reach(carried, allowed)
    public = address.is_global and (address.version == 4 or address in _UNICAST)
    return public and not any(address in network for network in NEVER)


def _carried(address: Address) -> IPv4Address | None:
    """The IPv4 address that a gateway would take out of this IPv6 address."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else None)
