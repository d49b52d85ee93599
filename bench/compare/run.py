#!/usr/bin/env python3
"""Compares the speed of two builds of the library: is the new one slower than the old one?

    bench/compare/run OLD_BUILD NEW_BUILD [--quick] [--rounds N] [--rows KEY,...] [--limit-minutes M] [--json FILE]

Every round starts fresh processes of each build in rotated order; the old build runs twice under two names (the placebo). Each row
gives the time of both builds in each state of the cores, their ratio and the difference of equal builds, and ends in `met`, `missed`
or `not measured`. README.md of this folder describes the method.
"""

import argparse
import sys
from pathlib import Path

import rows  # first: it adds the common folder to the path
from ours import OurProgram
from peers import run_process
from report import exit_status, print_end, write_json
from session import Progress, Session, wanted_keys

ROUNDS, QUICK_ROUNDS = 9, 2
PROGRAMS = ("all_reduce_perf", "flag_probe")
TRANSPORTS = {rows.SHARED_MEMORY: {}, rows.TCP: {"SETO_TRANSPORT": "tcp"}}


class Build(OurProgram):
    """The programs of one build directory, with the library of that directory."""

    def start(self, group, command, file):
        run_process([*command, "--ranks", group.ranks, "-J", file], {"LD_LIBRARY_PATH": "", **TRANSPORTS[group.place]})

    def warm_ups(self, count):
        return max(2, min(count // 10, 100))


def missing_programs(build):
    return [str(build / "bench" / name) for name in PROGRAMS if not (build / "bench" / name).exists()]


def contenders_of(old, new):
    return [Build(rows.OLD, old), Build(rows.NEW, new), Build(rows.OLD_AGAIN, old)]


def run_rounds(session, cases, builds):
    groups = [case.group for case in cases]
    for index in session.rounds(len(groups) * len(builds)):
        session.sample_all(groups, lambda group: builds, index)
        if session.stopped or session.why_nothing:
            return


def judge_all(samples, cases, rounds):
    least = min(rows.LEAST_SAMPLES, rounds)
    return [(case.key, case.what, rows.GOAL, rows.judge_case(samples, case, least)) for case in cases]


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD_BUILD", type=Path, help="build directory of the state before a change")
    parser.add_argument("new", metavar="NEW_BUILD", type=Path, help="build directory of the state after it")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds of few calls, to see whether it works")
    parser.add_argument("--rounds", type=int, help=f"interleaved rounds ({ROUNDS})")
    parser.add_argument("--rows", metavar="KEY,...", help=f"only these; * matches anything: {' '.join(rows.KEYS)}")
    parser.add_argument("--limit-minutes", type=float, default=30, help="bound of the whole run (30)")
    parser.add_argument("--json", metavar="FILE", help="write every sample")
    options = parser.parse_args(arguments)
    options.old, options.new, options.build = options.old.resolve(), options.new.resolve(), options.new
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    lacking = [name for build in (options.old, options.new) for name in missing_programs(build)]
    if lacking:
        parser.error(f"missing: {' '.join(lacking)}; build these directories first")
    return options


def main():
    options = parse()
    session = Session(options, Progress(options.limit_minutes * 60))
    wanted = wanted_keys(options.rows, rows.KEYS)
    cases = [case for case in rows.CASES if case.key in wanted]
    try:
        session.find_states()
        if not session.why_nothing:
            run_rounds(session, cases, contenders_of(options.old, options.new))
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    judged = judge_all(session.samples, cases, options.rounds)
    print(f"old: {options.old}\nnew: {options.new}")
    print_end(session, session.kept(), (), "samples and calls are few", judged)
    if options.json:
        builds = {"old": str(options.old), "new": str(options.new)}
        figures = {"builds": builds, "states": session.states.text, "dropped": session.dropped, "samples": session.sample_records()}
        write_json(options.json, session, {}, judged, figures)
    return exit_status(judged)


if __name__ == "__main__":
    sys.exit(main())
