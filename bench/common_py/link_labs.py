"""What is measured at a place with long links: our calls, plain sockets, gloo. Every launch has a lab and processes of its own."""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import goals
import link_goals
from peers import GLOO_SOURCE, Unavailable, times_of_lines

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "lab"))

from emulator import is_punctual, lateness_text  # noqa: E402
from lab import INTERFACE, Lab, Site  # noqa: E402
from namespaces import LabError, why_not  # noqa: E402, F401  LabError is for link_run.py

LAUNCH_LIMIT_S = 150
JOBS_OF_INIT = 2  # in a launch: five rounds give the ten samples that a row needs
RAW_PORT = 30_000
# (warm-ups, calls) of a launch, for sizes up to so many MB.
CALLS = ((1, 5, 10), (10, 3, 6), (100, 2, 5))
QUICK_CALLS = ((1, 3, 10), (10, 2, 5), (100, 1, 2))
RAW_SECONDS, QUICK_RAW_SECONDS = (2, 3), (1, 2)  # warm-up, measured


class Late(Exception):
    """The emulator was not punctual: the machine was too busy for the figures to count."""


class Launch:
    """Opens a lab at a place for each sample. Subclasses say what runs in it."""

    rounds = None  # in which it is launched, from the first one on; None: in all

    def __init__(self, name, place, build):
        self.name, self.place, self.build = name, place, build
        self.realtime = True
        self.facts = {}  # what the report prints once, by name

    def run(self, lab):
        """{series: samples}"""
        raise NotImplementedError

    def measure(self):
        reason = why_not()
        if reason:
            raise Unavailable(f"hosts made of namespaces: skipped: {reason}")
        sites = [Site(hosts, rate) for hosts, rate in zip(self.place.hosts, self.place.rates)]
        with Lab(sites, self.place.links, build=self.build, paths=[options.split() for options in self.place.paths]) as lab:
            lab.site_settings = self.place.site_settings
            self.facts.update(congestion=lab.congestion.text, limits=socket_limits(lab))
            taken = self.run(lab)
        self.realtime = lab.counted["realtime"]
        if not is_punctual(lab.counted):
            raise Late(lateness_text(lab.counted))
        return taken


def socket_limits(lab):
    """What the kernel gives a socket at most, in a host."""
    values = [lab.hosts[0].run(["cat", f"/proc/sys/net/ipv4/{name}"]).split()[-1] for name in ("tcp_wmem", "tcp_rmem")]
    return f"a socket may hold {values[0]} bytes to send and {values[1]} to receive"


def outputs_of(processes, limit_s=LAUNCH_LIMIT_S):
    """What each printed; all must end well."""
    codes = [process.wait(limit_s) for process in processes]
    for process, code in zip(processes, codes):
        if code != 0:
            last = (process.errors.strip() or process.output.strip() or "no output").splitlines()[-1][:200]
            raise Unavailable(f"{process} ended with {code}: {last}")
    return [process.output for process in processes]


def figures_in(output):
    return json.loads(output.splitlines()[-1])


class OurCalls(Launch):
    """One job of link_calls: the series of ours at a place with the same settings. Larger messages come first: they warm the
    connections."""

    def __init__(self, name, place, build, wanted, table=CALLS):
        super().__init__(name, place, build)
        self.wanted, self.table = sorted(wanted, key=lambda series: -series.size), table
        self.settings = dict(wanted[0].settings) if wanted else {}

    def run(self, lab):
        return self.samples_of(self.start(lab, self.words, self.settings))

    @property
    def words(self):
        return [work_of(series, self.table) for series in self.wanted]

    def start(self, lab, words, environment):
        """What each rank printed."""
        ranks = lab.start_job([self.build / "bench" / "link_calls", *words], self.place.per_host, environment)
        return [figures_in(text) for text in outputs_of(ranks)]

    def samples_of(self, ranks):
        """The mean over the ranks of each call: a rank that begins earlier than another waits longer, and the other less."""
        taken = {}
        for index, series in enumerate(self.wanted):
            taken[series] = [statistics.fmean(times) for times in zip(*(rank["works"][index]["ms"] for rank in ranks))]
        return taken


class Again(OurCalls):
    """The placebo: ours once more under another name."""

    def __init__(self, place, build, series):
        super().__init__(goals.PLACEBO, place, build, [series])

    def samples_of(self, ranks):
        taken = super().samples_of(ranks)
        return {one.called(goals.PLACEBO): times for one, times in taken.items()}


def table_of(options):
    """The warm-ups and calls of a launch; options.calls: at least so many calls."""
    if options.quick:
        return QUICK_CALLS
    return tuple((most, warm_ups, max(calls, options.calls)) for most, warm_ups, calls in CALLS)


def work_of(series, table):
    """The word of link_calls for a series."""
    warm_ups, calls = next(((warm_ups, calls) for most, warm_ups, calls in table if series.size <= most * link_goals.MB), table[-1][1:])
    word = f"{series.of}:{series.size // series.at_once}:{warm_ups}:{calls}"
    word += f":idle={series.idle_ms}" if series.idle_ms else ""
    return word + (f":at-once={series.at_once}" if series.at_once > 1 else "")


class OurInit(OurCalls):
    """The init of a communicator with a stated number of sockets for a pair."""

    def __init__(self, place, build, series):
        super().__init__(series.of, place, build, [])
        self.series, self.sockets = series, int(series.of.removeprefix("init-"))

    def run(self, lab):
        jobs = [self.start(lab, [], {"SETO_TCP_STREAMS": self.sockets}) for _ in range(JOBS_OF_INIT)]
        return {self.series: [max(rank["init_ms"] for rank in ranks) for ranks in jobs]}


class PlainSockets(Launch):
    """What sockets carry both ways at once between the first two sites: the slower direction."""

    def __init__(self, place, build, sockets, quick):
        super().__init__(f"{sockets} plain sockets", place, build)
        self.sockets, self.seconds = sockets, QUICK_RAW_SECONDS if quick else RAW_SECONDS

    def run(self, lab):
        server = next(host for host in lab.hosts if host.site == 1)
        words = [server.ipv4, RAW_PORT, self.sockets, *self.seconds]
        program = self.build / "bench" / "duplex_sockets"
        processes = [server.start([program, "serve", *words])]
        processes[0].line("^listening$")
        processes.append(lab.hosts[0].start([program, "call", *words]))
        rates = [figures_in(text)["bytes_per_second"] for text in outputs_of(processes)]
        return {link_goals.raw(self.place, self.sockets): [min(rates)]}


class Gloo(Launch):
    """torch's all_reduce over gloo, warm; a launch is one sample, the mean of two calls."""

    def __init__(self, place, build, series, python):
        super().__init__(link_goals.GLOO, place, build)
        self.series, self.python = series, python

    def run(self, lab):
        with tempfile.TemporaryDirectory() as folder:
            command = [self.python, "-W", "ignore", GLOO_SOURCE, "all_reduce", "--sizes", self.series.size, "--budget", 0.1, "--least", 2]
            command += ["--ranks", self.place.ranks, "--rendezvous", f"{folder}/rendezvous", "--rank"]
            environment = {"GLOO_SOCKET_IFNAME": INTERFACE}
            processes = [host.start([*command, rank], environment) for rank, host in enumerate(lab.hosts)]
            return {self.series: [times_of_lines(outputs_of(processes)[0])[self.series.size] / 1e3]}


def launches_of(wanted, options, build, python):
    """Everything that the rows need, each once. `python`: that of gloo, or None."""
    series = list(dict.fromkeys(series for row in wanted for series in row.needs))
    places = list(dict.fromkeys(one.place for one in series))
    launches = []
    for place in places:
        here = [one for one in series if one.place == place]
        own = [one for one in here if one.who == goals.OURS and one.size]
        if any(row.needs_raw for row in wanted if row.series.place == place):
            sockets = link_goals.QUICK_RAW_SOCKETS if options.quick else link_goals.RAW_SOCKETS
            launches += [PlainSockets(place, build, count, options.quick) for count in sockets]
        for settings in dict.fromkeys(one.settings for one in own):
            name = " ".join([goals.OURS, *(f"{name}={value}" for name, value in settings)])
            launches.append(OurCalls(name, place, build, [one for one in own if one.settings == settings], table_of(options)))
        launches += [OurInit(place, build, one) for one in here if one.of.startswith("init-")]
        launches += [Gloo(place, build, one, python) for one in here if one.who == link_goals.GLOO and one.size and python]
        first = [one for one in own if one.of == "all_reduce" and not (one.idle_ms or one.settings) and one.at_once == 1][:1]
        if first and place.placebo and not options.quick:
            launches.append(Again(place, build, first[0]))
    return launches
