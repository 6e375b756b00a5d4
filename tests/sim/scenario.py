"""What a seed means: how large the world is, what runs in it, and how much goes wrong."""

from __future__ import annotations

from random import Random

import msgspec

from tests.sim.faults import Strength
from treppe.config import Rate
from treppe.policy.pace import Limits

RATED, NARROW, FREE, KEYED = "rated", "narrow", "free", "keyed"
QUEUES = (RATED, NARROW, FREE, KEYED)


class Scenario(msgspec.Struct, frozen=True):
    """Everything that is decided before the first step."""

    seed: int
    workers: int
    threads: int
    drains: bool  # the first worker is a drain that somebody starts again and again
    producers: int
    puts: int  # of each producer
    active: float  # seconds in which things go wrong
    limits: dict[str, Limits]
    target_most: int | None
    strength: Strength
    kills: float  # seconds between two of them, on average; 0 = none
    stops: float
    steps: float
    outages: float  # of the store
    moods: float  # troubles of the destinations
    people: float  # human acts
    poison: float  # share of jobs that kill their worker
    short_lives: bool  # small expires and keep
    confirms: bool  # who is handed a job tells when it is done


def drawn(seed: int) -> Scenario:
    """The scenario of a seed. Many are calm in one respect or another, so that effects do not mask each other."""
    dice = Random(seed)
    rough = dice.random()
    return Scenario(
        seed=seed,
        workers=dice.choice((1, 2, 2, 3)),
        threads=dice.choice((1, 2, 4)),
        drains=dice.random() < 0.3,
        producers=dice.choice((1, 2, 3)),
        puts=dice.choice((8, 15, 30)),
        active=dice.choice((20.0, 40.0, 80.0)),
        limits=_limits(dice),
        target_most=dice.choice((None, None, 8)),
        strength=_strength(dice, rough),
        kills=dice.choice((0.0, 6.0, 15.0)),
        stops=dice.choice((0.0, 10.0)),
        steps=dice.choice((0.0, 0.0, 15.0)),
        outages=dice.choice((0.0, 20.0)),
        moods=dice.choice((0.0, 8.0, 20.0)),
        people=dice.choice((0.3, 1.0, 5.0)),
        poison=dice.choice((0.0, 0.0, 0.03)),
        short_lives=dice.random() < 0.5,
        confirms=seed % 2 == 0,
    )


def _limits(dice: Random) -> dict[str, Limits]:
    n = dice.choice((3, 5, 10))
    return {
        RATED: Limits(
            Rate(n, dice.choice((1.0, 2.0))), burst=dice.choice((1, 1, 2)), concurrent=dice.choice((None, 2))
        ),
        NARROW: Limits(concurrent=dice.choice((1, 2, 3))),
    }


def _strength(dice: Random, rough: float) -> Strength:
    if rough < 0.2:
        return Strength()
    level = dice.choice((0.003, 0.01, 0.03))
    return Strength(
        failed=level, unknown=level, later=level * dice.choice((0.0, 1.0, 2.0)), crash=level / 3, slow=level / 3
    )
