#!/usr/bin/env python3
"""Measures the table of goals for TCP and ends each row in `met`, `missed` or `not measured`.

    bench/tcp/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--svg FILE] [--build DIR]

Every round starts fresh processes of every contender in rotated order, ours twice under two names. Hosts are network namespaces
(root); without root those rows are not measured. README.md of this folder describes each row.
"""

import dataclasses
import json
import sys
from pathlib import Path

import rows  # first: it adds the common folder to the path
import contenders as parties
import picture
from panels import write_picture
from peers import Unavailable, run_process
from places import Hosts, LabError, Loopback
from report import exit_status, options_of, parser_of, print_end, write_json
from session import Progress, Session, wanted_keys

ROUNDS = 5
QUICK_MOST = 4 * rows.MIB
IN_FLIGHT_DEPTH, IN_FLIGHT_CALLS, IN_FLIGHT_STREAMS = 16, 256, 2


class LabSession(Session):
    errors = (*Session.errors, LabError)


class Plan:
    """The rows of a run, and the contenders at each place. Places stay open to the end of the run."""

    def __init__(self, options, setup):
        self.options, self.setup, self.build = options, setup, Path(options.build).resolve()
        self.keys = wanted_keys(options.rows, rows.KEYS)
        self.rows = [self.shortened(row) for row in rows.ROWS if row.key in self.keys]
        self.links = [row for row in rows.LINK_ROWS if row.key in self.keys]
        self.groups = list(dict.fromkeys(group for row in self.rows for group in row.groups))
        self.places, self.broken, self.by_group = {}, {}, {}

    def shortened(self, row):
        if not self.options.quick:
            return row
        return dataclasses.replace(row, groups=tuple(group.shortened(QUICK_MOST) for group in row.groups))

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
        """Tried once, before anything is timed."""
        why = ours.why_not(group)
        if why:
            self.broken[group] = why
        return not why


class Links:
    """The rows on emulated links, and memory: one figure each, which depends on neither peers nor cores."""

    def __init__(self, session, plan):
        self.session, self.plan, self.figures, self.too_late = session, plan, {}, {}

    def measure_all(self):
        for row in self.plan.links:
            self.attempt(row.key, lambda row=row: self.link_figure(row))
        if rows.MEMORY_ROW in self.plan.keys:
            self.attempt(rows.MEMORY_ROW, self.memory)

    def attempt(self, key, measure):
        figure = self.session.attempt(key, measure)
        if figure is not None:
            self.figures.setdefault(key, []).append(figure)

    def link_figure(self, row):
        """The share of what TCP could carry; None if the emulator was late, because the figure would not be Seto's."""
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
        command = [program, "--size", rows.MIB, "--depth", IN_FLIGHT_DEPTH, "--calls", IN_FLIGHT_CALLS, "--streams", IN_FLIGHT_STREAMS]
        output = hosts.run_ours([str(word) for word in command], 2, {}, None)
        return json.loads(output)["bytes_per_second"]

    def slow(self, hosts, row):
        ours = parties.Ours(rows.OURS, hosts, self.plan.build)
        group = rows.Group("all_reduce", 2, rows.SLOW_SIZE, rows.SLOW_SIZE)
        calls = ["-n", "2" if row.rate < 1e8 else "8", "-w", "1", "-c", "0"]
        entry = ours.launch(group, rows.SLOW_SIZE, rows.SLOW_SIZE, calls)[0]
        return entry["size"] / parties.time_of(entry["out_of_place"]) * 1e6

    def memory(self):
        output = run_process([self.plan.build / "bench" / "comm_cost", "--ranks", 64, "--processes", 8], {"SETO_TRANSPORT": "tcp"})
        return json.loads(output)["bytes_per_rank"][0] / rows.MIB


def run_rounds(session, plan, links):
    for index in session.rounds(sum(len(plan.by_group[group]) for group in plan.groups)):
        session.sample_all(plan.groups, plan.by_group.__getitem__, index)
        if not session.is_late():
            links.measure_all()


def judge_all(session, plan, links):
    """(key, what, goal, judgements) of every row."""
    least = 1 if session.options.quick else 2
    judged = [(row.key, row.what, row.goal, rows.judge(session.samples, row, least)) for row in plan.rows]
    for row in plan.links:
        judged.append((row.key, row.what, row.goal, rows.judge_plain(links.figures.get(row.key), row.share, "of the payload", False)))
    if rows.MEMORY_ROW in plan.keys:
        judgements = rows.judge_plain(links.figures.get(rows.MEMORY_ROW), rows.MEMORY_BOUND_MIB, "MiB for each rank", True)
        judged.append((rows.MEMORY_ROW, "a communicator of 64 ranks over TCP before use", f"<= {rows.MEMORY_BOUND_MIB:g} MiB for each rank", judgements))
    return judged


def report(session, plan, links, judged):
    session.print_tables(plan.groups, "Median times (iperf3: the time that its bytes of both directions would take)")
    missing = [*plan.setup.missing.items()]
    missing += [(f"{rows.OURS}, {group.title}", why) for group, why in plan.broken.items()]
    missing += [(f"{key}, {count} times", "the emulator was late, the machine too busy") for key, count in links.too_late.items()]
    print_end(session, session.kept(), missing, "ranges are cut and samples few", judged)


def figures_of(session, links):
    """The values for the JSON file."""
    figures = {"too_late": links.too_late, "figures": links.figures}
    return {"dropped": session.dropped, "samples": session.sample_records(), **figures}


def parse():
    parser = parser_of(__doc__, rows.KEYS, ROUNDS, "one round, small sizes")
    parser.add_argument("--svg", metavar="FILE")
    return options_of(parser, ROUNDS, 1)


def main():
    options = parse()
    session = LabSession(options, Progress(options.limit_minutes * 60))
    plan = Plan(options, parties.TcpPeers(session.build, Path(options.peers).resolve(), not options.no_install))
    links = Links(session, plan)
    try:
        session.find_states()
        plan.open()
        session.announce(plan.setup.missing.items())
        run_rounds(session, plan, links)
    except KeyboardInterrupt:
        session.progress.note("interrupted: reporting what was measured")
    finally:
        plan.close()
    judged = judge_all(session, plan, links)
    report(session, plan, links, judged)
    if options.json:
        write_json(options.json, session, plan.setup.missing, judged, figures_of(session, links))
    if options.svg:
        write_picture(options.svg, picture.draw(session.samples))
    return exit_status(judged)


if __name__ == "__main__":
    sys.exit(main())
