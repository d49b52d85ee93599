"""Our own programs and the limit programs for the table of host memory. The peers are in common_py/peers.py."""

import re

import rows  # first: it adds the common folder to the path
from ours import OurProgram, time_of
from peers import Setup as Peers
from peers import Unavailable, run_process, times_of_lines


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
    """Another limit program, which prints a table of lines `R ranks K KiB MODE slots T us`."""

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


class Ours(OurProgram):
    """--ranks forks processes, -t starts threads."""

    def __init__(self, name, build, ranks_flag="--ranks", arguments=()):
        super().__init__(name, build, arguments)
        self.ranks_flag = ranks_flag

    def start(self, group, command, file):
        run_process([*command, self.ranks_flag, group.ranks, "-J", file])

    def warm_ups(self, count):
        return max(10, min(count // 10, 100))

    def figure_of(self, entry, group):
        """MPI's and gloo's broadcast have one buffer, so ours is compared in place."""
        return time_of(entry["in_place" if group.collective == "broadcast" else "out_of_place"])


class Setup(Peers):
    """Also builds a limit program of another author."""

    def yardstick(self, source):
        program = self.folder / "yardstick"
        run_process(["g++", "-std=c++20", "-O3", "-march=native", source, "-o", program])
        return Yardstick(program)
