"""The effect of codecs on a model that is trained with them: the losses of examples/torch/ddp.py, and a picture of them."""

import json
import statistics
import tempfile
from math import log10
from pathlib import Path

import rows

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "torch" / "ddp.py"
EXACT = "uncompressed"
RUNS = {
    EXACT: (),
    "fp16": ("--codec", "fp16"),
    "int8 with error feedback": ("--codec", "int8", "--error-feedback"),
    rows.SHOWN: ("--codec", "int8"),
}
# A codec is used where it is faster, which it never is between processes of one machine. These constants declare slow links.
SLOW_LINKS = "node.gigabytes_per_second 0.1\nsite.gigabytes_per_second 0.1\n"
LAST = 20  # the final loss is the mean of this number of steps, because the loss of one batch is noise
COLOURS = {EXACT: "#222222", "fp16": "#1f77b4", "int8 with error feedback": "#2ca02c", rows.SHOWN: "#d62728"}


def losses_of(launch, what, steps):
    """`launch` runs a program on this number of ranks."""
    with tempfile.TemporaryDirectory(prefix="seto_quality_") as folder:
        curve, tuning = Path(folder, "curve.json"), Path(folder, "tuning")
        tuning.write_text(SLOW_LINKS)
        arguments = [*RUNS[what], "--steps", steps, "--curve", curve]
        launch(rows.RANKS_OF_QUALITY, EXAMPLE, *arguments, environment={"SETO_TUNING_FILE": str(tuning)})
        return json.loads(curve.read_text())


def final(losses):
    return statistics.fmean(losses[-LAST:])


def smoothed(losses):
    return [statistics.fmean(losses[max(0, step - 4) : step + 1]) for step in range(len(losses))]


def picture_of(curves, width=760, height=420):
    """An SVG of the loss of each step, on a logarithmic scale."""
    left, right, top, bottom = 56, 16, 30, 40
    lowest = min(min(smoothed(losses)) for losses in curves.values())
    highest = max(max(losses) for losses in curves.values())
    steps = max(len(losses) for losses in curves.values())

    def place(step, loss):
        x = left + (width - left - right) * step / max(1, steps - 1)
        y = top + (height - top - bottom) * (log10(highest) - log10(loss)) / max(1e-9, log10(highest) - log10(lowest))
        return f"{x:.1f},{y:.1f}"

    def text(x, y, words, anchor="start", colour="#222222"):
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{words}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        text(left, 18, f"Loss of the DDP example on {rows.RANKS_OF_QUALITY} ranks, mean of 5 steps"),
        f'<path d="M{left},{top}V{height - bottom}H{width - right}" fill="none" stroke="#888888"/>',
    ]
    for loss in (value for value in (0.2, 0.5, 1, 2, 3) if lowest <= value <= highest):
        y = place(0, loss).split(",")[1]
        parts += [text(left - 8, y, f"{loss:g}", "end"), f'<path d="M{left},{y}H{width - right}" stroke="#eeeeee"/>']
    for step in range(0, steps, max(1, steps // 6)):
        parts.append(text(place(step, highest).split(",")[0], height - bottom + 18, step, "middle"))
    parts.append(text((left + width) / 2, height - 6, "step", "middle"))
    for index, (what, losses) in enumerate(curves.items()):
        points = " ".join(place(step, loss) for step, loss in enumerate(smoothed(losses)))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[what]}" stroke-width="1.5"/>')
        parts.append(text(width - right, top + 16 * (index + 1), f"{what}: {final(losses):.4f}", "end", COLOURS[what]))
    return "\n".join([*parts, "</svg>"]) + "\n"
