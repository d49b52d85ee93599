"""Lines over message size on logarithmic axes, as an SVG: panels side by side, one line per contender."""

import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import goals

COLOURS = {
    goals.OURS: "#d1495b",
    goals.THREADS: "#e9a23b",
    goals.LENT: "#8a5fbf",
    goals.LIMIT: "#8d99ae",  # the limit of the table: a program of our own, or iperf3
    "Intel MPI": "#00798c",
    "Open MPI": "#30638e",
    "MPICH": "#7a5c99",
    "gloo": "#5a9367",
}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 460, 300, 52, 40, 44, 24


def left_of(index):
    """The left edge of the axes of a panel, by its index."""
    return LEFT + index * (WIDTH + GAP)


class Panel:
    """A panel with logarithmic axes over its points."""

    def __init__(self, left, title, series):
        self.left, self.title, self.series = left, title, series
        points = [point for line in series.values() for point in line]
        self.low_x, self.high_x = (math.log2(pick(size for size, _ in points)) for pick in (min, max))
        self.low_y = math.floor(math.log10(min(value for _, value in points)))
        self.high_y = math.ceil(math.log10(max(value for _, value in points)))
        self.high_x = max(self.high_x, self.low_x + 1)
        self.high_y = max(self.high_y, self.low_y + 1)

    def x(self, size):
        return self.left + (math.log2(size) - self.low_x) / (self.high_x - self.low_x) * (WIDTH - LEFT)

    def y(self, value):
        return TOP + (self.high_y - math.log10(value)) / (self.high_y - self.low_y) * (HEIGHT - TOP - BOTTOM)

    def axes(self):
        parts = [f'<text x="{self.left}" y="{TOP - 14}" class="title">{escape(self.title)}</text>']
        for exponent in range(self.low_y, self.high_y + 1):
            y = self.y(10.0**exponent)
            parts.append(f'<line x1="{self.left}" x2="{self.left + WIDTH - LEFT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
            parts.append(
                f'<text x="{self.left - 6}" y="{y + 4:.1f}" class="tick" text-anchor="end">{10.0 ** exponent:g}</text>'
            )
        for exponent in range(math.ceil(self.low_x), math.floor(self.high_x) + 1, 5):
            x, name = self.x(2.0**exponent), goals.name_of_size(2**exponent)
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="grid"/>')
            parts.append(
                f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" class="tick" text-anchor="middle">{name}</text>'
            )
        return parts

    def lines(self):
        parts = []
        for name, points in self.series.items():
            path = " ".join(f"{self.x(size):.1f},{self.y(value):.1f}" for size, value in points)
            style = 'stroke-dasharray="6 4"' if name == goals.LIMIT else ""
            width = 3 if name == goals.OURS else 1.8
            parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="{width}" {style}/>')
        return parts


def series_of(samples, groups, state):
    """Contender -> sorted [(size, GB/s)] over all these groups."""
    series = {}
    for contender in COLOURS:
        points = {}
        for group in groups:
            for size, time in goals.medians(samples, group, contender, state).items():
                points[size] = size / time / 1e3
        if points:
            series[contender] = sorted(points.items())
    return series


def legend(names):
    parts, x = [], LEFT
    for name in names:
        y = HEIGHT + 8
        parts.append(f'<line x1="{x}" x2="{x + 22}" y1="{y}" y2="{y}" stroke="{COLOURS[name]}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 28}" y="{y + 4}" class="tick">{escape(name)}</text>')
        x += 52 + 8 * len(name)
    return parts


def write_picture(path, text):
    """Writes the picture. Without anything to draw, an older picture stays."""
    if text is None:
        print("no picture: no all_reduce was measured", file=sys.stderr)
    else:
        Path(path).write_text(text)


def state_with_most(samples):
    """The groups that are drawn."""
    counts = {state: sum(1 for sample in samples if sample.state == state) for state in goals.STATES}
    return max(counts, key=counts.get)


def drawn(panels):
    """The picture of panels that were made with left_of()."""
    names = [name for name in COLOURS if any(name in panel.series for panel in panels)]
    width = len(panels) * (WIDTH + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT + 24}" font-family="sans-serif">',
        "<style>.grid{stroke:#ddd}.tick{font-size:11px;fill:#444}.title{font-size:13px;fill:#222}</style>",
        f'<rect width="{width}" height="{HEIGHT + 24}" fill="white"/>',
    ]
    for panel in panels:
        parts += panel.axes() + panel.lines()
    return "\n".join(parts + legend(names) + ["</svg>", ""])
