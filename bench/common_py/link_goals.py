"""The common parts of the tables over long links between sites: places, series, bounds, rows. Only data and pure functions."""

import statistics
from dataclasses import dataclass

from goals import OURS, PLACEBO, judge_plain

MB = 1_000_000
ONE_WAY_MS = 30.0
ROUND_TRIP_MS = 2 * ONE_WAY_MS
LEAST_SAMPLES = 10
GLOO = "gloo"
RATES = {"250m": 250e6 / 8, "500m": 500e6 / 8, "1g": 1e9 / 8, "2g": 2e9 / 8, "4g": 4e9 / 8}  # bytes in a second


@dataclass(frozen=True)
class Place:
    """Stated sites with an uplink and a downlink of a rate each, 30 ms from each other."""

    key: str
    what: str
    rates: tuple  # one for each site
    hosts: tuple  # likewise
    per_host: int = 1
    states_rates: bool = False
    loss: str = ""  # of each segment
    paths: tuple = ()  # the options of each further path between all sites
    placebo: bool = False  # whether the first series is measured twice

    @property
    def site_settings(self):
        """The variables of each site besides its name."""
        return [{"SETO_SITE_UPLINK_MBIT": round(RATES[rate] * 8e-6)} if self.states_rates else {} for rate in self.rates]

    @property
    def links(self):
        """The options of every ordered pair of sites."""
        return [f"delay={ONE_WAY_MS:g}ms", *([f"loss={self.loss}"] if self.loss else [])]

    @property
    def ranks(self):
        return sum(self.hosts) * self.per_host


def pair_of(rate, **more):
    """Two sites of one host each."""
    what = f"2 hosts, {rate.removesuffix('g')} Gbit/s"
    return Place(**{"key": rate, "what": what, "rates": (rate, rate), "hosts": (1, 1), **more})


PAIR_1G, PAIR_2G = pair_of("1g", placebo=True), pair_of("2g", placebo=True)
NESTED = Place("2x2x2", "2 sites x 2 hosts x 2 ranks, 1 Gbit/s", ("1g", "1g"), (2, 2), 2)
THREE = Place("1:2:4", "3 sites, 250 : 500 : 1000 Mbit/s", ("250m", "500m", "1g"), (1, 1, 1), states_rates=True)


@dataclass(frozen=True)
class Series:
    """What is measured many times at one place. `of`: all_reduce, default, fp16, send_receive (milliseconds of each call, the mean
    over ranks), init-N (milliseconds of the slowest rank, with so many sockets), raw-N (bytes in a second each way, likewise)."""

    place: Place
    of: str
    size: int = 0  # bytes of all calls that are in flight at once
    who: str = OURS
    idle_ms: int = 0  # before each call
    at_once: int = 1  # calls in flight
    settings: tuple = ()  # (variable, value) of the job

    @property
    def what(self):
        parts = [self.of]
        parts += [f"{self.at_once} x {self.size / self.at_once / MB:.4g} MB" if self.at_once > 1 else f"{self.size / MB:g} MB"] if self.size else []
        parts += [f"after {self.idle_ms / 1e3:g} s idle"] if self.idle_ms else []
        parts += [f"{name}={value}" for name, value in self.settings]
        return " ".join(parts) + ("" if self.who == OURS else f", {self.who}")

    @property
    def is_rate(self):
        """Whether its values are bytes in a second, not milliseconds."""
        return self.of.startswith(("raw-", "traffic"))

    def called(self, who):
        """The same, measured by another contender."""
        return Series(self.place, self.of, self.size, who, self.idle_ms, self.at_once, self.settings)


def raw(place, sockets):
    return Series(place, f"raw-{sockets}", who="sockets")


RAW_SOCKETS = (4, 8, 16)
QUICK_RAW_SOCKETS = (4,)  # at 1 Gbit/s more of them lose segments in the queue before the link


def raw_rate(samples, place):
    """Bytes in a second that as many sockets as carry most moved in each direction; None if it was not measured."""
    medians = [statistics.median(samples[key]) for key in (raw(place, sockets) for sockets in RAW_SOCKETS) if samples.get(key)]
    return max(medians, default=None)


def seconds_per_byte(capacities):
    """Of the best all_reduce over sites: each sends all its bytes once and receives the sum, and what a site takes part in adding up
    costs it as many transfers more as there are further sites. Shares of the sum go where there is capacity to spare, until all sites
    are busy for the same time, or the slowest one is alone with its own bytes."""
    count = len(capacities)
    return max(1 / min(capacities), (2 * count - 2) / sum(capacities))


def wire_share(series):
    """The bytes that travel, of those of the call: the library sends large sums of fp32 in fp16 between far sites."""
    return 0.5 if series.of == "default" else 1.0


def bound_ms(samples, series):
    """The bytes of the best plan at the rate of plain sockets, and the ways that they wait for."""
    place = series.place
    rate = raw_rate(samples, place)
    if rate is None:
        return None
    capacities = [RATES[text] for text in place.rates]
    # Plain sockets were measured between the first two sites; the others carry the same share of their rates.
    share = rate / min(capacities[:2])
    ways = 1 if len(capacities) == 2 else 2  # two sites exchange their bytes; more add up first, and then spread the sum
    return series.size * wire_share(series) * seconds_per_byte([capacity * share for capacity in capacities]) * 1e3 + ways * ONE_WAY_MS


@dataclass(frozen=True)
class Row:
    """A goal on the calls of a series. `measure` says what a figure is and which way it is good (`never`: the worst sample decides,
    not the median); the rest is what it needs."""

    key: str
    what: str
    measure: str
    bound: float
    series: Series
    against: Series = None  # the series beside it

    @property
    def goal(self):
        other = f"{self.against.place.key} {self.against.what}" if self.against else ""
        return {
            "share": f">= {self.bound:.0%} of the bound",
            "times": f"<= {self.bound:g} x the bound",
            "rate": f">= {self.bound:.0%} of the rate of plain sockets",
            "link": f">= {self.bound:.0%} of the rate of the link",
            "ms": f"<= {self.bound:g} ms",
            "never": f"<= {self.bound:g} ms each time",
            "more": f"at most {self.bound:g} ms more than {other}",
            "ratio": f"<= {self.bound:g} x the time of {other}",
            "faster": f"{other} takes >= {self.bound:g} x the time",
        }[self.measure]

    @property
    def needs(self):
        """The series that its figure is made of, plain sockets aside."""
        return (self.series,) if self.against is None else (self.series, self.against)

    @property
    def needs_raw(self):
        return self.measure in ("share", "times", "rate")


def calls(place, of, mb, who=OURS, **more):
    return Series(place, of, mb * MB, who, **more)


def figures_of(samples, row):
    """(a figure for each sample of the row's series, its unit, whether it must be at most the goal); no figures without what they are
    held against."""
    times = samples.get(row.series, [])
    if row.measure == "ms":
        return times, "ms", True
    if row.measure == "never":
        worst = [max(times)] if times else []
        return worst, f"ms at worst of {len(times)}, {statistics.median(times or [0]):.0f} ms in the middle", True
    if row.measure == "link":  # of a series of bytes in a second
        return [rate / min(RATES[text] for text in row.series.place.rates) for rate in times], "of the link", False
    if row.against:
        return figures_against(times, samples.get(row.against), row.measure)
    if row.measure == "rate":
        rate = raw_rate(samples, row.series.place)
        return ([row.series.size / rate * 1e3 / time for time in times] if rate else []), f"of the rate, {ms_of(times)}", False
    bound = bound_ms(samples, row.series)
    if bound is None:
        return [], "", False
    both = f"the bound, {ms_of(times)} against {bound:.0f} ms"
    if row.measure == "share":
        return [bound / time for time in times], f"of {both}", False
    return [time / bound for time in times], f"x {both}", True


def figures_against(times, other_times, measure):
    if not other_times:
        return [], "", measure != "faster"
    other = statistics.median(other_times)
    if measure == "more":
        return [time - other for time in times], f"ms more than {other:.0f} ms", True
    both = f"x, {ms_of(times)} against {other:.0f} ms"
    if measure == "ratio":
        return [time / other for time in times], both, True
    return [other / time for time in times], both, False


def ms_of(times):
    return f"{statistics.median(times):.0f} ms" if times else "no samples"


def judge_row(samples, row, least):
    """Judgements as those of goals.py; none with fewer than the least number of samples."""
    figures, unit, at_most = figures_of(samples, row)
    return judge_plain(figures if len(samples.get(row.series, [])) >= least else [], row.bound, unit, at_most)


def placebo_text(samples):
    """How much the same program differs from itself, for each series that was measured twice."""
    lines = []
    for series, times in samples.items():
        own = samples.get(series.called(OURS))
        if series.who == PLACEBO and own:
            ratio = statistics.median(times) / statistics.median(own)
            lines.append(f"  placebo, {series.called(OURS).what}, {series.place.what}: {ratio:.3f}")
    return lines
