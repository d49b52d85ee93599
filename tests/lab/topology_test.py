#!/usr/bin/env python3
"""Tests of seto topo --probe over links of known rates. Needs root.

    topology_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import json
import re
import sys
import tempfile

from lab import Lab, Site
from lab_support import BUILD, LabCase, main

PAYLOAD_SHARE = 1448 / 1500  # of an IP packet, with TCP's time stamps
MBIT = 1e6 / 8
TOLERANCE = 0.15
QUIET = {"SETO_LOG": "error"}


class Probes(LabCase):
    """The printed rate of a link is what it carries."""

    def topo(self, lab, *options, per_host=1):
        """What `seto topo` prints on rank 0, and what it says."""
        ranks = lab.start_job([BUILD / "seto", "topo", *options], per_host, QUIET)
        codes = [rank.wait(60) for rank in ranks]
        self.assertEqual(codes, [0] * len(codes), [rank.error_lines for rank in ranks])
        self.assertFalse(any(rank.output for rank in ranks[1:]), "rank 0 alone prints")
        return ranks[0].output, "\n".join(ranks[0].error_lines)

    def links(self, printed):
        return {(one["from"], one["to"]): one["link"] for one in json.loads(printed)["between_sites"]}

    def must_be_near(self, link, mbit, tolerance=TOLERANCE):
        payload = mbit * MBIT * PAYLOAD_SHARE
        self.assertEqual(link["source"], "measured")
        self.must_reach(link["bytes_per_second"], (1 - tolerance) * payload)
        self.must_stay_below(link["bytes_per_second"], (1 + tolerance) * payload)

    def test_timing_each_direction_of_two_sites(self):
        def check():
            sites = [Site(2, uplink="200m", downlink="100m"), Site(1, uplink="1g", downlink="1g")]
            with Lab(sites, ["delay=20ms"], build=BUILD) as lab:
                printed, said = self.topo(lab, "--probe", "--json")
                (probed,) = re.findall(r"(?m)^probed 2 links, (\d+) MB$", said)
                self.assertGreater(int(probed), 10)
                self.assertLess(int(probed), 150, "two seconds of both rates, and what is in queues")
                links = self.links(printed)
                self.must_be_near(links[0, 1], 200)
                self.must_be_near(links[1, 0], 100)
                self.assertGreater(links[0, 1]["round_trip_s"], 0.039)
                text, _ = self.topo(lab, "--probe")
                self.assertRegex(text, r"site0 to site1: 2\d(\.\d+)? MB/s, 4\d(\.\d+)? ms round trip \(measured\)")

        self.attempt(check)

    def test_timing_three_sites_share_no_uplink(self):
        def check():
            with Lab(3, ["rate=50m", "delay=10ms"], build=BUILD) as lab:
                lab.link("1>2 rate=20m")
                printed, said = self.topo(lab, "--probe", "--json")
                self.assertIn("probed 6 links", said)
                self.assertIn("seto: probed", said, "six probes take more than a second, so it says how far it is")
                for pair, link in self.links(printed).items():
                    self.must_be_near(link, 20 if pair == (1, 2) else 50, 0.3)

        self.attempt(check)

    def test_the_rates_are_in_the_file_too(self):
        with Lab(2, ["rate=50m", "delay=10ms"], build=BUILD) as lab:
            printed, _ = self.topo(lab, "--probe", "--xml")
            self.assertRegex(printed, r'<seto_link kind="between" from="1" to="0" bytes_per_second="[\d.e+]+" round_trip_s="0.02')

    def test_one_site_is_said(self):
        with Lab([Site(2)], None, build=BUILD) as lab:
            printed, said = self.topo(lab, "--probe")
            self.assertIn("--probe: the job has one site", said)
            self.assertIn("site 0: 2 hosts" if "site 0" in printed else "2 hosts", printed)


FILE = """<system version="1"><seto_site name="tokyo"/><seto_site name="osaka"/>
<seto_host hash="0x1" name="host0" site="0"/><seto_host hash="0x2" name="host1" site="1"/>
<seto_link kind="between" from="0" to="1" bytes_per_second="12500000"/><seto_link kind="between" from="1" to="0" bytes_per_second="12500000"/>
</system>"""


class TopologyFile(LabCase):
    """A job of two hosts whose file states two sites. All hosts of a lab have one name, so they state ids."""

    def explain(self, lab, extra):
        def of_host(settings, site):
            return {**settings, "SETO_HOST_ID": f"host{site}"}

        lab.site_settings = [of_host(extra, site) for site in range(2)]
        ranks = lab.start_job([BUILD / "seto", "explain", "all_reduce", "16M"], 2, QUIET)
        codes = [rank.wait(60) for rank in ranks]
        self.assertEqual(codes, [0] * len(codes), [rank.error_lines for rank in ranks])
        return ranks[0].output

    def test_choice_follows_the_sites_and_rates_of_the_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file, Lab(2, ["rate=100m", "delay=1500us"], build=BUILD) as lab:
            file.write(FILE)
            file.flush()
            stated = self.explain(lab, {"SETO_TOPOLOGY_FILE": file.name})
            self.assertIn("2 sites stated by SETO_TOPOLOGY_FILE", stated)
            self.assertRegex(stated, r"12\.5 MB/s \(.*file\)")
            self.assertIn("fp16", stated)
            found = self.explain(lab, {})
            self.assertIn("2 sites found by round trips", found)
            self.assertNotIn("file)", found)
            self.assertNotIn("fp16", found, "found sites 3 ms apart send exact numbers")


if __name__ == "__main__":
    sys.exit(main())
