#!/usr/bin/env python3
"""Measures one RDMA link against perftest, and all_reduces over RDMA against Open MPI and our own TCP, in a virtual machine with RDMA
devices (tests/rdma_lab), and ends each row in `met`, `missed`, `no goal` or `not measured`.

    bench/rdma/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--build DIR]

Exit status: 0 all goals met, 1 one missed or not measured, 77 no such machine can be booted here.
"""

import argparse
import importlib.util
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "rdma_lab"))

import calls  # noqa: E402
import rows  # noqa: E402
from machine import Machine, MachineLost, why_not  # noqa: E402
from machine_image import PROGRAMS_PATH  # noqa: E402
from namespaces import LabError  # noqa: E402

# The machine of the lab and the facts about this host are modules of the same name.
_facts = importlib.util.spec_from_file_location("host_facts", ROOT / "bench" / "common_py" / "machine.py")
host_facts = importlib.util.module_from_spec(_facts)
_facts.loader.exec_module(host_facts)

ROUNDS, QUICK_ROUNDS = 7, 1
COMMAND_LIMIT_S = 300
MPI_SOURCE = ROOT / "bench" / "peers" / "mpi_perf.c"
ROWS = {row.key: row for row in (*rows.ROWS, *calls.ROWS)}
SKIPPED = 77


def say(text):
    print(text, flush=True)


def options_of(words):
    parser = argparse.ArgumentParser(prog="./dev bench rdma", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, to see whether it works: no verdicts")
    parser.add_argument("--rows", metavar="KEY,...", default=",".join(ROWS), help=f"only these of {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, help=f"interleaved rounds ({ROUNDS})")
    parser.add_argument("--limit-minutes", type=float, default=30, help="no round begins after that (30)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="build folder with rdma_link")
    options = parser.parse_args(words)
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    options.build = options.build.resolve()
    unknown = set(options.rows.split(",")) - set(ROWS)
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}")
    options.rows = [row for key, row in ROWS.items() if key in options.rows.split(",")]
    return options


def why_not_measured(options):
    for program in ("rdma_link", "all_reduce_perf"):
        if not (options.build / "bench" / program).exists():
            return f"needs {options.build}/bench/{program} (./dev bench rdma builds it)"
    if not shutil.which("ib_write_bw", path=PROGRAMS_PATH):
        return "needs the package perftest, against which it measures (./dev bench rdma installs it where it may)"
    return why_not()


def make_mpi_program(build):
    """The machine has the programs of this host. Where there is no Open MPI, its figures are missing."""
    command = ["mpicc.openmpi", "-O2", "-o", str(build / "bench" / "rdma_mpi_perf"), str(MPI_SOURCE)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"Open MPI is not measured: {error}")


class Bench:
    """Samples by the key of their contender, over all rounds in one machine."""

    def __init__(self, options):
        self.options, self.samples, self.failures, self.held_up = options, {}, [], []
        self.begin, self.rounds, self.processor = time.monotonic(), 0, ""

    def measure(self):
        with Machine(self.options.build) as machine:
            machine.make_devices(2)
            self.processor = host_facts.processor_of(machine.run("cat /proc/cpuinfo").output)
            for index in range(self.options.rounds):
                if time.monotonic() - self.begin > self.options.limit_minutes * 60:
                    say(f"the limit of {self.options.limit_minutes:g} minutes has passed")
                    return
                self.round(machine, index)
                self.rounds += 1

    def round(self, machine, index):
        own_s = wall_s = 0.0
        for one in rows.rotated(rows.contenders_of(self.options.rows), index):
            outcome = machine.run(one.command, COMMAND_LIMIT_S)
            own_s, wall_s = own_s + outcome.seconds, wall_s + outcome.wall_s
            figure = one.figure(outcome.output) if outcome.status == 0 else None
            if figure is None:
                self.failures.append(f"{one.key}: status {outcome.status}: {outcome.output.strip()[-300:]}")
                continue
            self.samples.setdefault(one.key, []).append(figure)
        self.held_up.append(1 - own_s / wall_s)
        last = ", ".join(f"{key} {figures[-1]:.1f}" for key, figures in self.samples.items() if isinstance(figures[-1], float))
        say(f"round {index + 1} of {self.options.rounds}: {last}; without a processor {self.held_up[-1]:.0%} of the time")

    def report(self):
        say(f"\n{self.rounds} rounds in {time.monotonic() - self.begin:.0f} s")
        say(f"emulated processor: {self.processor}, 2 cores, of this host: {host_facts.processor()}")
        for failure in self.failures:
            say(f"failed: {failure}")
        if self.held_up and max(self.held_up) > 0.1:
            say("the host was busy with other work: figures of different rounds are far apart")
        if self.options.quick:
            say("a quick run: too few samples for verdicts")
        say("\nwhat | goal | medians and ratio | met, missed or not measured")
        for row in self.options.rows:
            say(row.text(self.samples))
        if self.options.json:
            document = {"rounds": self.rounds, "processor": self.processor, "host": host_facts.processor(), "held_up": self.held_up, "samples": self.samples}
            verdicts = {row.key: {"ratio": row.ratio(self.samples), "verdict": row.verdict(self.samples)} for row in self.options.rows}
            Path(self.options.json).write_text(json.dumps({**document, "rows": verdicts}, indent=1) + "\n")
        return all(row.verdict(self.samples) in ("met", rows.NO_GOAL) for row in self.options.rows)


def main():
    options = options_of(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if reason := why_not_measured(options):
        for row in options.rows:
            say(f"{row.key} | {reason} | {rows.NOT_MEASURED}")
        return SKIPPED
    make_mpi_program(options.build)
    bench = Bench(options)
    try:
        bench.measure()
    except (MachineLost, LabError) as error:
        bench.failures.append(str(error))
    return 0 if bench.report() else 1


if __name__ == "__main__":
    sys.exit(main())
