from typing import Any

import pytest

from treppe.config import Alert, Secret, Settings, User, Web
from treppe.config.rules import people

ANNA = (User("anna", Secret("env:ANNA")),)


def told(alerts: dict[str, Alert], web: Web) -> list[tuple[str, str]]:
    return [(finding.level, str(finding)) for finding in people.findings(Settings(alerts=alerts, web=web))]


def about_alert(to: tuple[str, ...], **fields: Any) -> list[tuple[str, str]]:
    return told({"me": Alert("me", to, **fields)}, Web(users=ANNA))


def test_where_nobody_is_told_and_nobody_may_look_a_hint_says_so() -> None:
    found = told({}, Web())
    assert [level for level, _ in found] == ["hint", "hint"]
    assert "nobody is told when a job dies" in found[0][1]
    assert "nobody can log in to the board" in found[1][1]


def test_an_alert_by_mail_and_one_that_is_signed_are_fine() -> None:
    assert about_alert(("mailto:me@example.com",)) == []
    assert about_alert(("https://hook.example/x",), secret=Secret("env:X")) == []


@pytest.mark.parametrize(
    ("to", "fields", "level", "sentence"),
    [
        ((), {}, "error", "alert.me.to: this alert reaches nobody. Add to ="),
        (("mailto:me",), {}, "error", '"mailto:me" names no mailbox'),
        (("mailto:a@b.example,c@d.example",), {}, "error", "names no mailbox"),
        (("slack://x",), {}, "error", "not available in this version: alerts by slack"),
        (("http://hook.example",), {"secret": Secret("env:X")}, "error", "http sends everything readable"),
        (("https://10.0.0.1/x",), {"secret": Secret("env:X")}, "error", "is an address inside"),
        (("https://hook.example",), {}, "hint", "the receiver cannot tell whether these alerts come from here"),
        (("mailto:a@b.example",), {"smtp": "smtps://me@m.example"}, "error", "a login needs a password"),
        (
            ("mailto:a@b.example",),
            {"smtp": "smtp://m.example", "smtp_password": Secret("env:X")},
            "warning",
            "starttls",
        ),
        (("mailto:a@b.example",), {"allow_networks": ("x",)}, "error", '"x" is not a network'),
    ],
)
def test_each_weakness_of_an_alert_has_its_sentence(
    to: tuple[str, ...], fields: dict[str, Any], level: str, sentence: str
) -> None:
    ((found, text),) = about_alert(to, **fields)
    assert found == level
    assert sentence in text


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_board_for_this_machine_only_needs_no_https(host: str) -> None:
    assert told({"me": Alert("me", ("mailto:a@b.example",))}, Web(host, users=ANNA)) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "hooks.example.com", "192.168.1.2"])
def test_a_board_for_others_needs_https_in_front(host: str) -> None:
    alerts = {"me": Alert("me", ("mailto:a@b.example",))}
    ((level, text),) = told(alerts, Web(host, users=ANNA))
    assert level == "warning"
    assert "passwords and webhooks come in readable for all on the way" in text
    assert told(alerts, Web(host, public_url="https://hooks.example.com", users=ANNA)) == []


@pytest.mark.parametrize("url", ["hooks.example.com", "ftp://x", "https://"])
def test_a_public_url_is_a_web_address(url: str) -> None:
    ((level, text),) = told({"me": Alert("me", ("mailto:a@b.example",))}, Web(public_url=url, users=ANNA))
    assert level == "error"
    assert "is not a web address" in text
