"""The common parts of all tables of goals: groups, samples, states, ratios, verdicts. Only data and pure functions."""

import math
import statistics
from dataclasses import dataclass, field, replace

from states import FAR, NEAR, ONE, STATES, bound_of  # noqa: F401

KIB, MIB = 1 << 10, 1 << 20
NO_SIZE = 1 << 62

OURS, PLACEBO, THREADS, LENT = "Seto", "Seto again", "Seto threads", "Seto, setoMemAlloc"
LIMIT, YARDSTICK = "limit", "yardstick"
NOT_MEASURED = "not measured"
PEERS = ("Open MPI", "MPICH", "Intel MPI", "gloo")


def sizes_of(lower, upper):
    """Every second power of two from the lower bound, and the upper bound."""
    sizes = []
    size = lower
    while size < upper:
        sizes.append(size)
        size *= 4
    return sizes + [upper]


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(math.log(value) for value in values) / len(values))


def name_of_size(size):
    for unit, letter in ((1 << 30, "G"), (MIB, "M"), (KIB, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return f"{size}B"


@dataclass(frozen=True)
class Group:
    """One collective, one number of ranks and one range of sizes, which are measured side by side."""

    collective: str
    ranks: int
    lower: int
    upper: int
    extra_sizes: tuple = ()  # sizes of a goal that are not in the series of the range; no geometric mean includes them
    calls: tuple = ()  # (up to this size, calls per size) for our own programs, which take one number of calls per launch
    with_limit: bool = False
    with_threads: bool = False
    named_sizes: tuple = ()  # instead of the range's series
    place: str = ""  # where the ranks are, unless on this machine

    @property
    def sizes(self):
        return list(self.named_sizes) or sizes_of(self.lower, self.upper)

    @property
    def all_sizes(self):
        return sorted(set(self.sizes) | set(self.extra_sizes))

    def shortened(self, most):
        """The group of a quick run: no sizes above this number of bytes, and only sizes of the series."""
        upper = max(self.lower, min(self.upper, most))
        calls = tuple((min(top, upper), count) for top, count in self.calls if top <= upper or top == self.calls[-1][0])
        return replace(self, upper=upper, extra_sizes=(), calls=calls)

    @property
    def title(self):
        text = f"{self.collective} {self.ranks} ranks {name_of_size(self.lower)}-{name_of_size(self.upper)}"
        return f"{text}, {self.place}" if self.place else text


@dataclass(frozen=True)
class Sample:
    """One launch: microseconds per size, and the state of the cores around it."""

    group: Group
    contender: str
    round: int
    state: str
    times: dict
    probes: tuple = ()


@dataclass(frozen=True)
class Floor:
    """A bound for each single size, from a size on, in some states."""

    from_size: int
    bound: float
    below_size: int = NO_SIZE
    states: tuple = STATES

    @property
    def where(self):
        """`at each size`, `from 64K`, `below 64K near`."""
        parts = [f"from {name_of_size(self.from_size)}"] if self.from_size else []
        parts += [f"below {name_of_size(self.below_size)}"] if self.below_size < NO_SIZE else []
        return " ".join([*(parts or ["at each size"]), *(self.states if self.states != STATES else ())])


@dataclass(frozen=True)
class Row:
    """A goal on groups. measure `time`: ours / theirs, at most the bound. `speed`: theirs / ours in time, at least the bound."""

    key: str
    what: str
    groups: tuple
    measure: str
    mean: float = 0.0  # bound of the geometric mean; 0: none
    each: tuple = ()  # Floors
    ours: str = OURS
    against: tuple = PEERS  # the best of these at each size
    limit_mean: float = 0.0  # share of the limit program, as a geometric mean
    limit_each: float = 0.0  # and at each size
    limit_name: str = "the limit"

    @property
    def goal(self):
        """The text of all bounds."""
        sign = "time <=" if self.measure == "time" else ">="
        parts = [f"{sign} {self.mean}x (mean)"] if self.mean else []
        parts += [f"{sign} {floor.bound}x {floor.where}" for floor in self.each]
        parts[0] = parts[0].replace("x ", f"x {'the best peer' if self.against == PEERS else self.against[0]} ", 1)
        parts += [f">= {self.limit_mean:.0%} of {self.limit_name} (mean)"] if self.limit_mean else []
        parts += [f">= {self.limit_each:.0%} of {self.limit_name} at each size"] if self.limit_each else []
        return ", ".join(parts)


@dataclass
class Judgement:
    """A row in one state."""

    state: str
    text: str
    met: bool
    figures: dict = field(default_factory=dict)


def medians(samples, group, contender, state):
    """Size -> median microseconds over the samples of one contender in one state."""
    chosen = [s for s in samples if s.group == group and s.contender == contender and s.state == state]
    sizes = set().union(*(s.times for s in chosen)) if chosen else set()
    return {size: statistics.median(s.times[size] for s in chosen if size in s.times) for size in sorted(sizes)}


def count_samples(samples, group, contender, state=None):
    return sum(1 for s in samples if s.group == group and s.contender == contender and state in (None, s.state))


def best_of(samples, group, contenders, state):
    """Size -> (microseconds, contender) of the fastest; None if a contender has samples in another state but none in this one."""
    best = {}
    for contender in contenders:
        if not count_samples(samples, group, contender):
            continue
        times = medians(samples, group, contender, state)
        if not times:
            return None
        for size, time in times.items():
            if size not in best or time < best[size][0]:
                best[size] = (time, contender)
    return best or None


def ratios_against(ours, theirs, measure):
    """Size -> ratio, as the measure defines it."""
    common = [size for size in ours if size in theirs]
    return {size: ours[size] / theirs[size] if measure == "time" else theirs[size] / ours[size] for size in common}


def keeps(ratio, bound, measure):
    return ratio <= bound if measure == "time" else ratio >= bound


def broken_floors(ratios, row, state):
    """Sizes whose ratio breaks a floor, worst first."""
    broken = []
    for floor in row.each:
        if bound_of(state) not in floor.states:
            continue
        broken += [
            size
            for size, ratio in ratios.items()
            if floor.from_size <= size < floor.below_size and not keeps(ratio, floor.bound, row.measure)
        ]
    return sorted(set(broken), key=lambda size: ratios[size], reverse=row.measure == "time")


def worst_of(ratios, measure):
    pick = max if measure == "time" else min
    size = pick(ratios, key=ratios.get)
    return f"worst {ratios[size]:.2f} at {name_of_size(size)}"


def judge_limit(samples, row, group, state, ours):
    """(text, met, mean) of the share of the limit program; None without a figure of it in this state."""
    limit = medians(samples, group, LIMIT, state)
    shares = {size: limit[size] / ours[size] for size in group.sizes if size in limit and size in ours}
    if not shares:
        return None
    mean = geometric_mean(shares.values())
    met = mean >= row.limit_mean and min(shares.values()) >= row.limit_each
    return f"{mean:.0%} of {row.limit_name} ({worst_of(shares, 'speed')})", met, mean


def judge_group(samples, row, group, state, least_samples):
    """One row's group in one state, or None if the state has no samples."""
    if count_samples(samples, group, row.ours, state) < least_samples:
        return None
    ours = medians(samples, group, row.ours, state)
    best = best_of(samples, group, row.against, state)
    if not best:
        return None
    ratios = ratios_against(ours, {size: time for size, (time, _) in best.items()}, row.measure)
    series = [ratios[size] for size in group.sizes if size in ratios]
    if len(series) < len(group.sizes):
        return None
    mean = geometric_mean(series)
    broken = broken_floors(ratios, row, state)
    met = (not row.mean or keeps(mean, row.mean, row.measure)) and not broken
    text = f"{mean:.2f}x ({worst_of(ratios, row.measure)})"
    figures = {"mean": mean, "ratios": ratios, "best": {size: who for size, (_, who) in best.items()}}
    if broken:
        side = "above" if row.measure == "time" else "below"
        text += f" {side} the bound at " + " ".join(name_of_size(size) for size in broken)
    if row.limit_mean or row.limit_each:
        share = judge_limit(samples, row, group, state, ours)
        if share is None:
            return None
        text += ", " + share[0]
        met = met and share[1]
        figures["limit_mean"] = share[2]
    return Judgement(state, text, met, figures)


def judge(samples, row, least_samples=2):
    """State -> Judgement or None (not seen). A row with several groups gets one judgement over all of them."""
    result = {}
    for state in STATES:
        parts = [judge_group(samples, row, group, state, least_samples) for group in row.groups]
        if any(part is None for part in parts):
            result[state] = None
        elif len(parts) == 1:
            result[state] = parts[0]
        else:
            text = "; ".join(f"{name_of_size(g.lower)}-{name_of_size(g.upper)} {p.text}" for g, p in zip(row.groups, parts))
            result[state] = Judgement(
                state, text, all(p.met for p in parts), {g.title: p.figures for g, p in zip(row.groups, parts)}
            )
    return result


def judge_single(figures_by_state, bounds, unit, least_samples=1):
    """A row with one number: {state: [figures]} against {state: bound}; the median must be at most the bound."""
    result = {}
    for state in STATES:
        figures = figures_by_state.get(state, [])
        if len(figures) < least_samples:
            result[state] = None
            continue
        figure, bound = statistics.median(figures), bounds[bound_of(state)]
        result[state] = Judgement(
            state, f"{figure:.1f} {unit} (bound {bound:.1f})", figure <= bound, {"figure": figure, "bound": bound}
        )
    return result


def judge_plain(figures, bound, unit, at_most):
    """A row with one number that does not depend on the state of the cores: its median counts for every state."""
    if not figures:
        return dict.fromkeys(STATES)
    figure = statistics.median(figures)
    met = figure <= bound if at_most else figure >= bound
    text = f"{figure:.2f} {unit} (bound {bound:.2f}, {len(figures)} samples from {min(figures):.2f} to {max(figures):.2f})"
    return dict.fromkeys(STATES, Judgement("any", text, met, {"figure": figure, "bound": bound, "samples": list(figures)}))


def verdict(judgements):
    """The verdict of a row over the states with samples; `not measured` without any."""
    seen = [judgement for judgement in judgements.values() if judgement is not None]
    if not seen:
        return NOT_MEASURED
    return "met" if all(judgement.met for judgement in seen) else "missed"


def shown_states(judgements):
    """The states that a row lists: the only one, or near and far if one of them has samples; none without samples."""
    if judgements.get(ONE):
        return (ONE,)
    return (NEAR, FAR) if any(judgements.get(state) for state in (NEAR, FAR)) else ()


def line_of(what, goal, judgements):
    """The text of a row: what, goal, figure of each state or `not seen`, and the verdict."""
    if judgements and all(judgement and judgement.state == "any" for judgement in judgements.values()):
        figures = judgements[STATES[0]].text
    else:
        texts = {state: judgements[state].text if judgements[state] else "not seen" for state in shown_states(judgements)}
        figures = " | ".join(f"{state}: {text}" for state, text in texts.items()) or "too few samples"
    return f"{what} | {goal} | {figures} | {verdict(judgements)}"


def rotated(items, by):
    items = list(items)
    return items[by % len(items) :] + items[: by % len(items)] if items else items
