"""Taking samples: progress, the state of the cores around each sample, what failed; and the tables that a report prints."""

import json
import re
import sys
import time
from pathlib import Path

import goals
from peers import Unavailable, run_process

REPEATS = 3


class Progress:
    """Where the run is and when it will end: one line rewritten on a terminal, a line for each group elsewhere."""

    def __init__(self, limit_s):
        self.start, self.limit_s, self.done, self.total, self.last_title = time.monotonic(), limit_s, 0, 1, ""

    def elapsed(self):
        return time.monotonic() - self.start

    def left(self):
        """Seconds to go, from the mean of what is done; None at the beginning."""
        return self.elapsed() * (self.total - self.done) / self.done if self.done else None

    def show(self, round_index, rounds, title, contender):
        left = self.left()
        eta = f"about {left / 60:.1f} min left" if left is not None else f"at most {self.limit_s / 60:.0f} min"
        text = f"round {round_index + 1}/{rounds}  {title}: {contender}  [{self.elapsed() / 60:.1f} min, {eta}]"
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif title != self.last_title:
            print(f"# {text}", file=sys.stderr, flush=True)
        self.last_title = title

    def note(self, text):
        lead = "\r\033[K" if sys.stderr.isatty() else ""
        print(f"{lead}# {text}", file=sys.stderr, flush=True)


def busy_share(seconds=2.0):
    """Share of all cores that others used over a moment in which this run did nothing."""

    def ticks():
        fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    total, idle = ticks()
    time.sleep(seconds)
    later_total, later_idle = ticks()
    return 1 - (later_idle - idle) / max(later_total - total, 1)


class Run:
    """The rounds of a run as far as the time goes, and what failed in them. What fails twice is left alone."""

    reserve_s = 60
    errors = (Unavailable, OSError, KeyError, ValueError)

    def __init__(self, options, progress):
        self.options, self.progress = options, progress
        self.build = Path(options.build).resolve()
        self.failures, self.busy, self.rounds_done, self.stopped = {}, [], 0, False

    def is_late(self):
        return self.progress.elapsed() > self.progress.limit_s - self.reserve_s

    def rounds(self, steps):
        """The number of each round, of so many steps. One that the time did not reach for is not counted."""
        self.progress.total = self.options.rounds * max(steps, 1)
        for index in range(self.options.rounds):
            self.look_around()
            yield index
            if self.stopped:
                return
            self.rounds_done = index + 1

    def step(self, index, title, name, take):
        """A step of a round, unless the time is up."""
        if self.is_late() and not self.stopped:
            self.stopped = True
            self.progress.note(f"stopped after {self.rounds_done} whole rounds: the time is up")
        if self.stopped:
            return
        self.progress.show(index, self.options.rounds, title, name)
        take()
        self.progress.done += 1

    def look_around(self):
        """Other work on the machine spoils every figure; the report says how much of it there was."""
        self.busy.append(busy_share())
        if self.busy[-1] > 0.05:
            self.progress.note(f"the machine is not idle: {self.busy[-1]:.0%} of its cores are used by others")

    def attempt(self, what, measure):
        """The figure, or None; errors are kept and said once."""
        if len(self.failures.get(what, [])) >= 2:
            return None
        try:
            return measure()
        except self.errors as error:
            self.failures.setdefault(what, []).append(str(error))
            if len(self.failures[what]) == 1:
                self.progress.note(f"{what}: {error}")
            return None


class Session(Run):
    """Samples, each between two looks at where the cores are."""

    def __init__(self, options, progress):
        super().__init__(options, progress)
        self.probe_program = self.build / "bench" / "flag_probe"
        if not self.probe_program.exists():
            raise SystemExit(f"{self.probe_program} is missing: build the bench programs, or name their folder with --build")
        self.samples, self.singles, self.dropped = [], [], {}
        self.scale = 0.2 if options.quick else 1.0

    def probe(self):
        return json.loads(run_process([self.probe_program], limit_s=20))

    def bracketed(self, measure):
        """(state, figures, probes) of a measurement whose two probes agree; None after the last repetition."""
        for _ in range(1 + REPEATS):
            before = self.probe()
            figures = measure()
            after = self.probe()
            state = goals.state_of_bracket(before["exchange_ns"], after["exchange_ns"])
            if state is not None:
                return state, figures, (before, after)
        return None

    def bracketed_attempt(self, what, measure):
        """The same, or None; what fails or is dropped is counted."""
        dropped = object()
        taken = self.attempt(what, lambda: self.bracketed(measure) or dropped)
        if taken is dropped:
            self.dropped[what] = self.dropped.get(what, 0) + 1
            return None
        return taken

    def sample_all(self, groups, contenders_of, index):
        """Each contender of each group once, in rotated order."""
        for group in groups:
            for contender in goals.rotated(contenders_of(group), index):
                self.step(index, group.title, contender.name, lambda: self.sample(group, contender, index))

    def sample(self, group, contender, index):
        what = f"{contender.name}, {group.title}"
        taken = self.bracketed_attempt(what, lambda: contender.measure(group, self.scale))
        if taken:
            state, times, probes = taken
            pair = tuple(probe["exchange_ns"] for probe in probes)
            self.samples.append(goals.Sample(group, contender.name, index, state, times, pair))

    def single(self, key, command, read):
        """One figure of a program of its own, kept as (key, state, figure, probes)."""
        taken = self.bracketed_attempt(key, lambda: read(run_process(command)))
        if taken:
            self.singles.append((key, *taken))

    def kept(self):
        """For the report."""
        count = len(self.samples) + len(self.singles)
        return f", {count} samples kept, {sum(self.dropped.values())} dropped because the cores changed state"

    def sample_records(self):
        """For the JSON."""
        names = ("contender", "round", "state")
        return [
            {"group": s.group.title, **{name: getattr(s, name) for name in names}, "exchange_ns": s.probes, "time_us": s.times}
            for s in self.samples
        ]

    def print_tables(self, groups, head):
        print(f"\n{head}")
        for group in groups:
            for line in table_of_times(self, group):
                print(line)
        placebos = [line for line in (placebo_line(self, group) for group in groups) if line]
        print("\nThe same program twice (1.00 when nothing but chance differs)" if placebos else "", *placebos, sep="\n")


def wanted_keys(text, known):
    if not text:
        return known
    chosen = []
    for key in text.split(","):
        matching = [name for name in known if name == key or re.fullmatch(key.replace("*", ".*"), name)]
        if not matching:
            raise SystemExit(f"no row `{key}`; rows: {' '.join(known)}")
        chosen += matching
    return chosen


def table_of_times(session, group):
    """Every contender's median at every size, for each state that was seen."""
    lines = []
    names = list(dict.fromkeys(sample.contender for sample in session.samples if sample.group == group))
    for state in goals.STATES:
        medians = {name: goals.medians(session.samples, group, name, state) for name in names}
        if not any(medians.values()):
            continue
        sizes = sorted(set().union(*medians.values()))
        lines.append(
            f"  {group.title}, {state}: us (GB/s)".ljust(52) + "".join(f"{goals.name_of_size(size):>18}" for size in sizes)
        )
        for name in names:
            count = goals.count_samples(session.samples, group, name, state)
            cells = "".join(
                f"{medians[name][s]:>11.2f} ({s / medians[name][s] / 1e3:4.1f})" if s in medians[name] else " " * 17 + "-"
                for s in sizes
            )
            lines.append(f"    {name} ({count} samples)".ljust(52) + cells)
    return lines


def placebo_line(session, group):
    ratios = []
    for state in goals.STATES:
        first, second = (goals.medians(session.samples, group, name, state) for name in (goals.OURS, goals.PLACEBO))
        ratios += [first[size] / second[size] for size in first if size in second]
    if not ratios:
        return None
    return f"  placebo, {group.title}: {goals.geometric_mean(ratios):.3f} (from {min(ratios):.2f} to {max(ratios):.2f})"
