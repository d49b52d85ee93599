#!/usr/bin/env python3
"""The pure parts of the bench for choice: regrets, verdicts, what is given to the simulation."""

import json
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "choice"))

import tables  # noqa: E402  first: it knows where the common parts are
from picture import picture_of  # noqa: E402
from topologies import Sites  # noqa: E402


def point(us, chosen="ring", collective="all_reduce", size=tables.MIB, latency_seconds=1e-6, ranks=2):
    links = [{"tier": "node", "latency_seconds": latency_seconds, "bytes_per_second": 8e9, "message_seconds": 2e-7}]
    return {"collective": collective, "bytes": size, "ranks": ranks, "chosen": chosen, "us": us, "links": links}


def place_of(key):
    return next(place for place in tables.PLACES if place.key == key)


class Regrets(unittest.TestCase):
    def test_the_choice_and_its_pin_are_one_sample(self):
        medians = tables.medians_of(point({"": [10, 12, 50], "ring": [11, 13, 9], "tree": [20, 21, 22]}))
        self.assertEqual(medians, {"ring": 11.5, "tree": 21})

    def test_the_ratio_is_against_the_best(self):
        regret = tables.regret_of("shm-2", point({"": [12], "ring": [12], "tree": [10]}))
        self.assertEqual((regret.chosen, regret.best), ("ring", "tree"))
        self.assertAlmostEqual(regret.ratio, 1.2)

    def test_points_beyond_ten_percent_are_named_the_worst_first(self):
        points = [point({"ring": [12], "tree": [10]}), point({"ring": [30], "tree": [10]}, size=64), point({"ring": [10], "tree": [10]})]
        lines = tables.text_of_regrets([tables.regret_of("tcp-2", one) for one in points])
        self.assertIn("3.00 x: chose ring 30.0 us, tree 10.0 us", lines[2])
        self.assertIn("tcp-2 all_reduce 1M", lines[3])
        self.assertTrue(lines[-1].endswith("| 33%, worst 3.00 x | missed"))

    def test_nine_of_ten_near_and_none_far_is_met(self):
        near, beyond, far = (tables.Regret("p", "reduce", 8, "a", "b", us, 10) for us in (11, 14, 16))
        self.assertTrue(tables.has_met(tables.text_of_regrets([near] * 9 + [beyond])))
        self.assertFalse(tables.has_met(tables.text_of_regrets([near] * 8 + [beyond] * 2)))
        self.assertFalse(tables.has_met(tables.text_of_regrets([near] * 99 + [far])))

    def test_every_place_has_ranks_for_its_hosts(self):
        for place in tables.PLACES:
            self.assertEqual(place.ranks % max(1, sum(place.hosts)), 0, place.key)
            self.assertTrue(set(collective for collective, _ in place.works) <= set(tables.COLLECTIVES))


class Kept(unittest.TestCase):
    def test_sizes_are_half_powers_of_two_in_whole_elements(self):
        self.assertEqual(tables.half_powers(8, 128), [8, 16, 20, 32, 44, 64, 88, 128])
        self.assertEqual(tables.half_powers(256, 362), [256, 360])

    def test_a_figure_is_the_lower_quartile_and_the_choice_is_one_sample_with_its_pin(self):
        self.assertEqual(tables.quartile([9, 1, 2, 900, 3, 4, 5, 6]), 3)
        kept = tables.kept_point(point({"": [10, 90], "ring": [12, 99], "tree": [20.12345] * 4}) | {"slice_bytes": 65536})
        self.assertEqual(kept["us"], {"ring": 12, "tree": 20.12})
        self.assertEqual((kept["chosen"], kept["slice_bytes"]), ("ring", 65536))

    def test_cuts_are_measured_over_shared_memory_at_whole_powers(self):
        shm, tcp = tables.KEPT_PLACES[0], tables.KEPT_PLACES[2]
        self.assertTrue(tables.has_cuts(shm, tables.MIB))
        for place, size in ((shm, tables.MIB + 4), (shm, 8), (shm, 256 * tables.MIB), (tcp, tables.MIB)):
            self.assertFalse(tables.has_cuts(place, size), (place.key, size))

    def test_a_file_is_json_with_a_line_for_each_point(self):
        facts = {"latency_origin": "measured", "rate_origin": "measured"}
        measured = [point({"": [3], "ring": [3], "tree": [2]}, size=size) | {"slice_bytes": 1, "ranks_a_core": 1.5} for size in (8, 16)]
        for one in measured:
            one["links"][0] |= facts
        text = tables.text_of_kept({"processor": "P"}, [tables.kept_place(tables.KEPT_PLACES[0], {"kernel": "6"}, measured)] * 2)
        document = json.loads(text)
        self.assertEqual(len(text.splitlines()), 1 + 2 * 3)
        self.assertEqual(document["processor"], "P")
        place = document["places"][1]
        self.assertEqual((place["place"], place["ranks"], place["ranks_a_core"], place["tier"]), ("shm-2", 2, 1.5, "node"))
        self.assertEqual(place["kernel"], "6")
        self.assertEqual(place["constants"], ["node.latency_us 1", "node.gigabytes_per_second 8", "node.message_us 0.2"])
        regrets = tables.regrets_of_kept(document)
        self.assertEqual([(one.size, one.best, one.ratio) for one in regrets], [(8, "tree", 1.5), (16, "tree", 1.5)] * 2)
        drawn = ElementTree.fromstring(picture_of(regrets, tables.NEAR))
        self.assertEqual(len(drawn.findall("{http://www.w3.org/2000/svg}circle")), 4 + 6)

    def test_a_processor_names_a_file(self):
        self.assertEqual(tables.file_name_of("Intel(R) Xeon(R) CPU @ 2.20GHz"), "intel_r_xeon_r_cpu_2_20ghz")


class Simulated(unittest.TestCase):
    def test_constants_are_those_of_a_tuning_file(self):
        text = "node.latency_us 1\nnode.gigabytes_per_second 8\nnode.message_us 0.2\n"
        self.assertEqual(tables.constants_of(place_of("shm-2"), point({}), 2), text)

    def test_what_is_known_of_a_cache_is_among_the_constants(self):
        one = point({})
        one["links"][0] |= {"cached_bytes_per_second": 2e11, "cached_bytes": 1048576}
        self.assertIn("\nnode.cached_gigabytes_per_second 200\nnode.cached_kilobytes 1024\n", tables.constants_of(place_of("shm-2"), one, 2))

    def test_where_messages_are_long_is_among_the_constants(self):
        one = point({})
        one["links"][0] |= {"long_message_bytes": 18944}
        self.assertIn("\nnode.long_message_kilobytes 18.5\n", tables.constants_of(place_of("shm-2"), one, 2))

    def test_ranks_of_loopback_that_share_a_core_wait_for_each_others_messages(self):
        self.assertIn("node.message_us 0.4\n", tables.constants_of(place_of("tcp-4"), point({}, ranks=4), 2))
        self.assertIn("node.message_us 0.2\n", tables.constants_of(place_of("shm-4"), point({}, ranks=4), 2))

    def test_ranks_of_shared_memory_are_on_one_host_with_its_cores(self):
        self.assertEqual(tables.topology_of(place_of("shm-4"), point({}), 2), Sites(cores=2))

    def test_ranks_of_loopback_share_the_rate_of_the_cores(self):
        two = tables.topology_of(place_of("tcp-2"), point({}), 2)
        four = tables.topology_of(place_of("tcp-4"), point({}, ranks=4), 2)
        self.assertEqual((two.hosts, two.fabric, two.fabric_round_trip_s), (2, 8e9, 2e-6))
        self.assertEqual((four.hosts, four.fabric), (4, 4e9))

    def test_the_lab_has_its_stated_uplinks_without_headers(self):
        sites = tables.topology_of(place_of("slow-4"), point({}), 2)
        self.assertEqual((sites.sites, sites.hosts, sites.round_trip_s), (2, 1, 0.02))
        self.assertLess(sites.uplink, 500e6 / 8)

    def test_the_verdict_counts_rows_beyond_a_quarter(self):
        rows = [tables.Compared("shm-2", "all_reduce", tables.MIB, "ring", 100, us) for us in (120, 80, 130)]
        lines = tables.text_of_comparison(rows)
        self.assertTrue(lines[-1].endswith("2 of 3, worst 30% | missed"))
        self.assertTrue(tables.text_of_comparison(rows[:2])[-1].endswith("| met"))


class Topologies(unittest.TestCase):
    def test_a_file_names_hosts_sites_and_links(self):
        sites = Sites(sites=2, hosts=3, cores=50, fabric=1e9, fabric_round_trip_s=1e-5, uplink=1.25e9, round_trip_s=0.08)
        root = ElementTree.fromstring(sites.xml)
        self.assertEqual(len(root.findall("cpu")), 6)
        self.assertEqual([host.get("site") for host in root.findall("seto_host")], list("000111"))
        self.assertEqual(sorted(link.get("kind") for link in root.findall("seto_link")), sorted(["fabric", "uplink", "downlink", "between"] * 2))
        self.assertEqual(root.find("cpu").get("affinity"), "0003ffff,ffffffff")

    def test_a_single_host_has_no_elements_of_our_own(self):
        self.assertEqual([child.tag for child in ElementTree.fromstring(Sites(cores=2).xml)], ["cpu"])


if __name__ == "__main__":
    unittest.main()
