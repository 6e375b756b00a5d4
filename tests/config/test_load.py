from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treppe.config import (
    Alert,
    Auth,
    Backoff,
    Destination,
    Probe,
    Queue,
    Rate,
    Secret,
    Settings,
    Source,
    User,
    Verify,
    Web,
)
from treppe.config.load import MAX_FILE, load, read
from treppe.errors import ConfigError

SECRET_CURE = 'Write "env:NAME" and set the environment variable NAME, or "file:/path/to/it"'


def write(folder: Path, text: str) -> Path:
    path = folder / "treppe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> list[str]:
    return [str(finding) for finding in read(write(folder, text))[1]]


def test_every_setting_arrives_where_it_belongs(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        store = "sqlite:///data/treppe.db"
        app = "shop.tasks:app"
        language = "de"
        keep = "20d"

        [queue.lexware]
        rate = "2/s"
        burst = 2
        concurrent = 1

        [source.shop]
        preset = "shopify"
        secret = ["env:NEW", "file:old.key"]
        send_to = ["invoice"]
        key = "body:customer.id"
        only = ["orders/paid"]
        where = "body:total > 0"
        max_body = "1MiB"

        [source.form]
        preset = "generic"
        secret = "env:FORM"
        id = ["header:X-Id", "body:lines[0].id", "body-hash"]
        send_to = "invoice"
        keep = "7d"

        [source.form.verify]
        header = "X-Signature"
        algo = "hmac-sha512"
        encoding = "base64"
        prefix = "v1="
        signed = "{timestamp}.{body}"
        timestamp_header = "X-Time"
        id_header = "X-Id"
        tolerance = "1m"

        [source.open]
        verify = "none"

        [destination.invoice]
        queue = "lexware"
        url = "https://api.lexware.io/v1/invoices"
        method = "PUT"
        auth = { kind = "bearer", token = "env:LEXWARE_KEY" }
        headers = { "X-Shop" = "mine" }
        timeout = "35s"
        idempotency = { header = "Idempotency-Key" }
        repeat = "safe"
        probe = { get = "https://api.lexware.io/v1/profile" }
        not_acted = [503, 500]
        attempts = 3
        crashes = 2
        backoff = { base = "500ms", factor = 2, cap = "1m", jitter = false }
        deadline = "15m"
        expires = "1d"
        on_dead = "skip"
        allow_networks = ["127.0.0.0/8"]
        allow_http = true

        [destination.basic]
        url = "https://b.example"
        auth = { kind = "basic", user = "me", password = "env:PASSWORD" }
        idempotency = "none"
        on_dead = "block"

        [destination.header]
        url = "https://h.example"
        auth = { kind = "header", name = "X-Api-Key", value = "env:VALUE" }

        [alert.me]
        to = ["mailto:me@example.com", "https://hook.example"]
        when = ["dead", "held"]
        secret = "env:HOOK"
        smtp = "smtps://me@mail.example.com:465"
        smtp_password = "env:SMTP"
        sender = "treppe@example.com"
        digest = "30m"

        [user.anna]
        password = "env:ANNA"
        role = "viewer"

        [web]
        host = "0.0.0.0"
        port = 80
        public_url = "https://hooks.example.com"
        drain_secret = ["env:DRAIN"]
        max_connections = 10
        max_connections_per_ip = 5
        header_timeout = "5s"
        body_timeout = "20s"
        """,
    )
    verify = Verify("X-Signature", "hmac-sha512", "base64", "v1=", "{timestamp}.{body}", "X-Time", "X-Id", 60.0)
    assert load(path) == Settings(
        store=f"sqlite:///{tmp_path}/data/treppe.db",
        app="shop.tasks:app",
        language="de",
        keep=20 * 86400.0,
        queues={"lexware": Queue("lexware", Rate(2, 1.0), burst=2, concurrent=1)},
        sources={
            "shop": Source(
                "shop",
                "shopify",
                (Secret("env:NEW"), Secret(f"file:{tmp_path}/old.key")),
                send_to=("invoice",),
                key="body:customer.id",
                only=("orders/paid",),
                where="body:total > 0",
                max_body=1 << 20,
                keep=20 * 86400.0,
            ),
            "form": Source(
                "form",
                secrets=(Secret("env:FORM"),),
                verify=verify,
                id=("header:X-Id", "body:lines[0].id", "body-hash"),
                send_to=("invoice",),
                keep=7 * 86400.0,
            ),
            "open": Source("open", verify="none", keep=20 * 86400.0),
        },
        destinations={
            "invoice": Destination(
                "invoice",
                "https://api.lexware.io/v1/invoices",
                queue="lexware",
                method="PUT",
                auth=Auth("bearer", token=Secret("env:LEXWARE_KEY")),
                headers=(("X-Shop", "mine"),),
                timeout=35.0,
                idempotency="Idempotency-Key",
                repeat="safe",
                probe=Probe("https://api.lexware.io/v1/profile"),
                not_acted=(503, 500),
                attempts=3,
                crashes=2,
                backoff=Backoff(0.5, 2.0, 60.0, jitter=False),
                deadline=900.0,
                expires=86400.0,
                skip_dead=True,
                allow_networks=("127.0.0.0/8",),
                allow_http=True,
            ),
            "basic": Destination(
                "basic", "https://b.example", auth=Auth("basic", user="me", password=Secret("env:PASSWORD"))
            ),
            "header": Destination(
                "header", "https://h.example", auth=Auth("header", name="X-Api-Key", value=Secret("env:VALUE"))
            ),
        },
        alerts={
            "me": Alert(
                "me",
                ("mailto:me@example.com", "https://hook.example"),
                ("dead", "held"),
                Secret("env:HOOK"),
                "smtps://me@mail.example.com:465",
                Secret("env:SMTP"),
                "treppe@example.com",
                digest=1800.0,
            )
        },
        web=Web(
            "0.0.0.0",
            80,
            "https://hooks.example.com",
            (User("anna", Secret("env:ANNA"), "viewer"),),
            (Secret("env:DRAIN"),),
            10,
            5,
            5.0,
            20.0,
        ),
    )


def test_an_empty_file_gives_the_defaults_beside_itself(tmp_path: Path) -> None:
    assert load(write(tmp_path, "")) == Settings(store=f"sqlite:///{tmp_path}/treppe.db")


def test_a_store_with_a_password_may_be_named_like_any_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://app:hunter2@db.example/shop")
    assert load(write(tmp_path, 'store = "env:DATABASE_URL"')).store == "postgresql://app:hunter2@db.example/shop"


def test_the_store_is_relative_to_the_file_wherever_we_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 'store = "sqlite:///x.db"')
    monkeypatch.chdir(tmp_path.parent)
    assert load(Path(tmp_path.name) / "treppe.toml").store == f"sqlite:///{tmp_path}/x.db"


def test_every_problem_is_told_at_once_with_its_line_and_cure(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
[queue.lexware]
rat = "2/s"

[source.shop]
preset = "shopfy"
secret = "my-own-s3cret"
send_to = ["invoise"]

[destination.invoice]
queue = "lexwar"
url = "https://api.example.com"
timeout = 35
""",
    )
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).splitlines() == [
        f"{path}: 6 problems",
        '  line 2, queue.lexware.rat: there is no setting "rat". Did you mean "rate"?',
        '  line 5, source.shop.preset: "shopfy" is not known. Did you mean "shopify"?',
        "  line 6, source.shop.secret: a secret is named here, never written down. " + SECRET_CURE,
        '  line 7, source.shop.send_to: there is no destination "invoise". Did you mean "invoice"?',
        '  line 10, destination.invoice.queue: there is no queue "lexwar". Did you mean "lexware"?',
        '  line 12, destination.invoice.timeout: 35 has no unit. Write it as text with a unit, e.g. "35s" or "35m"',
    ]


def test_one_problem_alone_stands_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, '[web]\nport = "8080"')
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value) == f'{path}, line 2, web.port: "8080" is a text. Write it without quotes'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('destinations = ""', 'there is no setting "destinations". Did you mean "destination"?'),
        ("[web]\nzzz = 1", 'there is no setting "zzz". Known are: body_timeout, drain_secret'),
        ('[web]\nstore = "sqlite:///x.db"', '"store" does not belong here. Move it to the top of the file'),
        ('queue = "x"', "its settings belong to a name. Write the table as [queue.NAME]"),
        ('[queue]\nrate = "2/s"', "its settings belong to a name. Write the table as [queue.NAME]"),
        ("web = 3", "3 is not a table. Write a table [web]"),
        ("[queue.LexWare]", '"LexWare" is not a good name. Did you mean "lexware"? Use up to 128 small letters'),
        ('[source."a b"]', '"a b" is not a good name. Use up to 64 small letters, digits and . _ -'),
        ("[queue.q]\nburst = 2", "burst: more than the rate allows"),
        ('[queue.q]\nrate = "2/s"\nburst = 3', "burst: more than the rate allows"),
        ("[queue.q]\nconcurrent = 0", "0 is out of bounds. Choose one from 1 to 10000"),
        ("[queue.q]\nconcurrent = 1.5", "1.5 is not a whole number"),
        ("[web]\nport = true", "true is not a number"),
        ('app = "shop"', 'app: "shop" cannot be used here. Write "module:variable", e.g. "shop.tasks:app"'),
        ('language = "fr"', '"fr" is not known. Known are: de, en'),
        ("language = []", "[] is not known"),
        ("store = 1", "1 names no store"),
        ('store = "treppe.db"', '"treppe.db" names no store. Write "sqlite:///treppe.db"'),
        ('store = "redis://h"', "not available in this version: Redis as the store"),
        ('[source.s]\nsend_to = ["d", "d"]', "an entry stands here twice. Take one out"),
        ('[source.s]\nonly = ["a", 1]', "1 cannot be used here"),
        (f"[source.s]\nonly = {['x'] * 101}", "these are 101 entries. Not more than 100 are allowed"),
        ('[source.s]\nkey = "customer.id"', 'Write "body:customer.id" or "header:X-Customer"'),
        ('[source.s]\nkey = "body:a..b"', 'Write "body:customer.id" or "header:X-Customer"'),
        ('[source.s]\nverify = "off"', '"off" is not a table. Write "none" or { header = … }'),
        ("[source.s]\nverify = {}", "source.s.verify.header: this is missing. Add: header = …"),
        ('[source.s]\nverify = { header = "X", signed = "body" }', "It must name {body}"),
        ('[source.s]\npreset = "stripe"', 'not available in this version: "stripe". Known are: generic, shopify'),
        ("[source.s]\nsearch = []", "source.s.search: not available in this version: search"),
        ("[destination.d]", "destination.d.url: this is missing. Add: url = …"),
        ("[destination.d]\nurl = 3", "destination.d.url: 3 cannot be used here. Write an address"),
        ('[destination.d]\nurl = "https://a b"', "Write an address without spaces"),
        ("[destination.d]\npull = true", "destination.d.pull: not available in this version: pull"),
        ('[source.s]\nsend_to = "nowhere"', 'there is no destination "nowhere". Add a table [destination.nowhere]'),
        ('[alert.me]\nwhen = ["silent"]', 'not available in this version: "silent". Known are: dead, unclear'),
        ('[alert.me]\nsmtp = "mail.example.com"', 'Write "smtp://host:25"'),
        ("[user.anna]", "user.anna.password: this is missing. Add: password = …"),
        ('[schedule.nightly]\ncron = "0 2 * * *"', "not available in this version: schedule"),
    ],
)
def test_each_mistake_has_its_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    found = problems(tmp_path, text)
    assert len(found) == 1, found
    assert sentence in found[0]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ('repeat = "look"', 'not available in this version: "look". Known are: safe, ask'),
        ('success = "handed-over"', "not available in this version: success"),
        ('auth = { kind = "oauth2" }', 'not available in this version: "oauth2"'),
        ('auth = { kind = "bearer" }', 'auth.token: this is missing: kind = "bearer" needs it'),
        ('auth = { kind = "none", user = "x" }', 'auth.user: kind = "none" has no use for it'),
        ('auth = { token = "env:X" }', "auth.kind: this is missing"),
        ('auth = "env:X"', '"env:X" is not a table. Write { kind = … }'),
        ('idempotency = { headr = "X" }', 'there is no setting "headr". Did you mean "header"?'),
        ('idempotency = "yes"', '"yes" is not a table. Write "none" or { header = … }'),
        ('headers = "x"', "headers are a table of up to 50"),
        ('headers = { authorization = "x" }', "For a login use auth = { kind = … }"),
        ('headers = { "a b" = "x" }', 'the header "a b" cannot be set here'),
        ('headers = { "X-A" = "a\\r\\nb" }', "Use up to 1024 printable ASCII"),
        ("not_acted = [200]", "200 is out of bounds. Choose one from 400 to 599"),
        ('allow_http = "yes"', '"yes" is not true or false'),
        ('on_dead = "go"', '"go" is not known. Known are: block, skip'),
        ('queue = "nowhere"', 'there is no queue "nowhere". Add a table [queue.nowhere]'),
    ],
)
def test_each_mistake_at_a_destination_has_its_sentence(tmp_path: Path, setting: str, sentence: str) -> None:
    found = problems(tmp_path, f'[destination.d]\nurl = "https://a.example"\n{setting}')
    assert len(found) == 1, found
    assert sentence in found[0]


def test_a_name_that_leads_to_a_broken_table_is_no_second_mistake(tmp_path: Path) -> None:
    found = problems(tmp_path, '[source.s]\nsend_to = "d"\n[destination.d]\nurl = 1')
    assert len(found) == 1


def test_a_queue_may_be_one_of_another_destinations_name_or_fit_a_pattern(tmp_path: Path) -> None:
    text = """
    [queue."shop:*"]
    rate = "2/s"
    [destination.a]
    url = "https://a.example"
    [destination.b]
    url = "https://b.example"
    queue = "a"
    [destination.c]
    url = "https://c.example"
    queue = "shop:acme"
    """
    assert problems(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("[queue.q]\nrate = 2/s", 2, 'A text needs quotes: rate = "…"'),
        ("[source.s]\nsecret = env:X", 2, 'A text needs quotes: secret = "…"'),
        ('[destination.a]\nurl = "https://a"\n[destination.a]\n', 3, "A name can be used once only"),
        ('store = "a"\nstore = "b"', 2, "A name can be used once only"),
        ('[web]\nhost = "a', 2, "Check quotes, brackets and commas in this line and the one before"),
        ("[web\nport = 1", 1, "Check quotes, brackets and commas"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line_and_a_cure(tmp_path: Path, text: str, line: int, sentence: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}, line {line}: this is not TOML")
    assert sentence in str(caught.value)


def test_a_secret_written_down_unquoted_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, "[source.s]\nsecret = hunter2"))
    assert "hunter2" not in str(caught.value)


def test_a_file_from_windows_is_read(tmp_path: Path) -> None:
    path = tmp_path / "treppe.toml"
    path.write_bytes(b'\xef\xbb\xbf[queue.q]\r\nrate = "2/s"\r\n')
    assert load(path).queues["q"].rate == Rate(2, 1.0)


def test_a_file_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no such file. Make one with: treppe init"):
        load(tmp_path / "treppe.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# one\n# caf\xe9")
    with pytest.raises(ConfigError, match=r"latin.toml, line 2: this is not UTF-8. Save the file as UTF-8"):
        load(tmp_path / "latin.toml")
    (tmp_path / "big.toml").write_bytes(b"#" * (MAX_FILE + 1))
    with pytest.raises(ConfigError, match=f"longer than {MAX_FILE} bytes"):
        load(tmp_path / "big.toml")


def test_deep_nesting_is_an_error_and_no_crash(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load(write(tmp_path, "store = " + "[" * 100_000))


WORDS = st.sampled_from(
    [
        "queue",
        "source",
        "destination",
        "alert",
        "web",
        "user",
        "a",
        "url",
        "rate",
        "auth",
        "kind",
        "send_to",
        "verify",
        "store",
        "keep",
    ]
)
VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(-5, 10**20),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["none", "env:X", "2/s", "1m"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=4)),
    max_leaves=15,
)


def toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + "}"
    return str(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(WORDS, VALUES, max_size=6))
def test_any_toml_whatsoever_is_settings_or_a_list_of_problems(tmp_path: Path, tables: dict[str, object]) -> None:
    text = "\n".join(f"{key} = {toml(value)}" for key, value in tables.items())
    found, findings = read(write(tmp_path, text))
    assert isinstance(found, Settings)
    assert all(finding.text for finding in findings)
