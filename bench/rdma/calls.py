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


@dataclass(frozen=True)
class CallsRow:
    """All sizes of one number of ranks. It has no goal: the machine is emulated, and says little of other ones."""

    ranks: int

    @property
    def key(self):
        return f"calls-{self.ranks}"

    @property
    def contenders(self):
        names = {"rdma": "rails", "mpi": "Open MPI", "tcp": "TCP"}
        return tuple(rows.Contender(f"{name}-{self.ranks}", f"bench/rdma/calls.sh {medium} {self.ranks}", times_of) for medium, name in names.items())

    def verdict(self, samples):
        return rows.NO_GOAL if samples.get(self.contenders[0].key) else rows.NOT_MEASURED

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
        return "\n".join(lines)


ROWS = (CallsRow(2), CallsRow(4))
