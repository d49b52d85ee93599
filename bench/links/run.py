#!/usr/bin/env python3
"""Measures the table of goals for long links between sites and ends each row in `met`, `missed` or `not measured`.

    bench/links/run [--quick] [--rows KEY,...] [--rounds N] [--limit-minutes M] [--json FILE] [--build DIR]

Every round opens a lab (tests/lab, root) and starts fresh processes for each thing that is measured, in rotated order. --quick takes less
than a minute: one round of the main rows at 1 Gbit/s. README.md of this folder says how each row is measured.
"""

import sys

import rows  # first: it knows where the common parts are
from link_labs import launches_of
from link_run import parsed, parser_for, run_table

ROUNDS = 5
LIMIT_MINUTES = 60


def main():
    options = parsed(parser_for(__doc__, rows, ROUNDS, LIMIT_MINUTES), rows, ROUNDS)
    return run_table(options, rows, lambda wanted, session, _, python: launches_of(wanted, options, session.build, python))


if __name__ == "__main__":
    sys.exit(main())
