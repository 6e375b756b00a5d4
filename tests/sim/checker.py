"""The judge: it sees the history and the final store, nothing else, and names the promise that it saw broken.

The numbers are those of docs/guarantees.md. What only upkeep knows (which job lapsed or expired, and when) is not in
the history; where it matters the judge asks whether it *may* have happened.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tests.sim import history as h
from tests.sim.keys import Keys
from tests.sim.leases import Leases
from tests.sim.life import Life
from tests.sim.pace import Pacing
from treppe.job import Event, Job, Kind, NewJob, Placed, Repeat, Settlement, State
from treppe.policy.charge import TABLE, Charging
from treppe.policy.pace import Limits

PROVING, QUIET, MOST_UNCHARGED = 3, 3600.0, 500
LATE = {Event.FINISH, Event.DEFER, Event.BURY, Event.HAND_OVER}
ENDS = {Event.FINISH: State.DONE, Event.CONFIRM: State.DONE, Event.CANCEL: State.CANCELLED, Event.BURY: State.DEAD}
SOON = 1e-6


class Broken(NamedTuple):
    """One promise that was not kept."""

    promise: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise} is broken: {self.what}"


def check(entries: Iterable[Any], final: h.Final | None, limits: Mapping[str, Limits], lease: float) -> list[Broken]:
    """Every promise that this history breaks."""
    judge = Judge(limits, lease)
    for entry in entries:
        judge.see(entry)
    if final is not None:
        judge.end(final)
    return judge.broken


class Judge:
    """Goes through the history entry by entry."""

    def __init__(self, limits: Mapping[str, Limits], lease: float) -> None:
        self.broken: list[Broken] = []
        self.lives: dict[str, Life] = {}
        self.by_seq: dict[int, Life] = {}
        self.leases = Leases(lease, self.blame)
        self.keys = Keys(self.leases, self.blame)
        self.pacing = Pacing(limits, self.leases, self.blame)
        self.accepted = self.done = 0
        self.acts: Counter[tuple[str, str]] = Counter()
        self.rolled_back: set[str] = set()
        self.ok: Counter[str] = Counter()
        self.begun: set[tuple[int, int]] = set()
        self.peak = 0.0  # the highest time that the store's clock ever showed
        self._eyes = {
            kind: getattr(self, f"_{kind.__name__.lower()}", None)
            for kind in (
                h.Stored, h.RolledBack, h.Claimed, h.Settled, h.Leased, h.Kept, h.Swept, h.Began, h.Called, h.Noted,
                h.Acted, h.Born, h.Trouble, h.Stepped, h.Counted,
            )
        }  # fmt: skip

    def blame(self, promise: str, what: str) -> None:
        self.broken.append(Broken(promise, what))

    def see(self, entry: Any) -> None:
        at = getattr(entry, "at", 0.0)
        if at:
            self.peak = max(self.peak, at)
            self.leases.it_is(at)
        eye = self._eyes.get(type(entry))
        if eye is not None:
            eye(entry)

    # Putting

    def _stored(self, entry: h.Stored) -> None:
        repeated = {(e.source, e.id) for e, p in zip(entry.events, entry.answer.events, strict=True) if p.duplicate}
        for job, placed in zip(entry.jobs, entry.answer.jobs, strict=True):
            life = self.lives.get(job.id)
            if job.event in repeated and not placed.duplicate:
                self.blame("I18", f"{job.id} was placed anew although its event {job.event} is a repetition")
            if life is not None and not life.may_be_forgotten(self.peak):
                self._look_at_duplicate(life, job, placed, entry.told)
            elif not placed.duplicate:
                self._welcome(job, placed, entry)
            elif life is None and job.event not in repeated:
                self.blame("I18", f"{job.id} was called a duplicate, and nobody had put it")

    def _look_at_duplicate(self, life: Life, job: NewJob, placed: Placed, told: bool) -> None:
        life.acknowledged |= told
        if not placed.duplicate:
            self.blame("I18", f"{job.id} was placed twice: seq {life.seq} and {placed.seq}")
        elif placed.seq != life.seq:
            self.blame("I18", f"{job.id} is seq {life.seq}, and was answered as seq {placed.seq}")
        elif bool(placed.conflict) != (job.payload != life.job.payload):
            self.blame("I18", f"{job.id}: other content must be told, the same must not: {placed}")

    def _welcome(self, job: NewJob, placed: Placed, entry: h.Stored) -> None:
        if placed.seq in self.by_seq:
            self.blame("I1", f"seq {placed.seq} was given twice")
        life = Life(job, placed.seq, entry.at, entry.told)
        self.lives[job.id] = self.by_seq[placed.seq] = life
        self.accepted += 1
        self.rolled_back.discard(job.id)
        self.keys.join(life)

    def _rolledback(self, entry: h.RolledBack) -> None:
        self.rolled_back |= {job.id for job in entry.jobs if job.id not in self.lives}

    # Claiming and running

    def _claimed(self, entry: h.Claimed) -> None:
        for claim in entry.claims:
            life = self.by_seq.get(claim.seq)
            if life is None or life.job.id != claim.id:
                promise = "I4" if claim.id in self.rolled_back else "I3"
                self.blame(promise, f"{claim.id} (seq {claim.seq}) was claimed, and nobody had put it")
                continue
            self._look_at_claim(life, claim, entry)
            self.keys.claimed(life, entry.at, self.peak)
            life.claimed(claim, self.ok[claim.task])
            self.pacing.claimed(claim, entry, self.lives.values(), self.peak)

    def _look_at_claim(self, life: Life, claim: Any, entry: h.Claimed) -> None:
        name, at = f"{claim.id} (token {claim.token})", entry.at
        if claim.token != life.token + 1 or claim.worker != entry.worker:
            self.blame("I6", f"{name} was claimed; the last token was {life.token}")
        if life.state is not None and life.state.final:
            self.blame("I8", f"{name} was claimed; it is {life.state}")
        if life.running and not self.leases.may_be_gone(life.worker):
            self.blame("I9", f"{name} was claimed, and the lease of its worker {life.worker} has not ended")
        if life.must_not_repeat:
            self.blame("I16", f"{name} was claimed again, and nobody knows what became of token {life.token}")
        if at < life.run_at - SOON:
            self.blame("I15", f"{name} was claimed {life.run_at - at:.3f} s before its time")
        if at >= life.expires_at:
            self.blame("I13", f"{name} was claimed {at - life.expires_at:.3f} s after it expired")
        if claim.charged >= life.job.attempts or claim.crashes >= life.job.crashes:
            self.blame(
                "I13", f"{name} was claimed with its budget used up: {claim.charged} charged, {claim.crashes} crashes"
            )
        if claim.repeat is not life.job.repeat:
            self.blame("I16", f"{name} was put with repeat = {life.job.repeat}, and claimed with {claim.repeat}")
        if claim.charged != life.charged:
            self.blame("I12", f"{name} was charged {life.charged} times, the claim says {claim.charged}")

    def _began(self, entry: h.Began) -> None:
        claim = entry.claim
        if (claim.seq, claim.token) in self.begun:
            self.blame("I6", f"{claim.id} (token {claim.token}) was begun twice")
        self.begun.add((claim.seq, claim.token))
        self.pacing.began(claim, entry.on)

    def _called(self, entry: h.Called) -> None:
        life = self.by_seq.get(entry.claim.seq)
        if life is None or not entry.acted:
            return
        if life.has_acted and life.job.repeat is Repeat.ASK:
            self.blame("I16", f"{entry.claim.id} was carried out twice, and no human asked for it")
        life.has_acted = True

    def _noted(self, entry: h.Noted) -> None:
        life = self.by_seq.get(entry.claim.seq)
        if entry.kept and life is not None and life.token != entry.claim.token:
            self.blame("I6", f"a note of {entry.claim.id} was kept by token {entry.claim.token} after {life.token}")

    # Settling

    def _settled(self, entry: h.Settled) -> None:
        refused = {id(one) for one in entry.refused}
        for one in entry.settlements:
            life = self.by_seq.get(one.claim.seq)
            if life is None:
                self.blame("I3", f"{one.claim.id} was settled, and nobody had put it")
            elif id(one) in refused:
                self._look_at_refusal(life, one)
            else:
                self._look_at_settlement(life, one)
                self._apply(life, one, entry.at)

    def _look_at_refusal(self, life: Life, one: Settlement) -> None:
        mine = (one.claim.token, one.claim.worker) == (life.token, life.worker)
        if not (mine and life.running) or one.event is Event.CONFIRM:
            return
        if not self.leases.may_be_gone(life.worker):
            self.blame("I7", f"the settle ({one.event}) of {one.claim.id} was refused, and its claim is alive")
        elif one.event in LATE and not (life.suspect or life.cancel or self.peak >= life.expires_at):
            self.blame(
                "I7", f"the late settle ({one.event}) of {one.claim.id} was refused, and nobody claimed it since"
            )

    def _look_at_settlement(self, life: Life, one: Settlement) -> None:
        name = f"{one.claim.id} (token {one.claim.token})"
        if (one.claim.token, one.claim.worker) != (life.token, life.worker):
            self.blame("I7", f"{name} was settled ({one.event}) by {one.claim.worker}; it is token {life.token} now")
        elif life.state is not None and life.state.final:
            self.blame("I8", f"{name} was settled ({one.event}); it is {life.state}")
        elif not life.running and not (life.state is State.HANDED_OVER or one.event is Event.CONFIRM):
            self.blame("I7", f"{name} was settled ({one.event}) after its claim had ended: {life.ended_by}")

    def _apply(self, life: Life, one: Settlement, at: float) -> None:
        if one.charged:
            self._look_at_charge(life, one, at)
        if one.event is Event.BURY and not self._may_be_buried(life, one, at):
            self.blame(
                "I13", f"{one.claim.id} was buried with {life.charged} of {life.job.attempts} charged: {one.error}"
            )
        if one.event is Event.DEFER and life.charged + one.charged >= life.job.attempts:
            self.blame("I13", f"{one.claim.id} is not dead, and {life.charged + one.charged} attempts are charged")
        if one.counts:
            self.ok[one.claim.task] += one.kind is Kind.OK
        if one.counts and one.kind is not Kind.OK:
            alone = life.seen is not None and self.ok[one.claim.task] == life.seen[0]
            life.seen = (self.ok[one.claim.task], life.seen[1] if life.seen and alone and not one.charged else at)
        life.settled(one, at)
        self.done += life.state is State.DONE
        self.keys.ended(life)

    def _look_at_charge(self, life: Life, one: Settlement, at: float) -> None:
        charging = TABLE[one.kind].charging
        if one.kind is Kind.EXPIRED or charging is Charging.ALWAYS:
            return
        if charging is Charging.NEVER:
            self.blame("I14", f"{one.claim.id} was charged for {one.kind}")
        elif life.seen is None:
            self.blame("I14", f"{one.claim.id} was charged for its first failure")
        elif life.ok_at_claim - life.seen[0] < PROVING and at - life.seen[1] < QUIET - SOON:
            self.blame(
                "I14", f"{one.claim.id} was charged, and only {life.ok_at_claim - life.seen[0]} others succeeded"
            )

    def _may_be_buried(self, life: Life, one: Settlement, at: float) -> bool:
        if one.kind is Kind.EXPIRED:
            return self.peak >= life.expires_at - 60.0
        used_up = life.charged + one.charged >= life.job.attempts
        return one.kind is Kind.REFUSED or used_up or one.claim.claims - life.charged >= MOST_UNCHARGED

    # People

    def _acted(self, entry: h.Acted) -> None:
        life = self.lives.get(entry.seen.id)
        if entry.refused or life is None:
            return
        name = f'"{entry.event}" on {entry.seen.id} as seen with token {entry.seen.token}'
        if life.token != entry.seen.token:
            self.blame("I7", f"{name} was carried out; it is token {life.token} now")
        if life.running and entry.event is not Event.ASK_CANCEL and not self.leases.may_be_gone(life.worker):
            self.blame("I7", f"{name} was carried out, and it is running")
        if life.state in (State.DONE, State.CANCELLED):
            self.blame("I8", f"{name} was carried out; it is {life.state}")
        self.acts[entry.event.value, entry.seen.id] += 1
        life.acted_on(entry.event, entry.at)
        self.done += entry.event is Event.CONFIRM
        self.keys.ended(life)

    # Leases, upkeep, figures

    def _leased(self, entry: h.Leased) -> None:
        self.leases.leased(entry)

    def _kept(self, entry: h.Kept) -> None:
        self.leases.upkeep_begins(entry)

    def _swept(self, entry: h.Swept) -> None:
        self.leases.upkeep_ends(entry)

    def _born(self, entry: h.Born) -> None:
        self.leases.patient_since(entry.process, entry.on)

    def _trouble(self, entry: h.Trouble) -> None:
        if entry.call not in ("renew", "note", "enlist", "retire"):
            self.leases.patient_since(entry.process, entry.on)

    def _stepped(self, entry: h.Stepped) -> None:
        self.peak = max(self.peak, entry.before, entry.after)
        self.leases.it_is(entry.before)
        self.leases.it_is(entry.after)
        self.pacing.stepped()

    def _counted(self, entry: h.Counted) -> None:
        if entry.accepted != self.accepted:
            self.blame("I23", f"the figures say {entry.accepted} accepted, {self.accepted} were")
        if entry.done != self.done:
            self.blame("I23", f"the figures say {entry.done} done, {self.done} were")

    # The end

    def end(self, final: h.Final) -> None:
        """Compare what was told with what is there."""
        self.peak = max(self.peak, final.at)
        if not final.drained:
            waiting = [f"{job.id} ({job.state})" for job in final.jobs.values() if job and not job.state.final]
            self.blame("I22", f"after the healing not everything came to an end: {', '.join(waiting[:5])}")
        for id, job in final.jobs.items():
            self._look_at_end(id, job)
        self._look_at_figures(final)
        self._look_at_audit(final.audit)
        self._look_at_who_ran_late(final)

    def _look_at_end(self, id: str, job: Job | None) -> None:
        life = self.lives.get(id)
        if life is None:
            if job is not None:
                promise = "I4" if id in self.rolled_back else "I3"
                self.blame(promise, f"{id} is there, and nobody has put it")
        elif job is None:
            if not life.may_be_forgotten(self.peak):
                promise = "I26" if life.state is not None else "I2" if life.acknowledged else "I1"
                self.blame(promise, f"{id} is gone; it was {life.state or 'not at its end'}")
        else:
            self._compare(life, job)

    def _compare(self, life: Life, job: Job) -> None:
        if life.state is not None and life.state.final and job.state is not life.state:
            self.blame("I8", f"{job.id} was {life.state}, and is {job.state}")
        if job.seq != life.seq or (job.token != life.token):
            self.blame("I1", f"{job.id} is seq {job.seq} token {job.token}; it was seq {life.seq} token {life.token}")
        lines = defaultdict(set)
        for line in job.history:
            lines[line.token].add(line.event)
        for token, event in life.ends:
            if event not in lines[token]:
                self.blame("I12", f"{job.id}: the end ({event}) of token {token} is not in its history")
        silent = [token for token in range(1, life.token + (job.state is not State.RUNNING)) if not lines[token]]
        if silent:
            self.blame("I12", f"{job.id}: nothing in its history tells how token {silent[0]} ended")
        self._look_at_expiry(life, job)

    def _look_at_expiry(self, life: Life, job: Job) -> None:
        """By its own history: it expires so long after it was due, or after it was revived."""
        begun = life.due_at
        for line in job.history:
            if line.event is Event.REVIVE:
                begun = line.finished_at
            early = begun + life.job.expires - line.finished_at
            if line.event is Event.EXPIRE and early > SOON:
                self.blame("I13", f"{job.id} expired {early:.3f} s too early")

    def _look_at_figures(self, final: h.Final) -> None:
        rows = Counter(job.state for job in final.listed)
        shown = {
            State.DEAD: final.backlog.total("dead"),
            State.RUNNING: final.backlog.total("running"),
            State.UNCLEAR: final.backlog.total("unclear"),
            State.HANDED_OVER: final.backlog.total("handed_over"),
        }
        for state, n in shown.items():
            if rows[state] != n:
                self.blame("I23", f"{n} are counted as {state}, there are {rows[state]}")
        if (final.backlog.accepted, final.backlog.done) != (self.accepted, self.done):
            figures = f"{final.backlog.accepted} accepted and {final.backlog.done} done"
            self.blame("I23", f"the figures say {figures}; it were {self.accepted} and {self.done}")
        twice = [id for id, n in Counter(job.id for job in final.listed).items() if n > 1]
        known = {job.id for job in final.jobs.values() if job is not None}
        if twice or known != {job.id for job in final.listed}:
            self.blame("I1", f"the list shows {twice or known ^ {job.id for job in final.listed}} wrongly")

    def _look_at_audit(self, audit: Sequence[Mapping[str, Any]]) -> None:
        written = Counter((record["act"], id) for record in audit for id in record["ids"])
        for act in written | self.acts:
            if written[act] != self.acts[act]:
                self.blame(
                    "I8", f"{act[0]} on {act[1]}: {self.acts[act]} times done, {written[act]} times in the audit"
                )

    def _look_at_who_ran_late(self, final: h.Final) -> None:
        if final.running_late:
            alive, running = final.running_late
            for seq, _, id in running:
                life = self.by_seq.get(seq)
                if life is not None and life.worker not in alive and life.running:
                    self.blame("I11", f"{id} was still held by a dead worker two leases after the healing")
