"""The rounds and the report of a table over long links between sites."""

import statistics
from pathlib import Path

import goals
import link_goals
import link_labs
from peers import Setup, Unavailable
from report import exit_status, options_of, parser_of, print_end, write_json
from session import Progress, Run, wanted_keys

REPEATS = 3  # of a launch during which the emulator was late


class Links(Run):
    """Samples of each series, from labs whose emulator was punctual."""

    errors = (*Run.errors, link_labs.LabError)
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
            except link_labs.Late as error:
                self.late.setdefault(what, []).append(str(error))
        return None


def run_rounds(session, launches):
    for index in session.rounds(len(launches)):
        for launch in goals.rotated([one for one in launches if one.rounds is None or index < one.rounds], index):
            session.step(index, launch.place.what, launch.name, lambda: session.take(launch))


def judge_all(session, wanted):
    """(key, what, goal, judgements) of every row."""
    least = 1 if session.options.quick else link_goals.LEAST_SAMPLES
    return [(row.key, row.what, row.goal, link_goals.judge_row(session.samples, row, least)) for row in wanted]


def report(session, launches, missing, judged):
    print("\nMedians: milliseconds of a call; Mbit/s each way of plain sockets (number of samples, range)")
    for place in dict.fromkeys(series.place for series in session.samples):
        print_place(session.samples, place)
    for line in link_goals.placebo_text(session.samples):
        print(line)
    for text in dict.fromkeys(text for launch in launches for text in launch.facts.values()):
        print(text)
    if not all(launch.realtime for launch in launches):
        print("the emulator had no real-time priority")
    late = [(f"{what}, {len(errors)} times", errors[-1]) for what, errors in session.late.items()]
    print_end(session, "", [*missing, *late], "few samples", judged)


def print_place(samples, place):
    print(f"  {place.what}")
    here = {series: values for series, values in samples.items() if series.place == place}
    for series, values in sorted(here.items(), key=lambda item: item[0].what):
        values = [value * 8 / 1e6 if series.is_rate else value for value in values]
        print(f"    {series.what:52}{statistics.median(values):>9.1f}  ({len(values)}, {min(values):.1f} to {max(values):.1f})")


def records_of(session):
    """The samples for the JSON file."""
    records = [
        {"place": series.place.key, "of": series.what, "size": series.size, "who": series.who, "samples": values}
        for series, values in session.samples.items()
    ]
    return {"series": records, "late": session.late}


def parser_for(text, rows, rounds, limit_minutes):
    parser = parser_of(text, rows.KEYS, rounds, "one round of the main rows at 1 Gbit/s", limit_minutes)
    parser.add_argument("--calls", type=int, default=0, metavar="N", help="at least so many calls of each kind in a launch: for few rounds")
    return parser


def parsed(parser, rows, rounds):
    options = options_of(parser, rounds, 1)
    quick = options.quick and not options.rows
    options.keys = list(rows.QUICK_KEYS) if quick else wanted_keys(options.rows, rows.KEYS)
    return options


def python_of_gloo(session, setup, wanted):
    """That of the peers' environment; None where no row needs it or it is not there."""
    if not any(one.who == link_goals.GLOO and one.size for row in wanted for one in row.needs):
        return None
    try:
        return setup.gloo().python
    except (Unavailable, OSError) as error:
        setup.missing[link_goals.GLOO] = str(error)
        session.progress.note(f"{goals.NOT_MEASURED}: {link_goals.GLOO}: {error}")
        return None


def run_table(options, rows, launches_of):
    """Measures the rows that the options name and returns the exit status. launches_of(rows, session, setup, python of gloo)."""
    session = Links(options, Progress(options.limit_minutes * 60))
    setup = Setup(session.build, Path(options.peers).resolve(), not options.no_install)
    wanted = [row for row in rows.ROWS if row.key in options.keys]
    launches = launches_of(wanted, session, setup, python_of_gloo(session, setup, wanted))
    try:
        run_rounds(session, launches)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    judged = judge_all(session, wanted)
    report(session, launches, setup.missing.items(), judged)
    if options.json:
        write_json(options.json, session, setup.missing, judged, records_of(session))
    return exit_status(judged)
