"""The states of the two cores that exchange a flag, found from this machine's own probes. Only data and pure functions.

On some machines two cores sometimes share a cache and sometimes do not, because a hypervisor moves them: two states, near and far.
On others the exchange always takes the same time: one state. The time differs between processors (EPYC: 60-100 ns near,
250-370 ns far; Xeon: 150-160 ns always), so no constant can separate the states.
"""

import math
import statistics
from dataclasses import dataclass

NEAR, FAR, ONE = "near", "far", "one state"
STATES = (NEAR, FAR, ONE)

LEAST_PROBES = 8
LEAST_SHARE = 0.1  # share of all probes; fewer are outliers, not a state
LEAST_RATIO = 1.75  # ratio of the medians of two states; the near state alone varies by 1.6
MOST_RATIO = 12.0  # ratio of the medians; above it the slower probes waited for a core that another program used
MOST_WIDTH = 0.9  # the spreads of the two states together, over the distance of their medians; a uniform cluster cut in two has 1.4
MOST_SPREAD = 3.0  # spread of the middle 70 % of the probes of a state; above it the time of an exchange is not steady
TAIL = 0.15  # share of the probes on either side that the spread excludes
MARGIN = 1.25  # a later probe may lie outside the state's probes by this factor


@dataclass(frozen=True)
class State:
    name: str
    low_ns: float
    high_ns: float
    median_ns: float

    def holds(self, exchange_ns):
        return self.low_ns <= exchange_ns <= self.high_ns


@dataclass(frozen=True)
class States:
    """One state, or near and far. Without a state, the exchange was not steady, and no sample has a state."""

    found: tuple = ()
    why_none: str = ""

    def of(self, exchange_ns):
        """The name of the state of one probe; None outside all states."""
        return next((state.name for state in self.found if state.holds(exchange_ns)), None)

    def of_bracket(self, before_ns, after_ns):
        """The name of the state of a sample between two probes; None if a probe is outside all states or the two differ."""
        before = self.of(before_ns)
        return before if before == self.of(after_ns) else None

    @property
    def text(self):
        if not self.found:
            return self.why_none
        return ", ".join(f"{state.name} {state.median_ns:.0f} ns ({state.low_ns:.0f}-{state.high_ns:.0f})" for state in self.found)


def quantile(ordered, share):
    return ordered[round(share * (len(ordered) - 1))]


def deviation(values):
    """Sum of the distances from the median."""
    middle = statistics.median(values)
    return sum(abs(value - middle) for value in values)


def best_split(logs):
    """The size of the lower part in the best split of ordered values into two parts, each larger than outliers would be."""
    least = max(2, math.ceil(LEAST_SHARE * len(logs)))
    splits = range(least, len(logs) - least + 1)
    return min(splits, key=lambda count: deviation(logs[:count]) + deviation(logs[count:]))


def are_two(lower, upper):
    """Whether the two parts are two states: far enough from each other, and compact."""
    distance = statistics.median(upper) - statistics.median(lower)
    return distance >= math.log(LEAST_RATIO) and spread(lower) + spread(upper) <= MOST_WIDTH * distance


def spread(logs):
    """Width of the middle 70 %."""
    return quantile(logs, 1 - TAIL) - quantile(logs, TAIL)


def range_of(logs, from_ns=0.0, to_ns=math.inf):
    """(lowest, highest, median) nanoseconds of a state, without its outliers, within bounds."""
    lowest, highest = math.exp(quantile(logs, 0.05)) / MARGIN, math.exp(quantile(logs, 0.95)) * MARGIN
    return max(lowest, from_ns), min(highest, to_ns), math.exp(statistics.median(logs))


def states_of(probes):
    """The states that probes (nanoseconds of an exchange) form. Two clusters are near and far; the values between them are in no state."""
    if len(probes) < LEAST_PROBES:
        return States(why_none=f"{len(probes)} flag exchanges that no other program disturbed; {LEAST_PROBES} are needed")
    logs = sorted(math.log(probe) for probe in probes)
    count = best_split(logs)
    lower, upper = logs[:count], logs[count:]
    if statistics.median(upper) - statistics.median(lower) > math.log(MOST_RATIO):
        return states_of([math.exp(log) for log in lower])
    if are_two(lower, upper):
        between = math.exp((statistics.median(lower) + statistics.median(upper)) / 2)
        return States((State(NEAR, *range_of(lower, to_ns=between)), State(FAR, *range_of(upper, from_ns=between))))
    if spread(logs) <= math.log(MOST_SPREAD):
        return States((State(ONE, *range_of(logs)),))
    low, high = (math.exp(quantile(logs, share)) for share in (TAIL, 1 - TAIL))
    return States(why_none=f"a flag exchange between two cores is not steady: {low:.0f} to {high:.0f} ns in 70 % of {len(logs)} probes")


def any_state(probes):
    """One state that holds every probe, for runs whose figures do not count."""
    return States((State(ONE, 0.0, math.inf, statistics.median(probes)),))


def bound_of(state):
    """The state whose bounds apply. If there is one state, the cores have no worse one, so the bounds of near apply to it."""
    return NEAR if state == ONE else state
