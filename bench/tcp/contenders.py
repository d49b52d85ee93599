"""The contenders of the TCP table, and the settings that force each onto TCP."""

import json
import tempfile
from pathlib import Path

import rows  # first: it adds the common folder to the path
from ours import OurProgram, time_of  # noqa: F401  run.py uses time_of
from peers import GLOO_SOURCE, Setup, Unavailable, open_mpi_launcher, peer_arguments, times_of_lines
from places import Hosts, LabError, output_of

IPERF_SECONDS = 1  # iperf3 accepts whole seconds
MOST_STREAMS = 4


def least_bytes(group):
    """The bytes of two calls of each size, the fewest that any contender makes. Starting a job moves fewer."""
    return 2 * sum(group.all_sizes)


def measured(contender, place, group, times):
    """Calls measure and checks that the bytes went over the interface, because a figure of shared memory would be wrong."""
    before = place.carried_bytes()
    figures = times()
    carried = place.carried_bytes() - before
    if carried < least_bytes(group):
        raise Unavailable(f"{contender} sent {carried} bytes over {place.interface}: it did not use TCP")
    return figures


class Ours(OurProgram):
    """On loopback SETO_TRANSPORT=tcp makes every rank a separate node; hosts are one stated site."""

    errors = (*OurProgram.errors, LabError)

    def __init__(self, name, place, build, arguments=(), environment=None):
        super().__init__(name, build, arguments)
        self.place, self.environment = place, environment or {}

    def start(self, group, command, file):
        self.place.run_ours(command, group.ranks, self.environment, file)

    def warm_ups(self, count):
        return max(2, count // 10)

    def measure(self, group, scale):
        return measured(self.name, self.place, group, lambda: self.times(group, scale))


class Mpi:
    """An MPI over TCP at one place. `settings` gives the launcher's words and the environment for a place."""

    def __init__(self, name, place, binary, settings):
        self.name, self.place, self.binary, self.settings = name, place, binary, settings

    def measure(self, group, scale):
        launcher, environment = self.settings(self.place)
        command = [*launcher, "-n", group.ranks, self.binary, *peer_arguments(group, scale)]
        run = lambda: times_of_lines(output_of([self.place.start(0, command, environment)]))  # noqa: E731
        return measured(self.name, self.place, group, run)


class Gloo:
    name = "gloo"

    def __init__(self, place, python):
        self.place, self.python = place, python

    def measure(self, group, scale):
        return measured(self.name, self.place, group, lambda: self.times(group, scale))

    def times(self, group, scale):
        command = [self.python, "-W", "ignore", GLOO_SOURCE, *peer_arguments(group, scale), "--ranks", group.ranks]
        environment = {"GLOO_SOCKET_IFNAME": self.place.interface}
        if not isinstance(self.place, Hosts):
            return times_of_lines(output_of([self.place.start(0, command, environment)]))
        with tempfile.TemporaryDirectory() as folder:
            alone = [*command, "--rendezvous", f"{folder}/rendezvous", "--rank"]
            ranks = [self.place.start(rank, [*alone, rank], environment) for rank in range(group.ranks)]
            return times_of_lines(output_of(ranks))


# The congestion control that sockets get, and those that they may request.
CONGESTION_CONTROLS = ("tcp_congestion_control", "tcp_available_congestion_control")


class Iperf:
    """The bytes that a tuned TCP program moves in both directions at once, at its best of 1 to 4 streams or processes, with the system's
    congestion control or the one that Seto uses between near hosts. An all_reduce of two ranks moves each byte once in each direction."""

    name = rows.LIMIT

    def __init__(self, place):
        self.place = place

    def measure(self, group, _):
        ways = [(1, streams) for streams in range(1, MOST_STREAMS + 1)]
        ways += [(processes, 1) for processes in range(2, MOST_STREAMS + 1)]
        speeds = {way: self.bytes_per_second(*way) for way in ways}
        best = max(speeds, key=speeds.get)
        speed = speeds[best]
        controls = [Path("/proc/sys/net/ipv4", name).read_text().split() for name in CONGESTION_CONTROLS]
        if controls[0] != ["cubic"] and "cubic" in controls[1]:
            speed = max(speed, self.bytes_per_second(*best, ["-C", "cubic"]))
        return {size: 2 * size / speed * 1e6 for size in group.all_sizes}

    def bytes_per_second(self, processes, streams, options=()):
        ports = [self.place.free_port() for _ in range(processes)]
        address = self.place.addresses[1]
        servers, clients = [], []
        try:
            for port in ports:
                servers.append(self.place.start(1, ["iperf3", "-s", "-1", "-p", port, "-B", address, "--forceflush"]))
                servers[-1].line("Server listening")
            for port in ports:
                words = ["-c", address, "-p", port, "--bidir", "-P", streams, "-t", IPERF_SECONDS, "-J", *options]
                clients.append(self.place.start(0, ["iperf3", *words]))
            for client in clients:
                if client.wait(30) != 0:
                    raise Unavailable(f"iperf3: {(client.errors or client.output)[-200:]}")
            return sum(both_directions(json.loads(client.output)) for client in clients)
        except (LabError, FileNotFoundError) as error:
            raise Unavailable(str(error).splitlines()[0]) from None
        finally:
            for process in servers + clients:
                process.close()


def both_directions(report):
    """Bytes per second from iperf3's JSON of a run with --bidir."""
    end = report["end"]
    return (end["sum_received"]["bits_per_second"] + end["sum_received_bidir_reverse"]["bits_per_second"]) / 8


class TcpPeers(Setup):
    """The peers at a place, each with the settings that force it onto TCP there."""

    place = None

    def at(self, place):
        self.place = place
        return self.peers()

    def open_mpi(self):
        return Mpi("Open MPI", self.place, self.debian_mpi("openmpi"), open_mpi_settings)

    def mpich(self):
        return Mpi("MPICH", self.place, self.debian_mpi("mpich"), mpich_settings)

    def intel_mpi(self):
        shared = super().intel_mpi()
        return Mpi("Intel MPI", self.place, shared.binary, lambda place: intel_settings(place, shared.environment, shared.launcher))

    def gloo(self):
        return Gloo(self.place, super().gloo().python)


def open_mpi_settings(place):
    words = [*open_mpi_launcher("tcp,self"), "--mca", "pml", "ob1"]
    words += ["--mca", "btl_tcp_if_include", place.interface, "--mca", "oob_tcp_if_include", place.interface]
    if isinstance(place, Hosts):
        words += ["--mca", "plm_rsh_agent", place.agent, "--host", ",".join(f"{address}:1" for address in place.addresses)]
    return words, {}


def hydra_words(place, launcher):
    if not isinstance(place, Hosts):
        return []
    return [f"-{launcher}", "ssh", f"-{launcher}-exec", place.agent, "-hosts", ",".join(place.addresses), "-ppn", 1, "-iface", place.interface]


def mpich_settings(place):
    environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": place.interface, "MPIR_CVAR_NOLOCAL": 1}
    return ["mpirun.mpich", *hydra_words(place, "launcher")], environment


def intel_settings(place, environment, launcher):
    # Intel MPI's collectives within a host would otherwise use shared memory, with any fabric.
    forced = {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": place.interface, "I_MPI_COLL_INTRANODE": "pt2pt"}
    return [*launcher, *hydra_words(place, "bootstrap")], {**environment, **forced}
