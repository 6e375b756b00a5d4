"""A process that accepts an event and works its jobs off, and kills itself at the n-th statement it sends.

``python -m tests.crash.child FILE N``: N = 0 never. Prints a line after each step that was answered.
"""

import os
import signal
import sys

from treppe.job import Event, Kind, NewEvent, NewJob, Outcome, Settlement
from treppe.policy.pace import Limits, Pacer
from treppe.settle import Rules, conclude
from treppe.store.protocol import Wanted
from treppe.store.sqlite import SQLiteStore, database

TASKS = ("crm", "mail", "stock")
WORKER = 7


def main(path: str, fatal: int) -> None:
    seen = [0]

    def count(statement: str) -> None:
        seen[0] += 1
        if seen[0] == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    class Traced(database.CONNECTION):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)
            self.set_trace_callback(count)

    database.CONNECTION = Traced
    accept_and_work(SQLiteStore(path))
    say(f"statements {seen[0]}")


def accept_and_work(store: SQLiteStore) -> None:
    store.migrate()
    event = NewEvent("shop", "e1", b'{"id": 1}')
    jobs = [NewJob(f"shop:e1:{task}", task, task, event=("shop", "e1"), key="customer:7") for task in TASKS]
    store.put(jobs, [event])
    say("accepted")
    store.enlist(WORKER, "child", 10.0)
    pace = Pacer({"crm": Limits(concurrent=1)})
    claims = store.claim(Wanted(WORKER, 10, 10, frozenset(TASKS)), pace).claims
    ends = [conclude(claim, _outcome(claim.task, claim.claims), Rules(), claim.claimed_at, 0.5) for claim in claims]
    alone = [end for end in ends if end.claim.task != "mail"]
    tell(alone, store.settle(alone))
    riding = [end for end in ends if end.claim.task == "mail"]
    tell(riding, store.claim(Wanted(WORKER, 10, 10, frozenset(TASKS)), pace, riding).refused)


def tell(ends: list[Settlement], refused: tuple[Settlement, ...]) -> None:
    done = [end.claim.id for end in ends if end not in refused and end.event is Event.FINISH]
    say(" ".join(["settled", *done]))


def _outcome(task: str, tries: int) -> Outcome:
    return Outcome(Kind.THROTTLED, "429", after=1.0) if task == "stock" and tries == 1 else Outcome(Kind.OK, acted=True)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
