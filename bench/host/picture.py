"""Bandwidth over message size as an SVG: one panel per number of ranks, one line per contender."""

import rows  # noqa: F401  first: it knows where the common parts are
from panels import Panel, drawn, left_of, series_of


def draw(samples, state):
    """The picture for one state of the cores, or None if there is nothing to draw."""
    panels = []
    for ranks in (2, 4):
        groups = {sample.group for sample in samples if sample.group.collective == "all_reduce" and sample.group.ranks == ranks}
        series = series_of(samples, groups, state)
        if series:
            panels.append(Panel(left_of(len(panels)), f"all_reduce fp32, {ranks} processes, cores {state}: GB/s over size", series))
    if not panels:
        return None
    return drawn(panels)
