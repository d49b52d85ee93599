#!/usr/bin/env python3
"""Measures the table of goals for PyTorch over the library, and ends each row in `met`, `missed` or `not measured`.

    bench/torch/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--picture FILE] [--build DIR]

Both backends are timed in turn by the same processes. README.md of this folder describes the method.
"""

import json
import os
import sys
from pathlib import Path

import rows  # first: it adds the common folder to the path
import quality
from goals import name_of_size
from peers import Unavailable, run_process
from report import exit_status, options_of, parser_of, print_end, write_json
from session import Progress, Run, wanted_keys

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ROUNDS = 5
ROUNDS_OF_STEPS = 9  # at least; each takes half a second, and the state of the cores changes a round by a tenth
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": str(HERE)}


class Torch(Run):
    def __init__(self, options, progress, python):
        super().__init__(options, progress)
        self.python = python
        self.entries = {n: [] for n in rows.RANKS}
        self.steps = {kind: {} for kind in rows.KINDS}
        self.overheads, self.curves = [], {}

    def launch(self, ranks, program, *arguments, environment=None, limit_s=400):
        """The lines of JSON that rank 0 prints."""
        command = [self.python, "-m", "torch.distributed.run", "--nproc-per-node", ranks, "--standalone", program, *arguments]
        output = run_process(command, {**ENVIRONMENT, **(environment or {})}, limit_s)
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]

    def collectives(self, index, ranks):
        arguments = ["--rounds", 1] + (["--largest", 1 << 20] if self.options.quick else [])
        for entry in self.attempt(f"{ranks} ranks", lambda: self.launch(ranks, HERE / "job.py", *arguments)) or []:
            self.entries[ranks].append({**entry, "round": index})

    def training(self, kind):
        lines = self.attempt(kind, lambda: self.launch(2, HERE / "steps.py", "--kind", kind, "--rounds", max(ROUNDS_OF_STEPS, self.options.rounds)))
        if lines:
            self.steps[kind] = {"model": lines[0], "rounds": lines[1:]}

    def overhead(self):
        program = ROOT / "build-wheel" / "bench" / "micro" / "torch" / "torch_overhead"
        found = self.attempt("overhead", lambda: json.loads(run_process([program], limit_s=60)))
        if found:
            self.overheads.append(found)

    def round(self, index, keys):
        for ranks in rows.RANKS:
            if rows.MEANS[ranks].key in keys or rows.WORST[ranks].key in keys:
                self.step(index, "collectives", f"{ranks} ranks", lambda: self.collectives(index, ranks))
        if rows.OVERHEAD.key in keys:
            self.step(index, "overhead", "8 B", self.overhead)
        for kind in rows.KINDS:
            if index == 0 and rows.STEPS[kind].key in keys:
                self.step(index, "training", kind, lambda: self.training(kind))
        if index == 0 and any(row.key in keys for row in rows.QUALITY.values()):
            for what in quality.RUNS:
                steps = 20 if self.options.quick else rows.STEPS_OF_QUALITY
                self.step(index, "quality", what, lambda: self.curve(what, steps))

    def curve(self, what, steps):
        losses = self.attempt(f"quality, {what}", lambda: quality.losses_of(self.launch, what, steps))
        if losses:
            self.curves[what] = losses


def step_ratios(taken):
    """The ratio of our time to gloo's, by round."""
    times = {(entry["round"], entry["backend"]): entry["ms"] for entry in taken.get("rounds", [])}
    return [times[number, rows.SETO] / ms for (number, backend), ms in times.items() if backend == rows.GLOO]


def judged_rows(session, keys):
    judged = []

    def add(row, figures):
        if row.key in keys:
            judged.append((row.key, row.what, row.goal, row.judged(figures)))

    for ranks in rows.RANKS:
        ratios = rows.ratios_of(session.entries[ranks])
        worst = rows.worst_of_points(ratios)
        add(rows.MEANS[ranks], rows.means_by_round(ratios))
        add(rows.WORST[ranks], [worst[1]] if worst else [])
    for kind in rows.KINDS:
        add(rows.STEPS[kind], step_ratios(session.steps[kind]))
    add(rows.OVERHEAD, [found["torch_us"] - found["seto_us"] for found in session.overheads])
    exact = session.curves.get(quality.EXACT)
    for what, row in rows.QUALITY.items():
        add(row, [rows.distance(quality.final(session.curves[what]), quality.final(exact))] if exact and what in session.curves else [])
    return judged


def print_figures(session):
    for ranks, entries in session.entries.items():
        ratios = rows.medians_of(rows.ratios_of(entries))
        if not ratios:
            continue
        print(f"\nTimes gloo's speed, {ranks} ranks" + "".join(f"{name_of_size(size):>7}" for size in rows.SIZES))
        for collective in rows.COLLECTIVES:
            cells = "".join(f"{ratios[collective, size]:7.2f}" if (collective, size) in ratios else "      -" for size in rows.SIZES)
            print(f"    {collective:27}{cells}")
        print(f"    worst: {rows.name_of_point(min(ratios, key=ratios.get))}")
    for kind, taken in session.steps.items():
        if taken:
            model = taken["model"]
            fits = "" if rows.share_fits(model["share"]) else ", which is not the share that was asked for"
            print(f"{kind}: {model['parameters'] / 1e6:.1f} M parameters, batch {model['batch']}: gloo communicates {model['share']:.0%} of a step{fits}")
    for found in session.overheads[:1]:
        print(f"8 B between 2 threads: Backend::allreduce and wait {found['torch_us']:.2f} us, setoAllReduce {found['seto_us']:.2f} us")
    for what, losses in session.curves.items():
        print(f"loss after {len(losses)} steps, {what}: {quality.final(losses):.5f}")


def main():
    parser = parser_of(__doc__, rows.KEYS, ROUNDS, "one round of small sizes and few steps", 30)
    parser.add_argument("--picture", metavar="FILE", help="draw the curves of the losses, as SVG")
    parser.add_argument("--python", default=ROOT / "build-torch" / "wheel" / "bin" / "python", help="one that has torch and the wheel")
    options = options_of(parser, ROUNDS, 1)
    keys = wanted_keys(options.rows, rows.KEYS)
    if not os.access(options.python, os.X_OK):
        raise SystemExit(f"{options.python} is missing: ./dev bench torch makes it")
    session = Torch(options, Progress(options.limit_minutes * 60), options.python)
    try:
        for index in session.rounds(3):
            session.round(index, keys)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    judged = judged_rows(session, keys)
    print_figures(session)
    print_end(session, "", (), "few samples", judged)
    if options.picture and session.curves:
        Path(options.picture).write_text(quality.picture_of(session.curves))
    if options.json:
        figures = {"collectives": session.entries, "steps": session.steps, "overhead": session.overheads, "losses": session.curves}
        write_json(options.json, session, {}, judged, figures)
    return exit_status(judged)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Unavailable as error:
        raise SystemExit(str(error)) from None
