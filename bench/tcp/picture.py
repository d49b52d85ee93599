"""Bandwidth over message size as an SVG: a panel for each place, for the state of the cores with more samples."""

import rows  # first: it adds the common folder to the path
from panels import Panel, drawn, left_of, series_of, state_with_most


def draw(samples):
    """The picture, or None if there is nothing to draw."""
    state, panels = state_with_most(samples), []
    for place in (rows.LOOPBACK, rows.VETH):
        series = series_of(samples, {sample.group for sample in samples if sample.group.place == place}, state)
        if series:
            panels.append(Panel(left_of(len(panels)), f"all_reduce fp32, 2 ranks, TCP over {place}, cores {state}: GB/s", series))
    return drawn(panels) if panels else None
