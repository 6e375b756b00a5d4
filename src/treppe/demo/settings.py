"""The treppe.toml of the Friday, as text: what a user would write, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from treppe.config.parse import say_duration
from treppe.demo.friday import DESTINATIONS, Day, Friday
from treppe.demo.wire import HOST

USER = "clerk"
KEY_VARIABLE = "FRIDAY_API_KEY"
VARIABLES = {"shop": "FRIDAY_SHOP_SECRET", "alerts": "FRIDAY_ALERT_SECRET", "board": "FRIDAY_BOARD_PASSWORD"}
"""The environment variables that hold the secrets of a :class:`~treppe.demo.friday.Day`."""

TEMPLATE = """\
store = "{store}"

[source.shop]
preset = "shopify"
secret = "env:{shop}"
send_to = [{send_to}]
key = "body:customer.id"

[queue.accounting]
rate = "{rate}"                  # {too_fast} more than it allows, which nobody told us

[destination.accounting]
url = "http://{host}:{accounting}/"
{reach}
repeat = "ask"                    # it honours no idempotency key

[destination.crm]
url = "http://{host}:{crm}/"
{reach}
idempotency = {{ header = "Idempotency-Key" }}

[destination.stock]
url = "http://{host}:{stock}/"
{reach}
repeat = "safe"                   # reserves by order number
attempts = {attempts}
backoff = {{ base = "{backoff}", factor = 2 }}

[destination.mail]
url = "http://{host}:{mail}/"
{reach}

[alert.clerk]
to = ["http://{host}:{alerts}/", "mailto:clerk@friday.example"]
secret = "env:{alert_secret}"
smtp = "smtp://{host}:{smtp}"
digest = "3s"                     # an hour is long on a day like this
allow_http = true
allow_networks = ["{host}/32"]

[user.{user}]
password = "env:{board}"

[web]
port = {door}
"""

REACH = f"""\
auth = {{ kind = "header", name = "X-Api-Key", value = "env:{KEY_VARIABLE}" }}
allow_http = true
allow_networks = ["{HOST}/32"]"""


def treppe_toml(day: Friday, ports: Mapping[str, int], store: str) -> str:
    """The file, for the ports and the store of this run.

    >>> text = treppe_toml(Friday(), dict.fromkeys((*DESTINATIONS, "alerts", "smtp", "door"), 18000), "sqlite:///friday.db")
    >>> 'rate = "375/15s"' in text and 'backoff = { base = "500ms", factor = 2 }' in text
    True
    """
    return TEMPLATE.format(
        **ports,
        host=HOST,
        store=store,
        user=USER,
        reach=REACH,
        shop=VARIABLES["shop"],
        alert_secret=VARIABLES["alerts"],
        board=VARIABLES["board"],
        send_to=", ".join(f'"{name}"' for name in DESTINATIONS),
        rate=day.rate,
        too_fast=f"{day.too_fast - 1:.0%}",
        attempts=day.attempts,
        backoff=say_duration(day.backoff),
    )


def environment(day: Day) -> dict[str, str]:
    """The secrets, as the environment variables that the file names."""
    return {variable: day.secrets[name] for name, variable in VARIABLES.items()}
