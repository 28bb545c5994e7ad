"""What a seed stands for: a flow, its processes, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Literal

Mode = Literal["one way", "skip", "turns", "functions"]

ONE_WAY = ("one way", "functions")


@dataclass(frozen=True)
class Fault:
    """Something that happens `at` so many seconds of the schedule; `how` are numbers from 0 to 1 that say how."""

    at: float
    kind: str
    how: tuple[float, ...]

    def __str__(self) -> str:
        return f"{self.at:7.2f} s {self.kind} {' '.join(f'{one:.3f}' for one in self.how)}"


@dataclass(frozen=True)
class Setup:
    """What a schedule begins with.

    `mode`: a flow of its own, two that skip what the other one copied, two that take turns (both keep names), or a flow
    of its own that functions copy, every `lease_s` seconds, in so many `shares`. Brokers look every 0.3 s for producers
    whose records are `expiry_s` old, and forget them; 0: a day.
    """

    partitions: int
    copiers: int
    identical: bool
    transactions: bool
    old: bool
    pass_gaps: bool
    leave_out: bool
    seconds: float
    lease_s: float
    tick_s: float
    mode: Mode = "one way"
    expiry_s: float = 0.0
    shares: int = 1


KINDS = {
    "kill": 6,
    "suspend": 6,
    "restart": 3,
    "lose requests": 8,
    "lose answers": 8,
    "hold link": 5,
    "slow link": 2,
    "broker down": 3,
    "leader moves": 8,
    "followers stop": 4,
    "tail lost": 4,
    "source tail lost": 2,
    "producers expire": 4,
    "retention": 3,
    "source recreated": 2,
    "target recreated": 2,
    "partition added": 2,
    "fence": 3,
    "progress moves": 2,
}
"""Kinds of faults with their weights."""
FORGETFUL = 0.06
"""So many of the schedules of one way have brokers that soon forget producers."""
CLEANED = "source cleaned"
"""Log compaction: added to some schedules, beside what was drawn of the kinds."""
SOURCE_LOSES = frozenset({"source tail lost", "source recreated"})
TARGET_LOSES = frozenset({"tail lost", "target recreated"})
"""Never both in one schedule: what the target lost is then counted back from an end that the source does not have any
more, and some records are copied again (seed 1170 of the first version). Log compaction counts as a loss of the
source: it has fewer records than the target lost."""


def setup_of(seed: int) -> tuple[Setup, list[Fault]]:
    """What a seed stands for."""
    random, later = Random(f"copy {seed}"), Random(f"modes {seed}")
    identical = random.random() < 0.3
    setup = Setup(
        partitions=random.choice((1, 1, 2, 3)),
        copiers=random.choice((1, 1, 2, 2, 3)),
        identical=identical,
        transactions=random.random() < 0.4,
        old=random.random() < 0.15,
        pass_gaps=random.random() < 0.8,
        leave_out=random.random() < 0.3,
        seconds=random.choice((5.0, 10.0, 20.0)),
        lease_s=random.choice((3.0, 8.0, 20.0)),
        tick_s=random.choice((0.05, 0.1, 0.25)),
    )
    mode: Mode = later.choices(("one way", "skip", "turns", "functions"), (5, 2, 1, 2))[0]
    setup = replace(setup, mode=mode, identical=setup.identical and mode in ONE_WAY)
    if setup.old:
        setup = replace(setup, copiers=1)
    forgetful = Random(f"soon forgotten {seed}")
    if mode in ONE_WAY and not setup.identical and forgetful.random() < FORGETFUL:
        setup = _forgetful(setup, forgetful)
    spared = random.choice((SOURCE_LOSES, TARGET_LOSES))
    kinds = [kind for kind in KINDS if _applies(kind, setup) and kind not in spared]
    some = random.sample(kinds, k=min(len(kinds), random.choice((2, 4, 8, 20))))
    weights = [KINDS[kind] for kind in some]
    count = random.choice((0, 2, 4, 8, 16))
    faults = [
        Fault(
            random.random() * setup.seconds,
            random.choices(some, weights)[0],
            tuple(random.random() for _ in range(4)),
        )
        for _ in range(count)
    ]
    faults += [
        Fault(later.random() * setup.seconds, CLEANED, tuple(later.random() for _ in range(4)))
        for _ in range(later.choice((0, 0, 0, 1, 2, 4)))
        if setup.mode in ONE_WAY and spared is TARGET_LOSES
    ]
    if setup.expiry_s:
        faults += [
            Fault(
                forgetful.random() * setup.seconds,
                forgetful.choice(("kill", "kill", "kill", "hold link", "lose answers", "restart")),
                tuple(forgetful.random() for _ in range(4)),
            )
            for _ in range(forgetful.choice((4, 8, 16)))
        ]
    return setup, sorted(faults, key=lambda one: one.at)


def _forgetful(setup: Setup, random: Random) -> Setup:
    """Have brokers forget producers while several processes copy, which are killed."""
    shares = random.choice((1, 3, 3)) if setup.mode == "functions" else 1
    return replace(
        setup,
        partitions=setup.partitions + 3 if shares > 1 else setup.partitions,
        copiers=random.choice((2, 3)),
        old=random.random() < 0.2,
        seconds=random.choice((30.0, 120.0)),
        lease_s=random.choice((3.0, 8.0)),
        expiry_s=random.choice((0.3, 0.3, 2.0, 10.0)),
        shares=shares,
    )


def _applies(kind: str, setup: Setup) -> bool:
    if (setup.identical or setup.mode == "turns") and kind in SOURCE_LOSES | TARGET_LOSES:
        return False  # with identical offsets nothing but a copy into an empty topic repairs these
    if setup.mode == "skip" and kind in SOURCE_LOSES | {"tail lost"}:
        return False  # both are sources: of a shared log that lost its tail, not all can be known
    if setup.mode == "turns" and kind == "partition added":
        return False  # the turn names the partitions
    # Two runs with records that the target forgets: decision 0012.
    return not (setup.old and kind == "suspend")
