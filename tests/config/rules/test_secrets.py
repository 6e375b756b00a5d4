import base64

import pytest

from treppe.config import Alert, Auth, Destination, Secret, Settings, Source, User, Web
from treppe.config.rules import secrets

STANDARD = "whsec_" + base64.b64encode(bytes(24)).decode()


def told(settings: Settings) -> list[str]:
    return [str(finding) for finding in secrets.findings(settings)]


@pytest.fixture(autouse=True)
def values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    monkeypatch.setenv("SHORT", "hunter2")
    monkeypatch.setenv("LONG", "correct-horse-battery-staple")
    monkeypatch.setenv("STANDARD", STANDARD)
    monkeypatch.setenv("HALF_STANDARD", "whsec_abc")
    monkeypatch.setenv("TWO_LINES", "correct-horse\nbattery-staple")


def everywhere(secret: Secret) -> Settings:
    return Settings(
        sources={"s": Source("s", secrets=(secret, secret))},
        destinations={
            "a": Destination("a", "https://a", auth=Auth("bearer", token=secret)),
            "b": Destination("b", "https://b", auth=Auth("basic", user="me", password=secret)),
            "c": Destination("c", "https://c", auth=Auth("header", name="X", value=secret)),
        },
        alerts={"me": Alert("me", (), secret=secret, smtp_password=secret)},
        web=Web(users=(User("anna", secret),), drain_secrets=(secret,)),
    )


PLACES = [
    "source.s.secret",
    "source.s.secret",
    "destination.a.auth.token",
    "destination.b.auth.password",
    "destination.c.auth.value",
    "alert.me.secret",
    "alert.me.smtp_password",
    "user.anna.password",
    "web.drain_secret",
]


def test_every_secret_of_the_settings_is_opened() -> None:
    found = list(secrets.findings(everywhere(Secret("env:NOT_THERE"))))
    assert [finding.where for finding in found] == PLACES
    assert {finding.level for finding in found} == {"error"}
    place, cure = "source.s.secret: env:NOT_THERE", "Set it before the start: export NOT_THERE=…"
    assert str(found[0]) == f"{place}: this environment variable is not set. {cure}"


def test_a_good_secret_has_nothing_to_be_said_about() -> None:
    assert told(everywhere(Secret("env:LONG"))) == []


def test_a_secret_in_the_file_itself_is_a_warning_that_does_not_show_it() -> None:
    found = list(secrets.findings(everywhere(Secret("plain:correct-horse-battery-staple"))))
    assert [finding.where for finding in found] == PLACES
    assert {finding.level for finding in found} == {"warning"}
    assert "horse" not in str(found)


def test_a_secret_that_is_too_short_can_be_guessed() -> None:
    assert [sentence for sentence in told(everywhere(Secret("env:SHORT"))) if "hunter2" in sentence] == []
    cure = 'Make a new one: python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
    assert told(everywhere(Secret("env:SHORT"))) == [
        "user.anna.password: this password is too short. Choose one of at least 8 characters",
        f"web.drain_secret: shorter than 16 characters, so it can be guessed. {cure}",
    ]


def test_what_goes_into_a_header_is_one_line() -> None:
    found = told(everywhere(Secret("env:TWO_LINES")))
    assert [sentence.partition(": ")[0] for sentence in found] == [
        "destination.a.auth.token",
        "destination.c.auth.value",
        "web.drain_secret",
    ]
    assert all("Use printable ASCII characters only, in one line" in sentence for sentence in found)


@pytest.mark.parametrize(("name", "good"), [("STANDARD", True), ("HALF_STANDARD", False), ("LONG", False)])
def test_a_standard_webhooks_secret_is_base64(name: str, good: bool) -> None:
    settings = Settings(sources={"s": Source("s", "standard-webhooks", (Secret(f"env:{name}"),))})
    assert (told(settings) == []) is good


def test_a_secret_of_an_alert_is_any_text_or_a_whole_standard_one() -> None:
    for name, good in (("LONG", True), ("STANDARD", True), ("HALF_STANDARD", False)):
        settings = Settings(alerts={"me": Alert("me", (), secret=Secret(f"env:{name}"))})
        assert (told(settings) == []) is good


def test_other_senders_may_call_their_secrets_what_they_like() -> None:
    assert told(Settings(sources={"s": Source("s", secrets=(Secret("env:HALF_STANDARD"),))})) == []
