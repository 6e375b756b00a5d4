"""Signatures: the senders' documented vectors, the traps, and whatever else can stand in a header."""

import base64
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treppe.config import Verify
from treppe.door.arrival import Arrival, Headers
from treppe.door.signature import Fault, Hmac, shopify, standard_webhooks, unsigned
from treppe.errors import ConfigError

# The test vector of the Standard Webhooks libraries.
WHSEC = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE_ID = b"msg_p5jXN8AQM9LWM0D4loKWxJek"
STAMP = 1614265330
BODY = b'{"test": 2432232314}'
SIGNED = b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def arrival(body, *headers):
    return Arrival(Headers(list(headers)), body)


def standard(id=MESSAGE_ID, stamp=b"1614265330", signature=SIGNED, body=BODY, brand=b"webhook"):
    headers = ((b"-id", id), (b"-timestamp", stamp), (b"-signature", signature))
    return arrival(body, *[(brand + name, value) for name, value in headers if value is not None])


def checked(came, now=STAMP, secrets=(WHSEC,)):
    fault = standard_webhooks(secrets)(came, now)
    return fault.code if fault else "ok"


def resigned(id, stamp, body, secret=WHSEC):
    key = base64.b64decode(secret.removeprefix(b"whsec_"))
    return b"v1," + base64.b64encode(hmac.digest(key, b"%b.%b.%b" % (id, stamp, body), "sha256"))


# Standard Webhooks


def test_the_published_vector_is_right():
    assert checked(standard()) == "ok"


def test_the_older_header_names_count_as_well():
    assert checked(standard(brand=b"svix")) == "ok"


def test_one_brands_headers_never_stand_in_for_the_others():
    mixed = arrival(
        BODY,
        (b"svix-id", MESSAGE_ID),
        (b"svix-timestamp", str(STAMP).encode()),
        (b"svix-signature", SIGNED),
        (b"webhook-id", b"msg_replayed_under_another_id"),
    )
    assert checked(mixed) == "signature-missing"


def test_a_secret_may_stand_without_its_prefix_or_its_padding():
    assert checked(standard(), secrets=[WHSEC.removeprefix(b"whsec_")]) == "ok"
    key = base64.b64encode(b"k" * 25)
    signature = resigned(MESSAGE_ID, b"%d" % STAMP, BODY, b"whsec_" + key)
    assert checked(standard(signature=signature), secrets=[b"whsec_" + key.rstrip(b"=")]) == "ok"


def test_several_secrets_are_valid_while_they_are_changed():
    other = b"whsec_" + base64.b64encode(b"n" * 32)
    assert checked(standard(), secrets=[other, WHSEC]) == "ok"
    assert checked(standard(), secrets=[other]) == "signature-wrong"


def test_one_good_signature_of_several_is_enough():
    wrong = b"v1," + base64.b64encode(b"x" * 32)
    assert checked(standard(signature=b"%b v1a,abc %b v2,zzz" % (wrong, SIGNED))) == "ok"
    assert checked(standard(signature=wrong)) == "signature-wrong"


def test_no_more_than_sixteen_signatures_are_looked_at():
    wrong = b"v1," + base64.b64encode(b"x" * 32)
    assert checked(standard(signature=b" ".join([wrong] * 15 + [SIGNED]))) == "ok"
    assert checked(standard(signature=b" ".join([wrong] * 16 + [SIGNED]))) == "signature-wrong"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"id": None}, "signature-missing"),  # falls to the other brand, of which nothing is there
        ({"id": b""}, "id-empty"),
        ({"id": b"msg_other"}, "signature-wrong"),
        ({"stamp": None}, "timestamp-missing"),
        ({"stamp": b""}, "timestamp-empty"),
        ({"stamp": b"1614265331"}, "signature-wrong"),
        ({"signature": None}, "signature-missing"),
        ({"signature": b""}, "signature-empty"),
        ({"signature": b"garbage"}, "signature-wrong"),
        ({"signature": b"v1"}, "signature-wrong"),
        ({"signature": b"v1,"}, "signature-wrong"),
        ({"signature": b"v1,\xff\xfe"}, "signature-wrong"),
        ({"signature": b"v1a," + SIGNED[3:]}, "signature-wrong"),
        ({"signature": SIGNED[3:]}, "signature-wrong"),
        ({"signature": SIGNED.upper()}, "signature-wrong"),
        ({"signature": SIGNED + b"="}, "signature-wrong"),
        ({"body": BODY + b" "}, "signature-wrong"),
        ({"body": b""}, "signature-wrong"),
        ({"body": b"\xff\xfe"}, "signature-wrong"),
    ],
)
def test_whatever_is_missing_or_changed_is_refused(changed, code):
    assert checked(standard(**changed)) == code


@pytest.mark.parametrize("name", [b"webhook-id", b"webhook-timestamp", b"webhook-signature"])
def test_a_header_that_comes_twice_is_refused(name):
    came = standard()
    twice = arrival(BODY, *came.headers.pairs, (name, came.headers.get(name)))
    assert checked(twice) == name.decode().replace("webhook-", "") + "-repeated"


@pytest.mark.parametrize(
    "stamp",
    [b"-1", b"+1614265330", b"1_614_265_330", b"1614265330.0", b"1e9", b"nan", b"NaN", b"inf", b" 1614265330", b"0x10",
     "١٦١٤٢٦٥٣٣٠".encode(), b"9" * 13, b"9" * 5000, b"\xff", b"2021-02-25T15:02:10Z"],
)  # fmt: skip
def test_a_timestamp_is_digits_or_nothing(stamp):
    came = standard(stamp=stamp, signature=resigned(MESSAGE_ID, stamp, BODY))
    assert checked(came) == "timestamp-unreadable"


@pytest.mark.parametrize(
    ("ahead", "code"), [(-301, "too-old"), (-300, "ok"), (0, "ok"), (300, "ok"), (301, "too-new"), (10**9, "too-new")]
)
def test_the_time_may_differ_by_five_minutes_both_ways(ahead, code):
    stamp = b"%d" % (STAMP + ahead)
    assert checked(standard(stamp=stamp, signature=resigned(MESSAGE_ID, stamp, BODY))) == code


def test_a_signed_text_cannot_be_divided_anew():
    """The spec: ids "at the very least not be allowed to include any `.` to prevent certain attacks"."""
    stamp = b"%d" % STAMP
    body = stamp + b'.{"paid": true}'
    signature = resigned(b"msg_1", stamp, body)
    assert checked(standard(id=b"msg_1", body=body, signature=signature)) == "ok"
    shifted = standard(id=b"msg_1." + stamp, stamp=stamp, body=b'{"paid": true}', signature=signature)
    assert checked(shifted) == "id-unusable"


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        (b"whpk_" + base64.b64encode(b"k" * 32), "ed25519 keys are not supported"),
        (b"whsk_" + base64.b64encode(b"k" * 32), "ed25519 keys are not supported"),
        (b"whsec_", "not a secret of Standard Webhooks"),
        (b"whsec_not base64!", "not a secret of Standard Webhooks"),
        (b"whsec_" + base64.b64encode(b"short"), "not a secret of Standard Webhooks"),
        (b"whsec_\xff\xff", "not a secret of Standard Webhooks"),
        (b"password", "not a secret of Standard Webhooks"),
        (b"", "not a secret of Standard Webhooks"),
    ],
)
def test_a_secret_that_cannot_be_one_is_refused_at_the_start_without_showing_it(secret, said):
    with pytest.raises(ConfigError, match=said) as error:
        standard_webhooks([secret], "source.shop.secret")
    assert error.value.where == "source.shop.secret"
    key = secret.decode("latin-1").removeprefix("whsec_")
    assert not key or key not in str(error.value)


# Shopify


def shopify_signed(body, secret=b"hush"):
    return arrival(body, (b"x-shopify-hmac-sha256", base64.b64encode(hmac.digest(secret, body, "sha256"))))


@pytest.mark.parametrize("body", [b'{"id": 1}', b"", b"\xff\x00", "ü\u2028".encode(), b"x" * 100_000])
def test_shopify_signs_the_raw_bytes(body):
    assert shopify([b"hush"])(shopify_signed(body), 0.0) is None
    assert shopify([b"hush"])(Arrival(shopify_signed(body).headers, body + b"\n"), 0.0).code == "signature-wrong"


def test_shopify_with_two_secrets_takes_both():
    verifier = shopify([b"new", b"old"])
    assert verifier(shopify_signed(b"{}", b"old"), 0.0) is None
    assert verifier(shopify_signed(b"{}", b"new"), 0.0) is None
    assert verifier(shopify_signed(b"{}", b"other"), 0.0).code == "signature-wrong"


def test_a_refusal_is_a_sentence_that_names_the_header_and_no_value():
    fault = shopify([b"hush"])(arrival(b"{}", (b"x-shopify-hmac-sha256", b"a"), (b"x-shopify-hmac-sha256", b"b")), 0.0)
    assert fault == Fault("signature-repeated", "the header x-shopify-hmac-sha256 came more than once")


def test_non_ascii_signatures_are_refused_not_raised():
    """`hmac.compare_digest` raises TypeError for text beyond ASCII; bytes are compared here."""
    came = arrival(b"{}", (b"x-shopify-hmac-sha256", "gefälscht".encode()))
    assert shopify([b"hush"])(came, 0.0).code == "signature-wrong"


# Generic


def generic(verify, *headers, body=b"Hello, World!", secrets=(b"It's a Secret to Everybody",), now=1000.0):
    fault = Hmac(secrets, verify, "source.x.verify")(arrival(body, *headers), now)
    return fault.code if fault else "ok"


def test_githubs_published_vector_is_right():
    """docs.github.com, "Validating webhook deliveries"."""
    verify = Verify("X-Hub-Signature-256", prefix="sha256=")
    digest = b"757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert generic(verify, (b"x-hub-signature-256", b"sha256=" + digest)) == "ok"
    assert generic(verify, (b"x-hub-signature-256", b"sha256=" + digest.upper())) == "ok"
    wrongs = (digest, b"sha1=%b" % digest, b"SHA256=%b" % digest, b"sha256=", b"sha256=" + digest[:-1], b"sha256= ")
    for wrong in wrongs:
        assert generic(verify, (b"x-hub-signature-256", wrong)) == "signature-wrong"


@pytest.mark.parametrize("algo", ["sha1", "sha256", "sha512"])
@pytest.mark.parametrize("encoding", ["hex", "base64"])
def test_every_algorithm_and_encoding_works(algo, encoding):
    digest = hmac.digest(b"s", b"body", algo)
    value = digest.hex().encode() if encoding == "hex" else base64.b64encode(digest)
    verify = Verify("X-Sig", algo=f"hmac-{algo}", encoding=encoding)
    assert generic(verify, (b"x-sig", value), body=b"body", secrets=[b"s"]) == "ok"


def test_time_and_id_can_be_signed_in_any_order():
    signed = "v0:{timestamp}:{id}:{body}"
    verify = Verify("X-Sig", signed=signed, timestamp_header="X-Time", id_header="X-Id", tolerance=10)
    value = hmac.digest(b"s", b"v0:995:a.b:body", "sha256").hex().encode()
    headers = [(b"x-sig", value), (b"x-time", b"995"), (b"x-id", b"a.b")]
    assert generic(verify, *headers, body=b"body", secrets=[b"s"]) == "ok"
    assert generic(verify, *headers, body=b"body", secrets=[b"s"], now=1006.0) == "too-old"
    assert generic(verify, *headers, body=b"body", secrets=[b"s"], now=984.0) == "too-new"
    assert generic(verify, *headers[:2], body=b"body", secrets=[b"s"]) == "id-missing"


@pytest.mark.parametrize(
    ("verify", "said"),
    [
        (Verify("X", signed="{timestamp}"), "timestamp_header must name its header"),
        (Verify("X", signed="{id}.{body}"), "id_header must name its header"),
        (Verify("X", signed="{nonce}.{body}"), "Known are {body}, {timestamp} and {id}"),
        (Verify("X", signed="constant"), "the body is not signed"),
        (Verify("X", timestamp_header="X-Time"), "the timestamp is not signed, so anybody can change it"),
    ],
)
def test_a_scheme_that_protects_nothing_is_refused_at_the_start(verify, said):
    with pytest.raises(ConfigError, match=said):
        Hmac([b"s"], verify, "source.x.verify")


@pytest.mark.parametrize("secrets", [[], [b""], [b"good", b""]])
def test_an_empty_secret_is_refused_at_the_start(secrets):
    with pytest.raises(ConfigError, match="there is no secret to check signatures with"):
        Hmac(secrets, Verify("X"), "source.x.verify")


def test_who_asks_for_no_signature_gets_none():
    assert unsigned(arrival(b""), 0.0) is None


# Whatever comes

header_values = st.binary(max_size=80) | st.sampled_from([SIGNED, b"v1,", b"1614265330", b"=", b"v1,=", b" "])
names = st.sampled_from([b"webhook-id", b"webhook-timestamp", b"webhook-signature", b"svix-id", b"x-sig", b"x-time",
                         b"x-shopify-hmac-sha256"])  # fmt: skip
VERIFIERS = (
    standard_webhooks([WHSEC]),
    shopify([b"hush"]),
    Hmac([b"s"], Verify("X-Sig", prefix="sha256="), "v"),
    Hmac([b"s"], Verify("X-Sig", encoding="base64", signed="{timestamp}{body}", timestamp_header="X-Time"), "v"),
)


@given(st.lists(st.tuples(names, header_values), max_size=8), st.binary(max_size=50), st.floats(0, 4e9))
def test_no_header_and_no_body_raises_or_gets_through(headers, body, now):
    for verifier in VERIFIERS:
        fault = verifier(arrival(body, *headers), now)
        assert isinstance(fault, Fault)
        assert fault.code.isascii()
        fault.text.encode()
