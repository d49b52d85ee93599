#!/usr/bin/env python3
"""The pure parts of the benchmark of found sites: random jobs, their limits, the comparison."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "sites"))

from scenarios import LEAST_MS, MOST_MS, SKEWED_WAYS_MS, Scenario, same_partition, scenario_of, time_limit_s  # noqa: E402


class Scenarios(unittest.TestCase):
    seeds = range(500)

    def test_a_seed_gives_one_job(self):
        self.assertEqual(scenario_of(7, 2), scenario_of(7, 2))
        self.assertGreater(len({scenario_of(seed, 2).hosts for seed in self.seeds}), 100)

    def test_all_that_the_goal_names_occurs_and_nothing_else(self):
        jobs = [scenario_of(seed, 2) for seed in self.seeds]
        self.assertEqual({len(job.hosts) for job in jobs}, {2, 3, 4, 5})
        self.assertEqual({count for job in jobs for count in job.hosts}, {1, 2, 3, 4})
        self.assertEqual({job.busy for job in jobs}, {0, 1, 2})
        ways = [(ms, job.ways_ms[other, one]) for job in jobs for (one, other), ms in job.ways_ms.items()]
        self.assertTrue(any({there, back} == set(SKEWED_WAYS_MS) for there, back in ways))
        for there, back in ways:
            self.assertTrue(LEAST_MS <= there + back <= MOST_MS, (there, back))

    def test_every_ordered_pair_has_a_command(self):
        job = Scenario(1, (1, 2), {(0, 1): 5.0, (1, 0): 40.0}, 0)
        self.assertEqual(job.commands, ["0>1 delay=5.000ms jitter=0.500ms", "1>0 delay=40.000ms jitter=4.000ms"])
        self.assertEqual(job.site_of_hosts, [0, 1, 1])
        self.assertAlmostEqual(job.longest_round_trip_ms, 49.5)
        self.assertAlmostEqual(time_limit_s(job), 2 + 6 * 0.0495)


class Comparison(unittest.TestCase):
    def test_names_of_sites_do_not_count(self):
        self.assertTrue(same_partition([1, 0, 0], [0, 1, 1]))
        self.assertTrue(same_partition([0, 1, 2], [2, 0, 1]))

    def test_a_host_in_the_wrong_site_is_noticed(self):
        self.assertFalse(same_partition([0, 0, 1], [0, 1, 1]))
        self.assertFalse(same_partition([0, 0, 0], [0, 1, 1]))
        self.assertFalse(same_partition([0, 1, 2], [0, 1, 1]))
        self.assertFalse(same_partition([0, 1], [0, 1, 1]))


if __name__ == "__main__":
    unittest.main()
