#!/usr/bin/env python3
"""Hosts made of network namespaces, joined by veth pairs or by the link emulator. A library, and a command:

    lab.py [--hosts N] [--per-host P] [OPTION VALUE]... -- COMMAND...          for example --rate 1g --delay 20ms --loss 0.1%
    lab.py --site 2 --site 2 --uplink 1g --delay 30ms -- COMMAND...            two sites of two hosts; a site shares its uplink
    lab.py --site '1 uplink=250m' --site '1 uplink=500m' --site '2 uplink=1g' --delay 30ms -- COMMAND...
    lab.py --rate 1g --delay 30ms --paths 2 --link 'path 1 * rate=300m delay=60ms' -- COMMAND...      a primary and a backup path

runs COMMAND on every host (P times on each) with SETO_RANK, SETO_RANKS, SETO_ROOT and SETO_SECRET set, and SETO_SITE_ID where sites are
stated, and prints what each says. Other SETO_ variables are passed on. Needs root. Namespaces carry the process id of the lab; they and
all processes in them are gone afterwards, also when the lab is killed: a process of its own waits for that. Start processes from the
main thread only: they end with the thread that started them.
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

from emulator import Emulator, lateness_text
from hosts import Host, clean_environment  # noqa: F401  clean_environment is for those that use the lab
from namespaces import LabError, names_with, reap, remove_namespaces, remove_stale, why_not
from paths import paths_of
from process import TimeLimit
from wiring import (
    FORWARDING,
    INTERFACE,
    IPV4,
    IPV6,
    USUAL_CONGESTION_CONTROL,
    Site,
    choose_congestion_control,
    give_address,
    interface_of,
    join_by_bridge,
    join_pair,
    make_namespace,
    set_up_router,
)

ROOT = Path(__file__).resolve().parents[2]
FIRST_PORT = 20_000  # in namespaces of our own every port is free
# Options of every ordered pair of sites, and their help. tests/lab/README.md says more.
LINK_OPTIONS = {
    "rate": "of every ordered pair of sites: bits of IP per second (such as 25m; default: no limit)",
    "delay": "likewise: one way, so a round trip takes twice as long (such as 5ms; default: 0)",
    "jitter": "likewise: each way up to this much more (such as 1ms; default: 0)",
    "loss": "likewise: probability for each segment (such as 0.1%%; default: 0)",
    "burst-loss": "likewise: to enter the bad state, to leave it, loss in it (such as 0.2%%,20%%,100%%)",
    "queue": "likewise: bytes (default: twice the delay at the rate, at least 256K)",
    "bucket": "likewise: bytes that an idle link accumulates and sends at once",
    "overhead": "likewise: bytes added to each segment",
    "closed": "likewise: a firewall that loses what asks for a TCP connection (on; default: off)",
    "largest": "likewise: larger segments are lost silently (bytes of IP; default: 0, none)",
}


def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


class Lab:
    """Hosts as long as it is open: with Lab(2, links=["rate=1g", "delay=5ms"]) as lab: ...

    hosts: a number, each a site of its own; or Sites, which the jobs are told.
    links: options of the emulator for every ordered pair of sites; None joins the hosts by veth, directly if there are two.
    congestion: the congestion control that must be in force. Unset it is the usual one where the kernel permits, which is said.
    paths: how many paths join the hosts, all like the first; or the options of each further one. A path has an emulator, an interface
    of every host (wan0, wan1, ...) and addresses of its own; options of a further one may be uplink= and downlink=, for every site.
    """

    def __init__(self, hosts=2, links=(), mtu=1500, families=(IPV4, IPV6), build=ROOT / "build", congestion=None, paths=1):
        self.links, self.mtu, self.families, self.build = links, mtu, families, Path(build)
        self.prefix = f"seto-lab-{os.getpid()}-{secrets.token_hex(2)}"
        self.sites_are_stated = not isinstance(hosts, int)
        self.sites = list(hosts) if self.sites_are_stated else [Site()] * hosts
        self.site_settings = [{} for _ in self.sites]  # variables that the jobs of a site's hosts get besides
        places = [(site, place) for site, of in enumerate(self.sites) for place in range(of.hosts)]
        self.hosts = [Host(index, f"{self.prefix}-{index}", families, *place) for index, place in enumerate(places)]
        self.secret, self.jobs, self.reaper = secrets.token_hex(32), 0, None
        self.congestion_wish, self.congestion = congestion, None
        self.paths = paths_of(paths, links, self.sites)
        self.emulators = []  # of the paths
        self.counted, self.counted_of_paths = None, []  # at the end: of the first path, of further ones

    @property
    def emulator(self):
        """The emulator of the first path; None between veth pairs."""
        return self.emulators[0] if self.emulators else None

    def __enter__(self):
        remove_stale()
        self.reaper = subprocess.Popen(
            [sys.executable, "-B", __file__, "--reap", self.prefix + "-"], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            for host in self.hosts:
                make_namespace(host.name)
            self._choose_congestion_control()
            self._join()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if self.emulators:
                self.counted, *self.counted_of_paths = [emulator.close() for emulator in self.emulators]
        except LabError:
            if kind is None:
                raise
        finally:
            for emulator in self.emulators:
                emulator.process.close()
            remove_namespaces(self._names())
            for process in (process for host in self.hosts for process in host.processes):
                process.close()
            self.reaper.stdin.close()
            self.reaper.wait()

    def _names(self):
        return names_with(self.prefix + "-")

    def _choose_congestion_control(self):
        wish = self.congestion_wish or USUAL_CONGESTION_CONTROL
        for host in self.hosts:
            self.congestion = choose_congestion_control(host.name, wish)
            if self.congestion.in_force != wish and self.congestion_wish:
                raise LabError(self.congestion.text)
        if self.congestion.in_force != wish:
            say(self.congestion.text)

    def _join(self):
        names = [host.name for host in self.hosts]
        if self.links is not None:
            gateways = [self._gateway(site) for site in range(len(self.sites))]
            for path in range(len(self.paths)):
                self._join_sites(path, gateways)
            return
        if any(site.uplink or site.downlink for site in self.sites):
            raise LabError("veth pairs have no rates: sites with an uplink want the emulator")
        if len(names) == 2:
            join_pair(names)
        else:
            switch = f"{self.prefix}-switch"
            make_namespace(switch)
            join_by_bridge(switch, names, self.mtu)
        for host in self.hosts:
            give_address(host, self.mtu, self.families, False)

    def _gateway(self, site):
        """Returns the namespace for the devices of a site: its only host, or else its router."""
        hosts = self._hosts_of(site)
        if len(hosts) == 1:
            return hosts[0].name
        router = f"{self.prefix}-router{site}"
        make_namespace(router, FORWARDING)
        return router

    def _hosts_of(self, site):
        return [host for host in self.hosts if host.site == site]

    def _join_sites(self, path, gateways):
        """Each path has an emulator of its own, so nothing of one path depends on another, random losses included."""
        for site, gateway in enumerate(gateways):
            if self.sites[site].hosts > 1:
                join_by_bridge(gateway, [host.name for host in self._hosts_of(site)], self.mtu, path)
        program, options = self.build / "tests" / "link_emulator", [f"seed={path + 1}", *self.paths[path].links]
        self.emulators.append(Emulator(program, gateways, interface_of(path), options))
        for site, (of, gateway) in enumerate(zip(self.paths[path].sites, gateways)):
            if of.hosts > 1:
                set_up_router(gateway, site, self.mtu, self.families, path)
            for command in of.commands(site):
                self.emulators[path].command(command)
        for host in self.hosts:
            give_address(host, self.mtu, self.families, self.sites[host.site].hosts > 1, path)

    def link(self, line):
        """A command of the emulator: `0>1 hole=on`, `* delay=9ms`, `uplink 0 rate=1g`, `site 0 carrier=off`. `path 1 0-1 cut=on`
        is for a further path."""
        first, number, *rest = [*line.split(" ", 2), ""][:3]
        if first != "path":
            return self.emulator.command(line)
        if not number.isdecimal() or int(number) >= len(self.emulators):
            raise LabError(f"'{line}': wanted a path from 0 to {len(self.emulators) - 1}")
        return self.emulators[int(number)].command(" ".join(rest))

    def job_environments(self, per_host=1, extra=None):
        """[(host, environment)] of a new job, rank by rank."""
        self.jobs += 1
        port, root = FIRST_PORT + self.jobs, self.hosts[0].address
        shared = {"SETO_RANKS": len(self.hosts) * per_host, "SETO_SECRET": self.secret, **(extra or {})}
        shared.setdefault("SETO_ROOT", f"[{root}]:{port}" if ":" in root else f"{root}:{port}")
        slots = [host for host in self.hosts for _ in range(per_host)]
        return [(host, {"SETO_RANK": rank, **self._stated_site(host), **shared}) for rank, host in enumerate(slots)]

    def _stated_site(self, host):
        stated = {"SETO_SITE_ID": f"site{host.site}"} if self.sites_are_stated else {}
        return {**stated, **self.site_settings[host.site]}

    def start_job(self, command, per_host=1, extra=None, echo=None):
        """The processes of all ranks. echo(rank, line, is_error) is called with every line."""
        job = self.job_environments(per_host, extra)
        return [
            host.start(command, environment, echo and (lambda line, error, rank=rank: echo(rank, line, error)))
            for rank, (host, environment) in enumerate(job)
        ]


# --- the command ---

# Variables of a job; those of the lab's caller are not passed on.
OF_THE_JOB = ("SETO_RANK", "SETO_RANKS", "SETO_ROOT", "SETO_SECRET", "SETO_SECRET_FILE")


def settings_of_caller():
    return {name: value for name, value in os.environ.items() if name.startswith("SETO_") and name not in OF_THE_JOB}


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, help="each a site of its own (default: 2)")
    parser.add_argument("--site", action="append", metavar="'HOSTS [uplink=RATE] [downlink=RATE]'", help="instead: sites, one at a time")
    parser.add_argument("--uplink", metavar="RATE", help="of every site that states none: what its hosts share to other sites")
    parser.add_argument("--downlink", metavar="RATE", help="likewise, from other sites (as the uplink)")
    parser.add_argument("--per-host", type=int, default=1, help="processes on each")
    for option, text in LINK_OPTIONS.items():
        parser.add_argument(f"--{option}", help=text)
    parser.add_argument("--link", action="append", default=[], metavar="'PAIRS OPTION...'",
                        help="for some: '0>1 loss=1%%', 'uplink 0 queue=256K', 'path 1 0-1 rate=300m'")
    parser.add_argument("--paths", type=int, metavar="N", help="paths between all hosts, all like the first (default: 1)")
    parser.add_argument("--path", action="append", metavar="'OPTION...'",
                        help="instead: a further path, one at a time, as 'rate=100m delay=20ms' or 'uplink=1g downlink=2g delay=20ms'")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--veth", action="store_true", help="plain veth pairs instead of the emulator")
    parser.add_argument("--ipv6-only", action="store_true")
    parser.add_argument("--congestion", metavar="NAME", help="congestion control that must be in force (cubic if the kernel permits)")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="of the whole run (default: 600)")
    parser.add_argument("--build", default=ROOT / "build", help="build folder with tests/link_emulator")
    parser.add_argument("--statistics", action="store_true", help="what the emulator counted, as JSON at the end")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    options.command = options.command[1:] if options.command[:1] == ["--"] else options.command
    given = [f"{name}={value}" for name in LINK_OPTIONS if (value := getattr(options, name.replace("-", "_")))]
    options.links = None if options.veth else given
    try:
        sites = [Site.of_text(text, options.uplink, options.downlink) for text in options.site or ()]
    except LabError as error:
        parser.error(str(error))
    if not options.command:
        parser.error("wanted -- COMMAND at the end")
    if options.site and (options.hosts is not None or options.veth):
        parser.error("--site stands instead of --hosts, and the emulator joins sites: no --veth")
    if not options.site and (options.uplink or options.downlink):
        parser.error("an uplink or a downlink belongs to a --site")
    if options.veth and (given or options.link or options.path or options.paths):
        parser.error("a veth pair has no link options and no further path")
    if options.path and options.paths is not None:
        parser.error("--path stands instead of --paths")
    options.hosts = sites or (2 if options.hosts is None else options.hosts)
    options.paths = [text.split() for text in options.path] if options.path else 1 if options.paths is None else options.paths
    if (len(sites) if sites else options.hosts) < 2:
        parser.error("wanted two sites or hosts or more")
    return options


def wait_until(end, process, limit_s):
    try:
        return process.wait(max(end - time.monotonic(), 0.1))
    except TimeLimit:
        raise LabError(f"{process} did not end within {limit_s:g} s (--limit)\n{process.output}\n{process.errors}") from None


def run(options):
    def echo(rank, line, error):
        to = sys.stderr if error else sys.stdout
        to.write(f"{rank}| {line}\n")  # in one piece: print() gives text and newline apart, and every rank has its own thread
        to.flush()

    families = (IPV6,) if options.ipv6_only else (IPV4, IPV6)
    end = time.monotonic() + options.limit
    with Lab(options.hosts, options.links, options.mtu, families, options.build, options.congestion, options.paths) as lab:
        if lab.congestion.in_force == lab.congestion.wish:  # otherwise the lab has said it
            say(lab.congestion.text)
        for line in options.link:
            lab.link(line)
        processes = lab.start_job(options.command, options.per_host, settings_of_caller(), echo)
        codes = [wait_until(end, process, options.limit) for process in processes]
    for rank, code in enumerate(codes):
        if code != 0:
            say(f"rank {rank} ended with {code}")
    if lab.counted:
        say(lateness_text(lab.counted))
    for path, counted in enumerate(lab.counted_of_paths, 1):
        say(f"path {path}: {lateness_text(counted)}")
    if options.statistics and lab.counted:
        of_paths = {"paths": lab.counted_of_paths} if lab.counted_of_paths else {}
        print(json.dumps({**lab.counted, **of_paths, "congestion_control": lab.congestion.in_force}))
    return max((code if code >= 0 else 128 - code for code in codes), default=0)


def status_of(run, options):
    """The exit status of a program that opens a lab: that of run(options), 77 if no lab is possible here, 1 if the lab fails."""
    reason = why_not()
    if reason:
        say(f"skipped: {reason}")
        return 77
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return run(options)
    except LabError as error:
        say(error)
        return 1


def main(words):
    if words[:1] == ["--reap"]:
        reap(words[1])
        return 0
    return status_of(run, parse(words))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
