"""The paths between sites: the first one, and further ones with addresses, links and shared rates of their own."""

from dataclasses import dataclass, replace

from namespaces import LabError
from wiring import MOST_PATHS, Site


@dataclass(frozen=True)
class Path:
    """links: options of every ordered pair of sites. sites: with the rates that their hosts share on this path."""

    links: list[str]
    sites: list[Site]

    @classmethod
    def of_options(cls, options, sites):
        """`uplink=` and `downlink=` are for every site, the other options for every pair of sites."""
        links, rates = [], {"uplink": None, "downlink": None}
        for option in options:
            name, _, rate = option.partition("=")
            if name not in rates:
                links.append(option)
            elif rate:
                rates[name] = rate
            else:
                raise LabError(f"'{option}': wanted {name}=RATE")
        return cls(links, [replace(site, **rates) for site in sites])


def paths_of(paths, links, sites):
    """Returns the paths of a lab. `paths`: their number, all like the first; or the options of each further one."""
    first = Path(links, sites)
    if isinstance(paths, int):
        found = [first] * paths
    else:
        found = [first, *(Path.of_options(options, sites) for options in paths)]
    if not 1 <= len(found) <= MOST_PATHS:
        raise LabError(f"wanted 1 to {MOST_PATHS} paths")
    if len(found) > 1 and links is None:
        raise LabError("several paths want the emulator")
    return found
