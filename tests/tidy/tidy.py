#!/usr/bin/env python3
"""Keeps the targets of the design: layering, sizes, headers, READMEs, words, paths. Prints each breach as file:line: text.

usage: tidy.py [--root DIR] [--cache DIR] [--cxx COMPILER] [--cc COMPILER]
Standard library only. Each check is a function from a Tree to breaches; tidy_test.py tests them on small trees.
"""

import argparse
import pathlib
import sys

import headers
import layering
import paths
import sizes
import words
from tree import Tree

CHECKS = (layering.check, sizes.check, words.check, paths.check)


def main() -> int:
    parser = argparse.ArgumentParser(description="the style of the repository, as a test")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--cache", type=pathlib.Path, help="folder that remembers which headers compiled (build/tidy-cache under the root)")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    arguments = parser.parse_args()

    cache = arguments.cache or arguments.root / "build/tidy-cache"
    tree = Tree.of_repository(arguments.root)
    breaches = [breach for check in CHECKS for breach in check(tree)]
    breaches += headers.check(tree, headers.Compilers(arguments.cc, arguments.cxx), cache)
    for breach in sorted(breaches, key=str):
        print(breach)
    print(sizes.report(tree))
    print(f"tidy: {len(tree.sources())} sources, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
