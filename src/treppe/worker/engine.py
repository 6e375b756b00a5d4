"""The worker: claim → run → settle, the settle riding with the next claim.

The engine is one plain thread. It alone talks to the store about jobs; handlers run in threads or in an
event loop beside it and only hand their outcomes over. It survives every store error and goes on.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from treppe.errors import StoreError
from treppe.job import Claim, Kind, Outcome, Settlement
from treppe.settle import conclude
from treppe.store.bell import Bell
from treppe.store.protocol import Claimed, Pace, Store, Wanted
from treppe.worker.crew import Crew, Ended, Starts
from treppe.worker.handler import Handler, Run, overran, released, runs_of
from treppe.worker.lease import Lease
from treppe.worker.loop import LoopCrew
from treppe.worker.suspects import Suspects
from treppe.worker.tally import Tally
from treppe.worker.threads import ThreadCrew
from treppe.worker.turn import Budget, Turn
from treppe.worker.unseen import Unseen

log = logging.getLogger("treppe.worker")

NUDGE = 0.02
REST = 0.02  # while other hands are busy, hands for whom nothing was found are not asked for more often
MAX_CLAIM = 500
OBEYS_WITHIN = 1.0


class Worker:
    """Works off the jobs of *handlers* until told to stop.

    ``threads`` plain functions and ``loop_jobs`` async ones run at once. ``chores`` (upkeep) says in how many seconds
    it is to be called again. On :meth:`stop` running jobs may end for ``grace`` seconds, then the rest is given back.
    """

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
        pace: Pace,
        *,
        threads: int = 10,
        loop_jobs: int = 100,
        queues: Sequence[str] | None = None,
        lease: float | None = None,
        grace: float = 25.0,
        chores: Callable[[], float] | None = None,
        on_trouble: Callable[[], None] | None = None,
    ) -> None:
        self.tally = Tally()
        self._store, self._handlers, self._pace = store, handlers, pace
        self._queues = None if queues is None else tuple(queues)
        self._grace = grace
        self._chores = chores or (lambda: float("inf"))
        self._on_trouble = on_trouble or (lambda: None)
        self._bell = Bell()
        self._ended = Ended(self._bell)
        self._lease = Lease(store, lease or store.lease)
        starts = Starts()
        self._threads = ThreadCrew(threads, self._ended, starts)
        self.loop = LoopCrew(loop_jobs, self._ended, starts)
        self._crews: dict[bool, Crew] = {False: self._threads, True: self.loop}
        self._known = {in_loop: self._tasks_of(in_loop) for in_loop in self._crews}
        self._held: dict[tuple[int, int], Run] = {}
        self._unwritten: list[Settlement] = []
        self._stopping = threading.Event()
        self._suspects = Suspects()
        self._next_chores = 0.0
        self._identity = 0
        self._has_limits = any(handler.timeout is not None for handler in handlers.values())
        self._failures = 0
        self._unseen = Unseen(store, self._lease)
        self._rest_until: dict[bool, float] = {}
        self.next_in: float | None = None  # seconds to the next due job, as the last drain saw it

    def run(self) -> Tally:
        """Work until :meth:`stop`; blocks. Store errors at the very start come through."""
        return self._work(None)

    def drain(self, seconds: float) -> Tally:
        """Work until nothing is due any more or the budget of *seconds* is over; blocks.

        Only jobs are claimed whose time limit the rest of the budget (or half of all of it) can carry.
        """
        return self._work(Budget(time.monotonic() + seconds, seconds))

    def stop(self) -> None:
        """End in an orderly way; may be called from a signal handler or another thread, and twice."""
        self._stopping.set()
        self._bell.ring()

    @property
    def stopping(self) -> bool:
        """True once somebody asked it to stop."""
        return self._stopping.is_set()

    def _work(self, budget: Budget | None) -> Tally:
        self._lease.start()
        try:
            while not self._stopping.is_set():
                turn = self._turn(budget)
                if budget is not None and self._is_drained(turn, budget):
                    break
                self._wait(turn)
            self._wind_down()
        finally:
            self.loop.close()
            self._threads.close()
            self._lease.stop()
            self._bell.close()
        return self.tally

    def _turn(self, budget: Budget | None) -> Turn:
        """Settle what has ended, claim what fits, and do the chores; trouble with the store is waited out."""
        self._collect()
        self._keep_time_limits()
        self._let_go_of_lost_claims()
        self._threads.return_stale()
        turn = Turn()
        try:
            self._give_back_unseen()
            if self._suspects.wait and not self._held:
                self._claim_suspect(budget, turn)
            if not self._runs_a_suspect():
                for hands in self._asking():
                    self._claim_for(hands, budget, turn)
            self._settle_rest()
            self._do_chores(turn)
            self._failures = 0
        except Exception as error:  # also a fault of ours: no worker ends while others' jobs could go on
            self._after_trouble(error, turn)
        return turn

    def _is_drained(self, turn: Turn, budget: Budget) -> bool:
        if self._held or self._unwritten or (self._suspects.wait and budget.left() > 0):
            return False
        self.next_in = turn.next_in
        left = budget.left()
        return left <= 0 or (turn.found == 0 and not turn.trouble and (turn.next_in is None or turn.next_in > left))

    def _asking(self) -> list[list[bool]]:
        """Which crews ask for jobs together: all while nothing is in hand, so that idling costs one question."""
        hands = [in_loop for in_loop, tasks in self._known.items() if tasks]
        return [[in_loop] for in_loop in hands] if self._held or not hands else [hands]

    def _claim_for(self, hands: Sequence[bool], budget: Budget | None, turn: Turn) -> None:
        if time.monotonic() < max(self._rest_until.get(in_loop, 0.0) for in_loop in hands):
            turn.look_again_in(REST)
            return
        wanted = self._wanted(hands, budget)
        if wanted is None:
            return
        claimed = self._claim(wanted)
        self._start(claimed.claims)
        self._suspects.notice(claimed)
        if not claimed.claims:
            self._rest_until.update(dict.fromkeys(hands, time.monotonic() + REST))
        turn.add(claimed)
        is_more = len(claimed.claims) >= wanted.n and all(self._crews[in_loop].room() > 0 for in_loop in hands)
        turn.again = turn.again or is_more or (self._suspects.wait and not self._held)

    def _claim_suspect(self, budget: Budget | None, turn: Turn) -> None:
        """Take one suspect, while nothing else runs here."""
        tasks = self._tasks_within(frozenset(self._handlers), budget)
        if tasks and self._lease.fresh:
            claimed = self._claim(Wanted(self._lease.worker, 1, 1, tasks, self._queues, alone=True))
            self._start(claimed.claims)
            turn.add(claimed)
            self._suspects.asked(claimed)

    def _runs_a_suspect(self) -> bool:
        return len(self._held) == 1 and next(iter(self._held.values())).claim.suspect

    def _wanted(self, hands: Sequence[bool], budget: Budget | None) -> Wanted | None:
        crews = [self._crews[in_loop] for in_loop in hands]
        tasks = self._tasks_within(frozenset().union(*(self._known[in_loop] for in_loop in hands)), budget)
        n = min(MAX_CLAIM, *(crew.room() for crew in crews))
        if not tasks or not n or not self._lease.fresh or self._suspects.must_drain:
            return None
        return Wanted(self._lease.worker, n, min(crew.free() for crew in crews), tasks, self._queues)

    def _tasks_within(self, tasks: frozenset[str], budget: Budget | None) -> frozenset[str]:
        if budget is None:
            return tasks
        return frozenset(task for task in tasks if budget.carries(self._handlers[task].timeout))

    def _claim(self, wanted: Wanted) -> Claimed:
        riding, self._unwritten = self._unwritten, []
        if self._failures:  # after a failure the settle goes alone, so that a bad row is found
            self._write(riding)
            riding = []
        try:
            claimed = self._store.claim(wanted, self._pace, riding)
        except Exception:
            self._unwritten = riding + self._unwritten
            self._unseen.expect()
            raise
        self._written(riding, claimed.refused)
        return claimed

    def _give_back_unseen(self) -> None:
        """A claim that failed may have been carried out all the same: give back what we never saw."""
        if self._unseen.looks:
            known = self._held.keys() | {(one.claim.seq, one.claim.token) for one in self._unwritten}
            self._unwritten += self._unseen.given_back(known)

    def _start(self, claims: Iterable[Claim]) -> None:
        by_crew: dict[bool, list[Run]] = defaultdict(list)
        for run in runs_of(claims, self._handlers, self._store):
            self._held[run.claim.seq, run.claim.token] = run
            by_crew[run.handler.in_loop].append(run)
        for in_loop, runs in by_crew.items():
            self._crews[in_loop].take(runs)

    def _collect(self) -> None:
        self._bell.clear()
        ended = self._ended.collect()
        if ended:
            by_crew: dict[bool, list[Run]] = defaultdict(list)
            for run in ended:
                if self._held.pop((run.claim.seq, run.claim.token), None) is not run:
                    continue  # it was given up before
                by_crew[run.handler.in_loop].append(run)
                self._unwritten.append(self._settlement(run))
                if run.outcome is not None and run.outcome.kind is Kind.THROTTLED:
                    self._crews[run.handler.in_loop].return_unstarted(run.claim.queue)
            for in_loop, runs in by_crew.items():
                self._crews[in_loop].let_go(runs)

    def _settlement(self, run: Run) -> Settlement:
        claim = run.claim
        now = claim.claimed_at + (0.0 if run.started is None else time.monotonic() - run.started)
        outcome = run.outcome or Outcome(Kind.RELEASED, acted=None)
        return conclude(claim, outcome, run.handler.rules, now, random.random())

    def _settle_rest(self) -> None:
        rest, self._unwritten = self._unwritten, []
        self._write(rest)

    def _write(self, settlements: list[Settlement]) -> None:
        if not settlements:
            return
        try:
            self._written(settlements, self._store.settle(settlements))
        except Exception:
            self._unwritten = settlements + self._unwritten
            raise

    def _written(self, settlements: Sequence[Settlement], refused: Sequence[Settlement]) -> None:
        for one in refused:
            self.tally.refused += 1
            log.warning('job "%s" was taken back meanwhile; its end (%s) does not count', one.claim.id, one.event)
        late = {id(one) for one in refused}
        for one in settlements:
            if id(one) not in late:
                self.tally.count(one)

    def _keep_time_limits(self) -> None:
        """Give up what runs for too long. A coroutine is cancelled at its limit, and given up if it does not obey."""
        now = time.monotonic()
        for run in self._held.values() if self._has_limits else ():
            patience = OBEYS_WITHIN if run.handler.in_loop else 0.0
            if not run.abandoned and run.overdue(now - patience):
                self._crews[run.handler.in_loop].give_up(run, partial(overran, run))

    def _let_go_of_lost_claims(self) -> None:
        """The lease was lost: others may have these jobs by now. Threads cannot be stopped; their notes are refused."""
        if self._identity in (self._lease.worker, 0):
            self._identity = self._lease.worker
            return
        self._identity = self._lease.worker
        for run in list(self._held.values()):
            if run.handler.in_loop and not run.abandoned and run.claim.worker != self._identity:
                self._crews[True].give_up(run, partial(released, "the lease was lost"))

    def _do_chores(self, turn: Turn) -> None:
        if time.monotonic() >= self._next_chores:
            wanted_in = self._chores()
            self._next_chores = time.monotonic() + wanted_in
        turn.chores_in = max(0.0, self._next_chores - time.monotonic())

    def _after_trouble(self, error: Exception, turn: Turn) -> None:
        self._failures += 1
        self._on_trouble()
        turn.trouble = True
        turn.next_in = random.uniform(0.5, 1.0) * min(5.0, 0.1 * 2.0 ** min(self._failures, 10))
        log.warning("the store has trouble, trying again in %.1f s: %s", turn.next_in, error)
        if not isinstance(error, StoreError):
            log.error("this is a fault of Treppe or of the store's adapter", exc_info=error)

    def _wait(self, turn: Turn) -> None:
        pause = turn.pause
        if pause <= 0:
            return
        if not self._held:
            self._rest_until.clear()
        if self._failures:
            self._bell.wait(pause)
            return
        while pause > 0 and self._threads.nudge() and not self._bell.wait(NUDGE):
            pause -= NUDGE
        try:
            self._store.wait(max(0.0, pause), self._bell)
        except Exception as error:  # as in a turn
            self._on_trouble()
            log.warning("could not wait for work: %s", error)
            self._bell.wait(pause)

    def _wind_down(self) -> None:
        """Running jobs may end; what was never started, and what is left after the grace, is given back."""
        until = time.monotonic() + self._grace
        for crew in self._crews.values():
            crew.return_unstarted()
        while self._held and time.monotonic() < until:
            self._collect()
            self._could_settle()
            if self._held:
                self._bell.wait(0.2)
        for run in list(self._held.values()):
            self._crews[run.handler.in_loop].give_up(run, partial(released, "the worker was stopped"))
        self._collect()
        give_up = time.monotonic() + 5.0
        while not self._could_settle() and time.monotonic() < give_up:
            self._bell.clear()
            self._bell.wait(0.2)

    def _could_settle(self) -> bool:
        try:
            self._give_back_unseen()
            self._settle_rest()
        except Exception as error:  # as in a turn
            self._on_trouble()
            log.warning("could not settle yet: %s", error)
            return False
        return True

    def _tasks_of(self, in_loop: bool) -> frozenset[str]:
        return frozenset(name for name, handler in self._handlers.items() if handler.in_loop == in_loop)
