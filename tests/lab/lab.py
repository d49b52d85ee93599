#!/usr/bin/env python3
"""Hosts made of network namespaces, joined by veth pairs or by the link emulator. A library, and a command:

    lab.py [--hosts N] [--per-host P] [--rate 1g --delay 5ms --loss 0.1% --mtu 1500] [--veth] -- COMMAND...

runs COMMAND on every host (P times on each) with SETO_RANK, SETO_RANKS, SETO_ROOT and SETO_SECRET set, and prints what each says.
Other SETO_ variables are passed on. Needs root. Namespaces carry the process id of the lab; they and all processes in them are gone
afterwards, also when the lab is killed: a process of its own waits for that. Start processes from the main thread only: they end
with the thread that started them.
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

from namespaces import LabError, command_output, names_with, reap, remove_namespaces, remove_stale, why_not
from process import QUIT_LIMIT_S, Process

ROOT = Path(__file__).resolve().parents[2]
INTERFACE = "wan0"
IPV4, IPV6 = "ipv4", "ipv6"
FIRST_PORT = 20_000  # in namespaces of our own every port is free
LINK_OPTIONS = ("rate", "delay", "jitter", "loss", "burst-loss", "queue", "bucket", "overhead")

# What a host of today has: no waiting for duplicate addresses, addresses that survive a link that goes down and up.
SYSCTLS = {
    "net/ipv6/conf/all/accept_dad": "0",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/all/keep_addr_on_down": "1",
    "net/ipv6/conf/default/keep_addr_on_down": "1",
    "net/ipv4/tcp_congestion_control": "cubic",
    "net/ipv4/tcp_no_metrics_save": "1",
}


class Emulator:
    """The relay between the hosts' devices; its commands take effect before the call returns."""

    def __init__(self, program, names, options):
        if not Path(program).exists():
            raise LabError(f"{program} is missing: build link_emulator, or name its folder with --build")
        self.process = Process([program, f"namespaces={','.join(names)}", f"device={INTERFACE}", *options])
        try:
            self.process.line("^ready$")
        except LabError:
            self.process.close()
            raise

    def command(self, line):
        before = len(self.process.lines)
        self.process.say(line)
        answer = self.process.line("^(ok|error: .*|{.*})$", after=before)[0]
        if answer.startswith("error"):
            raise LabError(answer)
        return answer

    def statistics(self):
        return json.loads(self.command("statistics"))

    def close(self):
        """What it counted, once it has ended."""
        code = self.process.wait(QUIT_LIMIT_S)
        if code != 0:
            raise LabError(f"link_emulator ended with {code}: {self.process.errors}")
        return json.loads(self.process.lines[-1])


class Host:
    """One namespace."""

    def __init__(self, index, name, families):
        self.index, self.name = index, name
        self.ipv4, self.ipv6 = f"10.77.{index}.1", f"fd77:0:0:{index:x}::1"
        self.address = self.ipv4 if IPV4 in families else self.ipv6
        self.processes = []

    def start(self, command, environment=None, echo=None):
        """A process that the end of the lab ends, if nothing else did."""
        self.processes.append(Process(["ip", "netns", "exec", self.name, *command], clean_environment(environment), echo))
        return self.processes[-1]

    def run(self, command, environment=None, limit_s=60):
        """What it printed; an error if it did not end well."""
        process = self.start(command, environment)
        code = process.wait(limit_s)
        if code != 0:
            raise LabError(f"{process} ended with {code} on host {self.index}: {process.errors or process.output}")
        return process.output

    def ip(self, *words):
        return command_output(["ip", "-n", self.name, *words])

    def set_interface(self, state):
        """up or down, as an administrator would."""
        self.ip("link", "set", INTERFACE, state)

    def add_decoy(self, name, address):
        """An interface with an address that leads nowhere, as docker0 does."""
        self.ip("link", "add", name, "type", "bridge")
        self.ip("addr", "add", address, "dev", name)
        self.ip("link", "set", name, "up")


def clean_environment(extra=None):
    """Ours without settings of the library, so that a run says all it depends on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SETO_")}
    return {**kept, **{name: str(value) for name, value in (extra or {}).items()}}


class Lab:
    """Hosts as long as it is open: with Lab(2, links=["rate=1g", "delay=5ms"]) as lab: ...

    links: options of the emulator for every ordered pair; None joins the hosts by veth, directly if there are two.
    """

    def __init__(self, hosts=2, links=(), mtu=1500, families=(IPV4, IPV6), build=ROOT / "build"):
        self.links, self.mtu, self.families, self.build = links, mtu, families, Path(build)
        self.prefix = f"seto-lab-{os.getpid()}-{secrets.token_hex(2)}"
        self.hosts = [Host(index, f"{self.prefix}-{index}", families) for index in range(hosts)]
        self.secret, self.jobs, self.emulator, self.counted, self.reaper = secrets.token_hex(32), 0, None, None, None

    def __enter__(self):
        remove_stale()
        self.reaper = subprocess.Popen(
            [sys.executable, "-B", __file__, "--reap", self.prefix + "-"], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            for host in self.hosts:
                self._make_namespace(host.name)
            self._join()
            for host in self.hosts:
                self._address(host)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *_):
        try:
            if self.emulator:
                self.counted = self.emulator.close()
        except LabError:
            if kind is None:
                raise
        finally:
            if self.emulator:
                self.emulator.process.close()
            remove_namespaces(self._names())
            for process in (process for host in self.hosts for process in host.processes):
                process.close()
            self.reaper.stdin.close()
            self.reaper.wait()

    def _names(self):
        return names_with(self.prefix + "-")

    def _make_namespace(self, name):
        command_output(["ip", "netns", "add", name])
        lines = [f"echo {value} >/proc/sys/{path}" for path, value in SYSCTLS.items()]
        command_output(["ip", "netns", "exec", name, "sh", "-c", "\n".join(lines)])
        command_output(["ip", "-n", name, "link", "set", "lo", "up"])

    def _join(self):
        names = [host.name for host in self.hosts]
        if self.links is not None:
            self.emulator = Emulator(self.build / "tests" / "link_emulator", names, self.links)
        elif len(names) == 2:
            ends = ["name", INTERFACE, "netns", names[0], "type", "veth", "peer", "name", INTERFACE, "netns", names[1]]
            command_output(["ip", "link", "add", *ends])
        else:
            self._join_by_bridge(names)

    def _join_by_bridge(self, names):
        switch = f"{self.prefix}-switch"
        self._make_namespace(switch)
        command_output(["ip", "-n", switch, "link", "add", "bridge", "mtu", self.mtu, "type", "bridge"])
        command_output(["ip", "-n", switch, "link", "set", "bridge", "up"])
        for index, name in enumerate(names):
            ends = ["name", INTERFACE, "netns", name, "type", "veth", "peer", "name", f"port{index}", "netns", switch]
            command_output(["ip", "link", "add", *ends])
            command_output(["ip", "-n", switch, "link", "set", f"port{index}", "mtu", self.mtu, "master", "bridge", "up"])

    def _address(self, host):
        lines = [f"link set {INTERFACE} mtu {self.mtu} txqueuelen 10000 up"]
        if IPV4 in self.families:
            lines.append(f"addr add {host.ipv4}/16 dev {INTERFACE}")
        if IPV6 in self.families:
            lines.append(f"addr add {host.ipv6}/32 dev {INTERFACE} nodad")
        command_output(["ip", "-n", host.name, "-batch", "-"], "\n".join(lines) + "\n")

    def link(self, line):
        """A command of the emulator: `0>1 hole=on`, `* delay=9ms`, `site 0 carrier=off`."""
        return self.emulator.command(line)

    def job_environments(self, per_host=1, extra=None):
        """[(host, environment)] of a new job, rank by rank."""
        self.jobs += 1
        port, root = FIRST_PORT + self.jobs, self.hosts[0].address
        shared = {"SETO_RANKS": len(self.hosts) * per_host, "SETO_SECRET": self.secret, **(extra or {})}
        shared.setdefault("SETO_ROOT", f"[{root}]:{port}" if ":" in root else f"{root}:{port}")
        slots = [host for host in self.hosts for _ in range(per_host)]
        return [(host, {"SETO_RANK": rank, **shared}) for rank, host in enumerate(slots)]

    def start_job(self, command, per_host=1, extra=None, echo=None):
        """The processes of all ranks. echo(rank, line, is_error) hears every line."""
        job = self.job_environments(per_host, extra)
        return [
            host.start(command, environment, echo and (lambda line, error, rank=rank: echo(rank, line, error)))
            for rank, (host, environment) in enumerate(job)
        ]


# --- the command ---

# Of a job, not of whoever calls the lab.
OF_THE_JOB = ("SETO_RANK", "SETO_RANKS", "SETO_ROOT", "SETO_SECRET", "SETO_SECRET_FILE")


def settings_of_caller():
    return {name: value for name, value in os.environ.items() if name.startswith("SETO_") and name not in OF_THE_JOB}


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--per-host", type=int, default=1, help="processes on each")
    for option in LINK_OPTIONS:
        parser.add_argument(f"--{option}", help="of every link: tests/lab/README.md" if option == "rate" else "likewise")
    parser.add_argument("--link", action="append", default=[], metavar="'PAIRS OPTION...'", help="for some: '0>1 loss=1%%'")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--veth", action="store_true", help="plain veth pairs instead of the emulator")
    parser.add_argument("--ipv6-only", action="store_true")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="of the whole run (600)")
    parser.add_argument("--build", default=ROOT / "build", help="build folder with tests/link_emulator")
    parser.add_argument("--statistics", action="store_true", help="what the emulator counted, as JSON at the end")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    options.command = options.command[1:] if options.command[:1] == ["--"] else options.command
    given = [f"{name}={value}" for name in LINK_OPTIONS if (value := getattr(options, name.replace("-", "_")))]
    if not options.command or options.hosts < 2 or (options.veth and (given or options.link)):
        parser.error("wanted two hosts or more, -- COMMAND at the end, and no link options with --veth")
    options.links = None if options.veth else given
    return options


def run(options):
    def echo(rank, line, error):
        to = sys.stderr if error else sys.stdout
        to.write(f"{rank}| {line}\n")  # in one piece: print() gives text and newline apart, and every rank has its own thread
        to.flush()

    families = (IPV6,) if options.ipv6_only else (IPV4, IPV6)
    end = time.monotonic() + options.limit
    with Lab(options.hosts, options.links, options.mtu, families, options.build) as lab:
        for line in options.link:
            lab.link(line)
        processes = lab.start_job(options.command, options.per_host, settings_of_caller(), echo)
        codes = [process.wait(max(end - time.monotonic(), 0.1)) for process in processes]
    for rank, code in enumerate(codes):
        if code != 0:
            print(f"lab: rank {rank} ended with {code}", file=sys.stderr)
    if options.statistics and lab.counted:
        print(json.dumps(lab.counted))
    return max((code if code >= 0 else 128 - code for code in codes), default=0)


def main(words):
    if words[:1] == ["--reap"]:
        reap(words[1])
        return 0
    options = parse(words)
    reason = why_not()
    if reason:
        print(f"lab: skipped: {reason}", file=sys.stderr)
        return 77
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return run(options)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
