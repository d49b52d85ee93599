"""The places of ranks: this machine over loopback, or hosts made of namespaces. A place starts programs and counts bytes."""

import shutil
import socket
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "lab"))

from lab import INTERFACE, Lab, clean_environment  # noqa: E402
from namespaces import LabError, why_not  # noqa: E402
from peers import Unavailable, run_process  # noqa: E402
from process import Process  # noqa: E402

LAUNCH_LIMIT_S = 120

# Replaces ssh: it enters the namespace of a host. Launchers put options before the host, and the command after it.
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
case $1 in
%s*) echo "no host $1 in this lab" >&2; exit 1 ;;
esac
shift
exec ip netns exec $name sh -c "$*"
"""


def output_of(processes, limit_s=LAUNCH_LIMIT_S):
    """The output of the first process; all processes must succeed."""
    try:
        codes = [process.wait(limit_s) for process in processes]
    except LabError as error:
        raise Unavailable(str(error).splitlines()[0]) from None
    finally:
        for process in processes:
            process.close()
    for process, code in zip(processes, codes):
        if code != 0:
            last = (process.errors.strip() or process.output.strip() or "no output").splitlines()[-1][:200]
            raise Unavailable(f"{process} ended with {code}: {last}")
    return processes[0].output


ONE_SITE = {"SETO_SITE_ID": "one"}


class Loopback:
    """All ranks are processes of this machine; settings force each contender onto TCP."""

    interface, addresses = "lo", ("127.0.0.1", "127.0.0.1")

    def close(self):
        pass

    def start(self, _, command, environment=None):
        return Process(command, clean_environment(environment))

    def free_port(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            return taken.getsockname()[1]

    def carried_bytes(self):
        line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
        return int(line.split(":")[1].split()[0])

    def run_ours(self, command, ranks, environment, file):
        words = [*command, "--ranks", ranks, "-J", file]
        run_process(words, {**environment, "SETO_TRANSPORT": "tcp"}, LAUNCH_LIMIT_S)


class Hosts:
    """Namespaces joined by veth, with `per_host` ranks on each. They exist as long as the object."""

    interface = INTERFACE

    def __init__(self, build, per_host=1, links=None, count=2):
        reason = why_not()
        if reason:
            raise Unavailable(f"hosts made of namespaces: skipped: {reason}")
        self.per_host, self.lab, self.port = per_host, Lab(count, links, build=build).__enter__(), 30_000
        self.addresses = tuple(host.ipv4 for host in self.lab.hosts)
        self.folder = Path(tempfile.mkdtemp(prefix="seto-hosts-"))
        self.agent = self.folder / "agent"
        self.agent.write_text(AGENT % "".join(f"{host.ipv4}) name={host.name} ;;\n" for host in self.lab.hosts))
        self.agent.chmod(0o700)

    def close(self):
        """The counters of the emulator, if there is one."""
        self.lab.__exit__(None, None, None)
        shutil.rmtree(self.folder, ignore_errors=True)
        return self.lab.counted

    def start(self, host, command, environment=None):
        return self.lab.hosts[host].start(command, environment)

    def free_port(self):
        self.port += 1
        return self.port

    def carried_bytes(self):
        path = f"/sys/class/net/{INTERFACE}/statistics/rx_bytes"
        return int(self.lab.hosts[1].run(["cat", path])) + int(self.lab.hosts[0].run(["cat", path]))

    def run_ours(self, command, ranks, environment, file):
        """Starts one process for each rank; the first writes the file. The hosts are one stated site, within which data is not encrypted
        and sums are exact, as those of the peers are."""
        job = self.lab.job_environments(self.per_host, {**ONE_SITE, **environment})
        if len(job) != ranks:
            raise Unavailable(f"{ranks} ranks on a lab for {len(job)}")
        return output_of([host.start(command + (["-J", file] if rank == 0 and file else []), own) for rank, (host, own) in enumerate(job)])


