"""The sentences of the contract: ``put(store, "a", key="k")``, ``claim_one(store)``, ``finish(store, claim)``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from treppe.job import Claim, Event, Job, Kind, NewEvent, NewJob, Placed, Settlement, State
from treppe.policy.lapse import after_lapse
from treppe.store.protocol import AfterLapse, Claimed, Filter, Lapse, Lapsed, Pace, Seen, Store, Upkept, Wanted
from treppe.testing.contract.paces import FREE

TASK, QUEUE = "app.work", "work"
ALICE, BOB = 1, 2
"""Two workers every store of the contract knows; their leases outlive every test."""

FOREVER = 100 * 365 * 86400.0
MOST_ROUNDS = 1000
_strangers = itertools.count(1000)


# Putting


def job(id: str, **fields: Any) -> NewJob:
    """A job of the usual task and queue, unless *fields* say otherwise.

    >>> job("a", key="k").queue
    'work'
    """
    return NewJob(**{"id": id, "task": TASK, "queue": QUEUE} | fields)


def event(id: str, **fields: Any) -> NewEvent:
    """An accepted delivery of the source ``shop``."""
    return NewEvent(**{"source": "shop", "id": id, "body": b'{"order": 1}'} | fields)


def put(store: Store, *ids: str, **fields: Any) -> tuple[Placed, ...]:
    """Enqueue jobs with these ids in one call."""
    return store.put([job(id, **fields) for id in ids]).jobs


def put_many(store: Store, n: int, prefix: str = "job", **fields: Any) -> list[str]:
    """Enqueue *n* jobs in batches of 100 and return their ids."""
    ids = [f"{prefix}-{i}" for i in range(n)]
    for batch in range(0, n, 100):
        put(store, *ids[batch : batch + 100], **fields)
    return ids


# Claiming


def claim(
    store: Store,
    n: int = 100,
    *,
    worker: int = ALICE,
    pace: Pace = FREE,
    free: int | None = None,
    tasks: Iterable[str] = (TASK,),
    queues: tuple[str, ...] | None = None,
    alone: bool = False,
    settling: Sequence[Settlement] = (),
) -> Claimed:
    """Claim up to *n* jobs; all of them may be such that must not be repeated, unless *free* says less."""
    wanted = Wanted(worker, n, n if free is None else free, frozenset(tasks), queues, alone)
    return store.claim(wanted, pace, settling)


def claim_ids(store: Store, n: int = 100, **wishes: Any) -> list[str]:
    """The ids of what a claim brings, in its order."""
    return [claim.id for claim in claim(store, n, **wishes).claims]


def claim_one(store: Store, **wishes: Any) -> Claim:
    """Exactly one claim; fails when there is nothing to claim."""
    claims = claim(store, 1, **wishes).claims
    assert len(claims) == 1, f"one claim was expected, and {len(claims)} came"
    return claims[0]


def claim_until_empty(store: Store, n: int = 100, most: int = MOST_ROUNDS, **wishes: Any) -> list[Claim]:
    """Claim again and again, at most *most* times, until nothing more comes."""
    claims: list[Claim] = []
    for _ in range(most):
        taken = claim(store, n, **wishes).claims
        if not taken:
            return claims
        claims += taken
    raise AssertionError(f"there was still something to claim after {most} claims")


def new_worker(store: Store, lease: float = 10.0) -> int:
    """Enlist a worker of its own; its lease runs out, unlike those of ALICE and BOB."""
    worker = next(_strangers)
    store.enlist(worker, f"worker {worker}", lease)
    return worker


# Settling


def finished(claim: Claim, **fields: Any) -> Settlement:
    """The settlement of a success."""
    return _settlement(claim, Event.FINISH, Kind.OK, fields)


def deferred(claim: Claim, **fields: Any) -> Settlement:
    """The settlement of a failure that may be tried again, at once unless *delay* says otherwise."""
    return _settlement(claim, Event.DEFER, Kind.FAILED, fields)


def buried(claim: Claim, **fields: Any) -> Settlement:
    """The settlement of a failure for good."""
    return _settlement(claim, Event.BURY, Kind.REFUSED, fields)


def doubted(claim: Claim, **fields: Any) -> Settlement:
    """The settlement of an attempt of which nobody knows whether it acted."""
    return _settlement(claim, Event.DOUBT, Kind.UNCLEAR, fields)


def handed_over(claim: Claim, **fields: Any) -> Settlement:
    """The settlement of a job whose end somebody else will tell."""
    return _settlement(claim, Event.HAND_OVER, Kind.OK, fields)


def confirmed(claim: Claim, **fields: Any) -> Settlement:
    """The word of the other side that it is done; it carries the token and the worker it was given."""
    return _settlement(claim, Event.CONFIRM, Kind.ACT, fields)


SETTLEMENTS = {
    Event.FINISH: finished,
    Event.DEFER: deferred,
    Event.BURY: buried,
    Event.DOUBT: doubted,
    Event.HAND_OVER: handed_over,
}


def finish(store: Store, *claims: Claim, **fields: Any) -> None:
    """Settle as done; fails when the store refuses."""
    _settle(store, [finished(claim, **fields) for claim in claims])


def defer(store: Store, *claims: Claim, **fields: Any) -> None:
    """Settle as failed, to be tried again; fails when the store refuses."""
    _settle(store, [deferred(claim, **fields) for claim in claims])


def bury(store: Store, *claims: Claim, **fields: Any) -> None:
    """Settle as dead; fails when the store refuses."""
    _settle(store, [buried(claim, **fields) for claim in claims])


def doubt(store: Store, *claims: Claim, **fields: Any) -> None:
    """Settle as unclear; fails when the store refuses."""
    _settle(store, [doubted(claim, **fields) for claim in claims])


def hand_over(store: Store, *claims: Claim, **fields: Any) -> None:
    """Settle as handed over; fails when the store refuses."""
    _settle(store, [handed_over(claim, **fields) for claim in claims])


def confirm(store: Store, *claims: Claim, **fields: Any) -> None:
    """The other side says it is done; fails when the store refuses."""
    _settle(store, [confirmed(claim, **fields) for claim in claims])


def _settlement(claim: Claim, event: Event, kind: Kind, fields: dict[str, Any]) -> Settlement:
    return Settlement(**dict[str, Any](claim=claim, event=event, kind=kind) | fields)


def _settle(store: Store, settlements: list[Settlement]) -> None:
    refused = store.settle(settlements)
    assert refused == (), f"the store refused to settle {[settlement.claim.id for settlement in refused]}"


# Time, upkeep and people


def by_policy(lapsed: Lapsed) -> Lapse:
    """What Treppe's own policy makes of a lapse."""
    return Lapse(*after_lapse(*msgspec.structs.astuple(lapsed)))


def upkeep_rounds(store: Store, lapse: AfterLapse | None = by_policy) -> list[Upkept]:
    """Rounds of upkeep until there is no more to do."""
    rounds = [store.upkeep(lapse)]
    while rounds[-1].more:
        assert len(rounds) < MOST_ROUNDS, "upkeep says for ever that there is more to do"
        rounds.append(store.upkeep(lapse))
    return rounds


def upkeep(store: Store, lapse: AfterLapse | None = by_policy) -> Upkept:
    """All the upkeep there is to do; returns what its rounds did together."""
    rounds = upkeep_rounds(store, lapse)
    return Upkept(
        sum(once.lapsed for once in rounds),
        sum(once.expired for once in rounds),
        sum(once.promoted for once in rounds),
        sum(once.forgotten for once in rounds),
    )


def lapse(store: Store, *claims: Claim) -> None:
    """The workers of these claims die, and upkeep takes back what they held."""
    for worker in {claim.worker for claim in claims}:
        store.retire(worker)
    upkeep(store)


def seen(store: Store, *ids: str) -> list[Seen]:
    """The jobs as a human sees them now."""
    return [Seen(id, read(store, id).token) for id in ids]


def act(store: Store, event: Event, *ids: str, by: str = "anna", note: str = "") -> tuple[Seen, ...]:
    """A human's act on the jobs as they are now; returns what was refused."""
    return store.change(seen(store, *ids), event, by, note)


# Looking


def read(store: Store, id: str) -> Job:
    """The job; fails when there is none."""
    found = store.get(id)
    assert found is not None, f"there is no job {id!r}"
    return found


def state(store: Store, id: str) -> State:
    """The state of the job; fails when there is none."""
    return read(store, id).state


def find_all(store: Store, wanted: Filter | None = None, n: int = 200) -> list[Job]:
    """Every job that matches, page by page."""
    jobs: list[Job] = []
    after: int | None = None
    for _ in range(MOST_ROUNDS):
        page = store.find(wanted or Filter(), after, n)
        jobs += page.jobs
        if (after := page.after) is None:
            return jobs
    raise AssertionError(f"there is still a next page after {MOST_ROUNDS} of them")


def audit(store: Store) -> list[dict[str, Any]]:
    """The audit trail, oldest first."""
    return [json.loads(record.record) for record in store.journal.page("audit", 0, 500)]


@contextmanager
def unchanged(store: Store, *ids: str) -> Iterator[None]:
    """Whatever happens inside must leave these jobs, the figures and the journal exactly as they were."""
    before = _picture(store, ids)
    yield
    assert _picture(store, ids) == before


def _picture(store: Store, ids: Sequence[str]) -> object:
    streams = [store.journal.page(stream, 0, 500) for stream in ("audit", f"report:{QUEUE}")]
    return [(store.get(id), dict(store.notes(id))) for id in ids], store.backlog(), streams


# Driving a job into a state


def into(store: Store, wanted: State, id: str = "a", **fields: Any) -> Claim | None:
    """Put a job and drive it into the state; returns its last claim, if it ever had one."""
    put(store, id, **fields)
    if wanted is State.WAITING:
        return None
    if wanted is State.CANCELLED:
        assert act(store, Event.CANCEL, id) == ()
        return None
    taken = claim_one(store, queues=(fields.get("queue", QUEUE),), tasks=(fields.get("task", TASK),))
    assert taken.id == id
    if wanted is not State.RUNNING:
        _END[wanted](store, taken)
    return taken


_END = {State.DONE: finish, State.DEAD: bury, State.UNCLEAR: doubt, State.HANDED_OVER: hand_over}

REACHABLE = (State.WAITING, State.RUNNING, State.HANDED_OVER, State.UNCLEAR, State.DONE, State.DEAD, State.CANCELLED)
"""Every state but ``moved``, which only a relay between two stores can reach."""
