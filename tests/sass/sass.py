"""Machine code of GPUs, as cuobjdump prints it: instructions, the flow between them, and innermost loops."""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

FUNCTION = re.compile(r"^\s*Function : (\S+)")
ARCHITECTURE = re.compile(r"^\s*\.target\s+(sm_\d+)")
INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P[0-9T]+)\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*?)\s*;")
ADDRESS = re.compile(r"0x([0-9a-f]+)\s*$")
REGISTER = re.compile(r"\bU?R\d+")
PREDICATE = re.compile(r"\bU?P\d")
BASE = re.compile(r"\[(R\d+)")
ENDS = {"EXIT", "RET", "KILL"}
BY_TABLE = {"BRX", "JMX"}


def span_of(text, count):
    """The names of adjacent registers, from the one that an operand names."""
    found = REGISTER.search(text)
    if not found:
        return set(PREDICATE.findall(text))
    letters, number = re.fullmatch(r"(U?R)(\d+)", found[0]).groups()
    return {f"{letters}{int(number) + k}" for k in range(count)}


@dataclass(frozen=True)
class Instruction:
    place: int  # its address
    predicate: str  # "@P0", or nothing
    opcode: str  # with its modifiers: LDG.E.128
    operands: str

    @property
    def name(self):
        return self.opcode.split(".")[0]

    @property
    def modifiers(self):
        return self.opcode.split(".")[1:]

    @property
    def target(self):
        """The address to which it may jump."""
        found = ADDRESS.search(self.operands)
        return int(found[1], 16) if found else None

    @property
    def parts(self):
        return [part.strip() for part in self.operands.split(",")] if self.operands else []

    @cached_property
    def written(self):
        """The registers and predicates that it sets."""
        if self.is_global_store or self.name in ("STS", "BRA"):
            return set()
        wide = 2 if "WIDE" in self.modifiers or "64" in self.modifiers else 4 if "128" in self.modifiers else 1
        found = {name for part in self.parts[:1] for name in span_of(part, wide)}
        for part in self.parts[1:3]:
            if not PREDICATE.fullmatch(part):
                break
            found.add(part)
        return found

    @property
    def read(self):
        """The registers and predicates that it uses, with the second half of those of 64 bits."""
        count = 0 if self.is_global_store or self.name in ("STS", "BRA") else 1
        while count and count < min(len(self.parts), 3) and PREDICATE.fullmatch(self.parts[count]):
            count += 1
        found = {name for part in self.parts[count:] for register in REGISTER.findall(part) for name in span_of(register, 2 if ".64" in part else 1)}
        if "WIDE" in self.modifiers and self.parts:
            found |= set(span_of(self.parts[-1], 2))
        return found | set(PREDICATE.findall(" ".join(self.parts[count:]) + self.predicate))

    @property
    def address(self):
        """The registers of the address of an access of global memory."""
        found = BASE.search(self.operands)
        return set(span_of(found[1], 2)) if found else set()

    @property
    def is_global_load(self):
        return self.name in ("LDG", "LD")

    @property
    def is_global_store(self):
        return self.name in ("STG", "ST")

    @property
    def is_strong(self):
        return "STRONG" in self.modifiers

    @property
    def is_barrier(self):
        """Whether all threads of the block meet here."""
        return self.name == "BAR"


@dataclass(eq=False)
class Function:
    name: str
    architecture: str
    code: list = field(default_factory=list)

    @cached_property
    def successors(self):
        """index -> the indices of the instructions that may follow."""
        at = {instruction.place: index for index, instruction in enumerate(self.code)}
        following = {index: [] for index in range(len(self.code))}
        meetings = self.meeting_points()
        for index, one in enumerate(self.code):
            falls = True
            jumps = []
            if one.name in BY_TABLE:
                falls = bool(one.predicate)
            elif one.name == "BRA":
                jumps, falls = [one.target], bool(one.predicate) or re.match(r"!?U?P\d|UR\d", one.operands) is not None
            elif one.name == "BSYNC":
                jumps, falls = meetings[index], bool(one.predicate)
            elif one.name in ENDS:
                falls = bool(one.predicate)
            following[index] = sorted({at[address] for address in jumps if address in at} | ({index + 1} if falls and index + 1 < len(self.code) else set()))
        self.add_tables(following)
        return following

    def add_tables(self, following):
        """The disassembler does not print tables of jumps: such a jump may go to all places that nothing falls into."""
        tables = [index for index, one in enumerate(self.code) if one.name in BY_TABLE]
        places = [index + 1 for index, targets in following.items() if index + 1 < len(self.code) and index + 1 not in targets]
        for index in tables:
            following[index] = sorted({*following[index], *places})

    def meeting_points(self):
        """index of a BSYNC -> addresses at which the threads of the BSSY before it continue. Compilers nest them like brackets."""
        found, places = {}, defaultdict(list)
        for index, one in enumerate(self.code):
            if one.name == "BSSY":
                places[one.operands.split(",")[0].split()[-1]].append((one.place, one.target))
            elif one.name == "BSYNC":
                register = one.operands.split()[-1]
                around = [target for start, target in places[register] if start < one.place <= target]
                found[index] = around[-1:] or [target for _, target in places[register]]
        return found

    @cached_property
    def loops(self):
        """Innermost loops as lists of indices: a jump back, and all from which it is reached without leaving its head."""
        following = self.successors
        before = defaultdict(list)
        direct = {index: targets for index, targets in following.items() if self.code[index].name not in BY_TABLE}
        for index, targets in direct.items():
            for target in targets:
                before[target].append(index)
        bodies = {}
        for index, targets in direct.items():
            for head in targets:
                if head <= index:
                    bodies.setdefault(head, set()).update(natural_loop(before, head, index))
        innermost = [body for head, body in bodies.items() if not any(other != head and other in body for other in bodies)]
        return [sorted(body) for body in innermost]


def natural_loop(before, head, tail):
    body, waiting = {head}, [tail]
    while waiting:
        index = waiting.pop()
        if index in body:
            continue
        body.add(index)
        waiting += before[index]
    return body


def functions_of(text):
    """All functions in the output of cuobjdump -sass."""
    functions, architecture = [], ""
    for line in text.splitlines():
        if found := ARCHITECTURE.match(line):
            architecture = found[1]
        elif found := FUNCTION.match(line):
            functions.append(Function(found[1], architecture))
        elif (found := INSTRUCTION.match(line)) and functions:
            functions[-1].code.append(Instruction(int(found[1], 16), found[2] or "", found[3], found[4]))
    return functions
