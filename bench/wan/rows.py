"""The goals for jobs whose ranks are at several sites. Only data and pure functions."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from link_goals import *  # noqa: E402, F403
from link_goals import GLOO, MB, NESTED, PAIR_1G, PAIR_2G, ROUND_TRIP_MS, THREE, Place, Row, Series, calls, pair_of  # noqa: E402

MIB = 1 << 20
PLAIN = (("SETO_TLS", "off"),)
EXACT = (("SETO_CODEC", "none"),)
PAIR_4G = pair_of("4g")
LOSSES = {"0.1": 2, "1": 4}  # percent of the segments: round trips more
LOSSY = {percent: pair_of("1g", key=f"1g-{percent}%", what=f"2 hosts, 1 Gbit/s, {percent} % lost", loss=f"{percent}%") for percent in LOSSES}

# A job that is limited to half of the link, and one plain socket beside it.
SHARED = pair_of("1g", key="1g-shared", what="2 hosts, 1 Gbit/s, shared with other traffic")
PACED = calls(SHARED, "all_reduce", 100, settings=(("SETO_SITE_PACING_MBIT", 500),))
TRAFFIC, TRAFFIC_ALONE = (Series(SHARED, "traffic", who=who) for who in ("one plain socket beside the job", "one plain socket alone"))

# A third host connects to the ports of a job of two ranks and sends what is no greeting of the library.
CONNECTIONS_PER_S = 500
LOADED_PORTS = (("SETO_PORTS", "21000-21003"),)
LOADED = Place("1g+1", "2 hosts, 1 Gbit/s, and a third host that connects", ("1g", "1g", "1g"), (1, 1, 1))
QUIET, UNDER_LOAD = (calls(LOADED, "all_reduce", 100, who, settings=LOADED_PORTS) for who in ("none of them", f"{CONNECTIONS_PER_S} connections a second"))

# A path breaks again and again while a job makes small calls.
TWO_PATHS = pair_of("1g", key="1g+backup", what="2 hosts, 1 Gbit/s, and a backup path of 200 Mbit/s, 90 ms", paths=("rate=200m delay=45ms",))
BREAKING = Series(TWO_PATHS, "all_reduce", 4 * MB, settings=(("SETO_CODEC", "none"), ("SETO_PATHS", "wan0,wan1")))


@dataclass(frozen=True)
class Breaks:
    """How often the paths break, and for how long; what a call may take."""

    name: str
    paths: tuple  # that break together
    times: int
    broken_s: float
    whole_s: float  # after it
    calls: int  # in all: they must outlast the breaks
    waits: bool  # whether nothing can pass meanwhile

    @property
    def series(self):
        return Series(TWO_PATHS, self.name, settings=BREAKING.settings)

    @property
    def gaps(self):
        return Series(TWO_PATHS, f"no frame passes: {self.name}", settings=BREAKING.settings)

    @property
    def returns(self):
        return Series(TWO_PATHS, f"the first frame after the return: {self.name}", settings=BREAKING.settings)


FIRST_PATH, BOTH_PATHS = (
    calls(TWO_PATHS, "all_reduce", 100, settings=(("SETO_PATHS", "wan0,wan1"), ("SETO_PATHS_USE", use))) for use in ("backup", "together")
)
TAKEOVER = Breaks("a call while the first path is a black hole", (0,), 5, 3, 5, 600, waits=False)
OUTAGE = Breaks("a call after both paths were cut for 10 s", (0, 1), 4, 10, 10, 800, waits=True)

# A step of training: see training_step.py.
STEP, STEP_EXACT, STEP_GLOO = Series(PAIR_1G, "step"), Series(PAIR_1G, "step", settings=EXACT), Series(PAIR_1G, "step", who=GLOO)
STEPS = (STEP, STEP_EXACT, STEP_GLOO)
LEAST_GRADIENTS_MB, MOST_COMPUTE_MS = 25, 70


def rows_of_pair(place):
    key, where = place.key, place.what
    whole = calls(place, "all_reduce", 100)
    plain = calls(place, "all_reduce", 100, settings=PLAIN)
    at_once = Series(place, "all_reduce", 4 * 25 * MIB, at_once=4)
    return (
        Row(f"warm-{key}", f"all_reduce 100 MB, {where}, back to back", "share", 0.90, whole),
        Row(f"idle-{key}", f"the same after 1 s idle, {where}", "share", 0.75, calls(place, "all_reduce", 100, idle_ms=1000)),
        Row(f"fp16-{key}", f"all_reduce 100 MB in fp16, the default, {where}", "share", 0.85, calls(place, "default", 100)),
        Row(f"flight-{key}", f"four all_reduces of 25 MiB in flight, {where}", "share", 0.90, at_once),
        Row(f"tls-{key}", f"TLS against plain, 100 MB, {where}", "ratio", 1.10, whole, plain),
        Row(f"gloo-{key}", f"all_reduce 100 MB against gloo, {where}", "faster", 1.0, whole, calls(place, "all_reduce", 100, GLOO)),
    )


TWO_RANKS = calls(PAIR_1G, "all_reduce", 100)
PLAIN_4G = calls(PAIR_4G, "all_reduce", 100, settings=PLAIN)
ROWS = (
    *rows_of_pair(PAIR_1G),
    *(
        Row(f"{mb}m-1g", f"all_reduce {mb} MB, {PAIR_1G.what}", "share", 0.80, calls(PAIR_1G, "all_reduce", mb))
        for mb in (10, 1)
    ),
    *rows_of_pair(PAIR_2G),
    Row("warm-4g", f"all_reduce 100 MB, plain, {PAIR_4G.what}, back to back", "share", 0.80, PLAIN_4G),
    Row("idle-4g", "the same after 1 s idle, plain, 4 Gbit/s", "share", 0.60, calls(PAIR_4G, "all_reduce", 100, idle_ms=1000, settings=PLAIN)),
    Row("gloo-4g", f"all_reduce 100 MB, plain, against gloo, {PAIR_4G.what}", "faster", 1.0, PLAIN_4G, calls(PAIR_4G, "all_reduce", 100, GLOO)),
    *(
        Row(f"loss-{percent}", f"all_reduce 100 MB, {place.what}", "more", LOSSES[percent] * ROUND_TRIP_MS, calls(place, "all_reduce", 100), TWO_RANKS)
        for percent, place in LOSSY.items()
    ),
    Row(f"sites-{THREE.key}", f"all_reduce 100 MB, {THREE.what}", "share", 0.80, calls(THREE, "all_reduce", 100)),
    Row(f"sites-{NESTED.key}", f"all_reduce 100 MB, {NESTED.what}", "ratio", 1.10, calls(NESTED, "all_reduce", 100), TWO_RANKS),
    Row("together", "all_reduce 100 MB over both paths against the first alone, 1 Gbit/s and 200 Mbit/s", "ratio", 0.95, BOTH_PATHS, FIRST_PATH),
    Row("gap", "between two frames of 64 KiB on either path, when the first one becomes a black hole", "never", 1000, TAKEOVER.gaps),
    Row("takeover", "the longest call of 4 MB while the first path is a black hole and a backup works", "never", 1000, TAKEOVER.series),
    Row("return", "from the return of both paths, cut for 10 s, until a frame of 64 KiB has passed in each direction", "never", 2000, OUTAGE.returns),
    Row("outage", "a call of 4 MB that both paths were cut for 10 s in, less these 10 s", "never", 2000, OUTAGE.series),
    Row("shared", "a plain socket beside a job paced to half of 1 Gbit/s", "link", 0.40, TRAFFIC),
    Row("connections", f"all_reduce 100 MB while {CONNECTIONS_PER_S} connections a second come that are none of the job", "ratio", 1.10, UNDER_LOAD, QUIET),
    Row("ddp-fp16", "a step of DDP, 1 Gbit/s, with the default codec against none", "faster", 1.6, STEP, STEP_EXACT),
    Row("ddp-gloo", "a step of DDP, 1 Gbit/s, against gloo", "faster", 4.0, STEP, STEP_GLOO),
)
KEYS = tuple(row.key for row in ROWS)
QUICK_KEYS = ("warm-1g", "idle-1g", "fp16-1g", "flight-1g", "10m-1g", "1m-1g")


def step_is_valid(found):
    """None, or the reason why a step of training does not count: {gradients_mb, compute_ms}."""
    if found["gradients_mb"] < LEAST_GRADIENTS_MB:
        return f"the gradients are {found['gradients_mb']:.0f} MB: at least {LEAST_GRADIENTS_MB}"
    if found["compute_ms"] > MOST_COMPUTE_MS:
        return f"a step computes for {found['compute_ms']:.0f} ms: at most {MOST_COMPUTE_MS}"
    return None


def longest(times, breaks, waited_ms):
    """The longest calls, as many as there were breaks, without the time for which nothing could pass. Calls are made back to back, so
    each break falls into one."""
    return [time - (waited_ms if breaks.waits else 0) for time in sorted(times)[-breaks.times :]]


class Gap:
    """The longest time, in seconds, in which less than a frame passed, by looks at how many bytes have passed in all; and the time until
    the first frame had passed."""

    FRAME = 64 << 10  # of links of several sockets

    def __init__(self, now, passed):
        self.begun, self.since, self.mark, self.longest, self.first = now, now, passed, 0.0, None

    def look(self, now, passed):
        self.longest = max(self.longest, now - self.since)
        if passed - self.mark >= self.FRAME:
            self.since, self.mark = now, passed
            if self.first is None:
                self.first = now - self.begun


def first_frame(gaps, watched_s):
    """The time until a frame had passed in each direction: at least that of the watch where none did."""
    return max(watched_s if gap.first is None else gap.first for gap in gaps)


def rates_between(lines, first, last):
    """The bytes in a second of the lines {"seconds", "bytes"} with these numbers."""
    return [line["bytes"] / line["seconds"] for line in lines[first:last]]


def enough_connections(found):
    """Whether a third host connected about as often as it should have: {seconds, connected}."""
    return found["connected"] >= 0.8 * CONNECTIONS_PER_S * found["seconds"]
