"""Lengths: files, functions, READMEs; and the ratio of test lines to source lines, which is said but breaks nothing yet."""

import statistics

from scanner import functions
from tree import Breach, Tree, folder_of

FILE_LIMIT = 600
FILE_MEDIAN_LIMIT = 150
FUNCTION_LIMIT = 70
README_LIMIT = 60
TEST_RATIO_GOAL = 0.8
# Folders whose README says purpose, limits, invariants and tests.
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
    median = file_median(tree)
    if median > FILE_MEDIAN_LIMIT:
        yield Breach(".", 0, f"the median file has {median:.0f} lines: at most {FILE_MEDIAN_LIMIT}")
    yield from readmes(tree)


def file_median(tree: Tree) -> float:
    return statistics.median([len(tree.lines(name)) for name in tree.sources()] or [0])


def readmes(tree: Tree):
    folders = {folder_of(name) for name in tree.sources()}
    for folder in sorted(folder for folder in folders if folder.startswith(EXPLAINED)):
        if f"{folder}/README.md" not in tree.files:
            yield Breach(f"{folder}/README.md", 0, "is missing: each folder has one")
    for name in sorted(tree.files):
        if name.endswith("/README.md") and len(tree.lines(name)) > README_LIMIT:
            yield Breach(name, README_LIMIT, f"{len(tree.lines(name))} lines: the README of a folder has at most {README_LIMIT}")


def test_ratio(tree: Tree) -> float:
    def total(prefixes):
        return sum(len(tree.lines(name)) for name in tree.sources() if name.startswith(prefixes))
    return total("tests/") / max(total(("src/", "transports/", "algorithms/", "include/")), 1)


def report(tree: Tree) -> str:
    ratio = test_ratio(tree)
    verdict = "reached" if ratio >= TEST_RATIO_GOAL else "not reached"
    return (f"tidy: median file {file_median(tree):.0f} lines; test lines / source lines {ratio:.2f} "
            f"(goal {TEST_RATIO_GOAL}: {verdict})")
