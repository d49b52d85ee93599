#!/usr/bin/env python3
"""The pure parts of the tables of scale: systems, overlap, rows."""

import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "scale"))

import model  # noqa: E402  first: it knows where the common parts are


class Systems(unittest.TestCase):
    def test_they_reach_from_one_to_ten_thousand_ranks_at_one_two_and_four_sites(self):
        self.assertEqual((model.EFFICIENCY[0].ranks, model.EFFICIENCY[-1].ranks), (1000, 10000))
        self.assertEqual(model.TWO_SITES.ranks, 1900)
        for ranks in (1000, 2000, 10000):
            self.assertEqual([system.sites for system in model.EFFICIENCY if system.ranks == ranks], [1, 2, 4])

    def test_the_file_states_the_nics_of_a_host_and_the_uplinks(self):
        root = ElementTree.fromstring(model.System(2, 3, 8).xml)
        links = {link.get("kind"): link for link in root.findall("seto_link")}
        self.assertEqual(float(links["fabric"].get("bytes_per_second")), 8 * 50e9)
        self.assertEqual(float(links["uplink"].get("bytes_per_second")), 12.5e9)
        self.assertEqual(float(links["between"].get("round_trip_s")), 0.05)


class Overlap(unittest.TestCase):
    training = model.Training(compute_s=2, backward_s=1, gradient_bytes=1e9, bucket_bytes=100_000_000)

    def test_only_the_last_bucket_is_exposed_if_calls_are_short(self):
        self.assertAlmostEqual(model.exposed_seconds(self.training, 0.03, 0.01), 0.03)

    def test_calls_that_take_longer_than_the_backward_pass_queue(self):
        # A link that is busy for 0.2 s of each call: ten calls take 2 s from when the first one begins, at 0.1 s.
        self.assertAlmostEqual(model.exposed_seconds(self.training, 0.2, 0.2), 0.1 + 2 - 1)

    def test_two_operations_are_under_way(self):
        # Latency alone, no bytes: a call of 0.4 s lets two begin every 0.4 s.
        self.assertAlmostEqual(model.exposed_seconds(self.training, 0.4, 0.0), 0.2 + 5 * 0.4 - 1)

    def test_without_communication_the_speed_is_linear(self):
        self.assertEqual(model.efficiency(self.training, 0, 0), 1)
        self.assertAlmostEqual(model.efficiency(self.training, 0.1, 0.01), 2 / 2.1)


class Rows(unittest.TestCase):
    simulated = {
        "seconds": 0.04,
        "links": [{"kind": "uplink", "busy": 0.25}, {"kind": "host, sending", "busy": 0.1}],
        "plan_wall_seconds": 3.4, "simulation_wall_seconds": 1.2, "memory_bytes": 2**30,
    }  # fmt: skip

    def test_the_busiest_link_is_named_with_its_time(self):
        busy_s, kind = model.busiest(self.simulated)
        self.assertAlmostEqual(busy_s, 0.01)
        self.assertEqual(kind, "uplink")

    def test_rows_are_lines_of_a_table(self):
        row = model.efficiency_row(model.System(2, 50, 10), model.Training(), self.simulated)
        self.assertEqual(row, "| 1,000 | 2 x 50 x 10 | 40.0 ms | 10.00 ms, uplink | 98.0% |")
        self.assertEqual(model.cost_row(model.System(2, 50, 10), self.simulated), "| 1,000 | 2 | 3 s | 1 s | 1.0 GiB |")
        flat = {**self.simulated, "seconds": 2.8, "simulation_wall_seconds": 20.1}
        self.assertEqual(
            model.flat_against_hierarchical_row(0.08, 2e9, flat, {**self.simulated, "seconds": 0.7}),
            "| 80 ms | 2.0 GB | 2.80 s | 0.70 s | 4.0 | 24 s, 1.0 GiB; 5 s, 1.0 GiB |",
        )


if __name__ == "__main__":
    unittest.main()
