"""Where we may send: each way into somebody's own network that has worked against somebody."""

import asyncio
import socket
import threading
from ipaddress import ip_network

import pytest

from tests.delivery.support import resolver
from treppe.delivery import guard
from treppe.delivery.guard import Guard, Unsendable, check_address, check_url, look_up

NOT_PUBLIC = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.5", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254"),
    *("172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1"),
    *("198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::127.0.0.1", "::169.254.169.254", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:10.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1"),
    *("2001:0:a00:1::1", "2001:2::1", "2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "3fff::1"),
    *("5f00::1", "4000::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1"),
]
PUBLIC = ["9.9.9.9", "8.8.8.8", "172.32.0.1", "100.128.0.1", "::ffff:9.9.9.9", "2620:fe::fe", "2a00:1450:4001::1"]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address):
    with pytest.raises(Unsendable, match="is not public and not allowed"):
        check_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_reached(address):
    check_address(address)


@pytest.mark.parametrize(
    "address", ["", "localhost", "127.1", "0177.0.0.1", "0x7f.1", "2130706433", "1.2.3.4.5", "::g"]
)
def test_what_is_not_written_like_an_address_is_refused(address):
    with pytest.raises(Unsendable, match="not written like an address"):
        check_address(address)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.5.9", "10.0.5.0/24"),
        ("::ffff:10.0.5.9", "10.0.5.0/24"),
        ("127.0.0.1", "127.0.0.0/8"),
        ("::1", "::1/128"),
        ("fd12::1", "fd12::/64"),
        ("64:ff9b::8.8.8.8", "64:ff9b::/96"),
    ],
)
def test_an_allowed_network_may_be_reached(address, network):
    check_address(address, [ip_network(network)])


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.6.1", "10.0.5.0/24"),
        ("::1", "127.0.0.0/8"),
        ("64:ff9b::10.0.0.1", "64:ff9b::/96"),
        ("2002:7f00:1::", "2002::/16"),
        ("2001:0:808:808:0:0:80ff:fffe", "2001::/32"),
    ],
)
def test_an_allowed_network_opens_nothing_beside_it_and_nothing_behind_a_gateway(address, network):
    with pytest.raises(Unsendable):
        check_address(address, [ip_network(network)])


def test_a_refused_address_comes_with_its_cure():
    with pytest.raises(Unsendable, match=r'the address 10\.0\.0\.5 is not .* add allow_networks = \["10\.0\.0\.5"\]'):
        check_address("10.0.0.5")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://crm.example/", "not encrypted"),
        ("ftp://crm.example/", "no web server"),
        ("file:///etc/passwd", "no web server"),
        ("//crm.example/", "no web server"),
        ("https:///path", "no web server"),
        ("crm.example", "no web server"),
        ("", "no web server"),
        ("https://me@crm.example/", "user name or a password"),
        ("https://me:s3cret@crm.example/", "user name or a password"),
        ("https://:s3cret@crm.example/", "user name or a password"),
        ("https://crm.example:0/", "port 0"),
        ("https://crm.example:99999/", "cannot be read"),
        ("https://[::1/", "cannot be read"),
        ("https://crm.example\\@evil.example/", "blanks"),
        ("https://crm.example/a b", "blanks"),
        ("https://crm.example/\r\nX-Evil: 1", "blanks"),
        ("https://crm.example/" + "x" * 8000, "longer"),
        ("https://" + "ü" * 64 + ".example/", "cannot be read"),
    ],
)
def test_a_url_we_do_not_call_is_refused_without_showing_it(url, problem):
    with pytest.raises(Unsendable, match=problem) as refused:
        check_url(url)
    assert "s3cret" not in str(refused.value)


def test_http_is_called_only_where_it_is_allowed():
    assert check_url("http://crm.example/in", allow_http=True).scheme == "http"


def test_a_url_goes_out_exactly_as_it_is_written():
    assert check_url("https://crm.example/a%2Fb?sig=%2Bx%2f&y=a+b").raw_path_qs == "/a%2Fb?sig=%2Bx%2f&y=a+b"


def test_a_host_in_another_alphabet_becomes_ascii():
    assert check_url("https://bücher.example/ü").raw_host == "xn--bcher-kva.example"


def test_digits_in_another_alphabet_become_the_address_they_look_like():
    assert check_url("https://１２７.0.0.1/").raw_host == "127.0.0.1"


def test_every_resolved_address_must_pass():
    found, _ = resolver(["9.9.9.9", "10.0.0.5"])
    with pytest.raises(Unsendable, match=r"10\.0\.0\.5"):
        asyncio.run(Guard((), found).addresses("crm.example", 443))


def test_a_socket_opens_only_for_an_address_that_passes():
    allowing = Guard(("127.0.0.1/32",), look_up)
    allowing.open_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80))).close()
    with pytest.raises(Unsendable):
        allowing.open_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2", 80)))
    with pytest.raises(Unsendable):
        allowing.open_socket((socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 80, 0, 0)))


def test_a_network_that_is_none_is_told():
    with pytest.raises(Unsendable, match='"office" is not a network'):
        Guard(("office",), look_up)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "localhost"])
def test_every_spelling_of_loopback_resolves_and_is_refused(host):
    with pytest.raises(Unsendable, match="is not public"):
        asyncio.run(Guard((), look_up).addresses(host, 80))


@pytest.mark.parametrize("host", ["no-such-name.invalid", "x" * 64 + ".example", "a..b"])
def test_a_name_without_an_address_is_an_os_error(host):
    with pytest.raises(OSError):  # noqa: PT011 (its text is the system's)
        asyncio.run(look_up(host, 80))


def test_a_name_whose_server_does_not_answer_holds_up_no_other(monkeypatch):
    free = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("9.9.9.9", 80))]
    gate = threading.Event()

    def getaddrinfo(host, *_, **__):
        if host == "stuck.example":
            gate.wait(10)
        return free

    monkeypatch.setattr(guard.socket, "getaddrinfo", getaddrinfo)

    async def ask():
        waiting = [asyncio.create_task(look_up("stuck.example", 80)) for _ in range(50)]
        try:
            return await asyncio.wait_for(look_up("free.example", 80), 5)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    try:
        assert asyncio.run(ask()) == ["9.9.9.9"]
    finally:
        gate.set()


def test_an_answer_that_comes_after_the_loop_is_gone_is_dropped(monkeypatch):
    gate, ended = threading.Event(), threading.Event()

    def getaddrinfo(*_, **__):
        gate.wait(10)
        ended.set()
        return []

    monkeypatch.setattr(guard.socket, "getaddrinfo", getaddrinfo)

    async def ask():
        await asyncio.wait_for(look_up("stuck.example", 80), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(ask())
    gate.set()
    assert ended.wait(5)


def test_an_answer_that_nobody_waits_for_any_more_is_dropped(monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(guard.socket, "getaddrinfo", lambda *_, **__: gate.wait(10) and [])

    async def ask():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(look_up("slow.example", 80), 0.01)
        gate.set()
        assert await look_up("next.example", 80) == []

    asyncio.run(ask())
