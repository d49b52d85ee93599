#!/usr/bin/env python3
"""Measures the table of goals for jobs at several sites and ends each row in `met`, `missed` or `not measured`.

    bench/wan/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--build DIR] [--torch PYTHON]

Every round opens a lab (tests/lab, root) and starts fresh processes for each thing that is measured, in rotated order. --quick takes less
than a minute: one round of the main rows at 1 Gbit/s. README.md of this folder says how each row is measured.
"""

import sys

import rows  # first: it knows where the common parts are
import contenders
from link_run import parsed, parser_for, run_table
from report import ROOT

ROUNDS = 3
LIMIT_MINUTES = 25


def main():
    parser = parser_for(__doc__, rows, ROUNDS, LIMIT_MINUTES)
    parser.add_argument("--torch", metavar="PYTHON", default=ROOT / "build-torch" / "wheel" / "bin" / "python", help="one that has torch and the wheel")
    return run_table(parsed(parser, rows, ROUNDS), rows, contenders.launches_of)


if __name__ == "__main__":
    sys.exit(main())
