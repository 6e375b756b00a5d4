"""The ``treppe.toml`` that ``treppe init`` writes: valid as it stands, once its two secrets are set."""

from __future__ import annotations

from typing import Final

SECRETS: Final = ("SHOP_SECRET", "BOARD_PASSWORD")
"""The environment variables it needs; everything else in it works at once."""

TEMPLATE: Final = """\
# Treppe's settings. After each change, let Treppe read them:  treppe check
# Secrets never stand here, only where they are: "env:NAME" (environment variable) or "file:/path".
# This file needs two to be set before the start: SHOP_SECRET and BOARD_PASSWORD.

store = "sqlite:///treppe.db"      # where jobs live; the path starts at this file's folder
# app = "shop.tasks:app"           # only with Python tasks: module:variable
# keep = "30d"                     # how long the id of a finished job stays taken


# A queue is the unit of pace. All destinations that name it share it.
[queue.accounting]
rate = "2/s"                       # never more starts than this; also "100/min", "300/15s"
concurrent = 1                     # calls at the same time
# burst = 1                        # so many may start at once; check prints the lasting pace


# A source is a door for one sender. It posts to  http://…/in/shop
[source.shop]
preset = "generic"                 # generic | shopify | standard-webhooks; the last two need no verify
secret = "env:SHOP_SECRET"         # a list while you change it: ["env:NEW", "env:OLD"]
verify = { header = "X-Signature", prefix = "sha256=" }
                                   # also algo = "hmac-sha256", encoding = "hex" or "base64", signed = "{body}"
id = ["header:X-Event-Id"]         # what makes an event the same one: header:NAME, body:PATH, body-hash
send_to = ["invoice", "crm"]       # one job per destination
key = "body:customer.id"           # jobs of one customer run one after the other
# only = ["orders/paid"]           # these topics only, where the preset knows topics (shopify)
# where = "body:total > 0"         # these events only
# keep = "30d"                     # how long a repeat of an event is known as one; not shorter than the sender repeats
# max_body = "5MiB"


# A destination is a web address that jobs are delivered to.
[destination.invoice]
queue = "accounting"               # without: a queue of its own name
url = "https://accounting.example.com/v1/invoices"
# auth = { kind = "bearer", token = "env:ACCOUNTING_KEY" }
                                   # also { kind = "basic", user = "…", password = "env:…" }
                                   # and  { kind = "header", name = "X-Api-Key", value = "env:…" }
timeout = "35s"                    # for the whole exchange
idempotency = "none"               # or { header = "Idempotency-Key" }, only if the API documents it
repeat = "ask"                     # after a time-out: "ask" a human, or "safe" if sending twice does no harm
# probe = { get = "https://accounting.example.com/v1/status" }   # asked whether it is back after an outage
# attempts = 5                     # only failures of the job's own count; outages and limits cost none
# deadline = "15m"                 # by when it should be done: you are told, nothing is given up
# expires = "14d"                  # by when to give up
# on_dead = "block"                # a dead job holds up its key ("block"), or lets it go on ("skip")
# headers = { "X-Shop" = "mine" }
# method = "POST"                  # POST | PUT | PATCH
# allow_networks = ["10.1.0.0/16"] # addresses inside are refused unless they are named here
# allow_http = false               # https only

[destination.crm]
url = "https://crm.example.com/api/contacts"
idempotency = { header = "Idempotency-Key" }


# Who is told what. Mail goes over smtp; https:// addresses get a signed message.
# [alert.me]
# to = ["mailto:you@example.com"]
# when = ["dead", "unclear", "late", "held"]
# smtp = "smtp+starttls://you@mail.example.com:587"
# smtp_password = "env:SMTP_PASSWORD"
# sender = "treppe@example.com"


# Who may log in to the board, at  http://127.0.0.1:8080/board/
[user.admin]
password = "env:BOARD_PASSWORD"
role = "admin"                     # viewer | operator | admin


[web]
host = "127.0.0.1"                 # only this machine; behind a proxy with https set public_url too
port = 8080
# public_url = "https://hooks.example.com"
# drain_secret = "env:DRAIN_SECRET"  # for a scheduler that calls POST /v1/drain
"""
