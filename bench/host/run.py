#!/usr/bin/env python3
"""Measures the table of goals for host memory on one machine and ends each row in `met` or `missed`.

    bench/host/run.py [--quick] [--rows KEY,...] [--json FILE] [--svg FILE] [--build DIR] [--yardstick FILE.cc]

Every round starts fresh processes of every contender in rotated order; our own program runs twice under two names, so that the
difference between equal things is known. Each sample lies between two flag exchanges that tell whether the two cores share a
cache at that moment; a sample taken across a change is repeated at most three times, then dropped and counted. README.md of this
folder says how each row is measured and what its floor is.

Needs from the build: bench/{all_reduce,all_gather,reduce_scatter,broadcast,alltoall}_perf with nccl-tests' flags -b -e -f -n -w
-c -t -J and --ranks, the JSON of version 3; bench/host_limit_program, bench/flag_probe, bench/first_call; and a Google Benchmark
whose name contains `fused_step` in bench/*_bench, in time per step.
"""

import argparse
import dataclasses
import json
import statistics
import sys
from pathlib import Path

import contenders as parties
import picture
import rows
from panels import write_picture
from session import Progress, Session, placebo_line, table_of_times, wanted_keys

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 7
RESERVE_S = 60


class Plan:
    """Which groups, contenders and single programs a run has."""

    def __init__(self, options, setup):
        keys = [row.key for row in rows.ROWS] + [rows.CALL_ROW, rows.STEP_ROW, rows.FIRST_ROW]
        keys += [rows.YARDSTICK_ROW] if options.yardstick else []
        self.keys = wanted_keys(options.rows, keys)
        self.rows = [row for row in rows.ROWS if row.key in self.keys]
        self.quick = options.quick
        self.groups = list(dict.fromkeys(self.shortened(group) for row in self.rows for group in row.groups))
        build = Path(options.build).resolve()
        self.build, self.setup = build, setup
        self.peers = setup.peers() if any(row.against == rows.PEERS for row in self.rows) else []
        self.ours = [parties.Ours(rows.OURS, build), parties.Ours(rows.PLACEBO, build)]
        self.threads = parties.Ours(rows.THREADS, build, "-t")
        self.limit = parties.Limit(build / "bench" / "host_limit_program")
        self.yardstick = setup.yardstick(options.yardstick) if rows.YARDSTICK_ROW in self.keys else None
        self.broken = {}

    def shortened(self, group):
        """In a quick run only the ends of a range, and nothing above 16 MiB."""
        if not self.quick:
            return group
        upper = max(group.lower, min(group.upper, 16 * rows.MIB))
        return dataclasses.replace(
            group,
            upper=upper,
            extra_sizes=(),
            calls=tuple((min(top, upper), calls) for top, calls in group.calls if top <= upper or top == group.calls[-1][0]),
        )

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
        if group.with_limit and self.limit.program.exists():
            chosen.append(self.limit)
        return chosen

    def ours_works(self, group):
        """Whether our program exists and gives right results in this group; tried once, before anything is timed."""
        if group not in self.broken:
            try:
                if not self.ours[0].program(group).exists():
                    raise parties.Unavailable(f"{self.ours[0].program(group).name} is not built")
                self.ours[0].check(group)
                self.broken[group] = ""
            except (parties.Unavailable, OSError, KeyError, ValueError) as error:
                self.broken[group] = str(error)
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
    """Size -> microseconds: the first call, and the calibration for it, which is a part of init."""
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


def measure_yardstick(session, plan, round_index):
    limit = parties.Limit(plan.limit.program, "each")
    for group in rows.YARDSTICKS:
        for contender in rows.rotated([limit, plan.yardstick], round_index):
            session.progress.show(round_index, session.options.rounds, group.title, contender.name)
            session.sample(group, contender, round_index)


def run_rounds(session, plan):
    """All rounds, as far as the time goes. The budgets shrink once when the first round shows that they are too large."""
    rounds, progress = session.options.rounds, session.progress
    slots = [(group, len(plan.contenders(group))) for group in plan.groups]
    progress.total = rounds * max(sum(count for _, count in slots), 1)
    for round_index in range(rounds):
        started = progress.elapsed()
        session.look_around()
        for group in plan.groups:
            for contender in rows.rotated(plan.contenders(group), round_index):
                if progress.elapsed() > progress.limit_s - RESERVE_S:
                    progress.note(f"stopped after {session.rounds_done} whole rounds: the time is up")
                    return
                progress.show(round_index, rounds, group.title, contender.name)
                session.sample(group, contender, round_index)
                progress.done += 1
        measure_singles(session, plan)
        if plan.yardstick:
            measure_yardstick(session, plan, round_index)
        session.rounds_done = round_index + 1
        left = progress.limit_s - RESERVE_S - progress.elapsed()
        need = (progress.elapsed() - started) * (rounds - session.rounds_done)
        if round_index == 0 and need > left > 0:
            session.scale *= max(0.3, left / need * 0.9)
            progress.note(
                f"a round takes {progress.elapsed() - started:.0f} s: budgets scaled to {session.scale:.2f} to fit the time"
            )


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
    """(key, what, goal, judgements) of the rows with a program of their own."""
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
    print("\nMedian times")
    for group in [*plan.groups, *(rows.YARDSTICKS if plan.yardstick else ())]:
        for line in table_of_times(session, group):
            print(line)
    placebos = [line for line in (placebo_line(session, group) for group in plan.groups) if line]
    print("\nThe same program twice (1.00 when nothing but chance differs)" if placebos else "", *placebos, sep="\n")
    dropped = sum(session.dropped.values())
    print(
        f"\n{session.rounds_done} whole rounds of {session.options.rounds}, {session.progress.elapsed() / 60:.1f} min, "
        f"{len(session.samples) + len(session.singles)} samples kept, {dropped} dropped because the cores changed state"
    )
    if session.busy:
        print(f"cores used by others at the start of each round: {' '.join(f'{share:.0%}' for share in session.busy)}")
    for name, why in plan.setup.missing.items():
        print(f"not measured: {name}: {why}")
    for group, why in plan.broken.items():
        if why:
            print(f"not measured: {rows.OURS}, {group.title}: {why}")
    for what, errors in session.failures.items():
        print(f"failed {len(errors)} times: {what}: {errors[-1]}")
    if session.options.quick:
        print("a quick run: ranges are cut and samples few; its last words say nothing about the goals")
    print("\nwhat | goal | figure | met or missed")
    for _, what, goal, judgements in judged:
        print(rows.line_of(what, goal, judgements))


def write_json(path, session, plan, judged):
    document = {
        "rounds": session.rounds_done,
        "minutes": session.progress.elapsed() / 60,
        "dropped": session.dropped,
        "busy": session.busy,
        "failed": session.failures,
        "not_available": plan.setup.missing,
        "rows": [
            {
                "key": key,
                "what": what,
                "goal": goal,
                "verdict": rows.verdict(judgements),
                "states": {state: dataclasses.asdict(j) if j else "not seen" for state, j in judgements.items()},
            }
            for key, what, goal, judgements in judged
        ],
        "samples": [
            {
                "group": s.group.title,
                "contender": s.contender,
                "round": s.round,
                "state": s.state,
                "exchange_ns": s.probes,
                "time_us": s.times,
            }
            for s in session.samples
        ],
        "single_figures": [
            {"key": key, "state": state, "figure": figure, "probes": probes} for key, state, figure, probes in session.singles
        ],
    }
    Path(path).write_text(json.dumps(document, indent=1) + "\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two rounds, few sizes: does it work at all")
    parser.add_argument("--rows", "--only", dest="rows", metavar="KEY,...", help="only these rows; * matches anything")
    parser.add_argument("--rounds", type=int, help=f"interleaved rounds ({ROUNDS})")
    parser.add_argument("--limit-minutes", type=float, default=40, help="bound of the whole run (40)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("--build", metavar="DIR", default=ROOT / "build", help="build folder with our programs in bench/")
    parser.add_argument("--peers", metavar="DIR", default=ROOT / "build-peers", help="where peers are installed and compiled")
    parser.add_argument("--no-install", action="store_true", help="measure only the peers that are here")
    parser.add_argument("--yardstick", metavar="FILE.cc", help="another limit program to compare ours with")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else ROUNDS)
    return options


def main():
    options = parse()
    progress = Progress(options.limit_minutes * 60)
    session = Session(options, progress)
    if not session.probe_program.exists():
        raise SystemExit(
            f"{session.probe_program} is missing: build the bench programs first, or name their folder with --build"
        )
    plan = Plan(options, parties.Setup(session.build, Path(options.peers).resolve(), not options.no_install))
    try:
        run_rounds(session, plan)
    except KeyboardInterrupt:
        progress.note("interrupted: reporting what was measured")
    judged = judge_all(session, plan)
    report(session, plan, judged)
    if options.json:
        write_json(options.json, session, plan, judged)
    if options.svg:
        write_picture(options.svg, picture.draw(session.samples))
    return 0 if all(rows.verdict(judgements) == "met" for *_, judgements in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
