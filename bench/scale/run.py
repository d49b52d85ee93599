#!/usr/bin/env python3
"""Prints the tables of docs/scale.md: calls and training steps of 1,000 to 10,000 ranks, simulated.

    bench/scale/run [--tables efficiency,sites] [--most RANKS] [--build DIR]

Every figure comes from `seto plan simulate` on a topology that this program writes; nothing is measured and nothing is sent. All tables
take some twenty minutes of one core and 3 GiB. bench/scale/README.md states the assumptions.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import model

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 600
# Buffers for which a flat ring in fp32 takes about 2.8 s, and a hierarchical plan in fp16 about 0.9 s.
SIZES = (1_600_000_000, 2_000_000_000)
UPLINK = 1.25e9
ROUND_TRIPS_S = (50e-3, 80e-3)


def simulate(options, system, size, algorithm, codec):
    """The JSON of seto plan simulate, with the memory that it took."""
    with tempfile.TemporaryDirectory() as folder:
        topology, constants = Path(folder) / "topology.xml", Path(folder) / "constants"
        topology.write_text(system.xml)
        constants.write_text(model.CONSTANTS)
        command = ["timeout", str(LIMIT_S), options.build / "seto", "plan", "simulate", "--json", "--topo", topology, "--ranks", str(system.ranks)]
        command += ["--size", str(size), "--algorithm", algorithm]
        environment = {"SETO_TUNING_FILE": str(constants), "SETO_CODEC": codec}
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        with output.open("w") as to_output, errors.open("w") as to_errors:
            running = subprocess.Popen(command, env=environment, stdout=to_output, stderr=to_errors)
            _, status, used = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        if running.returncode:
            raise SystemExit(f"{system.ranks} ranks, {algorithm}: {errors.read_text().strip() or f'status {running.returncode}'}")
        simulated = json.loads(output.read_text())
    simulated["memory_bytes"] = used.ru_maxrss * 1024
    return simulated


def note(text):
    print(f"# {text}", file=sys.stderr, flush=True)


def print_efficiency(options):
    training = model.Training()
    rows, costs = [], []
    for system in model.EFFICIENCY:
        if not options.least <= system.ranks <= options.most:
            continue
        note(f"{system.ranks} ranks at {system.sites} sites")
        simulated = simulate(options, system, training.bucket_bytes, "hierarchical", "none" if system.sites == 1 else "world=fp16")
        rows.append(model.efficiency_row(system, training, simulated))
        costs.append(model.cost_row(system, simulated))
    print("| ranks | sites x hosts x ranks of a host | a bucket | the busiest link is busy | of linear speed |", "|---|---|---|---|---|", *rows, sep="\n")
    print("\n| ranks | sites | plans of all ranks | simulation | memory, at most |", "|---|---|---|---|---|", *costs, sep="\n")


def print_sites(options):
    print(model.SITES_HEADER)
    for round_trip_s in ROUND_TRIPS_S:
        system = model.System(**{**vars(model.TWO_SITES), "uplink": options.uplink, "round_trip_s": round_trip_s})
        for size in options.sizes:
            note(f"{size / 1e9:g} GB, {round_trip_s * 1e3:g} ms")
            flat = simulate(options, system, size, "ring", "none")
            coded = simulate(options, system, size, "hierarchical", "world=fp16")
            print(model.flat_against_hierarchical_row(round_trip_s, size, flat, coded), flush=True)


TABLES = {"efficiency": print_efficiency, "sites": print_sites}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES), help=" ".join(TABLES))
    parser.add_argument("--least", type=int, default=0, metavar="RANKS", help="no systems of fewer ranks")
    parser.add_argument("--most", type=int, default=10_000, metavar="RANKS", help="no systems of more ranks (10000)")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES, metavar="BYTES,...")
    parser.add_argument("--uplink", type=float, default=UPLINK, metavar="BYTES", help="a second, of a site, for the table of sites")
    parser.add_argument("--build", metavar="DIR", default=ROOT / "build", type=Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    unknown = sorted(set(options.tables.split(",")) - set(TABLES))
    if unknown:
        parser.error(f"no table {unknown[0]}; tables: {' '.join(TABLES)}")
    return options


def main():
    options = parse()
    os.nice(5)
    for number, name in enumerate(options.tables.split(",")):
        print("" if number else "", end="\n" if number else "")
        TABLES[name](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
