"""The goals for TCP: between processes of one machine, between hosts made of namespaces, over slow links."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from goals import KIB, MIB, Group, Row  # noqa: E402

LOOPBACK, VETH, VETH_PAIRS = "loopback", "veth", "2 x 2 over veth"
PLACES = (LOOPBACK, VETH, VETH_PAIRS)
FLAT_RING = "Seto flat ring"
PAYLOAD_SHARE = 1448 / 1500  # share of payload in an IP packet of 1500 bytes, with TCP's time stamps


def small(place):
    return Group("all_reduce", 2, 8, 64 * KIB, calls=((4 * KIB, 3000), (64 * KIB, 1000)), place=place)


def large(place):
    return Group("all_reduce", 2, MIB, 64 * MIB, calls=((4 * MIB, 40), (64 * MIB, 8)), with_limit=True, place=place)


PAIRS = Group("all_reduce", 4, MIB, 64 * MIB, calls=((4 * MIB, 30), (64 * MIB, 6)), place=VETH_PAIRS)


def rows_of(place, name):
    return (
        Row(
            f"{name}-small",
            f"all_reduce, 2 processes, 8 B - 64 KiB, TCP over {place}",
            (small(place),),
            "time",
            0.9,
        ),
        Row(
            f"{name}-large",
            f"all_reduce, 2 processes, 1 - 64 MiB, TCP over {place}",
            (large(place),),
            "speed",
            1.3,
            limit_mean=0.85,
            limit_name="iperf3 --bidir",
        ),
    )


ROWS = (
    *rows_of(LOOPBACK, "loop"),
    *rows_of(VETH, "veth"),
    Row(
        "hierarchical",
        "all_reduce, 2 namespaces x 2 processes, 1 - 64 MiB, hierarchical",
        (PAIRS,),
        "speed",
        1.5,
        against=(FLAT_RING,),
    ),
)


class LinkRow:
    """A goal on an emulated link: a share of the payload that TCP can carry over it. It depends on neither cores nor peers."""

    def __init__(self, key, what, options, share, rate, wants_punctuality):
        self.key, self.what, self.options, self.share, self.rate = key, what, options, share, rate
        self.wants_punctuality = wants_punctuality
        self.goal = f">= {share:.0%} of rate x 1448/1500, in each direction"

    @property
    def round_trip_us(self):
        """Twice the delay. A link without a delay has a long round trip too, because of its queue."""
        delay = next((option[6:-2] for option in self.options if option.startswith("delay=")), None)
        return 2000.0 * float(delay) if delay else 10_000.0

    def counts(self, late_us):
        """Whether the emulator was punctual enough for a valid figure. If only the rate matters, the figure is always valid: a
        bucket that is served late passes fewer bytes, never more."""
        return not self.wants_punctuality or late_us < self.round_trip_us / 100

    def share_of_payload(self, bytes_per_second):
        return bytes_per_second * 8 / (self.rate * PAYLOAD_SHARE)


LINK_ROWS = (
    LinkRow("in-flight", "16 operations of 1 MiB in flight, 1 Gbit/s, 5 ms each way", ("rate=1g", "delay=5ms"), 0.85, 1e9, True),
    LinkRow("slow-25", "all_reduce of 10 MB fp32 over 25 Mbit/s", ("rate=25m", "delay=1ms", "bucket=64K"), 0.95, 25e6, False),
    LinkRow("slow-200", "all_reduce of 10 MB fp32 over 200 Mbit/s", ("rate=200m", "delay=1ms", "bucket=64K"), 0.95, 200e6, False),
)
SLOW_SIZE = 10_000_000

MEMORY_ROW, MEMORY_BOUND_MIB = "memory", 1.6
KEYS = tuple(row.key for row in ROWS) + tuple(row.key for row in LINK_ROWS) + (MEMORY_ROW,)
