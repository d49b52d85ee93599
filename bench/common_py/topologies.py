"""Topology files for seto plan simulate: plain hosts in sites, with stated links. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sites:
    """Sites that are all alike, and the links within and between them. Rates are bytes a second; None: not stated."""

    sites: int = 1
    hosts: int = 1  # of each site
    cores: int = 64  # of each host
    fabric: float = None
    fabric_round_trip_s: float = None
    uplink: float = None
    round_trip_s: float = None

    @property
    def xml(self):
        """The text of a file of NCCL's format with the elements of our own."""
        lines = ['<system version="1">']
        if self.sites > 1:
            lines += [f'  <seto_site name="site{site}"/>' for site in range(self.sites)]
        everything = range(self.sites * self.hosts)
        if len(everything) > 1:
            lines += [f'  <seto_host hash="0x{host + 1:016x}" name="host{host}" site="{host // self.hosts}"/>' for host in everything]
        for site in range(self.sites):
            lines += _link(f'kind="fabric" site="{site}"', self.fabric, self.fabric_round_trip_s)
            if self.sites > 1:
                lines += [*_link(f'kind="uplink" site="{site}"', self.uplink), *_link(f'kind="downlink" site="{site}"', self.uplink)]
        for one in range(self.sites):
            for other in range(self.sites):
                if one != other:
                    lines += _link(f'kind="between" from="{one}" to="{other}"', None, self.round_trip_s)
        hash_of = (lambda host: f' host_hash="0x{host + 1:016x}"') if len(everything) > 1 else (lambda host: "")
        lines += [f'  <cpu numaid="0"{hash_of(host)} affinity="{_mask(self.cores)}" arch="x86_64"/>' for host in everything]
        return "\n".join([*lines, "</system>", ""])


def _mask(cores):
    """Words of 32 bits, the highest first."""
    digits = f"{(1 << cores) - 1:x}"
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[at : at + 8] for at in range(0, len(digits), 8))


def _link(where, rate=None, round_trip_s=None):
    facts = "" if rate is None else f' bytes_per_second="{rate:.9g}"'
    facts += "" if round_trip_s is None else f' round_trip_s="{round_trip_s:.9g}"'
    return [f'  <seto_link {where}{facts} source="file"/>'] if facts else []
