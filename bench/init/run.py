#!/usr/bin/env python3
"""Measures the table of goals for starting a job and ends each row in `met` or `missed`.

    bench/init/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--build DIR]

Every round starts each contender once at each number of processes, in rotated order; `seto run` twice under two names, so that the
difference between equal things is known. README.md of this folder says more.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

import rows  # first: it knows where the common parts are
import contenders as parties
from peers import Unavailable
from session import Progress, busy_share, wanted_keys

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 7
RESERVE_S = 30


class Session:
    """What was measured. A contender that fails twice at a size is left alone there."""

    def __init__(self, options, progress):
        self.options, self.progress = options, progress
        self.seconds, self.scales, self.failures, self.busy, self.rounds_done = {}, {}, {}, [], 0

    def attempt(self, key, measure):
        """The figure, or None; errors are kept and said once."""
        if len(self.failures.get(key, [])) >= 2:
            return None
        try:
            return measure()
        except (Unavailable, OSError, ValueError, KeyError) as error:
            self.failures.setdefault(key, []).append(str(error))
            if len(self.failures[key]) == 1:
                self.progress.note(f"{key}: {error}")
            return None

    def is_late(self):
        return self.progress.elapsed() > self.progress.limit_s - RESERVE_S


def run_rounds(session, contenders, wanted):
    counts = [count for count in rows.COUNTS if any(row.processes == count for row in wanted)]
    scales = [ranks for ranks in rows.SCALES if f"ranks-{ranks}" in session.options.keys]
    session.progress.total = session.options.rounds * max(len(counts) * len(contenders) + len(scales), 1)
    for index in range(session.options.rounds):
        session.busy.append(busy_share())
        for count in counts:
            for contender in rows.rotated(contenders, index):
                if session.is_late():
                    return
                session.progress.show(index, session.options.rounds, f"{count} processes", contender.name)
                key = (contender.name, count)
                seconds = session.attempt(f"{contender.name}, {count} processes", lambda: contender.seconds(count))
                session.progress.done += 1
                if seconds is not None:
                    session.seconds.setdefault(key, {})[index] = seconds
        for ranks in scales:
            if session.is_late():
                return
            session.progress.show(index, session.options.rounds, f"{ranks} ranks", "init")
            figures = session.attempt(f"ranks-{ranks}", lambda: parties.scale(Path(session.options.build).resolve(), ranks))
            session.progress.done += 1
            if figures:
                session.scales.setdefault(ranks, []).append(figures)
        session.rounds_done = index + 1


def judge_all(session, wanted):
    """(key, what, goal, judgements) of every row."""
    judged = [(row.key, row.what, row.goal, rows.judge_launch(session.seconds, row)) for row in wanted]
    for ranks, bound in rows.SCALES.items():
        if f"ranks-{ranks}" not in session.options.keys:
            continue
        figures, what = session.scales.get(ranks, []), f"init of {ranks} ranks, threads of 8 processes"
        by_time = rows.judge_plain([seconds for seconds, _ in figures], bound, "s", True)
        by_size = rows.judge_plain([size for _, size in figures], rows.root_bytes_bound(ranks), "bytes a rank at the root", True)
        judged.append((f"ranks-{ranks}", what, f"<= {bound:g} s", by_time))
        judged.append((f"ranks-{ranks}-bytes", what, f"<= log2(n) x {rows.name_of_size(rows.ROOT_BYTES_STEP)} a rank at the root", by_size))
    return judged


def report(session, setup, judged):
    print("\nMedian seconds from launch to exit")
    names = list(dict.fromkeys(name for name, _ in session.seconds))
    counts = sorted({count for _, count in session.seconds})
    print(" " * 26 + "".join(f"{count:>12}" for count in counts))
    for name in names:
        cells = [session.seconds.get((name, count), {}).values() for count in counts]
        print(f"    {name:22}" + "".join(f"{statistics.median(cell):>12.3f}" if cell else " " * 11 + "-" for cell in cells))
    first, second = (session.seconds.get((name, counts[0]), {}) if counts else {} for name in (rows.OURS, rows.PLACEBO))
    if first and second:
        print(f"the same program twice, {counts[0]} processes: {statistics.median(first.values()) / statistics.median(second.values()):.3f}")
    print(f"\n{session.rounds_done} whole rounds of {session.options.rounds}, {session.progress.elapsed() / 60:.1f} min")
    print(f"cores used by others at the start of each round: {' '.join(f'{share:.0%}' for share in session.busy)}")
    for name, why in setup.missing.items():
        print(f"not measured: {name}: {why}")
    for what, errors in session.failures.items():
        print(f"failed {len(errors)} times: {what}: {errors[-1]}")
    if session.options.quick:
        print("a quick run: few samples; its last words say nothing about the goals")
    print("\nwhat | goal | figure | met or missed")
    for _, what, goal, judgements in judged:
        print(rows.line_of(what, goal, judgements))


def write_json(path, session, setup, judged):
    document = {
        "rounds": session.rounds_done,
        "minutes": session.progress.elapsed() / 60,
        "busy": session.busy,
        "failed": session.failures,
        "not_available": setup.missing,
        "rows": [
            {"key": key, "what": what, "goal": goal, "verdict": rows.verdict(judgements), "figures": figures_in(judgements)}
            for key, what, goal, judgements in judged
        ],
        "seconds": [
            {"contender": name, "processes": count, "seconds": list(times.values())}
            for (name, count), times in session.seconds.items()
        ],
        "scales": session.scales,
    }
    Path(path).write_text(json.dumps(document, indent=1) + "\n")


def figures_in(judgements):
    judgement = next(iter(judgements.values()))
    return judgement.figures if judgement else "not seen"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round: does it work at all")
    parser.add_argument("--rows", metavar="KEY,...", help=f"only these; * matches anything: {' '.join(rows.KEYS)}")
    parser.add_argument("--rounds", type=int, help=f"interleaved rounds ({ROUNDS})")
    parser.add_argument("--limit-minutes", type=float, default=20, help="bound of the whole run (20)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--build", metavar="DIR", default=ROOT / "build", help="build folder with our programs")
    parser.add_argument("--peers", metavar="DIR", default=ROOT / "build-peers", help="where peers are installed and compiled")
    parser.add_argument("--no-install", action="store_true", help="measure only the peers that are here")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.keys = wanted_keys(options.rows, rows.KEYS)
    return options


def main():
    options = parse()
    session = Session(options, Progress(options.limit_minutes * 60))
    setup = parties.Launchers(Path(options.build).resolve(), Path(options.peers).resolve(), not options.no_install)
    wanted = [row for row in rows.ROWS if row.key in options.keys]
    names = {name for row in wanted for name in (row.ours, *row.against)}
    names |= {rows.PLACEBO} if rows.OURS in names else set()
    try:
        contenders = [contender for contender in (setup.peers() if wanted else []) if contender.name in names]
        run_rounds(session, contenders, wanted)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    judged = judge_all(session, wanted)
    report(session, setup, judged)
    if options.json:
        write_json(options.json, session, setup, judged)
    return 0 if all(rows.verdict(judgements) == "met" for *_, judgements in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
