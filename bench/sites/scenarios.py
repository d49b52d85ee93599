"""Random jobs over sites that are not stated. Only data and pure functions."""

import random
from dataclasses import dataclass

LEAST_MS, MOST_MS = 3.0, 80.0  # round trips between sites
SKEWED_WAYS_MS = (5.0, 40.0)  # one way, and back
JITTER = 0.1


@dataclass(frozen=True)
class Scenario:
    """`hosts`: of each site. `ways_ms`: (from, to) -> one way between two sites, without jitter. `busy`: endless loops beside the job."""

    seed: int
    hosts: tuple
    ways_ms: dict
    busy: int

    @property
    def site_of_hosts(self):
        return [site for site, count in enumerate(self.hosts) for _ in range(count)]

    @property
    def commands(self):
        """For the emulator of the lab."""
        return [f"{one}>{other} delay={ms:.3f}ms jitter={ms * JITTER:.3f}ms" for (one, other), ms in self.ways_ms.items()]

    @property
    def longest_round_trip_ms(self):
        return max(ms + self.ways_ms[other, one] for (one, other), ms in self.ways_ms.items()) * (1 + JITTER)

    @property
    def text(self):
        round_trips = [ms + self.ways_ms[other, one] for (one, other), ms in self.ways_ms.items() if one < other]
        sizes = "+".join(str(count) for count in self.hosts)
        return f"{sizes:12} hosts, {min(round_trips):4.1f} to {max(round_trips):4.1f} ms, {self.busy} busy cores"


def scenario_of(seed, cores):
    """2 to 5 sites of 1 to 4 hosts. One pair in five has a way that is eight times as long as the way back."""
    chance = random.Random(seed)
    hosts = tuple(chance.randint(1, 4) for _ in range(chance.randint(2, 5)))
    ways = {}
    for one in range(len(hosts)):
        for other in range(one + 1, len(hosts)):
            half = chance.uniform(LEAST_MS, MOST_MS) / 2
            there, back = chance.sample(SKEWED_WAYS_MS, 2) if chance.random() < 0.2 else (half, half)
            ways[one, other], ways[other, one] = there, back
    return Scenario(seed, hosts, ways, chance.randint(0, cores))


def same_partition(found, expected):
    """Whether both lists put the same hosts together, whatever they call the sites."""
    return len(found) == len(expected) and len(set(zip(found, expected))) == len(set(found)) == len(set(expected))


def time_limit_s(scenario):
    """2 s and three round trips for each site."""
    return 2 + 3 * len(scenario.hosts) * scenario.longest_round_trip_ms / 1e3
