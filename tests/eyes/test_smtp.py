"""Mails over real sockets: plain, STARTTLS and TLS; and servers that refuse, hang and drip."""

import smtplib
import ssl
import threading
import time

import pytest

from tests.eyes.mailbox import mailbox, trusting
from tests.eyes.support import until
from treppe.eyes.episode import Message
from treppe.eyes.smtp import letter, mail

MESSAGE = Message("msg_1", "first", "Treppe: 2 jobs – gescheitert ß", "Aufträge: a, b\n\n.\n.x\nEnde ß\n")


def send(box, scheme="smtp", user="", to="me@shop.example", **options):
    login = f"{user}@" if user else ""
    mail(f"{scheme}://{login}127.0.0.1:{box.port}", "treppe@shop.example", to, MESSAGE, **options)


def test_a_mail_arrives_as_it_was_written():
    with mailbox() as box:
        send(box)
    [got] = box.mails
    assert got["subject"] == MESSAGE.subject
    assert got.get_content().replace("\r\n", "\n") == MESSAGE.text.replace("\n.", "\n..")  # as the wire carries it
    assert (got["from"], got["to"], got["message-id"]) == (
        "treppe@shop.example",
        "me@shop.example",
        "<msg_1@shop.example>",
    )
    assert got["auto-submitted"] == "auto-generated"
    assert [line.lower() for line in box.to] == ["rcpt to:<me@shop.example>"]


@pytest.mark.parametrize(("tls", "scheme"), [("starttls", "smtp+starttls"), ("smtps", "smtps")])
@pytest.mark.parametrize("password", ["opensesame", "pässword 😀"])
def test_encrypted_and_logged_in(tls, scheme, password):
    with mailbox(tls, password=password) as box:
        send(box, scheme, user="m%40ra", password=password, tls=trusting())
    assert (box.encrypted, box.logins) == ([True], ["m@ra"])


@pytest.mark.parametrize(("tls", "scheme"), [("starttls", "smtp+starttls"), ("smtps", "smtps")])
def test_a_certificate_nobody_vouches_for_is_refused(tls, scheme):
    with mailbox(tls) as box, pytest.raises(ssl.SSLCertVerificationError):
        send(box, scheme)
    assert box.mails == []


def test_a_server_without_encryption_gets_nothing_where_it_was_asked_for():
    with mailbox() as box, pytest.raises(smtplib.SMTPNotSupportedError):
        send(box, "smtp+starttls", tls=trusting())
    assert box.mails == []


@pytest.mark.parametrize(
    ("bad", "error"),
    [("busy", smtplib.SMTPConnectError), ("unknown", smtplib.SMTPRecipientsRefused)],
)
def test_a_refusal_is_raised(bad, error):
    with mailbox(bad=bad) as box, pytest.raises(error):
        send(box)


@pytest.mark.parametrize("wrong", ["wrong", "fälsch"])
def test_a_wrong_password_is_raised(wrong):
    with mailbox("smtps", password="right") as box, pytest.raises(smtplib.SMTPAuthenticationError):
        send(box, "smtps", user="mara", password=wrong, tls=trusting())


def test_nobody_listening_is_raised():
    with mailbox() as box:
        pass
    with pytest.raises(ConnectionRefusedError):
        send(box)


@pytest.mark.parametrize(
    ("box", "scheme", "tls"),
    [
        ({}, "smtp+starttls", trusting()),  # it offers no encryption
        ({"tls": "starttls"}, "smtp+starttls", None),  # a certificate nobody vouches for
        ({"tls": "smtps"}, "smtps", None),
        ({"bad": "busy"}, "smtp", None),
        ({"bad": "unknown"}, "smtp", None),
    ],
)
def test_a_mail_that_fails_leaves_no_connection_and_no_alarm_behind(box, scheme, tls):
    """An alarm goes on until its connection is closed."""
    with mailbox(**box) as served, pytest.raises((OSError, smtplib.SMTPException)):
        send(served, scheme, tls=tls)
    until(lambda: not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)])


@pytest.mark.parametrize("bad", ["silent", "drip"])
@pytest.mark.parametrize("scheme", ["smtp", "smtp+starttls"])
def test_a_server_that_never_gets_on_is_given_up_in_time(bad, scheme):
    started = time.monotonic()
    with mailbox(bad=bad) as box, pytest.raises((OSError, smtplib.SMTPException)):
        send(box, scheme, limit=0.3, tls=trusting())
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "text", ["x\r\nBcc: all@evil.example", "x\nBcc: all@evil.example", "x\r\n\r\nbody", "x\0y", "é" * 5000]
)
def test_no_text_becomes_a_header_of_its_own(text):
    made = letter("t@shop.example", "me@shop.example", Message("msg_1", "first", text, text))
    assert made.as_bytes().count(b"Subject:") == 1
    assert "bcc" not in {name.lower() for name in made}
    assert made.get_content_type() == "text/plain"


@pytest.mark.parametrize("to", ["a@b\r\nBcc: c@d", "a@b\n", "a@b, c@d"])
def test_no_address_becomes_two(to):
    with mailbox() as box:
        try:
            send(box, to=to)
        except (smtplib.SMTPException, ValueError):
            assert box.mails == []
        else:
            assert len(box.to) == 1
