import asyncio
import base64
import hashlib
import hmac
import smtplib
import time
from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.demo.support import within
from treppe.demo.inbox import AlertHook, MailSink
from treppe.demo.ledger import Ledger, Told, read
from treppe.demo.wire import HOST, Request

SECRET = "whsec_" + base64.b64encode(b"a secret of the alerts").decode()
BODY = b'{"text":"one job is dead"}'


def alert(at: float | None = None, key: bytes = b"a secret of the alerts", signed: bytes = BODY) -> Request:
    stamp = str(int(time.time() if at is None else at))
    mac = hmac.digest(key, b"msg_1." + stamp.encode() + b"." + signed, hashlib.sha256)
    signature = f"v1,b2xk v1,{base64.b64encode(mac).decode()}"
    headers = {"webhook-id": "msg_1", "webhook-timestamp": stamp, "webhook-signature": signature}
    return Request("POST", "/", headers, BODY, asyncio.Event().wait)


def test_a_genuine_alert_is_taken(tmp_path: Path):
    ledger: Ledger[Told] = Ledger(tmp_path / "told.jsonl")
    assert asyncio.run(AlertHook(ledger, SECRET).handle(alert())).status == 204
    (told,) = read(tmp_path / "told.jsonl", Told)
    assert (told.channel, told.genuine, told.text) == ("webhook", True, BODY.decode())


@pytest.mark.parametrize(
    "request_",
    [
        alert(key=b"another"),
        alert(signed=BODY + b" "),
        alert(at=1.0),
        alert()._replace(headers={}),
    ],
)
def test_a_forged_or_old_alert_is_kept_as_such(tmp_path: Path, request_: Request):
    ledger: Ledger[Told] = Ledger(tmp_path / "told.jsonl")
    assert asyncio.run(AlertHook(ledger, SECRET).handle(request_)).status == 401
    assert [told.genuine for told in read(tmp_path / "told.jsonl", Told)] == [False]


def test_a_mail_arrives_as_it_was_sent(tmp_path: Path):
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Zwölf Aufträge", "treppe@example.org", "clerk@example.org"
    mail.set_content("The first line\n.a line with a dot\nGrüße\n")

    def send(port: int) -> None:
        with smtplib.SMTP(HOST, port, timeout=5) as client:
            client.send_message(mail)

    async def story() -> None:
        sink = MailSink(Ledger(tmp_path / "told.jsonl"))
        await asyncio.to_thread(send, await sink.listen())
        sink.close()

    within(10, story)
    (told,) = read(tmp_path / "told.jsonl", Told)
    assert told.channel == "mail"
    assert told.text == "Zwölf Aufträge\nThe first line\n.a line with a dot\nGrüße\n"


def test_an_unknown_word_is_answered_and_changes_nothing(tmp_path: Path):
    def talk(port: int) -> int:
        with smtplib.SMTP(HOST, port, timeout=5) as client:
            return client.docmd("TURN")[0]

    async def story() -> None:
        sink = MailSink(Ledger(tmp_path / "told.jsonl"))
        assert await asyncio.to_thread(talk, await sink.listen()) == 502
        sink.close()

    within(10, story)
    assert read(tmp_path / "told.jsonl", Told) == []
