"""Training steps and systems for the tables of docs/scale.md. Only data and pure functions."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from topologies import Sites  # noqa: E402

GIGABIT = 1e9 / 8
OPERATIONS = 2  # that a communicator has under way: kWindow in transports/geometry.h

# A rank copies within its host at the rate of NVLink 4, and a hop there takes 2 us. A rank has a NIC of 400 Gbit/s, which sends without
# the processor, so a message costs only its latency.
CONSTANTS = "node.latency_us 2\nnode.gigabytes_per_second 450\nnode.message_us 0\nsite.message_us 0\nworld.message_us 0\n"
NIC = 400 * GIGABIT
FABRIC_ROUND_TRIP_S = 10e-6


@dataclass(frozen=True)
class System:
    sites: int
    hosts: int  # of a site
    per_host: int
    uplink: float = 100 * GIGABIT  # of a site, and its downlink
    round_trip_s: float = 50e-3

    @property
    def ranks(self):
        return self.sites * self.hosts * self.per_host

    @property
    def xml(self):
        fabric = NIC * self.per_host
        return Sites(self.sites, self.hosts, 64, fabric, FABRIC_ROUND_TRIP_S, self.uplink, self.round_trip_s).xml


# A hierarchical plan sums up to 64 members of a tier in one step, and more in several.
EFFICIENCY = (
    System(1, 50, 20), System(2, 25, 20), System(4, 25, 10),
    System(1, 50, 40), System(2, 50, 20), System(4, 25, 20),
    System(2, 50, 40), System(4, 50, 20),
    System(4, 50, 40),
    System(1, 200, 50), System(2, 100, 50), System(4, 50, 50),
)  # fmt: skip
TWO_SITES = System(2, 50, 19)  # 1,900 ranks


@dataclass(frozen=True)
class Training:
    """A data-parallel step. Gradients become ready at an even rate during the backward pass, in buckets, from its start to its end."""

    compute_s: float = 2.0
    backward_s: float = 4 / 3
    gradient_bytes: float = 4e9  # fp32, a billion parameters
    bucket_bytes: int = 100_000_000

    @property
    def buckets(self):
        return round(self.gradient_bytes / self.bucket_bytes)


def exposed_seconds(training, call_s, busy_s):
    """How long the sums of the last buckets take beyond the backward pass. A call takes `call_s` alone; calls follow one another at the
    rate of the busiest link, which is busy for `busy_s` of each; OPERATIONS of them are under way."""
    ends = []
    for bucket in range(training.buckets):
        ready = training.backward_s * (bucket + 1) / training.buckets
        begin = max(ready, ends[bucket - OPERATIONS] if bucket >= OPERATIONS else 0)
        ends.append(max(begin + call_s, ends[-1] + busy_s if ends else 0))
    return max(0.0, ends[-1] - training.backward_s)


def efficiency(training, call_s, busy_s):
    """Of the linear speed: a step without any communication, over the step as it is."""
    return training.compute_s / (training.compute_s + exposed_seconds(training, call_s, busy_s))


def busiest(simulated):
    """(seconds that the busiest link is busy, its kind)"""
    link = max(simulated["links"], key=lambda one: one["busy"])
    return link["busy"] * simulated["seconds"], link["kind"]


def efficiency_row(system, training, simulated):
    busy_s, kind = busiest(simulated)
    share = efficiency(training, simulated["seconds"], busy_s)
    where = f"{system.sites} x {system.hosts} x {system.per_host}"
    return f"| {system.ranks:,} | {where} | {simulated['seconds'] * 1e3:.1f} ms | {busy_s * 1e3:.2f} ms, {kind} | {share:.1%} |"


def cost_row(system, simulated):
    plan, run = simulated["plan_wall_seconds"], simulated["simulation_wall_seconds"]
    return f"| {system.ranks:,} | {system.sites} | {plan:.0f} s | {run:.0f} s | {simulated['memory_bytes'] / 2**30:.1f} GiB |"


def cost(simulated):
    seconds = simulated["plan_wall_seconds"] + simulated["simulation_wall_seconds"]
    return f"{seconds:.0f} s, {simulated['memory_bytes'] / 2**30:.1f} GiB"


SITES_HEADER = """| round trip | buffer, fp32 | flat ring, fp32 | hierarchical, fp16 between sites | ratio | cost of the predictions |
|---|---|---|---|---|---|"""


def flat_against_hierarchical_row(round_trip_s, size, flat, coded):
    ratio = flat["seconds"] / coded["seconds"]
    times = f"{flat['seconds']:.2f} s | {coded['seconds']:.2f} s | {ratio:.1f}"
    return f"| {round_trip_s * 1e3:.0f} ms | {size / 1e9:.1f} GB | {times} | {cost(flat)}; {cost(coded)} |"
