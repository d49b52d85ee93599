"""The goals for one RDMA link against perftest on the same devices. Only data and pure functions."""

import json
import re
import statistics
from dataclasses import dataclass

NOT_MEASURED = "not measured"
NO_GOAL = "no goal"
LEAST_SAMPLES = 3  # of each side, for a verdict


@dataclass(frozen=True)
class Contender:
    key: str
    command: str  # for the shell of the virtual machine, in the root of the repository
    figure: object  # output -> figure, or None


@dataclass(frozen=True)
class Row:
    key: str
    what: str
    unit: str
    ours: Contender
    theirs: Contender
    bound: float  # of the ratio ours / theirs; 0: a figure without a goal
    at_most: bool = False

    @property
    def goal(self):
        if not self.bound:
            return NO_GOAL
        return f"{'<=' if self.at_most else '>='} {self.bound:g} x {self.theirs.key}"

    @property
    def contenders(self):
        return (self.theirs, self.ours)

    def verdict(self, samples):
        return verdict_of(self, samples)

    def ratio(self, samples):
        return ratio_of(self, samples)

    def text(self, samples):
        return text_of(self, samples)


COLUMN = re.compile(r"#\w+|[^\s#][^\[]*\[[^\]]*\]")  # "#bytes", "BW average[MB/sec]"


def of_perftest(column):
    """The figure in that column of the line of numbers, which follows the line of names."""

    def figure(output):
        lines = output.splitlines()
        for names, numbers in zip(lines, lines[1:]):
            words = COLUMN.findall(names)
            if "#bytes" not in words or column not in words:
                continue
            fields = numbers.split()
            return float(fields[words.index(column)]) if len(fields) == len(words) else None
        return None

    return figure


def of_ours(name):
    def figure(output):
        for line in output.splitlines():
            if line.startswith("{"):
                return json.loads(line).get(name)
        return None

    return figure


PERFTEST = "tests/rdma_lab/smoke/perftest.sh"
LINK = "$RDMA_LAB_BUILD/bench/rdma_link"
WRITE_BW = Contender("ib_write_bw", f"{PERFTEST} ib_write_bw -s 1048576 -n 100", of_perftest("BW average[MB/sec]"))
WRITE_LAT = Contender("ib_write_lat", f"{PERFTEST} ib_write_lat -s 8 -n 3000", of_perftest("t_typical[usec]"))
PLACES = Contender("places", f"{LINK} bandwidth path=place bytes=1048576 messages=100", of_ours("mib_per_s"))
RING = Contender("ring", f"{LINK} bandwidth path=ring bytes=1048576 messages=100", of_ours("mib_per_s"))
LATENCY = Contender("latency", f"{LINK} latency bytes=8 messages=3000", of_ours("us"))

ROWS = (
    Row("write-1m", "1 MiB written into the place of the receiver", "MiB/s", PLACES, WRITE_BW, 0.90),
    Row("ring-1m", "1 MiB through the ring, copied in and out", "MiB/s", RING, WRITE_BW, 0),
    Row("latency-8", "8 bytes, half a round trip", "us", LATENCY, WRITE_LAT, 1.5, at_most=True),
)
KEYS = tuple(row.key for row in ROWS)


def contenders_of(rows):
    """Each once, in the order of first use, so that both sides of a row are near each other."""
    return list(dict.fromkeys(one for row in rows for one in row.contenders))


def rotated(items, by):
    return items[by % len(items) :] + items[: by % len(items)]


def ratio_of(row, samples):
    """The ratio of the medians; None: too few samples."""
    sides = [samples.get(one.key, []) for one in (row.ours, row.theirs)]
    if min(map(len, sides)) < LEAST_SAMPLES:
        return None
    ours, theirs = map(statistics.median, sides)
    return ours / theirs


def verdict_of(row, samples):
    ratio = ratio_of(row, samples)
    if ratio is None:
        return NOT_MEASURED
    if not row.bound:
        return row.goal
    return "met" if (ratio <= row.bound if row.at_most else ratio >= row.bound) else "missed"


def text_of(row, samples):
    def side(one):
        figures = samples.get(one.key, [])
        if not figures:
            return f"{one.key} -"
        return f"{one.key} {statistics.median(figures):.1f} {row.unit} ({min(figures):.1f} to {max(figures):.1f})"

    ratio = ratio_of(row, samples)
    figure = f"{ratio:.2f} x" if ratio is not None else "too few samples"
    return f"{row.what} | {row.goal} | {side(row.ours)}, {side(row.theirs)}: {figure} | {verdict_of(row, samples)}"
