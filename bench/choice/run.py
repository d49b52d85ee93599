#!/usr/bin/env python3
"""Measures what choice takes against every algorithm that it could have taken, and both against the simulation.

    bench/choice/run [--places KEY,...] [--json FILE | --from FILE] [--no-simulation] [--build DIR]
    bench/choice/run --keep [--places KEY,...]

Prints the regret table and the table of the simulation. --from takes the points of an earlier run. The places with two sites need root.
--keep measures every half power of two on this machine, and other cuts of what is chosen, and writes bench/choice/data/PROCESSOR.json,
which a test replays, with its picture.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tables  # first: it knows where the common parts are
from picture import picture_of  # noqa: E402
from machine import busy_share, processor, processor_of

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "lab"))

from emulator import is_punctual, lateness_text  # noqa: E402
from lab import Lab, Site  # noqa: E402
from namespaces import LabError, why_not  # noqa: E402

LAUNCH_LIMIT_S, KEPT_LIMIT_S = 120, 1800
DATA = Path(__file__).resolve().parent / "data"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", default=",".join(tables.PLACE_KEYS), metavar="KEY,...", help=" ".join(tables.PLACE_KEYS))
    parser.add_argument("--json", metavar="FILE", help="write the measured points")
    parser.add_argument("--from", dest="source", metavar="FILE", help="take the points of an earlier run and measure nothing")
    parser.add_argument("--keep", action="store_true", help="measure this machine finely and keep it for the test of choice")
    parser.add_argument("--no-simulation", action="store_true", help="the regret table alone")
    parser.add_argument("--build", metavar="DIR", default=ROOT / "build", type=Path)
    options = parser.parse_args()
    options.build = Path(options.build).resolve()
    options.keys = options.places.split(",")
    unknown = sorted(set(options.keys) - set(tables.PLACE_KEYS))
    if unknown:
        parser.error(f"no place {unknown[0]}; places: {' '.join(tables.PLACE_KEYS)}")
    return options


def command_of(place, build, cuts=lambda size: False):
    works = [f"{collective}:{size}" + (":cuts" if cuts(size) else "") for collective, size in place.works]
    return [str(build / "bench" / "choice_calls"), str(place.rounds), str(place.batch_ms), *works]


def on_this_machine(place, build, cuts=lambda size: False, limit_s=LAUNCH_LIMIT_S):
    command = [build / "seto", "run", "-n", str(place.ranks), "--no-prefix", "--", *command_of(place, build, cuts)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SETO_")} | place.variables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit_s)
    if done.returncode:
        raise OSError(f"{place.key}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def in_a_lab(place, build):
    reason = why_not()
    if reason:
        raise OSError(f"{place.key}: hosts made of namespaces: {reason}")
    sites = [Site(hosts, tables.SLOW_RATE) for hosts in place.hosts]
    with Lab(sites, [f"delay={tables.SLOW_ONE_WAY_MS}ms"], build=build) as lab:
        per_host = place.ranks // sum(place.hosts)
        ranks = lab.start_job(command_of(place, build), per_host, {})
        codes = [rank.wait(LAUNCH_LIMIT_S) for rank in ranks]
        output = ranks[0].output
    if any(codes):
        raise OSError(f"{place.key}: {(ranks[0].errors or output).strip()[-300:]}")
    if not is_punctual(lab.counted):
        print(f"# {place.key}: {lateness_text(lab.counted)}", file=sys.stderr)
    return output


def measured(options):
    """{place: points} of the places that could be measured, and the reasons for the others."""
    found, failed = {}, []
    for place in tables.PLACES:
        if place.key not in options.keys:
            continue
        print(f"# {place.what}", file=sys.stderr, flush=True)
        try:
            output = (in_a_lab if place.hosts else on_this_machine)(place, options.build)
            found[place.key] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        except (OSError, LabError, subprocess.TimeoutExpired) as error:
            failed.append(f"not measured: {error}")
    return found, failed


def simulated_us(build, files, point, algorithm):
    """Microseconds of a call by seto plan simulate; None where it cannot be simulated."""
    command = [build / "seto", "plan", "simulate", "--json", "--topo", files["topology"], "--ranks", str(point["ranks"])]
    command += ["--collective", point["collective"], "--size", str(point["bytes"]), "--algorithm", algorithm]
    environment = {"SETO_TUNING_FILE": files["constants"], "SETO_CODEC": "none"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if done.returncode:
        print(f"# not simulated: {point['collective']} {algorithm}: {done.stderr.strip()[-200:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout)["seconds"] * 1e6


def compared(options, points):
    """Every all_reduce from 64 KiB on, each algorithm."""
    rows = []
    for place in (place for place in tables.PLACES if place.key in points):
        for point in points[place.key]:
            if point["collective"] != "all_reduce" or point["bytes"] < tables.SIMULATED_FROM:
                continue
            with tempfile.TemporaryDirectory() as folder:
                files = {"topology": f"{folder}/topology.xml", "constants": f"{folder}/constants"}
                Path(files["topology"]).write_text(tables.topology_of(place, point, os.cpu_count()).xml)
                Path(files["constants"]).write_text(tables.constants_of(place, point, os.cpu_count()))
                for algorithm, us in tables.medians_of(point).items():
                    predicted = simulated_us(options.build, files, point, algorithm)
                    if predicted is not None:
                        rows.append(tables.Compared(place.key, point["collective"], point["bytes"], algorithm, us, predicted))
    return rows


def keep(options):
    """Measures this machine finely, a job for each place. Places that are not measured stay as an earlier run has kept them."""
    name = processor_of(Path("/proc/cpuinfo").read_text())
    file = DATA / f"{tables.file_name_of(name)}.json"
    before = json.loads(file.read_text())["places"] if file.exists() else []
    kept = {place["place"]: place for place in before}
    for place in (place for place in tables.KEPT_PLACES if place.key in options.keys):
        print(f"# {place.what}, {len(place.works)} points", file=sys.stderr, flush=True)
        run = {"kernel": os.uname().release, "date": time.strftime("%Y-%m-%d", time.gmtime()), "cores_used_by_others": round(busy_share(), 2)}
        output = on_this_machine(place, options.build, lambda size, at=place: tables.has_cuts(at, size), KEPT_LIMIT_S)
        points = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        kept[place.key] = tables.kept_place(place, run, points)
    places = [kept[place.key] for place in tables.KEPT_PLACES if place.key in kept]
    if not places:
        raise SystemExit("--keep: none of these places is measured for that")
    DATA.mkdir(exist_ok=True)
    header = {"processor": name, "cores": os.cpu_count(), "figure": "lower quartile of interleaved rounds, microseconds"}
    file.write_text(tables.text_of_kept(header, places))
    regrets = tables.regrets_of_kept(json.loads(file.read_text()))
    file.with_suffix(".svg").write_text(picture_of(regrets, tables.NEAR))
    print(f"processor: {processor()}; kept in {file}", *tables.text_of_regrets(regrets), sep="\n")


def main():
    options = parse()
    if options.keep:
        return keep(options)
    if options.source:
        document = json.loads(Path(options.source).read_text())
        points, failed, busy = document["points"], document["failed"], document["busy"]
    else:
        busy = busy_share()
        points, failed = measured(options)
    if options.json:
        Path(options.json).write_text(json.dumps({"points": points, "failed": failed, "busy": busy}, indent=1) + "\n")
    if not points:
        raise SystemExit("\n".join(failed) or "nothing was measured")
    print(f"processor: {processor()}; cores used by others at the start: {busy:.0%}", *failed, sep="\n")
    regrets = [tables.regret_of(place, point) for place, here in points.items() for point in here]
    print("\nThe chosen algorithm against the best one", *(lines := tables.text_of_regrets(regrets)), sep="\n")
    if not options.no_simulation:
        lines = tables.text_of_comparison(compared(options, points))
        print("\nThe simulation against measured calls, with the constants that the communicator measured", *lines, sep="\n")
    return 0 if not failed and tables.has_met(tables.text_of_regrets(regrets)) else 1


if __name__ == "__main__":
    sys.exit(main())
