#!/usr/bin/env python3
"""Tests of the number of sockets between sites, which follows what they carry. Needs root.

    sockets_test.py [TEST...]     LAB_BUILD names the build folder; exit 77 if all were skipped
"""

import sys
import time

from cluster_test import Job
from lab import Lab
from lab_support import BUILD, LabCase, main

LINK = ["rate=1g", "delay=10ms"]
SETTINGS = {"SETO_LOG": "error", "SETO_CODEC": "none"}
MB = 1_000_000
CALL = 20 * MB
SMALL_BUFFER = 32 << 10  # of a receiver: a socket carries 1 MB/s, and eight of them 7 % of the link
FASTER = 1.2


class SocketNumbers(LabCase):
    """Where sockets are what is short, more of them are opened; where they are not, their number stays."""

    def connected(self, lab):
        """Sockets of the first host with others, one for control among them."""
        return len(lab.hosts[0].run(["ss", "-tnH", "state", "established"]).splitlines())

    def make_sockets_slow(self, lab):
        for host in lab.hosts:
            host.run(["sysctl", "-qw", f"net.ipv4.tcp_rmem=4096 16384 {SMALL_BUFFER}"])

    def passed(self, lab):
        return lab.emulators[0].statistics()["links"].get("0>1", {}).get("passed_bytes", 0)

    def rate(self, lab, seconds=2):
        before, begin = self.passed(lab), time.monotonic()
        self.wait_for(lambda: time.monotonic() >= begin + seconds, seconds + 1)
        return (self.passed(lab) - before) / (time.monotonic() - begin)

    def rises(self):
        with Lab(2, LINK, build=BUILD) as lab:
            self.make_sockets_slow(lab)
            job = Job(lab, extra=SETTINGS)
            job.expect("^ready$", 30)
            job.work(CALL, 1, 60)
            before = self.connected(lab)
            job.say(f"run {CALL} 30")
            slow = self.rate(lab)
            self.wait_for(lambda: self.rate(lab, 1) >= FASTER * slow, 60)
            print(f"{before} connections carried {slow / MB:.1f} MB/s, {self.connected(lab)} carry {self.rate(lab) / MB:.1f}")
            self.assertGreater(self.connected(lab), before)
            self.assertFalse([line for rank in job.ranks for line in rank.lines if "failed" in line or "wrong" in line])

    def test_timing_more_sockets_are_opened_where_they_are_short(self):
        self.attempt(self.rises)

    def test_a_stated_number_of_sockets_stays(self):
        with Lab(2, LINK, build=BUILD) as lab:
            self.make_sockets_slow(lab)
            job = Job(lab, extra={**SETTINGS, "SETO_TCP_STREAMS": "2"})
            job.expect("^ready$", 30)
            job.work(CALL // 8, 1, 60)
            before = self.connected(lab)
            job.work(CALL // 8, 3, 60)
            self.assertEqual(self.connected(lab), before)
            job.leave()


if __name__ == "__main__":
    sys.exit(main())
