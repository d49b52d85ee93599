#!/usr/bin/env python3
"""Tests of jobs whose sites are behind firewalls and NAT. Needs root.

    firewall_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import sys

from cluster_test import Job
from lab import Lab, Site
from lab_support import BUILD, LabCase, main

IMPATIENT = {"SETO_INIT_TIMEOUT_MS": "8000"}


class Firewalls(LabCase):
    """Sites whose firewall lets connections out only."""

    def start(self, lab, dial_only, per_host=1, extra=None):
        """A job in which the ranks of these sites can only dial."""
        for site in dial_only:
            lab.site_settings[site] = {"SETO_DIAL_ONLY": "on"}
        return Job(lab, per_host, extra)

    def test_a_site_that_only_dials_calls_the_others(self):
        for connect in ("all", "used"):
            with Lab([Site(1), Site(2)], ["delay=2ms"], build=BUILD) as lab:
                lab.link("0>1 closed=on")
                job = self.start(lab, [1], 2, {"SETO_CONNECT": connect})
                job.expect("^ready$", 30)
                job.work(calls=2)
                job.say("send 100000 5", [0])  # the rank that sends needs the connection first
                job.say("receive 100000 0", [5])
                job.expect("^done$", 30, [0, 5])
                job.leave()

    def test_two_sites_that_only_dial_are_both_named(self):
        with Lab([Site(1), Site(1), Site(1)], ["delay=2ms"], build=BUILD) as lab:
            lab.link("1-2 closed=on")
            for rank in self.start(lab, [1, 2], extra=IMPATIENT).ranks:
                said = rank.line("^failed after (.*)", 60)[0]
                self.assertIn("neither that host nor this one accepts connections from other networks", said)
                self.assertRegex(said, r"rank [12]\b")

    def test_a_closed_site_that_states_nothing_is_told_the_remedy(self):
        with Lab([Site(1), Site(1), Site(1)], ["delay=2ms"], build=BUILD) as lab:
            lab.link("1-2 closed=on")
            for rank in self.start(lab, [], extra=IMPATIENT).ranks:
                self.assertIn("set SETO_DIAL_ONLY=on there", rank.line("^failed after (.*)", 60)[0])


if __name__ == "__main__":
    sys.exit(main())
