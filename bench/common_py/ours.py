"""Our own programs, which take nccl-tests' flags, as contenders."""

import json
import tempfile
from pathlib import Path

from peers import Unavailable

OUR_PROGRAMS = {
    "all_reduce": "all_reduce_perf",
    "all_gather": "all_gather_perf",
    "reduce_scatter": "reduce_scatter_perf",
    "broadcast": "broadcast_perf",
    "all_to_all": "alltoall_perf",
}


class OurProgram:
    """One launch for each of the group's call numbers. Each table defines how ranks start and which result is read."""

    errors = (Unavailable, OSError, KeyError, ValueError)

    def __init__(self, name, build, arguments=()):
        self.name, self.build, self.arguments = name, build, list(arguments)

    def start(self, group, command, file):
        """Runs all ranks, which write the figures to the file."""
        raise NotImplementedError

    def warm_ups(self, count):
        raise NotImplementedError

    def figure_of(self, entry, group):
        return time_of(entry["out_of_place"])

    def measure(self, group, scale):
        return self.times(group, scale)

    def program(self, group):
        return self.build / "bench" / OUR_PROGRAMS[group.collective]

    def launch(self, group, lower, upper, extra):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "figures.json"
            command = [self.program(group), "-b", lower, "-e", upper, "-f", 2, "--one-place", 1, *self.arguments, *extra]
            self.start(group, [str(word) for word in command], str(file))
            return json.loads(file.read_text())["results"]

    def times(self, group, scale):
        times, lower = {}, group.lower
        for upper, calls in group.calls:
            count = max(int(calls * min(scale, 1.0)), 2)
            for entry in self.launch(group, lower, upper, ["-n", count, "-w", self.warm_ups(count), "-c", 0]):
                if entry["size"] in group.all_sizes:
                    times[entry["size"]] = self.figure_of(entry, group)
            lower = upper * 2
        missing = [size for size in group.all_sizes if size not in times]
        if missing:
            raise Unavailable(f"its JSON lacks the sizes {missing}")
        return times

    def check(self, group):
        """One verified call of every size before anything is timed, because a fast wrong result must not count."""
        for entry in self.launch(group, group.lower, group.upper, ["-n", 1, "-w", 0, "-c", 1]):
            for placement in {"out_of_place", "in_place"} & entry.keys():  # all_to_all has no in-place form
                wrong = entry[placement].get("nwrong")
                if wrong not in (None, "N/A") and float(wrong):
                    raise Unavailable(f"{wrong} wrong elements at {entry['size']} bytes {placement}")

    def why_not(self, group):
        """The reason why it cannot be measured in a group; empty if it is built and gives right results."""
        if not self.program(group).exists():
            return f"{self.program(group).name} is not built"
        try:
            self.check(group)
            return ""
        except self.errors as error:
            return str(error) or type(error).__name__


def time_of(placement):
    """Microseconds of one result of nccl-tests."""
    return float(placement["time"] if "time" in placement else placement["cpu_time"])
