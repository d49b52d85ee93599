"""What the machine code of a kernel must show of the protocol of blocks, and the cost of its inner loops."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache

VECTOR = "128"  # bits of an access of 16 bytes
GOAL = 1.25  # instructions of an iteration over those that it needs
COPIES = ("BRA", "MOV", "IMAD.MOV", "NOP")
# Its blocks look at all their messages in turn, and move bytes on the way: it has no loop that only waits, and no loop of whole tiles.
TRANSFERS = "seto_run_transfers"
# Its loops move bytes as those of transfers do, and sum in the switch. GPUs before sm_90 have no instructions for that: its code for them stops.
MULTICAST = "seto_run_multicast"


def place(function, index):
    one = function.code[index]
    return f"{function.name} for {function.architecture}: {one.opcode} {one.operands} at {one.place:#x}"


def predecessors_of(function):
    before = defaultdict(list)
    for index, targets in function.successors.items():
        for target in targets:
            before[target].append(index)
    return before


# ---- the protocol


def is_flag_store(function, index):
    """A release: a fence of the system stands before the store."""
    one = function.code[index]
    if not (one.is_global_store and one.is_strong):
        return False
    for earlier in reversed(function.code[max(index - 4, 0) : index]):
        if earlier.name == "MEMBAR":
            return True
        if earlier.name not in ("ERRBAR", "CGAERRBAR", "NOP"):
            return False
    return False


def unordered_path(function, before, store):
    """The index of an access of data, or of the entry, from which the store is reached without a barrier of the block; None if there is none."""
    seen, waiting = set(), [store]
    while waiting:
        index = waiting.pop()
        if index == 0:
            return 0
        for earlier in before[index]:
            one = function.code[earlier]
            if earlier in seen or one.is_barrier:
                continue
            seen.add(earlier)
            # A word of 64 bits may be a part of the message that its thread sends with the flag. All data has other stores, too.
            is_data = one.is_global_store and not one.is_strong and "64" not in one.modifiers
            if is_data or (one.is_global_load and VECTOR in one.modifiers):
                return earlier
            waiting.append(earlier)
    return None


def flag_stores(function):
    return [index for index in range(len(function.code)) if is_flag_store(function, index)]


def protocol_faults(function):
    """One text for each thing that the protocol forbids."""
    if (function.name, function.architecture) == (MULTICAST, "sm_80"):
        return []
    faults, before = [], predecessors_of(function)
    stores = flag_stores(function)
    if not stores:
        faults.append(f"{function.name} for {function.architecture}: no flag is stored")
    for index in stores:
        if "SYS" not in function.code[index].modifiers:
            faults.append(f"{place(function, index)}: its scope is not the system")
        reached = unordered_path(function, before, index)
        if reached is not None:
            faults.append(f"{place(function, index)}: no barrier of the block after {place(function, reached)}")
    return faults + acquire_faults(function) + ([] if function.name == TRANSFERS else polling_faults(function))


def polling_faults(function):
    """Loops that wait, which sleep between two looks, look by strong loads of the system: at a flag, or at the word that stops kernels."""
    polls = [body for body in function.loops if any(function.code[index].name == "NANOSLEEP" for index in body)]
    loaded = [[index for index in body if function.code[index].is_global_load] for body in polls]
    waits = any("64" in function.code[index].modifiers for loads in loaded for index in loads)
    faults = [] if waits else [f"{function.name} for {function.architecture}: no loop waits for a flag"]
    for body, loads in zip(polls, loaded):
        if not loads:
            faults.append(f"{place(function, body[0])}: the loop looks at nothing")
        faults += [f"{place(function, index)}: a word is not loaded as strong, of the system" for index in loads if not is_system(function.code[index])]
    return faults


def acquire_faults(function):
    """After a flag is loaded, nothing follows but the invalidation. A marked word is no flag: it brings its own data."""
    words = [index for index, one in enumerate(function.code) if one.is_global_load and is_system(one) and "64" in one.modifiers]
    flags = [index for index in words if not is_marked(function, index)]
    return [f"{place(function, index)}: old lines of the cache are not dropped" for index in flags if not acquires(function, index)]


def is_marked(function, index):
    """Whether the upper half of the loaded word is first compared alone, and only whether it is equal: flags are compared as 64 bits."""
    first = min(function.code[index].written, key=lambda name: int(name[1:]))
    upper = f"R{int(first[1:]) + 1}"
    compared, seen, waiting = [], set(), list(function.successors[index])
    while waiting:
        later = waiting.pop()
        if later in seen:
            continue
        seen.add(later)
        one = function.code[later]
        if one.name == "ISETP" and upper in one.read:
            compared.append(one)  # later ones may compare what lies in the register then
        elif upper not in one.written or one.predicate:
            waiting += function.successors[later]
    return bool(compared) and all(one.modifiers[0] in ("NE", "EQ") and "EX" not in one.modifiers for one in compared)


def is_system(one):
    return one.is_strong and "SYS" in one.modifiers


def acquires(function, index):
    """Whether the lines of the cache are dropped before memory is accessed again."""
    for later in function.code[index + 1 : index + 12]:
        if later.opcode == "CCTL.IVALL":
            return True
        if later.is_global_load or later.is_global_store or later.name == "BRA":
            return False
    return False


# ---- inner loops


@dataclass(frozen=True)
class Loop:
    """An inner loop that moves or folds vectors of 16 bytes."""

    kernel: str
    architecture: str
    address: int
    work: str  # "move", "sum", or the instruction that computes most
    sources: int
    targets: int
    needed: int  # loads, stores and arithmetic
    instructions: int
    narrow: int  # accesses of global memory of other widths

    @property
    def cost(self):
        return self.instructions / self.needed


def kind_of(one):
    return ".".join(one.opcode.split(".")[:2]) if one.name == "IMAD" else one.name


def setter_of(code, index, register):
    """The index of the instruction that sets a register before it is used: in this iteration, or in the one before."""
    before = list(range(index - 1, -1, -1)) + list(range(len(code) - 1, index - 1, -1))
    return next((other for other in before if register in code[other].written), None)


def bookkeeping_of(code):
    """The indices of what computes addresses and the end of the loop."""
    found, waiting = set(), [(index, register) for index, one in enumerate(code) if one.name == "BRA" for register in one.read]
    waiting += [(index, register) for index, one in enumerate(code) if one.is_global_load or one.is_global_store for register in one.address]
    while waiting:
        setter = setter_of(code, *waiting.pop())
        if setter is None or setter in found or code[setter].is_global_load:
            continue
        found.add(setter)
        waiting += [(setter, register) for register in code[setter].read]
    return found


def arithmetic_of(code):
    """{kind: count} of the instructions that compute numbers."""
    rest = bookkeeping_of(code)
    computing = (one for index, one in enumerate(code) if index not in rest and not one.is_global_load and not one.is_global_store)
    return Counter(kind_of(one) for one in computing if one.name not in COPIES and kind_of(one) not in COPIES)


def work_of(arithmetic):
    """The work by its instructions. Additions of integers have no other kind beside them."""
    kinds = set(arithmetic)
    if not kinds:
        return "move"
    if kinds <= {"FADD", "FSETP", "FSEL"} | {"DADD", "DSETP"} or kinds <= {"IADD3", "IMAD.IADD", "IMAD.X", "IADD", "VIADD", "IADD.64"}:
        return "sum"
    return max(arithmetic, key=arithmetic.get)


@cache
def inner_loops(function):
    """The inner loops with vectors, in the order of their addresses."""
    found = []
    for body in function.loops:
        code = [function.code[index] for index in body]
        loads = [one for one in code if one.is_global_load]
        stores = [one for one in code if one.is_global_store]
        wide = [one for one in loads + stores if VECTOR in one.modifiers]
        if not any(one in loads for one in wide) or not any(one in stores for one in wide):
            continue
        sources, targets = (len({min(one.address) for one in accesses}) for accesses in (loads, stores))
        arithmetic = arithmetic_of(code)
        needed = len(loads) + len(stores) + sum(arithmetic.values())
        narrow = len(loads) + len(stores) - len(wide)
        found.append(Loop(function.name, function.architecture, code[0].place, work_of(arithmetic), sources, targets, needed, len(code), narrow))
    return sorted(found, key=lambda loop: loop.address)


def judged(loops):
    """Of each kind of move or sum, the loop that takes most at a time: another one is for the tiles that it leaves."""
    largest = {}
    for loop in loops:
        key = (loop.kernel, loop.architecture, loop.work, loop.sources, loop.targets)
        if loop.work in ("move", "sum") and (key not in largest or loop.needed > largest[key].needed):
            largest[key] = loop
    return list(largest.values())


def loop_faults(function):
    """Loops of moves and sums that cost more than the goal or access less than 16 bytes at a time; moves that are missing."""
    if function.name in (TRANSFERS, MULTICAST):
        return []
    loops = judged(inner_loops(function))
    where = f"{function.name} for {function.architecture}"
    faults = [] if {(1, 1), (1, 2)} <= {(loop.sources, loop.targets) for loop in loops if loop.work == "move"} else [f"{where}: a loop of a move to one and to two targets is missing"]
    for loop in loops:
        if loop.narrow:
            faults.append(f"{where}: {loop.narrow} accesses of the {loop.work} at {loop.address:#x} have less than 16 bytes")
        if loop.cost > GOAL:
            faults.append(f"{where}: the {loop.work} at {loop.address:#x} takes {loop.cost:.2f} instructions for each that it needs, above {GOAL}")
    return faults


def table_of(loops):
    lines = [f"{'kernel':24} {'for':7} {'work':6} {'sources':>7} {'targets':>7} {'needed':>7} {'instructions':>12} {'cost':>6}"]
    for loop in loops:
        mark = "" if loop.cost <= GOAL else f"  above {GOAL}"
        lines.append(f"{loop.kernel:24} {loop.architecture:7} {loop.work:6} {loop.sources:>7} {loop.targets:>7} {loop.needed:>7} {loop.instructions:>12} {loop.cost:>6.2f}{mark}")
    return lines
