#!/usr/bin/env python3
"""Measures the table of goals for TCP and ends each row in `met` or `missed`.

    bench/tcp/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--svg FILE] [--build DIR]

Every round starts fresh processes of every contender in rotated order, ours twice under two names. Hosts are network namespaces
(root); without them those rows say so. README.md of this folder says how each row is measured.
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import rows  # first: it knows where the common parts are
import contenders as parties
import picture
from panels import write_picture
from peers import Unavailable, run_process
from places import Hosts, LabError, Loopback
from session import Progress, Session, placebo_line, table_of_times, wanted_keys

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5
RESERVE_S = 60
IN_FLIGHT_DEPTH, IN_FLIGHT_CALLS = 16, 256


class Plan:
    """The rows of a run, and who is measured at which place. Places stay open to the end of the run."""

    def __init__(self, options, setup):
        self.options, self.setup, self.build = options, setup, Path(options.build).resolve()
        self.keys = wanted_keys(options.rows, rows.KEYS)
        self.rows = [self.shortened(row) for row in rows.ROWS if row.key in self.keys]
        self.links = [row for row in rows.LINK_ROWS if row.key in self.keys]
        self.groups = list(dict.fromkeys(group for row in self.rows for group in row.groups))
        self.places, self.broken, self.by_group = {}, {}, {}

    def shortened(self, row):
        """In a quick run nothing above 4 MiB."""
        if not self.options.quick:
            return row
        return dataclasses.replace(row, groups=tuple(shortened_group(group) for group in row.groups))

    def open(self):
        for name in dict.fromkeys(group.place for group in self.groups):
            try:
                self.places[name] = self.opened(name)
            except (Unavailable, LabError) as error:
                self.places[name] = None
                self.setup.missing[f"rows over {name}"] = str(error)
        for group in self.groups:
            self.by_group[group] = self.chosen(group, self.places[group.place])

    def opened(self, name):
        if name == rows.LOOPBACK:
            return Loopback()
        return Hosts(self.build, 2 if name == rows.VETH_PAIRS else 1)

    def close(self):
        for place in self.places.values():
            if place:
                place.close()

    def chosen(self, group, place):
        if place is None:
            return []
        if group.place == rows.VETH_PAIRS:
            ring = parties.Ours(rows.FLAT_RING, place, self.build, ["--algorithm", "ring"], {"SETO_TRANSPORT": "tcp"})
            pinned = ["--algorithm", "hierarchical"]
            ours = [parties.Ours(name, place, self.build, pinned) for name in (rows.OURS, rows.PLACEBO)]
            return [ours[0], ring, ours[1]] if self.works(group, ours[0]) else []
        ours = [parties.Ours(name, place, self.build) for name in (rows.OURS, rows.PLACEBO)]
        peers = [*self.setup.at(place), *([parties.Iperf(place)] if group.with_limit else [])]
        return [ours[0], *peers, ours[1]] if self.works(group, ours[0]) else peers

    def works(self, group, ours):
        """Whether our program is there and gives right results; tried once, before anything is timed."""
        try:
            if not ours.program.exists():
                raise Unavailable(f"{ours.program.name} is not built")
            ours.check(group)
            return True
        except (Unavailable, LabError, OSError, KeyError, ValueError) as error:
            self.broken[group] = str(error)
            return False


def shortened_group(group):
    upper = max(group.lower, min(group.upper, 4 * rows.MIB))
    calls = tuple((min(top, upper), count) for top, count in group.calls if top <= upper or top == group.calls[-1][0])
    return dataclasses.replace(group, upper=upper, calls=calls)


class Links:
    """The rows on emulated links, and memory: one figure each, in which neither peers nor cores matter."""

    def __init__(self, session, plan):
        self.session, self.plan, self.figures, self.too_late = session, plan, {}, {}

    def measure_all(self):
        for row in self.plan.links:
            self.attempt(row.key, lambda row=row: self.link_figure(row))
        if rows.MEMORY_ROW in self.plan.keys:
            self.attempt(rows.MEMORY_ROW, self.memory)

    def attempt(self, key, measure):
        if self.session.given_up(key):
            return
        try:
            figure = measure()
        except (Unavailable, LabError, OSError, KeyError, ValueError) as error:
            self.session.fail(key, error)
            return
        if figure is not None:
            self.figures.setdefault(key, []).append(figure)

    def link_figure(self, row):
        """The share of what TCP could carry; None if the emulator was late, which says nothing about us."""
        hosts = Hosts(self.plan.build, links=list(row.options))
        try:
            speed = self.in_flight(hosts) if row.key == "in-flight" else self.slow(hosts, row)
        finally:
            counted = hosts.close()
        if row.counts(counted["late_avg_us"]):
            return row.share_of_payload(speed)
        self.too_late[row.key] = self.too_late.get(row.key, 0) + 1
        return None

    def in_flight(self, hosts):
        program = self.plan.build / "bench" / "in_flight"
        command = [program, "--size", rows.MIB, "--depth", IN_FLIGHT_DEPTH, "--calls", IN_FLIGHT_CALLS]
        output = hosts.run_ours([str(word) for word in command], 2, {}, None)
        return json.loads(output)["bytes_per_second"]

    def slow(self, hosts, row):
        ours = parties.Ours(rows.OURS, hosts, self.plan.build)
        group = rows.Group("all_reduce", 2, rows.SLOW_SIZE, rows.SLOW_SIZE)
        calls = ["-n", "2" if row.rate < 1e8 else "8", "-w", "1", "-c", "0"]
        entry = ours.launch(group, rows.SLOW_SIZE, rows.SLOW_SIZE, calls)[0]
        return entry["size"] / parties.time_of(entry) * 1e6

    def memory(self):
        output = run_process([self.plan.build / "bench" / "comm_cost", "--ranks", 64, "--processes", 8], {"SETO_TRANSPORT": "tcp"})
        return json.loads(output)["bytes_per_rank"][0] / rows.MIB


def run_rounds(session, plan, links):
    rounds, progress = session.options.rounds, session.progress
    progress.total = rounds * max(sum(len(plan.by_group[group]) for group in plan.groups), 1)
    for round_index in range(rounds):
        session.look_around()
        for group in plan.groups:
            for contender in rows.rotated(plan.by_group[group], round_index):
                if progress.elapsed() > progress.limit_s - RESERVE_S:
                    progress.note(f"stopped after {session.rounds_done} whole rounds: the time is up")
                    return
                progress.show(round_index, rounds, group.title, contender.name)
                session.sample(group, contender, round_index)
                progress.done += 1
        if progress.elapsed() < progress.limit_s - RESERVE_S:
            links.measure_all()
        session.rounds_done = round_index + 1


def judge_all(session, plan, links):
    """(key, what, goal, judgements) of every row."""
    least = 1 if session.options.quick else 2
    judged = [(row.key, row.what, row.goal, rows.judge(session.samples, row, least)) for row in plan.rows]
    for row in plan.links:
        judged.append((row.key, row.what, row.goal, rows.judge_plain(links.figures.get(row.key), row.share, "of the payload", False)))
    if rows.MEMORY_ROW in plan.keys:
        judgements = rows.judge_plain(links.figures.get(rows.MEMORY_ROW), rows.MEMORY_BOUND_MIB, "MiB a rank", True)
        judged.append((rows.MEMORY_ROW, "a communicator of 64 ranks over TCP before use", f"<= {rows.MEMORY_BOUND_MIB:g} MiB a rank", judgements))
    return judged


def report(session, plan, links, judged):
    print("\nMedian times (iperf3: the time that its bytes of both directions would take)")
    for group in plan.groups:
        for line in table_of_times(session, group):
            print(line)
    placebos = [line for line in (placebo_line(session, group) for group in plan.groups) if line]
    print("\nThe same program twice (1.00 when nothing but chance differs)" if placebos else "", *placebos, sep="\n")
    print(f"\n{session.rounds_done} whole rounds of {session.options.rounds}, {session.progress.elapsed() / 60:.1f} min, ", end="")
    print(f"{len(session.samples)} samples kept, {sum(session.dropped.values())} dropped because the cores changed state")
    if session.busy:
        print(f"cores used by others at the start of each round: {' '.join(f'{share:.0%}' for share in session.busy)}")
    for name, why in plan.setup.missing.items():
        print(f"not measured: {name}: {why}")
    for group, why in plan.broken.items():
        print(f"not measured: {rows.OURS}, {group.title}: {why}")
    for key, count in links.too_late.items():
        print(f"not counted: {key}, {count} times: the emulator was late, the machine too busy")
    for what, errors in session.failures.items():
        print(f"failed {len(errors)} times: {what}: {errors[-1]}")
    if session.options.quick:
        print("a quick run: ranges are cut and samples few; its last words say nothing about the goals")
    print("\nwhat | goal | figure | met or missed")
    for _, what, goal, judgements in judged:
        print(rows.line_of(what, goal, judgements))


def write_json(path, session, plan, links, judged):
    document = {
        "rounds": session.rounds_done,
        "minutes": session.progress.elapsed() / 60,
        "dropped": session.dropped,
        "busy": session.busy,
        "failed": session.failures,
        "not_available": plan.setup.missing,
        "too_late": links.too_late,
        "rows": [
            {
                "key": key,
                "what": what,
                "goal": goal,
                "verdict": rows.verdict(judgements),
                "states": {state: dataclasses.asdict(j) if j else "not seen" for state, j in judgements.items()},
            }
            for key, what, goal, judgements in judged
        ],
        "samples": [
            {"group": s.group.title, "contender": s.contender, "round": s.round, "state": s.state, "time_us": s.times}
            for s in session.samples
        ],
        "figures": links.figures,
    }
    Path(path).write_text(json.dumps(document, indent=1) + "\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round, small sizes: does it work at all")
    parser.add_argument("--rows", metavar="KEY,...", help=f"only these; * matches anything: {' '.join(rows.KEYS)}")
    parser.add_argument("--rounds", type=int, help=f"interleaved rounds ({ROUNDS})")
    parser.add_argument("--limit-minutes", type=float, default=40, help="bound of the whole run (40)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--svg", metavar="FILE")
    parser.add_argument("--build", metavar="DIR", default=ROOT / "build", help="build folder with our programs")
    parser.add_argument("--peers", metavar="DIR", default=ROOT / "build-peers", help="where peers are installed and compiled")
    parser.add_argument("--no-install", action="store_true", help="measure only the peers that are here")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    return options


def main():
    options = parse()
    session = Session(options, Progress(options.limit_minutes * 60))
    if not session.probe_program.exists():
        raise SystemExit(f"{session.probe_program} is missing: build the bench programs, or name their folder with --build")
    plan = Plan(options, parties.TcpPeers(session.build, Path(options.peers).resolve(), not options.no_install))
    links = Links(session, plan)
    try:
        plan.open()
        run_rounds(session, plan, links)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    finally:
        plan.close()
    judged = judge_all(session, plan, links)
    report(session, plan, links, judged)
    if options.json:
        write_json(options.json, session, plan, links, judged)
    if options.svg:
        write_picture(options.svg, picture.draw(session.samples))
    return 0 if all(rows.verdict(judgements) == "met" for *_, judgements in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
