#!/usr/bin/env python3
"""The pure parts of ./dev lab wan: units, the bound, the table."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "lab"))

import two_sites  # noqa: E402


def entry(size, travelled, wire, us, wrong=0):
    return {"size": size, "travelled_in": travelled, "wire_bytes": wire, "out_of_place": {"time": us, "nwrong": wrong}}


class TwoSites(unittest.TestCase):
    def test_units(self):
        self.assertEqual([two_sites.milliseconds(text) for text in ("30ms", "2.5ms", "500us", "1s")], [30, 2.5, 0.5, 1000])
        self.assertEqual([two_sites.bytes_per_second(text) for text in ("1g", "200m", "1.6G")], [125e6, 25e6, 200e6])

    def test_the_bound_is_of_what_travels(self):
        self.assertEqual(two_sites.bound_ms(125e6, 125e6, 30), 1030)

    def test_as_many_sockets_as_fill_the_link(self):
        self.assertEqual([two_sites.sockets_for(rate, 30) for rate in (1e6, 125e6, 250e6, 500e6, 5e9)], [2, 4, 6, 11, 16])

    def test_a_line_says_size_time_bound_and_ratio(self):
        document = {"results": [entry(8_000_000, "none", 8_000_000, 188_000.0), entry(8_000_000, "fp16", 4_000_000, 124_000.0, 3)]}
        head, exact, halved = two_sites.lines_of(document, 125e6, 30)
        self.assertEqual(head.split(), ["size", "travels", "in", "ms", "bound", "ratio"])
        self.assertEqual(exact.split(), ["8000000", "fp32", "188.0", "94.0", "0.50"])
        self.assertEqual(halved.split(), ["8000000", "fp16", "124.0", "62.0", "0.50", "WRONG:", "3"])


if __name__ == "__main__":
    unittest.main()
