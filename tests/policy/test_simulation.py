"""Days in virtual time, by the real policies and the real settle step: what a user would see of them."""

import math
import random
from itertools import pairwise

import pytest

from tests.policy.simulation import Day
from treppe.config import Rate
from treppe.job import Kind, Outcome, Repeat
from treppe.policy.pace import Limits

MINUTE = 60.0
OUTAGE = 40 * MINUTE
OVER_20_MINUTES = [i * 1.2 for i in range(1000)]
AT_ONCE = [0.0] * 1000

OK = Outcome(Kind.OK)
FAILED = Outcome(Kind.FAILED, error="500")
TROUBLES = {"500": (0.03, FAILED), "hang": (30.0, FAILED), "down": (0.01, Outcome(Kind.DOWN, error="refused"))}


class Target:
    """A target that is in trouble from *begins* to *ends*, for *share* of the calls; *broken* jobs always fail."""

    def __init__(self, troubles, begins=0.0, ends=OUTAGE, share=1.0, broken=(), seed=1):
        self.troubles, self.begins, self.ends, self.share, self.broken = troubles, begins, ends, share, broken
        self.dice = random.Random(seed)

    def __call__(self, job, now):
        if job.seq in self.broken:
            return 0.03, FAILED
        if self.troubles and self.begins <= now < self.ends and self.dice.random() < self.share:
            return TROUBLES[self.dice.choice(self.troubles)]
        return self.dice.uniform(0.02, 0.08), OK


class Accounting:
    """300 calls per 15 s, then shut for the rest of it; each call while shut adds a second, up to 15."""

    def __init__(self, calls=300, seed=1):
        self.calls, self.left, self.ends, self.shut, self.added = calls, 0, -1.0, -1.0, 0.0
        self.dice = random.Random(seed)

    def __call__(self, job, now):
        if now < self.shut:
            extra = min(1.0, 15.0 - self.added)
            self.added, self.shut = self.added + extra, self.shut + extra
        elif now >= self.ends:
            self.ends, self.left, self.added = now + 15.0, self.calls, 0.0
        if now >= self.shut and self.left:
            self.left -= 1
            return self.dice.uniform(0.02, 0.06), OK
        self.shut = max(self.shut, self.ends)
        return 0.005, Outcome(Kind.THROTTLED, after=float(math.ceil(self.shut - now)))


def done(day):
    return [job for job in day.jobs if job.state == "done"]


# A remote side a fifth stricter than configured


@pytest.mark.parametrize("repeat", [Repeat.SAFE, Repeat.ASK])
@pytest.mark.parametrize("n", [1000, 20_000])
def test_a_stricter_target_throttles_at_most_once_per_three_minutes(repeat, n):
    day = Day(Accounting(), Limits(Rate(375, 15.0)), repeat=repeat).run([0.0] * n)
    assert len(done(day)) == n
    assert sum(job.charged for job in day.jobs) == 0
    assert day.holds[0][1] == "throttled"
    began = [at for at, _ in day.holds]
    assert all(later - earlier > 3 * MINUTE for earlier, later in pairwise(began))
    assert len([at for at in began if at < 10 * MINUTE]) <= 2
    assert max(job.ended for job in day.jobs) < n / 20 * 1.25 + 30


def test_a_target_that_is_far_stricter_is_found_out_step_by_step():
    day = Day(Accounting(calls=100), Limits(Rate(375, 15.0)), repeat=Repeat.ASK).run([0.0] * 6000)
    assert len(done(day)) == 6000
    assert max(job.ended for job in day.jobs) < 6000 / (100 / 15.0) * 1.35


def test_a_target_that_becomes_generous_again_gets_the_full_pace_back():
    strict, generous = Accounting(), Accounting(calls=10**9)
    day = Day(lambda job, now: (strict if now < 600 else generous)(job, now), Limits(Rate(375, 15.0)))
    day.run([0.0] * 60_000)
    last_minute = [at for at in day.starts if 2340 <= at < 2400]
    assert len(last_minute) == pytest.approx(25 * 60, rel=0.01)


# Outage and brown-out


@pytest.mark.parametrize("dues", [OVER_20_MINUTES, AT_ONCE], ids=["over 20 minutes", "at once"])
@pytest.mark.parametrize("begins", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("troubles", [["500"], ["hang"], ["down"], ["500", "hang", "down"]], ids="+".join)
def test_an_outage_of_40_minutes_costs_no_job_and_no_attempt(troubles, begins, dues):
    day = Day(Target(troubles, begins, begins + OUTAGE)).run(dues)
    assert len(done(day)) == 1000
    assert sum(job.charged for job in day.jobs) == 0
    assert len(day.starts) < 1000 + 60
    assert max(job.ended for job in day.jobs) < begins + OUTAGE + 10 * MINUTE


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dues", [OVER_20_MINUTES, AT_ONCE], ids=["over 20 minutes", "at once"])
@pytest.mark.parametrize("troubles", [["500"], ["hang"], ["down"], ["500", "hang", "down"]], ids="+".join)
def test_a_brown_out_with_half_the_calls_failing_costs_no_job_and_slows_the_queue_down(troubles, dues, seed):
    day = Day(Target(troubles, share=0.5, seed=seed), seed=seed).run(dues)
    assert len(done(day)) == 1000
    assert day.holds
    assert len(day.starts) < 2100


# Broken jobs


@pytest.mark.parametrize("seed", range(8))
def test_the_one_broken_job_on_a_healthy_target_is_found_out_within_the_hour(seed):
    day = Day(Target([], broken=[0], seed=seed), seed=seed).run(OVER_20_MINUTES)
    [dead] = day.dead()
    assert (dead.seq, dead.error) == (0, "5 of 5 attempts: 500")
    assert 2 * MINUTE < dead.ended - dead.due < 60 * MINUTE
    assert len(done(day)) == 999
    assert not day.holds


def test_a_lone_broken_job_is_charged_once_an_hour():
    day = Day(Target([], broken=[0])).run([0.0])
    assert [job.error for job in day.dead()] == ["5 of 5 attempts: 500"]
    assert day.jobs[0].ended > 5 * 3600


@pytest.mark.parametrize("every", [600.0, 1800.0, 3600.0, 5400.0])
def test_on_a_quiet_target_a_broken_job_is_found_out_within_a_day(every):
    day = Day(Target([], broken=[0])).run([i * every for i in range(200)])
    assert [job.seq for job in day.dead()] == [0]
    assert day.jobs[0].ended < 86400


def test_three_broken_jobs_on_a_quiet_target_cost_a_good_one_no_more_than_a_probe_each():
    """Alone at night they look like an outage, until one of the probes is a good job."""
    night = [0.0, 1.0, 2.0, *[3600.0 + 600.0 * i for i in range(30)]]
    day = Day(Target([], broken=[0, 1, 2])).run(night)
    assert len(done(day)) == 30
    assert all(job.ended - job.due < 4 * 5.5 * MINUTE for job in done(day))
