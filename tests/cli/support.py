"""What the tests of the command line share: settings with two destinations, and jobs in every state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from treppe.app import open_store
from treppe.job import Claim, Event, Kind, NewJob, Repeat, Settlement
from treppe.policy.pace import Pacer
from treppe.store.protocol import Store, Wanted

SETTINGS = """\
store = "sqlite:///treppe.db"

[queue.accounting]
rate = "2/s"

[source.shop]
secret = "env:SHOP_SECRET"
verify = { header = "X-Signature" }
id = ["header:X-Event-Id"]
send_to = ["invoice", "crm"]

[destination.invoice]
queue = "accounting"
url = "https://accounting.example.com/v1/invoices"
repeat = "ask"

[destination.crm]
url = "https://crm.example.com/api/contacts"
idempotency = { header = "Idempotency-Key" }

[alert.me]
to = ["mailto:me@example.com"]

[user.anna]
password = "env:BOARD_PASSWORD"
"""
WORKER = 7


class Ran(NamedTuple):
    """What one call of treppe left behind."""

    code: int
    out: str
    err: str


@contextmanager
def a_store(folder: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{folder}/treppe.db")
    try:
        yield store
    finally:
        store.close()


def put(store: Store, *ids: str, **fields: Any) -> None:
    given = {"task": "destination:crm", "queue": "crm", "payload": b'{"order":1}', "repeat": Repeat.ASK} | fields
    store.put([NewJob(id=id, **given) for id in ids])


def claim(store: Store) -> Claim:
    store.enlist(WORKER, "worker", 3600.0)
    (claimed,) = store.claim(Wanted(WORKER, 1, 1, frozenset({"destination:crm"})), Pacer({})).claims
    return claimed


def end(store: Store, id: str, event: Event, kind: Kind, error: str) -> None:
    """Put one job and let it end so."""
    put(store, id)
    settlement = Settlement(claim(store), event, kind, error=error, result=b'"r"', detail=b'{"status":422}')
    assert store.settle([settlement]) == ()


def dead(folder: Path, *ids: str, error: str = "the CRM answered 422") -> None:
    with a_store(folder) as store:
        for id in ids:
            end(store, id, Event.BURY, Kind.REFUSED, error)


def unclear(folder: Path, *ids: str) -> None:
    with a_store(folder) as store:
        for id in ids:
            end(store, id, Event.DOUBT, Kind.UNCLEAR, "no answer within 35 s")


def done(folder: Path, *ids: str) -> None:
    with a_store(folder) as store:
        for id in ids:
            end(store, id, Event.FINISH, Kind.OK, "")


def waiting(folder: Path, *ids: str, **fields: Any) -> None:
    with a_store(folder) as store:
        put(store, *ids, **fields)


def running(folder: Path, id: str) -> None:
    with a_store(folder) as store:
        put(store, id)
        claim(store)


def state_of(folder: Path, id: str) -> str:
    with a_store(folder) as store:
        job = store.get(id)
        assert job is not None
        return job.state.value
