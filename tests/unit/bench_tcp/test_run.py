#!/usr/bin/env python3
"""The pure parts of the TCP benchmark: goals, links, parsing of the contenders' output, settings that force each onto TCP."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "tcp"))

import rows  # noqa: E402  first: it adds the common folder to the path
import contenders  # noqa: E402
import picture  # noqa: E402
import run  # noqa: E402


class Goals(unittest.TestCase):
    def test_keys_are_unique_and_every_group_has_a_place(self):
        self.assertEqual(len(set(rows.KEYS)), len(rows.KEYS))
        for row in rows.ROWS:
            for group in row.groups:
                self.assertIn(group.place, rows.PLACES)
                self.assertIn(group.place, group.title)
                self.assertEqual(group.calls[-1][0], group.upper, group.title)

    def test_a_quick_run_keeps_calls_for_every_size(self):
        for row in rows.ROWS:
            for group in row.groups:
                short = group.shortened(run.QUICK_MOST)
                self.assertLessEqual(short.upper, 4 * rows.MIB)
                self.assertEqual(short.calls[-1][0], short.upper)

    def samples(self, place, ours, peer, iperf):
        group = rows.large(place)
        figures = {rows.OURS: ours, "gloo": peer, rows.LIMIT: iperf}
        return [
            rows.Sample(group, name, index, rows.NEAR, {size: size / speed for size in group.sizes})
            for name, speed in figures.items()
            for index in range(2)
        ]

    def test_large_needs_both_the_best_peer_and_iperf(self):
        row = next(row for row in rows.ROWS if row.key == "loop-large")
        for ours, met in ((1400, True), (1250, False)):  # MB/s, gloo 1000
            self.assertEqual(rows.judge(self.samples(rows.LOOPBACK, ours, 1000, 1600), row)[rows.NEAR].met, met)
        judgement = rows.judge(self.samples(rows.LOOPBACK, 1400, 1000, 2000), row)[rows.NEAR]
        self.assertFalse(judgement.met)
        self.assertIn("70% of iperf3", judgement.text)

    def test_places_are_not_mixed(self):
        row = next(row for row in rows.ROWS if row.key == "veth-large")
        self.assertIsNone(rows.judge(self.samples(rows.LOOPBACK, 1400, 1000, 1600), row)[rows.NEAR])

    def test_the_picture_has_a_panel_for_each_place(self):
        text = picture.draw(self.samples(rows.LOOPBACK, 3, 2, 4) + self.samples(rows.VETH, 3, 2, 4))
        self.assertIn("TCP over loopback", text)
        self.assertIn("TCP over veth", text)
        self.assertIsNone(picture.draw([]))


class LinkRows(unittest.TestCase):
    def test_the_payload_of_the_rate_is_all_there_is(self):
        row = next(row for row in rows.LINK_ROWS if row.key == "in-flight")
        self.assertAlmostEqual(row.share_of_payload(1e9 / 8 * 1448 / 1500), 1)
        self.assertEqual(row.round_trip_us, 10_000)

    def test_a_late_emulator_does_not_count(self):
        row = next(row for row in rows.LINK_ROWS if row.key == "in-flight")
        self.assertTrue(row.counts(99))
        self.assertFalse(row.counts(101))

    def test_a_late_bucket_only_passes_less(self):
        row = next(row for row in rows.LINK_ROWS if row.key == "slow-25")
        self.assertTrue(row.counts(1e6))

    def test_one_figure_is_judged_by_its_median(self):
        self.assertEqual(rows.verdict(rows.judge_plain([0.8, 0.96, 0.97], 0.95, "x", False)), "met")
        self.assertEqual(rows.verdict(rows.judge_plain([0.8, 0.9, 0.97], 0.95, "x", False)), "missed")
        self.assertEqual(rows.verdict(rows.judge_plain([], 0.95, "x", False)), "not measured")
        line = rows.line_of("w", "g", rows.judge_plain([3.0], 4, "MiB", True))
        self.assertEqual(line, "w | g | 3.00 MiB (bound 4.00, 1 samples from 3.00 to 3.00) | met")


class Reading(unittest.TestCase):
    def test_iperf_counts_both_directions(self):
        end = {"sum_received": {"bits_per_second": 8e9}, "sum_received_bidir_reverse": {"bits_per_second": 4e9}}
        self.assertEqual(contenders.both_directions({"end": end}), 1.5e9)

    def test_a_contender_that_stays_off_the_network_is_refused(self):
        class Place:
            interface, counted = "lo", iter((1000, 2000))

            def carried_bytes(self):
                return next(self.counted)

        group = rows.small(rows.LOOPBACK)
        with self.assertRaisesRegex(contenders.Unavailable, "did not use TCP"):
            contenders.measured("X", Place(), group, dict)
        Place.counted = iter((0, 100_000))  # the bytes of starting a job, also over loopback
        with self.assertRaisesRegex(contenders.Unavailable, "sent 100000 bytes over lo"):
            contenders.measured("X", Place(), group, dict)
        Place.counted = iter((0, 2 * sum(group.all_sizes)))
        self.assertEqual(contenders.measured("X", Place(), group, dict), {})

    def test_out_of_place_is_read_also_as_cpu_time(self):
        entry = {"out_of_place": {"cpu_time": "3.5"}, "in_place": {"time": 1}}
        ours = contenders.Ours("X", None, Path("build"))
        self.assertEqual(ours.figure_of(entry, rows.small(rows.LOOPBACK)), 3.5)

    def test_every_mpi_is_forced_onto_the_interface(self):
        class Place:
            interface = "lo"

        words, _ = contenders.open_mpi_settings(Place())
        self.assertIn("tcp,self", words)
        self.assertEqual(contenders.mpich_settings(Place())[1]["UCX_NET_DEVICES"], "lo")
        self.assertEqual(contenders.intel_settings(Place(), {"A": "b"}, ["m"])[1]["FI_PROVIDER"], "tcp")


if __name__ == "__main__":
    unittest.main()
