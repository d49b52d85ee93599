"""The direction of dependency between folders (DESIGN: base <- device, topology, plan <- ... <- command, bench, examples), and
between the rooms of a folder."""

import re

from tree import Breach, Tree, folder_of

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')

# Every folder with what it may include besides itself. A folder that is missing here may not exist: decide first on its position.
_BASE = {"src/base"}
_LEAVES = _BASE | {"src/device", "src/topology"}
_TRANSPORT = _LEAVES | {"transports"}
_ENGINE = _TRANSPORT | {"src/plan", "src/codec"}
# Transports that connect contexts over a medium, and the control plane that they use for that.
_MEDIUM = _TRANSPORT | {"src/net", "src/control"}
_CORE = _ENGINE | {"src/engine", "algorithms", "transports/shm", "transports/tcp", "transports/rdma", "src/net", "src/bootstrap", "src/control"}
ALLOWED = {
    "include": set(),
    "src/base": set(),
    "src/device": _BASE,
    "src/codec": _BASE | {"src/device"},
    "src/topology": _BASE,
    "src/plan": _BASE,
    "src/net": _BASE,
    "src/bootstrap": _BASE | {"src/net"},
    "src/control": _BASE | {"src/net"},
    "algorithms": _BASE | {"src/plan", "src/topology"},
    "transports": _LEAVES | {"src/net"},
    "transports/resume": _BASE | {"transports"},
    "transports/slots": _TRANSPORT,
    "transports/shm": _MEDIUM | {"transports/slots"},
    "transports/tcp": _MEDIUM | {"transports/resume"},
    "transports/rdma": _MEDIUM,
    "src/engine": _ENGINE,
    "src/core": _CORE,
    "src/report": _CORE | {"src/core"},
    "src/api": _CORE | {"src/core", "src/report", "include"},
    "src/command": {"src/base", "include"},
    "src/torch": {"include"},
    "bench": _BASE | {"src/device", "include"},
    "examples": {"include"},
}
# Folders with rooms. A room includes only itself and the rooms before it. "." stands for the files outside any room.
ROOMS = {
    "src/device": [".", "cuda"],
    "src/core": ["record", "call", "choice", "progress", "connect", "launch", "communicator", "device_relay", "gpu_direct", "device_memory", "host_stream", "dump"],
    "src/control": [".", "liveness", "local", "network", "overlay", "channel"],
    "src/net": [".", "tls"],
    "src/bootstrap": [".", "rendezvous", "tree", "providers"],
    "src/api": ["support", "lifetime", "calls"],
    "src/topology": [".", "graph", "search", "xml", "draw", "discovery"],
    "src/engine": ["kernels", ".", "device", "relay", "simulation"],
    "src/report": [".", "device", "status"],
    "transports/tcp": ["frames", "flow", "link", "streams", "connect"],
    "transports/rdma": ["verbs", "link", "connect", "pipes", "gpu_memory"],
}
# These may include any folder: tests, and benchmarks of internal code.
UNBOUND = ("tests/", "bench/micro/", "bench/rdma/")
# The only folders that several transports may include: the rings of slots of contexts that share memory, and what a connection
# needs to continue after a break.
SHARED_TRANSPORTS = ("transports/slots", "transports/resume")
# The only file above the transports that may name one. All other files use the interfaces in transports/*.h.
TRANSPORT_LIST = "src/core/connect/transport_list.cc"


def included(tree: Tree, name: str):
    """(line number, path from the root) of each include that names a file of the repository."""
    for number, line in enumerate(tree.lines(name), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        for path in (match[1], f"include/{match[1]}"):
            if path in tree.files:
                yield number, path
                break


def check(tree: Tree):
    edges = {}
    for name in tree.sources():
        source = folder_of(name)
        bound = not name.startswith(UNBOUND)
        if bound and source not in ALLOWED:
            yield Breach(name, 1, f"folder {source} has no place in the layering (tests/tidy/layering.py)")
            continue
        for number, path in included(tree, name) if bound else ():
            target = folder_of(path)
            if target == source:
                yield from against_the_order(name, number, path, source)
                continue
            edges.setdefault((source, target), (name, number))
            if target not in ALLOWED[source]:
                yield Breach(name, number, f"{source} may not include {target} ({path})")
            elif is_transport(source) and is_transport(target) and target not in SHARED_TRANSPORTS:
                yield Breach(name, number, f"a transport may not include another: {target}")
            elif is_transport(target) and not is_transport(source) and name != TRANSPORT_LIST:
                yield Breach(name, number, f"only {TRANSPORT_LIST} may name a transport ({path})")
    yield from mutual(edges)


def against_the_order(name: str, number: int, path: str, folder: str):
    """Finds includes from one room of the folder to a room that comes after it."""
    if folder not in ROOMS:
        return
    order = ROOMS[folder]
    source, target = room_of(name, folder), room_of(path, folder)
    for file, room in ((name, source), (path, target)):
        if room not in order:
            yield Breach(file, 1, f"{folder} has no room {room} (tests/tidy/layering.py)")
            return
    if order.index(target) > order.index(source):
        yield Breach(name, number, f"room {source} of {folder} may not include room {target}, which comes after it ({path})")


def room_of(name: str, folder: str) -> str:
    """The room of a file: src/core/call/ids.h -> call; src/control/handshake.h -> "."."""
    inside = name.removeprefix(folder + "/").split("/")
    return inside[0] if len(inside) > 1 else "."


def is_transport(folder: str) -> bool:
    return folder.startswith("transports/")


def mutual(edges: dict):
    """Finds pairs of folders that include each other, independent of the table."""
    for (source, target), (name, number) in sorted(edges.items()):
        if source < target and (target, source) in edges:
            yield Breach(name, number, f"{source} and {target} include each other (also in {edges[target, source][0]})")
