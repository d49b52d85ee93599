#!/usr/bin/env python3
"""Draws docs/architecture.svg: the folders of the library in layers, with their rooms, from the tables that the layering test checks.

usage: architecture_picture.py [--check]
--check writes nothing and fails if the committed picture is not what the tables say today.
"""

import html
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "tidy"))

import layering  # noqa: E402

PICTURE = HERE / "architecture.svg"
WIDTH = 1180
MARGIN = 16
GAP = 10
ROW_GAP = 26
LINE = 17
# The purpose of each folder, in a few words.
PURPOSE = {
    "include": "the C API",
    "src/base": "status, log, settings, clocks",
    "src/net": "sockets, addresses, proof of membership",
    "src/device": "memory and sums of one machine (SIMD)",
    "src/topology": "nodes, sites, tiers",
    "src/plan": "what every rank does, as data",
    "src/codec": "numbers in fewer bytes",
    "algorithms": "one algorithm and its cost per file",
    "transports": "interfaces that move bytes",
    "transports/resume": "frames kept until they arrive",
    "transports/slots": "slot rings in shared memory",
    "transports/shm": "contexts of one host",
    "transports/tcp": "several machines",
    "transports/rdma": "RDMA devices",
    "src/engine": "runs bound plans",
    "src/bootstrap": "ranks find each other",
    "src/control": "liveness and control messages",
    "src/core": "communicators",
    "src/report": "explains and diagnoses",
    "src/api": "the C boundary",
    "src/command": "the seto command",
    "src/torch": "PyTorch backend",
    "bench": "benchmarks",
    "examples": "programs to start from",
}
# Users of the API stand above it; the header itself includes nothing.
ABOVE_THE_API = ("src/command", "src/torch", "bench", "examples")


def rows() -> list[list[str]]:
    """Folders by layer, the topmost first: a folder stands above everything that it may include."""
    height = {}

    def height_of(folder):
        if folder not in height:
            below = [height_of(other) for other in layering.ALLOWED[folder] if other != "include"]
            height[folder] = 1 + max(below, default=-1)
        return height[folder]

    library = [folder for folder in layering.ALLOWED if folder not in ABOVE_THE_API and folder != "include"]
    for folder in library:
        height_of(folder)
    top = max(height.values())
    layers = [[folder for folder in library if height[folder] == level] for level in range(top, -1, -1)]
    return [list(ABOVE_THE_API), ["include"], *layers]


def box_of(folder: str, x: float, y: float, width: float, height: float) -> list[str]:
    lines = [f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" class="folder"/>',
             text(x + 10, y + 20, folder, "name"), text(x + 10, y + 20 + LINE, PURPOSE[folder], "purpose")]
    rooms = [room for room in layering.ROOMS.get(folder, []) if room != "."]
    if rooms:
        spare = (width - 20 - sum(room_width(room) for room in rooms) - GAP * (len(rooms) - 1)) / len(rooms)
        left = x + 10
        for room in rooms:
            wide = room_width(room) + spare
            lines.append(f'<rect x="{left:.0f}" y="{y + 48:.0f}" width="{wide:.0f}" height="24" rx="4" class="room"/>')
            lines.append(text(left + wide / 2, y + 64, room, "room-name"))
            left += wide + GAP
    return lines


def text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{html.escape(words)}</text>'


def width_wanted(folder: str) -> float:
    rooms = [room for room in layering.ROOMS.get(folder, []) if room != "."]
    return max(7.6 * max(len(folder), len(PURPOSE[folder])) + 24, sum(room_width(room) + GAP for room in rooms) + 20)


def room_width(room: str) -> float:
    return 7.4 * len(room) + 14


def picture() -> str:
    body, y = [], MARGIN + 24
    body.append(text(MARGIN, MARGIN + 8, "A folder includes only folders in rows below it; within a folder, a room includes only rooms to its left.", "purpose"))
    for row in rows():
        height = 82 if any(folder in layering.ROOMS for folder in row) else 48
        wanted = [width_wanted(folder) for folder in row]
        spare = WIDTH - 2 * MARGIN - GAP * (len(row) - 1) - sum(wanted)
        x = MARGIN
        for folder, width in zip(row, wanted):
            width += spare / len(row)
            body += box_of(folder, x, y, width, height)
            x += width + GAP
        y += height + ROW_GAP
    height = y - ROW_GAP + MARGIN
    style = ("text{font-family:sans-serif}.name{font-size:14px;font-weight:bold;fill:#102a43}.purpose{font-size:12px;fill:#486581}"
             ".room-name{font-size:12px;fill:#102a43;text-anchor:middle}.folder{fill:#f0f4f8;stroke:#829ab1}.room{fill:#d9e8f6;stroke:#9fb3c8}")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}">'
    return "\n".join([head, f"<style>{style}</style>", f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>', *body, "</svg>"]) + "\n"


def main() -> int:
    drawn = picture()
    if sys.argv[1:] == ["--check"]:
        current = PICTURE.exists() and PICTURE.read_text() == drawn
        if not current:
            print("docs/architecture.svg is not what tests/tidy/layering.py says: run docs/architecture_picture.py")
        return 0 if current else 1
    PICTURE.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
