#!/usr/bin/env python3
"""Measures the table of goals for calls on GPU memory and ends each row in `met`, `missed` or `not measured`.

    bench/gpu/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--build DIR]
                  [--software] [--nccl-tests PROGRAM]

Every round starts each contender once for each number of ranks, in rotated order. --software runs the same on the stand-in for the CUDA
driver, whose times say nothing: a test of this command on a machine without a GPU. README.md of this folder describes the method.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import rows  # first: it adds the common folder to the path
from goals import OURS, STATES, name_of_size, rotated
from peers import BENCH, PYTHON_PACKAGES, Setup, Unavailable, run_process
from report import exit_status, options_of, parser_of, print_end, write_json
from session import Progress, Run, wanted_keys

ROUNDS = 5
CALLS, LAUNCHES = 20, 20  # of a graph, and of each graph
LAUNCH_LIMIT_S = 300
PEER = BENCH / "peers" / "nccl_perf.py"
PYTHON_PACKAGES.setdefault(rows.NCCL, ("nvidia-nccl-cu13==2.32.3",))
NCCL_PROOF = "lib/python3*/site-packages/nvidia/*/lib/libnccl.so.2"
SOFTWARE_GPUS = 8


class Machine:
    """The GPUs: real ones, or those of the stand-in."""

    def __init__(self, options):
        self.software, self.build = options.software, Path(options.build).resolve()
        try:
            document = run_process([self.build / "seto", "info", "gpus", "--json"], self.environment(SOFTWARE_GPUS))
        except (Unavailable, OSError) as error:
            raise SystemExit(f"bench gpu: {error}: build seto, or name its folder with --build") from None
        self.names, self.why = rows.gpus_of(json.loads(document))

    def environment(self, gpus):
        """Variables by which a program sees one GPU where all ranks share it. The stand-in has its own."""
        if not self.software:
            return {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]} if gpus == 1 else {}
        folders = [str(self.build / "tests" / "driver"), os.environ.get("LD_LIBRARY_PATH", "")]
        return {"LD_LIBRARY_PATH": ":".join(filter(None, folders)), "SOFTWARE_GPU_COUNT": str(gpus)}


class Gpus(Run):
    """The rounds of a run, with what each took."""

    reserve_s = 60

    def __init__(self, options, progress, machine, setup):
        super().__init__(options, progress)
        self.machine, self.setup = machine, setup
        self.sizes = rows.sizes_up_to(rows.SOFTWARE_MOST if machine.software else rows.QUICK_MOST if options.quick else rows.LARGE[1])
        self.calls, self.launches = (2, 2) if machine.software else (CALLS, 3 if options.quick else LAUNCHES)
        self.taken, self.predicted = {}, {}
        self.nccl, self.nccl_tests = None, None

    def find_peers(self, cases):
        """NCCL of its wheel, and nccl-tests if it is installed. The reason for each missing one is kept."""
        if not any(case.place == rows.OWN for case in cases):
            return
        if self.machine.software:
            self.setup.missing[rows.NCCL] = "it does not run on the software GPU"
            return
        named = self.options.nccl_tests
        self.nccl_tests = named or shutil.which("all_reduce_perf")
        if not self.nccl_tests:
            self.setup.missing[rows.NCCL_TESTS] = "no all_reduce_perf in the PATH (--nccl-tests PROGRAM names one)"
        try:
            python = self.setup.python(rows.NCCL, NCCL_PROOF)
            self.nccl = next(python.parent.parent.glob(NCCL_PROOF))
        except (Unavailable, OSError, StopIteration) as error:
            self.setup.missing[rows.NCCL] = str(error) or "its wheel has no libnccl.so.2"

    def ranges(self):
        """(smallest, largest) of each range of sizes that is measured."""
        spans = [[size for size in self.sizes if lower <= size <= upper] for lower, upper in (rows.SMALL, rows.LARGE)]
        return [(min(span), max(span)) for span in spans if span]

    def perf(self, command, case, read):
        """{size: us} over all ranges, of a program that takes the flags of nccl-tests."""
        times = {}
        for lower, upper in self.ranges():
            flags = ["-b", lower, "-e", upper, "-f", 4, "-w", 5, "-n", self.calls, "-G", self.launches]
            times.update(read([*command, *flags], self.machine.environment(case.gpus)))
        return times

    def ours(self, case, ranks):
        def read(command, environment):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "figures.json")
                run_process([*command, "-c", 1, "-J", file], environment, LAUNCH_LIMIT_S)
                return rows.ours_of(json.loads(file.read_text()))

        return self.perf([self.build / "bench" / "all_reduce_perf", "--memory", "device", *ranks], case, read)

    def nccl_tests_times(self, case):
        read = lambda command, environment: rows.times_of_table(run_process([*command, "-c", 0], environment, LAUNCH_LIMIT_S))  # noqa: E731
        return self.perf([self.nccl_tests, "-g", case.ranks], case, read)

    def peer(self, what, case):
        sizes = ",".join(str(size) for size in self.sizes)
        command = [sys.executable, "-B", PEER, what, "--ranks", case.ranks, "--sizes", sizes, "--calls", self.calls, "--launches", self.launches]
        lines = run_process(command, self.machine.environment(case.gpus), LAUNCH_LIMIT_S).splitlines()
        return {entry["size"]: entry["time_us"] for entry in map(json.loads, filter(lambda line: line.startswith("{"), lines))}

    def contenders(self, case):
        """{name: a function that measures it}"""
        found = {
            OURS: lambda: self.ours(case, ["-g", case.ranks]),
            rows.PROCESSES: lambda: self.ours(case, ["--ranks", case.ranks]),
        }
        if case.place == rows.SHARED:
            found[rows.COPY] = lambda: self.peer("copy", case)
        elif self.nccl:
            found[rows.NCCL] = lambda: self.peer(self.nccl, case)
        if case.place == rows.OWN and self.nccl_tests:
            found[rows.NCCL_TESTS] = lambda: self.nccl_tests_times(case)
        return found

    def predict(self, case):
        command = [self.build / "seto", "plan", "simulate", "--topo", "oci-h100", "--ranks", case.ranks, "--memory", "device", "--json"]
        predicted = self.attempt(f"prediction for {case.ranks} ranks", lambda: rows.predicted_of(json.loads(run_process(command))))
        self.predicted[case] = {size: time for size, time in (predicted or {}).items() if size in self.sizes}

    def round(self, index, cases):
        for case in cases:
            figures = {rows.PREDICTED: self.predicted[case]}
            measured = self.contenders(case)
            for name in rotated(list(measured), index):
                take = lambda: figures.update({name: self.attempt(f"{name}, {case.title}", measured[name]) or {}})  # noqa: E731
                self.step(index, case.title, name, take)
            self.taken.setdefault(case, []).append(figures)


def medians(taken, name):
    """{size: us} of a contender."""
    found = [figures.get(name, {}) for figures in taken]
    return {size: statistics.median(f[size] for f in found if size in f) for size in sorted(set().union(*found))}


def print_figures(session):
    for case, taken in session.taken.items():
        columns = {name: medians(taken, name) for name in dict.fromkeys(name for figures in taken for name in figures)}
        print(f"\n{case.title}: us of a call in a graph (GB/s of the bus); predicted for H100s" + ("" if case.place == rows.OWN else ", a GPU for each"))
        print(f"{'':>8}" + "".join(f"{name:>22}" for name in columns))
        for size in session.sizes:
            cells = (f"{times[size]:>13.2f} ({rows.bus_gb_s(case.ranks, size, times[size]):6.1f})" if size in times else f"{'-':>22}" for times in columns.values())
            print(f"{name_of_size(size):>8}" + "".join(cells))


def judge(session, row):
    """The times of a software GPU are not judged."""
    return dict.fromkeys(STATES) if session.machine.software else rows.judge(row, session.taken.get(row.case, []))


def measured(session, wanted):
    """The cases that this machine allows."""
    cases = list(dict.fromkeys(row.case for row in wanted))
    for case in cases:
        if why := rows.why_not(case, session.machine.names):
            session.setup.missing[case.title] = why
    return [case for case in cases if case.title not in session.setup.missing]


def main():
    parser = parser_of(__doc__, rows.KEYS, ROUNDS, "one short round up to 4 MiB", 30)
    parser.add_argument("--software", action="store_true", help="on the stand-in for the CUDA driver: one round, up to 8 KiB")
    parser.add_argument("--nccl-tests", metavar="PROGRAM", help="all_reduce_perf of nccl-tests (that of the PATH)")
    options = options_of(parser, 1 if "--software" in sys.argv else ROUNDS, 1)
    keys = wanted_keys(options.rows, rows.KEYS)
    machine = Machine(options)
    if machine.why:
        raise SystemExit(f"bench gpu: no GPU to measure on: {machine.why}\n--software runs the same on a GPU in software, to see whether it works")
    print(f"GPUs: {', '.join(machine.names)}", file=sys.stderr)
    session = Gpus(options, Progress(options.limit_minutes * 60), machine, Setup(Path(options.build).resolve(), Path(options.peers).resolve(), not options.no_install))
    wanted = [row for row in rows.ROWS if row.key in keys]
    cases = measured(session, wanted)
    session.find_peers(cases)
    for case in cases:
        session.predict(case)
    try:
        for index in session.rounds(sum(len(session.contenders(case)) for case in cases)):
            session.round(index, cases)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    judged = [(row.key, row.what, row.goal, judge(session, row)) for row in wanted]
    print_figures(session)
    print(f"\nGPUs: {', '.join(machine.names)}")
    if machine.software:
        print("a GPU in software: its times say nothing, so no row is judged")
    print_end(session, "", session.setup.missing.items(), "few samples", judged)
    if options.json:
        taken = {case.title: found for case, found in session.taken.items()}
        write_json(options.json, session, session.setup.missing, judged, {"gpus": machine.names, "rounds_taken": taken})
    return ending(session, judged)


def ending(session, judged):
    """0 if all rows are met; on a software GPU if every contender could be measured."""
    if session.machine.software:
        return 1 if session.failures else 0
    return exit_status(judged)


if __name__ == "__main__":
    sys.exit(main())
