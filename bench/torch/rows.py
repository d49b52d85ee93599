"""The goals for PyTorch over the library, and the pure part of judging them."""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from goals import MIB, geometric_mean, judge_plain, name_of_size, sizes_of  # noqa: E402

SETO, GLOO = "seto", "gloo"
BACKENDS = (SETO, GLOO)
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
RANKS = (2, 4)
SIZES = tuple(sizes_of(4, 64 * MIB))
KINDS = ("ddp", "fsdp")
SHARE = (0.30, 0.50)  # allowed share of communication in a step with gloo, in the measured model
QUALITIES = {"fp16": 0.001, "int8 with error feedback": 0.01}
SHOWN = "int8"  # shown with them, without a row
STEPS_OF_QUALITY, RANKS_OF_QUALITY = 300, 4


@dataclass(frozen=True)
class Row:
    key: str
    what: str
    goal: str
    bound: float
    unit: str
    at_most: bool

    def judged(self, figures):
        return judge_plain([figure for figure in figures if figure is not None], self.bound, self.unit, self.at_most)


CALLS = ", ".join(COLLECTIVES)
MEANS = {n: Row(f"mean-{n}", f"{CALLS}, 4 B - 64 MiB, {n} ranks", ">= 2x gloo's speed (mean)", 2.0, "x", False) for n in RANKS}
WORST = {n: Row(f"worst-{n}", f"the same, worst point, {n} ranks", ">= 0.95x gloo's speed", 0.95, "x", False) for n in RANKS}
STEPS = {kind: Row(kind, f"a step of {kind.upper()}, 2 ranks", "<= 0.85x gloo's time", 0.85, "x", True) for kind in KINDS}
OVERHEAD = Row("overhead", "Backend::allreduce and wait beyond setoAllReduce, 8 B", "<= 3 us", 3.0, "us", True)
QUALITY = {
    what: Row("quality-" + what.split()[0], f"final loss after {STEPS_OF_QUALITY} steps, {what}", f"within {bound:.1%} of uncompressed", 100 * bound, "%", True)
    for what, bound in QUALITIES.items()
}
ROWS = (*MEANS.values(), *WORST.values(), *STEPS.values(), OVERHEAD, *QUALITY.values())
KEYS = tuple(row.key for row in ROWS)


def ratios_of(entries):
    """{(collective, size): [gloo's time / ours, by round]} of entries with collective, size, backend, round, us."""
    times = {(e["collective"], e["size"], e["round"], e["backend"]): e["us"] for e in entries}
    ratios = {}
    for (collective, size, number, backend), own in times.items():
        other = times.get((collective, size, number, GLOO))
        if backend == SETO and other is not None:
            ratios.setdefault((collective, size), []).append(other / own)
    return ratios


def medians_of(ratios):
    return {point: statistics.median(found) for point, found in ratios.items()}


def means_by_round(ratios):
    """The geometric mean over all points, for each round that has them all."""
    rounds = min((len(found) for found in ratios.values()), default=0)
    return [geometric_mean(found[number] for found in ratios.values()) for number in range(rounds)]


def worst_of_points(ratios):
    """(point, median ratio) of the worst point; None without points."""
    return min(medians_of(ratios).items(), key=lambda item: item[1], default=None)


def name_of_point(point):
    collective, size = point
    return f"{collective} {name_of_size(size)}"


def share_fits(share):
    return SHARE[0] <= share <= SHARE[1]


def distance(loss, exact):
    """The difference in percent of the loss without a codec."""
    return abs(loss - exact) / exact * 100
