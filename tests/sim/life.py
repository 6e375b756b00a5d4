"""What the judge knows of one job."""

from __future__ import annotations

from treppe.job import Claim, Event, NewJob, Repeat, Settlement, State


class Life:
    """A job as the history tells it. ``state`` is None while it is on its way; only certain ends are noted."""

    def __init__(self, job: NewJob, seq: int, at: float, told: bool) -> None:
        self.job, self.seq = job, seq
        self.due_at = self.run_at = job.at if job.at is not None else at + job.delay
        self.expires_at = self.due_at + job.expires
        self.acknowledged = told
        self.token = self.worker = self.charged = 0
        self.state: State | None = None
        self.ended_at = 0.0
        self.running = False  # claimed, and no end of that claim is known (it may have lapsed)
        self.suspect = False  # it may be one
        self.revived = False
        self.cancel = False
        self.has_acted = False  # since the last decision of a human
        self.ended_by = "nothing"
        self.ends: list[tuple[int, Event]] = []
        self.seen: tuple[int, float] | None = None
        self.ok_at_claim = 0
        self.confirm_by = 0.0

    @property
    def must_not_repeat(self) -> bool:
        """Its last claim has not ended as far as anybody knows, and it must not be repeated."""
        unknown = self.running or self.state is State.UNCLEAR
        return unknown and self.job.repeat is Repeat.ASK and self.token > 0

    def claimed(self, claim: Claim, ok: int) -> None:
        self.suspect = claim.suspect
        self.token, self.worker, self.running = claim.token, claim.worker, True
        self.state, self.ended_by, self.run_at = None, "nothing", 0.0
        self.ok_at_claim = ok

    def settled(self, one: Settlement, at: float) -> None:
        """Take in a settlement that counted."""
        event = one.event
        if event is Event.DEFER and self.cancel:
            event = Event.CANCEL
        self.running, self.ended_by = False, f"settle {event}"
        self.ends.append((one.claim.token, event))
        if event is Event.DEFER:
            self.state, self.charged, self.run_at = None, self.charged + one.charged, at + one.delay
        elif event is Event.HAND_OVER:
            self.state, self.confirm_by = State.HANDED_OVER, at + one.confirm_within
        elif event is Event.DOUBT:
            self.state = State.UNCLEAR
        else:
            self._end(event, at)

    def acted_on(self, event: Event, at: float) -> None:
        """Take in a human's act that counted."""
        if event is Event.ASK_CANCEL:
            self.cancel = True
        elif event is Event.REVIVE:
            self.running, self.ended_by, self.state, self.revived = False, "revive", None, True
            self.charged, self.cancel, self.has_acted, self.seen = 0, False, False, None
            self.run_at, self.expires_at = at, at + self.job.expires
        else:
            self.running, self.ended_by = False, f"act {event}"
            self._end(event, at)

    def may_be_forgotten(self, peak: float) -> bool:
        """Retention may have taken it: its end was long enough ago, as far as the clock ever got."""
        if self.state is None and self.cancel:  # its worker may have vanished, which cancels it
            return True
        return self.state in (State.DONE, State.CANCELLED) and peak >= self.ended_at + self.job.keep

    def _end(self, event: Event, at: float) -> None:
        done = {Event.CANCEL: State.CANCELLED, Event.BURY: State.DEAD}
        self.state, self.ended_at = done.get(event, State.DONE), at
