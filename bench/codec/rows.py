"""The goals for codecs on one core, and the pure part of judging them."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403
from goals import OURS, judge_plain  # noqa: E402

CODECS = ("fp16", "bf16", "e4m3", "e5m2", "int8", "int4")
WORKS = ("encode", "decode")
IN_CACHE, BEYOND = "256KiB", "64MiB"
OF_MEMCPY = {"fp16": 0.8, "bf16": 0.8, "e4m3": 0.5, "e5m2": 0.5, "int8": 0.5, "int4": 0.4}
OF_PEERS = {IN_CACHE: 1.5, BEYOND: 1.0}
MEMCPY = "memcpy"


@dataclass(frozen=True)
class Row:
    """GB/s of fp32, as a multiple of another program's in the same round."""

    key: str
    what: str
    codec: str
    work: str
    size: str
    bound: float
    against_memcpy: bool

    @property
    def goal(self):
        return f">= {self.bound}x " + ("memcpy of the fp32 side" if self.against_memcpy else "the best peer")


def where(size):
    return "in cache" if size == IN_CACHE else "beyond the cache"


ROWS = tuple(
    Row(f"memcpy-{codec}-{work}", f"{work} {codec}, {where(BEYOND)}", codec, work, BEYOND, OF_MEMCPY[codec], True)
    for codec in CODECS
    for work in WORKS
) + tuple(
    Row(f"peers-{codec}-{work}-{size}", f"{work} {codec}, {where(size)}", codec, work, size, OF_PEERS[size], False)
    for size in (IN_CACHE, BEYOND)
    for codec in CODECS
    for work in WORKS
)


@dataclass(frozen=True)
class LinkRow:
    """Time of an all-reduce over slow links with a codec, as a multiple of its time without one, in the same launch."""

    key: str
    what: str
    codec: str
    hosts: int
    bound: float

    @property
    def goal(self):
        return f"<= {self.bound}x the uncompressed time"


LINK = ("rate=200m", "delay=1ms", "bucket=64K")
LINK_SIZE = 10_000_000  # bytes
OF_UNCOMPRESSED = {"fp16": 0.53, "int8": 0.28}
HOSTS = (2, 4)
LINK_ROWS = tuple(
    LinkRow(f"link-{codec}-{hosts}", f"all_reduce of 10 MB in {codec}, {hosts} hosts, 200 Mbit/s", codec, hosts, bound)
    for hosts in HOSTS
    for codec, bound in OF_UNCOMPRESSED.items()
)


@dataclass(frozen=True)
class CaseRow:
    """The number of cases of a test program, none of which may fail."""

    key: str
    what: str
    program: str
    tests: str
    least: int

    @property
    def goal(self):
        return f"all of >= {self.least:,} cases"


CASE_ROWS = (
    CaseRow("bits", "equal bits on all ranks: random shapes, algorithms, slices, interleavings, frames", "conformance_test", "*CodedEngineAtRandom*", 10_000),
    CaseRow("bounds", "errors within the bound: adversarial and random blocks", "unit_codec_test", "*CodecBound*", 1_000_000),
)
KEYS = tuple(row.key for row in ROWS + LINK_ROWS + CASE_ROWS)


def ours_of(document):
    """{(codec, work, size): GB/s}, with (memcpy, "", size), from the JSON of codec_bench. Beyond the cache, stores go past it."""
    figures = {}
    for entry in document["benchmarks"]:
        name, speed = entry["name"].split("/"), entry["bytes_per_second"] / 1e9
        if name[0] == MEMCPY:
            figures[MEMCPY, "", name[1]] = speed
        elif name[2] == "float" and name[0] in WORKS and (name[3] == IN_CACHE) == (name[4] == "cached"):
            figures[name[1], name[0], name[3]] = speed
    return figures


def ratio_of(row, ours, peers):
    """ours: {(codec, work, size): GB/s}; peers: {name: the same}. None unless both have a figure."""
    own = ours.get((row.codec, row.work, row.size))
    if row.against_memcpy:
        other = ours.get((MEMCPY, "", row.size))
    else:
        other = max((figures.get((row.codec, row.work, row.size), 0) for figures in peers.values()), default=0)
    return own / other if own and other else None


def times_of(document):
    """{codec: microseconds} from the JSON of all_reduce_perf."""
    return {entry["codec"]: float(entry["out_of_place"]["time"]) for entry in document["results"]}


def cases_of(document):
    """(cases, failures) from the JSON that a test program writes."""
    tests = [test for suite in document["testsuites"] for test in suite["testsuite"]]
    return sum(int(test.get("cases", 0)) for test in tests), sum(bool(test.get("failures")) for test in tests)


def judge_cases(row, document):
    """document is None if the program could not be run."""
    if document is None:
        return judge_plain([], row.least, "cases", False)
    cases, failures = cases_of(document)
    return judge_plain([0 if failures else cases], row.least, "cases, none failed" if not failures else f"cases: {failures} tests failed", False)


def judge_link(row, launches):
    """launches: {codec: microseconds} of each launch over that number of hosts."""
    ratios = [times[row.codec] / times["none"] for times in launches if row.codec in times and times.get("none")]
    return judge_plain(ratios, row.bound, "x", True)


def judge(row, rounds):
    """rounds: a list of (ours, peers)."""
    ratios = [ratio_of(row, ours, peers) for ours, peers in rounds]
    return judge_plain([ratio for ratio in ratios if ratio], row.bound, "x", False)
