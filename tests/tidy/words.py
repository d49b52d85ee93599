"""What may not stand in a file: paths of one machine, waits by sleeping, unfinished marks, text of others."""

import re

from scanner import blanked
from tree import SOURCE_SUFFIXES, Breach, Tree

# Built from parts, so that this file does not contain what it looks for.
_MACHINE_PATH = re.compile(r'(?<![\w.])/(?:ho' r'me|ro' r'ot|wo' r'rk|Us' r'ers)/[\w.]')
_UNFINISHED = re.compile(r'\b(TO' r'DO|FIX' r'ME|XX' r'X|HA' r'CK)\b')
_FOREIGN = re.compile(r'Copy' r'right (\(c\)|©|[12]\d\d\d)|SP' r'DX-|All rights ' r'reserved|Licensed un' r'der the', re.IGNORECASE)
_SLEEP = re.compile(r'\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|sleep)\s*\(')
_NO_SLEEP_IN = ("src/", "tests/", "transports/", "bench/", "algorithms/", "examples/")
# The licence is by its nature the text of others; the fixtures of the test hold what must be found.
_EXEMPT = ("LICENSE", "tests/tidy/tidy_test.py")


def check(tree: Tree):
    for name, text in sorted(tree.files.items()):
        if name in _EXEMPT:
            continue
        yield from found(name, text, _MACHINE_PATH, "a path of one machine")
        yield from found(name, text, _UNFINISHED, "an unfinished mark: finish it, or say in the README what is missing")
        yield from found(name, text, _FOREIGN, "a mark of text by others")
        if name.startswith(_NO_SLEEP_IN) and name.endswith(SOURCE_SUFFIXES):
            yield from found(name, blanked(text), _SLEEP, "waiting by sleeping: wait for the event, with a deadline")


def found(name: str, text: str, pattern: re.Pattern, why: str):
    for match in pattern.finditer(text):
        yield Breach(name, text.count("\n", 0, match.start()) + 1, f"{why}: {match[0].strip()}")
