#!/usr/bin/env python3
"""The pure parts of the init benchmark: ratios, bounds, parsing of the log."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "init"))

import rows  # noqa: E402  first: it adds the common folder to the path
import contenders  # noqa: E402


def seconds(**by_name):
    names = {"ours": rows.OURS, "openmpi": "Open MPI", "mpich": "MPICH"}
    return {(names[name], 4): dict(enumerate(times)) for name, times in by_name.items()}


class Ratios(unittest.TestCase):
    row = rows.ROWS[0]

    def test_the_best_is_the_one_with_the_lowest_median(self):
        times = seconds(ours=[0.8, 0.8, 0.8], openmpi=[0.5, 2, 2], mpich=[1, 1, 1.6])
        self.assertEqual(rows.ratios_of(times, self.row), [0.8, 0.8, 0.5])
        self.assertEqual(rows.verdict(rows.judge_launch(times, self.row)), "met")

    def test_rounds_that_lack_a_figure_do_not_count(self):
        times = seconds(ours=[1, 1], mpich=[1])
        self.assertEqual(rows.ratios_of(times, self.row), [1])
        self.assertEqual(rows.ratios_of(seconds(ours=[1]), self.row), [])
        self.assertEqual(rows.ratios_of(seconds(mpich=[1]), self.row), [])
        self.assertEqual(rows.verdict(rows.judge_launch(seconds(mpich=[1]), self.row)), "not measured")

    def test_every_mpi_has_a_row_at_every_count(self):
        self.assertEqual(len(rows.ROWS), 3 + 9)
        self.assertEqual(len(set(rows.KEYS)), len(rows.KEYS))


class Scale(unittest.TestCase):
    def test_bytes_grow_with_the_logarithm(self):
        self.assertEqual(rows.root_bytes_bound(256), 8 * 1024)
        self.assertEqual(rows.root_bytes_bound(1024), 10 * 1024)

    def test_the_log_of_the_root_is_read(self):
        log = "x\n[info] rendezvous of 256 ranks: 51200 bytes sent and received, 200 for each rank\n"
        self.assertEqual(contenders.figures_of('{"init_s": 1.5}', log, 256), (1.5, 200))
        with self.assertRaises(contenders.Unavailable):
            contenders.figures_of('{"init_s": 1.5}', log, 1024)


if __name__ == "__main__":
    unittest.main()
