#!/usr/bin/env python3
"""Starts jobs over random sites that are not stated, and counts how often the library finds them.

    bench/sites/run [--runs N] [--seed S] [--json FILE] [--build DIR]

Each run opens a lab (tests/lab, root) of hosts, starts `seto topo` on each as one job, and compares the sites that it prints. A run that
fails is repeated alone by --seed S --runs 1. README.md of this folder says what is drawn.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from scenarios import same_partition, scenario_of, time_limit_s

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "lab"), str(ROOT / "bench" / "common_py")]

from lab import Lab, Site  # noqa: E402
from machine import processor  # noqa: E402
from namespaces import why_not  # noqa: E402

LAUNCH_LIMIT_S = 60


def sites_found(lab, build):
    """The site of each host as rank 0 prints it, and how long the slowest process took from start to exit."""
    start = time.monotonic()
    jobs = lab.job_environments(1, {"SETO_SITE_ID": "", "SETO_LOG": "warn"})
    ranks = [host.start([build / "seto", "topo", "--json"], {**environment, "SETO_HOST_ID": f"h{rank}"}) for rank, (host, environment) in enumerate(jobs)]
    codes = [rank.wait(LAUNCH_LIMIT_S) for rank in ranks]
    took = time.monotonic() - start
    if any(codes):
        failed = next(rank for rank, code in zip(ranks, codes) if code)
        raise RuntimeError((failed.errors.strip() or "no output").splitlines()[-1][:300])
    hosts = json.loads(ranks[0].output)["hosts"]
    return [host["site"] for host in hosts], took


def run_one(scenario, build):
    """(right, seconds, text)"""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(scenario.busy)]
    try:
        with Lab([Site(count) for count in scenario.hosts], [], build=build) as lab:
            for command in scenario.commands:
                lab.link(command)
            found, took = sites_found(lab, build)
    except RuntimeError as error:
        return False, None, f"the job failed: {error}"
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    right = same_partition(found, scenario.site_of_hosts)
    return right, took, f"{took:4.1f} s" if right else f"{took:4.1f} s, found {found}"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None, help="of the first run; the next ones count up (default: another one each time)")
    parser.add_argument("--quick", action="store_true", help="5 runs")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--build", default=ROOT / "build", help="build folder")
    options = parser.parse_args()
    options.build, options.runs = Path(options.build).resolve(), 5 if options.quick else options.runs
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(2), "little")
    return options


def main():
    options = parse()
    reason = why_not()
    if reason:
        print(f"not measured: hosts made of namespaces: {reason}")
        return 1
    cores, records = len(os.sched_getaffinity(0)), []
    for seed in range(options.seed, options.seed + options.runs):
        scenario = scenario_of(seed, cores)
        right, took, text = run_one(scenario, options.build)
        records.append({"seed": seed, "hosts": scenario.hosts, "right": right, "seconds": took, "limit_s": time_limit_s(scenario)})
        print(f"seed {seed:6}: {scenario.text}: {'right' if right else 'WRONG'}, {text}", flush=True)
    right = sum(record["right"] for record in records)
    in_time = sum(record["right"] and record["seconds"] <= record["limit_s"] for record in records)
    seconds = [record["seconds"] for record in records if record["right"]]
    print(f"\n{processor()}, seeds from {options.seed}")
    print(f"  {'met' if right == options.runs else 'missed'}: sites found without being told: right in {right} of {options.runs} runs (goal: all)")
    if seconds:
        print(f"  a process took {statistics.median(seconds):.2f} s (at most {max(seconds):.2f} s) from start to exit; "
              f"in {in_time} runs within 2 s and three round trips for each site")
    if options.json:
        Path(options.json).write_text(json.dumps(records, indent=1))
    return 0 if right == options.runs else 1


if __name__ == "__main__":
    sys.exit(main())
