"""The goals for long links between sites. Only data and pure functions."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from link_goals import *  # noqa: E402, F403
from link_goals import GLOO, NESTED, PAIR_1G, PAIR_2G, ROUND_TRIP_MS, THREE, Place, Row, Series, calls  # noqa: E402

UNEVEN = Place("2+1", "2 + 1 hosts, 1 Gbit/s", ("1g", "1g"), (2, 1))
PLACES = (PAIR_1G, PAIR_2G, NESTED, UNEVEN, THREE)


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
