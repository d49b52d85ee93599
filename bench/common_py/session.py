"""Takes samples: progress, the state of the cores around each sample, failures; and the tables that a report prints."""

import dataclasses
import json
import re
import sys
import time
from pathlib import Path

import goals
import states
from machine import busy_share
from peers import Unavailable, run_process

REPEATS = 3
LOOK_S, LOOK_PAUSE_S = 5.0, 0.05  # of the probes that form the states, before anything is measured
HOPELESS = 8  # after this number of dropped samples and none kept, nothing can be measured here


class Progress:
    """Progress and remaining time of the run: one line rewritten on a terminal, a line for each group elsewhere."""

    def __init__(self, limit_s):
        self.start, self.limit_s, self.done, self.total, self.last_title = time.monotonic(), limit_s, 0, 1, ""

    def elapsed(self):
        return time.monotonic() - self.start

    def left(self):
        """Remaining seconds, from the mean of the finished steps; None at the beginning."""
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


class Run:
    """The rounds of a run within its time limit, and their failures. A measurement that fails twice is not tried again."""

    reserve_s = 60
    errors = (Unavailable, OSError, KeyError, ValueError)

    def __init__(self, options, progress):
        self.options, self.progress = options, progress
        self.build = Path(options.build).resolve()
        self.failures, self.busy, self.rounds_done, self.stopped = {}, [], 0, False

    def is_late(self):
        return self.progress.elapsed() > self.progress.limit_s - self.reserve_s

    def rounds(self, steps):
        """Yields the number of each round of `steps` steps. A round that the time limit cuts off is not counted."""
        self.progress.total = self.options.rounds * max(steps, 1)
        for index in range(self.options.rounds):
            self.look_around()
            yield index
            if self.stopped:
                return
            self.rounds_done = index + 1

    def step(self, index, title, name, take):
        """Runs a step of a round, unless the time limit has passed."""
        if self.is_late() and not self.stopped:
            self.stopped = True
            self.progress.note(f"stopped after {self.rounds_done} whole rounds: the time limit has passed")
        if self.stopped:
            return
        self.progress.show(index, self.options.rounds, title, name)
        take()
        self.progress.done += 1

    def look_around(self):
        """Other programs distort every figure; the report states how much of the machine they used."""
        self.busy.append(busy_share())
        if self.busy[-1] > 0.05:
            self.progress.note(f"the machine is not idle: {self.busy[-1]:.0%} of its cores are used by others")

    def attempt(self, what, measure):
        """The figure, or None. Errors are kept and reported once."""
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
    """Samples, each between two probes of the state of the cores."""

    def __init__(self, options, progress):
        super().__init__(options, progress)
        self.probe_program = self.build / "bench" / "flag_probe"
        if not self.probe_program.exists():
            raise SystemExit(f"{self.probe_program} is missing: build the bench programs, or name their folder with --build")
        self.samples, self.singles, self.dropped = [], [], {}
        self.scale = 0.2 if options.quick else 1.0
        self.states, self.first_probes, self.strays = states.States(), [], []
        self.why_nothing = ""  # reason why rows that depend on the state are not measured

    def probe(self):
        return json.loads(run_process([self.probe_program], limit_s=20))

    def find_states(self):
        """Probes for some seconds and finds the states. Without a state no sample is taken, and the report gives the reason."""
        end = time.monotonic() + LOOK_S
        while time.monotonic() < end or len(self.first_probes) < states.LEAST_PROBES:
            self.first_probes.append(self.probe()["exchange_ns"])
            time.sleep(LOOK_PAUSE_S)
        self.states = states.states_of(self.first_probes)
        if not self.states.found and self.options.quick:
            self.progress.note(f"{self.states.text}; a quick run continues nevertheless")
            self.states = states.any_state(self.first_probes)
        if self.states.found:
            self.progress.note(f"states of the cores, from {len(self.first_probes)} flag exchanges: {self.states.text}")
        else:
            self.give_up(self.states.text)

    def give_up(self, why):
        self.why_nothing = why
        self.progress.note(f"no samples can be taken: {why}")

    def announce(self, missing):
        """Reports before the measurement what will not be measured."""
        for what, why in missing:
            self.progress.note(f"{goals.NOT_MEASURED}: {what}: {why}")

    def learn(self, probes):
        """A second state may appear only after the first seconds: probes outside the one known state can form it. Samples
        that were kept before get the new name of their state."""
        if len(self.states.found) != 1:
            return
        self.strays += [probe for probe in probes if self.states.of(probe) is None]
        found = states.states_of(self.first_probes + self.strays)
        if len(found.found) != 2:
            return
        self.states = found
        self.progress.note(f"the cores have a second state: {found.text}")
        placed = [(s, found.of_bracket(*s.probes)) for s in self.samples]
        self.samples = [dataclasses.replace(s, state=state) for s, state in placed if state]
        placed = [(s, found.of_bracket(*(probe["exchange_ns"] for probe in s[3]))) for s in self.singles]
        self.singles = [(key, state, *rest) for (key, _, *rest), state in placed if state]

    def bracketed(self, measure):
        """(state, figures, probes) of a measurement whose two probes agree; None after the last repetition."""
        for _ in range(1 + REPEATS):
            before = self.probe()
            figures = measure()
            after = self.probe()
            pair = (before["exchange_ns"], after["exchange_ns"])
            state = self.states.of_bracket(*pair)
            if state is not None:
                return state, figures, (before, after)
            self.learn(pair)
        return None

    def bracketed_attempt(self, what, measure):
        """The same, or None; failures and dropped samples are counted."""
        dropped = object()
        taken = self.attempt(what, lambda: self.bracketed(measure) or dropped)
        if taken is dropped:
            self.dropped[what] = self.dropped.get(what, 0) + 1
            if sum(self.dropped.values()) >= HOPELESS and not self.samples and not self.singles:
                self.give_up(f"the first {HOPELESS} samples were dropped: the cores do not stay in one of their states ({self.states.text})")
            return None
        return taken

    def sample_all(self, groups, contenders_of, index):
        """Measures each contender of each group once, in rotated order."""
        for group in groups:
            for contender in goals.rotated(contenders_of(group), index):
                if self.why_nothing:
                    return
                self.step(index, group.title, contender.name, lambda: self.sample(group, contender, index))

    def sample(self, group, contender, index):
        what = f"{contender.name}, {group.title}"
        taken = self.bracketed_attempt(what, lambda: contender.measure(group, self.scale))
        if taken:
            state, times, probes = taken
            pair = tuple(probe["exchange_ns"] for probe in probes)
            self.samples.append(goals.Sample(group, contender.name, index, state, times, pair))

    def single(self, key, command, read):
        """Measures one figure of a row with its own program, kept as (key, state, figure, probes)."""
        taken = None if self.why_nothing else self.bracketed_attempt(key, lambda: read(run_process(command)))
        if taken:
            self.singles.append((key, *taken))

    def kept(self):
        """A text for the report."""
        count = len(self.samples) + len(self.singles)
        kept = f", {count} samples kept, {sum(self.dropped.values())} dropped because the cores changed state"
        why = f"\nno samples were taken: {self.why_nothing}" if self.why_nothing else ""
        return f"{kept}\nstates of the cores: {self.states.text}{why}"

    def sample_records(self):
        """The values for the JSON file."""
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
        print("\nThe same program twice (1.00 apart from chance)" if placebos else "", *placebos, sep="\n")


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
