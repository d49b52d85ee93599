"""Makes hosts and sites of namespaces: kernel settings, cables between them, addresses and routes."""

import subprocess
from dataclasses import dataclass

from namespaces import LabError, command_output

INTERFACE = "wan0"  # of the first path
IPV4, IPV6 = "ipv4", "ipv6"
ROUTER_PLACE = 254  # of the last octet of a site's addresses
MOST_HOSTS = 250  # of a site
MOST_PATHS = 8  # as kMostPaths of packets.h
TRANSMIT_QUEUE = 10_000  # packets: what is dropped, the emulator drops

# Settings of a usual host: no wait for duplicate addresses, addresses that survive a link that goes down and up.
SYSCTLS = {
    "net/ipv6/conf/all/accept_dad": "0",
    "net/ipv6/conf/default/accept_dad": "0",
    "net/ipv6/conf/all/keep_addr_on_down": "1",
    "net/ipv6/conf/default/keep_addr_on_down": "1",
    "net/ipv4/tcp_no_metrics_save": "1",
}
FORWARDING = {"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1"}
CONGESTION_CONTROL = "net/ipv4/tcp_congestion_control"
USUAL_CONGESTION_CONTROL = "cubic"  # so that figures do not depend on the setting of the machine


@dataclass(frozen=True)
class Site:
    """Hosts on one bridge, and the rates that all of them share to and from other sites: None is no limit, and a downlink is as fast
    as its uplink unless it has a rate of its own."""

    hosts: int = 1
    uplink: str | None = None
    downlink: str | None = None

    @classmethod
    def of_text(cls, text, uplink=None, downlink=None):
        """`2`, `2 uplink=1g`, `1 uplink=1g downlink=500m`; values that the text does not state are kept."""
        count, *words = text.split() or [""]
        rates = {"uplink": uplink, "downlink": downlink}
        for word in words:
            name, _, rate = word.partition("=")
            if name not in rates or not rate:
                raise LabError(f"--site '{text}': wanted HOSTS [uplink=RATE] [downlink=RATE]")
            rates[name] = rate
        if not count.isdecimal() or not 1 <= int(count) <= MOST_HOSTS:
            raise LabError(f"--site '{text}': wanted a number of hosts from 1 to {MOST_HOSTS} first")
        return cls(int(count), **rates)

    def commands(self, index):
        """Returns the settings as arguments of the emulator."""
        uplink, downlink = self.uplink, self.downlink or self.uplink
        return [f"{name} {index} rate={rate}" for name, rate in (("uplink", uplink), ("downlink", downlink)) if rate]


@dataclass(frozen=True)
class Congestion:
    """The congestion control of the hosts: the requested one, the actual one, and the reason if they differ."""

    wish: str
    in_force: str
    refusal: str = ""

    @property
    def text(self):
        if self.in_force == self.wish:
            return f"congestion control: {self.in_force}"
        return f"congestion control: {self.in_force}, because this kernel refused {self.wish} in a network namespace ({self.refusal})"


def choose_congestion_control(namespace, wish):
    """Writes the requested value and reads back the actual one."""
    path = f"/proc/sys/{CONGESTION_CONTROL}"
    script = f"echo {wish} >{path}; cat {path}"
    done = subprocess.run(["ip", "netns", "exec", namespace, "sh", "-c", script], capture_output=True, text=True)
    in_force = done.stdout.strip()
    if done.returncode != 0 or not in_force:
        raise LabError(f"the congestion control of {namespace} cannot be read: {done.stderr.strip()}")
    return Congestion(wish, in_force, done.stderr.strip().split(": ")[-1])


def make_namespace(name, more_settings=None):
    command_output(["ip", "netns", "add", name])
    settings = {**SYSCTLS, **(more_settings or {})}
    lines = ["set -e", *(f"echo {value} >/proc/sys/{path}" for path, value in settings.items())]
    command_output(["ip", "netns", "exec", name, "sh", "-c", "\n".join(lines)])
    command_output(["ip", "-n", name, "link", "set", "lo", "up"])


def interface_of(path):
    return f"wan{path}"


def bridge_of(path):
    return f"lan{path}"


def addresses_of(path, site, place):
    """Returns the IPv4 and the IPv6 address of a host on that path; 0 is the first."""
    return f"10.{77 + path}.{site}.{place + 1}", f"fd{0x77 + path:x}:0:0:{site:x}::{place + 1:x}"


def routes_over(path, site, families):
    """Returns [(network of all sites on that path, router of this site)] for each family."""
    router4, router6 = addresses_of(path, site, ROUTER_PLACE - 1)
    routes = {IPV4: (f"10.{77 + path}.0.0/16", router4), IPV6: (f"fd{0x77 + path:x}::/32", router6)}
    return [routes[family] for family in families]


def join_pair(names):
    ends = ["name", INTERFACE, "netns", names[0], "type", "veth", "peer", "name", INTERFACE, "netns", names[1]]
    command_output(["ip", "link", "add", *ends])


def join_by_bridge(switch, names, mtu, path=0):
    """A bridge in the namespace `switch`, and a cable to each of the hosts."""
    device, bridge = interface_of(path), bridge_of(path)
    command_output(["ip", "-n", switch, "link", "add", bridge, "mtu", mtu, "type", "bridge"])
    command_output(["ip", "-n", switch, "link", "set", bridge, "up"])
    for index, name in enumerate(names):
        port = f"port{path}-{index}"
        ends = ["name", device, "netns", name, "type", "veth", "peer", "name", port, "netns", switch]
        command_output(["ip", "link", "add", *ends])
        command_output(["ip", "-n", switch, "link", "set", port, "mtu", mtu, "master", bridge, "up"])


def give_address(host, mtu, families, behind_router, path=0):
    """Gives addresses to an interface of a host. Behind a router its subnet has only its own site, otherwise all hosts. The subnets of
    paths differ, so the address of the receiver decides which path a packet takes."""
    device, (ipv4, ipv6) = interface_of(path), host.addresses(path)
    lines = [f"link set {device} mtu {mtu} txqueuelen {TRANSMIT_QUEUE} up"]
    if IPV4 in families:
        lines.append(f"addr add {ipv4}/{24 if behind_router else 16} dev {device}")
    if IPV6 in families:
        lines.append(f"addr add {ipv6}/{64 if behind_router else 32} dev {device} nodad")
    if behind_router:
        lines += [f"route add {network} via {router}" for network, router in routes_over(path, host.site, families)]
    command_output(["ip", "-n", host.name, "-batch", "-"], "\n".join(lines) + "\n")


def set_up_router(name, site, mtu, families, path=0):
    """Joins the bridge of a site and the device of the emulator of that path."""
    device = interface_of(path)
    lines = [f"link set {device} mtu {mtu} txqueuelen {TRANSMIT_QUEUE} up"]
    for network, router in routes_over(path, site, families):
        lines.append(f"addr add {router}/{64 if ':' in router else 24} dev {bridge_of(path)}" + (" nodad" if ":" in router else ""))
        lines.append(f"route add {network} dev {device}")
    command_output(["ip", "-n", name, "-batch", "-"], "\n".join(lines) + "\n")
