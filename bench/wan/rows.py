"""The goals for jobs whose ranks are at several sites. Only data and pure functions."""

import sys
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


def rates_between(lines, first, last):
    """The bytes in a second of the lines {"seconds", "bytes"} with these numbers."""
    return [line["bytes"] / line["seconds"] for line in lines[first:last]]


def enough_connections(found):
    """Whether a third host connected about as often as it should have: {seconds, connected}."""
    return found["connected"] >= 0.8 * CONNECTIONS_PER_S * found["seconds"]
