#!/usr/bin/env python3
"""Measures the table of goals for host memory on one machine and ends each row in `met`, `missed` or `not measured`.

    bench/host/run.py [--quick] [--rows KEY,...] [--json FILE] [--svg FILE] [--build DIR] [--yardstick FILE.cc]

Every round starts fresh processes of every contender in rotated order; our own program runs twice under two names, so that the
difference between equal programs is known. The first seconds find the states of this machine's cores: one, or near and far. Each
sample lies between two flag exchanges that tell its state; a sample during which the state changed is repeated at most three times,
then dropped and counted. README.md of this folder describes how each row is measured and its lower bound.

Needs from the build: bench/{all_reduce,all_gather,reduce_scatter,broadcast,alltoall}_perf with nccl-tests' flags -b -e -f -n -w
-c -t -J and --ranks, the JSON of version 3; bench/host_limit_program, bench/flag_probe, bench/first_call; and a Google Benchmark
whose name contains `fused_step` in bench/*_bench, in time per step.
"""

import dataclasses
import json
import statistics
import sys
from pathlib import Path

import contenders as parties
import picture
import rows
from panels import write_picture
from report import exit_status, options_of, parser_of, print_end, write_json
from session import Progress, Session, wanted_keys

ROUNDS = 7


class Plan:
    """The groups, contenders and single programs of a run."""

    def __init__(self, options, setup):
        self.keys = wanted_keys(options.rows, rows.KEYS + ((rows.YARDSTICK_ROW,) if options.yardstick else ()))
        self.rows = [row for row in rows.ROWS if row.key in self.keys]
        self.quick = options.quick
        self.groups = list(dict.fromkeys(self.shortened(group) for row in self.rows for group in row.groups))
        build = Path(options.build).resolve()
        self.build, self.setup = build, setup
        self.peers = setup.peers() if any(row.against == rows.PEERS for row in self.rows) else []
        self.ours = [parties.Ours(rows.OURS, build), parties.Ours(rows.PLACEBO, build)]
        self.threads = parties.Ours(rows.THREADS, build, "-t")
        self.lent = parties.Ours(rows.LENT, build, arguments=("-R", 1))
        self.limit = parties.Limit(build / "bench" / "host_limit_program")
        self.yardstick = setup.yardstick(options.yardstick) if rows.YARDSTICK_ROW in self.keys else None
        self.broken = {}

    def shortened(self, group):
        return group.shortened(16 * rows.MIB) if self.quick else group

    def judged_rows(self):
        return [dataclasses.replace(row, groups=tuple(self.shortened(group) for group in row.groups)) for row in self.rows]

    def contenders(self, group):
        chosen = (
            list(self.peers)
            if any(row.against == rows.PEERS and group in map(self.shortened, row.groups) for row in self.rows)
            else []
        )
        if self.ours_works(group):
            chosen = [self.ours[0], *chosen, self.ours[1]]
            if group.with_threads and any(row.ours == rows.THREADS for row in self.rows):
                chosen.append(self.threads)
            if any(row.ours == rows.LENT and group in map(self.shortened, row.groups) for row in self.rows):
                chosen.append(self.lent)
        if group.with_limit and self.limit.program.exists():
            chosen.append(self.limit)
        return chosen

    def ours_works(self, group):
        """Tried once, before anything is timed."""
        if group not in self.broken:
            self.broken[group] = self.ours[0].why_not(group)
        return not self.broken[group]


def measure_singles(session, plan):
    build = plan.build / "bench"
    if rows.CALL_ROW in plan.keys:
        command = [build / "first_call", "--ranks", "2", "--sizes", "8", "--calls", "200000"]
        session.single(rows.CALL_ROW, command, lambda text: json.loads(text)["back_to_back_us"] * 1e3)
    if rows.FIRST_ROW in plan.keys:
        command = [build / "first_call", "--ranks", "4", "--sizes", ",".join(str(size) for size in rows.FIRST_CALL_BOUNDS)]
        session.single(
            rows.FIRST_ROW,
            command,
            first_calls,
        )
    if rows.STEP_ROW in plan.keys:
        programs = sorted(build.glob("*_bench"))
        command = [
            find_step_program(programs) or build / "plan_bench",
            "--benchmark_filter=fused_step",
            "--benchmark_format=json",
        ]
        session.single(rows.STEP_ROW, command, read_step)


def first_calls(text):
    """Size -> microseconds of the first call, including its calibration, which is a part of init."""
    return {entry["size"]: entry["calibration_us"] + entry["first_call_us"] for entry in map(json.loads, text.splitlines())}


def find_step_program(programs):
    for program in programs:
        try:
            if "fused_step" in parties.run_process([program, "--benchmark_list_tests=true"], limit_s=20):
                return program
        except (parties.Unavailable, OSError):
            continue
    return None


def read_step(text):
    """Nanoseconds per fused step: the counter `step_ns` if the benchmark has one, else its time."""
    factor = {"ns": 1, "us": 1e3, "ms": 1e6}
    figures = [
        entry.get("step_ns", entry["real_time"] * factor[entry["time_unit"]]) for entry in json.loads(text)["benchmarks"]
    ]
    if not figures:
        raise parties.Unavailable("no benchmark named fused_step")
    return max(figures)


def measure_yardstick(session, plan, index):
    pair = [parties.Limit(plan.limit.program, "each"), plan.yardstick]
    for group in rows.YARDSTICKS:
        for contender in rows.rotated(pair, index):
            session.progress.show(index, session.options.rounds, group.title, contender.name)
            session.sample(group, contender, index)


def run_rounds(session, plan):
    if session.why_nothing:
        return
    for index in session.rounds(sum(len(plan.contenders(group)) for group in plan.groups)):
        started = session.progress.elapsed()
        session.sample_all(plan.groups, plan.contenders, index)
        if session.stopped or session.why_nothing:
            return
        measure_singles(session, plan)
        if plan.yardstick:
            measure_yardstick(session, plan, index)
        if index == 0:
            fit_budgets(session, session.progress.elapsed() - started)


def fit_budgets(session, round_s):
    """Scales the budgets down once, if the first round shows that they exceed the time limit."""
    left = session.progress.limit_s - session.reserve_s - session.progress.elapsed()
    need = round_s * (session.options.rounds - 1)
    if need > left > 0:
        session.scale *= max(0.3, left / need * 0.9)
        session.progress.note(f"a round takes {round_s:.0f} s: budgets scaled to {session.scale:.2f} to fit the time")


# --- the report ---


def judge_call(session):
    figures = {
        state: [
            figure - statistics.fmean(p["exchange_ns"] for p in probes)
            for key, at, figure, probes in session.singles
            if key == rows.CALL_ROW and at == state
        ]
        for state in rows.STATES
    }
    judgements = rows.judge_single(figures, rows.OVER_EXCHANGE_NS, "ns over the exchange")
    for state, judgement in judgements.items():
        calls = [figure for key, at, figure, _ in session.singles if key == rows.CALL_ROW and at == state]
        if judgement:
            judgement.text = f"{statistics.median(calls):.0f} ns, {judgement.text}"
    return judgements


def judge_singles(session, plan):
    """(key, what, goal, judgements) of the rows with their own programs."""
    result = []

    def by_state(key, pick):
        return {
            state: [pick(figure) for name, at, figure, _ in session.singles if name == key and at == state]
            for state in rows.STATES
        }

    if rows.CALL_ROW in plan.keys:
        result.append(
            (
                rows.CALL_ROW,
                "8 B call, 2 processes, back to back",
                "<= flag exchange " + ", ".join(f"+ {bound:g} ns {state}" for state, bound in rows.OVER_EXCHANGE_NS.items()),
                judge_call(session),
            )
        )
    if rows.STEP_ROW in plan.keys:
        bounds = dict.fromkeys(rows.STATES, rows.STEP_BOUND_NS)
        judgements = rows.judge_single(by_state(rows.STEP_ROW, float), bounds, "ns")
        result.append((rows.STEP_ROW, "interpretation of one fused step", f"<= {rows.STEP_BOUND_NS:g} ns", judgements))
    if rows.FIRST_ROW in plan.keys:
        for size, bound in rows.FIRST_CALL_BOUNDS.items():
            figures = by_state(rows.FIRST_ROW, lambda figure, size=size: figure[size] / 1e3)
            judgements = rows.judge_single(figures, dict.fromkeys(rows.STATES, bound / 1e3), "ms")
            result.append(
                (
                    f"{rows.FIRST_ROW}-{rows.name_of_size(size)}",
                    f"calibration and first call, 4 processes, {rows.name_of_size(size)}",
                    f"<= {bound / 1e3:.0f} ms",
                    judgements,
                )
            )
    return result


def judge_all(session, plan):
    least = 1 if session.options.quick else 2
    judged = [(row.key, row.what, row.goal, rows.judge(session.samples, row, least)) for row in plan.judged_rows()]
    judged += judge_singles(session, plan)
    if plan.yardstick:
        judged += [(row.key, row.what, row.goal, rows.judge(session.samples, row, 1)) for row in rows.YARDSTICK_ROWS]
    return judged


def report(session, plan, judged):
    session.print_tables([*plan.groups, *(rows.YARDSTICKS if plan.yardstick else ())], "Median times")
    missing = [*plan.setup.missing.items()]
    missing += [(f"{rows.OURS}, {group.title}", why) for group, why in plan.broken.items() if why]
    print_end(session, session.kept(), missing, "ranges are cut and samples few", judged)


def figures_of(session):
    """The values for the JSON file."""
    singles = [{"key": key, "state": state, "figure": figure, "probes": probes} for key, state, figure, probes in session.singles]
    return {"dropped": session.dropped, "samples": session.sample_records(), "single_figures": singles}


def parse():
    parser = parser_of(__doc__, rows.KEYS, ROUNDS, "two rounds, few sizes")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("--yardstick", metavar="FILE.cc", help="another limit program, to compare with ours")
    return options_of(parser, ROUNDS, 2)


def main():
    options = parse()
    session = Session(options, Progress(options.limit_minutes * 60))
    plan = Plan(options, parties.Setup(session.build, Path(options.peers).resolve(), not options.no_install))
    try:
        session.find_states()
        session.announce(plan.setup.missing.items())
        run_rounds(session, plan)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    judged = judge_all(session, plan)
    report(session, plan, judged)
    if options.json:
        write_json(options.json, session, plan.setup.missing, judged, figures_of(session))
    if options.svg:
        write_picture(options.svg, picture.draw(session.samples))
    return exit_status(judged)


if __name__ == "__main__":
    sys.exit(main())
