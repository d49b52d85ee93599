#!/usr/bin/env python3
"""The pure parts of the bench for an RDMA link: what the programs print, ratios, verdicts."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "rdma"))

import calls  # noqa: E402
import rows  # noqa: E402

BANDWIDTH = """ #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 1048576    100              146.86             105.99 \t\t   0.000106
"""
LATENCY = """ #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 8       2000          15.38          123.20       15.79    \t       16.54       \t5.51   \t\t39.91   \t\t113.01
"""


def row_of(key):
    return next(row for row in rows.ROWS if row.key == key)


class Figures(unittest.TestCase):
    def test_perftest_prints_a_line_of_names_and_one_of_numbers(self):
        self.assertEqual(rows.WRITE_BW.figure(BANDWIDTH), 105.99)
        self.assertEqual(rows.WRITE_LAT.figure(LATENCY), 15.79)

    def test_another_text_has_no_figure(self):
        for text in ("", "Couldn't connect", BANDWIDTH.replace("BW average", "BW mean"), BANDWIDTH.replace("146.86", "")):
            self.assertIsNone(rows.WRITE_BW.figure(text), text)
        self.assertIsNone(rows.PLACES.figure("rdma_link: nothing has come for 60 s"))

    def test_ours_are_named(self):
        self.assertEqual(rows.PLACES.figure('{"mib_per_s": 120.5}\n'), 120.5)
        self.assertEqual(rows.LATENCY.figure('{"us": 18.6, "us_p99": 50.0}\n'), 18.6)


def lines_of(time_us, wrong=0, sizes=calls.SIZES):
    return "".join(f'{{"size": {size}, "time_us": {time_us}, "wrong": {wrong}}}\n' for size in sizes)


class Calls(unittest.TestCase):
    def test_the_last_figure_of_a_size_counts(self):
        self.assertEqual(calls.SIZES[0], 8)
        self.assertEqual(calls.SIZES[-1], 16 << 20)
        self.assertEqual(set(calls.times_of("a warning\n" + lines_of(9) + lines_of(5)).values()), {5})

    def test_a_wrong_result_and_a_missing_size_are_no_figure(self):
        self.assertIsNone(calls.times_of(lines_of(9, wrong=1)))
        self.assertIsNone(calls.times_of(lines_of(9, sizes=calls.SIZES[:-1])))
        self.assertIsNone(calls.times_of(""))

    def samples(self, **times):
        names = {"rails": "rails-2", "chosen": "chosen-2", "mpi": "Open MPI-2", "tcp": "TCP-2"}
        return {names[key]: [calls.times_of(lines_of(us)) for us in each] for key, each in times.items()}

    def test_times_are_compared_with_those_of_rails(self):
        row = calls.CallsRow(2)
        text = row.text(self.samples(rails=(10, 20, 90), tcp=(5, 40, 80)))
        self.assertIn("  16 MiB | rails-2 20 | chosen-2 - | Open MPI-2 - | TCP-2 40 (0.50 x)", text)
        self.assertIn("rails faster than TCP to 4 KiB | at 4 of 4 sizes | met", text)
        self.assertIn("rails faster than Open MPI | not measured", text)
        self.assertIn("\n     8 B | ", text)
        self.assertIn("Open MPI-2 - |", row.text({}))

    def test_all_goals_are_met_or_the_row_is_missed(self):
        row = calls.CallsRow(2)
        self.assertEqual(row.verdict({}), rows.NOT_MEASURED)
        self.assertEqual(row.verdict(self.samples(rails=(10,) * 3, mpi=(20,) * 3, tcp=(20,) * 3)), rows.NOT_MEASURED)
        self.assertEqual(row.verdict(self.samples(rails=(10,) * 3, chosen=(11,) * 3, mpi=(20,) * 3, tcp=(20,) * 3)), "met")
        self.assertEqual(row.verdict(self.samples(rails=(10,) * 3, chosen=(12,) * 3, mpi=(20,) * 3, tcp=(20,) * 3)), "missed")
        self.assertEqual(row.verdict(self.samples(rails=(10,) * 3, chosen=(10,) * 3, mpi=(9,) * 3, tcp=(20,) * 3)), "missed")
        self.assertEqual(row.verdict(self.samples(rails=(30,) * 3, chosen=(20,) * 3, mpi=(40,) * 3, tcp=(20,) * 3)), "missed")
        self.assertEqual(row.verdict(self.samples(rails=(10,) * 2, chosen=(10,) * 3, mpi=(20,) * 3, tcp=(20,) * 3)), rows.NOT_MEASURED)


class Verdicts(unittest.TestCase):
    def verdict(self, key, ours, theirs):
        row = row_of(key)
        return rows.verdict_of(row, {row.ours.key: ours, row.theirs.key: theirs})

    def test_the_medians_are_compared(self):
        self.assertEqual(self.verdict("write-1m", [91, 20, 92], [100, 100, 10]), "met")
        self.assertEqual(self.verdict("write-1m", [89, 89, 200], [100, 100, 100]), "missed")
        self.assertEqual(self.verdict("latency-8", [24, 24, 24], [16, 16, 16]), "met")
        self.assertEqual(self.verdict("latency-8", [25, 25, 25], [16, 16, 16]), "missed")

    def test_few_samples_are_no_verdict(self):
        self.assertEqual(self.verdict("write-1m", [100, 100], [100, 100, 100]), rows.NOT_MEASURED)
        self.assertEqual(self.verdict("write-1m", [100, 100, 100], []), rows.NOT_MEASURED)

    def test_a_row_without_a_goal_has_a_figure_only(self):
        self.assertEqual(self.verdict("ring-1m", [1, 1, 1], [100, 100, 100]), "no goal")
        row = row_of("ring-1m")
        self.assertIn("0.50 x", rows.text_of(row, {"ring": [50] * 3, "ib_write_bw": [100] * 3}))

    def test_a_row_without_samples_can_be_printed(self):
        for row in rows.ROWS:
            self.assertIn(rows.NOT_MEASURED, rows.text_of(row, {}))


class Rounds(unittest.TestCase):
    def test_every_contender_runs_once_a_round(self):
        contenders = rows.contenders_of(rows.ROWS)
        self.assertEqual(len(contenders), len(set(contenders)))
        self.assertEqual(len({one.key for one in contenders}), len(contenders))
        for row in rows.ROWS:
            self.assertIn(row.ours, contenders)
            self.assertIn(row.theirs, contenders)
        self.assertEqual(sorted(one.key for one in rows.rotated(contenders, 3)), sorted(one.key for one in contenders))


if __name__ == "__main__":
    unittest.main()
