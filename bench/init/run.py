#!/usr/bin/env python3
"""Measures the table of goals for starting a job and ends each row in `met`, `missed` or `not measured`.

    bench/init/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--build DIR]

Every round starts each contender once at each number of processes, in rotated order; `seto run` runs twice under two names, so that the
difference between equal programs is known. README.md of this folder describes the method.
"""

import statistics
import sys
from pathlib import Path

import rows  # first: it adds the common folder to the path
import contenders as parties
from report import exit_status, options_of, parser_of, print_end, write_json
from session import Progress, Run, wanted_keys

ROUNDS = 7


class Launches(Run):
    """Seconds of each launch, and the cost of large communicators."""

    reserve_s = 30

    def __init__(self, options, progress):
        super().__init__(options, progress)
        self.seconds, self.scales = {}, {}

    def launch(self, contender, count, index):
        seconds = self.attempt(f"{contender.name}, {count} processes", lambda: contender.seconds(count))
        if seconds is not None:
            self.seconds.setdefault((contender.name, count), {})[index] = seconds

    def scale(self, ranks):
        figures = self.attempt(f"ranks-{ranks}", lambda: parties.scale(self.build, ranks))
        if figures:
            self.scales.setdefault(ranks, []).append(figures)


def run_rounds(session, contenders, wanted):
    counts = [count for count in rows.COUNTS if any(row.processes == count for row in wanted)]
    scales = [ranks for ranks in rows.SCALES if f"ranks-{ranks}" in session.options.keys]
    for index in session.rounds(len(counts) * len(contenders) + len(scales)):
        for count in counts:
            for contender in rows.rotated(contenders, index):
                take = lambda: session.launch(contender, count, index)  # noqa: E731
                session.step(index, f"{count} processes", contender.name, take)
        for ranks in scales:
            session.step(index, f"{ranks} ranks", "init", lambda: session.scale(ranks))


def judge_all(session, wanted):
    """(key, what, goal, judgements) of every row."""
    judged = [(row.key, row.what, row.goal, rows.judge_launch(session.seconds, row)) for row in wanted]
    for ranks, bound in rows.SCALES.items():
        if f"ranks-{ranks}" not in session.options.keys:
            continue
        figures, what = session.scales.get(ranks, []), f"init of {ranks} ranks, threads of 8 processes"
        by_time = rows.judge_plain([seconds for seconds, _ in figures], bound, "s", True)
        by_size = rows.judge_plain([size for _, size in figures], rows.root_bytes_bound(ranks), "bytes for each rank at the root", True)
        judged.append((f"ranks-{ranks}", what, f"<= {bound:g} s", by_time))
        judged.append((f"ranks-{ranks}-bytes", what, f"<= log2(n) x {rows.name_of_size(rows.ROOT_BYTES_STEP)} for each rank at the root", by_size))
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
    print_end(session, "", setup.missing.items(), "few samples", judged)


def figures_of(session):
    """The values for the JSON file."""
    seconds = [
        {"contender": name, "processes": count, "seconds": list(times.values())} for (name, count), times in session.seconds.items()
    ]
    return {"seconds": seconds, "scales": session.scales}


def parse():
    options = options_of(parser_of(__doc__, rows.KEYS, ROUNDS, "one round", 20), ROUNDS, 1)
    options.keys = wanted_keys(options.rows, rows.KEYS)
    return options


def main():
    options = parse()
    session = Launches(options, Progress(options.limit_minutes * 60))
    setup = parties.Launchers(session.build, Path(options.peers).resolve(), not options.no_install)
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
        write_json(options.json, session, setup.missing, judged, figures_of(session))
    return exit_status(judged)


if __name__ == "__main__":
    sys.exit(main())
