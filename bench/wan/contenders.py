"""What is measured between sites besides plain calls: other traffic, connections of others, steps of training."""

import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import link_labs
import rows
from link_labs import INTERFACE, Launch, figures_in, outputs_of, work_of
from peers import Unavailable

HERE = Path(__file__).resolve().parent
PORT, TORCH_PORT = 30_000, 29_500
PAIR = {"SETO_RANKS": 2}  # the job is on the first two hosts, whatever else the lab has
PATIENCE_S = 60
WARM_LINES, ALONE_LINES = 6, 8  # of plain_stream.py, two a second
PACED_CALLS = 5  # each takes about 1.7 s
WARM_CALLS, WARM_MB = 20, 100  # of a job whose paths break
LOOK_S, CLOSE_LOOK_S = 0.1, 0.005
DIRECTIONS = ("0>1", "1>0")


def means(of_ranks):
    """The mean over the ranks of each call."""
    return [statistics.fmean(times) for times in zip(*of_ranks)]


class OtherTraffic(Launch):
    """A plain socket alone, and then beside a job that is limited to half of the link."""

    def __init__(self, build):
        super().__init__("a job beside other traffic", rows.SHARED, build)

    def run(self, lab):
        receiver = lab.hosts[1].start([sys.executable, "-B", HERE / "plain_stream.py", "serve", lab.hosts[1].ipv4, PORT])
        receiver.line("^listening$")
        sender = lab.hosts[0].start([sys.executable, "-B", HERE / "plain_stream.py", "call", lab.hosts[1].ipv4, PORT])
        self.facts["plain"] = f"the plain socket beside the job: {sender.line('^[a-z0-9]+$')[0]}"
        self.lines(receiver, WARM_LINES)
        alone = self.lines(receiver, ALONE_LINES)
        word = work_of(rows.PACED, ((math.inf, 1, PACED_CALLS),))
        ranks = lab.start_job([self.build / "bench" / "link_calls", word], 1, dict(rows.PACED.settings))
        self.lines(receiver, WARM_LINES)
        before = len(receiver.lines)
        found = [figures_in(text) for text in outputs_of(ranks)]
        beside = rows.rates_between([json.loads(line) for line in receiver.lines[1:]], before - 1, len(receiver.lines) - 2)
        times = means(rank["works"][0]["ms"] for rank in found)
        return {rows.TRAFFIC: beside, rows.TRAFFIC_ALONE: alone, rows.PACED: times}

    def lines(self, receiver, count):
        """The rates of that many further lines."""
        before = len(receiver.lines)
        for number in range(count):
            receiver.line("^{", PATIENCE_S, after=before + number)
        return rows.rates_between([json.loads(line) for line in receiver.lines[before : before + count]], 0, count)


class Connections(Launch):
    """A job of two ranks, and again while a third host connects to their ports."""

    def __init__(self, build, table):
        super().__init__("a job while others connect", rows.LOADED, build)
        self.table = table

    def run(self, lab):
        quiet = self.times(outputs_of(self.start_pair(lab)))
        ranks = self.start_pair(lab)
        addresses = [host.ipv4 for host in lab.hosts[:2]]
        words = [rows.CONNECTIONS_PER_S, dict(rows.LOADED_PORTS)["SETO_PORTS"], *addresses]
        others = lab.hosts[2].start([sys.executable, "-B", HERE / "connections.py", *words])
        others.line("^found$", PATIENCE_S)
        loaded = self.times(outputs_of(ranks))
        found = figures_in(outputs_of([others])[0])
        if not rows.enough_connections(found):
            raise Unavailable(f"only {found['connected'] / found['seconds']:.0f} connections a second were made")
        made = found["connected"] / found["seconds"]
        self.facts["connections"] = f"the third host made {made:.0f} connections a second and used {found['own_share']:.0%} of a core"
        return {rows.QUIET: quiet, rows.UNDER_LOAD: loaded}

    def start_pair(self, lab):
        word = work_of(rows.QUIET, self.table)
        job = lab.job_environments(1, {**PAIR, **dict(rows.LOADED_PORTS)})[:2]
        return [host.start([self.build / "bench" / "link_calls", word], environment) for host, environment in job]

    def times(self, outputs):
        return means(figures_in(text)["works"][0]["ms"] for text in outputs)


class Broken(Launch):
    """A job whose paths break and heal while it makes small calls. All results are compared."""

    def __init__(self, build, breaks):
        super().__init__(f"a job: {breaks.name}", rows.TWO_PATHS, build)
        self.breaks = breaks

    def run(self, lab):
        word = work_of(rows.BREAKING, ((math.inf, WARM_CALLS, self.breaks.calls),)) + ":checked=1"
        ranks = lab.start_job([self.build / "bench" / "link_calls", word], 1, dict(rows.BREAKING.settings))
        end = time.monotonic() + PATIENCE_S
        while min(self.passed(lab)) < WARM_MB * rows.MB:
            if time.monotonic() > end:
                raise Unavailable(f"the job did not send {WARM_MB} MB within {PATIENCE_S} s")
            self.let_run(ranks, LOOK_S)
        breaks = [self.break_once(lab, ranks) for _ in range(self.breaks.times)]
        found = [figures_in(text)["works"][0]["ms"] for text in outputs_of(ranks)]
        waited_ms = sum(broken_s for broken_s, _, _ in breaks) / len(breaks) * 1e3
        # Ranks are looked at one by one: a break may fall into one call of a rank and into the next one of the other.
        longest = [rows.longest(times, self.breaks, waited_ms) for times in found]
        gaps, returns = ([one[which] * 1e3 for one in breaks] for which in (1, 2))
        return {self.breaks.series: means(longest), self.breaks.gaps: gaps, self.breaks.returns: returns}

    def break_once(self, lab, ranks):
        """Returns for how long the paths were broken, the longest time in which no frame passed meanwhile, and the time from their return
        until the first one had passed."""
        begin = time.monotonic()
        for path in self.breaks.paths:
            lab.link(f"path {path} 0-1 hole=on")
        gaps = self.gaps_from_now(lab)
        self.watch(lab, ranks, gaps, self.breaks.broken_s, lambda: False)
        after = self.gaps_from_now(lab)
        for path in self.breaks.paths:
            lab.link(f"path {path} 0-1 hole=off")
        back = time.monotonic()
        self.watch(lab, ranks, after, self.breaks.whole_s, lambda: all(gap.first is not None for gap in after))
        self.let_run(ranks, max(0.0, back + self.breaks.whole_s - time.monotonic()))
        return back - begin, max(gap.longest for gap in gaps), rows.first_frame(after, self.breaks.whole_s)

    def gaps_from_now(self, lab):
        """One for each direction: the worse one counts. What has passed is what came through the paths, so nothing that a black hole
        swallowed."""
        return [rows.Gap(time.monotonic(), passed) for passed in self.passed(lab)]

    def watch(self, lab, ranks, gaps, seconds, over):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not over():
            self.let_run(ranks, CLOSE_LOOK_S)
            for gap, passed in zip(gaps, self.passed(lab)):
                gap.look(time.monotonic(), passed)

    def let_run(self, ranks, seconds):
        """A job that ends meanwhile has failed, or had too few calls for all breaks. Its ranks end together."""
        try:
            code = ranks[0].popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise Unavailable(f"{ranks[0]} ended early, with {code}: {(ranks[0].errors.strip() or 'no output').splitlines()[-1][:200]}")

    def passed(self, lab):
        """Bytes on all paths, in each direction."""
        paths = [path.statistics()["links"] for path in lab.emulators]
        return [sum(links.get(direction, {}).get("passed_bytes", 0) for links in paths) for direction in DIRECTIONS]


class Steps(Launch):
    """Steps of training over one backend, on rank 0."""

    COUNTS = {rows.STEP: (3, 10), rows.STEP_EXACT: (3, 10), rows.STEP_GLOO: (1, 3)}  # warm-ups, steps

    def __init__(self, build, series, python):
        super().__init__(f"training, {series.what}", series.place, build)
        self.series, self.python = series, python

    def run(self, lab):
        backend = "gloo" if self.series == rows.STEP_GLOO else "seto"
        command = [self.python, "-W", "ignore", HERE / "training_step.py", backend, *self.COUNTS[self.series]]
        of_torch = {"MASTER_ADDR": lab.hosts[0].ipv4, "MASTER_PORT": TORCH_PORT, "WORLD_SIZE": len(lab.hosts), "OMP_NUM_THREADS": 1}
        processes = []
        for rank, (host, job) in enumerate(lab.job_environments(1, dict(self.series.settings))):
            of_job = {name: value for name, value in job.items() if name not in ("SETO_RANK", "SETO_RANKS", "SETO_ROOT")}
            environment = {**of_job, **of_torch, "RANK": rank, "LOCAL_RANK": 0, "GLOO_SOCKET_IFNAME": INTERFACE}
            processes.append(host.start(command, environment))
        found = figures_in(outputs_of(processes)[0])
        reason = rows.step_is_valid(found)
        if reason:
            raise Unavailable(reason)
        self.facts["model"] = f"a step of training: {found['gradients_mb']:.0f} MB of gradients, {found['compute_ms']:.0f} ms without communication"
        return {self.series: found["ms"]}


def python_of_torch(session, setup, wanted, python):
    """The one that has torch and the wheel; None where no row needs it or it is not there."""
    if not any(series in rows.STEPS for row in wanted for series in row.needs):
        return None
    if os.access(python, os.X_OK):
        return python
    setup.missing["torch"] = f"{python} is missing: ./dev bench torch makes it"
    session.progress.note(f"{rows.NOT_MEASURED}: torch: {setup.missing['torch']}")
    return None


def launches_of(wanted, session, setup, gloo):
    """Everything that the rows need. `gloo`: the Python of gloo, or None."""
    options, build = session.options, session.build
    series = {one for row in wanted for one in row.needs}
    launches = link_labs.launches_of(wanted, options, build, gloo)
    for launch in launches:
        launch.rounds = 2 if isinstance(launch, link_labs.Gloo) else None
    if rows.TRAFFIC in series:
        launches.append(OtherTraffic(build))
    launches += [Broken(build, breaks) for breaks in (rows.TAKEOVER, rows.OUTAGE) if {breaks.series, breaks.gaps, breaks.returns} & series]
    if rows.UNDER_LOAD in series:
        launches.append(Connections(build, link_labs.table_of(options)))
    torch = python_of_torch(session, setup, wanted, options.torch)
    steps = [Steps(build, one, torch) for one in rows.STEPS if torch and one in series]
    for launch in steps:
        launch.rounds = 1 if launch.series == rows.STEP_GLOO else None
    return launches + steps
