#!/usr/bin/env python3
"""Measures the table of goals for codecs, on one core and over slow links, and ends each row in `met`, `missed` or `not measured`.

    bench/codec/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--build DIR]

Every round starts our program and each peer's program once, in rotated order. README.md of this folder describes the method.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

import rows  # first: it adds the common folder to the path
import links
from goals import rotated
from peers import BENCH, PYTHON_PACKAGES, Setup, Unavailable, run_process
from report import exit_status, options_of, parser_of, print_end, write_json
from session import Progress, Run, wanted_keys

ROUNDS = 7
PEERS_SOURCE = BENCH / "peers" / "codec_perf.py"
PEER_NAMES = ("numpy", "torch", "FBGEMM", "plain cast")
PYTHON_PACKAGES.setdefault("torch", ("torch==2.13.0", "numpy"))


class Codecs(Run):
    reserve_s = 60

    def __init__(self, options, progress):
        super().__init__(options, progress)
        self.taken, self.launches = [], {hosts: [] for hosts in rows.HOSTS}
        self.tried = {}

    def ours(self):
        time = 0.02 if self.options.quick else 0.2
        works = "|".join(rows.WORKS)
        command = [self.build / "bench" / "codec_bench", f"--benchmark_filter=memcpy|^({works})/.*/float/", "--benchmark_format=json"]
        return rows.ours_of(json.loads(run_process([*command, f"--benchmark_min_time={time}"], limit_s=300)))

    def peers(self, python):
        """{name: {(codec, work, size): GB/s}}"""
        budget = 0.02 if self.options.quick else 0.2
        found = {}
        for line in run_process([python, "-W", "ignore", PEERS_SOURCE, str(budget)], limit_s=300).splitlines():
            entry = json.loads(line)
            found.setdefault(entry["name"], {})[entry["codec"], entry["work"], entry["size"]] = entry["gb_s"]
        return found

    def round(self, index, python):
        figures = {"ours": {}, "peers": {}}
        takes = {"ours": self.ours, "peers": lambda: self.peers(python)}
        for name in rotated([name for name in takes if name == "ours" or python], index):
            self.step(index, "codecs", name, lambda: figures.update({name: self.attempt(name, takes[name]) or {}}))
        self.taken.append((figures["ours"], figures["peers"]))


    def over_links(self, index, keys):
        for hosts, launches in self.launches.items():
            if any(row.key in keys for row in rows.LINK_ROWS if row.hosts == hosts):
                name = f"{hosts} hosts"
                self.step(index, "links", name, lambda: launches.append(self.attempt(name, lambda: links.measure(self.build, hosts)) or {}))


    def cases(self, keys):
        """{key: output of the tests of that row}"""
        for row in rows.CASE_ROWS:
            if row.key in keys:
                self.step(0, "cases", row.key, lambda: self.tried.update({row.key: self.attempt(row.key, lambda: self.run_tests(row))}))

    def run_tests(self, row):
        with tempfile.TemporaryDirectory(prefix="seto_cases_") as folder:
            answer = Path(folder, "tests.json")
            program = self.build / "tests" / row.program
            try:
                run_process([program, f"--gtest_filter={row.tests}", f"--gtest_output=json:{answer}"], limit_s=900)
            except Unavailable:
                if not answer.exists():
                    raise
            return json.loads(answer.read_text())


def medians(figures):
    """The median over the rounds that have the key."""
    keys = dict.fromkeys(key for found in figures for key in found)
    return {key: statistics.median(found[key] for found in figures if key in found) for key in keys}


def report(session, missing, judged):
    own = medians([ours for ours, _ in session.taken])
    others = {name: medians([peers.get(name, {}) for _, peers in session.taken]) for name in PEER_NAMES}
    if own:
        print_figures(own, others)
    for hosts, launches in session.launches.items():
        for codec, time in medians(launches).items():
            print(f"    10 MB over {hosts} hosts, {codec}: {time / 1e3:.0f} ms")
    print_end(session, "", missing.items(), "few samples", judged)


def print_figures(own, others):
    print("\nMedian GB/s of fp32" + "".join(f"{name:>12}" for name in (rows.OURS, *others)))
    for size in (rows.IN_CACHE, rows.BEYOND):
        print(f"    memcpy {size:12}{own.get((rows.MEMCPY, '', size), 0):>12.1f}")
        for key in ((codec, work, size) for codec in rows.CODECS for work in rows.WORKS):
            cells = "".join(f"{found[key]:>12.1f}" if key in found else " " * 11 + "-" for found in (own, *others.values()))
            print(f"    {' '.join(key):19}{cells}")
    print("plain cast: the processor's conversion without blocks or scales, which is less work; no ratio includes it")


def figures_of(session):
    """The values for the JSON file."""
    named = lambda found: {"/".join(key): value for key, value in found.items()}  # noqa: E731
    return {"rounds_taken": [{"ours": named(o), **{name: named(found) for name, found in p.items()}} for o, p in session.taken]}


def main():
    options = options_of(parser_of(__doc__, rows.KEYS, ROUNDS, "one short round", 20), ROUNDS, 1)
    keys = wanted_keys(options.rows, rows.KEYS)
    session = Codecs(options, Progress(options.limit_minutes * 60))
    setup = Setup(session.build, Path(options.peers).resolve(), not options.no_install)
    on_core = any(row.key in keys for row in rows.ROWS)
    python = None
    try:
        python = on_core and setup.python("torch", "lib/python3*/site-packages/torch")
    except (Unavailable, OSError) as error:
        setup.missing["numpy, torch, FBGEMM"] = str(error)
    try:
        for index in session.rounds((2 if python else 1) * on_core + len(rows.HOSTS)):
            if on_core:
                session.round(index, python)
            session.over_links(index, keys)
            if index == 0:
                session.cases(keys)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    # A plain cast does less work: it is shown, but no row is judged against it.
    rounds = [(ours, {name: found for name, found in peers.items() if name != "plain cast"}) for ours, peers in session.taken]
    judged = [(row.key, row.what, row.goal, rows.judge(row, rounds)) for row in rows.ROWS if row.key in keys]
    judged += [(row.key, row.what, row.goal, rows.judge_link(row, session.launches[row.hosts])) for row in rows.LINK_ROWS if row.key in keys]
    judged += [(row.key, row.what, row.goal, rows.judge_cases(row, session.tried.get(row.key))) for row in rows.CASE_ROWS if row.key in keys]
    report(session, setup.missing, judged)
    if options.json:
        write_json(options.json, session, setup.missing, judged, figures_of(session))
    return exit_status(judged)


if __name__ == "__main__":
    sys.exit(main())
