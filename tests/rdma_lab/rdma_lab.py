#!/usr/bin/env python3
"""Runs programs over RDMA devices in a virtual machine: those of programs.txt, or one command.

Exit status: 0 if all passed, 1 if a program failed, 77 if no machine can be booted here; that of the command, if one is given.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

import programs
from machine import Machine, MachineLost, why_not
from machine_image import HERE, ROOT
from namespaces import LabError

LIST = HERE / "programs.txt"


def say(text):
    print(text, flush=True)


def indented(text):
    return "\n".join(f"  {line}" for line in text.rstrip().splitlines())


def print_now(text):
    sys.stdout.write(text)
    sys.stdout.flush()


class Run:
    """Programs one after another in one machine. After one that has failed the next one gets a new machine: the old one may have
    ended, or its links may be as the program has left them."""

    def __init__(self, options, pending):
        self.options, self.pending, self.counts = options, list(pending), programs.Counts()

    def all_of(self):
        try:
            while self.pending:
                with Machine(self.options.build, nodes=self.options.nodes) as machine:
                    prepared_s = machine.make_devices(self.options.devices, self.options.netem)
                    say(f"virtual machine: {machine.image.release}, booted in {machine.boot_s:.1f} s, devices after {prepared_s:.1f} s more")
                    for text in machine.consoles:
                        say(f"a first boot failed; {text}")
                    self._until_lost(machine)
        except LabError as error:
            say(str(error))
            self.counts.failed += [f"{program.name}: not run, because there is no virtual machine" for program in self.pending]

    def _until_lost(self, machine):
        while self.pending:
            program = self.pending.pop(0)
            say(f"== {program.name}: {program.command}")
            try:
                outcome = machine.run(program.command, program.limit_s, echo=print_now)
            except MachineLost as error:
                say(indented(str(error)))
                self.counts.failed.append(f"{program.name}: {str(error).splitlines()[0]}")
                return
            counts = programs.count(program, outcome.status, outcome.output)
            self.counts.add(counts)
            held_up = outcome.wall_s - outcome.seconds
            more = f", {held_up:.1f} s of them without a processor" if held_up > 1 else ""
            say(f"   {program.name}: {counts.text} ({outcome.wall_s:.1f} s{more})")
            if counts.failed:
                return


def chosen(names):
    listed = programs.parse(LIST.read_text())
    unknown = sorted(set(names) - {program.name for program in listed})
    if unknown:
        raise LabError(f"{LIST.name} has no {', '.join(unknown)}, but {', '.join(program.name for program in listed)}")
    return [program for program in listed if program.name in names or not names]


def run_list(options):
    begin = time.monotonic()
    run = Run(options, chosen(options.programs))
    run.all_of()
    for name in run.counts.skipped:
        say(f"skipped: {name}")
    for name in run.counts.failed:
        say(f"failed: {name}")
    say(f"RDMA lab: {run.counts.text} in {time.monotonic() - begin:.1f} s")
    return 1 if run.counts.failed else 0


def run_command(options):
    with Machine(options.build, nodes=options.nodes) as machine:
        machine.make_devices(options.devices, options.netem)
        return machine.run(" ".join(options.command), options.limit, echo=print_now).status


def parse(words):
    words, command = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    parser = argparse.ArgumentParser(
        prog="./dev lab rdma", description=__doc__, epilog="-- COMMAND: for the shell of the machine, in the root of the repository",
        formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="of tests/rdma_lab/programs.txt (default: all)")
    parser.add_argument("--devices", type=int, default=2, help="number of RoCE devices, all on one bridge (default: 2)")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1, help="NUMA nodes; 2: one for each processor (default: 1)")
    parser.add_argument("--netem", default="", metavar="'OPTION...'", help="on the link of every device, such as 'delay 1ms loss 0.1%%'")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="of the command (default: 300)")
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("LAB_BUILD", ROOT / "build")), help="build folder")
    options = parser.parse_args(words)
    options.build, options.command = options.build.resolve(), command
    if not 1 <= options.devices <= 16:
        parser.error("--devices: wanted 1 to 16")
    if command and options.programs:
        parser.error("wanted programs of the list or a command, not both")
    return options


def main():
    options = parse(sys.argv[1:])
    # A request to end ends the machine and removes its folder, as an interrupt does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    reason = why_not()
    if not reason and not options.command and not (options.build / "tests" / "verbs_probe").exists():
        reason = "needs build/tests/verbs_probe, which is built where libibverbs-dev is installed"
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return programs.SKIPPED
    try:
        return run_command(options) if options.command else run_list(options)
    except (LabError, ValueError) as error:
        print(f"rdma_lab: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
