"""The goals for starting a job, and the pure part of judging them."""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from goals import judge_plain  # noqa: E402

COUNTS = (4, 16, 64)
OURS, PLACEBO = "seto run", "seto run again"
MPIS = ("Open MPI", "MPICH", "Intel MPI")
SCALES = {256: 3.0, 1024: 15.0}  # ranks -> seconds
ROOT_BYTES_STEP = 1024  # bytes for each rank and each doubling of the ranks, sent and received by the root


def under(mpi):
    return f"Seto under {mpi}"


@dataclass(frozen=True)
class LaunchRow:
    """The time from launch to exit of `ours` against the fastest of `against`."""

    key: str
    what: str
    processes: int
    ours: str
    against: tuple
    bound: float

    @property
    def goal(self):
        return f"<= {self.bound}x " + ("the best of the three" if len(self.against) > 1 else f"{self.against[0]} alone")


def key_of(name):
    return name.lower().replace(" ", "-")


ROWS = tuple(
    LaunchRow(f"run-{count}", f"seto run, {count} processes, launch to exit", count, OURS, MPIS, 0.8) for count in COUNTS
) + tuple(
    LaunchRow(f"{key_of(mpi)}-{count}", f"under {mpi}'s launcher, {count} processes", count, under(mpi), (mpi,), 1.1)
    for mpi in MPIS
    for count in COUNTS
)
SCALE_KEYS = tuple(f"ranks-{ranks}" for ranks in SCALES)
KEYS = tuple(row.key for row in ROWS) + SCALE_KEYS


def ratios_of(seconds, row):
    """The ratio of each round to the fastest other contender, the one with the lowest median, in the same round.

    seconds: {(contender, processes): {round: seconds}}.
    """
    ours = seconds.get((row.ours, row.processes), {})
    others = [seconds[key] for name in row.against if seconds.get(key := (name, row.processes))]
    if not others:
        return []
    best = min(others, key=lambda times: statistics.median(times.values()))
    return [ours[index] / best[index] for index in ours if index in best]


def judge_launch(seconds, row):
    return judge_plain(ratios_of(seconds, row), row.bound, "x", True)


def root_bytes_bound(ranks):
    """Bytes for each rank."""
    return (ranks - 1).bit_length() * ROOT_BYTES_STEP
