"""Rows of whole calls: all_reduce over rails, against Open MPI over the same devices and against our own TCP. Only data and pure functions."""

import json
import statistics
from dataclasses import dataclass

import rows

SIZES = tuple(8**power for power in range(1, 9))  # to 16 MiB


def times_of(output):
    """Size -> microseconds; of a size that occurs more than once the last. None: a size is missing, or a result was wrong."""
    times = {}
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        entry = json.loads(line)
        if entry["wrong"]:
            return None
        times[entry["size"]] = entry["time_us"]
    return times if set(SIZES) <= set(times) else None


def text_of_size(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


SHORT = 4096
SLACK = 1.1  # of the choice: its trials cost something
NAMES = {"rdma": "rails", "auto": "chosen", "mpi": "Open MPI", "tcp": "TCP"}


@dataclass(frozen=True)
class CallsRow:
    """All sizes of one number of ranks: rails alone are to be faster than Open MPI at each size, and than our TCP at the short ones, and the
    choice between both is to take what is faster."""

    ranks: int

    @property
    def key(self):
        return f"calls-{self.ranks}"

    @property
    def contenders(self):
        return tuple(rows.Contender(f"{name}-{self.ranks}", f"bench/rdma/calls.sh {medium} {self.ranks}", times_of) for medium, name in NAMES.items())

    def medians(self, samples):
        """Name -> size -> median. A contender with too few samples is missing."""
        found = {}
        for name in NAMES.values():
            figures = samples.get(f"{name}-{self.ranks}", [])
            if len(figures) >= rows.LEAST_SAMPLES:
                found[name] = {size: statistics.median(each[size] for each in figures) for size in SIZES}
        return found

    def goals(self, medians):
        """Text of each goal -> whether it is met, by size; None: not measured."""
        rails, chosen, mpi, tcp = (medians.get(name) for name in NAMES.values())
        return {
            "rails faster than Open MPI": rails and mpi and {size: rails[size] < mpi[size] for size in SIZES},
            f"rails faster than TCP to {text_of_size(SHORT)}": rails and tcp and {size: rails[size] < tcp[size] for size in SIZES if size <= SHORT},
            f"chosen within {SLACK:g} x of the faster": rails
            and chosen
            and tcp
            and {size: chosen[size] <= SLACK * min(rails[size], tcp[size]) for size in SIZES},
        }

    def verdict(self, samples):
        goals = self.goals(self.medians(samples)).values()
        if not all(goals):
            return rows.NOT_MEASURED
        return "met" if all(all(sizes.values()) for sizes in goals) else "missed"

    def ratio(self, samples):
        return None

    def text(self, samples):
        lines = [f"all_reduce of {self.ranks} ranks, us, and time of rails / its time:"]
        for size in SIZES:
            figures = [[sample[size] for sample in samples.get(one.key, [])] for one in self.contenders]
            medians = [statistics.median(each) if each else None for each in figures]
            words = [f"{text_of_size(size):>8}"]
            for one, median in zip(self.contenders, medians):
                ratio = f" ({medians[0] / median:.2f} x)" if median and medians[0] and one != self.contenders[0] else ""
                words.append(f"{one.key} " + (f"{median:.0f}" if median else "-") + ratio)
            lines.append(" | ".join(words))
        for goal, sizes in self.goals(self.medians(samples)).items():
            lines.append(f"{goal} | " + (f"at {sum(sizes.values())} of {len(sizes)} sizes | {'met' if all(sizes.values()) else 'missed'}" if sizes else rows.NOT_MEASURED))
        return "\n".join(lines)


ROWS = (CallsRow(2), CallsRow(4))
