"""Bandwidth over message size as an SVG: a panel for each number of ranks, a line for each contender."""

import rows  # noqa: F401  first: it adds the common folder to the path
from panels import Panel, drawn, left_of, series_of, state_with_most


def draw(samples):
    """The picture for the state of the cores with more samples, or None if there is nothing to draw."""
    state, panels = state_with_most(samples), []
    for ranks in (2, 4):
        groups = {sample.group for sample in samples if sample.group.collective == "all_reduce" and sample.group.ranks == ranks}
        series = series_of(samples, groups, state)
        if series:
            panels.append(Panel(left_of(len(panels)), f"all_reduce fp32, {ranks} processes, cores {state}: GB/s over size", series))
    return drawn(panels) if panels else None
