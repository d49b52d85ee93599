"""The rows of a comparison of two builds, and the pure part of judging them."""

import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from goals import KIB, MIB, NOT_MEASURED, STATES, Group, Judgement, name_of_size  # noqa: E402

OLD, NEW, OLD_AGAIN = "old", "new", "old again"
SHARED_MEMORY, TCP = "shared memory", "TCP loopback"
ALLOWED = 1.03  # limit of the new time over the old one, beyond the difference of two equal builds
LEAST_SAMPLES = 3  # of each build in a state
SPLITS, WITHIN = 500, 0.9  # random splits of the old samples, and the share of them that lies within the placebo spread


@dataclass(frozen=True)
class Case:
    """One size of an all_reduce between processes of this machine."""

    transport: str
    ranks: int
    size: int
    calls: int

    @property
    def group(self):
        return Group("all_reduce", self.ranks, self.size, self.size, calls=((self.size, self.calls),), place=self.transport)

    @property
    def key(self):
        medium = "tcp" if self.transport == TCP else "shm"
        return f"{medium}-{self.ranks}-{name_of_size(self.size)}"

    @property
    def what(self):
        return f"all_reduce {name_of_size(self.size)}, {self.ranks} processes, {self.transport}"


CALLS = {8: 20_000, 4 * KIB: 20_000, MIB: 500, 64 * MIB: 12}
CASES = tuple(Case(SHARED_MEMORY, ranks, size, calls if ranks == 2 else max(calls // 4, 8)) for ranks in (2, 4) for size, calls in CALLS.items())
CASES += (Case(TCP, 2, 64 * KIB, 2000), Case(TCP, 2, 16 * MIB, 20))
KEYS = tuple(case.key for case in CASES)
GOAL = f"time <= {ALLOWED}x beyond the placebo"


def times_of(samples, case, names, state):
    """Microseconds of the samples of these builds in one state."""
    return [s.times[case.size] for s in samples if s.group == case.group and s.contender in names and s.state == state]


def larger_ratio(first, second):
    return max(first / second, second / first)


def placebo_spread(times, seed=1):
    """The factor (>= 1) by which equal builds differ. The samples of the old build are split into two halves at random; 90 % of
    the splits have a ratio of the medians of at most this."""
    chance, ratios = random.Random(seed), []
    for _ in range(SPLITS):
        mixed = chance.sample(times, len(times))
        half = len(mixed) // 2
        ratios.append(larger_ratio(statistics.median(mixed[:half]), statistics.median(mixed[half:])))
    return sorted(ratios)[round(WITHIN * (SPLITS - 1))]


def judge_state(samples, case, state, least):
    """A case in one state; None with too few samples. The placebo's samples are samples of the old build."""
    new = times_of(samples, case, (NEW,), state)
    first, again = (times_of(samples, case, (name,), state) for name in (OLD, OLD_AGAIN))
    if min(len(new), len(first), len(again)) < least:
        return None
    old_us, new_us = statistics.median(first + again), statistics.median(new)
    ratio, spread = new_us / old_us, placebo_spread(first + again)
    text = f"old {old_us:.4g} us, new {new_us:.4g} us, ratio {ratio:.3f}, placebo spread {spread:.3f}"
    figures = {"old_us": old_us, "new_us": new_us, "ratio": ratio, "placebo_spread": spread, "samples": [len(first), len(new), len(again)]}
    return Judgement(state, text, ratio <= ALLOWED * spread, figures)


def judge_case(samples, case, least=LEAST_SAMPLES):
    """State -> Judgement or None."""
    return {state: judge_state(samples, case, state, least) for state in STATES}
