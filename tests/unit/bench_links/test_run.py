#!/usr/bin/env python3
"""The pure parts of the bench for long links: goals, bounds, what is launched for which row."""

import sys
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "links"))

import rows  # noqa: E402  first: it knows where the common parts are
import link_labs  # noqa: E402


def row_of(key):
    return next(row for row in rows.ROWS if row.key == key)


def options(quick=False):
    return types.SimpleNamespace(quick=quick, calls=0)


def verdict_of(samples, key, least=1):
    return rows.verdict(rows.judge_row(samples, row_of(key), least))


# Plain sockets over 1 Gbit/s: what headers leave.
RAW = {rows.raw(rows.PAIR_1G, 8): [120.6e6]}


class Goals(unittest.TestCase):
    def test_keys_are_unique_and_a_quick_run_knows_them(self):
        self.assertEqual(len(set(rows.KEYS)), len(rows.KEYS))
        self.assertLess(set(rows.QUICK_KEYS), set(rows.KEYS))

    def test_three_sites_state_their_rates_and_others_nothing(self):
        self.assertEqual([of_site["SETO_SITE_UPLINK_MBIT"] for of_site in rows.THREE.site_settings], [250, 500, 1000])
        self.assertEqual(rows.UNEVEN.site_settings, [{}, {}])

    def test_every_goal_is_said_with_its_bound(self):
        self.assertEqual(row_of("ar-100m-1g").goal, ">= 85% of the bound")
        self.assertEqual(row_of("ar-10m-2g").goal, "<= 1.35 x the bound")
        self.assertEqual(row_of("fp16-1g").goal, "<= 0.62 x the time of 1g all_reduce 100 MB")
        self.assertEqual(row_of("gloo-2g").goal, "2g all_reduce 100 MB, gloo takes >= 7 x the time")
        self.assertEqual(row_of("init").goal, "at most 60 ms more than 1g init-1")
        for row in rows.ROWS:
            self.assertIn(row.measure, ("share", "times", "rate", "ms", "more", "ratio", "faster"))


class Bounds(unittest.TestCase):
    def test_two_hosts_exchange_their_bytes_once(self):
        for mb, bound in ((100, 859), (10, 113), (1, 38.3)):
            series = rows.Series(rows.PAIR_1G, "all_reduce", mb * rows.MB)
            self.assertAlmostEqual(rows.bound_ms(RAW, series), bound, delta=0.5)
        self.assertIsNone(rows.bound_ms({}, rows.Series(rows.PAIR_1G, "all_reduce", rows.MB)))

    def test_as_many_sockets_count_as_carry_most(self):
        samples = {rows.raw(rows.PAIR_1G, 4): [80e6, 90e6, 85e6], rows.raw(rows.PAIR_1G, 16): [100e6, 120e6, 110e6]}
        self.assertEqual(rows.raw_rate(samples, rows.PAIR_1G), 110e6)

    def test_equal_sites_are_a_ring(self):
        self.assertAlmostEqual(rows.seconds_per_byte([1.0, 1.0]), 1)
        self.assertAlmostEqual(rows.seconds_per_byte([1.0] * 3), 4 / 3)
        self.assertAlmostEqual(rows.seconds_per_byte([2.0] * 8), 2 * 7 / 8 / 2)

    def test_the_slowest_site_only_sends_its_own_bytes(self):
        self.assertAlmostEqual(rows.seconds_per_byte([1.0, 2.0, 4.0]), 1)
        self.assertAlmostEqual(rows.seconds_per_byte([0.9, 1.0, 1.1]), 4 / 3)

    # The shares that the closed form promises can be given: each site is busy no longer than that, and the shares add up.
    def test_shares_that_reach_the_bound_exist(self):
        for capacities in ([1.0, 2.0, 4.0], [1.0, 1.0, 1.0, 10.0], [3.0, 4.0, 5.0], [1.0, 1.5, 1.6]):
            time = rows.seconds_per_byte(capacities)
            most = [(time * capacity - 1) / (len(capacities) - 2) for capacity in capacities]
            self.assertGreaterEqual(min(most), -1e-9)
            self.assertGreaterEqual(sum(most), 1 - 1e-9)

    def test_three_sites_add_up_and_then_spread(self):
        samples = {rows.raw(rows.THREE, 8): [0.9 * 250e6 / 8]}
        series = row_of("ar-1:2:4").series
        self.assertAlmostEqual(rows.bound_ms(samples, series), 100e6 / (0.9 * 250e6 / 8) * 1e3 + 60)


class Verdicts(unittest.TestCase):
    def samples(self, key, times, **more):
        return {**RAW, row_of(key).series: times, **{row_of(key).against: more[name] for name in more}}

    def test_a_share_of_the_bound(self):
        self.assertEqual(verdict_of(self.samples("ar-100m-1g", [1000.0]), "ar-100m-1g"), "met")
        self.assertEqual(verdict_of(self.samples("ar-100m-1g", [1020.0]), "ar-100m-1g"), "missed")

    def test_times_the_bound(self):
        self.assertEqual(verdict_of(self.samples("ar-1m-1g", [47.0]), "ar-1m-1g"), "met")
        self.assertEqual(verdict_of(self.samples("ar-1m-1g", [49.0]), "ar-1m-1g"), "missed")

    def test_a_share_of_the_rate_and_plain_milliseconds(self):
        self.assertEqual(verdict_of(self.samples("sr-100m-1g", [970.0]), "sr-100m-1g"), "met")
        self.assertEqual(verdict_of(self.samples("sr-100m-1g", [980.0]), "sr-100m-1g"), "missed")
        self.assertEqual(verdict_of(self.samples("sr-1m-1g", [49.0]), "sr-1m-1g"), "met")
        self.assertEqual(verdict_of(self.samples("sr-1m-1g", [51.0]), "sr-1m-1g"), "missed")

    def test_against_another_series(self):
        cases = (("fp16-1g", 610, 630, 1000), ("init", 159, 161, 100), ("ar-2+1", 1149, 1151, 1000), ("gloo-1g", 260, 270, 1000))
        for key, good, bad, other in cases:
            self.assertEqual(verdict_of(self.samples(key, [float(good)], other=[float(other)]), key), "met", key)
            self.assertEqual(verdict_of(self.samples(key, [float(bad)], other=[float(other)]), key), "missed", key)
            self.assertEqual(verdict_of({**RAW, row_of(key).series: [1.0]}, key), "not measured", key)

    def test_too_few_samples_and_no_yardstick_are_not_measured(self):
        self.assertEqual(verdict_of(self.samples("ar-100m-1g", [900.0] * 9), "ar-100m-1g", 10), "not measured")
        self.assertEqual(verdict_of(self.samples("ar-100m-1g", [900.0] * 10), "ar-100m-1g", 10), "met")
        self.assertEqual(verdict_of({row_of("ar-100m-1g").series: [900.0]}, "ar-100m-1g"), "not measured")

    def test_a_row_says_both_times(self):
        line = rows.line_of("what", "goal", rows.judge_row(self.samples("ar-100m-1g", [4600.0]), row_of("ar-100m-1g"), 1))
        self.assertIn("0.19 of the bound, 4600 ms against 859 ms", line)
        self.assertTrue(line.endswith("| missed"))

    def test_the_placebo_is_held_against_ours(self):
        series = row_of("ar-100m-1g").series
        again = rows.Series(series.place, series.of, series.size, rows.PLACEBO)
        self.assertEqual(rows.placebo_text({series: [100.0], again: [102.0]}), ["  placebo, all_reduce 100 MB, 2 hosts, 1 Gbit/s: 1.020"])


class Launches(unittest.TestCase):
    def launches(self, *keys, quick=False):
        return link_labs.launches_of([row_of(key) for key in keys], options(quick), Path("build"), "python")

    def names(self, *keys, quick=False):
        return [(launch.name, launch.place.key) for launch in self.launches(*keys, quick=quick)]

    def test_a_row_brings_what_it_is_held_against(self):
        self.assertEqual(self.names("fp16-1g"), [("Seto", "1g"), ("Seto again", "1g")])
        self.assertEqual(self.names("init"), [("init-16", "1g"), ("init-1", "1g")])
        self.assertEqual(self.names("gloo-2g"), [("Seto", "2g"), ("gloo", "2g"), ("Seto again", "2g")])
        self.assertIn(("Seto", "1g"), self.names("ar-2+1"))
        raw = [(f"{sockets} plain sockets", "1g") for sockets in rows.RAW_SOCKETS]
        self.assertEqual(self.names("sr-100m-1g"), [*raw, ("Seto", "1g")])

    def test_a_quick_run_is_two_launches(self):
        self.assertEqual(self.names(*rows.QUICK_KEYS, quick=True), [("4 plain sockets", "1g"), ("Seto", "1g")])

    def test_one_job_takes_all_series_of_a_place_the_largest_first(self):
        launch = next(launch for launch in self.launches("ar-1m-1g", "ar-100m-1g", "fp16-1g") if launch.name == "Seto")
        words = [link_labs.work_of(series, link_labs.CALLS) for series in launch.wanted]
        self.assertEqual(words, ["all_reduce:100000000:2:5", "fp16:100000000:2:5", "all_reduce:1000000:5:10"])

    def test_a_rank_that_begins_earlier_does_not_count_twice(self):
        launch = self.launches("sr-1m-2g")[0]
        ranks = [{"works": [{"ms": [1.0, 5.0]}]}, {"works": [{"ms": [2.0, 4.0]}]}]
        self.assertEqual(launch.samples_of(ranks), {row_of("sr-1m-2g").series: [1.5, 4.5]})


if __name__ == "__main__":
    unittest.main()
