"""Lengths: files, functions, READMEs; and the ratio of test lines to source lines, which is reported but not enforced."""

import collections
import pathlib
import statistics

from layering import ROOMS, included
from scanner import functions
from tree import Breach, Tree, folder_of

FILE_LIMIT = 450
FILE_MEDIAN_LIMIT = 150
FUNCTION_LIMIT = 70
README_LIMIT = 60
ROOM_README_LIMIT = 30
# More people read a header that other folders include than an internal one.
SHARED_HEADER_LIMIT = 150
# A header and its source are one unit.
ROOM_LIMIT = 18
CROWDED = ("src/", "transports/", "algorithms/")
TEST_RATIO_GOAL = 0.8
# Folders whose README states purpose, limits, invariants and tests.
EXPLAINED = ("src/", "transports", "algorithms", "bench", "tests", "examples", "include")


def check(tree: Tree):
    for name in tree.sources():
        lines = len(tree.lines(name))
        if lines > FILE_LIMIT:
            yield Breach(name, lines, f"{lines} lines: a file has at most {FILE_LIMIT}")
        for function in functions(tree.files[name]):
            if function.length > FUNCTION_LIMIT:
                yield Breach(name, function.first,
                             f"{function.name} has {function.length} lines: a function has at most {FUNCTION_LIMIT}")
    yield from shared_headers(tree)
    yield from crowded_rooms(tree)
    median = file_median(tree)
    if median > FILE_MEDIAN_LIMIT:
        yield Breach(".", 0, f"the median file has {median:.0f} lines: at most {FILE_MEDIAN_LIMIT}")
    yield from readmes(tree)


def shared_headers(tree: Tree):
    """Headers of the library that a file of another folder includes, tests aside."""
    shared = {path for name in tree.sources() if not name.startswith("tests/") for _, path in included(tree, name)
              if str(pathlib.PurePath(path).parent) != str(pathlib.PurePath(name).parent)}
    for name in sorted(shared):
        lines = len(tree.lines(name))
        if name.startswith(CROWDED) and lines > SHARED_HEADER_LIMIT:
            yield Breach(name, lines, f"{lines} lines: a header that other folders include has at most {SHARED_HEADER_LIMIT}")


def crowded_rooms(tree: Tree):
    units = {str(pathlib.PurePath(name).with_suffix("")) for name in tree.sources() if name.startswith(CROWDED)}
    rooms = collections.Counter(str(pathlib.PurePath(unit).parent) for unit in units)
    for room, count in sorted(rooms.items()):
        if count > ROOM_LIMIT:
            yield Breach(room, 0, f"{count} units (a header and its source are one): a folder has at most {ROOM_LIMIT}")


def file_median(tree: Tree) -> float:
    return statistics.median([len(tree.lines(name)) for name in tree.sources()] or [0])


def readmes(tree: Tree):
    folders = {folder_of(name) for name in tree.sources()}
    for folder in sorted(folder for folder in folders if folder.startswith(EXPLAINED)):
        if f"{folder}/README.md" not in tree.files:
            yield Breach(f"{folder}/README.md", 0, "is missing: each folder has one")
    rooms = {f"{folder}/{room}" for folder, order in ROOMS.items() for room in order if room != "."}
    there = {str(pathlib.PurePath(name).parent) for name in tree.sources()}
    for room in sorted(rooms & there):
        if f"{room}/README.md" not in tree.files:
            yield Breach(f"{room}/README.md", 0, "is missing: each room has one")
    for name in sorted(tree.files):
        limit = ROOM_README_LIMIT if name.removesuffix("/README.md") in rooms else README_LIMIT
        if name.endswith("/README.md") and len(tree.lines(name)) > limit:
            yield Breach(name, limit, f"{len(tree.lines(name))} lines: this README has at most {limit}")


def test_ratio(tree: Tree) -> float:
    def total(prefixes):
        return sum(len(tree.lines(name)) for name in tree.sources() if name.startswith(prefixes))
    return total("tests/") / max(total(("src/", "transports/", "algorithms/", "include/")), 1)


def report(tree: Tree) -> str:
    ratio = test_ratio(tree)
    verdict = "reached" if ratio >= TEST_RATIO_GOAL else "not reached"
    return (f"tidy: median file {file_median(tree):.0f} lines; test lines / source lines {ratio:.2f} "
            f"(goal {TEST_RATIO_GOAL}: {verdict})")
