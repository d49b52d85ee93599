"""Our own programs and the limit programs, for the table of host memory; the peers are in common_py/peers.py."""

import json
import re
import tempfile
from pathlib import Path

import rows  # first: it knows where the common parts are
from peers import Setup as Peers
from peers import Unavailable, run_process, times_of_lines

OUR_PROGRAMS = {
    "all_reduce": "all_reduce_perf",
    "all_gather": "all_gather_perf",
    "reduce_scatter": "reduce_scatter_perf",
    "broadcast": "broadcast_perf",
    "all_to_all": "alltoall_perf",
}


class Limit:
    name = rows.LIMIT

    def __init__(self, program, timing="loop"):
        self.program, self.timing = program, timing

    def measure(self, group, scale):
        sizes = ",".join(str(size) for size in group.all_sizes)
        budget = (1.0 if self.timing == "each" else 0.5) * scale
        arguments = ["--ranks", group.ranks, "--sizes", sizes, "--json", "--timing", self.timing, "--budget", f"{budget:.3f}"]
        return times_of_lines(run_process([self.program, *arguments]))


class Yardstick:
    """Another limit program, by its printed table: `R ranks K KiB MODE slots T us`."""

    name = rows.YARDSTICK
    LINE = re.compile(r"^\s*\d+ ranks\s+(\d+) KiB\s+\w+\s+slots\s+([0-9.]+) us")

    def __init__(self, program):
        self.program = program

    def measure(self, group, scale):
        times = {}
        for line in run_process([self.program, group.ranks], limit_s=180).splitlines():
            match = self.LINE.match(line)
            if match:
                size, time = int(match[1]) * rows.KIB, float(match[2])
                times[size] = min(time, times.get(size, float("inf")))
        if not times:
            raise Unavailable("it printed no figures")
        return times


class Ours:
    """Our own programs. --ranks forks processes, -t starts threads. One launch for each of the group's call numbers."""

    def __init__(self, name, build, ranks_flag="--ranks"):
        self.name, self.build, self.ranks_flag = name, build, ranks_flag

    def program(self, group):
        return self.build / "bench" / OUR_PROGRAMS[group.collective]

    def launch(self, group, lower, upper, extra):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "figures.json"
            run_process(
                [self.program(group), "-b", lower, "-e", upper, "-f", "2", "--one-place", 1, self.ranks_flag, group.ranks, "-J", file, *extra]
            )
            return json.loads(file.read_text())["results"]

    def measure(self, group, scale):
        times, lower = {}, group.lower
        for upper, calls in group.calls:
            count = max(int(calls * min(scale, 1.0)), 2)
            for entry in self.launch(group, lower, upper, ["-n", count, "-w", max(10, min(count // 10, 100)), "-c", "0"]):
                if entry["size"] in group.all_sizes:
                    times[entry["size"]] = figure_of(entry, group)
            lower = upper * 2
        missing = [size for size in group.all_sizes if size not in times]
        if missing:
            raise Unavailable(f"its JSON lacks the sizes {missing}")
        return times

    def check(self, group):
        """One verified call of every size before anything is timed: a fast wrong answer must not count."""
        for entry in self.launch(group, group.lower, group.upper, ["-n", "1", "-w", "0", "-c", "1"]):
            for placement in {"out_of_place", "in_place"} & entry.keys():  # all_to_all has no in-place form
                wrong = entry[placement].get("nwrong")
                if wrong not in (None, "N/A") and float(wrong):
                    raise Unavailable(f"{entry[placement]['nwrong']} wrong elements at {entry['size']} bytes {placement}")


def figure_of(entry, group):
    """Microseconds of one nccl-tests result. MPI's and gloo's broadcast have one buffer, so ours is compared in place."""
    placement = entry["in_place" if group.collective == "broadcast" else "out_of_place"]
    return float(placement["time"] if "time" in placement else placement["cpu_time"])


class Setup(Peers):
    """Also builds a limit program by others."""

    def yardstick(self, source):
        program = self.folder / "yardstick"
        run_process(["g++", "-std=c++20", "-O3", "-march=native", source, "-o", program])
        return Yardstick(program)
