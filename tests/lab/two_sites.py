#!/usr/bin/env python3
"""All-reduces between two sites with a primary and a backup path, held against what the primary path can carry.

    two_sites.py [--rate 1g] [--delay 30ms] [--backup 'rate=200m delay=45ms'] [--largest 64M] [--build DIR]

The rate is that of each site's uplink and downlink, the delay is one way. Prints a line for each size, without a codec and in fp16, and
how much each path carried. Needs root. The exit status is 0 if all results were right; that of all_reduce_perf if not (1: wrong data,
3: a call failed); 77 if no lab is possible here.
"""

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

from emulator import is_punctual, lateness_text
from lab import ROOT, Lab, Site, say, settings_of_caller, status_of
from namespaces import LabError

MILLI = {"us": 1e-3, "ms": 1.0, "s": 1e3}
RATE = {"k": 1e3, "m": 1e6, "g": 1e9}
WARM_UP_S, MEASURED_S, PORT = 1, 2, 30_000
SOCKET_BYTES, MOST_SOCKETS = 3_100_000, 16  # what a socket of the usual limit, 4 MiB, has on its way
WARM_UPS, CALLS, LIMIT_S = 4, 3, 60
HEAD = f"{'size':>10}  {'travels in':10}{'ms':>9}{'bound':>9}{'ratio':>8}"


def milliseconds(text):
    """Of a delay as the emulator takes it: 30ms."""
    unit = next(unit for unit in MILLI if text.endswith(unit) and text.removesuffix(unit).replace(".", "", 1).isdecimal())
    return float(text.removesuffix(unit)) * MILLI[unit]


def bytes_per_second(text):
    """Of a rate as the emulator takes it: 1g."""
    return float(text[:-1]) * RATE[text[-1].lower()] / 8


def bound_ms(wire_bytes, rate, one_way_ms):
    """Two sites need only exchange their bytes, both ways at once."""
    return wire_bytes / rate * 1e3 + one_way_ms


def sockets_for(rate, one_way_ms):
    """As many plain sockets as fill the link, and one more; the queue before the link loses what a few more would send."""
    return min(math.ceil(rate * 2e-3 * one_way_ms / SOCKET_BYTES) + 1, MOST_SOCKETS)


def lines_of(document, rate, one_way_ms):
    """The table, from what all_reduce_perf wrote."""
    lines = [HEAD]
    for entry in document["results"]:
        took, bound = entry["out_of_place"]["time"] / 1e3, bound_ms(entry["wire_bytes"], rate, one_way_ms)
        name, wrong = {"none": "fp32"}.get(entry["travelled_in"], entry["travelled_in"]), entry["out_of_place"]["nwrong"]
        lines.append(f"{entry['size']:>10}  {name:10}{took:>9.1f}{bound:>9.1f}{bound / took:>8.2f}" + (f"  WRONG: {wrong}" if wrong else ""))
    return lines


def plain_rate(lab, build, sockets):
    """Bytes in a second that plain sockets carry each way, both ways at once; None if it could not be measured."""
    words = [lab.hosts[1].ipv4, PORT, sockets, WARM_UP_S, MEASURED_S]
    server = lab.hosts[1].start([build / "bench" / "duplex_sockets", "serve", *words])
    try:
        server.line("^listening$")
        outputs = [lab.hosts[0].run([build / "bench" / "duplex_sockets", "call", *words]), (server.wait(LIMIT_S), server.output)[1]]
        return min(json.loads(output.splitlines()[-1])["bytes_per_second"] for output in outputs)
    except (LabError, IndexError, ValueError, KeyError) as error:
        say(f"the rate of plain sockets is not known: {error}")
        return None


def reduce_all(lab, options, file):
    """Returns the worst exit status of the ranks. The program compares every result."""
    command = [options.build / "bench" / "all_reduce_perf", "-b", "1M", "-e", options.largest, "-f", 8, "-n", CALLS, "-w", WARM_UPS]
    command += ["-c", 1, "--one-place", 1, "--codec", "none,fp16", "-J", file]
    ranks = lab.start_job(command, 1, settings_of_caller())
    codes = [rank.wait(LIMIT_S) for rank in ranks]
    for number, (rank, code) in enumerate(zip(ranks, codes)):
        if code != 0:
            say(f"rank {number} ended with {code}: {(rank.errors or rank.output)[-500:]}")
    return max(code if code >= 0 else 128 - code for code in codes)


def carried_mb(lab):
    """What left the first site over each path, by the emulators' counts, which leave out links that carried nothing."""
    return [counted["links"].get("0>1", {}).get("passed_bytes", 0) / 1e6 for counted in (lab.counted, *lab.counted_of_paths)]


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", default="1g", help="of each site's uplink and downlink (default: 1g)")
    parser.add_argument("--delay", default="30ms", help="one way, over the primary path (default: 30ms)")
    parser.add_argument("--backup", default="rate=200m delay=45ms", metavar="'OPTION...'", help="the links of the backup path, as of lab.py --path")
    parser.add_argument("--largest", default="64M", help="size of a tensor; the smallest is 1M, each is 8 times the one before (default: 64M)")
    parser.add_argument("--build", default=ROOT / "build", type=Path, help="build folder")
    options = parser.parse_args(words)
    options.build = options.build.resolve()
    return options


def run(options):
    rate, one_way_ms = bytes_per_second(options.rate), milliseconds(options.delay)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        with Lab([Site(1, options.rate)] * 2, [f"delay={options.delay}"], build=options.build, paths=[options.backup.split()]) as lab:
            print(f"two sites: {options.rate} each way, round trip {2 * one_way_ms:g} ms; backup path: {options.backup}")
            if lab.congestion.in_force == lab.congestion.wish:  # otherwise the lab has said it
                say(lab.congestion.text)
            sockets = sockets_for(rate, one_way_ms)
            plain = plain_rate(lab, options.build, sockets)
            status = reduce_all(lab, options, file)
        if plain:
            print(f"bound: the bytes on the wire at {plain * 8e-6:.0f} Mbit/s, the rate of {sockets} plain sockets in this lab, and one way")
        else:
            print("bound: the bytes on the wire at the stated rate, and one way")
        if file.exists():
            print("\n".join(lines_of(json.loads(file.read_text()), plain or rate, one_way_ms)))
    shares = carried_mb(lab)
    print(f"site 0 sent {shares[0]:.0f} MB over the primary path, plain sockets included, and {shares[1]:.1f} MB over the backup path")
    if not is_punctual(lab.counted):
        print(lateness_text(lab.counted))
    print("all results were right" if status == 0 else f"the job ended with {status}")
    return status


if __name__ == "__main__":
    sys.exit(status_of(run, parse(sys.argv[1:])))
