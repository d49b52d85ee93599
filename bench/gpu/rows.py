"""The goals for calls on GPU memory, and the pure part of judging them."""

import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from goals import KIB, MIB, OURS, STATES, Judgement, geometric_mean, keeps, name_of_size, worst_of  # noqa: E402

NCCL, NCCL_TESTS, PROCESSES, COPY, PREDICTED = "NCCL", "nccl-tests", "Seto processes", "copy", "predicted"
OWN, SHARED = "a GPU for each", "one GPU"
RANKS = (2, 4, 8)
SMALL, LARGE = (8, 16 * KIB), (MIB, 256 * MIB)
QUICK_MOST = 4 * MIB
SOFTWARE_MOST = 16 * KIB  # the software GPU executes some million instructions a second


@dataclass(frozen=True)
class Case:
    """Calls of one number of ranks, which are measured by one launch of each contender."""

    place: str
    ranks: int

    @property
    def title(self):
        return f"{self.ranks} ranks, {self.place}"

    @property
    def gpus(self):
        return self.ranks if self.place == OWN else 1


@dataclass(frozen=True)
class Row:
    """The time of our calls as a multiple of another one's in the same round (`time`), or the reverse (`speed`)."""

    key: str
    case: Case
    lower: int
    upper: int
    measure: str
    bound: float
    against: tuple  # the fastest of these at each size

    @property
    def what(self):
        return f"all_reduce, {self.case.title}, {name_of_size(self.lower)} - {name_of_size(self.upper)}"

    @property
    def goal(self):
        other = {NCCL: "NCCL", COPY: "a copy of the bytes of all ranks", PREDICTED: "the prediction"}[self.against[0]]
        return f"time <= {self.bound}x {other}" if self.measure == "time" else f">= {self.bound}x {other}"


CASES = tuple(Case(place, ranks) for place in (OWN, SHARED) for ranks in RANKS)
OF_NCCL = {"small": 1.0, "large": 0.9}
OF_PREDICTION, OF_COPY = 1.5, 0.5


def rows_of(case):
    if case.place == OWN:
        return (
            Row(f"own{case.ranks}-small", case, *SMALL, "time", OF_NCCL["small"], (NCCL, NCCL_TESTS)),
            Row(f"own{case.ranks}-large", case, *LARGE, "speed", OF_NCCL["large"], (NCCL, NCCL_TESTS)),
        )
    # NCCL refuses two ranks on one GPU.
    return (
        Row(f"one{case.ranks}-small", case, *SMALL, "time", OF_PREDICTION, (PREDICTED,)),
        Row(f"one{case.ranks}-large", case, *LARGE, "speed", OF_COPY, (COPY,)),
    )


ROWS = tuple(row for case in CASES for row in rows_of(case))
KEYS = tuple(row.key for row in ROWS)


def sizes_up_to(most):
    """Every second power of two in the ranges of the rows, up to a number of bytes."""
    return [size for lower, upper in (SMALL, LARGE) for size in (lower * 4**k for k in range(16)) if size <= min(upper, most)]


def ratios_of(row, figures):
    """{size: ratio} from {contender: {size: us}} of one round."""
    ours = figures.get(OURS, {})
    best = {}
    for contender in row.against:
        for size, time in figures.get(contender, {}).items():
            best[size] = min(time, best.get(size, time))
    common = [size for size in ours if size in best and row.lower <= size <= row.upper]
    return {size: ours[size] / best[size] if row.measure == "time" else best[size] / ours[size] for size in common}


def judge(row, rounds):
    """rounds: [{contender: {size: us}}]. The median over the rounds of the ratio at each size, and the mean over the sizes."""
    taken = [ratios for ratios in (ratios_of(row, figures) for figures in rounds) if ratios]
    if not taken:
        return dict.fromkeys(STATES)
    sizes = sorted(set().union(*taken))
    ratios = {size: statistics.median(found[size] for found in taken if size in found) for size in sizes}
    mean = geometric_mean(ratios.values())
    text = f"{mean:.2f}x ({worst_of(ratios, row.measure)}, {len(taken)} rounds)"
    return dict.fromkeys(STATES, Judgement("any", text, keeps(mean, row.bound, row.measure), {"mean": mean, "ratios": ratios}))


def bus_gb_s(ranks, size, time_us):
    return size / time_us / 1e3 * 2 * (ranks - 1) / ranks


def ours_of(document):
    """{size: us} from the JSON of all_reduce_perf; a wrong result is an error."""
    times = {}
    for entry in document["results"]:
        wrong = entry["out_of_place"].get("nwrong")
        if wrong not in (None, "N/A") and float(wrong):
            raise ValueError(f"{wrong} wrong elements at {entry['size']} bytes")
        times[entry["size"]] = float(entry["out_of_place"]["time"])
    return times


def times_of_table(text):
    """{size: us} from what all_reduce_perf of nccl-tests prints: size, count, type, redop, root, and the time out of place."""
    pattern = re.compile(r"^\s+(\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+\s+([\d.]+)\s", re.MULTILINE)
    return {int(size): float(time) for size, time in pattern.findall(text)}


def predicted_of(document):
    """{size: us} from the JSON of seto plan simulate --memory device: calls as the library cuts them now."""
    return {entry["cut_as_now"]["bytes"]: entry["cut_as_now"]["seconds"] * 1e6 for entry in document["sizes"]}


def gpus_of(document):
    """(names of the GPUs, why there are none) from the JSON of seto info gpus."""
    facts = document["gpus"]
    names = [fact["value"] for name, fact in facts.items() if name.startswith("GPU ")]
    driver = facts.get("CUDA driver", {})
    return names, "" if names else driver.get("remark") or driver.get("value", "no GPU")


def why_not(case, names):
    """The reason why a case cannot be measured on this machine; empty if it can."""
    return "" if len(names) >= case.gpus else f"needs {case.gpus} GPUs, this machine has {len(names)}"
