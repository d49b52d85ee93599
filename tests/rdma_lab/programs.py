"""The list of programs that run in the virtual machine, and the counts of their tests."""

import re
from dataclasses import dataclass, field

SKIPPED = 77
OVER_LIMIT = (124, 137)  # what `timeout` ends with
_RESULT = re.compile(r"^\[( +OK|  FAILED|  SKIPPED) +\] (\S+) \(\d+ ms\)", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    name: str
    limit_s: float
    command: str


@dataclass
class Counts:
    passed: int = 0
    failed: list = field(default_factory=list)  # names
    skipped: list = field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    @property
    def text(self):
        return f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"


def parse(text):
    """The programs of a list. A line that is none, and a name that stands there twice, are a ValueError."""
    programs = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(maxsplit=2)
        if len(words) != 3 or not re.fullmatch(r"\d+(\.\d+)?", words[1]) or float(words[1]) <= 0:
            raise ValueError(f"line {number}: wanted a name, a limit in seconds and a command: {line}")
        if words[0] in (program.name for program in programs):
            raise ValueError(f"line {number}: a second program {words[0]}")
        programs.append(Program(words[0], float(words[1]), words[2]))
    return programs


def count(program, status, output):
    """The tests of a program that ended: those that GoogleTest reports, or the program itself as one."""
    counts = Counts()
    for result, name in _RESULT.findall(output):
        if "OK" in result:
            counts.passed += 1
        else:
            (counts.failed if "FAILED" in result else counts.skipped).append(f"{program.name}: {name}")
    if status == 0 and not counts.passed + len(counts.failed) + len(counts.skipped):
        counts.passed = 1
    elif status == SKIPPED:
        counts.skipped.append(f"{program.name}: {(output.strip().splitlines() or ['it gave no reason'])[-1]}")
    elif status != 0 and not counts.failed:
        why = f"exceeded its limit of {program.limit_s:g} s" if status in OVER_LIMIT else f"ended with {status}"
        counts.failed.append(f"{program.name}: {why}")
    elif status == 0 and counts.failed:
        counts.failed.append(f"{program.name}: ended with 0 although tests failed")
    return counts
