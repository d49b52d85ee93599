"""The regret of a kept run over size, as an SVG: a panel for each place, a colour for each collective."""

import math
from xml.sax.saxutils import escape

from goals import name_of_size

COLOURS = {
    "all_reduce": "#d1495b", "all_gather": "#e9a23b", "reduce_scatter": "#8a5fbf",
    "broadcast": "#00798c", "reduce": "#5a9367", "all_to_all": "#8d99ae",
}  # fmt: skip
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 430, 220, 40, 34, 34, 22
MOST = 3.0  # times the best; worse points are drawn at the edge


def _y(ratio):
    return HEIGHT - BOTTOM - math.log(min(ratio, MOST)) / math.log(MOST) * (HEIGHT - TOP - BOTTOM)


def _panel(left, title, regrets, near):
    sizes = [one.size for one in regrets]
    low, high = math.log2(min(sizes)), math.log2(max(max(sizes), 2 * min(sizes)))

    def x(size):
        return left + (math.log2(size) - low) / (high - low) * (WIDTH - LEFT)

    parts = [f'<text x="{left}" y="{TOP - 12}" class="title">{escape(title)}</text>']
    for ratio in (1.0, near, 1.3, 2.0, MOST):
        parts.append(f'<line x1="{left}" x2="{left + WIDTH - LEFT}" y1="{_y(ratio):.1f}" y2="{_y(ratio):.1f}" class="grid"/>')
        parts.append(f'<text x="{left - 5}" y="{_y(ratio) + 4:.1f}" class="tick" text-anchor="end">{ratio:g}</text>')
    for exponent in range(math.ceil(low), math.floor(high) + 1, 5):
        at = x(2.0**exponent)
        parts.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" class="tick" text-anchor="middle">{name_of_size(2**exponent)}</text>')
    for one in regrets:
        parts.append(f'<circle cx="{x(one.size):.1f}" cy="{_y(one.ratio):.1f}" r="2.2" fill="{COLOURS[one.collective]}"/>')
    return parts


def picture_of(regrets, near):
    places = list(dict.fromkeys(one.place for one in regrets))
    width = len(places) * (WIDTH + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT + 20}" font-family="sans-serif">',
        "<style>.grid{stroke:#ddd}.tick{font-size:11px;fill:#444}.title{font-size:13px;fill:#222}</style>",
        f'<rect width="{width}" height="{HEIGHT + 20}" fill="white"/>',
    ]
    for index, place in enumerate(places):
        title = f"{place}: time of the choice over that of the best"
        parts += _panel(LEFT + index * (WIDTH + GAP), title, [one for one in regrets if one.place == place], near)
    for index, (name, colour) in enumerate(COLOURS.items()):
        parts.append(f'<circle cx="{LEFT + 110 * index}" cy="{HEIGHT + 6}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + 8 + 110 * index}" y="{HEIGHT + 10}" class="tick">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])
