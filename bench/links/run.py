#!/usr/bin/env python3
"""Measures the table of goals for long links between sites and ends each row in `met`, `missed` or `not measured`.

    bench/links/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--build DIR]

Every round opens a lab (tests/lab, root) and starts fresh processes for each thing that is measured, in rotated order. --quick takes less
than a minute: one round of the main rows at 1 Gbit/s. README.md of this folder says how each row is measured.
"""

import statistics
import sys
from pathlib import Path

import rows  # first: it knows where the common parts are
import contenders as parties
from peers import Setup, Unavailable
from report import exit_status, options_of, parser_of, print_end, write_json
from session import Progress, Run, wanted_keys

ROUNDS = 5
LIMIT_MINUTES = 60
REPEATS = 3  # of a launch during which the emulator was late


class Links(Run):
    """Samples of each series, from labs whose emulator was punctual."""

    errors = (*Run.errors, parties.LabError)
    reserve_s = 60

    def __init__(self, options, progress):
        super().__init__(options, progress)
        self.samples, self.late = {}, {}

    def take(self, launch):
        what = f"{launch.name}, {launch.place.what}"
        for series, values in (self.attempt(what, lambda: self.punctual(launch, what)) or {}).items():
            self.samples.setdefault(series, []).extend(values)

    def punctual(self, launch, what):
        for _ in range(REPEATS):
            try:
                return launch.measure()
            except parties.Late as error:
                self.late.setdefault(what, []).append(str(error))
        return None


def run_rounds(session, launches):
    for index in session.rounds(len(launches)):
        for launch in rows.rotated(launches, index):
            session.step(index, launch.place.what, launch.name, lambda: session.take(launch))


def judge_all(session, wanted):
    """(key, what, goal, judgements) of every row."""
    least = 1 if session.options.quick else rows.LEAST_SAMPLES
    return [(row.key, row.what, row.goal, rows.judge_row(session.samples, row, least)) for row in wanted]


def report(session, launches, missing, judged):
    print("\nMedians: milliseconds of a call; Mbit/s each way of plain sockets (number of samples, range)")
    for place in rows.PLACES:
        print_place(session.samples, place)
    for line in rows.placebo_text(session.samples):
        print(line)
    for text in dict.fromkeys(text for launch in launches for text in (launch.congestion, launch.limits) if text):
        print(text)
    if not all(launch.realtime for launch in launches):
        print("the emulator had no real-time priority")
    late = [(f"{what}, {len(errors)} times", errors[-1]) for what, errors in session.late.items()]
    print_end(session, "", [*missing, *late], "few samples", judged)


def print_place(samples, place):
    here = {series: values for series, values in samples.items() if series.place == place}
    if here:
        print(f"  {place.what}")
    for series, values in sorted(here.items(), key=lambda item: item[0].what):
        values = [value * 8 / 1e6 if series.of.startswith("raw-") else value for value in values]
        print(f"    {series.what:32}{statistics.median(values):>9.1f}  ({len(values)}, {min(values):.1f} to {max(values):.1f})")


def figures_of(session):
    """For the JSON."""
    records = [{"place": s.place.key, "of": s.of, "size": s.size, "who": s.who, "samples": values} for s, values in session.samples.items()]
    return {"series": records, "late": session.late}


def parse():
    options = options_of(parser_of(__doc__, rows.KEYS, ROUNDS, "one round of the main rows at 1 Gbit/s", LIMIT_MINUTES), ROUNDS, 1)
    quick = options.quick and not options.rows
    options.keys = list(rows.QUICK_KEYS) if quick else wanted_keys(options.rows, rows.KEYS)
    return options


def python_of_gloo(session, setup, wanted):
    """That of the peers' environment; None where no row needs it or it is not there."""
    if not any(row.against and row.against.who == rows.GLOO for row in wanted):
        return None
    try:
        return setup.gloo().python
    except (Unavailable, OSError) as error:
        setup.missing[rows.GLOO] = str(error)
        session.progress.note(f"{rows.NOT_MEASURED}: {rows.GLOO}: {error}")
        return None


def main():
    options = parse()
    session = Links(options, Progress(options.limit_minutes * 60))
    setup = Setup(session.build, Path(options.peers).resolve(), not options.no_install)
    wanted = [row for row in rows.ROWS if row.key in options.keys]
    launches = parties.launches_of(wanted, options, session.build, python_of_gloo(session, setup, wanted))
    try:
        run_rounds(session, launches)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    judged = judge_all(session, wanted)
    report(session, launches, setup.missing.items(), judged)
    if options.json:
        write_json(options.json, session, setup.missing, judged, figures_of(session))
    return exit_status(judged)


if __name__ == "__main__":
    sys.exit(main())
