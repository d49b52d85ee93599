"""A host of the lab, and the environment of its programs."""

import os

from namespaces import LabError, command_output
from process import Process
from wiring import IPV4, addresses_of, interface_of


class Host:
    """One namespace. `place`: which host of its site."""

    def __init__(self, index, name, families, site, place):
        self.index, self.name, self.site, self.place = index, name, site, place
        self.ipv4, self.ipv6 = self.addresses(0)
        self.address = self.ipv4 if IPV4 in families else self.ipv6
        self.processes = []

    def addresses(self, path):
        """Returns the IPv4 and the IPv6 address of the interface of a path: 0 is the first, paths of the lab follow."""
        return addresses_of(path, self.site, self.place)

    def start(self, command, environment=None, echo=None):
        """Starts a process; the end of the lab ends it if it still runs."""
        self.processes.append(Process(["ip", "netns", "exec", self.name, *command], clean_environment(environment), echo))
        return self.processes[-1]

    def run(self, command, environment=None, limit_s=60):
        """Returns the output of a program; raises an error if its exit status is not 0."""
        process = self.start(command, environment)
        code = process.wait(limit_s)
        if code != 0:
            raise LabError(f"{process} ended with {code} on host {self.index}: {process.errors or process.output}")
        return process.output

    def ip(self, *words):
        return command_output(["ip", "-n", self.name, *words])

    def set_interface(self, state, path=0):
        """Sets the interface of a path up or down."""
        self.ip("link", "set", interface_of(path), state)

    def add_decoy(self, name, address):
        """Adds an interface with an unreachable address, such as docker0 has."""
        self.ip("link", "add", name, "type", "bridge")
        self.ip("addr", "add", address, "dev", name)
        self.ip("link", "set", name, "up")


def clean_environment(extra=None):
    """Returns our environment without settings of the library, so that a run states all its settings itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SETO_")}
    return {**kept, **{name: str(value) for name, value in (extra or {}).items()}}
