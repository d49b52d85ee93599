#!/usr/bin/env python3
"""Tests of seto status on jobs of two sites. Needs root.

    status_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import json
import sys
import time

from cluster_test import MIB, Job
from lab import Lab
from lab_support import BUILD, LabCase, main

LINK = ("rate=1g", "delay=10ms")
WAITS = {"SETO_HEARTBEAT_MS": 200, "SETO_LIVENESS_TIMEOUT_MS": 60000}


class Status(LabCase):
    """A job is asked on one of its hosts."""

    def link_of(self, host):
        """The only link of the only process on the host."""
        (process,) = json.loads(host.run([BUILD / "seto", "status", "--json"]))["processes"]
        (communicator,) = process["communicators"]
        (link,) = communicator["links"]
        return link

    def wait_for_state(self, lab, state, limit_s=20):
        for host in lab.hosts:
            self.wait_for(lambda: self.link_of(host)["state"] == state, limit_s)

    def test_a_link_is_shown_and_its_outage(self):
        with Lab(2, LINK, build=BUILD) as lab:
            job = Job(lab, extra=WAITS)
            job.expect("^ready$")
            job.work(4 * MIB, 3)
            self.wait_for_state(lab, "open")
            for host, other in zip(lab.hosts, reversed(lab.hosts)):
                link = self.link_of(host)
                self.assertGreater(link["bytes_sent"], 2 * MIB)
                self.assertGreaterEqual(link["shortest_round_trip_us"], 19_000)
                self.assertGreaterEqual(link["round_trip_us"], link["shortest_round_trip_us"])
                self.assertTrue(link["way"].endswith(f"-> {other.address}"), link["way"])
            lab.link("0-1 cut=on")
            self.wait_for_state(lab, "cut_off")
            lab.link("0-1 cut=off")
            self.wait_for_state(lab, "open", 60)
            job.leave()

    def test_paths_that_are_used_together_are_shown(self):
        with Lab(2, LINK, build=BUILD, paths=[LINK]) as lab:
            job = Job(lab, extra={**WAITS, "SETO_PATHS": "wan0,wan1", "SETO_PATHS_USE": "together"})
            job.expect("^ready$", 30)
            for host in lab.hosts:
                self.assertEqual(self.link_of(host)["used_paths"], [1, 2])
                self.assertRegex(host.run([BUILD / "seto", "status"]), "1, 2 of 2")
            lab.link("0-1 cut=on")
            job.say(f"run {4 * MIB} 3")
            job.expect("^done$", 60)
            for host in lab.hosts:
                self.wait_for(lambda: self.link_of(host)["used_paths"] == [2])
            job.leave()

    def test_the_path_that_data_takes_is_shown(self):
        with Lab(2, LINK, build=BUILD, paths=[LINK]) as lab:
            job = Job(lab, extra={**WAITS, "SETO_PATHS": "wan0,wan1"})
            job.expect("^ready$", 30)
            job.work(4 * MIB, 3)
            for host in lab.hosts:
                self.assertEqual([self.link_of(host)[key] for key in ("paths", "path", "used_paths")], [2, 1, [1]])
                self.assertRegex(host.run([BUILD / "seto", "status"]), "1 of 2")
            ways = [self.link_of(host)["way"] for host in lab.hosts]
            lab.link("0-1 cut=on")
            job.say(f"run {4 * MIB} 3")
            job.expect("^done$", 60)
            for host in lab.hosts:
                self.wait_for(lambda: self.link_of(host)["path"] == 2)
            # The control connection is on the path that is cut, and silent; the backup works.
            for way, host in zip(ways, lab.hosts):
                self.assertNotEqual(self.link_of(host)["way"], way)
            for _ in range(20):
                for host in lab.hosts:
                    self.assertNotEqual(self.link_of(host)["state"], "cut_off")
                time.sleep(0.1)
            job.leave()


if __name__ == "__main__":
    sys.exit(main())
