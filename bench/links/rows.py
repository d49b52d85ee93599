"""The goals for long links between sites. Only data and pure functions."""

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from goals import OURS, PLACEBO, judge_plain  # noqa: E402, F401

MB = 1_000_000
ONE_WAY_MS = 30.0
ROUND_TRIP_MS = 2 * ONE_WAY_MS
LEAST_SAMPLES = 10
GLOO = "gloo"

RATES = {"250m": 250e6 / 8, "500m": 500e6 / 8, "1g": 1e9 / 8, "2g": 2e9 / 8}  # bytes in a second


@dataclass(frozen=True)
class Place:
    """Stated sites with an uplink and a downlink of a rate each, 30 ms from each other."""

    key: str
    what: str
    rates: tuple  # one for each site
    hosts: tuple  # likewise
    per_host: int = 1
    states_rates: bool = False

    @property
    def site_settings(self):
        """The variables of each site besides its name."""
        return [{"SETO_SITE_UPLINK_MBIT": round(RATES[rate] * 8e-6)} if self.states_rates else {} for rate in self.rates]

    @property
    def ranks(self):
        return sum(self.hosts) * self.per_host


PAIR_1G = Place("1g", "2 hosts, 1 Gbit/s", ("1g", "1g"), (1, 1))
PAIR_2G = Place("2g", "2 hosts, 2 Gbit/s", ("2g", "2g"), (1, 1))
NESTED = Place("2x2x2", "2 sites x 2 hosts x 2 ranks, 1 Gbit/s", ("1g", "1g"), (2, 2), 2)
UNEVEN = Place("2+1", "2 + 1 hosts, 1 Gbit/s", ("1g", "1g"), (2, 1))
THREE = Place("1:2:4", "3 sites, 250 : 500 : 1000 Mbit/s", ("250m", "500m", "1g"), (1, 1, 1), states_rates=True)
PAIRS = (PAIR_1G, PAIR_2G)
PLACES = (PAIR_1G, PAIR_2G, NESTED, UNEVEN, THREE)


@dataclass(frozen=True)
class Series:
    """What is measured many times at one place. `of`: all_reduce, fp16, send_receive (milliseconds of each call, the mean over ranks),
    init-N (milliseconds of the slowest rank, with so many sockets), raw-N (bytes in a second each way, likewise)."""

    place: Place
    of: str
    size: int = 0
    who: str = OURS

    @property
    def what(self):
        size = f" {self.size / MB:g} MB" if self.size else ""
        return f"{self.of}{size}" + ("" if self.who == OURS else f", {self.who}")


def raw(place, sockets):
    return Series(place, f"raw-{sockets}", who="sockets")


RAW_SOCKETS = (4, 8, 16)
QUICK_RAW_SOCKETS = (8,)


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
    return series.size * seconds_per_byte([capacity * share for capacity in capacities]) * 1e3 + ways * ONE_WAY_MS


@dataclass(frozen=True)
class Row:
    """A goal on the calls of a series. `measure` says what a figure is and which way it is good; the rest is what it needs."""

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
            "ms": f"<= {self.bound:g} ms",
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


def calls(place, of, mb, who=OURS):
    return Series(place, of, mb * MB, who)


def rows_of_pair(place, gloo):
    key, where = place.key, place.what
    whole = calls(place, "all_reduce", 100)
    return (
        Row(f"ar-100m-{key}", f"all_reduce 100 MB, {where}", "share", 0.85, whole),
        Row(f"ar-10m-{key}", f"all_reduce 10 MB, {where}", "times", 1.35, calls(place, "all_reduce", 10)),
        Row(f"ar-1m-{key}", f"all_reduce 1 MB, {where}", "times", 1.25, calls(place, "all_reduce", 1)),
        Row(f"fp16-{key}", f"all_reduce 100 MB in fp16, {where}", "ratio", 0.62, calls(place, "fp16", 100), whole),
        Row(f"sr-100m-{key}", f"send and receive 100 MB, {where}", "rate", 0.85, calls(place, "send_receive", 100)),
        Row(f"sr-1m-{key}", f"send and receive 1 MB, {where}", "ms", 50, calls(place, "send_receive", 1)),
        Row(f"gloo-{key}", f"all_reduce 100 MB against gloo, {where}", "faster", gloo, whole, calls(place, "all_reduce", 100, GLOO)),
    )


TWO_RANKS = calls(PAIR_1G, "all_reduce", 100)
ROWS = (
    *rows_of_pair(PAIR_1G, 3.8),
    *rows_of_pair(PAIR_2G, 7.0),
    Row("init", "init with 16 sockets, 2 hosts", "more", ROUND_TRIP_MS, Series(PAIR_1G, "init-16"), Series(PAIR_1G, "init-1")),
    *(
        Row(f"ar-{place.key}", f"all_reduce 100 MB, {place.what}", "ratio", 1.15, calls(place, "all_reduce", 100), TWO_RANKS)
        for place in (NESTED, UNEVEN)
    ),
    Row(f"ar-{THREE.key}", f"all_reduce 100 MB, {THREE.what}", "share", 0.75, calls(THREE, "all_reduce", 100)),
)
KEYS = tuple(row.key for row in ROWS)
QUICK_KEYS = ("ar-100m-1g", "ar-10m-1g", "ar-1m-1g", "sr-100m-1g", "sr-1m-1g")


def figures_of(samples, row):
    """(a figure for each sample of the row's series, its unit, whether it must be at most the goal); no figures without what they are
    held against."""
    times = samples.get(row.series, [])
    if row.measure == "ms":
        return times, "ms", True
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
    return judge_plain(figures if len(figures) >= least else [], row.bound, unit, at_most)


def placebo_text(samples):
    """How much the same program differs from itself, for each series that was measured twice."""
    lines = []
    for series, times in samples.items():
        own = samples.get(Series(series.place, series.of, series.size))
        if series.who == PLACEBO and own:
            ratio = statistics.median(times) / statistics.median(own)
            lines.append(f"  placebo, {series.of} {series.size / MB:g} MB, {series.place.what}: {ratio:.3f}")
    return lines
