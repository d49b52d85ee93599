"""The regret table and the table of the simulation, from measured points. Only data and pure functions."""

import json
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import KIB, MIB, name_of_size  # noqa: E402
from topologies import Sites  # noqa: E402

NEAR, SHARE, WORST = 1.10, 0.90, 1.5  # goals of choice
SIMULATED_NEAR, SIMULATED_FROM = 0.25, 64 * KIB  # goal of the simulation, and the smallest size that it is about

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all")
SHORT = (KIB, 16 * KIB, 64 * KIB, MIB)


@dataclass(frozen=True)
class Place:
    key: str
    what: str
    ranks: int
    works: tuple  # (collective, bytes)
    rounds: int
    batch_ms: float
    variables: dict = field(default_factory=dict, hash=False)
    hosts: tuple = ()  # of each site, in a lab; empty: this machine


def _works(collectives, sizes, further=()):
    return tuple((collective, size) for collective in collectives for size in sizes) + tuple(further)


LONG = (("all_reduce", 16 * MIB), ("all_reduce", 64 * MIB))
SLOW = _works(("all_reduce", "all_gather", "broadcast"), (KIB, 64 * KIB, MIB), (("all_reduce", 16 * MIB),))
TCP = {"SETO_TRANSPORT": "tcp"}
SLOW_ONE_WAY_MS, SLOW_RATE = 10, "500m"
RATES = {"500m": 500e6 / 8}  # bytes a second
HEADERS = 1448 / 1514  # what Ethernet, IP and TCP leave of a packet of 1,514 bytes
PLACES = (
    Place("shm-2", "shared memory, 2 ranks", 2, _works(COLLECTIVES, SHORT, LONG), 9, 4),
    Place("shm-4", "shared memory, 4 ranks", 4, _works(COLLECTIVES, SHORT, LONG), 9, 4),
    Place("tcp-2", "TCP loopback, 2 ranks", 2, _works(COLLECTIVES, SHORT, LONG), 7, 4, TCP),
    Place("tcp-4", "TCP loopback, 4 ranks", 4, _works(COLLECTIVES, SHORT, LONG[:1]), 7, 4, TCP),
    Place("slow-2", "2 sites, 20 ms, 500 Mbit/s, 2 ranks", 2, SLOW, 3, 1, hosts=(1, 1)),
    Place("slow-4", "2 sites x 2 ranks, 20 ms, 500 Mbit/s", 4, SLOW, 3, 1, hosts=(1, 1)),
)
PLACE_KEYS = [place.key for place in PLACES]

# --- kept runs: every half power of two, and further cuts of the chosen algorithm ---

KEPT_ROUNDS, KEPT_BATCH_MS = 24, 0.2
CUTS_FROM, CUTS_TO = 64 * KIB, 16 * MIB


def half_powers(first, last):
    """Whole elements of fp32 at every half power of two."""
    sizes, exponent = [], 2 * (first.bit_length() - 1)
    while (size := int(2 ** (exponent / 2)) // 4 * 4) <= last:
        sizes.append(size)
        exponent += 1
    return list(dict.fromkeys(sizes))


def _kept_works(last):
    return tuple((collective, size) for collective in COLLECTIVES for size in half_powers(8, last))


KEPT_PLACES = (
    Place("shm-2", "shared memory, 2 ranks", 2, _kept_works(256 * MIB), KEPT_ROUNDS, KEPT_BATCH_MS),
    Place("shm-4", "shared memory, 4 ranks", 4, _kept_works(256 * MIB), KEPT_ROUNDS, KEPT_BATCH_MS),
    Place("tcp-2", "TCP loopback, 2 ranks", 2, _kept_works(16 * MIB), KEPT_ROUNDS, KEPT_BATCH_MS, TCP),
    Place("tcp-4", "TCP loopback, 4 ranks", 4, _kept_works(16 * MIB), KEPT_ROUNDS, KEPT_BATCH_MS, TCP),
)


def has_cuts(place, size):
    """Whether the chosen algorithm is measured with other slices, slots and stores: those of shared memory, at whole powers."""
    return not place.variables and CUTS_FROM <= size <= CUTS_TO and size & (size - 1) == 0


def quartile(values):
    """The lower one: a machine that other programs use makes some rounds longer and none shorter."""
    return sorted(values)[len(values) // 4]


def kept_point(point):
    times = dict(point["us"])
    times[point["chosen"]] = times.get(point["chosen"], []) + times.pop("", [])
    us = {name: float(f"{quartile(values):.4g}") for name, values in times.items()}
    return {name: point[name] for name in ("collective", "bytes", "chosen", "slice_bytes")} | {"us": us}


def kept_place(place, run, points):
    """`run`: facts of the run: kernel, date, how busy the machine was."""
    links = points[0]["links"]
    constants = [line for facts in links for line in constants_of_link(facts, 1)]
    facts = {"place": place.key, "ranks": place.ranks, "ranks_a_core": points[0]["ranks_a_core"], "tier": links[-1]["tier"]} | run
    origins = {link["tier"]: f"{link['latency_origin']}; {link['rate_origin']}" for link in links}
    return facts | {"constants": constants, "origins": origins, "points": [kept_point(point) for point in points]}


def text_of_kept(header, places):
    """JSON with a line for each point, so that a diff of two runs can be read."""
    parts = []
    for place in places:
        facts = json.dumps({name: value for name, value in place.items() if name != "points"})
        lines = ",\n".join("  " + json.dumps(point) for point in place["points"])
        parts.append(f'{facts[:-1]}, "points": [\n{lines}]}}')
    return json.dumps(header)[:-1] + ', "places": [\n' + ",\n".join(parts) + "]}\n"


def regrets_of_kept(document):
    """Of the choice at the time of the run, against every candidate."""
    found = []
    for place in document["places"]:
        for point in place["points"]:
            us, chosen = point["us"], point["chosen"]
            best = min(us, key=us.get)
            found.append(Regret(place["place"], point["collective"], point["bytes"], chosen, best, us[chosen], us[best]))
    return found


def file_name_of(processor):
    """A processor as the name of a file: letters and digits, joined by underscores."""
    return "_".join("".join(c if c.isalnum() else " " for c in processor.lower()).split())


@dataclass(frozen=True)
class Regret:
    place: str
    collective: str
    size: int
    chosen: str
    best: str
    chosen_us: float
    best_us: float

    @property
    def ratio(self):
        return self.chosen_us / self.best_us


def medians_of(point):
    """Microseconds by algorithm. The choice without a pin is the chosen algorithm once more, so both are one sample."""
    times = dict(point["us"])
    unpinned = times.pop("", [])
    times[point["chosen"]] = times.get(point["chosen"], []) + unpinned
    return {name: statistics.median(values) for name, values in times.items()}


def regret_of(place, point):
    medians = medians_of(point)
    best = min(medians, key=medians.get)
    chosen = point["chosen"]
    return Regret(place, point["collective"], point["bytes"], chosen, best, medians[chosen], medians[best])


def text_of_regrets(regrets):
    """The lines of the regret table: counts for each place, every point beyond NEAR, the verdict."""
    lines = [f"{'place':10}{'points':>8}{'within 10 %':>13}{'worst':>8}"]
    for place in dict.fromkeys(one.place for one in regrets):
        here = [one for one in regrets if one.place == place]
        near = sum(one.ratio <= NEAR for one in here)
        lines.append(f"{place:10}{len(here):>8}{near:>13}{max(one.ratio for one in here):>8.2f}")
    for one in sorted(regrets, key=lambda one: -one.ratio):
        if one.ratio <= NEAR:
            break
        what = f"{one.place} {one.collective} {name_of_size(one.size)}"
        lines.append(f"  {what:34}{one.ratio:5.2f} x: chose {one.chosen} {one.chosen_us:.1f} us, {one.best} {one.best_us:.1f} us")
    near = sum(one.ratio <= NEAR for one in regrets) / len(regrets)
    worst = max(one.ratio for one in regrets)
    met = near >= SHARE and worst <= WORST
    goal = f">= {SHARE:.0%} within 10 % of the best, none beyond {WORST:g} x"
    lines.append(f"choice | {goal} | {near:.0%}, worst {worst:.2f} x | {'met' if met else 'missed'}")
    return lines


def has_met(lines):
    return all(line.endswith("met") for line in lines if " | " in line)


# --- the simulation ---


def ranks_a_core(place, point, cores):
    """Of TCP loopback, whose ranks are hosts of one core in the simulation."""
    return max(1, point["ranks"] / cores) if place.variables else 1


def constants_of(place, point, cores):
    """The text of SETO_TUNING_FILE with the constants that this communicator measured. Ranks that share a core wait for each other's messages."""
    turns = ranks_a_core(place, point, cores)
    return "\n".join(line for facts in point["links"] for line in constants_of_link(facts, turns)) + "\n"


def constants_of_link(facts, turns):
    """Lines of SETO_TUNING_FILE. `turns`: ranks that take turns with their messages."""
    lines = [
        f"{facts['tier']}.latency_us {facts['latency_seconds'] * 1e6:.6g}",
        f"{facts['tier']}.gigabytes_per_second {facts['bytes_per_second'] / 1e9:.6g}",
        f"{facts['tier']}.message_us {facts['message_seconds'] * turns * 1e6:.6g}",
    ]
    if "cached_bytes" in facts:
        lines.append(f"{facts['tier']}.cached_gigabytes_per_second {facts['cached_bytes_per_second'] / 1e9:.6g}")
        lines.append(f"{facts['tier']}.cached_kilobytes {facts['cached_bytes'] / 1024:.6g}")
    if "long_message_bytes" in facts:
        lines.append(f"{facts['tier']}.long_message_kilobytes {facts['long_message_bytes'] / 1024:.6g}")
    return lines


def topology_of(place, point, cores):
    """The sites for seto plan simulate. A rank of TCP loopback is a host of its own; its wire is the memory of the machine, so ranks
    that share cores share its rate."""
    tiers = {facts["tier"]: facts for facts in point["links"]}
    widest = point["links"][-1]
    if place.hosts:
        rate = RATES[SLOW_RATE] * HEADERS
        return Sites(sites=len(place.hosts), hosts=1, cores=cores, uplink=rate, round_trip_s=2 * SLOW_ONE_WAY_MS / 1e3)
    if not place.variables:
        return Sites(cores=cores)
    rate = widest["bytes_per_second"] / ranks_a_core(place, point, cores)
    return Sites(hosts=place.ranks, cores=1, fabric=rate, fabric_round_trip_s=2 * tiers[widest["tier"]]["latency_seconds"])


@dataclass(frozen=True)
class Compared:
    place: str
    collective: str
    size: int
    algorithm: str
    measured_us: float
    predicted_us: float

    @property
    def error(self):
        return self.predicted_us / self.measured_us - 1


def text_of_comparison(compared):
    lines = [f"{'place':10}{'call':22}{'algorithm':20}{'measured us':>13}{'predicted us':>14}{'error':>8}"]
    for one in compared:
        call = f"{one.collective} {name_of_size(one.size)}"
        lines.append(f"{one.place:10}{call:22}{one.algorithm:20}{one.measured_us:>13.1f}{one.predicted_us:>14.1f}{one.error:>8.0%}")
    for place in dict.fromkeys(one.place for one in compared):
        errors = [abs(one.error) for one in compared if one.place == place]
        within = sum(error <= SIMULATED_NEAR for error in errors)
        goal = "all within 25 % of the measured time"
        lines.append(f"simulation, {place} | {goal} | {within} of {len(errors)}, worst {max(errors):.0%} | {'met' if within == len(errors) else 'missed'}")
    return lines
