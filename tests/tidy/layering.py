"""The direction of dependency between folders (DESIGN: base <- device, topology, plan <- ... <- command, bench, examples)."""

import re

from tree import Breach, Tree, folder_of

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')

# Every folder with what it may include besides itself. A folder that is not here may not exist: decide first where it stands.
_BASE = {"src/base"}
_LEAVES = _BASE | {"src/device", "src/topology"}
_TRANSPORT = _LEAVES | {"transports"}
_ENGINE = _TRANSPORT | {"src/plan", "src/codec"}
_CORE = _ENGINE | {"src/engine", "algorithms", "transports/slots", "transports/local", "transports/shm", "transports/tcp", "src/net", "src/bootstrap", "src/control"}
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
    "transports": _LEAVES,
    "transports/slots": _TRANSPORT,
    "transports/local": _TRANSPORT | {"transports/slots"},
    "transports/shm": _TRANSPORT | {"transports/slots"},
    "transports/tcp": _TRANSPORT | {"src/net"},
    "src/engine": _ENGINE,
    "src/core": _CORE,
    "src/api": _CORE | {"src/core", "include"},
    "src/command": {"src/base", "include"},
    "src/torch": {"include"},
    "bench": {"src/base", "include"},
    "examples": {"include"},
}
# These look inside: tests anywhere, micro-benchmarks at what they measure.
UNBOUND = ("tests/", "bench/micro/")
# Only these stand on another transport: the slot ring of ranks that share memory.
SHARED_TRANSPORT = "transports/slots"


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
                continue
            edges.setdefault((source, target), (name, number))
            if target not in ALLOWED[source]:
                yield Breach(name, number, f"{source} may not include {target} ({path})")
            elif is_transport(source) and is_transport(target) and target != SHARED_TRANSPORT:
                yield Breach(name, number, f"a transport may not include another: {target}")
    yield from mutual(edges)


def is_transport(folder: str) -> bool:
    return folder.startswith("transports/")


def mutual(edges: dict):
    """Pairs of folders that include each other, whatever the table says."""
    for (source, target), (name, number) in sorted(edges.items()):
        if source < target and (target, source) in edges:
            yield Breach(name, number, f"{source} and {target} include each other (also in {edges[target, source][0]})")
